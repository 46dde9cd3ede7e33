#include "runtime/data/MicroBatch.h"

#include "runtime/support/Error.h"

#include <algorithm>
#include <limits>

namespace fsdpq::rt {
namespace {

int64_t roundUp(int64_t count) {
  return (count + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
}

int64_t lengthOf(const Row &row, int64_t contextLength) {
  return std::min(static_cast<int64_t>(row.ids.size()), contextLength);
}

/// Whether the successor of token `t` of the row's `length` first is learnt.
bool isLabelled(const Row &row, int64_t t, int64_t length) {
  return t + 1 < length && row.labels[t + 1] != kIgnoredLabel;
}

class Packer {
public:
  explicit Packer(int64_t contextLength) : contextLength(contextLength) {}

  void append(const Row &row) {
    int64_t length = lengthOf(row, contextLength);
    int64_t start = batch.tokens;
    if (length > std::numeric_limits<int32_t>::max() - kRowMultiple - start)
      throw Error(2103, ExitCode::BadInput,
                  "a micro-batch holds more than 2^31 tokens", "",
                  "lower the batch size or the context length");
    for (int64_t t = 0; t < length; ++t) {
      batch.ids.push_back(row.ids[t]);
      batch.positions.push_back(static_cast<int32_t>(t));
      batch.segmentStart.push_back(static_cast<int32_t>(start));
      bool labelled = isLabelled(row, t, length);
      batch.labelIndex.push_back(
          labelled ? static_cast<int32_t>(batch.labelRows.size()) : -1);
      if (labelled) {
        batch.labelRows.push_back(static_cast<int32_t>(start + t));
        batch.labelTargets.push_back(row.labels[t + 1]);
      }
    }
    batch.tokens += length;
  }

  MicroBatch finish() {
    batch.labelled = static_cast<int64_t>(batch.labelRows.size());
    batch.paddedTokens = std::max(roundUp(batch.tokens), kRowMultiple);
    batch.paddedLabelled = roundUp(batch.labelled);
    batch.ids.resize(batch.paddedTokens, 0);
    batch.positions.resize(batch.paddedTokens, 0);
    batch.labelIndex.resize(batch.paddedTokens, -1);
    for (int64_t t = batch.tokens; t < batch.paddedTokens; ++t)
      batch.segmentStart.push_back(static_cast<int32_t>(t));
    batch.labelRows.resize(batch.paddedLabelled, 0);
    batch.labelTargets.resize(batch.paddedLabelled, -1);
    return std::move(batch);
  }

private:
  int64_t contextLength;
  MicroBatch batch;
};

} // namespace

MicroBatch packRows(std::span<const Row> rows, int64_t contextLength) {
  Packer packer(contextLength);
  for (const Row &row : rows)
    packer.append(row);
  return packer.finish();
}

MicroBatch packRows(const std::vector<Row> &rows,
                    std::span<const int64_t> chosen, int64_t contextLength) {
  Packer packer(contextLength);
  for (int64_t index : chosen)
    packer.append(rows[index]);
  return packer.finish();
}

int64_t countLabelled(const std::vector<Row> &rows,
                      std::span<const int64_t> chosen, int64_t contextLength) {
  int64_t count = 0;
  for (int64_t index : chosen) {
    const int64_t length = lengthOf(rows[index], contextLength);
    for (int64_t t = 0; t + 1 < length; ++t)
      count += isLabelled(rows[index], t, length);
  }
  return count;
}

} // namespace fsdpq::rt
