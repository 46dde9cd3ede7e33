#include "runtime/exec/Program.h"

namespace fsdpq::rt {

namespace {

constexpr ScalarCell noScalar{0};

class Flattener {
public:
  Flattener(const plan::Plan &plan, const Resolution &resolution)
      : plan(plan), resolution(resolution) {}

  Program flatten() {
    for (const plan::Function *function : *plan.functions()) {
      const uint32_t begin = size(program.steps);
      addBody(*function->body());
      program.functions.push_back(
          {begin, size(program.steps), function->index_count()});
    }
    return std::move(program);
  }

private:
  template <typename T>
  static uint32_t size(const std::vector<T> &entries) {
    return static_cast<uint32_t>(entries.size());
  }

  /// Appends to the array of an opcode and returns the new entry's number.
  template <typename T>
  static uint32_t add(std::vector<T> &entries, T entry) {
    entries.push_back(std::move(entry));
    return size(entries) - 1;
  }

  ResolvedExtent resolve(const plan::Extent &e) const {
    // A level that is not used need not exist.
    const uint32_t level = e.index_mul() == 0 ? 0 : e.level();
    return {e.scalar() < 0 ? &noScalar : &resolution.scalars[e.scalar()],
            plan::Extent(e.scalar(), level, e.mul(), e.div(), e.index_mul(),
                         e.add(), e.cap())};
  }

  void addBody(
      const flatbuffers::Vector<flatbuffers::Offset<plan::Instruction>> &body) {
    for (const plan::Instruction *instruction : body) {
      const uint32_t step = add(
          program.steps, {instruction->op_type(), instruction->stream(), 0});
      program.steps[step].operand = addOp(*instruction);
    }
  }

  uint32_t addOp(const plan::Instruction &instruction) {
    switch (instruction.op_type()) {
    case plan::Op::Launch:
      return addLaunch(*instruction.op_as_Launch());
    case plan::Op::Gemm:
      return addGemm(*instruction.op_as_Gemm());
    case plan::Op::Copy: {
      const plan::Copy &copy = *instruction.op_as_Copy();
      return add(program.copies,
                 {resolution.slices[copy.src()], resolution.slices[copy.dst()],
                  resolve(*copy.bytes())});
    }
    case plan::Op::Fill: {
      const plan::Fill &fill = *instruction.op_as_Fill();
      return add(program.fills, {resolution.slices[fill.dst()],
                                 resolve(*fill.bytes()), fill.value()});
    }
    case plan::Op::Loop: {
      const plan::Loop &loop = *instruction.op_as_Loop();
      const uint32_t number = add(program.loops, {resolve(*loop.count()), 0});
      addBody(*loop.body());
      program.loops[number].bodyEnd = size(program.steps);
      return number;
    }
    case plan::Op::AllGather: {
      const plan::AllGather &gather = *instruction.op_as_AllGather();
      return add(program.allGathers,
                 {resolution.channel(gather.group(), instruction.stream()),
                  resolution.slices[gather.src()],
                  resolution.slices[gather.dst()], gather.bytes(),
                  where(instruction)});
    }
    case plan::Op::ReduceScatter: {
      const plan::ReduceScatter &reduce = *instruction.op_as_ReduceScatter();
      return add(program.reduceScatters,
                 {resolution.channel(reduce.group(), instruction.stream()),
                  resolution.slices[reduce.src()],
                  resolution.slices[reduce.dst()], reduce.elements(),
                  reduce.type(), reduce.ranges(), reduce.accumulate(),
                  where(instruction)});
    }
    case plan::Op::AllReduce: {
      const plan::AllReduce &reduce = *instruction.op_as_AllReduce();
      return add(program.allReduces,
                 {resolution.channel(reduce.group(), instruction.stream()),
                  resolution.slices[reduce.data()], reduce.elements(),
                  reduce.type(), where(instruction)});
    }
    case plan::Op::Record:
      return instruction.op_as_Record()->event();
    case plan::Op::Wait:
      return instruction.op_as_Wait()->event();
    case plan::Op::NONE:
      break;
    }
    return 0; // checkPlan refuses other opcodes.
  }

