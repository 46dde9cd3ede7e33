//===- KernelBodies.cpp - Kernels of tfm operations against plain loops ---===//

#include "runtime/support/SplitMix.h"
#include "test/unit/compiler/KernelHarness.h"

#include <bit>
#include <limits>
#include <numeric>

using namespace fsdpq;
using namespace fsdpq::kernels;
using namespace fsdpq::test;

namespace {

template <typename T>
class KernelBodies : public testing::Test {
protected:
  KernelHarness harness;
  Type element = harness.type<T>();
  Type sum = harness.type<Sum<T>>();

  /// add(buildX, arguments...): the builder and location are filled in.
  template <typename Build, typename... Args>
  std::string add(Build build, Args... arguments) {
    return harness.add([&](OpBuilder &b, Location loc) {
      return build(b, loc, arguments...);
    });
  }

  std::vector<T> random(size_t count, double low = -2, double high = 2) {
    return uniform<T>(count, low, high, ++seed);
  }
  std::vector<Sum<T>> randomSums(size_t count, double low = -2,
                                 double high = 2) {
    return uniform<Sum<T>>(count, low, high, ++seed);
  }

  unsigned seed = 0;
};

using Elements = testing::Types<float, double, Bf16>;
TYPED_TEST_SUITE(KernelBodies, Elements);

/// Of gradients and optimizers, which are never bf16.
template <typename T>
class FlatKernels : public KernelBodies<T> {};
using FlatElements = testing::Types<float, double>;
TYPED_TEST_SUITE(FlatKernels, FlatElements);

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TYPED_TEST(KernelBodies, RmsNorm) {
  using T = TypeParam;
  struct Case {
    int64_t d;
    std::string plain, add, grad, addGrad, weightGrad;
  };
  std::vector<Case> cases;
  for (int64_t d : {1, 33, 100, 131, 576, 16384})
    cases.push_back({d, this->add(buildRmsNorm, d, this->element, 1e-5, false),
                     this->add(buildRmsNorm, d, this->element, 1e-5, true),
                     this->add(buildRmsNormGrad, d, this->element, false),
                     this->add(buildRmsNormGrad, d, this->element, true),
                     this->add(buildRmsNormWeightGrad, d, this->element)});
  for (const Case &c : cases) {
    SCOPED_TRACE(c.d);
    int64_t rows = 5, d = c.d;
    auto x = this->random(rows * d), residual = this->random(rows * d),
         w = this->random(d), dy = this->random(rows * d),
         plus = this->random(rows * d);
    auto dw = this->randomSums(d);
    std::vector<T> y(rows * d), sum(rows * d), dx(rows * d);
    std::vector<Sum<T>> rstd(rows);
    std::vector<double> wantedSum, wantedY, wantedRstd, wantedDx, wantedPlus,
        wantedDw = widen(dw);
    for (bool addResidual : {false, true}) {
      wantedY.clear();
      wantedRstd.clear();
      // The sum as it is stored.
      auto input = [&](int64_t i) -> double {
        return addResidual ? T(x[i] + residual[i]) : x[i];
      };
      for (int64_t row = 0; row < rows; ++row) {
        double squares = 0;
        for (int64_t i = row * d; i < (row + 1) * d; ++i) {
          double value = input(i);
          if (addResidual)
            wantedSum.push_back(value);
          squares += value * value;
        }
        wantedRstd.push_back(1 / std::sqrt(squares / d + 1e-5));
        for (int64_t i = row * d; i < (row + 1) * d; ++i)
          wantedY.push_back(input(i) * wantedRstd.back() * w[i % d]);
      }
      if (addResidual)
        this->harness.run(c.add, rows, x.data(), residual.data(), w.data(),
                          sum.data(), y.data(), rstd.data());
      else
        this->harness.run(c.plain, rows, x.data(), w.data(), y.data(),
                          rstd.data());
      expectNear(y, wantedY, "y");
      expectRounded(y, wantedY, "y");
      expectNear(rstd, wantedRstd, "rstd");
    }
    expectNear(sum, wantedSum, "sum");

    // rstd is an operand of its own: any number will do.
    rstd = this->randomSums(rows, 0.5, 1.5);
    for (int64_t row = 0; row < rows; ++row) {
      double dot = 0, r = rstd[row];
      for (int64_t i = row * d; i < (row + 1) * d; ++i)
        dot += double(dy[i]) * w[i % d] * x[i];
      for (int64_t i = row * d; i < (row + 1) * d; ++i) {
        wantedDx.push_back(r *
                           (double(dy[i]) * w[i % d] - x[i] * r * r * dot / d));
        wantedPlus.push_back(wantedDx.back() + plus[i]);
        wantedDw[i % d] += double(dy[i]) * x[i] * r;
      }
    }
    this->harness.run(c.grad, rows, dy.data(), x.data(), w.data(), rstd.data(),
                      dx.data());
    expectNear(dx, wantedDx, "dx");
    expectRounded(dx, wantedDx, "dx");
    this->harness.run(c.addGrad, rows, dy.data(), x.data(), w.data(),
                      rstd.data(), plus.data(), dx.data());
    expectNear(dx, wantedPlus, "dx + plus");
    this->harness.run(c.weightGrad, d / columnTile(d), dy.data(), x.data(),
                      rstd.data(), dw.data(), &rows);
    expectNear(dw, wantedDw, "dw");
  }
}

TYPED_TEST(KernelBodies, Rope) {
  using T = TypeParam;
  int64_t e = 20, columns = 100, heads = 3, rows = 7;
  std::vector<double> frequencies;
  for (int64_t i = 0; i < e / 2; ++i)
    frequencies.push_back(std::pow(1e4, -2.0 * i / e));
  auto tableName =
      this->add(buildRopeTable, ArrayRef<double>(frequencies), this->sum);
  auto rope = this->add(buildRope, columns, e, heads, false, this->element);
  auto back = this->add(buildRope, columns, e, heads, true, this->element);
  std::vector<int32_t> positions = {0, 1, 2, 77, 2047, 131071, 5};
  using S = Sum<T>;
  std::vector<S> table(rows * e);
  this->harness.run(tableName, rows, positions.data(), table.data());
  std::vector<double> wantedTable(rows * e);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t i = 0; i < e / 2; ++i) {
      S angle = S(positions[t]) * S(frequencies[i]); // rounded as it should be
      wantedTable[t * e + i] = std::cos(double(angle));
      wantedTable[t * e + e / 2 + i] = std::sin(double(angle));
    }
  expectNear(table, wantedTable, "table",
             std::is_same_v<S, float> ? 1e-7 : 1e-15);

