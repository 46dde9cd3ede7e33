//===- CommunicatorConformance.cpp - What all communicators do ------------===//
#include "test/unit/comm/Ranks.h"

#include "runtime/support/Error.h"

#include <barrier>
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

class CommunicatorConformance : public testing::TestWithParam<RankKind> {
protected:
  // Ends the whole test when something hangs.
  void SetUp() override { ::alarm(60); }
  void TearDown() override { ::alarm(0); }

  /// On each number of ranks of the kind.
  void onEach(const std::function<void(TestRank &)> &action,
              const RunOptions &options = {}) {
    for (int64_t size : GetParam().sizes) {
      SCOPED_TRACE(std::to_string(size) + " ranks");
      expectSuccess(onRanks(GetParam(), size, action, options));
    }
  }

  /// Whether the kind has more than one rank. Tests that need others stop here.
  bool hasOthers() const { return GetParam().sizes.back() > 1; }
};

/// What rank `rank` has at `index`: terms whose float sum depends on its order.
float term(int64_t rank, int64_t index) {
  static constexpr float terms[] = {3.f, 1e8f, -1e8f, 0.25f};
  return terms[rank % 4] + static_cast<float>((index * 7 + rank) % 13);
}

std::vector<float> termsOf(int64_t rank, int64_t count, int64_t first = 0) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(term(rank, first + i));
  return values;
}

/// start[i] + the terms of ranks `order`, one after the other; without start,
/// those of the first and the rest.
std::vector<float> sumOf(const std::vector<int64_t> &order, int64_t count,
                         int64_t first = 0,
                         const std::vector<float> *start = nullptr) {
  std::vector<float> sums = start ? *start : termsOf(order[0], count, first);
  for (size_t k = start ? 0 : 1; k < order.size(); ++k)
    for (int64_t i = 0; i < count; ++i)
      sums[static_cast<size_t>(i)] =
          sums[static_cast<size_t>(i)] + term(order[k], first + i);
  return sums;
}

std::vector<int64_t> upTo(int64_t size) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < size; ++i)
    order.push_back(i);
  return order;
}

uint8_t byteOf(int64_t rank, int64_t index) {
  return static_cast<uint8_t>(rank * 41 + index * 7 + index / 251);
}

std::vector<uint8_t> bytesOf(int64_t rank, int64_t count) {
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < count; ++i)
    bytes.push_back(byteOf(rank, i));
  return bytes;
}

void expectGathered(TestRank &rank, Channel &channel, int64_t count,
                    const std::vector<int64_t> &members) {
  std::vector<uint8_t> mine = bytesOf(rank.rank(), count);
  std::vector<uint8_t> all(mine.size() * members.size() + 1, 0xee), expected;
  channel.allGather(address(mine), address(all), count, "here");
  rank.device.synchronize();
  for (int64_t member : members)
    for (uint8_t byte : bytesOf(member, count))
      expected.push_back(byte);
  expected.push_back(0xee);
  EXPECT_TRUE(all == expected)
      << "rank " << rank.rank() << ", " << count << " bytes";
}

} // namespace

TEST(Terms, DependOnTheirOrder) {
  EXPECT_NE(sumOf({0, 1, 2}, 5), sumOf({2, 1, 0}, 5));
  EXPECT_NE(sumOf({0, 1, 2, 3}, 5), sumOf({3, 2, 1, 0}, 5));
  const std::vector<float> start(5, 0.5f);
  std::vector<float> after = sumOf({0, 1, 2, 3}, 5);
  for (float &value : after)
    value += 0.5f;
  EXPECT_NE(sumOf({0, 1, 2, 3}, 5, 0, &start), after);
}

TEST_P(CommunicatorConformance, KnowsItsRank) {
  for (int64_t size : GetParam().sizes) {
    std::vector<int64_t> found(static_cast<size_t>(size), -1);
    expectSuccess(onRanks(GetParam(), size, [&](TestRank &rank) {
      EXPECT_EQ(rank.size(), size);
      found[static_cast<size_t>(rank.rank())] = rank.rank();
    }));
    EXPECT_EQ(found, upTo(size));
  }
}

