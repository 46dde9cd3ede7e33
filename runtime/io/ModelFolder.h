//===- ModelFolder.h - Finding and opening a model's files ------*- C++ -*-===//
//
// Errors (exit code BadInput): 1211 no such file or folder, 1212 not in the
// Hugging Face cache, 1213 a folder without config.json or weights, 1214
// weights in a form that cannot be read; those of the formats themselves see
// Safetensors.h, Gguf.h and Json.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/io/TensorSource.h"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace fsdpq::rt {

/// A model on disk: its configuration and its weights.
struct ModelFiles {
  /// Hugging Face's config.json, an object; null for a GGUF file.
  nlohmann::json config;
  bool isGguf = false;
  std::unique_ptr<TensorSource> tensors;
  /// GgufFile::metadata(); null for a folder.
  nlohmann::json ggufMetadata;
  /// The folder or the GGUF file: where to look for the tokenizer's files.
  std::string path;
};

/// Opens what `nameOrPath` means, in this order: a folder with config.json and
/// safetensors; a GGUF file; a model "org/name" in the Hugging Face cache at
/// `revision` (a branch, tag or commit; "" is "main"). The revision does not
/// matter to a path. Nothing is downloaded: if the model is not in the cache,
/// the error names the command that puts it there.
ModelFiles openModel(const std::string &nameOrPath,
                     const std::string &revision = "");

} // namespace fsdpq::rt
