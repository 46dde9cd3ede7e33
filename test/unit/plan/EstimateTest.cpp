// Times against those that a pencil gives.
#include "runtime/plan/Estimate.h"
#include "runtime/support/Error.h"
#include "test/unit/plan/PlanBuilder.h"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;
using testing::HasSubstr;

static Hardware box(uint32_t devicesPerNode) {
  Hardware hardware;
  hardware.name = "box";
  hardware.devicesPerNode = devicesPerNode;
  hardware.memoryBytes = 16384;
  hardware.memoryBandwidth = 1e6;
  hardware.launchOverhead = 0.5;
  hardware.collectiveOverhead = 0.25;
  hardware.matmulFlops = {1e6, 0, 4e6};
  hardware.kernelFlops = 1000;
  hardware.intraNode = {0.125, 1024};
  hardware.interNode = Link{1, 512};
  return hardware;
}

static FunctionEstimate estimate(const PlanBuilder &b, unsigned function,
                                 const Hardware &hardware) {
  auto plan = b.load();
  return estimateFunction(plan->plan(),
                          *plan->plan().functions()->Get(function), hardware);
}

static plan::GemmT gemmOf(uint32_t slice, plan::DType type, int64_t size) {
  plan::GemmT gemm;
  gemm.dtype = gemm.out_dtype = type;
  gemm.m = own(constant(size));
  gemm.n = own(constant(size));
  gemm.k = own(constant(size));
  gemm.a = gemm.b = gemm.c = slice;
  gemm.lda = gemm.ldb = gemm.ldc = size;
  return gemm;
}

TEST(Estimate, TimesOfInstructions) {
  PlanBuilder b;
  const uint32_t tokens = b.scalarI64("tokens", 32);
  const uint32_t x = b.slice("x", b.arena("step", 65536), 0, 40000);
  const uint32_t kernel = b.kernel("k");
  auto seconds = [&](std::unique_ptr<plan::InstructionT> instruction) {
    b.plan.functions.clear();
    b.function("f", body(std::move(instruction)));
    return estimate(b, 0, box(1)).seconds;
  };
  // 2 * 64^3 operations; 3 * 64^2 floats.
  EXPECT_DOUBLE_EQ(seconds(instruction(gemmOf(x, plan::DType::F32, 64))),
                   0.5 + 0.524288);
  // 2 * 4^3 operations of 4e6 take less than 3 * 4^2 * 2 bytes.
  EXPECT_DOUBLE_EQ(seconds(instruction(gemmOf(x, plan::DType::BF16, 4))),
                   0.5 + 96e-6);
  plan::GemmT adding = gemmOf(x, plan::DType::BF16, 4);
  adding.beta = 1;
  EXPECT_DOUBLE_EQ(seconds(instruction(std::move(adding))), 0.5 + 128e-6);
  plan::GemmT widening = gemmOf(x, plan::DType::BF16, 4);
  widening.out_dtype = plan::DType::F32;
  EXPECT_DOUBLE_EQ(seconds(instruction(std::move(widening))), 0.5 + 128e-6);
  EXPECT_DOUBLE_EQ(seconds(launch(kernel, constant(1), sliceArg(x))),
                   0.5 + 0.04);
  auto counted = launch(kernel, constant(1), sliceArg(x));
  counted->op.AsLaunch()->flops = 2000;
  EXPECT_DOUBLE_EQ(seconds(std::move(counted)), 0.5 + 2);
  EXPECT_DOUBLE_EQ(seconds(fill(x, 0, constant(3000))), 0.5 + 0.003);
  EXPECT_DOUBLE_EQ(seconds(copy(x, x, constant(3000))), 0.5 + 0.006);
  // At capacity, in every iteration.
  EXPECT_DOUBLE_EQ(
      seconds(loop(ofScalar(tokens, 1, 8), body(fill(x, 0, constant(1000))))),
      4 * (0.5 + 0.001));
  // Alone in its group, a rank copies in its own memory.
  EXPECT_DOUBLE_EQ(seconds(allGather(plan::Group::World, x, x, 1000)),
                   0.25 + 0.002);
}

