// A sound schedule has no faults; each way to break it is found and named.
#include "runtime/plan/ScheduleCheck.h"
#include "runtime/support/Error.h"
#include "test/unit/plan/PlanBuilder.h"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Matcher;

namespace fsdpq::rt {
static void PrintTo(const ScheduleFault &fault, std::ostream *out) {
  *out << scheduleFaultName(fault.kind) << ": " << fault.message;
}
} // namespace fsdpq::rt

/// Of a plan that checkPlan need not accept.
static std::vector<ScheduleFault> faultsOf(const PlanBuilder &b) {
  const std::vector<uint8_t> bytes = encodePlan(b.plan);
  return checkSchedule(*plan::GetPlan(bytes.data() + 24));
}

template <typename... Texts>
static Matcher<ScheduleFault> fault(ScheduleFaultKind kind, Texts... texts) {
  return AllOf(Field(&ScheduleFault::kind, kind),
               Field(&ScheduleFault::message,
                     AllOf(HasSubstr(""), HasSubstr(texts)...)));
}

static Body &microStep(PlanBuilder &b) { return b.plan.functions[0]->body; }
static Body &layerLoop(PlanBuilder &b) {
  return microStep(b)[5]->op.AsLoop()->body;
}
static void removeAt(Body &body, unsigned index) {
  body.erase(body.begin() + index);
}

//===--- Sound ones ---------------------------------------------------------//

TEST(ScheduleCheck, AcceptsOrderedStreams) {
  PlanBuilder b = shardedPlan();
  ASSERT_NO_THROW(b.load());
  EXPECT_THAT(faultsOf(b), IsEmpty());
}

TEST(ScheduleCheck, DeepPlansAreQuick) {
  PlanBuilder b = deepPlan(126);
  auto plan = b.load();
  const auto start = std::chrono::steady_clock::now();
  const std::vector<ScheduleFault> faults = checkSchedule(plan->plan());
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  EXPECT_THAT(faults, IsEmpty());
  RecordProperty("milliseconds", static_cast<int>(elapsed.count() * 1000));
  EXPECT_LT(elapsed.count(), 1);
}

//===--- Races --------------------------------------------------------------//

TEST(ScheduleCheck, GatherIntoASlotBeforeItsLastReaderIsDone) {
  PlanBuilder b = shardedPlan();
  // The gather of layer i + 1 no longer waits for the kernel of layer i - 1.
  ASSERT_NE(layerLoop(b)[2]->op.AsWait(), nullptr);
  removeAt(layerLoop(b), 2);
  EXPECT_THAT(
      faultsOf(b),
      ElementsAre(fault(
          ScheduleFaultKind::Race, "function 'micro_step': instruction 8 ",
          "(all_gather, layer i + 1) at i1 = 1 on stream 'gather' writes bytes "
          "[0, 256) of arena 'step' through slice 'next.slot'",
          "is not ordered after instruction 10 (launch layer, layer i) at "
          "i1 = 0 on stream 'compute', which reads them through slice "
          "'w.codes'")));
}

TEST(ScheduleCheck, WaitGivenBeforeItsRecord) {
  PlanBuilder b = shardedPlan();
  // The gather waits for what the iteration before recorded: layer i - 2.
  std::swap(layerLoop(b)[1], layerLoop(b)[2]);
  EXPECT_THAT(faultsOf(b),
              ElementsAre(fault(ScheduleFaultKind::Race,
                                "(all_gather, layer i + 1) at i1 = 1 ",
                                "(launch layer, layer i) at i1 = 0 ")));
}

TEST(ScheduleCheck, MissingWait) {
  PlanBuilder b = shardedPlan();
  // The kernel of layers 0 to 2 no longer waits for its gather.
  removeAt(layerLoop(b), 0);
  const std::vector<ScheduleFault> faults = faultsOf(b);
  EXPECT_THAT(
      faults,
      testing::Contains(fault(
          ScheduleFaultKind::Race,
          "instruction 10 (launch layer, layer i) at "
          "i1 = 0 on stream 'compute' reads",
          "through slice 'w.codes'",
          "is not ordered after instruction 3 (all_gather, layer 0) on stream "
          "'gather', which writes them through slice 'first.slot'")));
  for (const ScheduleFault &each : faults)
    EXPECT_EQ(each.kind, ScheduleFaultKind::Race) << each.message;
}

