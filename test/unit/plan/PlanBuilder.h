//===- PlanBuilder.h - Plans made by hand -----------------------*- C++ -*-===//
#pragma once

#include "runtime/plan/PlanFile.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fsdpq::test {

inline constexpr int64_t noCap = std::numeric_limits<int64_t>::max();

using Body = std::vector<std::unique_ptr<plan::InstructionT>>;

//===--- Extents ------------------------------------------------------------//

inline plan::Extent constant(int64_t value) {
  return plan::Extent(-1, 0, 0, 1, 0, value, noCap);
}

/// min(cap, floor(mul * scalar / div) + add)
inline plan::Extent ofScalar(uint32_t scalar, int64_t mul = 1, int64_t div = 1,
                             int64_t add = 0, int64_t cap = noCap) {
  return plan::Extent(static_cast<int32_t>(scalar), 0, mul, div, 0, add, cap);
}

/// indexMul * index of `level` + add
inline plan::Extent ofIndex(uint32_t level, int64_t indexMul = 1,
                            int64_t add = 0) {
  return plan::Extent(-1, level, 0, 1, indexMul, add, noCap);
}

inline std::unique_ptr<plan::Extent> own(plan::Extent extent) {
  return std::make_unique<plan::Extent>(extent);
}

//===--- Instructions -------------------------------------------------------//

template <typename Op>
std::unique_ptr<plan::InstructionT> instruction(Op op) {
  auto result = std::make_unique<plan::InstructionT>();
  result->op.Set(std::move(op));
  return result;
}

inline std::unique_ptr<plan::ArgT> sliceArg(uint32_t slice) {
  auto arg = std::make_unique<plan::ArgT>();
  arg->kind = plan::ArgKind::Slice;
  arg->slice = slice;
  return arg;
}

inline std::unique_ptr<plan::ArgT> extentArg(plan::Extent extent) {
  auto arg = std::make_unique<plan::ArgT>();
  arg->kind = plan::ArgKind::Extent;
  arg->extent = own(extent);
  return arg;
}

inline std::unique_ptr<plan::ArgT> scalarArg(uint32_t scalar) {
  auto arg = std::make_unique<plan::ArgT>();
  arg->kind = plan::ArgKind::Scalar;
  arg->scalar = scalar;
  return arg;
}

inline std::unique_ptr<plan::ArgT> constantArg(double value) {
  auto arg = std::make_unique<plan::ArgT>();
  arg->kind = plan::ArgKind::Constant;
  arg->constant = value;
  return arg;
}

template <typename... Args>
std::unique_ptr<plan::InstructionT> launch(uint32_t kernel, plan::Extent grid,
                                           Args... args) {
  plan::LaunchT op;
  op.kernel = kernel;
  op.grid = own(grid);
  (op.args.push_back(std::move(args)), ...);
  return instruction(std::move(op));
}

inline std::unique_ptr<plan::InstructionT> copy(uint32_t to, uint32_t from,
                                                plan::Extent bytes) {
  plan::CopyT op;
  op.src = from;
  op.dst = to;
  op.bytes = own(bytes);
  return instruction(std::move(op));
}

inline std::unique_ptr<plan::InstructionT> fill(uint32_t to, uint8_t value,
                                                plan::Extent bytes) {
  plan::FillT op;
  op.dst = to;
  op.value = value;
  op.bytes = own(bytes);
  return instruction(std::move(op));
}

inline std::unique_ptr<plan::InstructionT> loop(plan::Extent count, Body body) {
  plan::LoopT op;
  op.count = own(count);
  op.body = std::move(body);
  return instruction(std::move(op));
}

inline std::unique_ptr<plan::InstructionT>
allGather(plan::Group group, uint32_t to, uint32_t from, int64_t bytes) {
  plan::AllGatherT op;
  op.group = group;
  op.src = from;
  op.dst = to;
  op.bytes = bytes;
  return instruction(std::move(op));
}

inline std::unique_ptr<plan::InstructionT>
reduceScatter(plan::Group group, plan::CommType type, uint32_t to,
              uint32_t from, int64_t elements, uint32_t ranges,
              bool accumulate = false) {
  plan::ReduceScatterT op;
  op.group = group;
  op.type = type;
  op.src = from;
  op.dst = to;
  op.elements = elements;
  op.ranges = ranges;
  op.accumulate = accumulate;
  return instruction(std::move(op));
}

