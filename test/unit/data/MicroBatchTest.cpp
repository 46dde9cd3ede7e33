#include "TestFiles.h"

#include "runtime/data/MicroBatch.h"

#include <gmock/gmock.h>
#include <random>

using namespace fsdpq::rt;
using testing::ElementsAre;

namespace {

std::vector<int32_t> first(const std::vector<int32_t> &values, int64_t count) {
  return {values.begin(), values.begin() + count};
}

TEST(MicroBatch, TwoRows) {
  std::vector<Row> rows = {{{10, 11, 12, 13}, {-100, -100, 12, 13}},
                           {{20, 21, 22}, {20, -100, 22}}};
  MicroBatch batch = packRows(rows, 512);
  EXPECT_EQ(batch.tokens, 7);
  EXPECT_EQ(batch.paddedTokens, 128);
  EXPECT_EQ(batch.labelled, 3);
  EXPECT_EQ(batch.paddedLabelled, 128);
  EXPECT_THAT(first(batch.ids, 9),
              ElementsAre(10, 11, 12, 13, 20, 21, 22, 0, 0));
  EXPECT_THAT(first(batch.positions, 9),
              ElementsAre(0, 1, 2, 3, 0, 1, 2, 0, 0));
  EXPECT_THAT(first(batch.segmentStart, 9),
              ElementsAre(0, 0, 0, 0, 4, 4, 4, 7, 8));
  EXPECT_EQ(batch.segmentStart[127], 127);
  EXPECT_THAT(first(batch.labelRows, 5), ElementsAre(1, 2, 5, 0, 0));
  EXPECT_THAT(first(batch.labelTargets, 5), ElementsAre(12, 13, 22, -1, -1));
  EXPECT_THAT(first(batch.labelIndex, 8),
              ElementsAre(-1, 0, 1, -1, -1, 2, -1, -1));
}

TEST(MicroBatch, RowsAreCutBeforeTheShift) {
  std::vector<Row> rows = {{{1, 2, 3, 4}, {1, 2, 3, 4}}, {{5}, {5}}};
  MicroBatch batch = packRows(rows, 2);
  EXPECT_EQ(batch.tokens, 3);
  EXPECT_THAT(first(batch.ids, 3), ElementsAre(1, 2, 5));
  EXPECT_EQ(batch.labelled, 1);
  EXPECT_EQ(batch.labelRows[0], 0);
  EXPECT_EQ(batch.labelTargets[0], 2);
}

TEST(MicroBatch, CountingAgreesWithPacking) {
  std::mt19937 generator(1);
  std::vector<Row> rows(20);
  for (size_t i = 1; i < rows.size(); ++i) // the first is empty
    for (size_t t = 0; t < i; ++t) {
      rows[i].ids.push_back(1);
      rows[i].labels.push_back(generator() % 3 ? 1 : kIgnoredLabel);
    }
  int64_t total = 0;
  for (int64_t context : {1, 2, 7, 100})
    for (int64_t begin = 0; begin + 2 < 20; ++begin) {
      const int64_t chosen[] = {begin + 2, begin, begin + 1};
      const int64_t counted = countLabelled(rows, chosen, context);
      EXPECT_EQ(counted, packRows(rows, chosen, context).labelled);
      total += counted;
    }
  EXPECT_GT(total, 100);
}

TEST(MicroBatch, NothingToLearn) {
  std::vector<Row> rows = {{{1, 2, 3}, {-100, -100, -100}}};
  MicroBatch batch = packRows(rows, 8);
  EXPECT_EQ(batch.labelled, 0);
  EXPECT_EQ(batch.paddedLabelled, 0);
  EXPECT_TRUE(batch.labelRows.empty());
  EXPECT_EQ(batch.labelIndex, std::vector<int32_t>(128, -1));

  MicroBatch none = packRows(std::span<const Row>(), 8);
  EXPECT_EQ(none.tokens, 0);
  EXPECT_EQ(none.paddedTokens, 128);
  EXPECT_EQ(none.ids, std::vector<int32_t>(128, 0));
}

TEST(MicroBatch, RoundsUpToTheMultiple) {
  for (auto [length, padded] : {std::pair(127, 128), std::pair(128, 128),
                                std::pair(129, 256), std::pair(256, 256)}) {
    std::vector<Row> rows = {
        {std::vector<int32_t>(length, 7), std::vector<int32_t>(length, 7)}};
    MicroBatch batch = packRows(rows, 1000);
    EXPECT_EQ(batch.paddedTokens, padded) << length;
    EXPECT_EQ(batch.labelled, length - 1);
    EXPECT_EQ(batch.paddedLabelled, length == 129 || length < 129 ? 128 : 256);
  }
}

TEST(MicroBatch, ChosenRows) {
  std::vector<Row> rows = {{{1, 2}, {1, 2}}, {{3}, {3}}, {{4, 5}, {4, 5}}};
  std::vector<int64_t> chosen = {2, 0};
  EXPECT_THAT(first(packRows(rows, chosen, 8).ids, 4), ElementsAre(4, 5, 1, 2));
}

TEST(MicroBatch, InvariantsOverRandomRows) {
  std::mt19937 random(7);
  auto below = [&](uint32_t bound) { return random() % bound; };
  for (int round = 0; round < 200; ++round) {
    int64_t contextLength = 1 + below(90);
    std::vector<Row> rows(below(7));
    for (Row &row : rows)
      for (uint32_t left = below(120); left > 0; --left) {
        row.ids.push_back(below(1000));
        row.labels.push_back(below(3) ? row.ids.back() : kIgnoredLabel);
      }
    MicroBatch batch = packRows(rows, contextLength);

    ASSERT_EQ(batch.paddedTokens % kRowMultiple, 0);
    ASSERT_GE(batch.paddedTokens, std::max(batch.tokens, kRowMultiple));
    ASSERT_LT(batch.paddedTokens - batch.tokens,
              batch.tokens ? kRowMultiple : kRowMultiple + 1);
    ASSERT_EQ(batch.paddedLabelled % kRowMultiple, 0);
    ASSERT_LT(batch.paddedLabelled - batch.labelled, kRowMultiple);
    for (const std::vector<int32_t> *field :
         {&batch.ids, &batch.positions, &batch.segmentStart, &batch.labelIndex})
      ASSERT_EQ(static_cast<int64_t>(field->size()), batch.paddedTokens);
    ASSERT_EQ(batch.labelRows.size(), batch.labelTargets.size());
    ASSERT_EQ(static_cast<int64_t>(batch.labelRows.size()),
              batch.paddedLabelled);

    // Rebuild each token's place and label from the rows.
    int64_t token = 0, labelled = 0;
    for (const Row &row : rows) {
      int64_t length = std::min<int64_t>(static_cast<int64_t>(row.ids.size()),
                                         contextLength);
      for (int64_t t = 0; t < length; ++t, ++token) {
        ASSERT_EQ(batch.ids[token], row.ids[t]);
        ASSERT_EQ(batch.positions[token], t);
        ASSERT_EQ(batch.segmentStart[token], token - t);
        bool learnt = t + 1 < length && row.labels[t + 1] != kIgnoredLabel;
        ASSERT_EQ(batch.labelIndex[token], learnt ? labelled : -1);
        if (learnt) {
          ASSERT_EQ(batch.labelRows[labelled], token);
          ASSERT_EQ(batch.labelTargets[labelled++], row.labels[t + 1]);
        }
      }
    }
    ASSERT_EQ(batch.tokens, token);
    ASSERT_EQ(batch.labelled, labelled);
    for (; token < batch.paddedTokens; ++token) {
      ASSERT_EQ(batch.ids[token], 0);
      ASSERT_EQ(batch.positions[token], 0);
      ASSERT_EQ(batch.segmentStart[token], token);
      ASSERT_EQ(batch.labelIndex[token], -1);
    }
    for (; labelled < batch.paddedLabelled; ++labelled) {
      ASSERT_EQ(batch.labelRows[labelled], 0);
      ASSERT_EQ(batch.labelTargets[labelled], -1);
    }
  }
}

} // namespace
