#include "runtime/data/Batcher.h"

#include "runtime/support/Error.h"
#include "runtime/support/SplitMix.h"

#include <numeric>
#include <string>
#include <utility>

namespace fsdpq::rt {
namespace {

class SplitMix64 {
public:
  explicit SplitMix64(uint64_t state) : state(state) {}

  uint64_t next() { return splitmix::mix(state += splitmix::gamma); }

  /// Uniform in [0, bound); Lemire, "Fast random integer generation in an
  /// interval", 2019.
  uint64_t below(uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    uint64_t biased = -bound % bound; // 2^64 mod bound
    for (;;) {
      Wide product = static_cast<Wide>(next()) * bound;
      if (static_cast<uint64_t>(product) >= biased)
        return static_cast<uint64_t>(product >> 64);
    }
  }

private:
  uint64_t state;
};

/// The product, or more than any data set has rows.
int64_t saturatingProduct(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int64_t rowsOfStep(int64_t batchSize, int64_t accumulation, int64_t worldSize) {
  return saturatingProduct(saturatingProduct(batchSize, accumulation),
                           worldSize);
}

void requirePositive(const char *name, int64_t value) {
  if (value < 1)
    throw Error(2103, ExitCode::BadInput,
                std::string("the ") + name + " must be at least 1, not " +
                    std::to_string(value));
}

} // namespace

Batcher::Batcher(int64_t rows, const BatcherOptions &options)
    : rows(rows), options(options) {
  requirePositive("batch size", options.batchSize);
  requirePositive("number of gradient accumulation steps",
                  options.accumulation);
  requirePositive("world size", options.worldSize);
  rowsPerStep =
      rowsOfStep(options.batchSize, options.accumulation, options.worldSize);
  steps = rows / rowsPerStep;
  if (steps == 0)
    throw Error(2104, ExitCode::BadInput,
                "the data set has " + std::to_string(rows) +
                    " rows, but one step needs " +
                    std::to_string(options.batchSize) + " (batch size) x " +
                    std::to_string(options.accumulation) +
                    " (accumulation) x " + std::to_string(options.worldSize) +
                    " (ranks)",
                "", "lower the batch size or the accumulation, or add records");
}

std::span<const int64_t> Batcher::rowsOf(int64_t step, int64_t microStep,
                                         int64_t rank) {
  int64_t epoch = step / steps;
  if (epoch != orderedEpoch) {
    if (options.shuffle) {
      order = shuffledOrder(rows, options.seed, epoch);
    } else if (order.empty()) {
      order.resize(rows);
      std::iota(order.begin(), order.end(), int64_t(0));
    }
    orderedEpoch = epoch;
  }
  int64_t first = step % steps * rowsPerStep +
                  (microStep * options.worldSize + rank) * options.batchSize;
  return std::span<const int64_t>(order).subspan(first, options.batchSize);
}

int64_t stepsPerEpoch(int64_t rows, int64_t batchSize, int64_t accumulation,
                      int64_t worldSize) {
  return rows / rowsOfStep(batchSize, accumulation, worldSize);
}

std::vector<int64_t> shuffledOrder(int64_t rows, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), int64_t(0));
  SplitMix64 start(seed +
                   (static_cast<uint64_t>(epoch) + 1) * splitmix::gamma);
  SplitMix64 generator(start.next());
  for (int64_t last = rows - 1; last > 0; --last)
    std::swap(order[last],
              order[generator.below(static_cast<uint64_t>(last) + 1)]);
  return order;
}

} // namespace fsdpq::rt