inline std::unique_ptr<plan::InstructionT> allReduce(plan::Group group,
                                                     plan::CommType type,
                                                     uint32_t data,
                                                     int64_t elements) {
  plan::AllReduceT op;
  op.group = group;
  op.type = type;
  op.data = data;
  op.elements = elements;
  return instruction(std::move(op));
}

inline std::unique_ptr<plan::InstructionT> record(uint32_t event) {
  plan::RecordT op;
  op.event = event;
  return instruction(std::move(op));
}

inline std::unique_ptr<plan::InstructionT> wait(uint32_t event) {
  plan::WaitT op;
  op.event = event;
  return instruction(std::move(op));
}

/// The instruction on another stream than the first.
inline std::unique_ptr<plan::InstructionT>
on(uint16_t stream, std::unique_ptr<plan::InstructionT> instruction) {
  instruction->stream = stream;
  return instruction;
}

inline std::unique_ptr<plan::InstructionT>
located(const std::string &location,
        std::unique_ptr<plan::InstructionT> instruction) {
  instruction->location = location;
  return instruction;
}

/// The launch, whose arguments before `argument` are only read. (launch() says
/// that all are written.)
inline std::unique_ptr<plan::InstructionT>
writingFrom(uint32_t argument, std::unique_ptr<plan::InstructionT> launch) {
  launch->op.AsLaunch()->writes_from = argument;
  return launch;
}

template <typename... Instructions>
Body body(Instructions... instructions) {
  Body result;
  (result.push_back(std::move(instructions)), ...);
  return result;
}

//===--- Plans --------------------------------------------------------------//

/// A plan under construction: adders return the number of what they add.
class PlanBuilder {
public:
  plan::PlanT plan;

  PlanBuilder() {
    plan.compiler = "test";
    plan.target = "generic";
    plan.streams = {"compute"};
    plan.staging = -1;
    mesh(1, 1);
  }

  void mesh(uint32_t ranks, uint32_t shards, bool deterministic = false) {
    plan.mesh = std::make_unique<plan::Mesh>(ranks, shards, deterministic);
  }

  uint16_t stream(const std::string &name) {
    plan.streams.push_back(name);
    return static_cast<uint16_t>(plan.streams.size() - 1);
  }

  uint32_t event() { return plan.events++; }

  uint32_t scalarI64(const std::string &name, int64_t max) {
    plan::ScalarT scalar;
    scalar.name = name;
    scalar.max = max;
    return add(plan.scalars, std::move(scalar));
  }

  uint32_t scalarF64(const std::string &name) {
    plan::ScalarT scalar;
    scalar.name = name;
    scalar.kind = plan::ScalarKind::F64;
    return add(plan.scalars, std::move(scalar));
  }

  uint32_t arena(const std::string &name, uint64_t bytes) {
    plan::ArenaT arena;
    arena.name = name;
    arena.bytes = bytes;
    return add(plan.arenas, std::move(arena));
  }

  uint32_t slice(const std::string &name, uint32_t arena, uint64_t offset,
                 uint64_t bytes, uint32_t level = 0, int64_t stride = 0,
                 std::vector<uint64_t> table = {}) {
    plan::SliceT slice;
    slice.name = name;
    slice.arena = arena;
    slice.offset = offset;
    slice.bytes = bytes;
    slice.level = level;
    slice.stride = stride;
    slice.table = std::move(table);
    return add(plan.slices, std::move(slice));
  }

  /// A slice whose readers expect parameters of a unit.
  uint32_t unitSlice(const std::string &name, uint32_t unit,
                     std::vector<uint32_t> ordinals, uint32_t arena,
                     uint64_t offset, uint64_t bytes, uint32_t level = 0,
                     int64_t stride = 0, std::vector<uint64_t> table = {}) {
    const uint32_t number =
        slice(name, arena, offset, bytes, level, stride, std::move(table));
    plan.slices[number]->unit = static_cast<int32_t>(unit);
    plan.slices[number]->ordinals = std::move(ordinals);
    return number;
  }

  uint32_t kernel(const std::string &name, std::vector<uint8_t> code = {1}) {
    plan::KernelT kernel;
    kernel.name = kernel.symbol = name;
    kernel.hash = "0123";
    kernel.code = std::move(code);
    return add(plan.kernels, std::move(kernel));
  }

