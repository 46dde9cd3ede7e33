// Every number of a plan that could be wrong, made wrong, is refused by an
// error that names it.
#include "runtime/support/Error.h"
#include "test/unit/plan/PlanBuilder.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;

namespace {

struct Damage {
  const char *name;
  int id;
  const char *message;
  std::function<void(plan::PlanT &)> apply;
};

void PrintTo(const Damage &damage, std::ostream *out) { *out << damage.name; }

class PlanCheck : public testing::TestWithParam<Damage> {};

/// Instructions of the sample's micro_step.
plan::InstructionT &instructionAt(plan::PlanT &plan, unsigned index) {
  return *plan.functions[1]->body[index];
}
plan::LoopT &outerLoop(plan::PlanT &plan) {
  return *instructionAt(plan, 1).op.AsLoop();
}
plan::LoopT &innerLoop(plan::PlanT &plan) {
  return *outerLoop(plan).body[0]->op.AsLoop();
}
plan::GemmT &gemm(plan::PlanT &plan) {
  return *innerLoop(plan).body[0]->op.AsGemm();
}
plan::LaunchT &norm(plan::PlanT &plan) {
  return *innerLoop(plan).body[1]->op.AsLaunch();
}
void nestLoops(plan::PlanT &plan, unsigned depth) {
  Body body;
  for (unsigned i = 0; i < depth; ++i) {
    Body outer;
    outer.push_back(loop(constant(1), std::move(body)));
    body = std::move(outer);
  }
  plan.functions[1]->body = std::move(body);
}

} // namespace

TEST(PlanCheckSample, IsSound) {
  auto plan = samplePlan().load();
  EXPECT_EQ(plan->findFunction("micro_step"), 1u);
  EXPECT_EQ(plan->findScalar("lr"), 1u);
  EXPECT_EQ(plan->findInput("ids"), 0u);
  EXPECT_EQ(plan->findOutput("loss"), 0u);
  EXPECT_EQ(plan->findOutput("ids"), std::nullopt);
  EXPECT_EQ(plan->hash().size(), 16u);
  EXPECT_EQ(plan->hash(), samplePlan().load()->hash());
}

TEST(PlanCheckSample, EightLoopsAreAllowed) {
  PlanBuilder b = samplePlan();
  nestLoops(b.plan, 8);
  EXPECT_NO_THROW(b.load());
}

TEST_P(PlanCheck, IsRefused) {
  PlanBuilder b = samplePlan();
  GetParam().apply(b.plan);
  try {
    b.load();
    FAIL() << "accepted";
  } catch (const Error &error) {
    EXPECT_EQ(error.id(), GetParam().id) << error.what();
    EXPECT_EQ(error.exitCode(), ExitCode::BadInput);
    EXPECT_THAT(error.what(), testing::HasSubstr(GetParam().message));
    EXPECT_THAT(error.what(), testing::HasSubstr("test plan"));
  }
}

#define DAMAGE(name, id, message, change)                                      \
  Damage {                                                                     \
#name, id, message, [](plan::PlanT & p) { change; }                        \
  }

static const Damage names[] = {
    DAMAGE(EmptyName, 3010, "arena 0 has a name of 0 bytes",
           p.arenas[0]->name = ""),
    DAMAGE(ControlCharacter, 3010, "slice 2 has a control character",
           p.slices[2]->name = "a\nb"),
    DAMAGE(TwoFunctions, 3010, "functions are named 'load_w'",
           p.functions[1]->name = "load_w"),
    DAMAGE(TwoScalars, 3010, "scalars are named 'lr'",
           p.scalars[0]->name = "lr"),
    DAMAGE(TwoArenas, 3010, "arenas are named 'step'",
           p.arenas[0]->name = "step"),
    DAMAGE(TwoStreams, 3010, "streams are named 'copy'", p.streams[0] = "copy"),
    DAMAGE(TwoParameters, 3010, "parameters are named 'b'",
           p.parameters[0]->name = "b"),
    DAMAGE(TwoComponents, 3010, "components are named 'codes'",
           p.parameters[0]->components[1]->name = "codes"),
};

