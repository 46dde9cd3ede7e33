//===- MmaAttentionTest.cpp - Attention on mma.sync, emulated -------------===//
//
// Forward, delta, gradQ and gradKV in a row against the same in double, from
// the same bf16 inputs.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cuda/Skeletons/Attention.h"
#include "compiler/Target/Cuda/Skeletons/MmaPieces.h"
#include "test/unit/cuda/Bf16.h"
#include "test/unit/cuda/Emulator.h"
#include "test/unit/cuda/GuardedBuffer.h"

#include <cmath>
#include <gtest/gtest.h>
#include <ostream>
#include <random>
#include <vector>

using namespace fsdpq;
using namespace fsdpq::cuda;
using namespace fsdpq::test;

namespace {

struct Case {
  const char *architecture;
  int64_t heads, kvHeads, headDim;
  int64_t window;
  bool packed;
  int64_t rows;
  std::vector<int> starts; ///< first rows of the segments

  AttentionParams params() const {
    return {heads, kvHeads, headDim, window, 1 / std::sqrt(double(headDim)),
            packed};
  }
};

std::ostream &operator<<(std::ostream &os, const Case &c) {
  return os << c.architecture << "_" << c.heads << "_" << c.kvHeads << "_"
            << c.headDim << "_window_" << c.window
            << (c.packed ? "_packed_" : "_apart_") << c.rows;
}

/// rows x heads x headDim numbers.
struct Matrix {
  int64_t heads, headDim;
  std::vector<double> values;

  Matrix(int64_t rows, int64_t heads, int64_t headDim)
      : heads(heads), headDim(headDim), values(rows * heads * headDim) {}
  double *at(int64_t row, int64_t head) {
    return &values[(row * heads + head) * headDim];
  }
};

double dot(const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

void addTo(double *to, double factor, const double *from, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    to[i] += factor * from[i];
}

/// What is computed, in double.
struct Expected {
  Matrix o, dq, dk, dv;
  std::vector<double> lse; ///< rows x heads

  Expected(const Case &c, const std::vector<int> &segments, Matrix &q,
           Matrix &k, Matrix &v, Matrix &grad)
      : o(c.rows, c.heads, c.headDim), dq(o), dk(c.rows, c.kvHeads, c.headDim),
        dv(dk), lse(c.rows * c.heads) {
    const int64_t dim = c.headDim;
    const double scale = c.params().scale;
    for (int64_t row = 0; row < c.rows; ++row)
      for (int64_t head = 0; head < c.heads; ++head) {
        const int64_t kvHead = head / (c.heads / c.kvHeads);
        int64_t first = segments[row];
        if (c.window)
          first = std::max(first, row - c.window + 1);
        std::vector<double> p(row + 1);
        double sum = 0;
        for (int64_t key = first; key <= row; ++key)
          sum += p[key] =
              std::exp(scale * dot(q.at(row, head), k.at(key, kvHead), dim));
        lse[row * c.heads + head] = std::log(sum);
        for (int64_t key = first; key <= row; ++key)
          addTo(o.at(row, head), p[key] /= sum, v.at(key, kvHead), dim);
        const double delta = dot(grad.at(row, head), o.at(row, head), dim);
        for (int64_t key = first; key <= row; ++key) {
          const double ds =
              scale * p[key] *
              (dot(grad.at(row, head), v.at(key, kvHead), dim) - delta);
          addTo(dq.at(row, head), ds, k.at(key, kvHead), dim);
          addTo(dk.at(key, kvHead), ds, q.at(row, head), dim);
          addTo(dv.at(key, kvHead), p[key], grad.at(row, head), dim);
        }
      }
  }
};

/// A matrix of bf16 with random columns [column, column + heads * headDim), and
/// what they are.
Matrix fill(GuardedBuffer<uint16_t> &buffer, int64_t rows, int64_t pitch,
            int64_t column, int64_t heads, int64_t headDim,
            std::mt19937 &generator) {
  std::normal_distribution<float> normal;
  Matrix matrix(rows, heads, headDim);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < heads * headDim; ++i) {
      uint16_t bits = toBf16(normal(generator));
      buffer[row * pitch + column + i] = bits;
      matrix.values[row * heads * headDim + i] = fromBf16(bits);
    }
  return matrix;
}

/// Products in bf16 are off by some 2^-9 of what is summed up, which where it
/// cancels is more than the sum.
void expectNear(const char *what, GuardedBuffer<uint16_t> &buffer,
                int64_t pitch, int64_t column, const Matrix &expected) {
  const int64_t width = expected.heads * expected.headDim;
  const int64_t rows = expected.values.size() / width;
  double squares = 0, errors = 0;
  for (double x : expected.values)
    squares += x * x;
  // Where each row sees itself only, dq and dk are 0.
  squares = std::max(squares, 1e-4 * expected.values.size());
  const double size = std::sqrt(squares / expected.values.size());
  int64_t wrong = 0;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < width; ++i) {
      const double x = fromBf16(buffer[row * pitch + column + i]);
      const double y = expected.values[row * width + i];
      errors += (x - y) * (x - y);
      if (!(std::abs(x - y) <= 0.06 * (size + std::abs(y))) && ++wrong <= 4)
        ADD_FAILURE() << what << " row " << row << " column " << i << ": " << x
                      << " instead of " << y;
    }
  EXPECT_EQ(wrong, 0) << what;
  EXPECT_LT(std::sqrt(errors / squares), 5e-3) << what;
}

