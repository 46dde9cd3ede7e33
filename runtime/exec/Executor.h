//===- Executor.h - Runs a plan on a device ---------------------*- C++ -*-===//
//
// Construction prepares: it allocates the arenas (zeros), loads the kernels and
// flattens the functions. After that the caller sets scalars, writes inputs and
// runs functions. The executor knows the plan's opcodes only; what a function
// means is the plan's.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/device/DeviceBuffer.h"
#include "runtime/exec/Program.h"
#include "runtime/observe/Trace.h"
#include "runtime/plan/PlanFile.h"

#include <concepts>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

/// Numbers of things in the plan, looked up once by name.
enum class FunctionId : uint32_t {};
enum class ScalarId : uint32_t {};
enum class InputId : uint32_t {};
enum class OutputId : uint32_t {};

/// One rank's plan at work. Used by one thread at a time.
/// Errors: 4101 a name the plan lacks, 4102 a scalar out of range or of the
/// other kind, 4103 bytes that do not fit a port or slice, 4104 an index out of
/// range, 4105 a plan for another number of ranks, and what the device and the
/// ranks' channels throw: then the other ranks are told, for collectives will be
/// missing.
class Executor {
public:
  /// `device` and `communicator` must outlive the executor. All ranks make
  /// theirs at the same time: channels are opened for the collectives that the
  /// plan has.
  Executor(std::shared_ptr<const LoadedPlan> plan, Device &device,
           Communicator &communicator);
  /// Waits for what is under way.
  ~Executor();

  const LoadedPlan &plan() const { return *loaded; }
  Device &device() const { return device_; }
  /// Bytes that the plan's collectives have brought from other ranks; of those
  /// that are done.
  uint64_t receivedBytes() const;
  Communicator &communicator() const { return communicator_; }

  FunctionId function(std::string_view name) const;
  ScalarId scalar(std::string_view name) const;
  InputId input(std::string_view name) const;
  OutputId output(std::string_view name) const;

  /// Scalars keep their values from run to run; they are 0 at first. An I64
  /// must be in [0, max].
  template <std::integral Integer>
  requires(std::signed_integral<Integer> ||
           sizeof(Integer) < sizeof(int64_t)) void setScalar(ScalarId id,
                                                             Integer value) {
    setInteger(id, value);
  }
  void setScalar(ScalarId id, double value);

  /// Whole elements, at most as many as the port holds at capacity.
  void writeInput(InputId id, const void *data, size_t bytes);
  void readOutput(OutputId id, void *data, size_t bytes) const;

  /// Bytes [offset, offset + bytes) of slice number `slice` at `index` of its
  /// level (0 if it has no index). For loading, checkpoints and inspection.
  void writeSlice(uint32_t slice, int64_t index, const void *data, size_t bytes,
                  size_t offset = 0);
  void readSlice(uint32_t slice, int64_t index, void *data, size_t bytes,
                 size_t offset = 0) const;

  /// Gives the function's instructions to the device. `index` is its argument
  /// (0 for functions without one).
  void run(FunctionId function, int64_t index = 0);

  /// Gives every instruction's time on its stream to the trace; null (at first):
  /// none, at no cost. A trace serves one executor at a time and must outlive
  /// its work. Waits for what is under way.
  void setTrace(Trace *newTrace);
  Trace *trace() const { return trace_; }

private:
  void setInteger(ScalarId id, int64_t value);
  const plan::Scalar &scalarOf(ScalarId id, plan::ScalarKind kind) const;
  DeviceAddress sliceRange(uint32_t slice, int64_t index, size_t bytes,
                           size_t offset) const;
  DeviceAddress portRange(const plan::Port &port, size_t bytes) const;

  template <typename Work>
  void tellingOthers(const Work &work) const;
  template <bool Traced>
  void runSteps(uint32_t begin, uint32_t end, uint32_t depth);
  void traceBegin(Program::Step step);
  void traceEnd(Program::Step step, uint32_t label);
  void runLaunch(const LaunchOp &op, uint16_t stream);
  void runGemm(const GemmOp &op, uint16_t stream);
  Channel *openChannel(plan::Group group, uint16_t stream);

  std::shared_ptr<const LoadedPlan> loaded;
  Device &device_;
  Communicator &communicator_;
  std::map<std::pair<plan::Group, uint16_t>, std::unique_ptr<Channel>> channels;
  std::vector<DeviceBuffer> arenas;
  std::vector<std::unique_ptr<LoadedKernel>> kernels;
  std::vector<ScalarCell> scalars;
  std::vector<ResolvedSlice> slices;
  Program program;
  std::vector<int64_t> indices;
  Trace *trace_ = nullptr;
  std::vector<uint32_t> stepLabels; ///< in the trace, of the program's steps
};

} // namespace fsdpq::rt