  static const char *where(const plan::Instruction &instruction) {
    return instruction.location() ? instruction.location()->c_str() : "";
  }

  uint32_t addLaunch(const plan::Launch &launch) {
    LaunchOp op;
    op.kernel = resolution.kernels[launch.kernel()];
    op.grid = resolve(*launch.grid());
    op.args.begin = size(program.args);
    op.slices.begin = size(program.slicePatches);
    op.extents.begin = size(program.extentPatches);
    op.scalars.begin = size(program.scalarPatches);
    for (const plan::Arg *arg : *launch.args())
      addArg(*arg);
    op.args.end = size(program.args);
    op.slices.end = size(program.slicePatches);
    op.extents.end = size(program.extentPatches);
    op.scalars.end = size(program.scalarPatches);
    return add(program.launches, op);
  }

  /// What never changes is set here; the rest gets a patch.
  void addArg(const plan::Arg &arg) {
    const uint32_t number = size(program.args);
    LaunchArg value;
    switch (arg.kind()) {
    case plan::ArgKind::Slice: {
      const ResolvedSlice &slice = resolution.slices[arg.slice()];
      value.kind = LaunchArg::Kind::Address;
      value.address = slice.base;
      if (slice.table || slice.stride != 0)
        program.slicePatches.push_back({number, slice});
      break;
    }
    case plan::ArgKind::Extent: {
      const ResolvedExtent extent = resolve(*arg.extent());
      constexpr int64_t anyIndex[1] = {0};
      value.kind = LaunchArg::Kind::Integer;
      value.integer = 0;
      if (extent.scalar != &noScalar || extent.extent.index_mul() != 0)
        program.extentPatches.push_back({number, extent});
      else
        value.integer = extent.at(anyIndex);
      break;
    }
    case plan::ArgKind::Scalar:
      value.kind = LaunchArg::Kind::Real;
      value.real = 0;
      program.scalarPatches.push_back(
          {number, &resolution.scalars[arg.scalar()]});
      break;
    case plan::ArgKind::Constant:
      value.kind = LaunchArg::Kind::Real;
      value.real = arg.constant();
      break;
    }
    program.args.push_back(value);
  }

  uint32_t addGemm(const plan::Gemm &gemm) {
    GemmOp op;
    op.call = {};
    op.call.dtype = gemm.dtype();
    op.call.outDtype = gemm.out_dtype();
    op.call.transA = gemm.trans_a();
    op.call.transB = gemm.trans_b();
    op.call.alpha = gemm.alpha();
    op.call.beta = gemm.beta();
    op.call.lda = gemm.lda();
    op.call.ldb = gemm.ldb();
    op.call.ldc = gemm.ldc();
    if (gemm.workspace() >= 0) {
      op.call.workspace = resolution.slices[gemm.workspace()].base;
      op.call.workspaceBytes = plan.slices()->Get(gemm.workspace())->bytes();
    }
    op.m = resolve(*gemm.m());
    op.n = resolve(*gemm.n());
    op.k = resolve(*gemm.k());
    op.a = resolution.slices[gemm.a()];
    op.b = resolution.slices[gemm.b()];
    op.c = resolution.slices[gemm.c()];
    return add(program.gemms, op);
  }

  const plan::Plan &plan;
  const Resolution &resolution;
  Program program;
};

} // namespace

ResolvedSlice resolve(const plan::Slice &slice, DeviceAddress arena) {
  const bool hasTable = slice.table() && slice.table()->size() > 0;
  const bool indexed = hasTable || slice.stride() != 0;
  return {arena + slice.offset(),
          // The loader checked that the vector is aligned; FlatBuffers are
          // little-endian like every machine this runs on.
          hasTable ? reinterpret_cast<const uint64_t *>(slice.table()->Data())
                   : nullptr,
          slice.stride(), indexed ? slice.level() : 0};
}

Program flatten(const plan::Plan &plan, const Resolution &resolution) {
  return Flattener(plan, resolution).flatten();
}

} // namespace fsdpq::rt
