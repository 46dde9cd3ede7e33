//===- ScheduleMutations.cpp - One wrong place in a compiled plan ---------===//
//
// checkSchedule finds nothing in plans as they are compiled, and something in
// every plan that differs from one of these by a single order, address or
// parameter number that matters.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanFile.h"
#include "runtime/plan/ScheduleCheck.h"
#include "test/unit/oracle/RankRun.h"

#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::test;

namespace {

using Body = std::vector<std::unique_ptr<plan::InstructionT>>;

std::vector<rt::ScheduleFault> check(const plan::PlanT &plan) {
  const std::vector<uint8_t> bytes = rt::encodePlan(plan);
  return rt::checkSchedule(*plan::GetPlan(bytes.data() + rt::planHeaderBytes));
}

bool finds(const plan::PlanT &plan, rt::ScheduleFaultKind kind) {
  for (const rt::ScheduleFault &fault : check(plan))
    if (fault.kind == kind)
      return true;
  return false;
}

class ScheduleMutations : public testing::Test {
protected:
  static plan::PlanT compile(RankRun run) {
    CompileOptions options = compileOptions(run);
    options.planOnly = true;
    plan::PlanT result;
    const std::vector<uint8_t> bytes = compileBytes(options);
    plan::GetPlan(bytes.data() + rt::planHeaderBytes)->UnPackTo(&result);
    return result;
  }
  static plan::PlanT compile() {
    RankRun run;
    run.ranks = 2;
    run.deterministic = false;
    return compile(run);
  }

  static Body &bodyOf(plan::PlanT &plan, const std::string &name) {
    for (auto &function : plan.functions)
      if (function->name == name)
        return function->body;
    throw std::runtime_error("no function " + name);
  }

  /// Calls visit(body, index) for each instruction of an opcode, loops' bodies
  /// included.
  template <typename Visit>
  static void forEach(Body &body, plan::Op op, const Visit &visit) {
    for (size_t i = 0; i < body.size(); ++i) {
      if (body[i]->op.type == op)
        visit(body, i);
      if (plan::LoopT *loop = body[i]->op.AsLoop())
        forEach(loop->body, op, visit);
    }
  }

  /// The first instruction of an opcode inside a loop.
  static plan::InstructionT &firstInLoop(Body &body, plan::Op op) {
    plan::InstructionT *found = nullptr;
    for (auto &instruction : body)
      if (plan::LoopT *loop = instruction->op.AsLoop())
        forEach(loop->body, op, [&](Body &inner, size_t i) {
          if (!found)
            found = inner[i].get();
        });
    if (!found)
      throw std::runtime_error("no such instruction in a loop");
    return *found;
  }

  /// A copy of a slice to change.
  static plan::SliceT &ownSlice(plan::PlanT &plan, uint32_t &number) {
    plan.slices.push_back(
        std::make_unique<plan::SliceT>(*plan.slices[number]));
    number = static_cast<uint32_t>(plan.slices.size() - 1);
    return *plan.slices.back();
  }
};

} // namespace

TEST_F(ScheduleMutations, NothingInPlansAsTheyAre) {
  for (const TrainType type : {TrainType::Full, TrainType::Lora, TrainType::Qlora})
    for (const bool keep : {false, true})
      for (const bool split : {false, true}) {
        RankRun run;
        run.type = type;
        run.ranks = 4;
        run.keepGathered = keep;
        run.splitUnits = split;
        run.checkpointing = split;
        for (const rt::ScheduleFault &fault : check(compile(run)))
          ADD_FAILURE() << fault.message;
      }
}

