//===- Device.h - What executes a plan's instructions -----------*- C++ -*-===//
//
// The one interface between the executor and a machine. It knows memory,
// kernels and the plan's instructions; it knows no plan, no names, no loops.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan_generated.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace fsdpq::rt {

/// A byte of the device's memory. Only the device may dereference it.
using DeviceAddress = uint64_t;

/// The code of a kernel as it stands in a plan.
struct KernelImage {
  std::string_view name, symbol;
  plan::KernelForm form;
  const uint8_t *code;
  size_t codeBytes;
  const plan::LaunchShape *launch = nullptr; ///< of a cubin
};

/// A kernel that a device can launch. It must not outlive its device.
class LoadedKernel {
public:
  virtual ~LoadedKernel() = default;
};

/// An argument of a launch. Kernels receive addresses as they are and numbers
/// by their 8 bytes (see Kernel in plan.fbs).
struct LaunchArg {
  enum class Kind : uint32_t { Address, Integer, Real };
  Kind kind;
  union {
    DeviceAddress address;
    int64_t integer;
    double real;
  };

  static LaunchArg ofAddress(DeviceAddress value) {
    LaunchArg arg;
    arg.kind = Kind::Address;
    arg.address = value;
    return arg;
  }
  static LaunchArg ofInteger(int64_t value) {
    LaunchArg arg;
    arg.kind = Kind::Integer;
    arg.integer = value;
    return arg;
  }
  static LaunchArg ofReal(double value) {
    LaunchArg arg;
    arg.kind = Kind::Real;
    arg.real = value;
    return arg;
  }
};

/// C[m,n] = alpha * op(A)[m,k] * op(B)[k,n] + beta * C, row-major; pitches in
/// elements (see Gemm in plan.fbs). beta = 0 overwrites C without reading it.
struct GemmCall {
  plan::DType dtype;    ///< of A and B
  plan::DType outDtype; ///< of C
  bool transA, transB;
  int64_t m, n, k;
  float alpha, beta;
  DeviceAddress a, b, c;
  int64_t lda, ldb, ldc;
  /// Memory that a library may use while it computes; of this stream alone.
  DeviceAddress workspace;
  uint64_t workspaceBytes;
};

/// A device of one rank, used by one thread at a time.
///
/// `stream` is the number of a plan's stream. Work of one stream runs in the
/// order it was given; the call may return before the work is done. Work that
/// fails later than the call lets a later call throw, synchronize() at the
/// latest; what was given after it is dropped. Sizes and addresses are trusted:
/// a plan was checked when it was loaded. Throws Error 4001-4099.
class Device {
public:
  virtual ~Device() = default;

  /// Refuses a plan whose `target` (CPU or GPU, then "+feature"s, separated by
  /// spaces or commas) this machine cannot run: Error 4001.
  virtual void requireTarget(std::string_view target) const = 0;

  /// Makes streams [0, streams) and events [0, events). Called once, before any
  /// work is given.
  virtual void prepare(uint16_t streams, uint32_t events) = 0;

  /// `bytes` of zeros at a multiple of 256. `what` names them in Error 4002
  /// (DoesNotFit), thrown when there is not enough memory. Memory that is never
  /// touched need not exist.
  virtual DeviceAddress allocate(uint64_t bytes, std::string_view what) = 0;
  virtual void free(DeviceAddress address, uint64_t bytes) = 0;

  /// Between host and device, after all work given so far; done on return.
  virtual void upload(DeviceAddress to, const void *from, uint64_t bytes) = 0;
  virtual void download(void *to, DeviceAddress from, uint64_t bytes) = 0;

  /// Error 4003: code that cannot be loaded, naming unresolved symbols.
  virtual std::unique_ptr<LoadedKernel>
  loadKernel(const KernelImage &image) = 0;

  /// Executes items [0, grid) of the kernel, in any order and split; nothing if
  /// grid <= 0. `args` (at most maxLaunchArgs) are read before the return.
  virtual void launch(const LoadedKernel &kernel, const LaunchArg *args,
                      uint32_t argCount, int64_t grid, uint16_t stream) = 0;
  /// Nothing if m or n <= 0; k <= 0 scales C by beta. C overlaps neither A nor
  /// B. Error 4004: an element type this device has no GEMM for.
  virtual void gemm(const GemmCall &call, uint16_t stream) = 0;
  /// The ranges must not overlap. Nothing if bytes <= 0.
  virtual void copy(DeviceAddress to, DeviceAddress from, int64_t bytes,
                    uint16_t stream) = 0;
  virtual void fill(DeviceAddress to, uint8_t value, int64_t bytes,
                    uint16_t stream) = 0;

  /// Marks how far `stream` has come. See Record and Wait in plan.fbs.
  virtual void record(uint32_t event, uint16_t stream) = 0;
  /// Work given to `stream` from now on starts only after what the latest record
  /// of the event marked is done.
  virtual void wait(uint32_t event, uint16_t stream) = 0;
  /// Calls `task` on the host when the work given to the stream before is done;
  /// work given after it waits for its return. What it throws is the stream's
  /// failure. It must not use the device.
  virtual void hostCall(std::function<void()> task, uint16_t stream) = 0;

  /// Calls `use` with the time at which `stream` has done the work given to it
  /// before, in the order of the calls of one stream; at the latest in
  /// synchronize(). It must not use the device.
  using UseTime = std::function<void(std::chrono::steady_clock::time_point)>;
  virtual void stamp(UseTime use, uint16_t stream) {
    hostCall([use = std::move(use)] { use(std::chrono::steady_clock::now()); },
             stream);
  }

  /// Returns when all work given so far is done. A failure that no call has
  /// thrown yet is thrown at once, for work of other streams may never end unless
  /// somebody is told of it; one that is known, when nothing runs any more.
  virtual void synchronize() = 0;
};

} // namespace fsdpq::rt
