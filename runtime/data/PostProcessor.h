//===- PostProcessor.h - Special tokens around a text -----------*- C++ -*-===//
#pragma once

#include "runtime/data/JsonField.h"

#include <cstdint>
#include <vector>

namespace fsdpq::rt {

/// Puts the special tokens of a template around the ids of a text.
class PostProcessor {
public:
  /// Reads "post_processor" of tokenizer.json: TemplateProcessing (its form for
  /// one text), ByteLevel (which moves offsets only, so nothing here),
  /// Sequence. Others are refused by name (Error 2002). null adds nothing.
  static PostProcessor parse(const JsonField &field);

  std::vector<int32_t> apply(std::vector<int32_t> ids,
                             bool addSpecialTokens) const;

  /// Every id that apply() may add.
  std::vector<int32_t> specialIds() const;

private:
  struct Item {
    bool isText;
    std::vector<int32_t> ids; // when it is not the text
  };
  using Template = std::vector<Item>;

  static Template parseTemplate(const JsonField &field);
  void parseInto(const JsonField &field, int depth);

  std::vector<Template> templates;
};

} // namespace fsdpq::rt