class MmaAttention : public testing::TestWithParam<Case> {};

} // namespace

TEST_P(MmaAttention, GivesTheValues) {
  const Case &c = GetParam();
  const AttentionParams params = c.params();
  const auto architecture = Architecture::parse(c.architecture);
  ASSERT_TRUE(architecture && hasMmaAttention(params, *architecture));
  const auto forward =
      EmulatedKernel::compile(emitMmaAttention(params, *architecture));
  const auto delta = EmulatedKernel::compile(emitAttentionDelta(params));
  const auto gradQ =
      EmulatedKernel::compile(emitMmaAttentionGradQ(params, *architecture));
  const auto gradKV =
      EmulatedKernel::compile(emitMmaAttentionGradKV(params, *architecture));
  ASSERT_EQ(forward.error() + delta.error() + gradQ.error() + gradKV.error(),
            "");

  std::vector<int> rowSegments;
  for (size_t i = 0; i < c.starts.size(); ++i)
    rowSegments.resize(i + 1 < c.starts.size() ? c.starts[i + 1] : c.rows,
                       c.starts[i]);
  const int64_t oPitch = c.heads * c.headDim;
  const int64_t qPitch = params.qPitch(), kvPitch = params.kvPitch();
  std::mt19937 generator(1);
  GuardedBuffer<int> segments(rowSegments);
  GuardedBuffer<uint16_t> qBuffer(c.rows * qPitch), gradO(c.rows * oPitch);
  GuardedBuffer<uint16_t> kBuffer(c.packed ? 0 : c.rows * kvPitch);
  GuardedBuffer<uint16_t> vBuffer(c.packed ? 0 : c.rows * kvPitch);
  auto &kHome = c.packed ? qBuffer : kBuffer,
       &vHome = c.packed ? qBuffer : vBuffer;
  Matrix q = fill(qBuffer, c.rows, qPitch, 0, c.heads, c.headDim, generator);
  Matrix k = fill(kHome, c.rows, kvPitch, params.kColumn(), c.kvHeads,
                  c.headDim, generator);
  Matrix v = fill(vHome, c.rows, kvPitch, params.vColumn(), c.kvHeads,
                  c.headDim, generator);
  Matrix grad = fill(gradO, c.rows, oPitch, 0, c.heads, c.headDim, generator);
  const Expected expected(c, rowSegments, q, k, v, grad);

  std::vector<std::vector<uint16_t>> before;
  for (Order order : {Order::Ascending, Order::Descending}) {
    GuardedBuffer<uint16_t> o(c.rows * oPitch), dq(c.rows * qPitch);
    GuardedBuffer<uint16_t> dk(kBuffer.size()), dv(vBuffer.size());
    GuardedBuffer<float> lse(c.rows * c.heads), rowDelta(c.rows * c.heads);
    std::vector<Argument> inputs = {qBuffer.data()};
    if (!c.packed)
      inputs.insert(inputs.end(), {kBuffer.data(), vBuffer.data()});
    auto with = [&](std::vector<Argument> more) {
      more.insert(more.begin(), inputs.begin(), inputs.end());
      return more;
    };
    const int64_t items = c.rows / 32 * c.heads,
                  kvItems = c.rows / 32 * c.kvHeads;
    ASSERT_EQ(forward.launch(with({segments.data(), o.data(), lse.data()}),
                             items, 3, order),
              "");
    ASSERT_EQ(delta.launch({gradO.data(), o.data(), rowDelta.data()}, c.rows, 3,
                           order),
              "");
    ASSERT_EQ(gradQ.launch(with({gradO.data(), lse.data(), rowDelta.data(),
                                 segments.data(), dq.data()}),
                           items, 3, order),
              "");
    if (c.packed) { // nothing is written beside the columns of q
      for (int64_t row = 0; row < c.rows; ++row)
        for (int64_t i = params.kColumn(); i < qPitch; ++i)
          ASSERT_EQ(dq[row * qPitch + i], 0xffff) << row << " " << i;
    }
    std::vector<Argument> grads = {dq.data()};
    if (!c.packed)
      grads = {dk.data(), dv.data()};
    grads.push_back(c.rows);
    std::vector<Argument> more = {gradO.data(), lse.data(), rowDelta.data(),
                                  segments.data()};
    more.insert(more.end(), grads.begin(), grads.end());
    ASSERT_EQ(gradKV.launch(with(more), kvItems, 3, order), "");

    expectNear("o", o, oPitch, 0, expected.o);
    for (size_t i = 0; i < lse.size(); ++i)
      ASSERT_NEAR(lse[i], expected.lse[i], 1e-4) << i;
    expectNear("dq", dq, qPitch, 0, expected.dq);
    expectNear("dk", c.packed ? dq : dk, kvPitch, params.kColumn(),
               expected.dk);
    expectNear("dv", c.packed ? dq : dv, kvPitch, params.vColumn(),
               expected.dv);

    const std::vector<std::vector<uint16_t>> results = {
        o.values(), dq.values(), dk.values(), dv.values()};
    if (order == Order::Ascending)
      before = results;
    else
      EXPECT_TRUE(results == before) << "the order of the threads matters";
  }
}