  auto x = this->random(rows * columns);
  auto original = x;
  auto wanted = widen(x);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < e / 2; ++i) {
        double c = table[t * e + i], s = table[t * e + e / 2 + i];
        double a = x[t * columns + h * e + i],
               b = x[t * columns + h * e + e / 2 + i];
        wanted[t * columns + h * e + i] = a * c - b * s;
        wanted[t * columns + h * e + e / 2 + i] = b * c + a * s;
      }
  this->harness.run(rope, rows, table.data(), x.data());
  expectNear(x, wanted, "rotated");
  expectRounded(x, wanted, "rotated");
  this->harness.run(back, rows, table.data(), x.data());
  expectNear(x, widen(original), "rotated back", 2 * tolerance<T>);
}

TYPED_TEST(KernelBodies, Elementwise) {
  using T = TypeParam;
  struct Case {
    int64_t d;
    std::string silu, siluGrad, add, mul, scale;
  };
  std::vector<Case> cases;
  for (int64_t d : {1, 100, 577})
    cases.push_back({d, this->add(buildSilu, d, this->element),
                     this->add(buildSiluGrad, d, this->element),
                     this->add(buildAdd, d, this->element),
                     this->add(buildMul, d, this->element),
                     this->add(buildScale, d, 0.3, this->element)});
  for (const Case &c : cases) {
    int64_t rows = 4, count = rows * c.d;
    auto a = this->random(count, -20, 20), b = this->random(count);
    a[0] = T(-200); // exp(200) is infinite in f32
    std::vector<T> y(count);
    auto expect = [&](auto function, const char *what) {
      std::vector<double> wanted;
      for (int64_t i = 0; i < count; ++i)
        wanted.push_back(function(double(a[i]), double(b[i])));
      expectNear(y, wanted, what);
      expectRounded(y, wanted, what);
    };
    this->harness.run(c.silu, rows, a.data(), y.data());
    expect([](double x, double) { return x * sigmoid(x); }, "silu");
    this->harness.run(c.siluGrad, rows, b.data(), a.data(), y.data());
    expect(
        [](double x, double dy) {
          return dy * sigmoid(x) * (1 + x * (1 - sigmoid(x)));
        },
        "silu_grad");
    this->harness.run(c.add, rows, a.data(), b.data(), y.data());
    expect([](double x, double y) { return x + y; }, "add");
    this->harness.run(c.mul, rows, a.data(), b.data(), y.data());
    expect([](double x, double y) { return x * y; }, "mul");
    this->harness.run(c.scale, rows, a.data(), y.data());
    expect([](double x, double) { return Sum<T>(0.3) * x; }, "scale");
  }
}

