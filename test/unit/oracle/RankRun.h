//===- RankRun.h - A training run on several ranks --------------*- C++ -*-===//
//
// llama_gqa, trained for some optimizer steps on random rows by ranks that are
// threads of this process.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/train/Trainer.h"
#include "test/unit/oracle/OracleModel.h"

namespace fsdpq::test {

enum class TrainType { Full, Lora, Qlora };

struct RankRun {
  TrainType type = TrainType::Qlora;
  int64_t ranks = 1;
  int64_t shards = 0; ///< 0: as many as ranks
  bool keepGathered = false, splitUnits = false, checkpointing = false;
  bool deterministic = true, reduceEachMicroStep = true;
  double dropout = 0;
  rt::LossAverage average = rt::LossAverage::Batch;
  int64_t microBatches = 24; ///< of an optimizer step, over all ranks
  int64_t steps = 2;
  rt::StreamDelays delays;
};

CompileOptions compileOptions(const RankRun &run);

struct RankResult {
  std::vector<double> losses, norms;
  TensorMap parameters; ///< the trained ones at the end
  /// Bytes that collectives brought to a rank while it trained.
  uint64_t receivedBytes = 0;

  bool operator==(const RankResult &) const = default;
};

/// What all ranks agree on; a failure of one ends the test by an exception.
RankResult train(const RankRun &run);

} // namespace fsdpq::test