TEST(ScheduleCheck, MissingRecord) {
  PlanBuilder b = shardedPlan();
  // Later layers' waits mean the gather of layer 0.
  removeAt(layerLoop(b), 4);
  const std::vector<ScheduleFault> faults = faultsOf(b);
  EXPECT_THAT(faults,
              testing::Contains(fault(
                  ScheduleFaultKind::Race,
                  "(launch layer, layer i) at i1 = 1 on stream 'compute' reads "
                  "bytes [1024, 1280)",
                  "(all_gather, layer i + 1) at i1 = 0")));
}

TEST(ScheduleCheck, WaitForAnEventNeverRecorded) {
  PlanBuilder b = shardedPlan();
  // Nobody records that the sums are complete.
  removeAt(microStep(b), 9);
  EXPECT_THAT(faultsOf(b),
              ElementsAre(fault(ScheduleFaultKind::NotForked,
                                "(reduce_scatter) on stream 'reduce'",
                                "starts before the function"),
                          fault(ScheduleFaultKind::Race,
                                "(reduce_scatter) on stream 'reduce' reads "
                                "bytes [3584, 4096) of arena 'step'",
                                "(launch backward)", "which writes them")));
}

TEST(ScheduleCheck, LaunchArgumentsThatAreOnlyReadDoNotConflict) {
  PlanBuilder b = shardedPlan();
  // The backward kernel runs beside the scatter, which reads what it reads.
  auto &kernel = *microStep(b)[8]->op.AsLaunch();
  kernel.writes_from = 3;
  removeAt(microStep(b), 9);
  microStep(b).insert(microStep(b).begin() + 8, record(3));
  EXPECT_THAT(faultsOf(b), IsEmpty());
  microStep(b)[9]->op.AsLaunch()->writes_from = 2;
  EXPECT_THAT(faultsOf(b),
              ElementsAre(fault(ScheduleFaultKind::Race, "reduce_scatter")));
}

TEST(ScheduleCheck, OnlySharedBytesConflict) {
  PlanBuilder b;
  const uint16_t side = b.stream("side");
  const uint32_t fork = b.event(), join = b.event();
  const uint32_t arena = b.arena("step", 1024);
  const uint32_t low = b.slice("low", arena, 0, 512);
  const uint32_t high = b.slice("high", arena, 512, 512);
  b.function("f", body(record(fork), on(side, wait(fork)),
                       on(side, fill(high, 1, constant(512))),
                       fill(low, 1, constant(512)), on(side, record(join)),
                       wait(join)));
  EXPECT_THAT(faultsOf(b), IsEmpty());
  b.plan.slices[high]->offset = 511;
  EXPECT_THAT(faultsOf(b),
              ElementsAre(fault(ScheduleFaultKind::Race,
                                "instruction 3 (fill) on stream 'compute' "
                                "writes bytes [511, 512) of arena 'step'",
                                "instruction 2 (fill) on stream 'side'")));
}

TEST(ScheduleCheck, SizesAreExactWhereTheyAreFixed) {
  PlanBuilder b;
  const uint16_t side = b.stream("side");
  const uint32_t fork = b.event(), join = b.event();
  const uint32_t tokens = b.scalarI64("tokens", 256);
  const uint32_t arena = b.arena("step", 1024);
  const uint32_t all = b.slice("all", arena, 0, 1024);
  const uint32_t high = b.slice("high", arena, 512, 512);
  b.function("f", body(record(fork), on(side, wait(fork)),
                       on(side, fill(high, 1, constant(512))),
                       fill(all, 1, constant(512)), on(side, record(join)),
                       wait(join)));
  EXPECT_THAT(faultsOf(b), IsEmpty());
  // What depends on a scalar may be any part of the slice.
  b.plan.functions[0]->body[3]->op.AsFill()->bytes = own(ofScalar(tokens));
  EXPECT_THAT(faultsOf(b), ElementsAre(fault(ScheduleFaultKind::Race)));
}