TEST_P(CommunicatorConformance, GathersInRankOrder) {
  onEach([](TestRank &rank) {
    Channel &channel = rank.openWorld();
    for (int64_t count : {0, 1, 7, 4095, 4096, 4097, 100003, (5 << 20) + 3})
      expectGathered(rank, channel, count, upTo(rank.size()));
  });
}

TEST_P(CommunicatorConformance, GathersInPlace) {
  onEach([](TestRank &rank) {
    Channel &channel = rank.openWorld();
    std::vector<uint8_t> all(static_cast<size_t>(rank.size()) * 5, 0);
    const auto own = bytesOf(rank.rank(), 5);
    std::copy(own.begin(), own.end(), all.begin() + rank.rank() * 5);
    channel.allGather(address(all) + static_cast<uint64_t>(rank.rank()) * 5,
                      address(all), 5, "");
    for (int64_t r = 0; r < rank.size(); ++r)
      for (int64_t i = 0; i < 5; ++i)
        EXPECT_EQ(all[static_cast<size_t>(r * 5 + i)], byteOf(r, i));
  });
}

TEST_P(CommunicatorConformance, ReducesRangesInRankOrder) {
  onEach([](TestRank &rank) {
    Channel &channel = rank.openWorld();
    for (int64_t ranges = 1; ranges <= rank.size(); ++ranges)
      for (int64_t count : {0, 1, 5, 1025, 300001})
        for (bool accumulate : {false, true}) {
          std::vector<float> from = termsOf(rank.rank(), ranges * count);
          const std::vector<float> start(static_cast<size_t>(count), 0.5f);
          std::vector<float> to = start;
          to.push_back(-7);
          channel.reduceScatter(address(from), address(to), count,
                                CommType::F32, static_cast<uint32_t>(ranges),
                                accumulate, "here");
          std::vector<float> expected =
              sumOf(upTo(rank.size()), count, rank.rank() % ranges * count,
                    accumulate ? &start : nullptr);
          expected.push_back(-7);
          EXPECT_TRUE(to == expected)
              << "rank " << rank.rank() << ", " << ranges << " ranges of "
              << count << (accumulate ? ", accumulated" : "");
        }
  });
}

TEST_P(CommunicatorConformance, SumsInRankOrder) {
  onEach([](TestRank &rank) {
    Channel &channel = rank.openWorld();
    for (int64_t count : {0, 1, 7, 4096, 4097, 700001}) {
      std::vector<float> data = termsOf(rank.rank(), count);
      channel.allReduce(address(data), count, CommType::F32, "here");
      EXPECT_TRUE(data == sumOf(upTo(rank.size()), count))
          << "rank " << rank.rank() << ", " << count;
    }
  });
}

TEST_P(CommunicatorConformance, SumsDoublesAndWrapsBytes) {
  onEach([](TestRank &rank) {
    Channel &channel = rank.openWorld();
    std::vector<double> doubles(3);
    std::vector<uint8_t> bytes(5);
    for (size_t i = 0; i < 3; ++i)
      doubles[i] =
          1e17 * static_cast<double>(rank.rank()) + static_cast<double>(i);
    for (size_t i = 0; i < 5; ++i)
      bytes[i] = static_cast<uint8_t>(200 + i);
    channel.allReduce(address(doubles), 3, CommType::F64, "");
    channel.allReduce(address(bytes), 5, CommType::U8, "");
    for (size_t i = 0; i < 3; ++i) {
      double sum = static_cast<double>(i);
      for (int64_t r = 1; r < rank.size(); ++r)
        sum = sum + (1e17 * static_cast<double>(r) + static_cast<double>(i));
      EXPECT_EQ(doubles[i], sum);
    }
    for (size_t i = 0; i < 5; ++i)
      EXPECT_EQ(bytes[i], static_cast<uint8_t>(
                              static_cast<size_t>(rank.size()) * (200 + i)));
  });
}

