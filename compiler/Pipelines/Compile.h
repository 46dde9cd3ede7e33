//===- Compile.h - From a model's description to a plan ---------*- C++ -*-===//
//
// The compiler as fsdpq-run sees it: no MLIR in this header.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fsdpq {

/// What to compile. Names and ranges are those of fsdpq-run's options.
struct CompileOptions {
  std::string models;     ///< an architecture's .mlir file, or a folder of them
  std::string configText; ///< config.json, or GGUF metadata as JSON with `tensors`
  bool gguf = false;
  int64_t tokens = 512; ///< capacity of a micro-batch; a multiple of 128
  /// Tokens of one of its rows at most, for estimates; 0: all are one row.
  int64_t rowTokens = 0;

  /// Of micro_step, eval_step, logits; micro_step brings optimizer_step.
  std::vector<std::string> programs;

  bool trainAll = false; ///< train type full: every parameter, no adapters
  int64_t loraRank = 0;  ///< 0: no adapters
  double loraScale = 1;
  double loraDropout = 0; ///< of the adapters' inputs, in training
  std::vector<std::string> loraTargets;
  std::string quantScheme; ///< a qt type, or empty
  /// Of activations and frozen weights: f32 or bf16, which is summed in f32.
  std::string precision = "f32";
  bool checkpointing = false;
  std::string optimizer = "adamw";
  std::map<std::string, double> optimizerOptions;

  int64_t ranks = 1;  ///< processes of the run
  int64_t shards = 1; ///< ranges that weights are cut into; divides `ranks`
  /// Weights that the forward pass gathered stay whole for the backward pass.
  bool keepGathered = false;
  /// Attention and MLP of a layer are gathered apart.
  bool splitUnits = false;
  /// Results do not depend on the number of ranks.
  bool deterministic = false;
  /// Gradients are reduced in each micro-step and not once an optimizer step.
  bool reduceEachMicroStep = true;
  /// Bytes to spend on keeping gathered weights of some layers so.
  int64_t keepBudget = 0;
  /// Bytes a rank may use: what its plan leaves of them becomes keepBudget. 0: no
  /// limit, and nothing is kept.
  int64_t memoryBudget = 0;

  /// "cpu", which is this machine's, or a GPU architecture ("sm_90a").
  std::string target = "cpu";
  bool planOnly = false;  ///< kernels' code is left out of the plan (for `plan`)
  std::string compileTo;  ///< stop after this phase and give its IR; empty: all
  std::string dumpIr;     ///< folder for the IR after each phase; empty: none
  std::string kernelCache; ///< folder of compiled kernels; empty: none
  std::string dumpKernels; ///< folder for the kernels' texts; empty: none
  std::string overrideKernels; ///< folder of CUDA texts to use; empty: none
  unsigned threads = 0;    ///< 0: one a core
};

struct CompileResult {
  bool succeeded = false;
  std::vector<uint8_t> plan;  ///< a plan file's bytes, when compiled to the end
  std::string ir;             ///< with `compileTo`: the IR after that phase
  std::string diagnostics;    ///< errors (and warnings), one a line
  unsigned kernels = 0, kernelsFromCache = 0;
  double seconds = 0;
};

/// Compiles; every failure is in `diagnostics`.
CompileResult compileModel(const CompileOptions &options);

/// The phases in order: model, grad, shard, fuse, kernel, exec.
const std::vector<std::string> &compilePhases();

} // namespace fsdpq
