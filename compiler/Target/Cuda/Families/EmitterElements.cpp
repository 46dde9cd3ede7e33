//===- EmitterElements.cpp - Elements of tiles as CUDA text ---------------===//

#include "compiler/Target/Cuda/Families/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

llvm::SmallPtrSet<Operation *, 16> cuda::getSlice(ArrayRef<Value> wanted,
                                                  Block *block) {
  llvm::SmallPtrSet<Operation *, 16> slice;
  SmallVector<Value> todo(wanted);
  while (!todo.empty()) {
    Operation *op = todo.pop_back_val().getDefiningOp();
    if (op && op->getBlock() == block && slice.insert(op).second)
      llvm::append_range(todo, op->getOperands());
  }
  return slice;
}

/// The block arguments that `wanted` depend on.
static llvm::SmallDenseSet<Value> getReadArguments(ArrayRef<Value> wanted,
                                                   Block *block) {
  llvm::SmallDenseSet<Value> arguments;
  auto note = [&](Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value);
        argument && argument.getOwner() == block)
      arguments.insert(argument);
  };
  llvm::for_each(wanted, note);
  for (Operation *op : getSlice(wanted, block))
    llvm::for_each(op->getOperands(), note);
  return arguments;
}

bool cuda::readsOperand(linalg::GenericOp op, OpOperand &operand,
                        unsigned number) {
  Value result = op.getBlock()->getTerminator()->getOperand(number);
  return getReadArguments(result, op.getBlock())
      .contains(op.getMatchingBlockArgument(&operand));
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

static bool isNumber(StringRef text) {
  return !text.empty() && llvm::all_of(text, llvm::isDigit);
}

static std::string addText(StringRef a, StringRef b) {
  if (a == "0" || a.empty())
    return b.str();
  return b == "0" || b.empty() ? a.str() : (a + " + " + b).str();
}

/// `a` may be a sum.
static std::string multiplyText(StringRef a, int64_t factor) {
  if (factor == 0 || a == "0")
    return "0";
  if (factor == 1)
    return a.str();
  if (isNumber(a))
    return std::to_string(std::stoll(a.str()) * factor);
  std::string operand = a.contains(' ') ? ("(" + a + ")").str() : a.str();
  return operand + " * " + std::to_string(factor);
}

std::string Emitter::getIndex(AffineExpr expression,
                              ArrayRef<std::string> dims) {
  if (auto dim = dyn_cast<AffineDimExpr>(expression))
    return dims[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expression))
    return std::to_string(constant.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expression);
  std::string a = getIndex(binary.getLHS(), dims);
  std::string b = getIndex(binary.getRHS(), dims);
  auto inParentheses = [](const std::string &operand) {
    return StringRef(operand).contains(' ') ? "(" + operand + ")" : operand;
  };
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return addText(a, b);
  case AffineExprKind::Mul:
    return inParentheses(a) + " * " + inParentheses(b);
  case AffineExprKind::Mod:
    return inParentheses(a) + " % " + inParentheses(b);
  case AffineExprKind::FloorDiv: // of numbers that are not negative
    return inParentheses(a) + " / " + inParentheses(b);
  case AffineExprKind::CeilDiv:
    return "(" + a + " + " + inParentheses(b) + " - 1) / " + inParentheses(b);
  default:
    llvm_unreachable("no binary expression");
  }
}

std::string Emitter::linearize(ArrayRef<std::string> index,
                               ArrayRef<int64_t> shape) {
  std::string position = "0";
  for (auto [name, size] : llvm::zip(index, shape))
    position = addText(multiplyText(position, size), name);
  return position;
}

SmallVector<std::string> Emitter::delinearize(StringRef position,
                                              ArrayRef<int64_t> shape) {
  SmallVector<std::string> index(shape.size(), "0");
  std::string rest =
      position.contains(' ') ? ("(" + position + ")").str() : position.str();
  // Dimensions of one element take no part.
  SmallVector<unsigned> dims;
  for (auto [dim, size] : llvm::enumerate(shape))
    if (size != 1)
      dims.push_back(dim);
  int64_t inner = 1;
  for (unsigned dim : llvm::reverse(dims)) {
    std::string quotient =
        inner == 1 ? rest : rest + " / " + std::to_string(inner);
    index[dim] = dim == dims.front()
                     ? quotient
                     : (inner == 1 ? rest : "(" + quotient + ")") + " % " +
                           std::to_string(shape[dim]);
    inner *= shape[dim];
  }
  return index;
}

std::string Emitter::getAddress(const Access &access) {
  std::string offset = "0";
  for (auto [index, stride] :
       llvm::zip(access.indices, getStrides(access.getType()))) {
    std::string name = getScalar(index);
    offset = addText(offset, multiplyText(name, stride));
  }
  return addText(names.get(access.memref), offset);
}