TEST(Estimate, OverlapOfStreams) {
  const FunctionEstimate step = estimate(shardedPlan(), 0, box(4));
  // Gathers of 256 and 512 bytes: 0.125 + 0.25 + 0.25 and 0.125 + 0.5 + 0.25.
  // Kernels of the layers: 1792 bytes, 0.501792. The first waits until 1.5; the
  // others, at 2.375, 3.25 and 4.125, for the gather that began with the one
  // before. Backward takes 0.502048, then the scatter of 256 bytes 0.625.
  EXPECT_NEAR(step.seconds, 5.75384, 1e-9);
  EXPECT_NEAR(step.exposed, 1.5 + 3 * (0.875 - 0.501792) + 0.625, 1e-9);
  ASSERT_EQ(step.busy.size(), 3u);
  EXPECT_NEAR(step.busy[0], 4 * 0.501792 + 0.502048, 1e-9);
  EXPECT_NEAR(step.busy[1], 0.625 + 4 * 0.875, 1e-9);
  EXPECT_NEAR(step.busy[2], 0.625, 1e-9);
  EXPECT_EQ(step.bytes, 256u + 4 * 512 + 256);

  ASSERT_EQ(step.sites.size(), 4u);
  const SiteEstimate &adapters = step.sites[0], &first = step.sites[1],
                     &next = step.sites[2], &scatter = step.sites[3];
  EXPECT_EQ(adapters.instruction, 2u);
  EXPECT_EQ(adapters.name, "all_gather trained");
  EXPECT_NEAR(adapters.exposed, 0.625, 1e-9);
  EXPECT_EQ(first.name, "all_gather first (layer 0)");
  EXPECT_NEAR(first.seconds, 0.875, 1e-9);
  EXPECT_NEAR(first.exposed, 0.875, 1e-9);
  EXPECT_EQ(next.instruction, 9u);
  EXPECT_EQ(next.calls, 3u);
  EXPECT_EQ(next.bytes, 3u * 512);
  EXPECT_NEAR(next.seconds, 3 * 0.875, 1e-9);
  EXPECT_NEAR(next.exposed, 3 * (0.875 - 0.501792), 1e-9);
  EXPECT_NEAR(next.hidden(), 3 * 0.501792, 1e-9);
  EXPECT_EQ(scatter.name, "reduce_scatter sums");
  EXPECT_NEAR(scatter.exposed, 0.625, 1e-9);
}

TEST(Estimate, CollectivesOfTheFirstStreamAreExposed) {
  const FunctionEstimate step = estimate(shardedPlan(), 1, box(4));
  // One message and 256 bytes; three messages and 24 bytes.
  const double replica = 0.25 + 0.125 + 0.25,
               world = 0.25 + 3 * 0.125 + 24.0 / 1024;
  EXPECT_NEAR(step.seconds, replica + world + 0.500264 + 0.50052, 1e-9);
  EXPECT_NEAR(step.exposed, replica + world, 1e-9);
  ASSERT_EQ(step.sites.size(), 2u);
  EXPECT_NEAR(step.sites[0].exposed, replica, 1e-9);
  EXPECT_NEAR(step.sites[1].hidden(), 0, 1e-9);
}

TEST(Estimate, GroupsUseTheirSlowestLink) {
  // Two ranks a node: those that share a model are neighbours.
  const FunctionEstimate near = estimate(shardedPlan(), 0, box(2));
  EXPECT_NEAR(near.sites[3].seconds, 0.625, 1e-9);
  const FunctionEstimate step = estimate(shardedPlan(), 1, box(2));
  EXPECT_NEAR(step.sites[0].seconds, 0.25 + 1 + 0.5, 1e-9);
  EXPECT_NEAR(step.sites[1].seconds, 0.25 + 3 + 24.0 / 512, 1e-9);
  // Three a node: ranks 2 and 3 are on two.
  const FunctionEstimate uneven = estimate(shardedPlan(), 0, box(3));
  EXPECT_NEAR(uneven.sites[3].seconds, 0.25 + 1 + 0.5, 1e-9);
}

