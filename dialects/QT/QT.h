//===- QT.h - Quantised storage types ---------------------------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/QT/QTDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/QT/QTTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/QT/QTOps.h.inc"

namespace fsdpq::qt {

/// The block format of a 4-bit element type, whichever its codebook.
struct BlockFormat {
  int64_t block;  ///< elements a scale covers
  int64_t nested; ///< scales a nested scale covers, 0: scales are plain f32
  bool isNF4;
};

/// The format of `!qt.nf4` or `!qt.fp4`, or nothing for other types.
std::optional<BlockFormat> getBlockFormat(Type elementType);

bool isQuantized(Type elementType);

/// One stored array of a quantised tensor.
struct StoredPart {
  StringRef name; ///< codes, absmax, absmax_u8, nested_absmax, offset
  bool isByte;    ///< u8, otherwise f32
  int64_t count;  ///< entries
  int64_t bytes() const { return isByte ? count : 4 * count; }
};

/// The arrays that hold `elements` values of `format`, in storage order.
SmallVector<StoredPart> getStoredParts(BlockFormat format, int64_t elements);

/// The 16 values of a code, indexed by code.
ArrayRef<float> getCodebook(bool isNF4);

/// bitsandbytes' signed dynamic 8-bit map, ascending.
ArrayRef<float> getDynamicMap();

/// For the codebook sorted by value: `thresholds[i]` lies between the sorted
/// values i and i + 1; a value x has the sorted index = number of thresholds
/// below x (strictly). `codes[i]` is the code of sorted index i.
struct Quantizer {
  SmallVector<float> thresholds;
  SmallVector<uint8_t> codes;
};
Quantizer getQuantizer(bool isNF4);

/// Thresholds (255) of the dynamic map: exact nearest value, ties to the lower.
SmallVector<float> getDynamicThresholds();

} // namespace fsdpq::qt