TEST(ScheduleCheck, OrderIsTransitive) {
  PlanBuilder b;
  const uint16_t second = b.stream("second"), third = b.stream("third");
  const uint32_t a = b.event(), c = b.event(), d = b.event();
  const uint32_t x = b.slice("x", b.arena("step", 64), 0, 64);
  b.function("f",
             body(fill(x, 1, constant(64)), record(a), on(second, wait(a)),
                  on(second, record(c)), on(third, wait(c)),
                  on(third, fill(x, 2, constant(64))), on(third, record(d)),
                  on(second, wait(d)), on(second, record(a)), wait(a),
                  fill(x, 3, constant(64))));
  EXPECT_THAT(faultsOf(b), IsEmpty());
  // The wait means the latest record only.
  removeAt(b.plan.functions[0]->body, 8);
  const auto faults = faultsOf(b);
  EXPECT_THAT(faults,
              ElementsAre(fault(ScheduleFaultKind::Race,
                                "instruction 9 (fill) on stream 'compute'"),
                          fault(ScheduleFaultKind::NotJoined, "'third'")));
}

TEST(ScheduleCheck, EveryIndexOfAFunctionIsChecked) {
  PlanBuilder b;
  const uint16_t side = b.stream("side");
  const uint32_t fork = b.event(), join = b.event();
  const uint32_t arena = b.arena("step", 1024);
  const uint32_t one = b.slice("one", arena, 512, 256);
  const uint32_t many = b.slice("many", arena, 0, 256, 0, 256);
  b.function("f",
             body(record(fork), on(side, wait(fork)),
                  on(side, fill(one, 1, constant(256))),
                  fill(many, 1, constant(256)), on(side, record(join)),
                  wait(join)),
             4);
  EXPECT_THAT(faultsOf(b), ElementsAre(fault(ScheduleFaultKind::Race,
                                             "(fill) at i0 = 2 on stream")));
}

//===--- Start and end ------------------------------------------------------//

TEST(ScheduleCheck, StreamsStartAfterTheFirst) {
  PlanBuilder b = shardedPlan();
  removeAt(microStep(b), 1);
  EXPECT_THAT(faultsOf(b),
              testing::Contains(fault(
                  ScheduleFaultKind::NotForked,
                  "instruction 1 (all_gather) on stream 'gather' starts before "
                  "the function",
                  "anything that stream 'compute' recorded")));
}

TEST(ScheduleCheck, StreamsAreJoinedAtTheEnd) {
  PlanBuilder b = shardedPlan();
  microStep(b).pop_back();
  EXPECT_THAT(faultsOf(b),
              ElementsAre(fault(ScheduleFaultKind::NotJoined,
                                "stream 'reduce' is not waited for at the end",
                                "instruction 17 (reduce_scatter)")));
}

//===--- Residency ----------------------------------------------------------//

TEST(ScheduleCheck, WrongOrdinal) {
  PlanBuilder b = shardedPlan();
  // The kernel takes layer 2 for layer 1.
  b.plan.slices[7]->ordinals[1] = 2;
  EXPECT_THAT(
      faultsOf(b),
      ElementsAre(fault(
          ScheduleFaultKind::Residency,
          "instruction 11 (launch layer, layer i) at i1 = 1 on stream "
          "'compute' expects ordinal 2 of unit 'layers' in bytes [1024, 1280) "
          "of arena 'step', slice 'w.codes', but they hold ordinal 1 of unit "
          "'layers', gathered by instruction 9 (all_gather, layer i + 1) at i1 "
          "= 0")));
}

TEST(ScheduleCheck, WrongSlot) {
  PlanBuilder b = shardedPlan();
  b.plan.slices[7]->table[2] = 1024;
  EXPECT_THAT(faultsOf(b),
              testing::Contains(fault(ScheduleFaultKind::Residency,
                                      "i1 = 2 on stream 'compute' expects "
                                      "ordinal 2 of unit 'layers'")));
}

TEST(ScheduleCheck, OverwrittenSlot) {
  PlanBuilder b = shardedPlan();
  // The activations reach into the second slot.
  b.plan.slices[11]->offset = 1200;
  const std::vector<ScheduleFault> faults = faultsOf(b);
  EXPECT_THAT(faults,
              testing::Contains(fault(
                  ScheduleFaultKind::Residency,
                  "instruction 13 (launch layer) on stream 'compute' expects "
                  "ordinal 3 of unit 'layers' in bytes [1200, 1280)",
                  "slice 'last.codes', but they were written by instruction 11 "
                  "(launch layer, layer i) at i1 = 2 on stream 'compute' "
                  "through slice 'x'")));
}

