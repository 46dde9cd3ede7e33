//===- HalfFloat.h - The two 16-bit floats, as bits -------------*- C++ -*-===//
//
// IEEE binary16 ("f16") and bfloat16 ("bf16") travel as uint16_t bit patterns.
// Widening is exact. Narrowing rounds to nearest even; a NaN stays a NaN (made
// quiet, upper payload bits kept) and what is too large becomes infinity.
// The functions have no branches that depend on the value once compiled, so
// loops over them vectorise, and they do not rely on f32 denormals being
// honoured (the CPU may be set to flush them).
//
//===----------------------------------------------------------------------===//
#pragma once

#include <bit>
#include <cstdint>

namespace fsdpq::rt {

inline float bf16ToF32(uint16_t half) {
  return std::bit_cast<float>(uint32_t{half} << 16);
}

inline uint16_t f32ToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  bool isNaN = (bits & 0x7fffffff) > 0x7f800000;
  uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  return static_cast<uint16_t>((isNaN ? bits | 0x00400000 : rounded) >> 16);
}

inline float f16ToF32(uint16_t half) {
  uint32_t sign = (half & 0x8000u) << 16;
  uint32_t magnitude = half & 0x7fffu;
  // A denormal counts units of 2^-24. Otherwise the exponent's bias goes from
  // 15 to 127; infinity and NaN (exponent 31) must land on 255.
  uint32_t denormal = std::bit_cast<uint32_t>(
      static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24f);
  uint32_t rebias = (magnitude >= 0x7c00 ? 224u : 112u) << 23;
  uint32_t bits = magnitude < 0x400 ? denormal : (magnitude << 13) + rebias;
  return std::bit_cast<float>(sign | bits);
}

inline uint16_t f32ToF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  // Adding 0.5, whose last place is 2^-24, lets the adder round a denormal.
  uint32_t denormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
      0x3f000000;
  uint32_t normal =
      (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  uint32_t half = magnitude < 0x38800000 ? denormal : normal;
  half = magnitude >= 0x477ff000 ? 0x7c00 : half; // 65520 and above
  half = magnitude > 0x7f800000 ? 0x7e00 | ((magnitude >> 13) & 0x3ff) : half;
  return static_cast<uint16_t>(sign | half);
}

} // namespace fsdpq::rt
