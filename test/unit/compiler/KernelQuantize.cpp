//===- KernelQuantize.cpp - Quantising kernels against bitsandbytes -------===//
//
// Where bitsandbytes' CPU and CUDA kernels differ, CUDA is the reference, save
// for blocks of zeros and of denormals, whose codes mean nothing and whose
// values are compared.
//
//===----------------------------------------------------------------------===//

#include "test/unit/compiler/KernelHarness.h"

#include "runtime/io/Safetensors.h"

#include <algorithm>
#include <limits>
#include <memory>

using namespace fsdpq;
using namespace fsdpq::kernels;
using namespace fsdpq::test;

namespace {

class Oracle {
public:
  explicit Oracle(const std::string &file = "blocks.safetensors")
      : source(rt::openSafetensors(FSDPQ_TEST_INPUTS "/quant/" + file)) {}

  bool has(const std::string &name) const { return source->find(name); }

  template <typename T>
  std::vector<T> read(const std::string &name) const {
    const rt::TensorInfo *tensor = source->find(name);
    EXPECT_TRUE(tensor) << name;
    if (!tensor)
      return {};
    std::vector<float> values(tensor->elements());
    source->readF32(*tensor, 0, tensor->elements(), values.data());
    return std::vector<T>(values.begin(), values.end());
  }

  std::vector<std::string> names() const { return source->names(); }

private:
  std::unique_ptr<rt::SafetensorsSource> source;
};

/// One quantised form of one input: the kernels' names.
struct Variant {
  std::string input, prefix;
  int64_t elements, blocks, nestedBlocks;
  qt::BlockFormat format;
  std::string quantize, sum, mean, scales, dequantize, dequantizeF64;
};

/// The variants that the file has. `whole` names a tensor of all elements: input or dequant.
std::vector<Variant> readVariants(const Oracle &oracle, StringRef whole) {
  std::vector<Variant> variants;
  for (const std::string &name : oracle.names()) {
    StringRef text(name);
    if (!text.consume_back(".packed"))
      continue;
    auto [testCase, kind] = text.split('/');
    SmallVector<StringRef> words;
    kind.split(words, '.'); // nf4, b64, plain
    Variant v;
    v.input = (testCase + "/input").str();
    v.prefix = (text + ".").str();
    v.format.isNF4 = words[0] == "nf4";
    words[1].drop_front().getAsInteger(10, v.format.block);
    v.format.nested = words[2] == "nested" ? 256 : 0;
    v.elements =
        oracle.read<float>(whole == "input" ? v.input : v.prefix + "dequant")
            .size();
    v.blocks = llvm::divideCeil(v.elements, v.format.block);
    v.nestedBlocks = llvm::divideCeil(v.blocks, 256);
    variants.push_back(v);
  }
  return variants;
}

/// With their kernels added.
std::vector<Variant> addVariants(KernelHarness &harness, const Oracle &oracle) {
  std::vector<Variant> variants = readVariants(oracle, "input");
  for (Variant &v : variants) {
    v.quantize = harness.add([&](OpBuilder &b, Location loc) {
      return buildQuantize(b, loc, v.format, v.elements);
    });
    v.dequantize = harness.add([&](OpBuilder &b, Location loc) {
      return buildDequantize(b, loc, v.format, v.elements, b.getF32Type());
    });
    v.dequantizeF64 = harness.add([&](OpBuilder &b, Location loc) {
      return buildDequantize(b, loc, v.format, v.elements, b.getF64Type());
    });
    if (v.format.nested) {
      v.sum = harness.add([&](OpBuilder &b, Location loc) {
        return buildScaleSum(b, loc, v.blocks);
      });
      v.mean = harness.add([&](OpBuilder &b, Location loc) {
        return buildScaleMean(b, loc, 1, v.blocks);
      });
      v.scales = harness.add([&](OpBuilder &b, Location loc) {
        return buildQuantizeScales(b, loc, v.format, v.blocks);
      });
    }
  }
  return variants;
}

/// Both zeros of fp4 as one.
std::vector<uint8_t> withOneZero(std::vector<uint8_t> packed, bool isNF4) {
  if (!isNF4)
    for (uint8_t &pair : packed) {
      if (pair >> 4 == 8)
        pair &= 0x0f;
      if ((pair & 15) == 8)
        pair &= 0xf0;
    }
  return packed;
}

double relativeError(float actual, float wanted) {
  return std::abs(double(actual) - wanted) /
         std::max(1e-37, std::abs(double(wanted)));
}

struct Quantized {
  std::vector<uint8_t> packed, absmaxU8;
  std::vector<float> absmax, nestedAbsmax, offset;
};

Quantized readQuantized(const Oracle &oracle, const Variant &v) {
  Quantized q;
  q.packed = oracle.read<uint8_t>(v.prefix + "packed");
  if (v.format.nested) {
    q.absmaxU8 = oracle.read<uint8_t>(v.prefix + "absmax_u8");
    q.nestedAbsmax = oracle.read<float>(v.prefix + "nested_absmax");
    q.offset = oracle.read<float>(v.prefix + "offset");
  } else {
    q.absmax = oracle.read<float>(v.prefix + "absmax");
  }
  return q;
}

template <typename T>
std::vector<T> dequantize(KernelHarness &harness, const Variant &v,
                          StringRef kernel, const Quantized &q) {
  std::vector<T> y(v.elements, T(NAN));
  if (v.format.nested)
    harness.run(kernel, v.blocks, q.packed.data(), q.absmaxU8.data(),
                q.nestedAbsmax.data(), q.offset.data(), y.data());
  else
    harness.run(kernel, v.blocks, q.packed.data(), q.absmax.data(), y.data());
  return y;
}

/// Compiled once for all tests.
class KernelQuantize : public testing::Test {
protected:
  static void SetUpTestSuite() {
    oracle = std::make_unique<Oracle>();
    shared = std::make_unique<KernelHarness>();
    variants = addVariants(*shared, *oracle);
  }
  static void TearDownTestSuite() {
    shared.reset();
    oracle.reset();
  }

