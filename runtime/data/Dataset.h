//===- Dataset.h - Rows to fine-tune on -------------------------*- C++ -*-===//
//
// Errors (exit code BadInput):
//   2101  the file is not one of records
//   2102  the form of a record is unknown, or not that of the first one
//   2103  a value has the wrong type, length or range
//   2104  too few records
//   2105  the tokenizer lacks what the form needs
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/data/Tokenizer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

/// The label of a token that is not learnt.
constexpr int32_t kIgnoredLabel = -100;

struct Row {
  std::vector<int32_t> ids;
  /// One for each id: the id itself where it is to be learnt, else
  /// kIgnoredLabel. The logits at t predict labels[t + 1].
  std::vector<int32_t> labels;
};

enum class DataFormat {
  /// {"instruction", "input" (may be missing or ""), "output"}: strings.
  Alpaca,
  /// {"input_ids", "labels" (missing: all are learnt)}: integers.
  Pretokenised,
};

struct DatasetOptions {
  /// Rows are cut to this many tokens, at the end.
  int64_t contextLength = 512;
  /// Pre-tokenised ids must be below; 0: the tokenizer's size, or no bound.
  int64_t vocabularySize = 0;
  /// Unset: detected from the keys of the first record.
  std::optional<DataFormat> format;
};

struct Dataset {
  std::vector<Row> rows; // in the order of the file, never empty
  DataFormat format;
  std::string description; // "alpaca, 200 records"
  int64_t truncatedRows = 0;
  /// Rows (kept) of which no token is learnt, be it after truncation. The first
  /// token does not count, for nothing predicts it.
  int64_t rowsWithoutLabels = 0;
};

/// The text that a model trained on Alpaca records continues with the answer.
std::string alpacaPrompt(std::string_view instruction, std::string_view input);

/// Reads a data file (see JsonRecords.h). An Alpaca record becomes prompt +
/// output + EOS, encoded as one text; as many tokens as the prompt alone has
/// are masked. Keys that the form does not know are passed over, but an
/// attention_mask must be all ones. `tokenizer` may be null for pre-tokenised
/// records.
Dataset loadDataset(const std::string &path, const Tokenizer *tokenizer,
                    const DatasetOptions &options);

} // namespace fsdpq::rt
