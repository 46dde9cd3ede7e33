// Plans with collectives, on ranks that are threads of this process.
#include "runtime/comm/inprocess/InProcess.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/exec/Executor.h"
#include "runtime/support/Error.h"
#include "runtime/support/MappedFile.h"
#include "test/unit/plan/PlanBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;
using testing::HasSubstr;

namespace {

constexpr int64_t width = 64; // floats of a range

/// Numbers of the slices that tests look at.
struct Slices {
  uint32_t range, whole, sums, gradient, norm;
};

/// step: whole = all ranges of the shard group; sums = 2 * whole + 1;
/// gradient += this rank's range of the group's sums. finish: the gradient's
/// sum over the replicas; norm = the sum over all ranks. ahead: gathers, and
/// waits for nothing.
PlanBuilder meshPlan(uint32_t ranks, uint32_t shards, Slices &slices) {
  using plan::CommType;
  using plan::Group;
  PlanBuilder b;
  b.mesh(ranks, shards);
  const uint16_t gather = b.stream("gather"), reduce = b.stream("reduce");
  const uint32_t started = b.event(), gathered = b.event(), summed = b.event(),
                 reduced = b.event();
  constexpr uint64_t bytes = width * sizeof(float);
  const uint32_t base = b.arena("base", bytes),
                 step = b.arena("step", 2 * shards * bytes),
                 rest = b.arena("rest", bytes + 8);
  slices.range = b.slice("range", base, 0, bytes);
  slices.whole = b.slice("whole", step, 0, shards * bytes);
  slices.sums = b.slice("sums", step, shards * bytes, shards * bytes);
  slices.gradient = b.slice("gradient", rest, 0, bytes);
  slices.norm = b.slice("norm", rest, bytes, 8);
  MappedFile object(FSDPQ_TEST_KERNELS);
  const uint32_t kernel = b.kernel(
      "scale_shift", {object.data(), object.data() + object.size()});
  b.function(
      "step",
      body(record(started), on(gather, wait(started)),
           located("toy.mlir:3:1",
                   on(gather, allGather(Group::Shard, slices.whole,
                                        slices.range, bytes))),
           on(gather, record(gathered)), wait(gathered),
           writingFrom(1, launch(kernel, constant(shards * width),
                                 sliceArg(slices.whole), sliceArg(slices.sums),
                                 extentArg(constant(1)), constantArg(2))),
           record(summed), on(reduce, wait(summed)),
           on(reduce, reduceScatter(Group::Shard, CommType::F32,
                                    slices.gradient, slices.sums, width, shards,
                                    /*accumulate=*/true)),
           on(reduce, record(reduced)), wait(reduced)));
  b.function("finish",
             body(allReduce(Group::Replica, CommType::F32, slices.gradient,
                            width),
                  allReduce(Group::World, CommType::F64, slices.norm, 1)));
  b.function("ahead", body(on(gather, allGather(Group::Shard, slices.whole,
                                                slices.range, bytes))));
  return b;
}

/// Calls `action` for each rank in a thread of its own and returns what Errors
/// they ended with ("" for none).
std::vector<std::string>
onRanks(int64_t ranks, const std::function<void(Communicator &)> &action) {
  auto communicators = makeInProcessRanks(ranks, std::chrono::seconds(8));
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < errors.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        action(*communicators[rank]);
      } catch (const Error &error) {
        errors[rank] = error.what();
      }
    });
  threads.clear();
  return errors;
}

CpuDeviceOptions delayed(int64_t rank) {
  CpuDeviceOptions options;
  options.threads = 1;
  options.delays = {static_cast<uint64_t>(rank) * 1000 + 7,
                    std::chrono::microseconds(300)};
  return options;
}

std::vector<float> rangeOfRank(int64_t rank) {
  std::vector<float> values(width);
  std::iota(values.begin(), values.end(), static_cast<float>(1000 * rank));
  return values;
}

std::vector<float> floats(const Executor &executor, uint32_t slice,
                          size_t count) {
  std::vector<float> values(count);
  executor.readSlice(slice, 0, values.data(), count * sizeof(float));
  return values;
}

class MeshPlan
    : public testing::TestWithParam<std::pair<uint32_t, uint32_t>> {};

} // namespace

