#include "runtime/plan/Unroll.h"
#include "runtime/support/Error.h"
#include "test/unit/plan/PlanBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;

TEST(Unroll, VisitsLoopsInOrder) {
  PlanBuilder b;
  const uint32_t tokens = b.scalarI64("tokens", 48);
  const uint32_t x = b.slice("x", b.arena("step", 64), 0, 16);
  b.function(
      "f",
      body(loop(ofScalar(tokens, 1, 24),
                body(fill(x, 0, constant(16)),
                     loop(ofIndex(1, 1, 1), body(fill(x, 1, constant(16)))))),
           loop(constant(0), body(fill(x, 2, constant(16)))),
           fill(x, 3, constant(16))));
  auto loaded = b.load();
  const plan::Plan &plan = loaded->plan();
  std::string visits;
  unroll(plan, *plan.functions()->Get(0), 7,
         [&](const UnrolledInstruction &unrolled) {
           visits += std::to_string(unrolled.number) + "(";
           for (int64_t index : unrolled.indices)
             visits += std::to_string(index);
           visits += unrolled.inScalarLoop ? "s) " : ") ";
         });
  EXPECT_EQ(visits, "1(70s) 3(700s) 1(71s) 3(710s) 3(711s) 6(7) ");
}

TEST(Unroll, RefusesEndlessWork) {
  PlanBuilder b;
  Body nest;
  for (int i = 0; i < 4; ++i)
    nest = body(loop(constant(1000), std::move(nest)));
  b.function("f", std::move(nest));
  try {
    auto plan = b.load();
    unroll(plan->plan(), *plan->plan().functions()->Get(0), 0,
           [](const UnrolledInstruction &) {});
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.id(), 3026);
    EXPECT_THAT(error.what(),
                testing::HasSubstr("function 'f' unrolls to more than"));
  }
}

TEST(Unroll, EvaluatesAtTheIndices) {
  auto loaded = shardedPlan().load();
  const plan::Plan &plan = loaded->plan();
  // "next.slot" and "w.codes".
  const std::vector<int64_t> indices{0, 2};
  EXPECT_EQ(addressAt(*plan.slices()->Get(6), indices), 1024u);
  EXPECT_EQ(ordinalAt(*plan.slices()->Get(6), indices), 3u);
  EXPECT_EQ(addressAt(*plan.slices()->Get(7), indices), 0u);
  EXPECT_EQ(ordinalAt(*plan.slices()->Get(7), indices), 2u);
  EXPECT_EQ(countAt(plan, ofIndex(1, -3, 10), indices), 4);
  EXPECT_EQ(countAt(plan, ofIndex(1, -3, 5), indices), 0);
}

TEST(Unroll, TellsWhatInstructionsTouch) {
  PlanBuilder b;
  b.mesh(6, 3);
  const uint32_t tokens = b.scalarI64("tokens", 8);
  const uint32_t arena = b.arena("step", 8192);
  const uint32_t x = b.slice("x", arena, 0, 1024);
  const uint32_t y = b.slice("y", arena, 1024, 2048);
  const uint32_t kernel = b.kernel("k");
  plan::GemmT gemm;
  gemm.m = own(constant(2));
  gemm.n = own(constant(2));
  gemm.k = own(constant(2));
  gemm.a = gemm.b = x;
  gemm.c = y;
  gemm.lda = gemm.ldb = gemm.ldc = 2;
  plan::GemmT adding = gemm;
  adding.beta = 1;
  adding.workspace = static_cast<int32_t>(b.slice("w", arena, 4096, 64));
  using plan::CommType;
  using plan::Group;
  b.function(
      "f",
      body(writingFrom(2, launch(kernel, constant(1), sliceArg(x),
                                 constantArg(1), sliceArg(y))),
           instruction(std::move(gemm)), instruction(std::move(adding)),
           copy(y, x, ofScalar(tokens)), copy(y, x, constant(5)),
           fill(x, 0, constant(7)), allGather(Group::Shard, y, x, 100),
           reduceScatter(Group::World, CommType::F32, x, y, 10, 3),
           reduceScatter(Group::Replica, CommType::F64, x, y, 10, 2, true),
           allReduce(Group::World, CommType::F32, y, 12), wait(b.event())));
  auto loaded = b.load();
  std::string text;
  unroll(loaded->plan(), *loaded->plan().functions()->Get(0), 0,
         [&](const UnrolledInstruction &unrolled) {
           text += std::to_string(unrolled.number) + ":";
           forEachAccess(loaded->plan(), unrolled.instruction, unrolled.indices,
                         [&](const SliceAccess &access) {
                           text += access.slice == x   ? " x "
                                   : access.slice == y ? " y "
                                                       : " w ";
                           text += access.reads ? "r" : "";
                           text += access.writes ? "w" : "";
                           text += std::to_string(access.bytes);
                         });
           text += "\n";
         });
  EXPECT_EQ(text, "0: x r1024 y rw2048\n"
                  "1: x r1024 x r1024 y w2048\n"
                  "2: x r1024 x r1024 y rw2048 w w64\n"
                  "3: x r1024 y w2048\n"
                  "4: x r5 y w5\n"
                  "5: x w7\n"
                  "6: x r100 y w300\n"
                  "7: y r120 x w40\n"
                  "8: y r160 x rw80\n"
                  "9: y rw48\n"
                  "10:\n");
}