  uint32_t function(const std::string &name, Body body,
                    int64_t indexCount = 0) {
    plan::FunctionT function;
    function.name = name;
    function.index_count = indexCount;
    function.body = std::move(body);
    return add(plan.functions, std::move(function));
  }

  uint32_t input(const std::string &name, uint32_t slice, plan::Extent extent,
                 const std::string &dtype = "f32") {
    return add(plan.inputs, port(name, slice, extent, dtype));
  }

  uint32_t output(const std::string &name, uint32_t slice, plan::Extent extent,
                  const std::string &dtype = "f32") {
    return add(plan.outputs, port(name, slice, extent, dtype));
  }

  uint32_t unit(const std::string &name, uint64_t bytes, uint32_t range,
                std::vector<int32_t> layers = {}, int32_t gradient = -1) {
    plan::UnitT unit;
    unit.name = name;
    unit.bytes = bytes;
    unit.range = range;
    unit.layers = std::move(layers);
    unit.gradient = gradient;
    return add(plan.units, std::move(unit));
  }

  /// A parameter without components that starts as zeros.
  uint32_t parameter(const std::string &name, uint32_t unit,
                     std::vector<int64_t> shape,
                     const std::string &scheme = "f32") {
    plan::ParameterT parameter;
    parameter.name = name;
    parameter.unit = unit;
    parameter.shape = std::move(shape);
    parameter.scheme = scheme;
    parameter.init = plan::Init::Zeros;
    return add(plan.parameters, std::move(parameter));
  }

  void component(uint32_t parameter, const std::string &name,
                 const std::string &dtype, uint64_t offset, uint64_t elements) {
    plan::ComponentT component;
    component.name = name;
    component.dtype = dtype;
    component.offset = offset;
    component.elements = elements;
    add(plan.parameters[parameter]->components, std::move(component));
  }

  /// The parameter comes from a checkpoint, in `pieces` pieces; returns its
  /// loader for the functions of quantised scales.
  plan::LoaderT &loader(uint32_t parameter, const std::string &hf,
                        int64_t pieces, uint32_t pieceFunction) {
    plan::ParameterT &table = *plan.parameters[parameter];
    table.init = plan::Init::Checkpoint;
    table.hf = hf;
    table.loader = std::make_unique<plan::LoaderT>();
    table.loader->pieces = pieces;
    table.loader->piece_function = pieceFunction;
    return *table.loader;
  }

  std::shared_ptr<const rt::LoadedPlan> load() const {
    return rt::LoadedPlan::fromBytes(rt::encodePlan(plan), "test plan");
  }

private:
  template <typename T>
  static uint32_t add(std::vector<std::unique_ptr<T>> &tables, T table) {
    tables.push_back(std::make_unique<T>(std::move(table)));
    return static_cast<uint32_t>(tables.size() - 1);
  }

  static plan::PortT port(const std::string &name, uint32_t slice,
                          plan::Extent extent, const std::string &dtype) {
    plan::PortT port;
    port.name = name;
    port.slice = slice;
    port.extent = own(extent);
    port.dtype = dtype;
    return port;
  }
};

/// A small plan of one rank. Arenas "base" (4096) and "step" (8192). Units:
/// 0 "layers" (three layers), 1 "adapters".
/// Functions: 0 load_w (i0 < 3), 1 micro_step, 2 begin_layers, 3 store_layers
/// (i0 < 3).
PlanBuilder samplePlan();

/// The sample for a GPU: `rms_norm` has a tensor map of its argument 0, slice 'y'.
PlanBuilder cudaPlan();

/// A plan of four ranks, two of which have a whole model. Streams: compute,
/// gather, reduce. Four layers are gathered into two slots, each while the one
/// before it is computed with; the sum of gradients is scattered on the third
/// stream.
/// Functions: 0 micro_step, 1 optimizer_step, 2 begin_layers, 3 load_w (i0 <
/// 2), 4 mean_w, 5 scales_w (i0 < 2), 6 offset_w, 7 store_layers (i0 < 4).
PlanBuilder shardedPlan();

/// A plan of eight ranks, whose micro_step goes over so many layers forwards
/// and backwards: 30 launches a layer with six slices each, two slots for
/// gathers.
PlanBuilder deepPlan(int64_t layers);

} // namespace fsdpq::test