/// Without any one wait of the stream that computes, record of one that
/// communicates, or start of a collective in a loop, something is wrong.
/// (Collectives also wait for computation where, by chance of placement, their
/// memory was not used before, and the last layer waits for the reduction before
/// it although no layer follows.)
TEST_F(ScheduleMutations, EveryWaitAndRecordIsNeeded) {
  const plan::PlanT original = compile();
  for (const char *name : {"micro_step", "optimizer_step"})
    for (const plan::Op op : {plan::Op::Wait, plan::Op::Record}) {
      plan::PlanT source = original;
      Body &whole = bodyOf(source, name);
      size_t count = 0, needed = 0;
      forEach(whole, op, [&](Body &, size_t) { ++count; });
      for (size_t removed = 0; removed < count; ++removed) {
        plan::PlanT plan = original;
        Body &body = bodyOf(plan, name);
        size_t number = 0;
        bool isNeeded = false;
        std::string text;
        forEach(body, op, [&](Body &block, size_t i) {
          if (number++ != removed)
            return;
          const bool computes = block[i]->stream == 0;
          const bool inLoop = &block != &body;
          const bool beforeReduction =
              i + 3 < block.size() &&
              block[i + 3]->op.type == plan::Op::ReduceScatter;
          isNeeded = inLoop || (computes == (op == plan::Op::Wait) &&
                                !(computes && beforeReduction));
          text = block[i]->location;
          block.erase(block.begin() + static_cast<std::ptrdiff_t>(i));
        });
        needed += isNeeded;
        EXPECT_TRUE(!isNeeded || !check(plan).empty())
            << plan::EnumNameOp(op) << " " << removed << " of " << name << ", "
            << text;
      }
      EXPECT_GE(needed, name == std::string("micro_step") ? 6u : 1u);
    }
}

TEST_F(ScheduleMutations, AGatherIntoASlotBeforeItsLastReaderIsDone) {
  plan::PlanT plan = compile();
  plan::AllGatherT &gather =
      *firstInLoop(bodyOf(plan, "micro_step"), plan::Op::AllGather).op.AsAllGather();
  plan::SliceT &slot = ownSlice(plan, gather.dst);
  // Two slots in turn: the gather takes the one that the layer is reading.
  ASSERT_EQ(slot.table.size(), 2u);
  ASSERT_NE(slot.table[0], slot.table[1]);
  std::swap(slot.table[0], slot.table[1]);
  EXPECT_TRUE(finds(plan, rt::ScheduleFaultKind::Race) ||
              finds(plan, rt::ScheduleFaultKind::Residency));
}

TEST_F(ScheduleMutations, AGatherOfAnotherLayer) {
  plan::PlanT plan = compile();
  plan::AllGatherT &gather =
      *firstInLoop(bodyOf(plan, "micro_step"), plan::Op::AllGather).op.AsAllGather();
  plan::SliceT &range = ownSlice(plan, gather.src);
  range.offset -= plan.slices[gather.src]->bytes;
  for (uint32_t &ordinal : range.ordinals)
    --ordinal;
  EXPECT_TRUE(finds(plan, rt::ScheduleFaultKind::Residency));
}

TEST_F(ScheduleMutations, ACollectiveAsOftenAsThereAreTokens) {
  plan::PlanT plan = compile();
  for (auto &instruction : bodyOf(plan, "micro_step"))
    if (plan::LoopT *loop = instruction->op.AsLoop()) {
      *loop->count = plan::Extent(0, 0, 1, 128, 0, 0, loop->count->cap());
      break;
    }
  EXPECT_TRUE(finds(plan, rt::ScheduleFaultKind::CollectiveOrder));
}

TEST_F(ScheduleMutations, ASumInPlaceOfAnother) {
  // The whole gradient of one layer is cleared while it is being reduced.
  plan::PlanT plan = compile();
  Body &body = bodyOf(plan, "micro_step");
  plan::InstructionT &reduce = firstInLoop(body, plan::Op::ReduceScatter);
  const uint32_t source = reduce.op.AsReduceScatter()->src;
  bool changed = false;
  for (auto &instruction : body)
    if (plan::LoopT *loop = instruction->op.AsLoop())
      for (size_t i = 0; i < loop->body.size() && !changed; ++i)
        if (loop->body[i].get() == &reduce) {
          plan::FillT fill;
          fill.dst = source;
          fill.bytes = std::make_unique<plan::Extent>(-1, 0, 0, 1, 0, 256, 256);
          auto clear = std::make_unique<plan::InstructionT>();
          clear->op.Set(std::move(fill));
          loop->body.insert(loop->body.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                            std::move(clear));
          changed = true;
        }
  ASSERT_TRUE(changed);
  EXPECT_TRUE(finds(plan, rt::ScheduleFaultKind::Race));
}