static const Damage numbers[] = {
    DAMAGE(ScalarKind, 3011, "scalar 'tokens': kind 2 is unknown",
           p.scalars[0]->kind = plan::ScalarKind(2)),
    DAMAGE(SliceArena, 3011, "slice 3 'x': it names arena 2 of 2",
           p.slices[3]->arena = 2),
    DAMAGE(KernelForm, 3011, "kernel 'rms_norm': form 9 is unknown",
           p.kernels[1]->form = plan::KernelForm(9)),
    DAMAGE(ArgSlice, 3011,
           "function 'micro_step', instruction 4 (launch rms_norm): argument 0 "
           "names slice 99 of 8",
           norm(p).args[0]->slice = 99),
    DAMAGE(ArgKind, 3011, "argument 2 has the unknown kind 4",
           norm(p).args[2]->kind = plan::ArgKind(4)),
    DAMAGE(ArgScalar, 3011, "argument 2 names scalar 2 of 2",
           norm(p).args[2]->scalar = 2),
    DAMAGE(ArgScalarKind, 3016, "passes the integer scalar 'tokens'",
           norm(p).args[2]->scalar = 0),
    DAMAGE(ArgExtentMissing, 3016, "argument 1 is an extent, which is missing",
           norm(p).args[1]->extent = nullptr),
    DAMAGE(LaunchKernel, 3011, "instruction 4 (launch): it names kernel 2 of 2",
           norm(p).kernel = 2),
    DAMAGE(Stream, 3011, "instruction 0 (fill): it names stream 2 of 2",
           instructionAt(p, 0).stream = 2),
    DAMAGE(ExtentScalar, 3011, "its grid names scalar 2 of 2",
           norm(p).grid = own(ofScalar(2))),
    DAMAGE(ExtentScalarNegative, 3011, "its grid names scalar -2 of 2",
           norm(p).grid = own(plan::Extent(-2, 0, 1, 1, 0, 0, 1))),
    DAMAGE(ExtentRealScalar, 3015, "reads the floating-point scalar 'lr'",
           norm(p).grid = own(ofScalar(1))),
    DAMAGE(GemmType, 3011, "element type 3 is unknown",
           gemm(p).dtype = plan::DType(3)),
    DAMAGE(GemmA, 3011, "a names slice 8 of 8", gemm(p).a = 8),
    DAMAGE(GemmB, 3011, "b names slice 8 of 8", gemm(p).b = 8),
    DAMAGE(GemmC, 3011, "c names slice 8 of 8", gemm(p).c = 8),
    DAMAGE(CopySource, 3011, "the source names slice 8 of 8",
           instructionAt(p, 2).op.AsCopy()->src = 8),
    DAMAGE(CopyDestination, 3011, "the destination names slice 8 of 8",
           instructionAt(p, 2).op.AsCopy()->dst = 8),
    DAMAGE(FillDestination, 3011, "the destination names slice 8 of 8",
           instructionAt(p, 0).op.AsFill()->dst = 8),
    DAMAGE(PortSlice, 3011, "input 'ids': it names slice 8 of 8",
           p.inputs[0]->slice = 8),
    DAMAGE(PortType, 3011, "output 'loss': element type 'f16' is unknown",
           p.outputs[0]->dtype = "f16"),
    DAMAGE(Staging, 3011, "the staging buffer names slice 8 of 8",
           p.staging = 8),
};

