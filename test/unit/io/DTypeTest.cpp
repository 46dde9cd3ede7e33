#include "runtime/io/ElementCodec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace fsdpq::rt;

namespace {

/// binary16 by its definition, in f64 (all values are exact there).
double f16ByDefinition(uint32_t bits) {
  int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31)
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0)
    return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(HalfFloat, F16WidensAll65536Values) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float value = f16ToF32(static_cast<uint16_t>(bits));
    double expected = f16ByDefinition(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(std::bit_cast<uint32_t>(value) >> 13 & 1023, bits & 1023);
    } else {
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
    }
  }
}

TEST(HalfFloat, AllValuesSurviveTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    uint16_t half = static_cast<uint16_t>(bits);
    bool isNaN16 = (bits & 0x7fff) > 0x7c00, isNaNB = (bits & 0x7fff) > 0x7f80;
    // A NaN comes back quiet, sign and payload kept.
    ASSERT_EQ(f32ToF16(f16ToF32(half)), isNaN16 ? bits | 0x0200 : bits);
    ASSERT_EQ(f32ToBf16(bf16ToF32(half)), isNaNB ? bits | 0x0040 : bits);
  }
}

TEST(HalfFloat, F16RoundsToNearestEvenBetweenAllNeighbours) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    double low = f16ByDefinition(bits), high = f16ByDefinition(bits + 1);
    float middle = static_cast<float>((low + high) / 2); // exact
    uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(f32ToF16(middle), even);
    ASSERT_EQ(f32ToF16(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(f32ToF16(std::nextafter(middle, 1e9f)), bits + 1);
    ASSERT_EQ(f32ToF16(-middle), even | 0x8000);
  }
}

TEST(HalfFloat, Bf16RoundsToNearestEvenBetweenAllNeighbours) {
  for (uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    uint32_t middle = bits << 16 | 0x8000;
    uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(f32ToBf16(std::bit_cast<float>(middle)), even);
    ASSERT_EQ(f32ToBf16(std::bit_cast<float>(middle - 1)), bits);
    ASSERT_EQ(f32ToBf16(std::bit_cast<float>(middle + 1)), bits + 1);
    ASSERT_EQ(f32ToBf16(std::bit_cast<float>(middle | 0x80000000)),
              even | 0x8000);
  }
}

