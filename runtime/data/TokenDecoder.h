//===- TokenDecoder.h - Tokens back to text ---------------------*- C++ -*-===//
#pragma once

#include "runtime/data/JsonField.h"

#include <memory>
#include <string>
#include <vector>

namespace fsdpq::rt {

/// One step from a list of tokens to the text; the text is what the last step
/// leaves, joined.
class TokenDecoder {
public:
  virtual ~TokenDecoder();
  virtual void apply(std::vector<std::string> &tokens) const = 0;
};

/// Reads "decoder" of tokenizer.json: Sequence, Replace, ByteFallback, Fuse,
/// Strip, ByteLevel, Metaspace, BPEDecoder. Others are refused by name (Error
/// 2002). null gives no decoder.
std::unique_ptr<TokenDecoder> parseTokenDecoder(const JsonField &field);

} // namespace fsdpq::rt
