//===- KernelAttention.cpp - Attention kernels against plain loops --------===//

#include "test/unit/compiler/KernelHarness.h"

#include <algorithm>
#include <numeric>

using namespace fsdpq;
using namespace fsdpq::kernels;
using namespace fsdpq::test;

namespace {

/// Attention and its gradients, straight from the definitions.
struct Reference {
  std::vector<double> o, lse, dq, dk, dv;
};

struct Problem {
  int64_t tokens, heads, kvHeads, headDim;
  std::optional<int64_t> window;
  double scale;
  std::vector<int32_t> segments;
  std::vector<double> q, k, v, dout;
};

Reference solve(const Problem &p) {
  int64_t e = p.headDim, width = p.heads * e, kvWidth = p.kvHeads * e;
  Reference r;
  r.o.resize(p.tokens * width);
  r.dq.resize(p.tokens * width);
  r.lse.resize(p.tokens * p.heads);
  r.dk.resize(p.tokens * kvWidth);
  r.dv.resize(p.tokens * kvWidth);
  for (int64_t h = 0; h < p.heads; ++h)
    for (int64_t i = 0; i < p.tokens; ++i) {
      int64_t first = p.segments[i];
      if (p.window)
        first = std::max(first, i - *p.window + 1);
      const double *q = &p.q[i * width + h * e];
      const double *dout = &p.dout[i * width + h * e];
      double *o = &r.o[i * width + h * e], *dq = &r.dq[i * width + h * e];
      int64_t column = h / (p.heads / p.kvHeads) * e;
      std::vector<double> weights(i + 1);
      double sum = 0;
      for (int64_t j = first; j <= i; ++j) {
        const double *k = &p.k[j * kvWidth + column];
        weights[j] = std::exp(p.scale * std::inner_product(q, q + e, k, 0.0));
        sum += weights[j];
      }
      r.lse[i * p.heads + h] = std::log(sum);
      for (int64_t j = first; j <= i; ++j)
        for (int64_t c = 0; c < e; ++c)
          o[c] += weights[j] / sum * p.v[j * kvWidth + column + c];
      double delta = std::inner_product(o, o + e, dout, 0.0);
      for (int64_t j = first; j <= i; ++j) {
        const double *v = &p.v[j * kvWidth + column];
        double weight = weights[j] / sum;
        double ds = p.scale * weight *
                    (std::inner_product(v, v + e, dout, 0.0) - delta);
        for (int64_t c = 0; c < e; ++c) {
          dq[c] += ds * p.k[j * kvWidth + column + c];
          r.dk[j * kvWidth + column + c] += ds * q[c];
          r.dv[j * kvWidth + column + c] += weight * dout[c];
        }
      }
    }
  return r;
}

/// The columns of `parts` side by side.
template <typename T>
std::vector<T> join(int64_t rows,
                    const std::vector<std::vector<double>> &parts) {
  std::vector<T> joined;
  for (int64_t row = 0; row < rows; ++row)
    for (const std::vector<double> &part : parts) {
      int64_t width = part.size() / rows;
      for (int64_t i = row * width; i < (row + 1) * width; ++i)
        joined.push_back(T(part[i]));
    }
  return joined;
}

struct Case {
  int64_t heads, kvHeads, headDim;
  std::optional<int64_t> window;
  bool packed;
};

template <typename T>
void check(const std::vector<Case> &cases) {
  KernelHarness harness;
  struct Names {
    std::string forward, delta, gradQ, gradKV;
  };
  std::vector<Names> names;
  std::vector<AttentionShape> shapes;
  for (const Case &c : cases) {
    AttentionShape shape{c.heads,
                         c.kvHeads,
                         c.headDim,
                         c.window,
                         1 / std::sqrt(double(c.headDim)),
                         c.packed,
                         harness.type<T>()};
    auto add = [&](auto build) {
      return harness.add(
          [&](OpBuilder &b, Location loc) { return build(b, loc, shape); });
    };
    names.push_back({add(buildAttention), add(buildAttentionDelta),
                     add(buildAttentionGradQ), add(buildAttentionGradKV)});
    shapes.push_back(shape);
  }
  for (auto [c, shape, name] : llvm::zip(cases, shapes, names)) {
    SCOPED_TRACE(name.forward);
    Problem p{256, c.heads, c.kvHeads, c.headDim, c.window, shape.scale,
              {},  {},      {},        {},        {}};
    // Segments that end in and at tiles, then a tail of rows that see
    // themselves only.
    for (int32_t i = 0; i < p.tokens; ++i)
      p.segments.push_back(i < 7 ? 0 : i < 96 ? 7 : i < 229 ? 96 : i);
    int64_t width = c.heads * c.headDim, kvWidth = c.kvHeads * c.headDim;
    p.q = widen(uniform<T>(p.tokens * width, -2, 2, 1));
    p.k = widen(uniform<T>(p.tokens * kvWidth, -2, 2, 2));
    p.v = widen(uniform<T>(p.tokens * kvWidth, -2, 2, 3));
    p.dout = widen(uniform<T>(p.tokens * width, -1, 1, 4));
    Reference wanted = solve(p);

    int64_t tiles = p.tokens / attentionTile, rows = p.tokens;
    auto narrow = [](const std::vector<double> &values) {
      std::vector<T> result;
      for (double value : values)
        result.push_back(T(value));
      return result;
    };
    std::vector<T> dout = narrow(p.dout);
    std::vector<T> o(p.tokens * width, T(NAN));
    std::vector<Sum<T>> lse(p.tokens * c.heads, NAN),
        delta(p.tokens * c.heads, NAN);
    // Gradients also have the rounding of o, from which delta comes.
    const double bound = tolerance<T> * (std::is_same_v<T, Bf16> ? 2 : 1);
    if (c.packed) {
      auto qkv = join<T>(p.tokens, {p.q, p.k, p.v});
      std::vector<T> dqkv(qkv.size(), T(NAN));
      harness.run(name.forward, tiles * c.heads, qkv.data(), p.segments.data(),
                  o.data(), lse.data());
      harness.run(name.delta, rows, dout.data(), o.data(), delta.data());
      harness.run(name.gradQ, tiles * c.heads, qkv.data(), dout.data(),
                  lse.data(), delta.data(), p.segments.data(), dqkv.data());
      harness.run(name.gradKV, tiles * c.kvHeads, qkv.data(), dout.data(),
                  lse.data(), delta.data(), p.segments.data(), dqkv.data(),
                  &rows);
      expectNear(dqkv, join<double>(rows, {wanted.dq, wanted.dk, wanted.dv}),
                 "dqkv", bound);
    } else {
      auto q = narrow(p.q), k = narrow(p.k), v = narrow(p.v);
      std::vector<T> dq(q.size(), T(NAN)), dk(k.size(), T(NAN)),
          dv(v.size(), T(NAN));
      harness.run(name.forward, tiles * c.heads, q.data(), k.data(), v.data(),
                  p.segments.data(), o.data(), lse.data());
      harness.run(name.delta, rows, dout.data(), o.data(), delta.data());
      harness.run(name.gradQ, tiles * c.heads, q.data(), k.data(), v.data(),
                  dout.data(), lse.data(), delta.data(), p.segments.data(),
                  dq.data());
      harness.run(name.gradKV, tiles * c.kvHeads, q.data(), k.data(), v.data(),
                  dout.data(), lse.data(), delta.data(), p.segments.data(),
                  dk.data(), dv.data(), &rows);
      expectNear(dq, wanted.dq, "dq", bound);
      expectNear(dk, wanted.dk, "dk", bound);
      expectNear(dv, wanted.dv, "dv", bound);
    }
    expectNear(o, wanted.o, "o");
    expectRounded(o, wanted.o, "o");
    expectNear(lse, wanted.lse, "lse");
  }
}

TEST(KernelAttention, F32) {
  check<float>({{3, 1, 64, {}, true},
                {2, 2, 80, 40, false},
                {2, 1, 96, {}, false},
                {4, 2, 128, 100, true},
                {4, 4, 16, 1, true},
                {1, 1, 10, {}, false}});
}

TEST(KernelAttention, Bf16) {
  check<Bf16>({{3, 1, 64, {}, true},
               {2, 2, 80, 40, false},
               {2, 1, 96, {}, false},
               {4, 2, 128, 100, true},
               {1, 1, 10, {}, false}});
}

TEST(KernelAttention, F64) {
  check<double>(
      {{4, 2, 16, {}, true}, {2, 1, 20, 33, false}, {1, 1, 128, {}, true}});
}

} // namespace