  static inline std::unique_ptr<Oracle> oracle;
  static inline std::unique_ptr<KernelHarness> shared;
  static inline std::vector<Variant> variants;
};

TEST_F(KernelQuantize, DequantizesAsBitsandbytes) {
  KernelHarness &harness = *shared;
  int compared = 0;
  for (const Variant &v : variants) {
    SCOPED_TRACE(v.prefix);
    if (!oracle->has(v.prefix + "dequant"))
      continue;
    Quantized q = readQuantized(*oracle, v);
    auto wanted = oracle->read<float>(v.prefix + "dequant");
    EXPECT_EQ(dequantize<float>(harness, v, v.dequantize, q), wanted);
    EXPECT_EQ(dequantize<double>(harness, v, v.dequantizeF64, q),
              widen(wanted));
    ++compared;
  }
  EXPECT_GE(compared, 40);
}

/// One rounding of the value in f32: every bit.
TEST(KernelDequantize, ToBf16AsBitsandbytes) {
  Oracle oracle("blocks_bf16.safetensors");
  KernelHarness harness;
  std::vector<Variant> variants = readVariants(oracle, "dequant");
  for (Variant &v : variants)
    v.dequantize = harness.add([&](OpBuilder &b, Location loc) {
      return buildDequantize(b, loc, v.format, v.elements, b.getBF16Type());
    });
  EXPECT_GE(variants.size(), 60u);
  for (const Variant &v : variants) {
    SCOPED_TRACE(v.prefix);
    Quantized q = readQuantized(oracle, v);
    auto values = dequantize<Bf16>(harness, v, v.dequantize, q);
    auto wanted = oracle.read<float>(v.prefix + "dequant");
    for (int64_t i = 0; i < v.elements; ++i)
      ASSERT_EQ(values[i].bits, rt::f32ToBf16(wanted[i])) << i;
  }
}

/// Values that are first rounded give the codes of the rounded values.
TEST(KernelQuantizeRounded, IsThatOfRoundedValues) {
  KernelHarness harness;
  constexpr int64_t elements = 1000, blocks = 16;
  auto add = [&](Type rounded) {
    return harness.add([&](OpBuilder &b, Location loc) {
      return buildQuantize(b, loc, {64, 0, true}, elements, rounded);
    });
  };
  auto plain = add({}), rounding = add(harness.type<Bf16>());
  auto x = uniform<float>(elements, -1, 1, 3), rounded = x;
  for (float &value : rounded)
    value = Bf16(value);
  std::vector<uint8_t> codes[3];
  std::vector<float> absmax[3];
  for (auto [i, name, values] :
       {std::tuple(0, plain, &rounded), {1, rounding, &x}, {2, plain, &x}}) {
    codes[i].resize(elements / 2);
    absmax[i].resize(blocks);
    harness.run(name, blocks, values->data(), codes[i].data(),
                absmax[i].data());
  }
  EXPECT_EQ(codes[1], codes[0]);
  EXPECT_EQ(absmax[1], absmax[0]);
  EXPECT_NE(absmax[2], absmax[0]);
}

TEST_F(KernelQuantize, QuantizesAsBitsandbytes) {
  KernelHarness &harness = *shared;
  int64_t codes = 0, others = 0;
  for (const Variant &v : variants) {
    SCOPED_TRACE(v.prefix);
    auto input = oracle->read<float>(v.input);
    Quantized q;
    q.packed.resize((v.elements + 1) / 2);
    q.absmax.resize(v.blocks);
    harness.run(v.quantize, v.blocks, input.data(), q.packed.data(),
                q.absmax.data());
    bool isDenormal = v.input.find("denormal") != std::string::npos;
    bool hasZeroBlock = std::count(q.absmax.begin(), q.absmax.end(), 0.0f);
    bool useCuda =
        !isDenormal && !hasZeroBlock && oracle->has(v.prefix + "packed_cuda");
    auto wanted =
        oracle->read<uint8_t>(v.prefix + (useCuda ? "packed_cuda" : "packed"));
    if (!isDenormal) {
      EXPECT_EQ(withOneZero(q.packed, v.format.isNF4),
                withOneZero(wanted, v.format.isNF4));
    }
    if (!v.format.nested) {
      EXPECT_EQ(q.absmax, oracle->read<float>(v.prefix + "absmax"));
    } else {
      q.offset.resize(1);
      q.absmaxU8.resize(v.blocks);
      q.nestedAbsmax.resize(v.nestedBlocks);
      double sum = 0;
      harness.run(v.sum, 1, q.absmax.data(), &sum);
      harness.run(v.mean, 1, &sum, q.offset.data());
      harness.run(v.scales, v.nestedBlocks, q.absmax.data(), q.offset.data(),
                  q.absmaxU8.data(), q.nestedAbsmax.data());
      auto offset = oracle->read<float>(v.prefix + "offset");
      EXPECT_LE(relativeError(q.offset[0], offset[0]), 1.2e-7);
      // Compare the codes of the same differences.
      q.offset = offset;
      harness.run(v.scales, v.nestedBlocks, q.absmax.data(), q.offset.data(),
                  q.absmaxU8.data(), q.nestedAbsmax.data());
      auto nestedAbsmax = oracle->read<float>(v.prefix + "nested_absmax");
      for (int64_t i = 0; i < v.nestedBlocks; ++i)
        EXPECT_LE(relativeError(q.nestedAbsmax[i], nestedAbsmax[i]), 2.4e-7);
      auto nearest = oracle->read<uint8_t>(v.prefix + "absmax_u8_nearest");
      for (int64_t i = 0; i < v.blocks && nestedAbsmax[i / 256] > 0; ++i) {
        ++codes;
        others += q.absmaxU8[i] != nearest[i];
        EXPECT_LE(std::abs(q.absmaxU8[i] - nearest[i]), 1);
      }
    }

    // What comes back, whichever codes zeros and denormals have. The values of
    // the file are those of the CPU kernel's codes.
    if (useCuda || !oracle->has(v.prefix + "dequant"))
      continue;
    auto values = dequantize<float>(harness, v, v.dequantize, q);
    auto wantedValues = oracle->read<float>(v.prefix + "dequant");
    // Neighbouring 8-bit codes are at most 1/70 of the largest deviation apart.
    float bound = std::numeric_limits<float>::min() +
                  1e-6f * *std::max_element(q.absmax.begin(), q.absmax.end());
    if (v.format.nested)
      bound += q.nestedAbsmax[0] / 70;
    for (int64_t i = 0; i < v.elements; ++i)
      ASSERT_NEAR(values[i], wantedValues[i], bound) << i;
  }
  EXPECT_LE(others, codes / 200);
  EXPECT_GT(codes, 500);
}

// Two blocks of zeros have the codes of zero, and so has the padding of an odd
// number of elements.
TEST_F(KernelQuantize, ZerosAndPadding) {
  for (bool isNF4 : {true, false}) {
    KernelHarness harness;
    auto quantize = harness.add([&](OpBuilder &b, Location loc) {
      return buildQuantize(b, loc, {4, 0, isNF4}, 7);
    });
    std::vector<float> x(7, 0.0f), absmax(2, NAN);
    x[1] = -0.0f;
    std::vector<uint8_t> packed(4, 0xee);
    harness.run(quantize, 2, x.data(), packed.data(), absmax.data());
    uint8_t zero = isNF4 ? 0x77 : 0x00;
    EXPECT_EQ(packed, std::vector<uint8_t>(4, zero));
    EXPECT_EQ(absmax, std::vector<float>(2, 0.0f));
  }
}

} // namespace
