//===- AdapterInit.h - Where adapters start from ----------------*- C++ -*-===//
#pragma once

#include "runtime/exec/Executor.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace fsdpq::rt {

/// Fills `values` with elements `first`, first + 1, ... of a uniform
/// distribution over [-bound, bound), where bound is 1/sqrt(fanIn): torch's
/// kaiming_uniform at a = sqrt(5), from a generator of our own.
///
/// Element i depends on the seed, the parameter's name, the layer and i alone,
/// so neither the order of initialisation nor the number of ranks matters:
///   key = mix(mix(fnv1a64(name)) + layer + mix(seed))
///   bits = mix(key + (i + 1) * 2^64/phi), of which the upper 53 make u in [0,
///   1) value = float(bound * (2 u - 1))
/// mix is the output function of splitmix64 and sums wrap. Fixed for good: runs
/// are compared by their seeds.
void kaimingUniform(std::span<float> values, int64_t fanIn, uint64_t seed,
                    std::string_view parameter, int64_t layer,
                    int64_t first = 0);

/// Gives every adapter parameter its initial values: zeros, or the above with
/// the layer number of the instance (-1 without layers). Each rank computes
/// what it holds.
void initialiseAdapters(Executor &executor, uint64_t seed);

} // namespace fsdpq::rt
