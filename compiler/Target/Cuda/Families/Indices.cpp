//===- Indices.cpp - What is known of the indices of accesses -------------===//

#include "compiler/Target/Cuda/Families/Indices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

static std::optional<int64_t> getConstant(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

static void accumulate(Value value, int64_t factor, Linear &sum) {
  if (auto constant = getConstant(value)) {
    sum.constant += factor * *constant;
    return;
  }
  if (auto add = value.getDefiningOp<arith::AddIOp>()) {
    accumulate(add.getLhs(), factor, sum);
    accumulate(add.getRhs(), factor, sum);
    return;
  }
  if (auto sub = value.getDefiningOp<arith::SubIOp>()) {
    accumulate(sub.getLhs(), factor, sum);
    accumulate(sub.getRhs(), -factor, sum);
    return;
  }
  if (auto mul = value.getDefiningOp<arith::MulIOp>()) {
    if (auto constant = getConstant(mul.getRhs()))
      return accumulate(mul.getLhs(), factor * *constant, sum);
    if (auto constant = getConstant(mul.getLhs()))
      return accumulate(mul.getRhs(), factor * *constant, sum);
  }
  sum.terms[value] += factor;
}

Linear Linear::of(Value index) {
  Linear sum;
  accumulate(index, 1, sum);
  return sum;
}

std::optional<int64_t> Linear::minus(const Linear &other) const {
  llvm::MapVector<Value, int64_t> rest = terms;
  for (auto [value, factor] : other.terms)
    rest[value] -= factor;
  for (auto [value, factor] : rest)
    if (factor != 0)
      return std::nullopt;
  return constant - other.constant;
}

int64_t cuda::getKnownDivisor(Value index) {
  if (auto constant = getConstant(index))
    return std::abs(*constant);
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop && argument == loop.getInductionVar())
      return std::gcd(getKnownDivisor(loop.getLowerBound()),
                      getKnownDivisor(loop.getStep()));
    return 1;
  }
  Operation *op = index.getDefiningOp();
  if (isa<arith::AddIOp, arith::SubIOp>(op))
    return std::gcd(getKnownDivisor(op->getOperand(0)),
                    getKnownDivisor(op->getOperand(1)));
  if (isa<arith::MulIOp>(op))
    return getKnownDivisor(op->getOperand(0)) *
           getKnownDivisor(op->getOperand(1));
  return 1;
}

SmallVector<int64_t> cuda::getStrides(MemRefType type) {
  SmallVector<int64_t> strides(type.getRank(), 1);
  for (int64_t dim = type.getRank() - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * type.getDimSize(dim + 1);
  return strides;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

std::optional<Access> Access::of(Operation *op) {
  if (auto load = dyn_cast<kern::LoadOp>(op))
    return Access{op, load.getSource(), load.getIndices(),
                  cast<RankedTensorType>(load.getTile().getType()).getShape(),
                  false};
  if (auto store = dyn_cast<kern::StoreOp>(op))
    return Access{op, store.getDest(), store.getIndices(),
                  cast<RankedTensorType>(store.getTile().getType()).getShape(),
                  true};
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return Access{op, load.getMemRef(), load.getIndices(), {}, false};
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return Access{op, store.getMemRef(), store.getIndices(), {}, true};
  return std::nullopt;
}

SmallVector<Access> cuda::getAccesses(Operation *root) {
  SmallVector<Access> accesses;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto access = Access::of(op))
      accesses.push_back(*access);
  });
  return accesses;
}

int64_t Access::getSize(unsigned dim) const {
  unsigned leading = getType().getRank() - shape.size();
  return dim < leading ? 1 : shape[dim - leading];
}

bool Access::isContiguous() const {
  MemRefType type = getType();
  bool isPart = false; // of a dimension further in
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    if (isPart && getSize(dim) != 1)
      return false;
    isPart |= getSize(dim) != type.getDimSize(dim);
  }
  return true;
}

int64_t Access::getAlignment(int64_t limit) const {
  int64_t divisor = limit;
  for (auto [index, stride] : llvm::zip(indices, getStrides(getType())))
    divisor = std::gcd(divisor, getKnownDivisor(index) * stride);
  return divisor & -divisor;
}

bool cuda::areDisjoint(const Access &a, const Access &b) {
  for (auto [dim, pair] : llvm::enumerate(llvm::zip(a.indices, b.indices))) {
    auto [first, second] = pair;
    auto difference = Linear::of(second).minus(Linear::of(first));
    if (difference &&
        (*difference >= a.getSize(dim) || -*difference >= b.getSize(dim)))
      return true;
  }
  return false;
}

/// Whether the value is the same in all iterations of `loop`.
static bool isInvariant(Value value, scf::ForOp loop) {
  return !loop->isAncestor(value.getParentRegion()->getParentOp());
}

std::optional<int64_t> cuda::getTripCount(scf::ForOp loop) {
  auto begin = getConstant(loop.getLowerBound()),
       end = getConstant(loop.getUpperBound()),
       step = getConstant(loop.getStep());
  if (!begin || !end || !step || *step <= 0)
    return std::nullopt;
  return std::max<int64_t>(0, llvm::divideCeilSigned(*end - *begin, *step));
}

bool cuda::areDisjointAcross(scf::ForOp loop, const Access &a,
                             const Access &b) {
  auto step = getConstant(loop.getStep());
  if (!step)
    return false;
  std::optional<int64_t> trips = getTripCount(loop);
  Value counter = loop.getInductionVar();
  for (auto [dim, pair] : llvm::enumerate(llvm::zip(a.indices, b.indices))) {
    auto [first, second] = pair;
    Linear from = Linear::of(first), to = Linear::of(second);
    int64_t factor = from.terms.lookup(counter);
    if (factor == 0 || factor != to.terms.lookup(counter) ||
        llvm::any_of(from.terms, [&](auto &term) {
          return term.first != counter && !isInvariant(term.first, loop);
        }))
      continue;
    auto difference = to.minus(from);
    if (!difference)
      continue;
    // b runs n != 0 iterations after a. Only few n can bring it near.
    int64_t stride = factor * *step, sizeA = a.getSize(dim),
            sizeB = b.getSize(dim);
    int64_t reach =
        (std::abs(*difference) + sizeA + sizeB) / std::abs(stride) + 1;
    if (trips)
      reach = std::min(reach, *trips - 1);
    bool meets = false;
    for (int64_t n = -reach; n <= reach && !meets; ++n) {
      int64_t distance = *difference + n * stride;
      meets = n != 0 && distance < sizeA && -distance < sizeB;
    }
    if (!meets)
      return true;
  }
  return false;
}

bool cuda::areElementwise(const Access &a, const Access &b, scf::ForOp loop) {
  if (a.memref != b.memref || a.shape.empty() || a.shape != b.shape)
    return false;
  // Further out, indices choose a row; rows do not overlap.
  if (a.shape.size() != 1)
    return false;
  Linear first = Linear::of(a.indices.back());
  if (loop && llvm::any_of(first.terms, [&](auto &term) {
        return !isInvariant(term.first, loop);
      }))
    return false;
  return first.minus(Linear::of(b.indices.back())) == 0;
}
