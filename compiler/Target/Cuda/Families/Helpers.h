//===- Helpers.h - Device functions of emitted texts ------------*- C++ -*-===//
//
// Texts paste what they use. Only bf16_of and bf16x2_of contain PTX: an
// emulator on a host replaces these two and provides, besides the language,
// threadIdx, blockIdx, gridDim, __syncthreads, __syncwarp(mask),
// __shfl_xor_sync,
// __shfl_sync (4 and 8 bytes, masks of a part of a warp), __uint_as_float,
// __float_as_uint, __longlong_as_double, __double_as_longlong, __f*_rn,
// __d*_rn, and the functions of math.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Support/LLVM.h"

#include <set>
#include <string>

namespace fsdpq::cuda {

enum class Helper {
  Words,     ///< Words<Bytes>: bytes that a thread holds
  Read,      ///< read<Bytes, Access>(from): Words in accesses of so many bytes
  Write,     ///< write<Access>(to, words)
  At,        ///< at<T>(words, j): the element of 1, 2, 4 or 8 bytes
  Put,       ///< put(words, j, value), for j in ascending order
  FloatBf16, ///< f32_of(u16): the value of a bf16
  Bf16,      ///< bf16_of(float): round to nearest even
  Bf16x2,    ///< bf16x2_of(low, high)
  Maximum,   ///< maximum(a, b), minimum(a, b): NaN if either is, -0 < +0
};

/// What a text uses.
class Helpers {
public:
  void use(Helper helper);
  /// Types and functions, in one fixed order.
  std::string str() const;

private:
  std::set<Helper> used;
};

} // namespace fsdpq::cuda
