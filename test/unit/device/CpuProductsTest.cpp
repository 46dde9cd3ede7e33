//===- CpuProductsTest.cpp - Products of what is stored in bf16 -----------===//

#include "runtime/device/cpu/Products.h"
#include "runtime/support/HalfFloat.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

using namespace fsdpq;
using namespace fsdpq::rt;

namespace {

using Halves = std::vector<uint16_t>;

struct Shape {
  int64_t m, n, k;
};

Halves randomHalves(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Halves values(count);
  for (uint16_t &value : values)
    value = f32ToBf16(uniform(random));
  return values;
}

double wide(uint16_t value) { return bf16ToF32(value); }
double wide(float value) { return value; }

void narrow(uint16_t &to, uint16_t value) { to = value; }
void narrow(float &to, uint16_t value) { to = bf16ToF32(value); }

DeviceAddress address(const auto &values) {
  return reinterpret_cast<DeviceAddress>(values.data());
}

/// One product of bf16 with a result in Out; rows are longer than what is
/// multiplied.
template <typename Out>
class Product {
public:
  Product(Shape shape, bool transA, bool transB, float alpha, float beta)
      : call{}, a(randomHalves(size_t((transA ? shape.k : shape.m) *
                                      ((transA ? shape.m : shape.k) + 3)),
                               1)),
        b(randomHalves(size_t((transB ? shape.n : shape.k) *
                              ((transB ? shape.k : shape.n) + 1)),
                       2)) {
    call.dtype = plan::DType::BF16;
    call.outDtype = std::is_same_v<Out, float> ? plan::DType::F32
                                               : plan::DType::BF16;
    call.transA = transA;
    call.transB = transB;
    call.m = shape.m;
    call.n = shape.n;
    call.k = shape.k;
    call.alpha = alpha;
    call.beta = beta;
    call.lda = (transA ? shape.m : shape.k) + 3;
    call.ldb = (transB ? shape.k : shape.n) + 1;
    call.ldc = shape.n + 2;
    call.a = address(a);
    call.b = address(b);
    const Halves start = randomHalves(size_t(shape.m * call.ldc), 3);
    c.resize(start.size());
    for (size_t i = 0; i < c.size(); ++i)
      narrow(c[i], start[i]);
    // What is overwritten must not be read.
    if (beta == 0)
      for (int64_t i = 0; i < call.m; ++i)
        for (int64_t j = 0; j < call.n; ++j)
          narrow(c[i * call.ldc + j], 0x7fc0);
  }

  std::vector<Out> multiplied(unsigned threads, bool deterministic = false) {
    std::vector<Out> result = c;
    GemmCall own = call;
    own.c = address(result);
    multiply(own, threads, deterministic);
    return result;
  }

  /// Every element to what f32 sums and one rounding leave.
  void check(const std::vector<Out> &result) const {
    for (int64_t i = 0; i < call.m; ++i)
      for (int64_t j = 0; j < call.ldc; ++j) {
        const int64_t place = i * call.ldc + j;
        if (j >= call.n) {
          ASSERT_EQ(result[place], c[place]) << "padding " << i << ", " << j;
          continue;
        }
        double sum = 0, magnitude = 0;
        for (int64_t l = 0; l < call.k; ++l) {
          const double term = wide(call.transA ? a[l * call.lda + i]
                                               : a[i * call.lda + l]) *
                              wide(call.transB ? b[j * call.ldb + l]
                                               : b[l * call.ldb + j]);
          sum += term;
          magnitude += std::abs(term);
        }
        double wanted = call.alpha * sum;
        if (call.beta != 0)
          wanted += double(call.beta) * wide(c[place]);
        const double rounding =
            std::is_same_v<Out, float> ? 0 : 0x1p-8 * std::abs(wanted);
        ASSERT_NEAR(wide(result[place]), wanted,
                    rounding + 1e-6 * (std::abs(call.alpha) * magnitude + 1))
            << i << ", " << j;
      }
  }

private:
  GemmCall call;
  Halves a, b;
  std::vector<Out> c;
};

template <typename Out>
void checkAll(std::initializer_list<Shape> shapes) {
  for (const Shape &shape : shapes)
    for (const bool transA : {false, true})
      for (const bool transB : {false, true})
        for (const auto &[alpha, beta] :
             {std::pair(1.f, 0.f), {2.f, 1.f}, {-0.5f, 0.25f}}) {
          SCOPED_TRACE(testing::Message()
                       << shape.m << "x" << shape.n << "x" << shape.k
                       << " transA " << transA << " transB " << transB
                       << " alpha " << alpha << " beta " << beta);
          Product<Out> product(shape, transA, transB, alpha, beta);
          const std::vector<Out> result = product.multiplied(1);
          product.check(result);
          if (testing::Test::HasFatalFailure())
            return;
          // The same bits on any number of threads, asked for or not.
          EXPECT_EQ(product.multiplied(3), result);
          EXPECT_EQ(product.multiplied(2, true), result);
        }
}

} // namespace

TEST(CpuProducts, HalvesToHalves) {
  checkAll<uint16_t>(
      {{1, 1, 1}, {5, 3, 7}, {1, 600, 64}, {64, 8, 1100}, {257, 515, 30}});
}

TEST(CpuProducts, HalvesToFloats) {
  checkAll<float>(
      {{1, 1, 1}, {5, 3, 7}, {8, 576, 300}, {258, 8, 513}, {70, 520, 1025}});
}

TEST(CpuProducts, WithoutAProductCIsScaled) {
  checkAll<uint16_t>({{4, 5, 0}});
  checkAll<float>({{4, 5, 0}});
}

TEST(CpuProducts, WhichTypes) {
  using plan::DType;
  EXPECT_TRUE(canMultiply(DType::F32, DType::F32));
  EXPECT_TRUE(canMultiply(DType::BF16, DType::BF16));
  EXPECT_TRUE(canMultiply(DType::BF16, DType::F32));
  EXPECT_FALSE(canMultiply(DType::F32, DType::BF16));
  EXPECT_FALSE(canMultiply(DType::F64, DType::F64));
}