static const Damage ranges[] = {
    DAMAGE(SliceOffset, 3012, "leaves arena 'step' of 8192 bytes at index 0",
           p.slices[3]->offset = 7169),
    DAMAGE(SliceBytes, 3012, "leaves arena 'step'", p.slices[3]->bytes = 7169),
    DAMAGE(SliceOffsetHuge, 3012, "leaves arena 'step'",
           p.slices[3]->offset = UINT64_MAX),
    DAMAGE(SliceTable, 3012, "leaves arena 'base' of 4096 bytes at index 1",
           p.slices[1]->table[1] = 3569),
    DAMAGE(SliceTableHuge, 3012, "leaves arena 'base'",
           p.slices[1]->table[2] = UINT64_MAX - 500),
    DAMAGE(SliceTableShort, 3012,
           "(slice 1 'w.absmax') has a table of 2 for an index that takes 3",
           p.slices[1]->table.pop_back()),
    DAMAGE(SliceTableAndStride, 3012, "both a table and a stride",
           p.slices[1]->stride = 8),
    DAMAGE(SliceStride, 3012, "leaves arena 'step' of 8192 bytes at index 2",
           p.slices[4]->stride = 2600),
    DAMAGE(SliceStrideNegative, 3012, "leaves arena 'step'",
           p.slices[4]->stride = -1026),
    DAMAGE(SliceStrideHuge, 3012, "leaves arena 'step'",
           p.slices[4]->stride = INT64_MIN),
    DAMAGE(ArenaBytes, 3012, "more than an address space",
           p.arenas[0]->bytes = UINT64_MAX),
    DAMAGE(LevelWithoutArgument, 3013,
           "uses an index argument, which is not there",
           p.slices[4]->level = 0),
    DAMAGE(LevelTooDeep, 3013,
           "c (slice 4 'y') uses the index of loop 3, but only 2 are around it",
           p.slices[4]->level = 3),
    DAMAGE(ExtentLevel, 3013, "its grid uses the index of loop 7",
           norm(p).grid = own(ofIndex(7))),
    DAMAGE(FunctionIndexTooLarge, 3012, "leaves arena 'base'",
           p.functions[0]->index_count = 64),
    DAMAGE(FunctionIndexTable, 3012,
           "has a table of 3 for an index that takes 4",
           p.functions[0]->index_count = 4),
    DAMAGE(FunctionIndexNegative, 3019, "it takes -1 indices",
           p.functions[0]->index_count = -1),
    DAMAGE(LoopTable, 3012, "has a table of 2 for an index that takes 3",
           innerLoop(p).count = own(constant(3))),
    DAMAGE(LoopStride, 3012, "leaves arena 'step'",
           outerLoop(p).count = own(ofScalar(0))),
    DAMAGE(LoopDepth, 3019, "more than 8 loops", nestLoops(p, 9)),
};

static const Damage extents[] = {
    DAMAGE(Division, 3015, "its grid is divided by 0",
           norm(p).grid = own(ofScalar(0, 1, 0))),
    DAMAGE(DivisionNegative, 3015, "its grid is divided by -1",
           norm(p).grid = own(ofScalar(0, 1, -1))),
    DAMAGE(Cap, 3015, "its grid is capped at -1",
           norm(p).grid = own(ofScalar(0, 1, 1, 0, -1))),
    DAMAGE(Overflow, 3015, "its grid overflows 64 bits",
           norm(p).grid = own(ofScalar(0, INT64_MAX / 32))),
    DAMAGE(Negative, 3015, "its count is -1 at full capacity",
           innerLoop(p).count = own(constant(-1))),
    DAMAGE(NegativeByIndex, 3015, "its grid is -8 at full capacity",
           norm(p).grid = own(plan::Extent(0, 1, 1, 1, -36, 0, 36))),
    DAMAGE(ScalarMaximum, 3015, "its maximum is -5", p.scalars[0]->max = -5),
    DAMAGE(ScalarMaximumTooLarge, 3018, "too small for 1040",
           p.scalars[0]->max = 65),
    DAMAGE(Arguments, 3016, "it has 129 arguments",
           while (norm(p).args.size() < 129) norm(p).args.push_back(
               constantArg(0))),
    DAMAGE(GemmPitchA, 3017, "operand a has the row pitch 3 for 4 columns",
           gemm(p).lda = 3),
    DAMAGE(GemmPitchB, 3017, "operand b has the row pitch 0", gemm(p).ldb = 0),
    DAMAGE(GemmPitchC, 3017, "operand c has the row pitch -4",
           gemm(p).ldc = -4),
    DAMAGE(GemmFitA, 3017,
           "operand a of 64 rows, 4 columns, pitch 5 does not fit slice 'x'",
           gemm(p).lda = 5),
    DAMAGE(GemmFitB, 3017, "operand b of 5 rows", gemm(p).n = own(constant(5));
           gemm(p).ldc = 5),
    DAMAGE(GemmFitC, 3017, "operand c of 64 rows", gemm(p).ldc = INT64_MAX),
    DAMAGE(GemmFitTransposed, 3017,
           "operand a has the row pitch 4 for 64 columns",
           gemm(p).trans_a = true),
    DAMAGE(GemmType, 3017, "does not fit", gemm(p).dtype = plan::DType::F64),
    DAMAGE(GemmAligned, 3017, "operand a, slice 'x', is not aligned",
           p.slices[3]->offset = 1026),
    DAMAGE(GemmAlignedTable, 3017, "operand b, slice 'w', is not aligned",
           p.slices[5]->table[1] = 66),
    DAMAGE(CopyBytes, 3018, "the source is slice 'b' of 16 bytes",
           instructionAt(p, 2).op.AsCopy()->bytes = own(constant(17))),
    DAMAGE(CopyTarget, 3018, "the destination is slice 'b.grad' of 8 bytes",
           p.slices[6]->bytes = 8),
    DAMAGE(FillBytes, 3018, "the destination is slice 'x' of 1024 bytes",
           instructionAt(p, 0).op.AsFill()->bytes = own(ofScalar(0, 17))),
};

