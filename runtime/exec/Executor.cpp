#include "runtime/exec/Executor.h"
#include "runtime/exec/InstructionLabels.h"
#include "runtime/plan/Elements.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/support/Error.h"

#include <algorithm>

namespace fsdpq::rt {

//===--- Prepare ------------------------------------------------------------//

Executor::Executor(std::shared_ptr<const LoadedPlan> source, Device &device,
                   Communicator &communicator)
    : loaded(std::move(source)), device_(device), communicator_(communicator),
      indices(maxLoopDepth + 1) {
  const plan::Plan &plan = loaded->plan();
  if (plan.mesh()->ranks() != communicator.size())
    throw Error(4105, ExitCode::BadInput,
                "the plan was made for " + std::to_string(plan.mesh()->ranks()) +
                    " ranks; the run has " + std::to_string(communicator.size()),
                "", "make the plan for so many, or start as many as it needs");
  device.requireTarget(plan.target()->string_view());
  device.prepare(static_cast<uint16_t>(plan.streams()->size()), plan.events());

  arenas.reserve(plan.arenas()->size());
  for (const plan::Arena *arena : *plan.arenas())
    arenas.emplace_back(device, arena->bytes(),
                        "arena " + arena->name()->str());

  for (const plan::Kernel *kernel : *plan.kernels()) {
    // Plans made to be looked at (`fsdpq-run plan`) hold no code.
    if (!kernel->code() || kernel->code()->size() == 0)
      throw Error(4020, ExitCode::BadInput,
                  "the plan holds no code for kernel '" + kernel->name()->str() +
                      "'",
                  "", "compile the plan for running: `fsdpq-run plan` leaves "
                      "kernels out");
    kernels.push_back(device.loadKernel(
        {kernel->name()->string_view(), kernel->symbol()->string_view(),
         kernel->form(), kernel->code()->data(), kernel->code()->size(),
         kernel->launch()}));
  }

  for (const plan::Scalar *scalar : *plan.scalars()) {
    ScalarCell cell;
    if (scalar->kind() == plan::ScalarKind::I64)
      cell.integer = 0;
    else
      cell.real = 0;
    scalars.push_back(cell);
  }

  for (const plan::Slice *slice : *plan.slices())
    slices.push_back(resolve(*slice, arenas[slice->arena()].address()));

  Resolution resolution{slices, {}, scalars.data(),
                        [this](plan::Group group, uint16_t stream) {
                          return openChannel(group, stream);
                        }};
  for (const auto &kernel : kernels)
    resolution.kernels.push_back(kernel.get());
  program = flatten(plan, resolution);
}

Executor::~Executor() {
  // Whoever used the executor has seen what failed, or does not look any more.
  // Once others are told, what still runs ends, and the second call returns.
  for (int attempt = 0; attempt < 2; ++attempt)
    try {
      tellingOthers([&] { device_.synchronize(); });
      return;
    } catch (...) {
    }
}

/// The channel of a group on a stream, opened at its first use in the plan's
/// order, which is the same on all ranks.
Channel *Executor::openChannel(plan::Group group, uint16_t stream) {
  auto &channel = channels[{group, stream}];
  if (!channel) {
    const plan::Mesh &mesh = *loaded->plan().mesh();
    channel = communicator_.openChannel(
        groupMembers(group, mesh.ranks(), mesh.shards(), communicator_.rank()),
        device_, stream,
        loaded->plan().streams()->Get(stream)->str() + " (" +
            groupName(group) + ")");
  }
  return channel.get();
}

uint64_t Executor::receivedBytes() const {
  uint64_t bytes = 0;
  for (const auto &[key, channel] : channels)
    bytes += channel->receivedBytes();
  return bytes;
}

//===--- Names --------------------------------------------------------------//

/// The number behind `found`, or an Error that says what is missing.
static uint32_t require(std::optional<uint32_t> found, const char *kind,
                        std::string_view name) {
  if (!found)
    throw Error(4101, ExitCode::BadInput,
                std::string("the plan has no ") + kind + " '" +
                    std::string(name) + "'",
                "", "make the plan for this command");
  return *found;
}

FunctionId Executor::function(std::string_view name) const {
  return FunctionId(require(loaded->findFunction(name), "function", name));
}

ScalarId Executor::scalar(std::string_view name) const {
  return ScalarId(require(loaded->findScalar(name), "scalar", name));
}

InputId Executor::input(std::string_view name) const {
  return InputId(require(loaded->findInput(name), "input", name));
}

OutputId Executor::output(std::string_view name) const {
  return OutputId(require(loaded->findOutput(name), "output", name));
}

//===--- Failures -----------------------------------------------------------//

/// Does `work`. If it fails, the other ranks learn why before this one unwinds:
/// they may be waiting for it in a collective.
template <typename Work>
void Executor::tellingOthers(const Work &work) const {
  try {
    work();
  } catch (const std::exception &error) {
    const std::string cause = error.what();
    communicator_.abort(cause.substr(0, cause.find('\n')));
    throw;
  }
}

//===--- Host data ----------------------------------------------------------//

const plan::Scalar &Executor::scalarOf(ScalarId id,
                                       plan::ScalarKind kind) const {
  const plan::Scalar &scalar =
      *loaded->plan().scalars()->Get(static_cast<uint32_t>(id));
  if (scalar.kind() != kind)
    throw Error(4102, ExitCode::RunFailure,
                "scalar '" + scalar.name()->str() + "' is " +
                    plan::EnumNameScalarKind(scalar.kind()) + ", not " +
                    plan::EnumNameScalarKind(kind));
  return scalar;
}

void Executor::setInteger(ScalarId id, int64_t value) {
  const plan::Scalar &scalar = scalarOf(id, plan::ScalarKind::I64);
  if (value < 0 || value > scalar.max())
    throw Error(4102, ExitCode::BadInput,
                "scalar '" + scalar.name()->str() + "' cannot be " +
                    std::to_string(value) + ": the plan allows 0 to " +
                    std::to_string(scalar.max()),
                "", "make the plan for longer batches");
  scalars[static_cast<uint32_t>(id)].integer = value;
}

void Executor::setScalar(ScalarId id, double value) {
  scalarOf(id, plan::ScalarKind::F64);
  scalars[static_cast<uint32_t>(id)].real = value;
}

DeviceAddress Executor::portRange(const plan::Port &port, size_t bytes) const {
  const plan::Plan &plan = loaded->plan();
  const int64_t elementSize = *elementBytes(port.dtype()->string_view());
  const int64_t elements =
      rangeOf(*port.extent(), scalarMax(plan, *port.extent()), 1)->upper;
  const uint64_t capacity = static_cast<uint64_t>(elements * elementSize);
  if (bytes > capacity || bytes % elementSize != 0)
    throw Error(4103, ExitCode::BadInput,
                std::to_string(bytes) + " bytes for '" + port.name()->str() +
                    "', which holds " + std::to_string(elements) + " " +
                    port.dtype()->str());
  return slices[port.slice()].at(int64_t(0));
}

void Executor::writeInput(InputId id, const void *data, size_t bytes) {
  const plan::Port &port =
      *loaded->plan().inputs()->Get(static_cast<uint32_t>(id));
  const DeviceAddress to = portRange(port, bytes);
  tellingOthers([&] { device_.upload(to, data, bytes); });
}

void Executor::readOutput(OutputId id, void *data, size_t bytes) const {
  const plan::Port &port =
      *loaded->plan().outputs()->Get(static_cast<uint32_t>(id));
  const DeviceAddress from = portRange(port, bytes);
  tellingOthers([&] { device_.download(data, from, bytes); });
}

DeviceAddress Executor::sliceRange(uint32_t number, int64_t index, size_t bytes,
                                   size_t offset) const {
  const plan::Plan &plan = loaded->plan();
  if (number >= plan.slices()->size())
    throw Error(4104, ExitCode::RunFailure,
                "slice " + std::to_string(number) + " of " +
                    std::to_string(plan.slices()->size()));
  const plan::Slice &slice = *plan.slices()->Get(number);
  if (offset > slice.bytes() || bytes > slice.bytes() - offset)
    throw Error(4103, ExitCode::RunFailure,
                "bytes " + std::to_string(offset) + " to " +
                    std::to_string(offset) + " + " + std::to_string(bytes) +
                    " of slice '" + slice.name()->str() + "', which has " +
                    std::to_string(slice.bytes()));

  const bool hasTable = slice.table() && slice.table()->size() > 0;
  bool inRange;
  if (hasTable) {
    inRange = index >= 0 && index < int64_t(slice.table()->size());
  } else if (slice.stride() == 0) {
    inRange = index == 0;
  } else {
    // How far the index can go is known only where it is used, so the arena is
    // the bound.
    const __int128 begin =
        slice.offset() + static_cast<__int128>(slice.stride()) * index;
    inRange =
        index >= 0 && begin >= 0 &&
        begin + slice.bytes() <= plan.arenas()->Get(slice.arena())->bytes();
  }
  if (!inRange)
    throw Error(4104, ExitCode::RunFailure,
                "slice '" + slice.name()->str() + "' has no index " +
                    std::to_string(index));
  return slices[number].at(index) + offset;
}

void Executor::writeSlice(uint32_t slice, int64_t index, const void *data,
                          size_t bytes, size_t offset) {
  const DeviceAddress to = sliceRange(slice, index, bytes, offset);
  tellingOthers([&] { device_.upload(to, data, bytes); });
}

void Executor::readSlice(uint32_t slice, int64_t index, void *data,
                         size_t bytes, size_t offset) const {
  const DeviceAddress from = sliceRange(slice, index, bytes, offset);
  tellingOthers([&] { device_.download(data, from, bytes); });
}

//===--- Execute ------------------------------------------------------------//

void Executor::run(FunctionId id, int64_t index) {
  const Program::Function &function =
      program.functions.at(static_cast<uint32_t>(id));
  if (index < 0 || index >= std::max<int64_t>(function.indexCount, 1))
    throw Error(4104, ExitCode::RunFailure,
                "function '" +
                    loaded->plan()
                        .functions()
                        ->Get(static_cast<uint32_t>(id))
                        ->name()
                        ->str() +
                    "' has no index " + std::to_string(index) + ": it takes " +
                    std::to_string(function.indexCount));
  indices[0] = index;
  tellingOthers([&] {
    if (trace_)
      runSteps<true>(function.begin, function.end, 1);
    else
      runSteps<false>(function.begin, function.end, 1);
  });
}

/// `depth` is the level that a loop among these steps counts.
template <bool Traced>
void Executor::runSteps(uint32_t begin, uint32_t end, uint32_t depth) {
  for (uint32_t number = begin; number < end; ++number) {
    const Program::Step step = program.steps[number];
    if constexpr (Traced)
      traceBegin(step);
    switch (step.op) {
    case plan::Op::Launch:
      runLaunch(program.launches[step.operand], step.stream);
      break;
    case plan::Op::Gemm:
      runGemm(program.gemms[step.operand], step.stream);
      break;
    case plan::Op::Copy: {
      const CopyOp &op = program.copies[step.operand];
      device_.copy(op.to.at(indices.data()), op.from.at(indices.data()),
                   op.bytes.at(indices.data()), step.stream);
      break;
    }
    case plan::Op::Fill: {
      const FillOp &op = program.fills[step.operand];
      device_.fill(op.to.at(indices.data()), op.value,
                   op.bytes.at(indices.data()), step.stream);
      break;
    }
    case plan::Op::Loop: {
      const LoopOp &op = program.loops[step.operand];
      const int64_t count = op.count.at(indices.data());
      for (int64_t index = 0; index < count; ++index) {
        indices[depth] = index;
        runSteps<Traced>(number + 1, op.bodyEnd, depth + 1);
      }
      number = op.bodyEnd - 1;
      break;
    }
    case plan::Op::AllGather: {
      const AllGatherOp &op = program.allGathers[step.operand];
      op.channel->allGather(op.from.at(indices.data()),
                            op.to.at(indices.data()), op.bytes, op.where);
      break;
    }
    case plan::Op::ReduceScatter: {
      const ReduceScatterOp &op = program.reduceScatters[step.operand];
      op.channel->reduceScatter(op.from.at(indices.data()),
                                op.to.at(indices.data()), op.elements, op.type,
                                op.ranges, op.accumulate, op.where);
      break;
    }
    case plan::Op::AllReduce: {
      const AllReduceOp &op = program.allReduces[step.operand];
      op.channel->allReduce(op.data.at(indices.data()), op.elements, op.type,
                            op.where);
      break;
    }
    case plan::Op::Record:
      device_.record(step.operand, step.stream);
      break;
    case plan::Op::Wait:
      device_.wait(step.operand, step.stream);
      break;
    case plan::Op::NONE:
      break;
    }
    if constexpr (Traced)
      traceEnd(step, stepLabels[number]);
  }
}

//===--- Trace --------------------------------------------------------------//

void Executor::setTrace(Trace *newTrace) {
  tellingOthers([&] { device_.synchronize(); });
  trace_ = newTrace;
  stepLabels.clear();
  if (!trace_)
    return;
  const plan::Plan &plan = loaded->plan();
  std::vector<std::string> names;
  for (const auto *name : *plan.streams())
    names.push_back(name->str());
  trace_->setStreams(names);
  for (const plan::Function *function : *plan.functions())
    for (Trace::Label &label : instructionLabels(plan, *function))
      stepLabels.push_back(trace_->addLabel(std::move(label)));
}

/// Loops are what their bodies are, a record takes no time, and what another
/// stream than the first waits for shows as a gap.
static bool isTraced(Program::Step step) {
  return step.op != plan::Op::Loop && step.op != plan::Op::Record &&
         (step.op != plan::Op::Wait || step.stream == 0);
}

void Executor::traceBegin(Program::Step step) {
  if (isTraced(step))
    device_.stamp([trace = trace_, stream = step.stream](auto now) {
      trace->begin(stream, now);
    }, step.stream);
}

void Executor::traceEnd(Program::Step step, uint32_t label) {
  if (isTraced(step))
    device_.stamp([trace = trace_, label, stream = step.stream,
                   kind = traceKind(step.op)](auto now) {
      trace->end(stream, label, kind, now);
    }, step.stream);
}

//===--- Instructions -------------------------------------------------------//

void Executor::runLaunch(const LaunchOp &op, uint16_t stream) {
  for (uint32_t i = op.slices.begin; i < op.slices.end; ++i) {
    const auto &patch = program.slicePatches[i];
    program.args[patch.arg].address = patch.source.at(indices.data());
  }
  for (uint32_t i = op.extents.begin; i < op.extents.end; ++i) {
    const auto &patch = program.extentPatches[i];
    program.args[patch.arg].integer = patch.source.at(indices.data());
  }
  for (uint32_t i = op.scalars.begin; i < op.scalars.end; ++i) {
    const auto &patch = program.scalarPatches[i];
    program.args[patch.arg].real = patch.source->real;
  }
  device_.launch(*op.kernel, program.args.data() + op.args.begin,
                 op.args.end - op.args.begin, op.grid.at(indices.data()),
                 stream);
}

void Executor::runGemm(const GemmOp &op, uint16_t stream) {
  GemmCall call = op.call;
  call.m = op.m.at(indices.data());
  call.n = op.n.at(indices.data());
  call.k = op.k.at(indices.data());
  call.a = op.a.at(indices.data());
  call.b = op.b.at(indices.data());
  call.c = op.c.at(indices.data());
  device_.gemm(call, stream);
}

} // namespace fsdpq::rt
