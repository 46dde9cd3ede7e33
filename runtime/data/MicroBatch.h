//===- MicroBatch.h - What one micro-step reads -----------------*- C++ -*-===//
//
// Activations are [T, D]: the tokens of all rows end to end, without padding
// between rows. T and the number of labelled tokens are rounded up, so that
// kernels see a multiple of a tile; the tail is inert.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/data/Dataset.h"

#include <cstdint>
#include <span>
#include <vector>

namespace fsdpq::rt {

constexpr int64_t kRowMultiple = 128;

struct MicroBatch {
  /// T before and after rounding up to a multiple of kRowMultiple; the second
  /// is at least kRowMultiple.
  int64_t tokens = 0, paddedTokens = 0;
  /// Tokens whose successor is learnt, before and after rounding; both are 0
  /// when there are none.
  int64_t labelled = 0, paddedLabelled = 0;

  /// [paddedTokens]. Tail: id 0, position 0, its own index.
  std::vector<int32_t> ids;
  std::vector<int32_t> positions;    // from 0 in each row
  std::vector<int32_t> segmentStart; // index of the first token of the row

  /// [paddedLabelled]. The logits at token labelRows[i] predict the id
  /// labelTargets[i]; labelRows ascends. Tail: token 0, target -1.
  std::vector<int32_t> labelRows;
  std::vector<int32_t> labelTargets;

  /// [paddedTokens]. The inverse of labelRows: i with labelRows[i] == t among
  /// the `labelled` first, or -1.
  std::vector<int32_t> labelIndex;
};

/// Rows are cut to `contextLength` (at least 1) tokens. Tokens behind the last
/// label stay: the reference computes them too. Throws Error 2103 when the
/// tokens cannot be counted in 32 bits.
MicroBatch packRows(std::span<const Row> rows, int64_t contextLength);

/// The same for rows chosen by index.
MicroBatch packRows(const std::vector<Row> &rows,
                    std::span<const int64_t> chosen, int64_t contextLength);

/// MicroBatch::labelled of packRows with the same arguments, without packing.
int64_t countLabelled(const std::vector<Row> &rows,
                      std::span<const int64_t> chosen, int64_t contextLength);

} // namespace fsdpq::rt
