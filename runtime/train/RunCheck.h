//===- RunCheck.h - Whether ranks mean the same run -------------*- C++ -*-===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/data/Dataset.h"
#include "runtime/io/TensorSource.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdpq::rt {

/// A hash of all ids and labels and of where rows end.
uint64_t fingerprintRows(const std::vector<Row> &rows);

/// A hash of the names, types and shapes of all tensors, and of a sample of each
/// one's values: what a rank can read without loading the model.
uint64_t fingerprintTensors(const TensorSource &source);

/// What must be equal on all ranks of a run.
struct RunIdentity {
  std::string planHash; ///< see LoadedPlan
  /// The options that results depend on, one a line.
  std::string options;
  uint64_t data = 0;    ///< see fingerprintRows; 0 for runs without data
  uint64_t weights = 0; ///< see fingerprintTensors; 0 for runs without a model
};

/// All ranks call this before the first step. Error 7020 (BadInput), thrown on
/// every rank, names the first rank that differs from rank 0, and in what: the
/// plan, a line of the options, the data, or the weights.
void checkRanksAgree(Communicator &communicator, const RunIdentity &mine);

} // namespace fsdpq::rt
