//===- KernCalls.cpp - Calls of kernels and library products --------------===//

#include "dialects/Kern/Kern.h"
#include "dialects/QT/QT.h"
#include "dialects/Support/Elements.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kern;

LogicalResult
ExtentAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                   StringRef scalar, int64_t mul, int64_t div,
                   int64_t indexMul, int64_t add, int64_t cap) {
  if (div <= 0)
    return emitError() << "div must be positive, got " << div;
  if (cap < 0)
    return emitError() << "cap must not be negative, got " << cap;
  return success();
}

ExtentAttr ExtentAttr::getConstant(MLIRContext *context, int64_t value) {
  return get(context, "", 1, 1, 0, value, value);
}

ExtentAttr ExtentAttr::scaled(int64_t mul, int64_t div) const {
  // floor(mul * S / div) distributes only where the division is exact, which
  // sizes that are multiples of the tile guarantee.
  return get(getContext(), getScalar(), getMul() * mul, getDiv() * div,
             getIndexMul() * mul / div, getAdd() * mul / div,
             getCap() * mul / div);
}

LogicalResult FillOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       FillOp::Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getOut().getType());
  return success();
}

LogicalResult CopyOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       CopyOp::Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getOut().getType());
  return success();
}

LogicalResult GemmOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       GemmOp::Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getOut().getType());
  return success();
}

LogicalResult GemmOp::verify() {
  auto elementOf = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getElementType();
  };
  Type element = elementOf(getA()), result = elementOf(getOut());
  if (!isa<FloatType>(element) || elementOf(getB()) != element ||
      (result != element && result != getComputeType(element)))
    return emitOpError("makes elements of ")
           << result << " from products of " << element << " and "
           << elementOf(getB());
  double beta = getBeta().convertToDouble();
  if (beta != 0 && beta != 1)
    return emitOpError("needs beta 0 or 1, got ") << beta;
  int64_t columns[] = {getTransA() ? getM().getCap() : getK().getCap(),
                       getTransB() ? getK().getCap() : getN().getCap(),
                       getN().getCap()};
  int64_t pitches[] = {(int64_t)getLda(), (int64_t)getLdb(), (int64_t)getLdc()};
  static constexpr const char *names[] = {"a", "b", "c"};
  for (auto [name, width, pitch] : llvm::zip(names, columns, pitches))
    if (pitch < width)
      return emitOpError("has rows of ")
             << name << " " << pitch << " elements apart that are " << width
             << " wide";
  return success();
}

LogicalResult CallOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       CallOp::Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  llvm::append_range(types, adaptor.getOuts().getTypes());
  return success();
}

/// Kernel arguments that an operand of a call gives.
static int64_t countArguments(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  auto format = qt::getBlockFormat(tensor.getElementType());
  return format ? qt::getStoredParts(*format, tensor.getNumElements()).size()
                : 1;
}

/// The element types, in order, of the kernel arguments an operand gives.
static SmallVector<Type> getArgumentElements(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  Builder builder(type.getContext());
  auto format = qt::getBlockFormat(tensor.getElementType());
  if (!format)
    return {tensor.getElementType()};
  SmallVector<Type> elements;
  for (const qt::StoredPart &part :
       qt::getStoredParts(*format, tensor.getNumElements()))
    elements.push_back(part.isByte ? Type(builder.getI8Type())
                                   : Type(builder.getF32Type()));
  return elements;
}

/// Operands in the wrong order would compute nonsense silently: arguments must
/// have the operands' element types and, where the shape is kept, columns.
static LogicalResult verifyArguments(CallOp call, FuncOp kernel) {
  unsigned index = 0;
  for (Value operand : call.getOperands()) {
    auto tensor = cast<RankedTensorType>(operand.getType());
    for (Type element : getArgumentElements(tensor)) {
      auto argument =
          dyn_cast<MemRefType>(kernel.getArguments()[index++].getType());
      bool fits = argument && argument.getElementType() == element;
      if (fits && argument.getRank() == 2 && tensor.getRank() == 2)
        fits = argument.getDimSize(1) == tensor.getDimSize(1);
      if (fits)
        continue;
      InFlightDiagnostic diagnostic = call.emitOpError("gives ")
                                      << tensor << " as argument " << index - 1
                                      << " of " << call.getCalleeAttr();
      diagnostic.attachNote(kernel.getLoc())
          << "which is " << kernel.getArguments()[index - 1].getType();
      return diagnostic;
    }
  }
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto kernel = tables.lookupNearestSymbolFrom<FuncOp>(*this, getCalleeAttr());
  if (!kernel)
    return emitOpError("calls ") << getCalleeAttr() << ", which is no kernel";
  int64_t given = getExtents().size() + getScalars().size();
  for (Value operand : getOperands())
    given += countArguments(operand.getType());
  int64_t taken = kernel.getArguments().size();
  if (given != taken) {
    InFlightDiagnostic diagnostic = emitOpError("gives ")
                                    << given << " arguments to "
                                    << getCalleeAttr();
    diagnostic.attachNote(kernel.getLoc()) << "which takes " << taken;
    return diagnostic;
  }
  if (failed(verifyArguments(*this, kernel)))
    return failure();
  if (getOutOffsets() && getOutOffsets()->size() != getOuts().size())
    return emitOpError("has ") << getOutOffsets()->size() << " offsets for "
                               << getOuts().size() << " destinations";
  return success();
}
