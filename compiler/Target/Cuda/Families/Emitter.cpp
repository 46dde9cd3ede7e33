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

LogicalResult Emitter::decline(Operation *op, const Twine &reason) {
  if (!declined.op)
    declined = {op, reason.str()};
  return failure();
}

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

/// Sums in a fixed order wait for each addition, but need not wait for each
/// load: how many iterations of a loop that only sums up are unrolled.
static int64_t getUnrolling(scf::ForOp loop) {
  bool hasTiles = false;
  WalkResult walk = loop.getBody()->walk([&](Operation *op) {
    auto access = Access::of(op);
    hasTiles |= isa<kern::LoadOp>(op);
    auto generic = dyn_cast<linalg::GenericOp>(op);
    bool isMore = op->getNumRegions() != 0 && !generic;
    return isMore || (access && access->isWrite) ||
                   (generic && generic.getNumReductionLoops() != 0)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return 1;
  return hasTiles ? 4 : 16;
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

  if (int64_t times = getUnrolling(loop); times > 1)
    text.unroll(times);
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
  result.launch.sharedBytes = emission.getShared();
  result.launch.itemsPerBlock = items;
  result.launch.blocksPerProcessor = emission.getBlocks();
  return result;
}
