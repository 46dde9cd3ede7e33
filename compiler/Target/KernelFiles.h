//===- KernelFiles.h - Kernels' texts in a folder ---------------*- C++ -*-===//
//
// What --dump_kernels writes and --override_kernels reads: one file a kernel,
// named for it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Support/LLVM.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace fsdpq {

/// The text of a kernel that may go into `folder`/`file`.
struct KernelFile {
  std::string file; ///< "rms_norm.1.cu"
  std::string text;
};

/// Writes the files into a folder, which is made if absent; others that are there
/// stay. Error FSDPQ-0527 if one cannot be written.
llvm::Error writeKernelFiles(StringRef folder, ArrayRef<KernelFile> files);

/// The texts of all files `<kernel><suffix>` of a folder, by kernel. Error
/// FSDPQ-0526 if the folder or a file cannot be read, if there is none of that
/// suffix, or if one is named for none of `kernels`, whose names are then listed.
llvm::Expected<llvm::StringMap<std::string>>
readKernelFiles(StringRef folder, StringRef suffix, ArrayRef<StringRef> kernels);

} // namespace fsdpq