TEST(ScheduleCheck, NeverGathered) {
  PlanBuilder b = shardedPlan();
  removeAt(microStep(b), 2);
  EXPECT_THAT(faultsOf(b),
              testing::Contains(fault(ScheduleFaultKind::Residency,
                                      "expects ordinal 0 of unit 'adapters'",
                                      "nothing was gathered there")));
}

TEST(ScheduleCheck, GatherFromAnotherPlace) {
  PlanBuilder b = shardedPlan();
  // Says layer 0, but reads the range of layer 1.
  b.plan.slices[3]->offset = 512;
  EXPECT_THAT(faultsOf(b),
              testing::Contains(fault(ScheduleFaultKind::Residency,
                                      "(all_gather, layer 0)",
                                      "expects ordinal 0 of unit 'layers' in "
                                      "bytes [512, 1024) of arena 'base'",
                                      "nothing was gathered there")));
}

TEST(ScheduleCheck, GatherAmongOtherRanksMakesNoUnit) {
  PlanBuilder b = shardedPlan();
  microStep(b)[3]->op.AsAllGather()->group = plan::Group::Replica;
  EXPECT_THAT(faultsOf(b),
              ElementsAre(fault(ScheduleFaultKind::Residency, "i1 = 0",
                                "they were written by instruction 3")));
}

TEST(ScheduleCheck, WholeUnitsAreReadWhereTheyAreKept) {
  PlanBuilder b;
  const uint32_t base = b.arena("base", 1024), step = b.arena("step", 64);
  const uint32_t range = b.slice("layers", base, 0, 512, 0, 512);
  const uint32_t unit = b.unit("layers", 512, range, {0, 1});
  const uint32_t w = b.unitSlice("w", unit, {0, 1}, base, 128, 64, 1, 512);
  const uint32_t x = b.slice("x", step, 0, 64);
  b.function("f", body(loop(constant(2), body(copy(x, w, constant(64))))));
  EXPECT_THAT(faultsOf(b), IsEmpty());
  // Of two shards, a rank has half of it only.
  b.mesh(2, 2);
  b.plan.units[unit]->bytes = 1024;
  EXPECT_THAT(faultsOf(b), ElementsAre(fault(ScheduleFaultKind::Residency,
                                             "ordinal 0 of unit 'layers'")));
  b.mesh(1, 1);
  b.plan.slices[w]->ordinals = {1, 0};
  EXPECT_THAT(faultsOf(b), ElementsAre(fault(ScheduleFaultKind::Residency,
                                             "ordinal 1 of unit 'layers'")));
}

//===--- Order on all ranks -------------------------------------------------//

TEST(ScheduleCheck, CollectiveInALoopOfAScalar) {
  PlanBuilder b = shardedPlan();
  const uint32_t tokens = b.scalarI64("tokens", 3);
  microStep(b)[5]->op.AsLoop()->count = own(ofScalar(tokens));
  EXPECT_THROW(b.load(), Error);
  EXPECT_THAT(
      faultsOf(b),
      ElementsAre(fault(ScheduleFaultKind::CollectiveOrder,
                        "instruction 9 (all_gather, layer i + 1) at i1 = 0",
                        "a loop whose count depends on a scalar")));
}

//===--- Size ---------------------------------------------------------------//

TEST(ScheduleCheck, EndlessWorkIsAFault) {
  PlanBuilder b;
  Body nest;
  for (int i = 0; i < 4; ++i)
    nest = body(loop(constant(1000), std::move(nest)));
  b.function("f", std::move(nest));
  b.function("g", body(), INT64_MAX);
  EXPECT_THAT(faultsOf(b),
              ElementsAre(fault(ScheduleFaultKind::TooLong,
                                "function 'f' unrolls to more than"),
                          fault(ScheduleFaultKind::TooLong,
                                "function 'g' takes 9223372036854775807")));
}
