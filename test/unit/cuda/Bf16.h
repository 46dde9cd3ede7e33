//===- Bf16.h - bf16 as bits, for tests of texts ----------------*- C++ -*-===//
#pragma once

#include <bit>
#include <cstdint>

namespace fsdpq::test {

/// Rounded to nearest, ties to even; for numbers.
inline uint16_t toBf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float fromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

} // namespace fsdpq::test
