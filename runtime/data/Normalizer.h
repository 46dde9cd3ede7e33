//===- Normalizer.h - Rewrites a text before it is split --------*- C++ -*-===//
#pragma once

#include "runtime/data/JsonField.h"

#include <memory>
#include <string>

namespace fsdpq::rt {

class Normalizer {
public:
  virtual ~Normalizer();
  /// `text` is well-formed UTF-8, before and after.
  virtual void apply(std::string &text) const = 0;
};

/// Reads "normalizer" of tokenizer.json: Sequence, NFC, NFD, NFKC, NFKD,
/// Lowercase, Strip, StripAccents, Replace, Prepend, ByteLevel. Others are
/// refused by name (Error 2002). null gives no normalizer.
std::unique_ptr<Normalizer> parseNormalizer(const JsonField &field);

} // namespace fsdpq::rt
