#include "runtime/plan/KernelTable.h"
#include "runtime/plan/PlanText.h"
#include "runtime/support/AtomicFile.h"
#include "test/unit/plan/PlanBuilder.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;
using testing::HasSubstr;

TEST(PlanText, WholePlan) {
  auto plan = samplePlan().load();
  EXPECT_EQ(planText(*plan), "plan version 3 hash " + plan->hash() + R"(
compiler test
target generic
metadata model = sample
mesh 1 ranks, 1 shards
scalar tokens : i64 max 64
scalar lr : f64
stream compute
stream copy
arena base : 4096 bytes
arena step : 8192 bytes
slice w.codes : base + 0, 128 bytes, at i0 * 128
slice w.absmax : base + 512, 16 bytes, at [0, 64, 256][i0]
slice staging : step + 0, 1024 bytes
slice x : step + 1024, 1024 bytes
slice y : step + 2048, 1024 bytes, at i1 * 1024
slice w : step + 5120, 64 bytes, at [0, 64][i2]
slice b.grad : step + 6144, 16 bytes
slice b : base + 1024, 16 bytes
slice layers : base + 1280, 256 bytes, at i0 * 256
slice adapters : base + 1024, 256 bytes
slice adapters.grad : step + 6144, 256 bytes
slice layer : step + 6400, 256 bytes
kernel quantize : CpuObject symbol quantize, 3 bytes, hash 0123
kernel rms_norm : CpuObject symbol rms_norm, 2 bytes, hash 0123
input ids : i32[tokens] in x
output loss : f32[1] in b.grad
staging staging
unit layers : 256 bytes in layers layers(0, 1, 5) begin begin_layers store store_layers
unit adapters : 256 bytes in adapters gradient adapters.grad
parameter w : <16x16x!qt.nf4<block = 64>> in layers load 2 pieces load_w hf "model.layers.{layer}.w.weight"
  component codes : u8[128] at 0
  component absmax : f32[4] at 128
parameter b : <4xf32> in adapters trainable kaiming_uniform(4)
  component data : f32[4] at 0
function load_w(i0 < 3) {
  launch quantize grid(4) args(staging, w.codes[i0], w.absmax[i0], 7*i0 + 1) writes_from 1 on compute  // 0
}
function micro_step() {
  fill x = 7, tokens*16 bytes on compute  // 0
  loop i1 < tokens/24 + 1 {  // 1
    loop i2 < 2 {  // 2
      gemm f32 y[i1](pitch 4) = 1 * x(pitch 4) * w[i2]'(pitch 4) + 0 * c, m(tokens) n(4) k(4) on compute  // 3
      launch rms_norm grid(min(24, tokens - 24*i1)) args(y[i1], min(24, tokens - 24*i1), %lr, const 0.25) writes_from 0 on copy  // 4: model.mlir:12
    }
  }
  copy b.grad = b, 16 bytes on compute  // 5
}
function begin_layers() {
  fill layer = 0, 256 bytes on compute  // 0
}
function store_layers(i0 < 3) {
  reduce_scatter world u8 layer -> layers[i0], 1 ranges of 256 on compute  // 0
}
)");
}

