//===- FullModel.h - A trained model as a Hugging Face folder ---*- C++ -*-===//
#pragma once

#include "runtime/exec/Executor.h"

#include <nlohmann/json.hpp>

#include <string>

namespace fsdpq::rt {

/// Saves all parameters of a plan that stores them as f32 (train type full) in
/// `folder`, which exists: model.safetensors under Hugging Face's names,
/// config.json with the stored type set to float32, and the tokenizer's files
/// of `modelFolder` as they are. Every file appears whole or not at all.
/// All ranks call this; rank 0 writes, and its failure reaches all (see
/// FirstRank.h). Error 5003: the plan stores a parameter otherwise, or does not
/// name it.
void saveFullModel(const Executor &executor, const nlohmann::json &config,
                   const std::string &modelFolder, const std::string &folder);

} // namespace fsdpq::rt
