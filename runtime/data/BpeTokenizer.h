//===- BpeTokenizer.h - The pipeline of tokenizer.json ----------*- C++ -*-===//
#pragma once

#include "runtime/data/AddedTokens.h"
#include "runtime/data/BpeModel.h"
#include "runtime/data/Normalizer.h"
#include "runtime/data/PostProcessor.h"
#include "runtime/data/PreTokenizer.h"
#include "runtime/data/TokenDecoder.h"
#include "runtime/data/Tokenizer.h"

namespace fsdpq::rt {

/// added tokens -> normalizer -> pre-tokenizer -> BPE -> post-processor, and
/// the decoder for the way back.
class BpeTokenizer : public Tokenizer {
public:
  /// `root` is a whole document in the form of tokenizer.json.
  explicit BpeTokenizer(const JsonField &root);

  std::vector<int32_t> encode(std::string_view utf8,
                              bool addSpecialTokens) const override;
  std::string decode(const std::vector<int32_t> &ids,
                     bool skipSpecialTokens) const override;
  int32_t vocabularySize() const override;
  std::optional<int32_t> tokenId(std::string_view token) const override;
  std::optional<int32_t> bosId() const override { return bos; }
  std::optional<int32_t> eosId() const override { return eos; }

  void setBosId(std::optional<int32_t> id) { bos = id; }
  void setEosId(std::optional<int32_t> id) { eos = id; }

private:
  void readAddedTokens(const JsonField &field);
  void encodeText(TextPiece piece, std::vector<int32_t> &ids) const;

  BpeModel model;
  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<PreTokenizer> preTokenizer;
  PostProcessor postProcessor;
  std::unique_ptr<TokenDecoder> decoder;
  AddedTokens addedTokens;
  std::optional<int32_t> bos, eos;
};

} // namespace fsdpq::rt
