#include "runtime/train/RunCheck.h"

#include "runtime/train/RankNumbers.h"
#include "test/unit/train/ToyRanks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <set>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;
using testing::HasSubstr;

TEST(RunCheck, FingerprintDependsOnAllOfTheRows) {
  const std::vector<Row> rows = {{{1, 2}, {-100, 2}}, {{3}, {3}}};
  std::set<uint64_t> seen{fingerprintRows(rows)};
  EXPECT_EQ(fingerprintRows(rows), *seen.begin());
  auto changed = [&](auto change) {
    std::vector<Row> other = rows;
    change(other);
    return seen.insert(fingerprintRows(other)).second;
  };
  EXPECT_TRUE(changed([](auto &r) { r[0].ids[0] = 5; }));
  EXPECT_TRUE(changed([](auto &r) { r[1].labels[0] = -100; }));
  EXPECT_TRUE(changed([](auto &r) { std::swap(r[0], r[1]); }));
  EXPECT_TRUE(changed([](auto &r) { r.pop_back(); }));
  EXPECT_TRUE(changed([](auto &r) { // the same tokens in one row
    r[0].ids.push_back(3);
    r[0].labels.push_back(3);
    r.pop_back();
  }));
  EXPECT_TRUE(changed([](auto &r) { r.emplace_back(); }));
}

namespace {

/// One tensor of a model.
class OneTensor final : public TensorSource {
public:
  explicit OneTensor(std::vector<float> numbers) : values(std::move(numbers)) {
    info.name = "w";
    info.shape = {static_cast<int64_t>(values.size())};
    info.storedType = "F32";
  }
  const TensorInfo *find(std::string_view name) const override {
    return name == info.name ? &info : nullptr;
  }
  std::vector<std::string> names() const override { return {info.name}; }
  void readF32(const TensorInfo &, int64_t begin, int64_t end,
               float *out) const override {
    std::copy(values.begin() + begin, values.begin() + end, out);
  }
  void readI64(const TensorInfo &, int64_t, int64_t, int64_t *) const override {}
  void release(const TensorInfo &) const override {}
  std::string location() const override { return "one tensor"; }

  TensorInfo info;
  std::vector<float> values;
};

} // namespace

TEST(RunCheck, FingerprintOfTensors) {
  const OneTensor usual(std::vector<float>(5000, 0.5f));
  std::set<uint64_t> seen{fingerprintTensors(usual)};
  EXPECT_EQ(fingerprintTensors(usual), *seen.begin());
  // First and last values and some in the middle are looked at.
  for (const size_t place : {0, 255, 2500, 4999}) {
    OneTensor other = usual;
    other.values[place] = 0.25f;
    EXPECT_TRUE(seen.insert(fingerprintTensors(other)).second) << place;
  }
  OneTensor renamed = usual, reshaped = usual;
  renamed.info.name = "v";
  reshaped.info.shape = {50, 100};
  EXPECT_TRUE(seen.insert(fingerprintTensors(renamed)).second);
  EXPECT_TRUE(seen.insert(fingerprintTensors(reshaped)).second);
  fingerprintTensors(OneTensor({}));
}

/// How the ranks end when rank 1 of three has `other`.
static std::vector<RankEnd> endsWith(const RunIdentity &other) {
  return onRanks(3, [&](Communicator &communicator) {
    const RunIdentity usual{"abcd", "seed: 1\nrank: 8\n", 7};
    checkRanksAgree(communicator, communicator.rank() == 1 ? other : usual);
  });
}

TEST(RunCheck, EqualRanksGoOn) {
  expectSuccess(endsWith({"abcd", "seed: 1\nrank: 8\n", 7}));
}

TEST(RunCheck, WhatDiffersIsNamedOnAllRanks) {
  const std::pair<RunIdentity, std::string> cases[] = {
      {{"abce", "seed: 1\nrank: 8\n", 7},
       "rank 1 has another plan than rank 0: 'abce', not 'abcd'"},
      {{"abcd", "seed: 1\nrank: 8\n", 8},
       "rank 1 has other data than rank 0: '0000000000000008', not "
       "'0000000000000007'"},
      {{"abcd", "seed: 1\nrank: 8\n", 7, 1},
       "rank 1 has other weights than rank 0: '0000000000000001', not "
       "'0000000000000000'"},
      {{"abcd", "seed: 1\nrank: 9\n", 7},
       "rank 1 has other options than rank 0: 'rank: 9', not 'rank: 8'"},
      {{"abcd", "seed: 1\n", 7},
       "rank 1 has other options than rank 0: nothing, not 'rank: 8'"},
      {{"abcd", "seed: 1\nrank: 8\nlr: 2\n", 7},
       "rank 1 has other options than rank 0: 'lr: 2', not nothing"},
  };
  for (const auto &[other, message] : cases)
    for (const RankEnd &end : endsWith(other)) {
      EXPECT_EQ(end.id, 7020);
      EXPECT_EQ(end.code, ExitCode::BadInput);
      EXPECT_THAT(end.message, HasSubstr(message));
    }
}

TEST(RankNumbers, BitForBitInRankOrder) {
  expectSuccess(onRanks(3, [](Communicator &communicator) {
    const auto rank = static_cast<double>(communicator.rank());
    const double mine[] = {rank, 0.1 + rank, -0.0,
                           std::numeric_limits<double>::infinity()};
    const auto all = exchangeNumbers(communicator, mine, "numbers");
    ASSERT_EQ(all.size(), 3u);
    for (size_t r = 0; r < all.size(); ++r) {
      const auto number = static_cast<double>(r);
      EXPECT_THAT(all[r], testing::ElementsAre(
                              number, 0.1 + number, 0.0,
                              std::numeric_limits<double>::infinity()));
      EXPECT_TRUE(std::signbit(all[r][2]));
    }
  }));
}

TEST(RankNumbers, AllGiveEquallyMany) {
  const auto ends = onRanks(2, [](Communicator &communicator) {
    const std::vector<double> mine(communicator.rank() == 0 ? 2 : 3);
    exchangeNumbers(communicator, mine, "losses");
  });
  for (const RankEnd &end : ends) {
    EXPECT_EQ(end.id, 7021);
    EXPECT_EQ(end.code, ExitCode::PeerFailure);
  }
  EXPECT_THAT(ends[0].message,
              HasSubstr("rank 1 gives 24 bytes of losses, this rank 16"));
}
