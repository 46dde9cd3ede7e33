#include "dialects/QT/QT.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fsdpq::qt;

#include "dialects/QT/QTDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/QT/QTTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/QT/QTOps.cpp.inc"

void QTDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/QT/QTTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/QT/QTOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Block types: <block = B, scale = f32 | dq<N>>
//===----------------------------------------------------------------------===//

static LogicalResult
verifyBlockType(function_ref<InFlightDiagnostic()> emitError, int64_t block,
                int64_t nested) {
  if (block < 2 || block > 4096 || !llvm::isPowerOf2_64(block))
    return emitError() << "block must be a power of two from 2 to 4096, got "
                       << block;
  if (nested != 0 && (nested < 2 || !llvm::isPowerOf2_64(nested)))
    return emitError() << "the nested block must be a power of two, got "
                       << nested;
  return success();
}

static void printBlockType(AsmPrinter &printer, int64_t block, int64_t nested) {
  printer << "<block = " << block << ", scale = ";
  if (nested)
    printer << "dq<" << nested << ">";
  else
    printer << "f32";
  printer << ">";
}

template <typename TypeT>
static Type parseBlockType(AsmParser &parser) {
  int64_t block = 0, nested = 0;
  if (parser.parseLess() || parser.parseKeyword("block") ||
      parser.parseEqual() || parser.parseInteger(block) ||
      parser.parseComma() || parser.parseKeyword("scale") ||
      parser.parseEqual())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  StringRef scale;
  if (parser.parseKeyword(&scale))
    return {};
  if (scale == "dq") {
    if (parser.parseLess() || parser.parseInteger(nested) ||
        parser.parseGreater())
      return {};
  } else if (scale != "f32") {
    parser.emitError(loc, "scale is 'f32' or 'dq<N>', not '") << scale << "'";
    return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<TypeT>(loc, parser.getContext(), block, nested);
}

#define FSDPQ_BLOCK_TYPE(TYPE)                                                 \
  LogicalResult TYPE::verify(function_ref<InFlightDiagnostic()> emitError,     \
                             int64_t block, int64_t nested) {                  \
    return verifyBlockType(emitError, block, nested);                          \
  }                                                                            \
  void TYPE::print(AsmPrinter &printer) const {                                \
    printBlockType(printer, getBlock(), getNested());                          \
  }                                                                            \
  Type TYPE::parse(AsmParser &parser) { return parseBlockType<TYPE>(parser); }

FSDPQ_BLOCK_TYPE(NF4Type)
FSDPQ_BLOCK_TYPE(FP4Type)
#undef FSDPQ_BLOCK_TYPE

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// `quantized` must be the same shape as `values`, with a qt element type.
static LogicalResult verifyConversion(Operation *op, Type quantizedType,
                                      Type valuesType) {
  auto quantized = cast<TensorType>(quantizedType);
  auto values = cast<TensorType>(valuesType);
  if (!isQuantized(quantized.getElementType()))
    return op->emitOpError("needs a qt element type on its quantised side, got ")
           << quantized.getElementType();
  if (!isa<FloatType>(values.getElementType()))
    return op->emitOpError(
               "needs a floating-point element type on its other side, got ")
           << values.getElementType();
  if (failed(verifyCompatibleShape(quantized, values)))
    return op->emitOpError("changes the shape: ")
           << quantized << " against " << values;
  return success();
}

LogicalResult QuantizeOp::verify() {
  return verifyConversion(*this, getResult().getType(), getInput().getType());
}

LogicalResult DequantizeOp::verify() {
  return verifyConversion(*this, getInput().getType(), getResult().getType());
}