/// As the header of buildDropout has it.
static bool isDropped(uint64_t key, uint64_t place, uint64_t row,
                      uint32_t column, double rate) {
  namespace splitmix = rt::splitmix;
  const uint64_t seed =
      splitmix::mix(splitmix::mix(key + place * splitmix::gamma) +
                    row * splitmix::gamma);
  uint32_t h = uint32_t(seed) + column * 0x9E3779B1u;
  h = (h ^ h >> 16) * 0x85EBCA6Bu ^ uint32_t(seed >> 32);
  h = (h ^ h >> 13) * 0xC2B2AE35u;
  h ^= h >> 16;
  return h < rate * 0x1p32;
}

TYPED_TEST(KernelBodies, Dropout) {
  using T = TypeParam;
  struct Case {
    int64_t d;
    double rate;
    std::string name;
  };
  std::vector<Case> cases;
  for (int64_t d : {1, 100, 4096})
    for (double rate : {0.1, 0.75})
      cases.push_back({d, rate, this->add(buildDropout, d, rate, this->element)});
  for (const Case &c : cases) {
    int64_t rows = 7, count = rows * c.d;
    auto x = this->random(count);
    std::vector<T> y(count);
    std::vector<double> previous;
    for (double key : {0.0, 3.0, 0x1p52 - 1})
      for (int64_t place : {0, 1, 79 * 64 + 3}) {
        this->harness.run(c.name, rows, x.data(), y.data(), &place, &key);
        std::vector<double> wanted;
        int64_t dropped = 0;
        for (int64_t i = 0; i < count; ++i) {
          bool drops = isDropped(uint64_t(key), place, i / c.d, i % c.d, c.rate);
          dropped += drops;
          wanted.push_back(drops ? 0
                                 : double(x[i]) * Sum<T>(1 / (1 - c.rate)));
        }
        expectNear(y, wanted, "y");
        expectRounded(y, wanted, "y");
        // Five standard deviations; and no two places or keys alike.
        double share = double(dropped) / count;
        EXPECT_NEAR(share, c.rate,
                    5 * std::sqrt(c.rate * (1 - c.rate) / count));
        if (count > 100)
          EXPECT_NE(wanted, previous);
        previous = std::move(wanted);
      }
  }
}

/// Neighbours in any direction are dropped independently.
TEST(Dropout, LooksRandom) {
  constexpr uint64_t rows = 512, columns = 512;
  const double rate = 0.25, bound = 5 * std::sqrt(0.0625 / (rows * columns));
  auto share = [&](auto other) {
    int64_t both = 0;
    for (uint64_t row = 0; row < rows; ++row)
      for (uint32_t column = 0; column < columns; ++column)
        both += isDropped(5, 2, row, column, rate) && other(row, column);
    return double(both) / (rows * columns);
  };
  for (uint32_t distance : {1, 2, 32, 256})
    EXPECT_NEAR(share([&](uint64_t row, uint32_t column) {
                  return isDropped(5, 2, row, column + distance, rate);
                }),
                rate * rate, bound);
  for (uint64_t distance : {1, 2, 64})
    EXPECT_NEAR(share([&](uint64_t row, uint32_t column) {
                  return isDropped(5, 2, row + distance, column, rate);
                }),
                rate * rate, bound);
  EXPECT_NEAR(share([&](uint64_t row, uint32_t column) {
                return isDropped(5, 3, row, column, rate);
              }),
              rate * rate, bound);
  EXPECT_NEAR(share([&](uint64_t row, uint32_t column) {
                return isDropped(6, 2, row, column, rate);
              }),
              rate * rate, bound);
}