static const std::vector<int> ragged = {0, 37, 38, 100, 128, 201, 255};

INSTANTIATE_TEST_SUITE_P(
    , MmaAttention,
    testing::Values(
        Case{"sm_90a", 4, 2, 64, 0, true, 256, ragged},
        Case{"sm_90a", 4, 2, 128, 0, true, 256, ragged},
        Case{"sm_90a", 4, 1, 128, 50, false, 256, {0, 200}},
        Case{"sm_89", 4, 2, 128, 0, false, 128, {0}},
        Case{"sm_89", 2, 1, 80, 100, true, 256, {0, 191}},
        Case{"sm_90a", 2, 2, 96, 0, false, 256, ragged},
        Case{"sm_90a", 2, 1, 16, 0, true, 128, {0, 1, 64}},
        Case{"sm_90a", 2, 1, 40, 1, false, 128, {0, 70}}, // zeros on chip
        Case{"sm_90a", 2, 1, 256, 0, true, 256, ragged},  // two passes
        Case{"sm_89", 1, 1, 256, 70, false, 128, {0, 20}},
        // More tiles of queries than a warp looks at in one go.
        Case{"sm_90a", 1, 1, 16, 0, true, 2432, {0, 100, 2300}}),
    testing::PrintToStringParamName());

TEST(MmaAttentionText, EachTileOfEachHeadHasOneBlock) {
  AttentionParams params = {21, 7, 128, 0, 1, true};
  KernelText kernel{"places",
                    mmaConstants(params, 128, 64, 4) + mmaInstructions(params) +
                        mmaTileText(params) + R"(
extern "C" __global__ void places(int *blocks, int *head, long long rows,
                                  long long items) {
  const int tiles = (int)rows / queryRows;
  const Place place = place_of_block<group, 2 * headDim>(tiles, (int)rows);
  blocks[place.tile * heads + place.head] = blockIdx.x;
  head[blockIdx.x] = place.head;
}
)",
                    {1, 0, 1, 0, {}}};
  const auto places = EmulatedKernel::compile(kernel);
  ASSERT_EQ(places.error(), "");
  for (int64_t rows : {128, 1024, 128 * 200}) {
    const int64_t items = rows / 128 * params.heads;
    GuardedBuffer<int> blocks(items), head(items); // -1
    ASSERT_EQ(places.launch({blocks.data(), head.data(), rows}, items), "");
    for (int64_t i = 0; i < items; ++i)
      ASSERT_GE(blocks[i], 0) << rows << " rows, tile and head " << i;
    // As many blocks as places, so each has one. 200 tiles of a key head are
    // 12.5 MiB of k and v: one key head at a time.
    if (rows == 128 * 200)
      EXPECT_EQ(head[200 * 3 - 1], 2);
    else
      EXPECT_EQ(head[params.heads - 1], params.heads - 1);
  }
}

TEST(MmaAttentionText, TilesFitEveryArchitecture) {
  for (const char *name :
       {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"})
    for (int64_t dim = 8; dim <= 256; dim += 8) {
      const auto architecture = Architecture::parse(name);
      ASSERT_TRUE(architecture) << name;
      AttentionParams params = {4, 2, dim, 0, 1, true};
      EXPECT_TRUE(hasMmaAttention(params, *architecture)) << name << " " << dim;
    }
  const auto hopper = Architecture::parse("sm_90a");
  EXPECT_FALSE(hasMmaAttention({4, 2, 264, 0, 1, true}, *hopper));
  EXPECT_FALSE(hasMmaAttention({4, 2, 60, 0, 1, true}, *hopper));
  EXPECT_FALSE(hasMmaAttention({4, 3, 64, 0, 1, true}, *hopper));
  EXPECT_FALSE(hasMmaAttention({4, 2, 64, 0, -1, true}, *hopper));
}
