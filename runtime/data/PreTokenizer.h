//===- PreTokenizer.h - Splits a text into words ----------------*- C++ -*-===//
#pragma once

#include "runtime/data/JsonField.h"

#include <memory>
#include <string>
#include <vector>

namespace fsdpq::rt {

/// A part of the text on its way to the model. Never empty.
struct TextPiece {
  std::string text;
  /// Whether it stands at the very start of the text given to encode(). The
  /// reference asks by offsets into the raw text: it differs where a normalizer
  /// removes or expands the text's first character.
  bool atStart;
};

class PreTokenizer {
public:
  virtual ~PreTokenizer();
  /// Replaces each piece by the pieces it splits into.
  virtual void apply(std::vector<TextPiece> &pieces) const = 0;
};

/// Reads "pre_tokenizer" of tokenizer.json: Sequence, Split, ByteLevel,
/// Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit. Others are
/// refused by name (Error 2002). null gives no pre-tokenizer.
std::unique_ptr<PreTokenizer> parsePreTokenizer(const JsonField &field);

} // namespace fsdpq::rt
