// Damaged plan files are refused by an Error, or are harmless; they never crash
// a reader. (Run under the address and undefined-behaviour sanitizers in CI.)
#include "runtime/plan/Estimate.h"
#include "runtime/plan/MemoryTable.h"
#include "runtime/plan/PlanText.h"
#include "runtime/plan/ScheduleCheck.h"
#include "runtime/support/Error.h"
#include "test/unit/plan/PlanBuilder.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;

static constexpr size_t headerBytes = 24;

/// Makes the header's checksum that of the body, so that damage gets past it.
static void seal(std::vector<uint8_t> &bytes) {
  if (bytes.size() < headerBytes)
    return;
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = headerBytes; i < bytes.size(); ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3u;
  std::memcpy(bytes.data() + 16, &hash, sizeof hash);
}

static const Hardware machine =
    readHardware(FSDPQ_TEST_INPUTS "/../../tools/hardware/h200-nvlink.json");

/// The id of the Error, or 0 if the plan is accepted and can be worked with.
static int refusal(const std::vector<uint8_t> &bytes) {
  try {
    auto plan = LoadedPlan::fromBytes(bytes, "damaged plan");
    EXPECT_FALSE(planText(*plan).empty());
    EXPECT_FALSE(buildMemoryTable(plan->plan()).text().empty());
    checkSchedule(plan->plan());
    for (const plan::Function *function : *plan->plan().functions())
      EXPECT_GE(estimateFunction(plan->plan(), *function, machine).seconds, 0);
    return 0;
  } catch (const Error &error) {
    EXPECT_EQ(error.exitCode(), ExitCode::BadInput) << error.what();
    EXPECT_GE(error.id(), 3001);
    EXPECT_LE(error.id(), 3026);
    return error.id();
  }
}

TEST(PlanCorruption, EveryByteIsProtected) {
  const std::vector<uint8_t> sound = encodePlan(samplePlan().plan);
  ASSERT_EQ(refusal(sound), 0);
  for (size_t i = 0; i < sound.size(); ++i) {
    std::vector<uint8_t> damaged = sound;
    damaged[i] ^= 0x10;
    const int expected = i < 8 ? 3001 : i < 16 ? 3002 : 3003;
    ASSERT_EQ(refusal(damaged), expected) << "byte " << i;
  }
}

TEST(PlanCorruption, EveryTruncationIsRefused) {
  const std::vector<uint8_t> sound = encodePlan(samplePlan().plan);
  for (size_t size = 0; size < sound.size(); ++size) {
    std::vector<uint8_t> shorter(sound.begin(), sound.begin() + size);
    ASSERT_NE(refusal(shorter), 0) << size << " bytes";
    // The last few bytes are padding.
    seal(shorter);
    if (size + 8 < sound.size()) {
      ASSERT_NE(refusal(shorter), 0) << size << " sealed bytes";
    }
  }
}

TEST(PlanCorruption, OtherVersionsAreRefused) {
  std::vector<uint8_t> bytes = encodePlan(samplePlan().plan);
  bytes[8] = planVersion + 1;
  EXPECT_EQ(refusal(bytes), 3002);
}

// Damage behind a right checksum meets the verifier and our own check.
static void damageAndSeal(const std::vector<uint8_t> &sound) {
  std::mt19937_64 random(20240607);
  static constexpr uint64_t extremes[] = {
      0,          1,          0x7f,      0xff,       0x7fffffff,
      0x80000000, 0xffffffff, INT64_MAX, UINT64_MAX, uint64_t(1) << 63};
  unsigned refused = 0, rounds = 0;
  auto attempt = [&](std::vector<uint8_t> damaged) {
    seal(damaged);
    refused += refusal(damaged) != 0;
    ++rounds;
  };

  // Each region once with each extreme value of each width.
  for (size_t at = headerBytes; at < sound.size(); ++at)
    for (uint64_t value : extremes) {
      const size_t width = size_t(1) << (random() % 4);
      if (at + width > sound.size())
        continue;
      std::vector<uint8_t> damaged = sound;
      std::memcpy(damaged.data() + at, &value, width);
      attempt(std::move(damaged));
    }
  // Several random places at once.
  for (unsigned round = 0; round < 5000; ++round) {
    std::vector<uint8_t> damaged = sound;
    for (unsigned i = 0, n = 1 + random() % 4; i < n; ++i)
      damaged[headerBytes + random() % (sound.size() - headerBytes)] =
          static_cast<uint8_t>(random());
    attempt(std::move(damaged));
  }
  // Names, padding and free numbers may change; most else may not.
  EXPECT_GT(refused, rounds / 4);
}

