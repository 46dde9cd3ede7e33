//===- ElementCodec.h - Stored elements to f32 and int64 --------*- C++ -*-===//
//
// `raw` is the start of a tensor's stored bytes (little-endian, any alignment);
// [begin, end) counts elements and may cut through blocks. The caller has
// checked that the range lies within the tensor.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/io/DType.h"

namespace fsdpq::rt {

/// Writes end - begin floats. Exact but for F64, I64 and I32, which round to
/// nearest even. `dtype` is not Other.
void decodeF32(DType dtype, const unsigned char *raw, int64_t begin,
               int64_t end, float *out);

/// Writes end - begin integers. `dtype` is an integer type.
void decodeI64(DType dtype, const unsigned char *raw, int64_t begin,
               int64_t end, int64_t *out);

/// Converts `count` floats to F32, F16 or BF16 (round to nearest even).
void encodeF32(DType dtype, const float *values, int64_t count,
               unsigned char *out);

} // namespace fsdpq::rt
