//===- DType.h - How files store the elements of a tensor -------*- C++ -*-===//
//
// The block formats are ggml's. A block of 32 consecutive elements of a row is
//   Q4_0  f16 d, 16 bytes q            element = d * (q - 8)
//   Q4_1  f16 d, f16 m, 16 bytes q     element = d * q + m
//   Q8_0  f16 d, 32 signed bytes q     element = d * q
// where byte j of a 4-bit format holds element j in its low and element j + 16
// in its high half.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/support/HalfFloat.h"

#include <cstdint>

namespace fsdpq::rt {

enum class DType : uint8_t {
  F64,
  F32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  U8,
  BOOL,
  Q4_0,
  Q4_1,
  Q8_0,
  /// A type that a file may hold and nobody here can read (TensorInfo names
  /// it). It has no block size.
  Other,
};

/// Elements that are stored together: 1 for plain types, 32 for block formats.
int64_t blockElements(DType dtype);

/// Bytes of one block (of one element for plain types); 0 for Other.
int64_t blockBytes(DType dtype);

/// "F32", "Q4_1", ...: the spelling of safetensors and ggml.
const char *dtypeName(DType dtype);

/// Whether the elements are whole numbers (BOOL counts).
bool isInteger(DType dtype);

} // namespace fsdpq::rt
