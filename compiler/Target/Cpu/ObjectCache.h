//===- ObjectCache.h - Content-addressed object files -----------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsdpq::cpu {

/// A folder with one file `<hash>.o` for each object: the object, followed by
/// its SHA-256. Processes may share the folder. A file that is cut short or
/// changed is as good as absent.
class ObjectCache {
public:
  /// No cache if `folder` is empty.
  explicit ObjectCache(StringRef folder) : folder(folder) {}

  std::optional<std::vector<uint8_t>> lookUp(StringRef hash) const;
  void insert(StringRef hash, ArrayRef<uint8_t> object) const;

private:
  std::string getPath(StringRef hash) const;

  std::string folder;
};

} // namespace fsdpq::cpu