TYPED_TEST(KernelBodies, GatedSilu) {
  using T = TypeParam;
  for (int64_t f : {100, 1536, 700}) {
    KernelHarness harness;
    auto add = [&](auto build, bool packed) {
      return harness.add([&](OpBuilder &b, Location loc) {
        return build(b, loc, f, packed, harness.type<T>());
      });
    };
    auto packed = add(buildGatedSilu, true), split = add(buildGatedSilu, false);
    auto packedGrad = add(buildGatedSiluGrad, true),
         splitGrad = add(buildGatedSiluGrad, false);
    int64_t rows = 3;
    auto gu = this->random(rows * 2 * f, -20, 20), dy = this->random(rows * f);
    gu[0] = T(-200);
    std::vector<T> g, u, y(rows * f), dgu(rows * 2 * f), dg(rows * f),
        du(rows * f);
    std::vector<double> wanted, wantedG, wantedU, wantedGu(rows * 2 * f);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < f; ++i) {
        int64_t at = row * 2 * f + i;
        g.push_back(gu[at]);
        u.push_back(gu[at + f]);
        double gate = gu[at], up = gu[at + f], s = sigmoid(gate),
               d = dy[row * f + i];
        wanted.push_back(gate * s * up);
        wantedG.push_back(d * up * s * (1 + gate * (1 - s)));
        wantedU.push_back(d * gate * s);
        wantedGu[at] = wantedG.back();
        wantedGu[at + f] = wantedU.back();
      }
    harness.run(packed, rows, gu.data(), y.data());
    expectNear(y, wanted, "packed");
    harness.run(split, rows, g.data(), u.data(), y.data());
    expectNear(y, wanted, "split");
    harness.run(packedGrad, rows, dy.data(), gu.data(), dgu.data());
    expectNear(dgu, wantedGu, "packed gradient");
    expectRounded(dgu, wantedGu, "packed gradient");
    harness.run(splitGrad, rows, dy.data(), g.data(), u.data(), dg.data(),
                du.data());
    expectNear(dg, wantedG, "dg");
    expectNear(du, wantedU, "du");
  }
}

TYPED_TEST(KernelBodies, Rows) {
  using T = TypeParam;
  int64_t vocabulary = 50, d = 100, rows = 9;
  auto embedding = this->add(buildEmbedding, vocabulary, d, this->element);
  auto embeddingGrad =
      this->add(buildEmbeddingGrad, vocabulary, d, this->element);
  auto gather = this->add(buildGatherRows, d, this->element);
  auto scatter = this->add(buildScatterRows, d, this->element);
  auto table = this->random(vocabulary * d), dy = this->random(rows * d);
  auto dtable = this->randomSums(vocabulary * d);
  std::vector<int32_t> ids = {3, 49, 0, 3, 3, 17, 0, 1, 2};
  std::vector<T> y(rows * d);
  std::vector<double> wanted, wantedTable = widen(dtable);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t i = 0; i < d; ++i) {
      wanted.push_back(table[ids[t] * d + i]);
      wantedTable[ids[t] * d + i] += dy[t * d + i];
    }
  this->harness.run(embedding, rows, ids.data(), table.data(), y.data());
  expectNear(y, wanted, "embedding", 0);
  this->harness.run(embeddingGrad, d / columnTile(d), dy.data(), ids.data(),
                    dtable.data(), &rows);
  expectNear(dtable, wantedTable, "dtable");
  this->harness.run(gather, rows, table.data(), ids.data(), y.data());
  expectNear(y, wanted, "gather", 0);

  std::vector<int32_t> index = {-1, 2, -1, 0, 1};
  std::vector<T> dx(index.size() * d, T(NAN));
  std::vector<double> wantedDx;
  for (int32_t source : index)
    for (int64_t i = 0; i < d; ++i)
      wantedDx.push_back(source < 0 ? T(0) : dy[source * d + i]);
  this->harness.run(scatter, index.size(), dy.data(), index.data(), dx.data());
  expectNear(dx, wantedDx, "scatter", 0);
}

