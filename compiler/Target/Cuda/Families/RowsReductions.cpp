//===- RowsReductions.cpp - Sums of tiles in registers --------------------===//

#include "compiler/Target/Cuda/Families/RowsEmitter.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

std::string RowsEmitter::getCombined(const Combiner &combiner, StringRef a,
                                     StringRef b) {
  Names operands(&names);
  bool isFirst = combiner.op->getOperand(0) == combiner.sum;
  operands.set(combiner.sum, a);
  operands.set(combiner.op->getOperand(isFirst ? 1 : 0), b);
  return *scalars.getExpression(combiner.op, operands);
}

/// Adds up what each thread owns.
LogicalResult RowsEmitter::emitPartialSums(linalg::GenericOp op,
                                           ArrayRef<Combiner> combiners,
                                           ArrayRef<std::string> sums) {
  const Consumer &consumer = *analysis->getConsumer(op);
  synchronise(consumer, Who::Owner);
  Layout place = getLayout(consumer.elements);
  SmallVector<Value> terms, tiles;
  for (const Combiner &combiner : combiners)
    terms.push_back(combiner.term);
  for (OpOperand *operand : op.getDpsInputOperands())
    if (op.getMatchingIndexingMap(operand).isIdentity())
      tiles.push_back(operand->get());
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  auto inner = [&]() -> LogicalResult {
    SmallVector<std::string> dims = delinearize("e + j", sizes);
    Names payload(&names);
    auto operand = [&](OpOperand &operand) -> FailureOr<std::string> {
      if (isa<RankedTensorType>(operand.get().getType()) &&
          op.getMatchingIndexingMap(&operand).isIdentity())
        return getOwned(operand.get());
      return getOperand(op, operand, dims);
    };
    if (failed(emitPayload(op, terms, dims, operand, payload)))
      return failure();
    for (auto [combiner, sum] : llvm::zip(combiners, sums)) {
      std::string term = payload.get(combiner.term);
      text.line(sum + " = " + getCombined(combiner, sum, term) + ";");
    }
    return success();
  };
  return emitOwned(place, tiles, nullptr, inner, nullptr);
}

/// Combines the sums of all threads of the group; all get the result.
void RowsEmitter::emitCombination(ArrayRef<Combiner> combiners,
                                  ArrayRef<std::string> sums) {
  auto shuffle = [&](int64_t lanes, StringRef mask) {
    text.unroll();
    text.open("for (int o = " + Twine(lanes / 2) + "; o > 0; o /= 2)");
    for (auto [combiner, sum] : llvm::zip(combiners, sums)) {
      std::string other = fresh("v");
      StringRef type = getTypeName(combiner.op->getResult(0).getType());
      // Shuffles take words.
      std::string value = getBytes(combiner.op->getResult(0).getType()) < 4
                              ? "int(" + sum + ")"
                              : sum;
      text.line("const " + type + " " + other + " = " + type +
                "(__shfl_xor_sync(" + mask + ", " + value + ", o));");
      text.line(sum + " = " + getCombined(combiner, sum, other) + ";");
    }
    text.close();
  };
  if (group() == 1)
    return;
  if (group() <= 32)
    return shuffle(group(), getMask());

  int64_t warps = group() / 32;
  shuffle(32, "~0u");
  SmallVector<std::string> arrays;
  for (auto [combiner, sum] : llvm::zip(combiners, sums)) {
    arrays.push_back(fresh("partial"));
    declarations.line("__shared__ " +
                      getTypeName(combiner.op->getResult(0).getType()) + " " +
                      arrays.back() + "[" + Twine(warps) + "];");
  }
  // Of the round before, some threads may not have read them yet.
  if (loopDepth != 0)
    text.line("__syncthreads();");
  text.open("if (lane % 32 == 0)");
  for (auto [array, sum] : llvm::zip(arrays, sums))
    text.line(array + "[lane / 32] = " + sum + ";");
  text.close();
  text.line("__syncthreads();");
  sync.barrier();
  if (warps <= 8) {
    for (auto [combiner, array, sum] : llvm::zip(combiners, arrays, sums))
      text.line(sum + " = " + array + "[0];");
    text.unroll();
    text.open("for (int w = 1; w < " + Twine(warps) + "; ++w)");
    for (auto [combiner, array, sum] : llvm::zip(combiners, arrays, sums))
      text.line(sum + " = " + getCombined(combiner, sum, array + "[w]") + ";");
    text.close();
    return;
  }
  for (auto [combiner, array, sum] : llvm::zip(combiners, arrays, sums))
    text.line(sum + " = lane % 32 < " + Twine(warps) + " ? " + array +
              "[lane % 32] : " + combiner.identity + ";");
  shuffle(32, "~0u");
}