std::string Emitter::getOffset(const Access &access,
                               ArrayRef<std::string> index) {
  SmallVector<int64_t> strides = getStrides(access.getType());
  ArrayRef<int64_t> inner = ArrayRef(strides).take_back(access.shape.size());
  std::string offset = "0";
  for (auto [name, stride] : llvm::zip(index, inner))
    offset = addText(offset, multiplyText(name, stride));
  return offset;
}

//===----------------------------------------------------------------------===//
// Elements of tiles
//===----------------------------------------------------------------------===//

std::string Emitter::declare(Value value, const Twine &expression,
                             Names &scope) {
  std::string name = fresh("v");
  text.line("const " + getTypeName(value.getType()) + " " + name + " = " +
            expression + ";");
  scope.set(value, name);
  return name;
}

LogicalResult Emitter::emitPayload(linalg::GenericOp op, ArrayRef<Value> wanted,
                                   ArrayRef<std::string> dims,
                                   OperandElement operand, Names &payload) {
  Block *block = op.getBlock();
  llvm::SmallDenseSet<Value> read = getReadArguments(wanted, block);
  for (OpOperand &use : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&use);
    if (!read.contains(argument) || !payload.get(argument).empty())
      continue;
    auto name = operand(use);
    if (failed(name))
      return failure();
    payload.set(argument, *name);
  }
  llvm::SmallPtrSet<Operation *, 16> slice = getSlice(wanted, block);
  for (Operation &inner : *block) {
    if (!slice.contains(&inner) || isa<arith::ConstantOp>(inner))
      continue;
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      payload.set(index, "i64(" + dims[index.getDim()] + ")");
      continue;
    }
    if (!payload.get(inner.getResult(0)).empty())
      continue;
    auto expression = scalars.getExpression(&inner, payload);
    if (!expression)
      return decline(&inner, "has no expression in CUDA");
    declare(inner.getResult(0), *expression, payload);
  }
  return success();
}

FailureOr<std::string> Emitter::getOperand(linalg::GenericOp op,
                                           OpOperand &operand,
                                           ArrayRef<std::string> dims) {
  if (!isa<RankedTensorType>(operand.get().getType()))
    return getScalar(operand.get());
  SmallVector<std::string> index;
  for (AffineExpr expression : op.getMatchingIndexingMap(&operand).getResults())
    index.push_back(getIndex(expression, dims));
  return getElement(operand.get(), index);
}

FailureOr<std::string> Emitter::getElement(Value tile,
                                           ArrayRef<std::string> index) {
  if (auto kept = getKept(tile, index))
    return *kept;
  Operation *op = tile.getDefiningOp();
  if (!op)
    return (LogicalResult)decline(
        tile.getParentBlock()->getParentOp(),
        "carries a tile whose elements other threads read");
  ArrayRef<int64_t> shape = getTileType(tile).getShape();
  std::pair<void *, std::string> key(tile.getAsOpaquePointer(),
                                     llvm::join(index, ", "));
  if (auto found = elements.find(key); found != elements.end())
    return found->second;

  if (auto load = dyn_cast<kern::LoadOp>(op)) {
    std::string name = fresh("v");
    text.line("const " + getTypeName(getTileType(tile).getElementType()) + " " +
              name + " = " + pointers[tile] + "[" +
              getOffset(*Access::of(load), index) + "];");
    return elements[key] = name;
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto entries = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!entries)
      return (LogicalResult)decline(op, "is a constant of unknown form");
    if (entries.isSplat())
      return getLiteral(*entries.value_begin<TypedAttr>());
    std::string name = fresh("v");
    text.line("const " + getTypeName(entries.getElementType()) + " " + name +
              " = " + tables.getGlobal(entries) + "[" +
              linearize(index, shape) + "];");
    return elements[key] = name;
  }
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
    Value source = op->getOperand(0);
    return getElement(source, delinearize(linearize(index, shape),
                                          getTileType(source).getShape()));
  }
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return (LogicalResult)decline(op,
                                  "gives a tile in a way that is not known");
  if (generic.getNumReductionLoops() != 0)
    return (LogicalResult)decline(op, "sums up a tile");
  unsigned number = cast<OpResult>(tile).getResultNumber();
  AffineMap output =
      generic.getMatchingIndexingMap(generic.getDpsInitOperand(number));
  if (!output.isPermutation())
    return (LogicalResult)decline(op, "does not write each element once");
  SmallVector<std::string> dims(generic.getNumLoops());
  for (auto [expression, name] : llvm::zip(output.getResults(), index))
    dims[cast<AffineDimExpr>(expression).getPosition()] = name;
  Value result = generic.getBlock()->getTerminator()->getOperand(number);
  Names payload(&names);
  if (failed(emitPayload(
          generic, result, dims,
          [&](OpOperand &operand) {
            return getOperand(generic, operand, dims);
          },
          payload)))
    return failure();
  std::string name = payload.get(result);
  if (name.empty())
    name = getScalar(result);
  return elements[key] = name;
}

std::string Emitter::getScalar(Value value) { return names.get(value); }