static const Damage hostData[] = {
    DAMAGE(PortSize, 3021, "input 'ids': its elements do not fit slice 'x'",
           p.inputs[0]->extent = own(ofScalar(0, 5))),
    DAMAGE(PortIndexed, 3013, "uses an index argument",
           p.outputs[0]->slice = 0),
    DAMAGE(PortExtentIndexed, 3013, "uses an index argument",
           p.outputs[0]->extent = own(ofIndex(0))),
    DAMAGE(PortBytes, 3011, "'u8' is not one of a port",
           p.outputs[0]->dtype = "u8"),
    DAMAGE(ComponentSlice, 3011, "component 'codes' names slice 8 of 8",
           p.parameters[0]->components[0]->slice = 8),
    DAMAGE(ComponentType, 3011, "element type 'q4' is unknown",
           p.parameters[0]->components[0]->dtype = "q4"),
    DAMAGE(ComponentElements, 3020, "do not fit slice 'w.codes' of 128 bytes",
           p.parameters[0]->components[0]->elements = 129),
    DAMAGE(ComponentElementsHuge, 3020, "do not fit slice",
           p.parameters[0]->components[1]->elements = UINT64_MAX),
    DAMAGE(ComponentLayers, 3012, "for an index that takes 4 values",
           p.parameters[0]->layers.push_back(9)),
    DAMAGE(ComponentsMissing, 3020, "it has 0 components",
           p.parameters[0]->components.clear()),
    DAMAGE(LayerTwice, 3020, "layer 1 stands twice",
           p.parameters[0]->layers[2] = 1),
    DAMAGE(LayerNegative, 3020, "layer -1 is negative",
           p.parameters[0]->layers[0] = -1),
    DAMAGE(ShapeEmpty, 3020, "its rank is 0", p.parameters[0]->shape.clear()),
    DAMAGE(ShapeZero, 3020, "a dimension is 0", p.parameters[0]->shape[0] = 0),
    DAMAGE(ShapeHuge, 3020, "its shape overflows",
           p.parameters[0]->shape.assign(2, INT64_MAX)),
    DAMAGE(RopeHeads, 3020, "5 heads do not divide its 16 rows",
           p.parameters[0]->gguf_rope_heads = 5),
    DAMAGE(LoadFunction, 3011, "it names load function -1 of 2",
           p.parameters[0]->load_function = -1),
    DAMAGE(LoadFunctionIndex, 3020, "takes 0 indices for its 3 layers",
           p.parameters[0]->load_function = 1),
    DAMAGE(StagingMissing, 3020, "the plan has no staging buffer",
           p.staging = -1),
    DAMAGE(StagingNegative, 3011, "the staging buffer names slice",
           p.staging = -2),
    DAMAGE(StagingSmall, 3020, "does not fit the staging buffer of 1023 bytes",
           p.slices[2]->bytes = 1023),
    DAMAGE(Gradient, 3011, "its gradient names slice 8 of 8",
           p.parameters[1]->gradient = 8),
    DAMAGE(GradientNegative, 3011, "its gradient names slice",
           p.parameters[1]->gradient = -7),
    DAMAGE(InitUnknown, 3011, "initialisation 3 is unknown",
           p.parameters[1]->init = plan::Init(3)),
    DAMAGE(FanIn, 3020, "its fan-in is 0", p.parameters[1]->fan_in = 0),
};

static std::string damageName(const testing::TestParamInfo<Damage> &info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Names, PlanCheck, testing::ValuesIn(names),
                         damageName);
INSTANTIATE_TEST_SUITE_P(Numbers, PlanCheck, testing::ValuesIn(numbers),
                         damageName);
INSTANTIATE_TEST_SUITE_P(Ranges, PlanCheck, testing::ValuesIn(ranges),
                         damageName);
INSTANTIATE_TEST_SUITE_P(Extents, PlanCheck, testing::ValuesIn(extents),
                         damageName);
INSTANTIATE_TEST_SUITE_P(HostData, PlanCheck, testing::ValuesIn(hostData),
                         damageName);