TEST_P(MeshPlan, GathersComputesAndReduces) {
  const auto [ranks, shards] = GetParam();
  constexpr int steps = 10;
  Slices slices;
  const auto plan = meshPlan(ranks, shards, slices).load();
  const auto errors = onRanks(ranks, [&, shards = shards,
                                      ranks = ranks](Communicator &rank) {
    CpuDevice device(delayed(rank.rank()));
    Executor executor(plan, device, rank);
    EXPECT_EQ(&executor.communicator(), &rank);
    const std::vector<float> mine = rangeOfRank(rank.rank());
    executor.writeSlice(slices.range, 0, mine.data(), width * sizeof(float));
    const double norm = 1 << rank.rank();
    executor.writeSlice(slices.norm, 0, &norm, sizeof norm);
    for (int step = 0; step < steps; ++step)
      executor.run(executor.function("step"));

    const int64_t first = rank.rank() / shards * shards;
    std::vector<float> expected;
    for (int64_t member = first; member < first + shards; ++member)
      for (float value : rangeOfRank(member))
        expected.push_back(value);
    EXPECT_EQ(floats(executor, slices.whole, shards * width), expected);

    // Each member has the same sums; ranks with one position hold one range.
    executor.run(executor.function("finish"));
    std::vector<float> gradient(width, 0);
    for (int64_t replica = 0; replica < ranks / shards; ++replica) {
      const auto range = rangeOfRank(replica * shards + rank.rank() % shards);
      for (int64_t i = 0; i < width; ++i)
        gradient[i] += steps * shards * (2 * range[i] + 1);
    }
    EXPECT_EQ(floats(executor, slices.gradient, width), gradient);
    double sum = 0;
    executor.readSlice(slices.norm, 0, &sum, sizeof sum);
    EXPECT_EQ(sum, (1 << ranks) - 1);
  });
  EXPECT_EQ(errors, std::vector<std::string>(ranks));
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, MeshPlan,
    testing::Values(std::pair(1u, 1u), std::pair(2u, 2u), std::pair(3u, 3u),
                    std::pair(4u, 2u), std::pair(4u, 1u)),
    [](const auto &info) {
      return std::to_string(info.param.first) + "_" +
             std::to_string(info.param.second);
    });

TEST(ExecutorOnRanks, OpensTheChannelsThatThePlanUses) {
  /// Notes the channels; they do nothing.
  class Noting final : public Communicator {
  public:
    class Silent final : public Channel {
      void allGather(DeviceAddress, DeviceAddress, int64_t,
                     const char *) override {}
      void reduceScatter(DeviceAddress, DeviceAddress, int64_t, plan::CommType,
                         uint32_t, bool, const char *) override {}
      void allReduce(DeviceAddress, int64_t, plan::CommType,
                     const char *) override {}
      uint64_t receivedBytes() const override { return 0; }
    };
    std::vector<std::string> opened;

    int64_t rank() const override { return 2; }
    int64_t size() const override { return 4; }
    std::unique_ptr<Channel> openChannel(const std::vector<int64_t> &members,
                                         Device &, uint16_t stream,
                                         const std::string &name) override {
      std::string line = name + " on " + std::to_string(stream) + ":";
      for (int64_t member : members)
        line += " " + std::to_string(member);
      opened.push_back(line);
      return std::make_unique<Silent>();
    }
    std::vector<std::string> exchange(std::string_view,
                                      std::string_view) override {
      return {};
    }
    void abort(const std::string &) noexcept override {}
  };

  Noting communicator;
  CpuDevice device(1);
  Slices slices;
  Executor executor(meshPlan(4, 2, slices).load(), device, communicator);
  EXPECT_THAT(communicator.opened,
              testing::ElementsAre("gather (shard) on 1: 2 3",
                                   "reduce (shard) on 2: 2 3",
                                   "compute (replica) on 0: 0 2",
                                   "compute (world) on 0: 0 1 2 3"));
  PlanBuilder none;
  none.mesh(4, 2);
  communicator.opened.clear();
  Executor without(none.load(), device, communicator);
  EXPECT_THAT(communicator.opened, testing::IsEmpty());
}

TEST(ExecutorOnRanks, AFailureOfOneRankEndsAll) {
  Slices slices;
  const auto plan = meshPlan(3, 3, slices).load();
  const auto errors = onRanks(3, [&](Communicator &rank) {
    CpuDevice device(1);
    Executor executor(plan, device, rank);
    executor.run(executor.function("step"));
    if (rank.rank() == 1) // seen by a later call
      device.hostCall(
          [] { throw Error(4099, ExitCode::RunFailure, "the disc is gone"); }, 1);
    executor.run(executor.function("step"));
    floats(executor, slices.gradient, 1);
  });
  EXPECT_THAT(errors[1], HasSubstr("error[FSDPQ-4099]: the disc is gone"));
  for (const std::string &other : {errors[0], errors[2]}) {
    EXPECT_THAT(other, HasSubstr("FSDPQ-7003"));
    EXPECT_THAT(other, HasSubstr("rank 1 failed"));
    EXPECT_THAT(other, HasSubstr("the disc is gone"));
  }
}

