//===- Emitter.cpp - A kernel's body as CUDA text -------------------------===//

#include "compiler/Target/Cuda/Families/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

OwningOpRef<ModuleOp> cuda::generalize(kern::FuncOp kernel) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  OpBuilder builder(module->getBodyRegion());
  Operation *copy = builder.clone(*kernel);
  SmallVector<linalg::LinalgOp> named;
  copy->walk([&](linalg::LinalgOp op) {
    if (!isa<linalg::GenericOp>(op))
      named.push_back(op);
  });
  IRRewriter rewriter(kernel.getContext());
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    (void)linalg::generalizeNamedOp(rewriter, op);
  }
  return module;
}

kern::FuncOp cuda::getKernel(ModuleOp module) {
  return *module.getOps<kern::FuncOp>().begin();
}

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

LogicalResult Emitter::decline(Operation *op, const Twine &reason) {
  if (!declined.op)
    declined = {op, reason.str()};
  return failure();
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

//===----------------------------------------------------------------------===//
// Scalar memory and control flow
//===----------------------------------------------------------------------===//

LogicalResult Emitter::emitScalarLoad(memref::LoadOp load) {
  Access access = *Access::of(load);
  beforeScalar(access);
  declare(load, "*(" + getAddress(access) + ")", names);
  return success();
}

LogicalResult Emitter::emitScalarStore(memref::StoreOp store) {
  Access access = *Access::of(store);
  beforeScalar(access);
  std::string assignment =
      "*(" + getAddress(access) + ") = " + getScalar(store.getValue()) + ";";
  std::string leader = getLeader();
  if (leader.empty()) {
    text.line(assignment);
    return success();
  }
  text.line("if (" + leader + ")");
  text.line("  " + assignment);
  return success();
}

std::string Emitter::getForHead(scf::ForOp loop, StringRef counter) {
  return ("for (i64 " + counter + " = " + getScalar(loop.getLowerBound()) +
          "; " + counter + " < " + getScalar(loop.getUpperBound()) + "; " +
          counter + " += " + getScalar(loop.getStep()) + ")")
      .str();
}

LogicalResult Emitter::beginCarried(scf::ForOp loop, ArrayRef<unsigned>) {
  return decline(loop, "carries tiles");
}

LogicalResult Emitter::assignCarried(scf::ForOp loop, ArrayRef<unsigned>) {
  return decline(loop, "carries tiles");
}

LogicalResult Emitter::emitFor(scf::ForOp loop) {
  SmallVector<unsigned> tiles, numbers;
  for (auto [number, type] : llvm::enumerate(loop.getResultTypes()))
    (isa<RankedTensorType>(type) ? tiles : numbers).push_back(number);
  SmallVector<std::string> carried;
  for (unsigned number : numbers) {
    Value init = loop.getInitArgs()[number];
    carried.push_back(fresh("carried"));
    text.line(getTypeName(init.getType()) + " " + carried.back() + " = " +
              getScalar(init) + ";");
    names.set(loop.getRegionIterArgs()[number], carried.back());
    names.set(loop.getResult(number), carried.back());
  }
  if (!tiles.empty() && failed(beginCarried(loop, tiles)))
    return failure();

  bool isScalar =
      !loop.getBody()
           ->walk([](Operation *op) {
             bool isTile = isa<kern::LoadOp, kern::StoreOp, linalg::GenericOp,
                               scf::ForOp, scf::WhileOp>(op);
             return isTile ? WalkResult::interrupt() : WalkResult::advance();
           })
           .wasInterrupted();
  // Sums in a fixed order wait for each addition, but not for each load.
  if (isScalar)
    text.unroll(16);
  std::string counter = fresh("i");
  names.set(loop.getInductionVar(), counter);
  text.open(getForHead(loop, counter));
  ++loopDepth;
  enterLoop(loop);
  if (failed(emitBlock(*loop.getBody())))
    return failure();
  if (!tiles.empty() && failed(assignCarried(loop, tiles)))
    return failure();
  SmallVector<std::string> next;
  for (unsigned number : numbers) {
    Value value = loop.getYieldedValues()[number];
    next.push_back(getScalar(value));
    // Another carried value changes before this one is assigned.
    if (isa<BlockArgument>(value) && numbers.size() > 1) {
      next.back() = fresh("next");
      text.line("const " + getTypeName(value.getType()) + " " + next.back() +
                " = " + getScalar(value) + ";");
    }
  }
  for (auto [name, value] : llvm::zip(carried, next))
    text.line(name + " = " + value + ";");
  leaveLoop(loop);
  --loopDepth;
  text.close();
  if (!tiles.empty())
    endCarried(loop, tiles);
  return success();
}

LogicalResult Emitter::emitWhile(scf::WhileOp loop) {
  for (Type type :
       llvm::concat<const Type>(loop.getOperandTypes(), loop.getResultTypes()))
    if (getTypeName(type).empty())
      return decline(loop, "carries more than scalars");
  SmallVector<std::string> before, after;
  for (auto [init, argument] :
       llvm::zip(loop.getInits(), loop.getBeforeArguments())) {
    before.push_back(fresh("carried"));
    text.line(getTypeName(init.getType()) + " " + before.back() + " = " +
              getScalar(init) + ";");
    names.set(argument, before.back());
  }
  for (auto [result, argument] :
       llvm::zip(loop.getResults(), loop.getAfterArguments())) {
    after.push_back(fresh("passed"));
    text.line(getTypeName(result.getType()) + " " + after.back() + ";");
    names.set(result, after.back());
    names.set(argument, after.back());
  }
  text.open("while (true)");
  ++loopDepth;
  enterLoop(loop);
  if (failed(emitBlock(*loop.getBeforeBody())))
    return failure();
  scf::ConditionOp condition = loop.getConditionOp();
  for (auto [name, value] : llvm::zip(after, condition.getArgs()))
    text.line(name + " = " + getScalar(value) + ";");
  text.line("if (!(" + getScalar(condition.getCondition()) + "))");
  text.line("  break;");
  if (failed(emitBlock(*loop.getAfterBody())))
    return failure();
  for (auto [name, value] : llvm::zip(before, loop.getYieldOp().getResults()))
    text.line(name + " = " + getScalar(value) + ";");
  leaveLoop(loop);
  --loopDepth;
  text.close();
  return success();
}

LogicalResult Emitter::emitIf(scf::IfOp op) {
  SmallVector<std::string> results;
  for (OpResult result : op.getResults()) {
    if (getTypeName(result.getType()).empty())
      return decline(op, "gives more than scalars");
    results.push_back(fresh("chosen"));
    text.line(getTypeName(result.getType()) + " " + results.back() + ";");
    names.set(result, results.back());
  }
  auto emitBranch = [&](Block *block) -> LogicalResult {
    if (failed(emitBlock(*block)))
      return failure();
    for (auto [name, value] :
         llvm::zip(results, block->getTerminator()->getOperands()))
      text.line(name + " = " + getScalar(value) + ";");
    return success();
  };
  text.open("if (" + getScalar(op.getCondition()) + ")");
  enterBranch();
  if (failed(emitBranch(op.thenBlock())))
    return failure();
  text.close();
  nextBranch();
  if (Block *otherwise = op.elseBlock();
      otherwise &&
      !(otherwise->without_terminator().empty() && results.empty())) {
    text.open("else");
    if (failed(emitBranch(otherwise)))
      return failure();
    text.close();
  }
  leaveBranches();
  return success();
}

LogicalResult Emitter::emitOp(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>() || isa<arith::ConstantOp>(op))
    return success();
  if (isa<tensor::EmptyOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return success();
  if (isa<kern::LoadOp, kern::StoreOp, linalg::GenericOp, tensor::ExtractOp>(
          op)) {
    forgetElements();
    LogicalResult result = emitTile(op);
    forgetElements();
    return result;
  }
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return emitScalarLoad(load);
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return emitScalarStore(store);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitFor(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return emitWhile(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return emitIf(branch);
  if (isOpTriviallyDead(op))
    return success();
  auto expression = scalars.getExpression(op, names);
  if (!expression)
    return decline(op, "has no expression in CUDA");
  declare(op->getResult(0), *expression, names);
  return success();
}

LogicalResult Emitter::emitBlock(Block &block) {
  for (Operation &op : block)
    if (failed(emitOp(&op)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// The text
//===----------------------------------------------------------------------===//

std::string Emitter::getParameters() {
  std::string list;
  for (BlockArgument argument : kernel.getArguments()) {
    std::string name = names.get(argument);
    auto memref = dyn_cast<MemRefType>(argument.getType());
    if (memref)
      list += (Twine(isWritten(argument) ? "" : "const ") +
               getTypeName(memref.getElementType()) + " *__restrict__ " + name)
                  .str();
    else
      list += (getTypeName(argument.getType()) + " " + name).str();
    list += ", ";
  }
  return list + "i64 items";
}

std::string Emitter::assemble(StringRef symbol, StringRef body) {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << "// " << symbol << ": " << describe() << ".\n";
  for (BlockArgument argument : kernel.getArguments())
    os << "// " << names.get(argument) << ": " << argument.getType() << "\n";
  os << helpers.str() << tables.str() << getDeclarations() << "\n";
  std::string parameters = getParameters(), passed;
  for (BlockArgument argument : kernel.getArguments())
    passed += names.get(argument) + ", ";
  passed += "items";
  std::string entry =
      ("extern \"C\" __global__ void __launch_bounds__(" + Twine(getThreads()) +
       ")\n" + symbol + "(" + parameters + ") {\n")
          .str();
  if (vectorised.empty()) {
    os << entry << body << "}\n";
    return result;
  }
  os << "template <bool Aligned>\nDEV void compute(" << parameters << ") {\n"
     << body << "}\n\n"
     << entry << "  // Slices may begin anywhere.\n  const u64 begins = ";
  llvm::interleave(
      vectorised, os,
      [&](Value memref) {
        os << "reinterpret_cast<u64>(" << names.get(memref) << ")";
      },
      " | ");
  os << ";\n  if (begins % 16 == 0)\n    compute<true>(" << passed
     << ");\n  else\n    compute<false>(" << passed << ");\n}\n";
  return result;
}

FailureOr<KernelText> Emitter::run(StringRef symbol) {
  for (auto [number, argument] : llvm::enumerate(kernel.getArguments()))
    names.set(argument, "a" + Twine(number));
  names.set(kernel.getItem(), "item");
  for (const Access &access : getAccesses(kernel))
    if (access.isWrite)
      written.insert(access.memref);
  if (failed(plan()))
    return failure();

  int64_t itemThreads = emission.getGroup() * emission.getTeams();
  int64_t items = getThreads() / itemThreads;
  std::string place = std::to_string(items);
  place = items == 1 ? "" : place + " * ";
  std::string within =
      items == 1 ? "" : " + threadIdx.x / " + std::to_string(itemThreads);
  if (isPersistent())
    text.open("for (i64 item = " + place + "i64(blockIdx.x)" + within +
              "; item < items; item += " + place + "i64(gridDim.x))");
  else {
    text.line("const i64 item = " + place + "i64(blockIdx.x)" + within + ";");
    if (items != 1) {
      text.line("if (item >= items)");
      text.line("  return;");
    }
  }
  loopDepth += isPersistent();
  if (failed(emitBlock(kernel.getBody().front())))
    return failure();
  loopDepth -= isPersistent();
  if (isPersistent())
    text.close();

  // What the body uses of the block is known only now.
  Text prologue(1);
  if (tables.hasShared())
    tables.fill(prologue);
  emitPrologue(prologue);
  std::string body = prologue.str() + text.str();
  KernelText result;
  result.symbol = symbol.str();
  result.text = assemble(symbol, body);
  result.launch.threads = getThreads();
  result.launch.sharedBytes = getSharedBytes();
  result.launch.itemsPerBlock = items;
  result.launch.blocksPerProcessor = emission.getBlocks();
  return result;
}