TEST_P(CommunicatorConformance, GroupsAreApart) {
  if (!hasOthers())
    return;
  expectSuccess(onRanks(GetParam(), 4, [](TestRank &rank) {
    for (const auto group : {plan::Group::Shard, plan::Group::Replica}) {
      const auto members = groupMembers(group, 4, 2, rank.rank());
      ASSERT_EQ(members.size(), 2u);
      Channel &channel = rank.open(members, 0, plan::EnumNameGroup(group));
      expectGathered(rank, channel, 9, members);
      std::vector<float> data = termsOf(rank.rank(), 5000);
      channel.allReduce(address(data), 5000, CommType::F32, "");
      EXPECT_TRUE(data == sumOf(members, 5000));
    }
    // A group that is no part of the mesh, without rank 0.
    if (rank.rank() % 2 == 1)
      expectGathered(rank, rank.open({1, 3}, 0, "odd"), 5, {1, 3});
    // Rank 0 must be there until the others have opened it.
    rank.communicator.exchange("x", "the end");
  }));
}

TEST_P(CommunicatorConformance, ChannelsOfOneNameAreApart) {
  onEach([](TestRank &rank) {
    Channel &first = rank.openWorld(0, "same");
    Channel &second = rank.openWorld(0, "same");
    expectGathered(rank, second, 3, upTo(rank.size()));
    expectGathered(rank, first, 4, upTo(rank.size()));
    expectGathered(rank, first, 5, upTo(rank.size()));
    expectGathered(rank, second, 6, upTo(rank.size()));
  });
}

TEST_P(CommunicatorConformance, StreamsHaveTheirOwnOrder) {
  RunOptions options;
  options.delays = 400us;
  onEach(
      [](TestRank &rank) {
        constexpr int64_t calls = 30;
        Channel &gather = rank.openWorld(1, "gather");
        Channel &reduce = rank.openWorld(2, "reduce");
        std::vector<std::vector<uint8_t>> mine, all;
        std::vector<std::vector<float>> sums;
        for (int64_t i = 0; i < calls; ++i) {
          mine.push_back(bytesOf(rank.rank() + i, 11 + i * 307));
          all.emplace_back(mine.back().size() *
                           static_cast<size_t>(rank.size()));
          sums.push_back(termsOf(rank.rank(), 1 + i * 101));
        }
        // Ranks give their calls in different orders to the two streams.
        for (int64_t i = 0; i < calls; ++i) {
          const auto k = static_cast<size_t>(i);
          const auto sum = [&] {
            reduce.allReduce(address(sums[k]),
                             static_cast<int64_t>(sums[k].size()),
                             CommType::F32, "");
          };
          if (rank.rank() % 2)
            sum();
          gather.allGather(address(mine[k]), address(all[k]),
                           static_cast<int64_t>(mine[k].size()), "");
          if (rank.rank() % 2 == 0)
            sum();
        }
        rank.device.synchronize();
        for (int64_t i = 0; i < calls; ++i) {
          const auto k = static_cast<size_t>(i);
          std::vector<uint8_t> expected;
          for (int64_t r = 0; r < rank.size(); ++r)
            for (uint8_t byte : bytesOf(r + i, 11 + i * 307))
              expected.push_back(byte);
          EXPECT_TRUE(all[k] == expected) << i;
          EXPECT_TRUE(sums[k] == sumOf(upTo(rank.size()), 1 + i * 101)) << i;
        }
      },
      options);
}

TEST_P(CommunicatorConformance, ExchangesTexts) {
  onEach([](TestRank &rank) {
    for (size_t bytes : {size_t(0), size_t(3), size_t(3) << 20}) {
      const auto of = [&](int64_t r) {
        return std::string(bytes * static_cast<size_t>(r + 1),
                           static_cast<char>('a' + r));
      };
      const auto all = rank.communicator.exchange(of(rank.rank()), "letters");
      ASSERT_EQ(static_cast<int64_t>(all.size()), rank.size());
      for (int64_t r = 0; r < rank.size(); ++r)
        EXPECT_TRUE(all[static_cast<size_t>(r)] == of(r)) << r;
    }
  });
}

