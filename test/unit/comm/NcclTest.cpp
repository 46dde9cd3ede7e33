// Channels of NCCL between ranks that are threads, on fakes of the CUDA driver and
// of NCCL, with Gloo's control plane.
#include "runtime/comm/nccl/NcclCommunicator.h"

#include "runtime/comm/Solo.h"
#include "runtime/device/DeviceBuffer.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/LibraryVersions.h"
#include "runtime/support/Error.h"
#include "test/unit/comm/Ranks.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;
using namespace std::chrono_literals;
using plan::CommType;
using testing::HasSubstr;

namespace {

/// The fakes are found before anything else.
const int isSet = ::setenv("FSDPQ_CUDA_PATH", FSDPQ_FAKE_CUDA, 1);

/// Numbers on a GPU.
template <typename T>
class Array {
public:
  Array(CudaDevice &device, std::vector<T> values)
      : device(device), size(values.size()),
        buffer(device, size * sizeof(T), "test") {
    device.upload(at(), values.data(), size * sizeof(T));
  }
  DeviceAddress at(size_t index = 0) const {
    return buffer.address() + index * sizeof(T);
  }
  std::vector<T> values() const {
    std::vector<T> result(size);
    device.download(result.data(), at(), size * sizeof(T));
    return result;
  }

private:
  CudaDevice &device;
  size_t size;
  DeviceBuffer buffer;
};

struct GpuRank {
  Communicator &communicator;
  CudaDevice &device;
  int64_t rank, size;

  std::vector<int64_t> all() const {
    std::vector<int64_t> members;
    for (int64_t i = 0; i < size; ++i)
      members.push_back(i);
    return members;
  }
  std::unique_ptr<Channel> openWorld(uint16_t stream = 0) {
    return communicator.openChannel(all(), device, stream, "test (World)");
  }
};

std::vector<RankEnd> onGpus(int64_t size,
                            const std::function<void(GpuRank &)> &action,
                            std::chrono::milliseconds timeout = 20s) {
  const auto start = glooRanks().start(size, timeout);
  std::vector<RankEnd> ends(static_cast<size_t>(size));
  std::vector<std::jthread> threads;
  for (int64_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      RankEnd &end = ends[static_cast<size_t>(rank)];
      std::unique_ptr<Communicator> communicator;
      try {
        communicator = makeNccl(start(rank), {timeout, -1});
        CudaDevice device(static_cast<int>(rank % 2));
        device.prepare(3, 0);
        GpuRank own{*communicator, device, rank, size};
        action(own);
      } catch (const Error &error) {
        end = {error.id(), error.what()};
        if (communicator)
          communicator->abort("a test: " + std::to_string(error.id()));
      }
    });
  threads.clear();
  return ends;
}

class Nccl : public testing::Test {
protected:
  void SetUp() override { ::alarm(60); }
  void TearDown() override { ::alarm(0); }
};

} // namespace

TEST_F(Nccl, IsTheFake) { EXPECT_EQ(versionOf(CudaLibrary::Nccl), "2.27.3"); }

TEST_F(Nccl, GathersInRankOrder) {
  expectSuccess(onGpus(4, [](GpuRank &own) {
    const auto channel = own.openWorld(1);
    Array<float> all(own.device, std::vector<float>(12, -1));
    Array<float> mine(own.device, {float(own.rank), float(own.rank) + 0.5f, 7});
    channel->allGather(mine.at(), all.at(), 12, "here");
    std::vector<float> expected;
    for (int64_t rank = 0; rank < 4; ++rank)
      for (float value : {float(rank), float(rank) + 0.5f, 7.f})
        expected.push_back(value);
    EXPECT_EQ(all.values(), expected);
    EXPECT_EQ(channel->receivedBytes(), 36u);
  }));
}

TEST_F(Nccl, ReducesRangesAndAddsThem) {
  for (uint32_t ranges : {1u, 2u, 4u})
    for (bool accumulate : {false, true})
      expectSuccess(onGpus(4, [&](GpuRank &own) {
        const auto channel = own.openWorld(2);
        std::vector<float> terms;
        for (uint32_t i = 0; i < 3 * ranges; ++i)
          terms.push_back(static_cast<float>(i * 10 + uint32_t(own.rank)));
        Array<float> from(own.device, terms);
        Array<float> to(own.device, {100, 200, 300});
        channel->reduceScatter(from.at(), to.at(), 3, CommType::F32, ranges,
                               accumulate, "here");
        std::vector<float> expected;
        for (uint32_t i = 0; i < 3; ++i) {
          const uint32_t index = uint32_t(own.rank) % ranges * 3 + i;
          expected.push_back((accumulate ? 100.f * float(i + 1) : 0.f) +
                             float(index) * 40 + 6);
        }
        EXPECT_EQ(to.values(), expected)
            << "ranges " << ranges << " accumulate " << accumulate;
      }));
}