TYPED_TEST(KernelBodies, CrossEntropy) {
  using T = TypeParam;
  struct Case {
    int64_t v;
    std::string forward, grad, fused;
  };
  std::vector<Case> cases;
  for (int64_t v : {1, 257, 128256})
    cases.push_back({v, this->add(buildCrossEntropy, v, this->element),
                     this->add(buildCrossEntropyGrad, v, this->element),
                     this->add(buildFusedCrossEntropy, v, this->element)});
  auto report = this->add(buildReportLoss, this->sum);
  for (const Case &c : cases) {
    SCOPED_TRACE(c.v);
    int64_t rows = 4, v = c.v;
    using S = Sum<T>;
    auto logits = this->random(rows * v, -8, 8);
    auto dloss = this->randomSums(rows);
    std::vector<int32_t> targets = {0, int32_t(v - 1), -1, int32_t(v / 2)};
    std::vector<S> loss(rows, NAN), lse(rows, NAN);
    std::vector<T> dlogits(rows * v, T(NAN));
    std::vector<double> wantedLoss, wantedLse, wantedGrad, wantedFused;
    double weight = 0.125;
    for (int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < v; ++i)
        sum += std::exp(double(logits[row * v + i]));
      bool counts = targets[row] >= 0;
      wantedLse.push_back(std::log(sum));
      wantedLoss.push_back(
          counts ? std::log(sum) - logits[row * v + targets[row]] : 0);
      for (int64_t i = 0; i < v; ++i) {
        double p = std::exp(double(logits[row * v + i])) / sum;
        double gradient = counts ? p - (i == targets[row]) : 0;
        wantedGrad.push_back(dloss[row] * gradient);
        wantedFused.push_back(weight * gradient);
      }
    }
    this->harness.run(c.forward, rows, logits.data(), targets.data(),
                      loss.data(), lse.data());
    expectNear(loss, wantedLoss, "loss");
    expectNear(lse, wantedLse, "lse");
    this->harness.run(c.grad, rows, logits.data(), targets.data(), lse.data(),
                      dloss.data(), dlogits.data());
    expectNear(dlogits, wantedGrad, "dlogits");
    expectRounded(dlogits, wantedGrad, "dlogits");
    loss.assign(rows, NAN);
    this->harness.run(c.fused, rows, targets.data(), logits.data(), loss.data(),
                      &weight);
    expectNear(loss, wantedLoss, "fused loss");
    expectNear(logits, wantedFused, "fused gradient");
    expectRounded(logits, wantedFused, "fused gradient");

    std::vector<S> total = {S(1.5)};
    std::vector<double> wantedTotal = {
        1.5 +
        weight * std::accumulate(wantedLoss.begin(), wantedLoss.end(), 0.0)};
    this->harness.run(report, 1, loss.data(), total.data(), &rows, &weight);
    expectNear(total, wantedTotal, "reported loss");
  }
}

TEST(Sums, AreOfTiles) {
  KernelHarness harness;
  const std::string name = harness.add([](OpBuilder &b, Location loc) {
    return buildSums(b, loc, 3 * 1024, 1024);
  });
  const auto x = uniform<double>(3 * 1024, -2, 2, 1);
  std::vector<double> sums(3), wanted;
  for (int i = 0; i < 3; ++i)
    wanted.push_back(
        std::accumulate(x.begin() + i * 1024, x.begin() + (i + 1) * 1024, 0.0));
  harness.run(name, 3, x.data(), sums.data());
  expectNear(sums, wanted, "sums");
}

TYPED_TEST(FlatKernels, FlatBuffers) {
  using T = TypeParam;
  struct Case {
    int64_t n, items;
    std::string accumulate, squares, sum;
  };
  std::vector<Case> cases;
  for (int64_t n : {7, 1000, 3 * 1024}) {
    int64_t items = n / std::gcd(n, flatTile);
    cases.push_back({n, items, this->add(buildAccumulate, n, this->element),
                     this->add(buildSumSquares, n, n / items, this->element),
                     this->harness.add([&](OpBuilder &b, Location loc) {
                       return buildAddPartials(b, loc, 1, 1, items, false);
                     })});
  }
  auto root = this->add(buildNorm, this->element);
  auto splat = this->add(buildSplat, this->element);
  for (const Case &c : cases) {
    auto src = this->random(c.n), dst = this->random(c.n);
    std::vector<double> wanted, partial(c.items);
    double squares = 0;
    for (int64_t i = 0; i < c.n; ++i) {
      squares += double(src[i]) * src[i];
      wanted.push_back(double(src[i]) + dst[i]);
    }
    this->harness.run(c.accumulate, c.items, src.data(), dst.data());
    expectNear(dst, wanted, "accumulate");
    std::vector<T> norm(1);
    this->harness.run(c.squares, c.items, src.data(), partial.data());
    double sum = -1;
    this->harness.run(c.sum, 1, partial.data(), &sum);
    this->harness.run(root, 1, &sum, norm.data());
    expectNear(norm, {std::sqrt(squares)}, "norm",
               std::is_same_v<T, float> ? 1e-7 : 1e-14);
    double scalar = 0.7;
    this->harness.run(splat, c.n, dst.data(), &scalar);
    EXPECT_EQ(dst, std::vector<T>(c.n, T(0.7)));
  }
}

