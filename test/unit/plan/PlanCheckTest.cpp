// Every number of a plan that could be wrong, made wrong, is refused by an
// error that names it.
#include "runtime/support/Error.h"
#include "test/unit/plan/PlanBuilder.h"

#include <cmath>
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
class ShardedPlanCheck : public testing::TestWithParam<Damage> {};

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
plan::InstructionT &instructionOf(plan::PlanT &plan, unsigned function,
                                  unsigned index) {
  return *plan.functions[function]->body[index];
}
/// Of the sharded plan.
plan::ReduceScatterT &scatter(plan::PlanT &plan) {
  return *instructionOf(plan, 0, 11).op.AsReduceScatter();
}
/// Makes the count of the sharded plan's loop min(3, tokens).
void dependOnScalar(plan::PlanT &plan) {
  auto tokens = std::make_unique<plan::ScalarT>();
  tokens->name = "tokens";
  tokens->max = 3;
  plan.scalars.push_back(std::move(tokens));
  instructionOf(plan, 0, 5).op.AsLoop()->count = own(ofScalar(1));
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

TEST(PlanCheckSample, ShardedIsSound) {
  EXPECT_EQ(shardedPlan().load()->findFunction("optimizer_step"), 1u);
}

static void expectRefusal(PlanBuilder b, const Damage &damage) {
  damage.apply(b.plan);
  try {
    b.load();
    FAIL() << "accepted";
  } catch (const Error &error) {
    EXPECT_EQ(error.id(), damage.id) << error.what();
    EXPECT_EQ(error.exitCode(), ExitCode::BadInput);
    EXPECT_THAT(error.what(), testing::HasSubstr(damage.message));
    EXPECT_THAT(error.what(), testing::HasSubstr("test plan"));
  }
}

TEST_P(PlanCheck, IsRefused) { expectRefusal(samplePlan(), GetParam()); }
TEST_P(ShardedPlanCheck, IsRefused) {
  expectRefusal(shardedPlan(), GetParam());
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
           "names slice 99 of 12",
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
    DAMAGE(GemmOutType, 3011, "element type 3 is unknown",
           gemm(p).out_dtype = plan::DType(3)),
    DAMAGE(GemmWorkspace, 3011, "its workspace names slice 12 of 12",
           gemm(p).workspace = 12),
    DAMAGE(GemmWorkspaceNegative, 3011, "its workspace names slice -2",
           gemm(p).workspace = -2),
    DAMAGE(GemmA, 3011, "a names slice 12 of 12", gemm(p).a = 12),
    DAMAGE(GemmB, 3011, "b names slice 12 of 12", gemm(p).b = 12),
    DAMAGE(GemmC, 3011, "c names slice 12 of 12", gemm(p).c = 12),
    DAMAGE(CopySource, 3011, "the source names slice 12 of 12",
           instructionAt(p, 2).op.AsCopy()->src = 12),
    DAMAGE(CopyDestination, 3011, "the destination names slice 12 of 12",
           instructionAt(p, 2).op.AsCopy()->dst = 12),
    DAMAGE(FillDestination, 3011, "the destination names slice 12 of 12",
           instructionAt(p, 0).op.AsFill()->dst = 12),
    DAMAGE(PortSlice, 3011, "input 'ids': it names slice 12 of 12",
           p.inputs[0]->slice = 12),
    DAMAGE(PortType, 3011, "output 'loss': element type 'f16' is unknown",
           p.outputs[0]->dtype = "f16"),
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
    DAMAGE(ArenaBytes, 3012, "arena 'base': its 18446744073709551615 bytes are",
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
    DAMAGE(GemmType, 3017, "operand a of 64 rows",
           gemm(p).dtype = gemm(p).out_dtype = plan::DType::F64),
    DAMAGE(GemmOutFit, 3017, "operand c of 64 rows, 4 columns, pitch 4 does "
                             "not fit slice 'y' of 512 bytes",
           gemm(p).dtype = plan::DType::BF16;
           p.slices[4]->bytes = 512),
    DAMAGE(GemmOutWider, 3017,
           "it makes elements of F64 from products of BF16",
           gemm(p).dtype = plan::DType::BF16;
           gemm(p).out_dtype = plan::DType::F64),
    DAMAGE(GemmOutNarrower, 3017,
           "it makes elements of BF16 from products of F32",
           gemm(p).out_dtype = plan::DType::BF16),
    DAMAGE(GemmWorkspaceIndexed, 3017, "its workspace depends on an index",
           gemm(p).workspace = 5),
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
    DAMAGE(PortHalves, 3011, "'bf16' is not one of a port",
           p.outputs[0]->dtype = "bf16"),
    DAMAGE(Staging, 3011, "the staging buffer names slice 12 of 12",
           p.staging = 12),
    DAMAGE(StagingNegative, 3011, "the staging buffer names slice",
           p.staging = -2),
    DAMAGE(ParameterUnit, 3011, "parameter 'b': it names unit 2 of 2",
           p.parameters[1]->unit = 2),
    DAMAGE(ComponentType, 3011, "element type 'q4' is unknown",
           p.parameters[0]->components[0]->dtype = "q4"),
    DAMAGE(ComponentElements, 3020,
           "component 'codes' of 257 elements at 0 is not inside unit 'layers' "
           "of 256 bytes",
           p.parameters[0]->components[0]->elements = 257),
    DAMAGE(ComponentElementsHuge, 3020, "is not inside unit",
           p.parameters[0]->components[1]->elements = UINT64_MAX),
    DAMAGE(ComponentOffsetHuge, 3020, "is not inside unit",
           p.parameters[0]->components[1]->offset = UINT64_MAX - 3),
    DAMAGE(ComponentEmpty, 3020, "of 0 elements",
           p.parameters[0]->components[1]->elements = 0),
    DAMAGE(ComponentAligned, 3020, "component 'absmax' is not aligned",
           p.parameters[0]->components[1]->offset = 130),
    DAMAGE(ComponentsOverlap, 3020,
           "component 'w.codes' and component 'w.absmax' overlap",
           p.parameters[0]->components[1]->offset = 124),
    DAMAGE(ComponentsOfTwoParametersOverlap, 3020,
           "component 'w.codes' and component 'b.data' overlap",
           p.parameters[1]->unit = 0),
    DAMAGE(ComponentsMissing, 3020, "it has 0 components",
           p.parameters[0]->components.clear()),
    DAMAGE(ShapeEmpty, 3020, "its rank is 0", p.parameters[0]->shape.clear()),
    DAMAGE(ShapeZero, 3020, "a dimension is 0", p.parameters[0]->shape[0] = 0),
    DAMAGE(ShapeHuge, 3020, "its shape overflows",
           p.parameters[0]->shape.assign(2, INT64_MAX)),
    DAMAGE(RopeHeads, 3020, "5 heads do not divide its 16 rows",
           p.parameters[0]->gguf_rope_heads = 5),
    DAMAGE(InitUnknown, 3011, "initialisation 3 is unknown",
           p.parameters[1]->init = plan::Init(3)),
    DAMAGE(FanIn, 3020, "its fan-in is 0", p.parameters[1]->fan_in = 0),
};

static const Damage units[] = {
    DAMAGE(TwoUnits, 3010, "units are named 'layers'",
           p.units[1]->name = "layers"),
    DAMAGE(Bytes, 3023, "its 200 bytes are not a multiple of 256",
           p.units[0]->bytes = 200),
    DAMAGE(BytesZero, 3023, "its 0 bytes", p.units[0]->bytes = 0),
    DAMAGE(LayerTwice, 3023, "unit 'layers': layer 1 stands twice",
           p.units[0]->layers[2] = 1),
    DAMAGE(LayerNegative, 3023, "layer -1 is negative",
           p.units[0]->layers[0] = -1),
    DAMAGE(Range, 3011, "its range names slice 12 of 12",
           p.units[0]->range = 12),
    DAMAGE(RangeBytes, 3023,
           "its range is slice 'layers' of 256 bytes, expected 512",
           p.units[0]->bytes = 512),
    DAMAGE(RangeTable, 3012, "its range (slice 9 'adapters') has a table of 1",
           p.slices[9]->table.assign(1, 0);
           p.units[1]->layers.push_back(3);
           p.units[1]->layers.push_back(4)),
    DAMAGE(RangeOrdinals, 3012, "leaves arena 'base' of 4096 bytes at index 11",
           while (p.units[0]->layers.size() < 12) p.units[0]->layers.push_back(
               int32_t(10 + p.units[0]->layers.size()))),
    DAMAGE(RangesOverlap, 3023,
           "the ranges of units 'layers' and 'adapters' overlap",
           p.slices[8]->offset = 1024),
    DAMAGE(RangesOfOneUnitOverlap, 3023,
           "the ranges of units 'layers' and 'layers' overlap",
           p.slices[8]->stride = 0),
    DAMAGE(Gradient, 3011, "its gradient names slice 12 of 12",
           p.units[1]->gradient = 12),
    DAMAGE(GradientNegative, 3011, "its gradient names slice",
           p.units[1]->gradient = -7),
    DAMAGE(GradientBytes, 3023,
           "its gradient is slice 'adapters.grad' of 16 bytes, expected 256",
           p.slices[10]->bytes = 16),
    DAMAGE(BeginFunction, 3011, "its begin function is number 4 of 4",
           p.units[0]->begin_function = 4),
    DAMAGE(BeginFunctionAlone, 3023, "one of begin and store function",
           p.units[0]->store_function = -1),
    DAMAGE(BeginFunctionIndexed, 3023,
           "its begin function 'load_w' takes 3 indices, expected 1",
           p.units[0]->begin_function = 0),
    DAMAGE(StoreFunction, 3011, "its store function is number -3 of 4",
           p.units[0]->store_function = -3),
    DAMAGE(StoreFunctionIndex, 3023,
           "its store function 'micro_step' takes 0 indices, expected 3",
           p.units[0]->store_function = 1),
    DAMAGE(NoBegin, 3020, "its unit 'layers' has no begin function",
           p.units[0]->begin_function = p.units[0]->store_function = -1),
    DAMAGE(LoaderMissing, 3020, "has no loader",
           p.parameters[0]->loader = nullptr),
    DAMAGE(LoaderPieces, 3020, "its 256 elements do not make 3 pieces",
           p.parameters[0]->loader->pieces = 3),
    DAMAGE(LoaderPiecesZero, 3020, "do not make 0 pieces",
           p.parameters[0]->loader->pieces = 0),
    DAMAGE(LoaderPiecesIndex, 3023,
           "its piece function 'load_w' takes 3 indices, expected 4",
           p.parameters[0]->loader->pieces = 4),
    DAMAGE(LoaderStagingMissing, 3020, "the plan has no staging buffer",
           p.staging = -1),
    DAMAGE(LoaderStagingSmall, 3020,
           "a piece does not fit the staging buffer of 511 bytes",
           p.slices[2]->bytes = 511),
    DAMAGE(LoaderPieceFunction, 3011, "its piece function is number 4 of 4",
           p.parameters[0]->loader->piece_function = 4),
    DAMAGE(LoaderPieceFunctionHuge, 3011,
           "its piece function is number 4294967295 of 4",
           p.parameters[0]->loader->piece_function = UINT32_MAX),
    DAMAGE(LoaderMeanAlone, 3020, "some of mean, scales and offset function",
           p.parameters[0]->loader->mean_function = 2),
};

// Of the plan of four ranks.
static const Damage sharded[] = {
    DAMAGE(NoRanks, 3023, "the mesh has 0 ranks",
           p.mesh = std::make_unique<plan::Mesh>(0, 1, false)),
    DAMAGE(ManyRanks, 3023, "the mesh has 4294967295 ranks",
           p.mesh = std::make_unique<plan::Mesh>(UINT32_MAX, 1, false)),
    DAMAGE(NoShards, 3023, "0 shards do not divide the mesh's 4 ranks",
           p.mesh = std::make_unique<plan::Mesh>(4, 0, false)),
    DAMAGE(Shards, 3023, "3 shards do not divide the mesh's 4 ranks",
           p.mesh = std::make_unique<plan::Mesh>(4, 3, false)),
    DAMAGE(UnitBytes, 3023, "its 1280 bytes are not a multiple of 512",
           p.units[0]->bytes = 1280),
    DAMAGE(RangeBytes, 3023,
           "its range is slice 'adapters' of 256 bytes, expected 512",
           p.units[1]->bytes = 1024),
    DAMAGE(ContentBytes, 3012,
           "arena 'step': its contents need more than its 8192 bytes",
           p.arenas[3]->contents[0]->bytes = 8193),
    DAMAGE(ContentName, 3010, "content 0 has a name of 0 bytes",
           p.arenas[3]->contents[0]->name = ""),
    DAMAGE(SliceUnit, 3011, "slice 3 'first': it names unit 2 of 2",
           p.slices[3]->unit = 2),
    DAMAGE(SliceUnitNegative, 3011, "it names unit -2 of 2",
           p.slices[3]->unit = -2),
    DAMAGE(SliceUnitBytes, 3023, "its 1025 bytes are more than unit 'layers'",
           p.slices[5]->bytes = 1025),
    DAMAGE(OrdinalsMissing, 3023, "it has a unit, but no ordinals",
           p.slices[3]->ordinals.clear()),
    DAMAGE(OrdinalsWithoutUnit, 3023, "it has ordinals, but no unit",
           p.slices[3]->unit = -1),
    DAMAGE(Ordinal, 3011, "it names ordinal 4 of 4 of unit 'layers'",
           p.slices[3]->ordinals[0] = 4),
    DAMAGE(OrdinalsShort, 3012,
           "the source (slice 4 'next') has ordinals of 2 for an index that "
           "takes 3",
           p.slices[4]->ordinals.pop_back()),
    DAMAGE(OrdinalsWithoutIndex, 3013, "uses an index argument",
           p.slices[3]->ordinals.push_back(1)),
    DAMAGE(ManyEvents, 3025, "the plan has 65537 events, at most 65536",
           p.events = 65537),
    DAMAGE(RecordEvent, 3011, "instruction 0 (record): it names event 5 of 5",
           instructionOf(p, 0, 0).op.AsRecord()->event = 5),
    DAMAGE(WaitEvent, 3011, "instruction 1 (wait): it names event 6 of 5",
           instructionOf(p, 0, 1).op.AsWait()->event = 6),
    DAMAGE(GatherGroup, 3011, "instruction 3 (all_gather): group 3 is unknown",
           instructionOf(p, 0, 3).op.AsAllGather()->group = plan::Group(3)),
    DAMAGE(GatherSource, 3024, "the source is slice 'first' of 512 bytes, too",
           instructionOf(p, 0, 3).op.AsAllGather()->bytes = 513),
    DAMAGE(GatherDestination, 3024,
           "slice 'first.slot' of 1024 bytes, too small for 2048",
           instructionOf(p, 0, 3).op.AsAllGather()->group =
               plan::Group::World),
    DAMAGE(GatherBytes, 3024, "it has -1 bytes",
           instructionOf(p, 0, 3).op.AsAllGather()->bytes = -1),
    DAMAGE(GatherSlice, 3011, "the source names slice 99",
           instructionOf(p, 0, 3).op.AsAllGather()->src = 99),
    DAMAGE(ScatterGroup, 3011, "group 9 is unknown",
           scatter(p).group = plan::Group(9)),
    DAMAGE(ScatterType, 3011, "element type 3 is unknown",
           scatter(p).type = plan::CommType(3)),
    DAMAGE(ScatterElements, 3024, "it has 0 elements", scatter(p).elements = 0),
    DAMAGE(ScatterSource, 3024, "slice 'sums' of 512 bytes, too small for 520",
           scatter(p).elements = 65),
    DAMAGE(ScatterDestination, 3024, "slice 'adapters.grad' of 256 bytes, too",
           scatter(p).ranges = 1;
           scatter(p).elements = 65),
    DAMAGE(ScatterHuge, 3024, "too small for",
           scatter(p).elements = INT64_MAX),
    DAMAGE(ScatterRanges, 3024, "its 4 ranges do not divide the 2 ranks of "
                                "group shard",
           scatter(p).ranges = 4),
    DAMAGE(ScatterRangesZero, 3024, "its 0 ranges", scatter(p).ranges = 0),
    DAMAGE(ScatterAligned, 3024, "slice 'sums', is not aligned",
           p.slices[12]->offset += 2),
    DAMAGE(ReduceGroup, 3011, "group 4 is unknown",
           instructionOf(p, 1, 0).op.AsAllReduce()->group = plan::Group(4)),
    DAMAGE(ReduceType, 3011, "element type 7 is unknown",
           instructionOf(p, 1, 0).op.AsAllReduce()->type = plan::CommType(7)),
    DAMAGE(ReduceElements, 3024, "it has -64 elements",
           instructionOf(p, 1, 0).op.AsAllReduce()->elements = -64),
    DAMAGE(ReduceData, 3024, "slice 'adapters.grad' of 256 bytes, too small",
           instructionOf(p, 1, 0).op.AsAllReduce()->type = plan::CommType::F64),
    DAMAGE(ReduceAligned, 3024, "its data, slice 'norm', is not aligned",
           p.slices[13]->offset += 4),
    DAMAGE(ScalarLoop, 3025,
           "instruction 6 (wait): it is in a loop whose count depends on a "
           "scalar",
           dependOnScalar(p)),
    DAMAGE(ScalarLoopAround, 3025,
           "instruction 1 (all_gather): it is in a loop whose count depends",
           dependOnScalar(p);
           auto &steps = p.functions[0]->body;
           auto gather = std::move(steps[5]->op.AsLoop()->body[3]);
           steps[5]->op.AsLoop()->body = body(std::move(gather));
           steps.erase(steps.begin(), steps.begin() + 5)),
    DAMAGE(WritesFrom, 3016, "it writes from argument 5 on of 4",
           instructionOf(p, 1, 3).op.AsLaunch()->writes_from = 5),
    DAMAGE(Flops, 3016, "operations",
           instructionOf(p, 1, 3).op.AsLaunch()->flops = -1),
    DAMAGE(FlopsNotANumber, 3016, "operations",
           instructionOf(p, 1, 3).op.AsLaunch()->flops = std::nan("")),
    DAMAGE(MeanFunction, 3011, "its mean function is number 8 of 8",
           p.parameters[0]->loader->mean_function = 8),
    DAMAGE(MeanFunctionIndex, 3023,
           "its mean function 'load_w' takes 2 indices, expected 1",
           p.parameters[0]->loader->mean_function = 3),
    DAMAGE(ScalesFunction, 3023,
           "its scales function 'mean_w' takes 0 indices, expected 2",
           p.parameters[0]->loader->scales_function = 4),
    DAMAGE(ScalesMissing, 3020, "some of mean, scales and offset function",
           p.parameters[0]->loader->scales_function = -1),
    DAMAGE(OffsetMissing, 3020, "some of mean, scales and offset function",
           p.parameters[0]->loader->offset_function = -1),
    DAMAGE(OffsetFunction, 3023, "its offset function 'load_w' takes 2",
           p.parameters[0]->loader->offset_function = 3),
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
INSTANTIATE_TEST_SUITE_P(Units, PlanCheck, testing::ValuesIn(units),
                         damageName);
INSTANTIATE_TEST_SUITE_P(Sharded, ShardedPlanCheck, testing::ValuesIn(sharded),
                         damageName);