/// In the order of the elements, by one thread.
LogicalResult RowsEmitter::emitSequence(linalg::GenericOp op,
                                        ArrayRef<std::string> sums) {
  const Consumer &consumer = *analysis->getConsumer(op);
  synchronise(consumer, Who::Anyone);
  Block *block = op.getBlock();
  std::string leader = getLeader();
  if (!leader.empty())
    text.open("if (" + leader + ")");
  SmallVector<std::string> dims;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    dims.push_back(fresh("d"));
    if (dim + 1 == sizes.size())
      text.unroll(8);
    text.open("for (int " + dims.back() + " = 0; " + dims.back() + " < " +
              Twine(size) + "; ++" + dims.back() + ")");
  }
  forgetElements();
  Names payload(&names);
  for (auto [argument, sum] : llvm::zip(op.getRegionOutputArgs(), sums))
    payload.set(argument, sum);
  SmallVector<Value> wanted(block->getTerminator()->getOperands());
  if (failed(emitPayload(
          op, wanted, dims,
          [&](OpOperand &operand) { return getOperand(op, operand, dims); },
          payload)))
    return failure();
  for (auto [sum, value] : llvm::zip(sums, wanted))
    text.line(sum + " = " + payload.get(value) + ";");
  forgetElements();
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    text.close();
  if (leader.empty())
    return success();
  text.close();
  if (group() <= 32) {
    for (const std::string &sum : sums)
      text.line(sum + " = __shfl_sync(" + getMask() + ", " + sum + ", 0, " +
                Twine(group()) + ");");
    return success();
  }
  if (loopDepth != 0)
    text.line("__syncthreads();");
  SmallVector<std::string> arrays;
  for (auto [sum, result] : llvm::zip(sums, op.getResults())) {
    arrays.push_back(fresh("partial"));
    declarations.line("__shared__ " +
                      getTypeName(getTileType(result).getElementType()) + " " +
                      arrays.back() + "[1];");
    text.line("if (" + leader + ")");
    text.line("  " + arrays.back() + "[0] = " + sum + ";");
  }
  text.line("__syncthreads();");
  sync.barrier();
  for (auto [array, sum] : llvm::zip(arrays, sums))
    text.line(sum + " = " + array + "[0];");
  return success();
}

LogicalResult RowsEmitter::emitReduction(linalg::GenericOp op) {
  SmallVector<std::string> inits, sums;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    auto value = getElement(init.get(), {});
    if (failed(value))
      return failure();
    inits.push_back(*value);
  }
  std::optional<SmallVector<Combiner>> combiners = getCombiners(op);
  for (auto [number, init] : llvm::enumerate(op.getDpsInits())) {
    sums.push_back(fresh("sum"));
    std::string begin =
        combiners ? (*combiners)[number].identity : inits[number];
    text.line(getTypeName(getTileType(init).getElementType()) + " " +
              sums.back() + " = " + begin + ";");
  }
  if (combiners) {
    if (failed(emitPartialSums(op, *combiners, sums)))
      return failure();
    emitCombination(*combiners, sums);
    for (auto [combiner, sum, init] : llvm::zip(*combiners, sums, inits))
      if (init != combiner.identity)
        text.line(sum + " = " + getCombined(combiner, init, sum) + ";");
  } else if (failed(emitSequence(op, sums))) {
    return failure();
  }
  for (auto [result, sum] : llvm::zip(op.getResults(), sums))
    results[result] = sum;
  return success();
}