/// Partials of two ranks with ranges of three layers are added layer by layer,
/// whatever they were before: with these magnitudes the order is in the bits.
TEST(AddPartials, FollowsTheElements) {
  KernelHarness harness;
  constexpr int64_t ranks = 2, layers = 3, count = 4;
  std::vector<double> partials(ranks * layers * count);
  for (size_t i = 0; i < partials.size(); ++i)
    partials[i] = std::pow(3.0, double(i * 7 % 24)) / 7;
  double wanted = 0.1;
  for (int64_t layer = 0; layer < layers; ++layer)
    for (int64_t rank = 0; rank < ranks; ++rank)
      for (int64_t i = 0; i < count; ++i)
        wanted += partials[(rank * layers + layer) * count + i];
  double inOrder = 0.1;
  for (double partial : partials)
    inOrder += partial;
  ASSERT_NE(wanted, inOrder);
  auto name = harness.add([&](OpBuilder &b, Location loc) {
    return buildAddPartials(b, loc, ranks, layers, count, true);
  });
  double sum = 0.1;
  harness.run(name, 1, partials.data(), &sum);
  EXPECT_EQ(sum, wanted);
}

TYPED_TEST(FlatKernels, Optimizers) {
  using T = TypeParam;
  Builder &b = this->harness.builder;
  auto dictionary = [&](std::vector<std::pair<StringRef, double>> values) {
    SmallVector<NamedAttribute> attributes;
    for (auto [name, value] : values)
      attributes.push_back(b.getNamedAttr(name, b.getF64FloatAttr(value)));
    return b.getDictionaryAttr(attributes);
  };
  DictionaryAttr adam = dictionary({{"beta1", 0.9},
                                    {"beta2", 0.95},
                                    {"epsilon", 1e-5},
                                    {"weight_decay", 0.1}});
  DictionaryAttr adadelta = dictionary({{"rho", 0.9}, {"epsilon", 1e-6}});
  for (int64_t n : {3000, 2048}) {
    KernelHarness harness;
    std::vector<std::string> rules = {"adamw", "adam", "sgd", "adadelta"},
                             names;
    for (StringRef rule : rules)
      names.push_back(harness.add([&](OpBuilder &builder, Location loc) {
        return buildOptimizer(builder, loc, rule,
                              rule == "adadelta" ? adadelta : adam, n,
                              harness.type<T>());
      }));
    for (auto [rule, name] : llvm::zip(rules, names))
      for (double maximum : {0.5, std::numeric_limits<double>::infinity()}) {
        SCOPED_TRACE(rule);
        auto p = this->random(n), g = this->random(n),
             s0 = this->random(n, 0, 1), s1 = this->random(n, 0, 1);
        std::vector<T> norm = {T(2.5)};
        double lr = 0.01, c1 = 0.271, c2 = 0.0975;
        auto wp = widen(p), w0 = widen(s0), w1 = widen(s1);
        double factor = std::min(1.0, maximum / (2.5 + 1e-6));
        for (int64_t i = 0; i < n; ++i) {
          double gradient = g[i] * factor;
          if (rule == "sgd") {
            wp[i] -= lr * gradient;
          } else if (rule == "adadelta") {
            w0[i] = 0.9 * w0[i] + 0.1 * gradient * gradient;
            double delta =
                std::sqrt(w1[i] + 1e-6) / std::sqrt(w0[i] + 1e-6) * gradient;
            w1[i] = 0.9 * w1[i] + 0.1 * delta * delta;
            wp[i] -= lr * delta;
          } else {
            if (rule == "adamw")
              wp[i] *= 1 - lr * 0.1;
            else
              gradient += 0.1 * wp[i];
            w0[i] = 0.9 * w0[i] + 0.1 * gradient;
            w1[i] = 0.95 * w1[i] + 0.05 * gradient * gradient;
            wp[i] -=
                lr / c1 * w0[i] / (std::sqrt(w1[i]) / std::sqrt(c2) + 1e-5);
          }
        }
        int64_t items = n / std::gcd(n, flatTile);
        if (rule == "sgd")
          harness.run(name, items, norm.data(), p.data(), g.data(), &maximum,
                      &lr);
        else if (rule == "adadelta")
          harness.run(name, items, norm.data(), p.data(), g.data(), s0.data(),
                      s1.data(), &maximum, &lr);
        else
          harness.run(name, items, norm.data(), p.data(), g.data(), s0.data(),
                      s1.data(), &maximum, &lr, &c1, &c2);
        expectNear(p, wp, "parameter");
        expectNear(s0, w0, "first state");
        expectNear(s1, w1, "second state");
        EXPECT_EQ(g, std::vector<T>(n, T(0)));
      }
  }
}