TEST(PlanCorruption, SealedDamageNeverCrashes) {
  damageAndSeal(encodePlan(shardedPlan().plan));
}

TEST(PlanCorruption, SealedDamageOfCubinsNeverCrashes) {
  damageAndSeal(encodePlan(cudaPlan().plan));
}

// An opcode that the schema lacks, and one whose table is of another kind.
TEST(PlanCorruption, UnknownOpcodeIsRefused) {
  PlanBuilder b;
  uint32_t slice = b.slice("x", b.arena("step", 64), 0, 64);
  b.function("f", body(fill(slice, 0, constant(64))));
  std::vector<uint8_t> sound = encodePlan(b.plan);
  const plan::Plan *root = plan::GetPlan(sound.data() + headerBytes);
  const plan::Instruction *instruction =
      root->functions()->Get(0)->body()->Get(0);
  const uint8_t *type =
      reinterpret_cast<const flatbuffers::Table *>(instruction)
          ->GetAddressOf(plan::Instruction::VT_OP_TYPE);
  ASSERT_NE(type, nullptr);
  for (unsigned code : {0u, 11u, 255u}) {
    std::vector<uint8_t> damaged = sound;
    damaged[static_cast<size_t>(type - sound.data())] =
        static_cast<uint8_t>(code);
    seal(damaged);
    EXPECT_EQ(refusal(damaged), 3011) << "opcode " << code;
  }
}

template <typename Table>
static auto none(flatbuffers::FlatBufferBuilder &builder) {
  return builder.CreateVector(std::vector<flatbuffers::Offset<Table>>());
}

// Many tables that share one long vector would make a small file mean much
// work.
TEST(PlanCorruption, SharedTablesAreRefused) {
  flatbuffers::FlatBufferBuilder builder;
  auto table = builder.CreateVector(std::vector<uint64_t>(1000, 0));
  auto arena = plan::CreateArena(builder, builder.CreateString("step"), 64);
  auto name = builder.CreateString("x");
  std::vector<flatbuffers::Offset<plan::Slice>> slices;
  for (int i = 0; i < 1000; ++i)
    slices.push_back(plan::CreateSlice(builder, name, 0, 0, 0, 8, 0, table));
  auto text = builder.CreateString("t");
  const plan::Mesh mesh(1, 1, false);
  plan::FinishPlanBuffer(
      builder,
      plan::CreatePlan(
          builder, text, text, &mesh, 0, none<plan::Scalar>(builder),
          builder.CreateVectorOfStrings({"compute"}), 0,
          builder.CreateVector(&arena, 1), builder.CreateVector(slices),
          none<plan::Kernel>(builder), none<plan::Function>(builder),
          none<plan::Port>(builder), none<plan::Port>(builder),
          none<plan::Unit>(builder), none<plan::Parameter>(builder), -1));
  std::vector<uint8_t> bytes = encodePlan(samplePlan().plan);
  bytes.resize(headerBytes);
  bytes.insert(bytes.end(), builder.GetBufferPointer(),
               builder.GetBufferPointer() + builder.GetSize());
  seal(bytes);
  EXPECT_EQ(refusal(bytes), 3022);
}
