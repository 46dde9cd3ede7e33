//===- Conversions.h - bf16 in kernel texts ---------------------*- C++ -*-===//
#pragma once

#include <string_view>

namespace fsdpq::cuda {

/// bf16_of(x) and bf16x2_of(low, high): one rounding to nearest, ties to even.
inline constexpr std::string_view toBf16Text = R"(
__device__ __forceinline__ unsigned short bf16_of(float value) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

__device__ __forceinline__ unsigned bf16x2_of(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
)";

/// low_of(pair) and high_of(pair): the two bf16 of a word as f32.
inline constexpr std::string_view fromBf16Text = R"(
__device__ __forceinline__ float low_of(unsigned pair) {
  return __uint_as_float(pair << 16);
}

__device__ __forceinline__ float high_of(unsigned pair) {
  return __uint_as_float(pair & 0xffff0000u);
}
)";

} // namespace fsdpq::cuda