/// Products of T with results in Out.
template <typename T, typename Out>
void checkProducts(unsigned seed) {
  KernelHarness harness;
  struct Case {
    MatmulShape shape;
    std::string name;
  };
  std::vector<Case> cases;
  for (bool transA : {false, true})
    for (bool transB : {false, true})
      for (double beta : {0.0, 1.0}) {
        if (transA && transB)
          continue;
        for (auto [m, n, k] :
             {std::array<int64_t, 3>{5, 100, 33}, {3, 1, 1}, {4, 700, 64}}) {
          MatmulShape shape{m,      n,   k,    transA,
                            transB, 1.5, beta, harness.type<T>(),
                            harness.type<Out>()};
          cases.push_back({shape, harness.add([&](OpBuilder &b, Location loc) {
                             return buildMatmul(b, loc, shape);
                           })});
        }
      }
  for (const Case &c : cases) {
    SCOPED_TRACE(c.name);
    const MatmulShape &s = c.shape;
    auto a = uniform<T>(s.m * s.k, -2, 2, ++seed),
         b = uniform<T>(s.k * s.n, -2, 2, ++seed);
    auto out = uniform<Out>(s.m * s.n, -2, 2, ++seed);
    auto wanted = widen(out);
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = 0;
        for (int64_t r = 0; r < s.k; ++r)
          sum += double(s.transA ? a[r * s.m + i] : a[i * s.k + r]) *
                 double(s.transB ? b[j * s.k + r] : b[r * s.n + j]);
        double &value = wanted[i * s.n + j];
        value = s.alpha * sum + s.beta * value;
      }
    if (s.transA)
      harness.run(c.name, s.m, a.data(), b.data(), out.data(), &s.k);
    else
      harness.run(c.name, s.m, a.data(), b.data(), out.data());
    expectNear(out, wanted, "product");
  }
}

TYPED_TEST(KernelBodies, Matmul) {
  checkProducts<TypeParam, TypeParam>(1);
  if (!std::is_same_v<TypeParam, Sum<TypeParam>>)
    checkProducts<TypeParam, Sum<TypeParam>>(100);
}

/// Rounds to the nearest, ties to even, and back.
TEST(Cast, BetweenF32AndBf16) {
  KernelHarness harness;
  Type f32 = harness.type<float>(), bf16 = harness.type<Bf16>();
  struct Case {
    int64_t width, items;
    std::string narrow, wide;
  };
  std::vector<Case> cases = {{100, 7, "", ""}, {1, 9, "", ""}, {1024, 3, "", ""}};
  auto add = [&](int64_t width, Type from, Type to) {
    return harness.add([&](OpBuilder &b, Location loc) {
      return buildCast(b, loc, width, from, to);
    });
  };
  for (Case &c : cases) {
    c.narrow = add(c.width, f32, bf16);
    c.wide = add(c.width, bf16, f32);
  }
  for (const Case &c : cases) {
    auto x = uniform<float>(c.width * c.items, -2, 2, 7);
    const float special[] = {0x1.01p0f, // halfway: down to even
                             0x1.03p0f, // halfway: up to even
                             0x1.010002p0f, -0.0f, 0x1p-140f, 0x1.fffffep127f,
                             INFINITY, NAN};
    std::copy(std::begin(special), std::end(special), x.begin());
    std::vector<Bf16> narrow(x.size());
    std::vector<float> back(x.size());
    harness.run(c.narrow, c.items, x.data(), narrow.data());
    harness.run(c.wide, c.items, narrow.data(), back.data());
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        EXPECT_TRUE(std::isnan(back[i]));
        continue;
      }
      EXPECT_EQ(narrow[i].bits, rt::f32ToBf16(x[i])) << x[i];
      EXPECT_EQ(std::bit_cast<uint32_t>(back[i]), narrow[i].bits << 16) << x[i];
    }
  }
}

} // namespace