TEST(PlanText, Sharded) {
  PlanBuilder b = shardedPlan();
  b.mesh(4, 2, /*deterministic=*/true);
  b.plan.functions[1]->body[1]->op.AsLaunch()->flops = 2.5e9;
  const std::string text = planText(*b.load());
  EXPECT_THAT(text, HasSubstr(R"(
mesh 4 ranks, 2 shards, deterministic
scalar lr : f64
stream compute
stream gather
stream reduce
events 5
)"));
  EXPECT_THAT(text, HasSubstr(R"(
arena step : 8192 bytes
  content gathered layers : 2048 bytes
)"));
  EXPECT_THAT(text, HasSubstr(R"(
slice first.slot : step + 0, 1024 bytes, holds layers 0
slice next.slot : step + 0, 1024 bytes, at [1024, 0, 1024][i1], holds layers [1, 2, 3][i1]
)"));
  EXPECT_THAT(text, HasSubstr(" load 2 pieces load_w mean mean_w scales "
                              "scales_w offset offset_w hf \"model.layers."));
  EXPECT_THAT(text, HasSubstr(R"(
function micro_step() {
  record e0 on compute  // 0
  wait e0 on gather  // 1
  all_gather shard trained -> trained.whole, 256 bytes on gather  // 2
  all_gather shard first -> first.slot, 512 bytes on gather  // 3: layer 0
  record e1 on gather  // 4
  loop i1 < 3 {  // 5
    wait e1 on compute  // 6
    record e2 on compute  // 7
    wait e2 on gather  // 8
    all_gather shard next[i1] -> next.slot[i1], 512 bytes on gather  // 9: layer i + 1
)"));
  EXPECT_THAT(text, HasSubstr("  reduce_scatter shard f32 sums -> "
                              "adapters.grad, 2 ranges of 64, accumulate on "
                              "reduce  // 17\n"));
  EXPECT_THAT(text, HasSubstr(R"(
function optimizer_step() {
  all_reduce replica f32 adapters.grad, 64 elements on compute  // 0
  launch square grid(1) args(adapters.grad, norm) writes_from 1 flops(2.5e+09) on compute  // 1
  all_reduce world f64 norm, 1 elements on compute  // 2
)"));
}

TEST(PlanText, Cubins) {
  EXPECT_THAT(planText(*cudaPlan().load()), HasSubstr(R"(
kernel quantize : CudaCubin symbol quantize, 3 bytes, hash 0123
  blocks of 128 threads, 0 bytes of shared memory, 1 work items
kernel rms_norm : CudaCubin symbol rms_norm, 2 bytes, hash 0123
  blocks of 128 threads, 65536 bytes of shared memory, 4 work items, at most 2 a multiprocessor
  map of argument 0 + 8 : 64 columns, pitch 80, boxes 128x64
  resources 168 registers, 24 bytes spilled, 1024 bytes of static shared memory
)"));
}

TEST(PlanText, KernelTable) {
  PlanBuilder b = cudaPlan();
  b.plan.kernels[1]->symbol = "norm";
  EXPECT_EQ(kernelTable(b.load()->plan()),
            "kernel    entry     threads  registers  spilled  shared  code\n"
            "quantize  quantize      128          -        -       -     3\n"
            "rms_norm  norm          128        168       24   66560     2\n");
  EXPECT_THAT(kernelTable(samplePlan().load()->plan()),
              HasSubstr("rms_norm  rms_norm        -          -        -"
                        "       -     2\n"));
}

TEST(PlanText, TablesAreShortened) {
  PlanBuilder b;
  uint32_t arena = b.arena("base", 1 << 20);
  std::vector<uint64_t> regular, alternating, irregular;
  for (uint64_t i = 0; i < 24; ++i) {
    regular.push_back(i * 64);
    alternating.push_back(i % 2 * 512);
    irregular.push_back(i * i);
  }
  b.slice("regular", arena, 0, 64, 1, 0, regular);
  b.slice("falling", arena, 0, 64, 1, 0, {256, 192, 128, 64, 0});
  b.slice("alternating", arena, 0, 64, 1, 0, alternating);
  b.slice("irregular", arena, 0, 64, 1, 0, irregular);
  std::string text = planText(*b.load());
  EXPECT_THAT(text, HasSubstr("at [0, 64, .. 1472] (24 entries)[i1]\n"));
  EXPECT_THAT(text, HasSubstr("at [256, 192, .. 0] (5 entries)[i1]\n"));
  EXPECT_THAT(text, HasSubstr("at [0, 512] repeated (24 entries)[i1]\n"));
  EXPECT_THAT(text, HasSubstr("at [0, 1, 4, 9,"));
  EXPECT_THAT(text, HasSubstr("484, 529][i1]\n"));
}

TEST(PlanText, ProductsTellTheirTypesAndWorkspace) {
  PlanBuilder b = samplePlan();
  fsdpq::plan::GemmT &gemm = *b.plan.functions[1]
                           ->body[1]
                           ->op.AsLoop()
                           ->body[0]
                           ->op.AsLoop()
                           ->body[0]
                           ->op.AsGemm();
  gemm.dtype = fsdpq::plan::DType::BF16;
  gemm.workspace = 2; // staging
  EXPECT_THAT(planText(*b.load()),
              HasSubstr("gemm bf16 to f32 y[i1](pitch 4) = 1 * x(pitch 4) * "
                        "w[i2]'(pitch 4) + 0 * c, m(tokens) n(4) k(4) "
                        "workspace staging on compute"));
}

TEST(PlanText, SharedNamesGetNumbers) {
  PlanBuilder b;
  uint32_t arena = b.arena("step", 64);
  b.slice("x", arena, 0, 8);
  uint32_t second = b.slice("x", arena, 8, 8);
  b.function("f", body(fill(second, 0, constant(8))));
  EXPECT_THAT(planText(*b.load()), HasSubstr("fill x#1 = 0, 8 bytes  // 0\n"));
}

TEST(PlanText, OfAFile) {
  const std::string path = testing::TempDir() + "fsdpq_plan_text_test.plan";
  const std::vector<uint8_t> bytes = encodePlan(samplePlan().plan);
  writeFileAtomically(
      path, {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
  EXPECT_EQ(planText(*LoadedPlan::fromFile(path)),
            planText(*samplePlan().load()));
  std::filesystem::remove(path);
}