TEST(HalfFloat, LargeValuesBecomeInfinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(f32ToF16(65504.0f), 0x7bff);
  EXPECT_EQ(f32ToF16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(f32ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(f32ToF16(-1e30f), 0xfc00);
  EXPECT_EQ(f32ToF16(infinity), 0x7c00);
  EXPECT_EQ(f32ToBf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(f32ToBf16(-infinity), 0xff80);
  // A NaN whose payload lies in the bits that are cut.
  EXPECT_EQ(f32ToBf16(std::bit_cast<float>(0x7f800001u)), 0x7fc0);
  EXPECT_EQ(f32ToF16(std::bit_cast<float>(0xff800001u)), 0xfe00);
}

TEST(DType, SizesAndNames) {
  EXPECT_EQ(blockBytes(DType::BF16), 2);
  EXPECT_EQ(blockElements(DType::BF16), 1);
  EXPECT_EQ(blockBytes(DType::Q4_0), 18);
  EXPECT_EQ(blockBytes(DType::Q4_1), 20);
  EXPECT_EQ(blockBytes(DType::Q8_0), 34);
  EXPECT_EQ(blockElements(DType::Q8_0), 32);
  EXPECT_STREQ(dtypeName(DType::Q4_1), "Q4_1");
  EXPECT_STREQ(dtypeName(DType::BOOL), "BOOL");
  EXPECT_TRUE(isInteger(DType::U8));
  EXPECT_FALSE(isInteger(DType::F64));
}

template <typename T>
std::vector<float> decodePlain(DType dtype, std::vector<T> values) {
  std::vector<float> out(values.size());
  // An odd address: files do not align their tensors.
  std::vector<unsigned char> raw(values.size() * sizeof(T) + 1);
  std::memcpy(raw.data() + 1, values.data(), values.size() * sizeof(T));
  decodeF32(dtype, raw.data() + 1, 0, static_cast<int64_t>(out.size()),
            out.data());
  return out;
}

TEST(ElementCodec, PlainTypesToF32) {
  using Floats = std::vector<float>;
  EXPECT_EQ(decodePlain<double>(DType::F64, {0.1, -1e300}),
            (Floats{0.1f, -std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(decodePlain<float>(DType::F32, {1.5f, -0.0f}),
            (Floats{1.5f, -0.0f}));
  EXPECT_EQ(decodePlain<uint16_t>(DType::F16, {0x3c00, 0xc000}),
            (Floats{1, -2}));
  EXPECT_EQ(decodePlain<uint16_t>(DType::BF16, {0x3f80, 0xc000}),
            (Floats{1, -2}));
  EXPECT_EQ(decodePlain<int64_t>(DType::I64, {16777217, -3}),
            (Floats{16777216, -3}));
  EXPECT_EQ(decodePlain<int32_t>(DType::I32, {-7}), (Floats{-7}));
  EXPECT_EQ(decodePlain<int16_t>(DType::I16, {-300}), (Floats{-300}));
  EXPECT_EQ(decodePlain<int8_t>(DType::I8, {-128}), (Floats{-128}));
  EXPECT_EQ(decodePlain<uint8_t>(DType::U8, {255}), (Floats{255}));
  EXPECT_EQ(decodePlain<uint8_t>(DType::BOOL, {0, 1}), (Floats{0, 1}));
}

TEST(ElementCodec, IntegersKeepAllBits) {
  int64_t values[] = {INT64_MIN, INT64_MAX, 9007199254740993};
  int64_t out[3];
  decodeI64(DType::I64, reinterpret_cast<unsigned char *>(values), 0, 3, out);
  EXPECT_EQ(std::memcmp(values, out, sizeof out), 0);
  const unsigned char bytes[] = {0, 255};
  decodeI64(DType::U8, bytes, 1, 2, out);
  EXPECT_EQ(out[0], 255);
  decodeI64(DType::I8, bytes, 1, 2, out);
  EXPECT_EQ(out[0], -1);
}

TEST(ElementCodec, EncodesHalves) {
  const float values[] = {1, -2, 3.140625f};
  uint16_t half[3];
  encodeF32(DType::BF16, values, 3, reinterpret_cast<unsigned char *>(half));
  EXPECT_EQ(half[0], 0x3f80);
  EXPECT_EQ(half[2], 0x4049);
  encodeF32(DType::F16, values, 3, reinterpret_cast<unsigned char *>(half));
  EXPECT_EQ(half[1], 0xc000);
  EXPECT_EQ(half[2], 0x4248);
}

/// Two blocks with the codes 0..15 in the low and 15..0 in the high halves.
std::vector<unsigned char> fourBitBlocks(std::vector<unsigned char> head) {
  std::vector<unsigned char> raw;
  for (int block = 0; block < 2; ++block) {
    raw.insert(raw.end(), head.begin(), head.end());
    for (int j = 0; j < 16; ++j)
      raw.push_back(static_cast<unsigned char>((15 - j) << 4 | j));
  }
  return raw;
}

TEST(ElementCodec, BlockFormatsByHand) {
  float out[64];
  // d = 0.5 (0x3800), m = -3 (0xc200).
  decodeF32(DType::Q4_0, fourBitBlocks({0x00, 0x38}).data(), 0, 64, out);
  EXPECT_EQ(out[0], -4.0f);
  EXPECT_EQ(out[15], 3.5f);
  EXPECT_EQ(out[16], 3.5f);
  EXPECT_EQ(out[31], -4.0f);
  EXPECT_EQ(out[33], -3.5f);

  decodeF32(DType::Q4_1, fourBitBlocks({0x00, 0x38, 0x00, 0xc2}).data(), 0, 64,
            out);
  EXPECT_EQ(out[0], -3.0f);
  EXPECT_EQ(out[15], 4.5f);
  EXPECT_EQ(out[16], 4.5f);
  EXPECT_EQ(out[47], 4.5f);
  EXPECT_EQ(out[63], -3.0f);

  std::vector<unsigned char> raw{0x00, 0x38};
  for (int j = 0; j < 32; ++j)
    raw.push_back(static_cast<unsigned char>(j * 8 - 128));
  decodeF32(DType::Q8_0, raw.data(), 0, 32, out);
  EXPECT_EQ(out[0], -64.0f);
  EXPECT_EQ(out[16], 0.0f);
  EXPECT_EQ(out[31], 60.0f);
}

TEST(ElementCodec, AnyRangeOfBlocks) {
  std::vector<unsigned char> raw = fourBitBlocks({0x00, 0x38, 0x00, 0xc2});
  raw[21] = 0x3c; // the second block's scale: 1.0
  float whole[64];
  decodeF32(DType::Q4_1, raw.data(), 0, 64, whole);
  EXPECT_EQ(whole[33], -2.0f);
  for (int begin = 0; begin <= 64; ++begin)
    for (int end = begin; end <= 64; ++end) {
      std::vector<float> part(static_cast<size_t>(end - begin) + 1, 99.0f);
      decodeF32(DType::Q4_1, raw.data(), begin, end, part.data());
      for (int i = begin; i < end; ++i)
        ASSERT_EQ(part[static_cast<size_t>(i - begin)], whole[i]);
      ASSERT_EQ(part.back(), 99.0f);
    }
}

} // namespace
