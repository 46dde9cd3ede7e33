//===- Evaluator.h - The loss of a data set ---------------------*- C++ -*-===//
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/exec/Executor.h"
#include "runtime/observe/Metrics.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace fsdpq::rt {

/// The mean loss over all labelled tokens of all rows (each token weighs the
/// same, whatever micro-batch it is in), its exponential and the number of
/// those tokens. The rows are taken in order, `batchSize` at a time, by the
/// plan's eval_step; the last micro-batch may be smaller. `progress`, if given,
/// is told the rows done.
///
/// All ranks call this with the same rows; micro-batches are dealt round robin,
/// and every rank gets the same result, which does not depend on their number.
///
/// Errors, thrown on all ranks: 5022 (BadInput) no token is labelled; 5020
/// (NonFiniteLoss).
EvaluationRecord
evaluate(Executor &executor, const std::vector<Row> &rows, int64_t batchSize,
         int64_t contextLength,
         const std::function<void(int64_t)> &progress = {});

} // namespace fsdpq::rt
