//===- SplitMix.h - Numbers that look random --------------------*- C++ -*-===//
//
// Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014.
// Fixed for good: what is drawn for a seed must not change between versions.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace fsdpq::rt::splitmix {

/// The distance of the generator's states: 2^64 / phi, odd.
inline constexpr uint64_t gamma = 0x9E3779B97F4A7C15;

/// What the generator gives for a state: a bijection.
constexpr uint64_t mix(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return bits ^ (bits >> 31);
}

} // namespace fsdpq::rt::splitmix