namespace {

/// What rank 0 of two hears in an exchange while rank 1's gather waits for it
/// and another stream of rank 1 fails. Then rank 1 does `action`.
std::string heardOfAFailure(const std::function<void(Executor &)> &action) {
  Slices slices;
  const auto plan = meshPlan(2, 2, slices).load();
  return onRanks(2, [&](Communicator &rank) {
    CpuDevice device(1);
    Executor executor(plan, device, rank);
    if (rank.rank() == 0) {
      rank.exchange("", "readiness");
      return;
    }
    executor.run(executor.function("ahead"));
    device.hostCall(
        [] { throw Error(4099, ExitCode::RunFailure, "the disc is gone"); }, 2);
    action(executor);
  })[0];
}

} // namespace

TEST(ExecutorOnRanks, AFailureIsToldWhileAnotherStreamWaits) {
  const std::string heard = heardOfAFailure([](Executor &executor) {
    try {
      float first;
      executor.readSlice(0, 0, &first, sizeof first);
      ADD_FAILURE() << "read";
    } catch (const Error &error) {
      EXPECT_EQ(error.id(), 4099);
    }
  });
  EXPECT_THAT(heard, HasSubstr("FSDPQ-7003"));
  EXPECT_THAT(heard, HasSubstr("the disc is gone"));
}

TEST(ExecutorOnRanks, AFailureIsToldWhenNobodyCallsAgain) {
  const std::string heard = heardOfAFailure([](Executor &) {});
  EXPECT_THAT(heard, HasSubstr("FSDPQ-7003"));
  EXPECT_THAT(heard, HasSubstr("the disc is gone"));
}

TEST(ExecutorOnRanks, TracesShowAllRanks) {
  Slices slices;
  const auto plan = meshPlan(2, 2, slices).load();
  std::vector<std::string> pieces;
  const auto errors = onRanks(2, [&](Communicator &rank) {
    CpuDevice device(1);
    Trace trace(rank.rank());
    Executor executor(plan, device, rank);
    executor.setTrace(&trace);
    EXPECT_EQ(executor.trace(), &trace);
    for (int step = 0; step < 3; ++step) {
      Trace::Span span(executor.trace(), "micro-step");
      if (rank.rank() == 1 && step == 2) // rank 0 waits for its gather
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
      executor.run(executor.function("step"));
    }
    executor.setTrace(nullptr);
    executor.run(executor.function("step")); // leaves no events

    const auto times = trace.times();
    EXPECT_EQ(times.size(), 3u);
    EXPECT_EQ(times[1].stream, "gather");
    EXPECT_EQ(times[0].communication, 0);
    EXPECT_GT(times[0].work, 0);
    EXPECT_EQ(times[2].work, 0);
    if (rank.rank() == 0) {
      EXPECT_GE(times[1].communication, 0.025);
      EXPECT_GE(times[0].waiting, 0.025);
    }
    const auto all = rank.exchange(trace.serialise(), "traces");
    if (rank.rank() == 0)
      pieces = all;
  });
  ASSERT_EQ(errors, std::vector<std::string>(2));

  const auto file = nlohmann::json::parse(joinTraces(pieces));
  std::map<std::string, int> counts;
  for (const auto &event : file.at("traceEvents")) {
    if (event.at("ph") != "X")
      continue;
    EXPECT_GE(event.at("ts"), 0);
    EXPECT_GE(event.at("dur"), 0);
    const std::string name = event.at("name");
    if (name != "wait") // may be too short to be shown
      ++counts[std::to_string(event.at("pid").get<int>()) + "." +
               std::to_string(event.at("tid").get<int>()) + " " + name];
    if (name == "all_gather range") {
      EXPECT_EQ(event.at("args").at("location"), "toy.mlir:3:1");
      EXPECT_EQ(event.at("args").at("bytes"), 256);
    }
  }
  std::map<std::string, int> expected;
  for (const std::string rank : {"0", "1"})
    for (const std::string name :
         {".0 scale_shift", ".1 all_gather range", ".2 reduce_scatter sums",
          ".3 micro-step"})
      expected[rank + name] = 3;
  EXPECT_EQ(counts, expected);
}
