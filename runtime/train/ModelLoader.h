//===- ModelLoader.h - A checkpoint's weights into a plan -------*- C++ -*-===//
//
// Errors (exit code BadInput): 5001 a tensor is missing, 5002 it has another
// shape, 5003 the model's description does not name it, 5004 a bias has no
// place in it; those of TensorSource.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/exec/Executor.h"
#include "runtime/io/TensorSource.h"

#include <cstdint>
#include <functional>

namespace fsdpq::rt {

struct LoadReport {
  int64_t tensors = 0;      ///< that the ranks loaded together
  int64_t elementsRead = 0; ///< by this rank
};

/// Loads every parameter that comes from the model's checkpoint, unit by unit
/// (see Unit and Loader in plan.fbs): its tensor, found under the parameter's
/// Hugging Face or GGUF name, is staged as f32 and in Hugging Face's row order.
/// The source's pages are given back after each tensor, so host memory holds no
/// second copy of the model.
///
/// All ranks call this. Piece p of the plan's parameter number i is staged by
/// rank (i + p) % ranks alone, so the ranks together read each element once.
/// All names and shapes are compared before the first byte is read.
/// `progress`, if given, is told the tensors done and their total.
LoadReport
loadModel(Executor &executor, const TensorSource &source, bool isGguf,
          const std::function<void(int64_t, int64_t)> &progress = {});

} // namespace fsdpq::rt