TEST_F(Nccl, SumsInPlaceAndOfDoublesAndBytes) {
  expectSuccess(onGpus(3, [](GpuRank &own) {
    const auto channel = own.openWorld();
    Array<float> floats(own.device, {float(own.rank), 2});
    Array<double> doubles(own.device, {0.25 * double(own.rank)});
    Array<uint8_t> bytes(own.device, std::vector<uint8_t>(3, 100));
    Array<uint8_t> byte(own.device, std::vector<uint8_t>(1));
    channel->allReduce(floats.at(), 2, CommType::F32, "here");
    channel->allReduce(doubles.at(), 1, CommType::F64, "here");
    channel->reduceScatter(bytes.at(), byte.at(), 1, CommType::U8, 3, false,
                           "here");
    EXPECT_EQ(floats.values(), (std::vector<float>{3, 6}));
    EXPECT_EQ(doubles.values(), (std::vector<double>{0.75}));
    EXPECT_EQ(byte.values(), std::vector<uint8_t>{300 - 256});
  }));
}

TEST_F(Nccl, GroupsAndStreamsAreApart) {
  expectSuccess(onGpus(4, [](GpuRank &own) {
    const auto shard = own.communicator.openChannel(
        groupMembers(plan::Group::Shard, 4, 2, own.rank), own.device, 1,
        "gather (Shard)");
    const auto replica = own.communicator.openChannel(
        groupMembers(plan::Group::Replica, 4, 2, own.rank), own.device, 2,
        "reduce (Replica)");
    const auto alone =
        own.communicator.openChannel({own.rank}, own.device, 0, "alone");
    Array<float> mine(own.device, {float(own.rank)}), pair(own.device, {0, 0}),
        sum(own.device, {float(own.rank)}), copy(own.device, {8});
    for (int i = 0; i < 20; ++i) {
      shard->allGather(mine.at(), pair.at(), 4, "here");
      alone->allGather(mine.at(), copy.at(), 4, "here");
    }
    own.device.synchronize(); // others read what is changed now
    replica->allReduce(sum.at(), 1, CommType::F32, "here");
    alone->allReduce(mine.at(), 1, CommType::F32, "here");
    alone->reduceScatter(mine.at(), mine.at(), 1, CommType::F32, 1, true,
                         "here");
    const float first = float(own.rank / 2 * 2);
    EXPECT_EQ(pair.values(), (std::vector<float>{first, first + 1}));
    EXPECT_EQ(sum.values(), std::vector<float>{2 * float(own.rank % 2) + 2});
    EXPECT_EQ(copy.values(), std::vector<float>{float(own.rank)});
    EXPECT_EQ(mine.values(), std::vector<float>{2 * float(own.rank)});
  }));
}

TEST_F(Nccl, OneRankNeedsNoNccl) {
  const auto communicator = makeNccl(makeSolo(), {});
  CudaDevice device(0);
  const auto channel = communicator->openChannel({0}, device, 0, "test");
  Array<float> from(device, {1, 2}), to(device, {10, 20});
  channel->reduceScatter(from.at(), to.at(), 2, CommType::F32, 1, true, "here");
  EXPECT_EQ(to.values(), (std::vector<float>{11, 22}));
}

TEST_F(Nccl, AFailureEndsTheCollectivesOfAll) {
  const auto ends = onGpus(3, [](GpuRank &own) {
    const auto channel = own.openWorld();
    Array<float> data(own.device, {1});
    if (own.rank == 1)
      throw Error(4050, ExitCode::RunFailure, "the GPU of rank 1 is broken");
    channel->allReduce(data.at(), 1, CommType::F32, "here");
    own.device.synchronize();
  });
  EXPECT_EQ(ends[1].id, 4050);
  for (size_t rank : {0, 2}) {
    EXPECT_EQ(ends[rank].id, 7003) << ends[rank].message;
    EXPECT_THAT(ends[rank].message, HasSubstr("rank 1 failed: a test: 4050"));
  }
}

TEST_F(Nccl, ACollectiveThatTakesTooLongIsNamed) {
  const auto ends = onGpus(
      2,
      [](GpuRank &own) {
        const auto channel = own.openWorld();
        Array<float> data(own.device, {1});
        if (own.rank == 1)
          std::this_thread::sleep_for(1500ms);
        channel->allReduce(data.at(), 1, CommType::F32, "llama.mlir:41:10");
        own.device.synchronize();
      },
      500ms);
  for (const RankEnd &end : ends) {
    EXPECT_EQ(end.id, 7004) << end.message;
    EXPECT_THAT(
        end.message,
        HasSubstr("all_reduce number 1 of 4 bytes of F32 on the channel "
                  "'test (World)', at llama.mlir:41:10 did not end within "
                  "500 ms on rank 0"));
  }
}

TEST_F(Nccl, OtherDevicesAreRefused) {
  const auto communicator = makeNccl(makeSolo(), {});
  CpuDevice device(1);
  EXPECT_THROW(communicator->openChannel({0}, device, 0, "test"), Error);
}