TEST(Estimate, WhatTheDescriptionLacks) {
  auto refusal = [](auto action) -> std::string {
    try {
      action();
    } catch (const Error &error) {
      EXPECT_EQ(error.exitCode(), ExitCode::BadInput);
      return std::to_string(error.id()) + " " + error.what();
    }
    return "accepted";
  };
  Hardware single = box(2);
  single.interNode.reset();
  EXPECT_EQ(refusal([&] { estimate(shardedPlan(), 0, single); }), "accepted");
  EXPECT_THAT(
      refusal([&] { estimate(shardedPlan(), 1, single); }),
      testing::AllOf(HasSubstr("3042 "),
                     HasSubstr("'box' has no links.inter_node, but the "
                               "plan has 4 ranks, of which 2 are on one "
                               "node")));
  PlanBuilder b;
  const uint32_t x = b.slice("x", b.arena("step", 512), 0, 512);
  b.function("f", body(instruction(gemmOf(x, plan::DType::F64, 4))));
  EXPECT_THAT(refusal([&] { estimate(b, 0, box(1)); }),
              HasSubstr("has no matmul_flops.f64"));
  EXPECT_THAT(refusal([&] { estimateStep(b.load()->plan(), box(1), 1); }),
              HasSubstr("3043 error[FSDPQ-3043]: the plan has no scalar "
                        "'tokens'"));
  b.scalarI64("tokens", 8);
  EXPECT_THAT(refusal([&] { estimateStep(b.load()->plan(), box(1), 1); }),
              HasSubstr("no function 'micro_step'"));
}

TEST(Estimate, OptimizerStep) {
  PlanBuilder b = shardedPlan();
  b.scalarI64("tokens", 100);
  auto plan = b.load();
  const StepEstimate step = estimateStep(plan->plan(), box(4), 3);
  const double optimizer = step.optimizerStep.seconds;
  EXPECT_NEAR(optimizer, 2.2742215, 1e-9);
  EXPECT_NEAR(step.seconds, 3 * 5.75384 + optimizer, 1e-9);
  EXPECT_NEAR(step.tokensPerSecond, 300 / 19.5357415, 1e-9);
  EXPECT_NEAR(step.tokensPerSecondOverall, 1200 / 19.5357415, 1e-9);
  EXPECT_EQ(step.bytes, 3u * 2560 + 280);
  EXPECT_EQ(step.arenaBytes, 2048u + 256 + 256 + 8192);
  EXPECT_TRUE(step.fits());

  const std::string text = step.text();
  EXPECT_THAT(text, testing::ContainsRegex("estimate for +box\n"));
  EXPECT_THAT(text, testing::ContainsRegex("optimizer step +19.536 s\n"));
  EXPECT_THAT(text, testing::ContainsRegex("tokens/s of all ranks +61\n"));
  EXPECT_THAT(text, testing::ContainsRegex("micro_step, 3 times +5.754 s\n"));
  EXPECT_THAT(text,
              testing::ContainsRegex("  stream reduce works +625.000 ms"));
  EXPECT_THAT(text, testing::ContainsRegex(
                        "  9: all_gather next .layer i . 1. +2.625 s\n"
                        " +3 calls, 1.50 KiB, exposed +1.120 s\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("does not fit")));

  Hardware small = box(4);
  small.memoryBytes = 10751;
  const StepEstimate tight = estimateStep(plan->plan(), small, 1);
  EXPECT_FALSE(tight.fits());
  EXPECT_THAT(tight.text(), HasSubstr("does not fit"));
}

TEST(Estimate, DeepPlansAreQuick) {
  auto plan = deepPlan(80).load();
  const auto start = std::chrono::steady_clock::now();
  const FunctionEstimate step =
      estimateFunction(plan->plan(), *plan->plan().functions()->Get(0), box(8));
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  EXPECT_LT(elapsed.count(), 0.5);
  // 160 layers of 30 kernels on 256 + 5 * 1024 bytes.
  EXPECT_NEAR(step.busy[0], 160 * 30 * (0.5 + 5376e-6), 1e-6);
  ASSERT_EQ(step.sites.size(), 4u);
  EXPECT_EQ(step.sites[1].calls, 79u);
  EXPECT_EQ(step.bytes, 160u * 7 * 512);
}
