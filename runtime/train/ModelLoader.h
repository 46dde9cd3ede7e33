//===- ModelLoader.h - A checkpoint's weights into a plan -------*- C++ -*-===//
//
// Errors (exit code BadInput): 5001 a tensor is missing, 5002 it has another
// shape, 5003 the model's description does not name it; those of TensorSource.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/exec/Executor.h"
#include "runtime/io/TensorSource.h"

#include <cstdint>
#include <functional>

namespace fsdpq::rt {

/// Loads every parameter that comes from the model's checkpoint: its tensor,
/// found under the parameter's Hugging Face or GGUF name, goes as f32 and in
/// Hugging Face's row order into the staging slice, from where the parameter's
/// load function stores it. The source's pages are given back after each
/// tensor, so host memory holds no second copy of the model.
///
/// All names and shapes are compared before the first byte is read.
/// `progress`, if given, is told the tensors done and their total.
void loadModel(Executor &executor, const TensorSource &source, bool isGguf,
               const std::function<void(int64_t, int64_t)> &progress = {});

} // namespace fsdpq::rt
