//===- QuantisedTest.cpp - Texts between codes and values -----------------===//
//
// Against bitsandbytes, and for other sizes against the arithmetic of
// qt.dequantize written down once more. Where bitsandbytes' CPU and CUDA
// kernels differ, CUDA is the reference, save for blocks of zeros and of
// denormals, whose codes mean nothing.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cuda/Skeletons/Quantised.h"

#include "runtime/io/Safetensors.h"
#include "test/unit/cuda/Bf16.h"
#include "test/unit/cuda/Emulator.h"
#include "test/unit/cuda/GuardedBuffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

using namespace fsdpq;
using namespace fsdpq::cuda;
using namespace fsdpq::test;
using testing::Each;
using testing::Pointwise;

namespace {

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

const std::vector<float> nf4Values = {
    -1.0f,        -0.6961928f,  -0.52507305f,  -0.3949175f,
    -0.28444138f, -0.18477343f, -0.091050036f, 0.0f,
    0.0795803f,   0.1609302f,   0.2461123f,    0.33791524f,
    0.44070983f,  0.562617f,    0.72295684f,   1.0f};

const std::vector<float> fp4Values = {
    0.0f,         0.0052083335f,  0.6666667f,   1.0f,
    0.33333334f,  0.5f,           0.16666667f,  0.25f,
    0.0f,         -0.0052083335f, -0.6666667f,  -1.0f,
    -0.33333334f, -0.5f,          -0.16666667f, -0.25f};

/// bitsandbytes' signed dynamic map, in its steps and roundings.
std::vector<float> dynamicMap() {
  std::vector<float> values = {0.0f, 1.0f};
  for (int decade = 0; decade < 7; ++decade) {
    const int n = 1 << decade;
    const float step = (1.0f - 0.1f) / n;
    auto border = [&](int k) {
      return k < (n + 1) / 2.0 ? std::fma(step, float(k), 0.1f)
                               : std::fma(-step, float(n - k), 1.0f);
    };
    const auto power = static_cast<float>(std::pow(10.0, decade - 6));
    for (int k = 0; k < n; ++k) {
      const float value = power * ((border(k) + border(k + 1)) / 2);
      values.push_back(value);
      values.push_back(-value);
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

/// What lies halfway between neighbours, rounded down, so that x > border is
/// right for all x.
std::vector<float> bordersBetween(const std::vector<float> &ascending) {
  std::vector<float> borders;
  for (size_t i = 0; i + 1 < ascending.size(); ++i) {
    const double middle = (double(ascending[i]) + double(ascending[i + 1])) / 2;
    float border = static_cast<float>(middle);
    if (double(border) > middle)
      border = std::nextafter(border, -INFINITY);
    borders.push_back(border);
  }
  return borders;
}

QuantisedParams paramsOf(bool isNF4, int64_t block, int64_t nested,
                         int64_t count) {
  QuantisedParams p;
  p.block = block;
  p.nested = nested;
  p.count = count;
  p.codebook = isNF4 ? nf4Values : fp4Values;
  if (nested)
    p.scaleCodebook = dynamicMap();
  for (int code = 0; code < 16; ++code)
    if (isNF4 || code != 8) // the other zero
      p.codesByValue.push_back(code);
  std::stable_sort(p.codesByValue.begin(), p.codesByValue.end(),
                   [&](int a, int b) { return p.codebook[a] < p.codebook[b]; });
  for (size_t i = 0; i + 1 < p.codesByValue.size(); ++i)
    p.thresholds.push_back(
        (p.codebook[p.codesByValue[i]] + p.codebook[p.codesByValue[i + 1]]) /
        2.0f);
  if (isNF4) { // as in bitsandbytes' CUDA kernel
    p.thresholds[0] = -0.8480964303016663f;
    p.thresholds[8] = 0.1202552542090416f;
    p.thresholds[12] = 0.5016633868217468f;
    p.thresholds[14] = 0.8614783883094788f;
  }
  return p;
}

int64_t blocksOf(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

struct Data {
  std::vector<uint8_t> codes, absmaxU8;
  std::vector<float> absmax, nestedAbsmax, offset;
};

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// y has room for the elements; rows as in `p`.
template <typename T>
void dequantize(const QuantisedParams &p, const Data &data, T *y,
                Order order = Order::Ascending) {
  EmulatedKernel kernel = EmulatedKernel::compile(emitDequantize(p));
  GuardedBuffer<uint8_t> codes(data.codes), absmaxU8(data.absmaxU8);
  GuardedBuffer<float> absmax(data.absmax), nestedAbsmax(data.nestedAbsmax);
  GuardedBuffer<float> offset(data.offset);
  std::vector<Argument> args = {codes.data(), absmax.data(), y};
  if (p.nested)
    args = {codes.data(), absmaxU8.data(), nestedAbsmax.data(), offset.data(),
            y};
  EXPECT_EQ(kernel.launch(args, blocksOf(p.count, p.block), 3, order), "");
}

std::vector<float> dequantizeF32(QuantisedParams p, const Data &data) {
  p.bf16 = false;
  GuardedBuffer<float> y(p.count);
  dequantize(p, data, y.data());
  return y.values();
}

std::vector<uint16_t> dequantizeBf16(QuantisedParams p, const Data &data) {
  GuardedBuffer<uint16_t> y(p.count);
  dequantize(p, data, y.data());
  return y.values();
}

/// Sets codes and absmax.
void quantize(const QuantisedParams &p, const std::vector<float> &values,
              Data &data, Order order = Order::Ascending) {
  EmulatedKernel kernel = EmulatedKernel::compile(emitQuantize(p));
  GuardedBuffer<float> src(values), absmax(blocksOf(p.count, p.block));
  GuardedBuffer<uint8_t> codes((p.count + 1) / 2);
  EXPECT_EQ(kernel.launch({src.data(), codes.data(), absmax.data()},
                          blocksOf(p.count, p.block), 3, order),
            "");
  data.codes = codes.values();
  data.absmax = absmax.values();
}

/// Sets absmaxU8 and nestedAbsmax from absmax and offset.
void quantizeScales(int64_t nested, Data &data) {
  QuantisedParams p;
  p.block = 64;
  p.nested = nested;
  p.count = data.absmax.size();
  p.thresholds = bordersBetween(dynamicMap());
  EmulatedKernel kernel = EmulatedKernel::compile(emitQuantizeScales(p));
  const int64_t items = blocksOf(p.count, nested);
  GuardedBuffer<float> absmax(data.absmax), offset(data.offset);
  GuardedBuffer<float> nestedAbsmax(items);
  GuardedBuffer<uint8_t> codes(p.count);
  EXPECT_EQ(kernel.launch({absmax.data(), offset.data(), codes.data(),
                           nestedAbsmax.data()},
                          items, 1),
            "");
  data.absmaxU8 = codes.values();
  data.nestedAbsmax = nestedAbsmax.values();
}

//===----------------------------------------------------------------------===//
// The same, one element after the other
//===----------------------------------------------------------------------===//

std::vector<float> expectedValues(const QuantisedParams &p, const Data &data) {
  std::vector<float> values;
  for (int64_t e = 0; e < p.count; ++e) {
    const int64_t block = e / p.block;
    float scale = p.nested ? 0 : data.absmax[block];
    if (p.nested) {
      volatile float product = p.scaleCodebook[data.absmaxU8[block]] *
                               data.nestedAbsmax[block / p.nested];
      scale = product + data.offset[0];
    }
    const int pair = data.codes[e / 2];
    values.push_back(p.codebook[e % 2 ? pair & 15 : pair >> 4] * scale);
  }
  return values;
}

/// Scaled by the largest of their block, as a quantiser must.
std::vector<float> scaledValues(const std::vector<float> &x, int64_t block,
                                std::vector<float> &largest) {
  std::vector<float> scaled;
  const int64_t count = x.size();
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t end = std::min(begin + block, count);
    float most = 0;
    for (int64_t e = begin; e < end; ++e)
      most = std::max(most, std::abs(x[e]));
    largest.push_back(most);
    const float reciprocal = 1.0f / most;
    for (int64_t e = begin; e < end; ++e)
      scaled.push_back(x[e] == 0              ? 0.0f
                       : end - begin == block ? x[e] * reciprocal
                                              : x[e] / most);
  }
  return scaled;
}

int rankOf(float x, const std::vector<float> &borders) {
  return static_cast<int>(std::count_if(borders.begin(), borders.end(),
                                        [&](float b) { return x > b; }));
}

Data expectedCodes(const QuantisedParams &p, const std::vector<float> &x) {
  Data data;
  std::vector<int> codes;
  for (float value : scaledValues(x, p.block, data.absmax))
    codes.push_back(p.codesByValue[rankOf(value, p.thresholds)]);
  if (codes.size() % 2)
    codes.push_back(p.codesByValue[rankOf(0, p.thresholds)]);
  for (size_t i = 0; i < codes.size(); i += 2)
    data.codes.push_back(static_cast<uint8_t>(codes[i] << 4 | codes[i + 1]));
  return data;
}

std::vector<float> randomValues(int64_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(random);
  return values;
}

Data randomData(const QuantisedParams &p) {
  std::mt19937 random(static_cast<unsigned>(p.count));
  auto bytes = [&](int64_t count) {
    std::vector<uint8_t> values(count);
    for (uint8_t &value : values)
      value = static_cast<uint8_t>(random());
    return values;
  };
  const int64_t blocks = blocksOf(p.count, p.block);
  Data data{bytes((p.count + 1) / 2), {}, {}, {}, {}};
  if (p.nested) {
    data.absmaxU8 = bytes(blocks);
    data.nestedAbsmax = randomValues(blocksOf(blocks, p.nested));
    data.offset = {0.7f};
  } else {
    data.absmax = randomValues(blocks);
  }
  return data;
}

//===----------------------------------------------------------------------===//
// bitsandbytes
//===----------------------------------------------------------------------===//

class Oracle : public testing::Test {
protected:
  std::unique_ptr<rt::SafetensorsSource> source =
      rt::openSafetensors(FSDPQ_TEST_INPUTS "/quant/blocks.safetensors");

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

  /// The quantised form whose parts' names begin with `prefix`:
  /// "<input>/nf4.b64.plain." or the like.
  QuantisedParams paramsOf(const std::string &prefix) const {
    const std::string kind = prefix.substr(prefix.find('/') + 1);
    return ::paramsOf(kind.starts_with("nf4"), std::stoi(kind.substr(5)),
                      kind.find("nested") != kind.npos ? 256 : 0,
                      read<float>(inputOf(prefix)).size());
  }

  static std::string inputOf(const std::string &prefix) {
    return prefix.substr(0, prefix.find('/')) + "/input";
  }

  std::vector<std::string> prefixes() const {
    std::vector<std::string> result;
    for (const std::string &name : source->names())
      if (name.ends_with(".packed"))
        result.push_back(name.substr(0, name.size() - 6));
    return result;
  }
};

TEST_F(Oracle, Dequantizes) {
  int compared = 0;
  for (const std::string &prefix : prefixes()) {
    SCOPED_TRACE(prefix);
    if (!has(prefix + "dequant"))
      continue;
    const QuantisedParams p = paramsOf(prefix);
    Data data;
    data.codes = read<uint8_t>(prefix + "packed");
    if (p.nested) {
      data.absmaxU8 = read<uint8_t>(prefix + "absmax_u8");
      data.nestedAbsmax = read<float>(prefix + "nested_absmax");
      data.offset = read<float>(prefix + "offset");
    } else {
      data.absmax = read<float>(prefix + "absmax");
    }
    const auto wanted = read<float>(prefix + "dequant");
    std::vector<uint16_t> wantedBf16(wanted.size());
    std::transform(wanted.begin(), wanted.end(), wantedBf16.begin(), toBf16);
    EXPECT_EQ(dequantizeF32(p, data), wanted);
    EXPECT_EQ(dequantizeBf16(p, data), wantedBf16);
    ++compared;
  }
  EXPECT_GE(compared, 40);
}

/// Both zeros of fp4 as one.
std::vector<uint8_t> withOneZero(std::vector<uint8_t> packed, bool isNF4) {
  for (uint8_t &pair : packed) {
    if (!isNF4 && pair >> 4 == 8)
      pair &= 0x0f;
    if (!isNF4 && (pair & 15) == 8)
      pair &= 0xf0;
  }
  return packed;
}

MATCHER_P(IsWithin, relative, "") {
  const auto [actual, wanted] = arg;
  return std::abs(double(actual) - wanted) <=
         relative * std::abs(double(wanted));
}

TEST_F(Oracle, Quantizes) {
  int64_t codes = 0, others = 0;
  for (const std::string &prefix : prefixes()) {
    SCOPED_TRACE(prefix);
    const QuantisedParams p = paramsOf(prefix);
    const bool isNF4 = p.codebook == nf4Values;
    Data data;
    quantize(p, read<float>(inputOf(prefix)), data);
    const bool isDenormal = prefix.find("denormal") != prefix.npos;
    const bool hasZeroBlock = std::ranges::count(data.absmax, 0.0f);
    const bool useCuda = !hasZeroBlock && has(prefix + "packed_cuda");
    const auto packed =
        read<uint8_t>(prefix + (useCuda ? "packed_cuda" : "packed"));
    if (!isDenormal) {
      EXPECT_EQ(withOneZero(data.codes, isNF4), withOneZero(packed, isNF4));
    }
    if (!p.nested) {
      EXPECT_EQ(data.absmax, read<float>(prefix + "absmax"));
      continue;
    }
    data.offset = read<float>(prefix + "offset");
    quantizeScales(p.nested, data);
    const auto nestedAbsmax = read<float>(prefix + "nested_absmax");
    EXPECT_THAT(data.nestedAbsmax, Pointwise(IsWithin(2.4e-7), nestedAbsmax));
    const auto nearest = read<uint8_t>(prefix + "absmax_u8_nearest");
    for (size_t i = 0; i < nearest.size() && nestedAbsmax[i / 256] > 0; ++i) {
      ++codes;
      others += data.absmaxU8[i] != nearest[i];
      EXPECT_LE(std::abs(data.absmaxU8[i] - nearest[i]), 1);
    }
  }
  EXPECT_LE(others, codes / 200);
  EXPECT_GT(codes, 500);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

struct Size {
  bool isNF4;
  int64_t block, nested, count;
};

/// A block only, short ones, one tile of 16384 or 8192 elements, more, odd
/// ones.
const Size sizes[] = {{true, 64, 256, 1},           {true, 64, 256, 63},
                      {true, 64, 256, 64},          {true, 64, 256, 16384},
                      {true, 64, 256, 40000},       {true, 64, 0, 16383},
                      {false, 64, 0, 16385},        {true, 64, 4, 8192 + 9},
                      {true, 16, 256, 5003},        {false, 32, 0, 777},
                      {true, 4, 2, 1237},           {true, 128, 256, 20001},
                      {true, 256, 0, 9000},         {false, 512, 256, 1025},
                      {true, 4096, 0, 4096},        {true, 4096, 256, 12301},
                      {true, 2048, 8, 16384 + 2047}};

class QuantisedSizes : public testing::TestWithParam<Size> {
protected:
  QuantisedParams params() const {
    const Size &size = GetParam();
    return paramsOf(size.isNF4, size.block, size.nested, size.count);
  }
};

TEST_P(QuantisedSizes, Dequantizes) {
  const QuantisedParams p = params();
  const Data data = randomData(p);
  const std::vector<float> wanted = expectedValues(p, data);
  EXPECT_EQ(dequantizeF32(p, data), wanted);
  std::vector<uint16_t> wantedBf16(wanted.size());
  std::transform(wanted.begin(), wanted.end(), wantedBf16.begin(), toBf16);
  EXPECT_EQ(dequantizeBf16(p, data), wantedBf16);
  // At an address that is no multiple of 16, in the other order.
  GuardedBuffer<uint16_t> y(p.count + 1);
  dequantize(p, data, y.data() + 1, Order::Descending);
  EXPECT_EQ(std::vector<uint16_t>(y.begin() + 1, y.end()), wantedBf16);
  EXPECT_EQ(y[0], 0xffff);
}

TEST_P(QuantisedSizes, Quantizes) {
  const QuantisedParams p = params();
  std::vector<float> x = randomValues(p.count);
  // The largest of each block is 7, and some values lie on borders or beside
  // them: products and quotients round them to different sides.
  for (int64_t e = 0; e < p.count; ++e) {
    if (e % p.block == 0)
      x[e] = 7.0f;
    else if (e % 3 == 0)
      x[e] = 7.0f * p.thresholds[e / 3 % p.thresholds.size()];
    else if (e % 7 == 0)
      x[e] = -0.0f;
  }
  const Data wanted = expectedCodes(p, x);
  for (Order order : {Order::Ascending, Order::Descending}) {
    Data data;
    quantize(p, x, data, order);
    EXPECT_EQ(data.codes, wanted.codes);
    EXPECT_EQ(data.absmax, wanted.absmax);
  }
}

std::string nameOf(const testing::TestParamInfo<Size> &info) {
  const Size &size = info.param;
  return std::string(size.isNF4 ? "nf4" : "fp4") + "_b" +
         std::to_string(size.block) + "_" + std::to_string(size.nested) + "_n" +
         std::to_string(size.count);
}

INSTANTIATE_TEST_SUITE_P(All, QuantisedSizes, testing::ValuesIn(sizes), nameOf);

// Two elements a scale and less than a chunk a row are slow and right.
TEST(Quantised, DequantizesPairs) {
  const QuantisedParams p = paramsOf(true, 2, 0, 8192 + 5);
  const Data data = randomData(p);
  EXPECT_EQ(dequantizeF32(p, data), expectedValues(p, data));
}

// Rows of a matrix that is wider: what is between them is not written.
TEST(Quantised, DequantizesRows) {
  struct Rows {
    int64_t columns, pitch, count;
  };
  for (auto [columns, pitch, count] :
       {Rows{192, 208, 192 * 100}, {64, 65, 64 * 9}, {100, 104, 700}}) {
    QuantisedParams p = paramsOf(true, 64, 256, count);
    p.rowColumns = columns;
    p.rowPitch = pitch;
    const Data data = randomData(p);
    const std::vector<float> values = expectedValues(p, data);
    const int64_t rows = count / columns;
    std::vector<uint16_t> wanted(rows * pitch, 0xffff);
    for (int64_t e = 0; e < count; ++e)
      wanted[e / columns * pitch + e % columns] = toBf16(values[e]);
    GuardedBuffer<uint16_t> y(rows * pitch);
    dequantize(p, data, y.data());
    EXPECT_EQ(y.values(), wanted);
  }
}

// Blocks of zeros have the codes of zero, and so has the padding of an odd
// number of elements; also where a reciprocal is infinite.
TEST(Quantised, QuantizesZeros) {
  for (bool isNF4 : {true, false}) {
    const QuantisedParams p = paramsOf(isNF4, 64, 0, 2 * 64 + 7);
    const uint8_t zero = isNF4 ? 0x77 : 0x00;
    std::vector<float> x(p.count, 0.0f);
    x[1] = x[p.count - 1] = -0.0f;
    Data data;
    quantize(p, x, data);
    EXPECT_THAT(data.codes, Each(zero));
    EXPECT_THAT(data.absmax, Each(0.0f));
    x[64] = std::numeric_limits<float>::denorm_min();
    x[65] = -x[64];
    quantize(p, x, data);
    EXPECT_EQ(data.codes[32], isNF4 ? 0xf0 : 0x3b);
    data.codes[32] = zero;
    EXPECT_THAT(data.codes, Each(zero));
  }
}

TEST(Quantised, QuantizesScales) {
  const std::vector<float> borders = bordersBetween(dynamicMap());
  for (auto [nested, count] :
       {std::pair{2, 35}, {32, 64}, {256, 1}, {256, 5125}, {1024, 2500}}) {
    SCOPED_TRACE(nested);
    Data data;
    for (float x : randomValues(count))
      data.absmax.push_back(std::abs(x));
    data.offset = {0.8f};
    data.absmax[0] = 0.8f; // a difference of zero
    quantizeScales(nested, data);
    std::vector<float> centred, largest;
    for (float x : data.absmax)
      centred.push_back(x - data.offset[0]);
    std::vector<uint8_t> codes;
    for (float x : scaledValues(centred, nested, largest))
      codes.push_back(static_cast<uint8_t>(rankOf(x, borders)));
    EXPECT_EQ(data.absmaxU8, codes);
    EXPECT_EQ(data.nestedAbsmax, largest);
  }
}

// Elements are counted in 64 bits where 32 are not enough, and only there.
TEST(Quantised, CountsLargeTensors) {
  QuantisedParams p = paramsOf(true, 64, 256, int64_t(1) << 33);
  EXPECT_NE(emitDequantize(p).text.find("place_of(unsigned long long e)"),
            std::string::npos);
  p.count = int64_t(1) << 31;
  EXPECT_NE(emitDequantize(p).text.find("place_of(unsigned e)"),
            std::string::npos);
}

} // namespace