TEST_P(CommunicatorConformance, WhoEndsEarlyHarmsNobody) {
  if (!hasOthers())
    return;
  const auto start = std::chrono::steady_clock::now();
  expectSuccess(onRanks(GetParam(), 4, [](TestRank &rank) {
    Channel &all = rank.openWorld(0, "all");
    Channel &group = rank.open(
        groupMembers(plan::Group::Shard, 4, 2, rank.rank()), 0, "pairs");
    expectGathered(rank, all, 100000, {0, 1, 2, 3});
    rank.communicator.exchange("x", "the end");
    if (rank.rank() < 2)
      return;
    std::this_thread::sleep_for(200ms);
    for (int i = 0; i < 10; ++i)
      expectGathered(rank, group, 5000, {2, 3});
  }));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

//===--- Failures -----------------------------------------------------------//

TEST_P(CommunicatorConformance, AnAbortEndsAll) {
  if (!hasOthers())
    return;
  for (bool inExchange : {false, true}) {
    SCOPED_TRACE(inExchange ? "exchange" : "collective");
    const auto start = std::chrono::steady_clock::now();
    const auto ends = onRanks(GetParam(), 4, [&](TestRank &rank) {
      Channel &channel = rank.openWorld();
      expectGathered(rank, channel, 8, {0, 1, 2, 3});
      if (rank.rank() == 2) {
        std::this_thread::sleep_for(100ms);
        throw Error(4099, ExitCode::RunFailure, "the disc is gone");
      }
      if (inExchange)
        rank.communicator.exchange("x", "numbers");
      else
        expectGathered(rank, channel, 100000, {0, 1, 2, 3});
    });
    EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
    EXPECT_EQ(ends[2].id, 4099);
    for (size_t rank : {0, 1, 3}) {
      EXPECT_EQ(ends[rank].id, 7003) << ends[rank].message;
      EXPECT_THAT(ends[rank].message, HasSubstr("rank 2 failed: "));
      EXPECT_THAT(ends[rank].message, HasSubstr("the disc is gone"));
      EXPECT_THAT(
          ends[rank].message,
          HasSubstr("--> rank " + std::to_string(rank) + ", " +
                    (inExchange ? "the exchange of numbers"
                                : "all_gather number 2 of 100000 bytes on "
                                  "the channel 'test', at here")));
    }
  }
}

/// Ranks that find the same fault in what they exchanged each say so: none hears of
/// the others' failure first.
TEST_P(CommunicatorConformance, WhatWasExchangedHolds) {
  for (int turn = 0; turn < 30; ++turn)
    for (const RankEnd &end :
         onRanks(GetParam(), GetParam().sizes.back(), [&](TestRank &rank) {
           rank.communicator.exchange("x", "numbers");
           throw Error(4099, ExitCode::RunFailure, "numbers that cannot be");
         }))
      EXPECT_EQ(end.id, 4099) << end.message;
}

TEST_P(CommunicatorConformance, AfterAFailureAllCallsFail) {
  if (!hasOthers())
    return;
  std::barrier opened(2);
  const auto ends = onRanks(GetParam(), 2, [&](TestRank &rank) {
    Channel &channel = rank.openWorld();
    opened.arrive_and_wait();
    if (rank.rank() == 0)
      rank.communicator.abort("no more");
    // The other one may be told only now.
    for (int i = 0; i < 2; ++i)
      try {
        rank.communicator.exchange("x", "numbers");
        ADD_FAILURE() << "exchanged";
      } catch (const Error &error) {
        EXPECT_EQ(error.id(), 7003);
        EXPECT_THAT(error.what(), HasSubstr("rank 0 failed: no more"));
      }
    rank.communicator.abort("another cause");
    expectGathered(rank, channel, 5, {0, 1});
  });
  for (const RankEnd &end : ends) {
    EXPECT_EQ(end.id, 7003);
    EXPECT_THAT(end.message, HasSubstr("rank 0 failed: no more"));
  }
}

TEST_P(CommunicatorConformance, DifferentCollectivesAreFound) {
  if (!hasOthers())
    return;
  using Call = std::function<void(Channel &, std::vector<float> &)>;
  const auto gather = [](int64_t bytes) -> Call {
    return [=](Channel &channel, std::vector<float> &data) {
      channel.allGather(address(data), address(data) + 200000, bytes, "here");
    };
  };
  const auto reduce = [](CommType type, uint32_t ranges,
                         bool accumulate) -> Call {
    return [=](Channel &channel, std::vector<float> &data) {
      channel.reduceScatter(address(data), address(data) + 200000, 64, type,
                            ranges, accumulate, "here");
    };
  };
  const Call sum = [](Channel &channel, std::vector<float> &data) {
    channel.allReduce(address(data), 64, CommType::F32, "here");
  };
  const std::pair<Call, Call> pairs[] = {
      {gather(8), gather(16)},
      {gather(8), gather(50000)},
      {gather(50000), gather(50004)},
      {gather(256), sum},
      {reduce(CommType::F32, 1, false), reduce(CommType::F64, 1, false)},
      {reduce(CommType::F32, 3, false), reduce(CommType::F32, 1, false)},
      {reduce(CommType::F32, 3, false), reduce(CommType::F32, 3, true)},
  };
  for (size_t i = 0; i < std::size(pairs); ++i) {
    SCOPED_TRACE(i);
    const auto ends = onRanks(GetParam(), 3, [&](TestRank &rank) {
      Channel &channel = rank.openWorld();
      std::vector<float> data(200000);
      (rank.rank() == 1 ? pairs[i].second : pairs[i].first)(channel, data);
    });
    for (const RankEnd &end : ends) {
      EXPECT_EQ(end.id, 7005) << end.message;
      EXPECT_THAT(end.message, HasSubstr("rank 1 calls "));
      EXPECT_THAT(end.message, HasSubstr("channel 'test', at here"));
    }
  }
}

TEST_P(CommunicatorConformance, ACallMoreOnOneRankIsFound) {
  if (!hasOthers())
    return;
  const auto ends = onRanks(GetParam(), 2, [&](TestRank &rank) {
    Channel &channel = rank.openWorld();
    expectGathered(rank, channel, 5, {0, 1});
    // Zero bytes are summed without the others.
    std::vector<float> none;
    if (rank.rank() == 1)
      channel.allReduce(0, 0, CommType::F32, "");
    expectGathered(rank, channel, 5, {0, 1});
  });
  for (const RankEnd &end : ends) {
    EXPECT_EQ(end.id, 7005) << end.message;
    EXPECT_THAT(end.message, HasSubstr("number 2"));
    EXPECT_THAT(end.message, HasSubstr("number 3"));
  }
}

TEST_P(CommunicatorConformance, DifferentExchangesAreFound) {
  if (!hasOthers())
    return;
  const auto ends = onRanks(GetParam(), 3, [&](TestRank &rank) {
    rank.communicator.exchange("x", "budgets");
    rank.communicator.exchange("x", rank.rank() == 2 ? "losses" : "hashes");
  });
  for (const RankEnd &end : ends) {
    EXPECT_EQ(end.id, 7005) << end.message;
    EXPECT_THAT(end.message, HasSubstr("losses"));
    EXPECT_THAT(end.message, HasSubstr("hashes"));
  }
}

TEST_P(CommunicatorConformance, WhoDoesNotComeIsNamed) {
  if (!hasOthers())
    return;
  RunOptions options;
  options.timeout = 500ms;
  for (bool inExchange : {false, true})
    for (int64_t late : {0, 2}) {
      SCOPED_TRACE((inExchange ? "exchange, rank " : "collective, rank ") +
                   std::to_string(late));
      const auto start = std::chrono::steady_clock::now();
      const auto ends = onRanks(
          GetParam(), 3,
          [&](TestRank &rank) {
            Channel &channel = rank.openWorld();
            if (rank.rank() == late)
              std::this_thread::sleep_for(900ms);
            if (inExchange)
              rank.communicator.exchange("x", "numbers");
            else
              expectGathered(rank, channel, 100000, {0, 1, 2});
          },
          options);
      EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
      for (const RankEnd &end : ends) {
        EXPECT_EQ(end.id, 7004) << end.message;
        EXPECT_THAT(
            end.message,
            HasSubstr("rank " + std::to_string(late) + " did not come to " +
                      (inExchange ? "the exchange of numbers"
                                  : "all_gather number 1 of 100000 bytes")));
        EXPECT_THAT(end.message, HasSubstr("within 500 ms"));
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CommunicatorConformance,
                         testing::Values(soloRank(), inProcessRanks(),
                                         glooRanks()),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
