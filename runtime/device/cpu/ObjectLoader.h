//===- ObjectLoader.h - Relocatable objects become code ---------*- C++ -*-===//
#pragma once

#include "runtime/device/Device.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace fsdpq::rt {

/// The entry of a CPU kernel (see Kernel in plan.fbs).
using KernelEntry = void (*)(void *const *args, int64_t begin, int64_t end);

/// An object in memory; its code goes with it.
class LoadedObject : public LoadedKernel {
public:
  explicit LoadedObject(KernelEntry entry) : entry(entry) {}

  const KernelEntry entry;
};

/// Links relocatable ELF objects into this process with LLVM's ORC. Each object
/// has a name space of its own, so entries may have equal names. What an object
/// does not define (expf, memcpy) it finds among the symbols that the process's
/// shared libraries export.
class ObjectLoader {
public:
  ObjectLoader();
  ~ObjectLoader();

  /// Throws Error 4003 when the object is broken, lacks its entry, or needs
  /// symbols that nothing defines (they are named).
  std::unique_ptr<LoadedObject> load(const KernelImage &image);

private:
  class Session;
  std::unique_ptr<Session> session;
};

/// The "+feature"s of `target` that the host's CPU is known to lack, joined by
/// spaces. Features that LLVM does not report for a host (tuning) are not
/// counted.
std::string missingHostFeatures(std::string_view target);

} // namespace fsdpq::rt
