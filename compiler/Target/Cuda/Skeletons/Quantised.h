//===- Quantised.h - CUDA texts between codes and values --------*- C++ -*-===//
//
// NF4 and FP4 block formats. Arguments as in compiler/Kernel/Bodies.h:
//   dequantize: plain:  codes: ceil(N/2) x i8, absmax: ? x f32, y: N x bf16 | f32
//               nested: codes, absmax_u8: ? x i8, nested_absmax: ? x f32,
//                       offset: 1 x f32, y
//   quantize:   src: N x f32, codes: ceil(N/2) x i8, absmax: ? x f32
//   quantize_scales: absmax: B x f32, offset: 1 x f32, absmax_u8: B x i8,
//                       nested_absmax: ? x f32
// Work items: blocks of `block` elements (dequantize, quantize), nested blocks of
// `nested` scales (quantize_scales); the last may be short. The texts hold the
// number of elements or scales: `items` must be that of all blocks.
// Arithmetic: see qt.dequantize in dialects/QT: table[code] * scale in f32, one
// rounding to the element type; scale = table256[u8] * nested_absmax + offset with
// two roundings.
// Alignment: codes 4 bytes, src 16 bytes; y 16 bytes, or else it is written slowly.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/KernelText.h"

#include <vector>

namespace fsdpq::cuda {

struct QuantisedParams {
  int64_t block;  ///< elements a scale: a power of two, quantize: 4 to 4096
  int64_t nested; ///< scales a nested scale, a power of two; 0: plain
  int64_t count;  ///< elements (dequantize, quantize) or scales (quantize_scales)
  std::vector<float> codebook;       ///< 16 entries (dequantize)
  std::vector<float> scaleCodebook;  ///< 256 entries (dequantize with `nested`)
  std::vector<float> thresholds;     ///< ascending borders between codes by value:
                                     ///< at most 15 (quantize), 255 (quantize_scales)
  std::vector<int> codesByValue;     ///< code of each interval of `thresholds` (quantize)
  bool roundFirst = false; ///< quantize: each value is rounded to bf16 before
  bool bf16 = true;                  ///< element type of y, else f32

  /// If not 0, element e of y lies at e / rowColumns * rowPitch + e % rowColumns,
  /// and what is between the rows is not written. Fast if both are multiples of 8.
  int64_t rowColumns = 0, rowPitch = 0;
};

KernelText emitDequantize(const QuantisedParams &);
KernelText emitQuantize(const QuantisedParams &);
KernelText emitQuantizeScales(const QuantisedParams &);

} // namespace fsdpq::cuda
