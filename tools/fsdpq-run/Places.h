//===- Places.h - Folders that fsdpq-run knows ------------------*- C++ -*-===//
#pragma once

#include <string>

namespace fsdpq::run {

/// Architectures: `given` (--models) if not "", else $FSDPQ_MODELS, else the
/// folder that holds .mlir files beside the program's folder: ../models,
/// ../../models (a build tree) or ../share/fsdpq/models. "" if there is none.
std::string modelsPlace(const std::string &given);

/// Compiled kernels: $FSDPQ_CACHE, else ~/.cache/fsdpq/kernels; "" without a
/// home.
std::string kernelCacheFolder();

/// Error 6029 (BadInput) unless the file that `option` names can be read.
void requireFile(const std::string &path, const std::string &option);

/// Error 6029 (BadInput) if a file cannot be made there.
void requireFolderOf(const std::string &path, const std::string &option);

} // namespace fsdpq::run
