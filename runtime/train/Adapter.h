//===- Adapter.h - Adapters in PEFT's form ----------------------*- C++ -*-===//
//
// A folder with adapter_config.json (see AdapterConfig.h) and
// adapter_model.safetensors, whose tensors are named
//   base_model.model.<module>.lora_A.weight   [rank, in]
//   base_model.model.<module>.lora_B.weight   [out, rank]
// Some writers put ".default" in front of ".weight"; both are read, the first
// is written, in f32.
//
// Errors (exit code BadInput): 5012 a tensor is missing or has another shape,
// 5013 a tensor belongs to no adapter of the plan; those of Safetensors.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/exec/Executor.h"
#include "runtime/train/AdapterConfig.h"

#include <string>
#include <vector>

namespace fsdpq::rt {

/// The last parts of the names of the modules that the plan adapts ("q_proj"),
/// each once, in the plan's order.
std::vector<std::string> adaptedModules(const plan::Plan &plan);

/// Reads the adapter in `folder` into the plan's adapter parameters: all of
/// them, and every tensor of the file must find its place. All ranks read the
/// file, each what it holds.
void loadAdapter(Executor &executor, const std::string &folder);

/// Saves the plan's adapters in `folder`, which exists. Rank and targets come
/// from the plan, the rest from `config`. Both files are written in full before
/// the first takes its name: a failure leaves the adapter that stood there.
/// All ranks call this; rank 0 writes, and its failure reaches all (see
/// FirstRank.h).
void saveAdapter(const Executor &executor, AdapterConfig config,
                 const std::string &folder);

} // namespace fsdpq::rt
