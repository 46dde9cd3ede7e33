//===- CodeCache.h - Content-addressed compiled kernels ---------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsdpq {

/// A folder with one file `<hash><suffix>` for each code: the code, followed by
/// its SHA-256. Threads and processes may share the folder: files are written
/// aside and renamed. A file that is cut short or changed is as good as absent.
class CodeCache {
public:
  /// `suffix` tells targets apart that share a folder (".o"). No cache if
  /// `folder` is empty; else it is made (mode 0700) when it is written to.
  CodeCache(StringRef folder, StringRef suffix)
      : folder(folder), suffix(suffix) {}

  std::optional<std::vector<uint8_t>> lookUp(StringRef hash) const;
  void insert(StringRef hash, ArrayRef<uint8_t> code) const;

private:
  std::string getPath(StringRef hash) const;

  std::string folder, suffix;
};

} // namespace fsdpq
