//===- PlanMemory.cpp - exec-plan-memory ----------------------------------===//

#include "compiler/Exec/Passes.h"
#include "dialects/Exec/Exec.h"
#include "dialects/Support/Remarks.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

namespace fsdpq {
#define GEN_PASS_DEF_EXECPLANMEMORY
#include "compiler/Exec/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
/// A temporary, alive for the instructions numbered [first, last].
struct Temporary {
  exec::AllocOp op;
  StringRef name;
  int64_t bytes;
  int64_t first, last;
  int64_t offset = 0;

  bool overlaps(const Temporary &other) const {
    return first <= other.last && other.first <= last;
  }
};

/// Numbers the instructions of a function and finds when temporaries live.
class Lifetimes {
public:
  explicit Lifetimes(exec::FuncOp function) {
    number(function.getBody().front());
    function.walk([&](exec::AllocOp alloc) {
      Temporary temporary{alloc, alloc.getName(),
                          (int64_t)llvm::alignTo(alloc.getBytes(), exec::alignment),
                          std::numeric_limits<int64_t>::max(), -1};
      extend(temporary, alloc.getSlice(), alloc->getBlock());
      if (temporary.last >= 0)
        temporaries.push_back(temporary);
    });
  }

  SmallVector<Temporary> temporaries;

private:
  void number(Block &block) {
    for (Operation &op : block) {
      int64_t begin = next++;
      if (auto loop = dyn_cast<exec::LoopOp>(op))
        number(loop.getBody().front());
      span[&op] = {begin, next - 1};
    }
  }

  /// Every use counts; one inside a loop that does not hold the temporary
  /// counts as the whole loop.
  void extend(Temporary &temporary, Value value, Block *home) {
    for (Operation *user : value.getUsers()) {
      if (auto sub = dyn_cast<exec::SubsliceOp>(user)) {
        extend(temporary, sub.getSlice(), home);
        continue;
      }
      Operation *op = user;
      while (op->getBlock() != home)
        op = op->getParentOp();
      temporary.first = std::min(temporary.first, span[op].first);
      temporary.last = std::max(temporary.last, span[op].second);
    }
  }

  int64_t next = 0;
  llvm::DenseMap<Operation *, std::pair<int64_t, int64_t>> span;
};

struct PlanMemoryPass : fsdpq::impl::ExecPlanMemoryBase<PlanMemoryPass> {
  void runOnOperation() override {
    getOperation().walk([&](exec::PlanOp plan) {
      auto arena = SymbolTable::lookupNearestSymbolFrom<exec::ArenaOp>(
          plan, StringAttr::get(&getContext(), exec::activationArena));
      int64_t bytes = findSharing(plan);
      bool hasTemporaries = false;
      for (auto function : plan.getBody().getOps<exec::FuncOp>()) {
        auto [end, contents] = place(function);
        remarkAnalysis(function.getLoc(), RemarkId::PlanMemory)
            << ("@" + function.getSymName() + " has " + formatBytes(end) +
                " of temporaries")
                   .str()
            << remark::metric("bytes", end);
        if (end > bytes && arena)
          arena.setContentsAttr(contents);
        bytes = std::max(bytes, end);
        hasTemporaries |= end > 0;
      }
      if (!arena)
        return;
      if (!hasTemporaries) // planned before, or none needed
        bytes = std::max<int64_t>(bytes, arena.getBytes().value_or(0));
      if (bytes > 0)
        arena.setBytes(bytes);
      else
        arena.erase();
      planned += bytes;
    });
  }

private:
  /// The arenas that lie in that of temporaries, and their bytes.
  int64_t findSharing(exec::PlanOp plan) {
    sharing.clear();
    int64_t bytes = 0;
    for (auto arena : plan.getBody().getOps<exec::ArenaOp>())
      if (arena.getShares() == exec::activationArena) {
        sharing[arena.getSymName()] = arena.getBytes().value_or(0);
        bytes = std::max<int64_t>(bytes, arena.getBytes().value_or(0));
      }
    return bytes;
  }

  /// Where the temporaries of a function may start: after what it uses of arenas
  /// that share their bytes.
  int64_t getStart(exec::FuncOp function) {
    int64_t start = 0;
    function.walk([&](exec::SliceOp slice) {
      if (auto found = sharing.find(slice.getArena()); found != sharing.end())
        start = std::max(start, found->second);
    });
    return llvm::alignTo(start, exec::alignment);
  }

  /// What is alive when most bytes are, by name.
  DictionaryAttr findPeak(ArrayRef<Temporary> temporaries) {
    int64_t peak = 0, at = -1;
    for (const Temporary &candidate : temporaries) {
      int64_t alive = 0;
      for (const Temporary &other : temporaries)
        if (other.first <= candidate.first && candidate.first <= other.last)
          alive += other.bytes;
      if (alive > peak) {
        peak = alive;
        at = candidate.first;
      }
    }
    llvm::MapVector<StringRef, int64_t> bytes;
    for (const Temporary &temporary : temporaries)
      if (temporary.first <= at && at <= temporary.last)
        bytes[temporary.name] += temporary.bytes;
    Builder builder(&getContext());
    SmallVector<NamedAttribute> entries;
    for (auto [name, size] : bytes)
      entries.push_back(
          builder.getNamedAttr(name, builder.getI64IntegerAttr(size)));
    return builder.getDictionaryAttr(entries);
  }

  /// Functions run one at a time and share the arena.
  std::pair<int64_t, DictionaryAttr> place(exec::FuncOp function) {
    SmallVector<Temporary> temporaries = Lifetimes(function).temporaries;
    llvm::stable_sort(temporaries, [](const Temporary &a, const Temporary &b) {
      return a.bytes > b.bytes;
    });
    int64_t start = getStart(function), end = temporaries.empty() ? 0 : start;
    SmallVector<Temporary *> placed; // ascending by offset
    for (Temporary &temporary : temporaries) {
      int64_t offset = start;
      for (Temporary *other : placed) {
        if (!temporary.overlaps(*other))
          continue;
        if (offset + temporary.bytes <= other->offset)
          break;
        offset = std::max(offset, other->offset + other->bytes);
      }
      temporary.offset = offset;
      placed.insert(llvm::upper_bound(placed, offset,
                                      [](int64_t value, Temporary *other) {
                                        return value < other->offset;
                                      }),
                    &temporary);
      end = std::max(end, offset + temporary.bytes);
    }
    DictionaryAttr contents = findPeak(temporaries);
    for (Temporary &temporary : temporaries) {
      OpBuilder builder(temporary.op);
      Value slice = exec::SliceOp::create(
          builder, temporary.op.getLoc(), temporary.op.getSlice().getType(),
          temporary.op.getName(), exec::activationArena, temporary.offset,
          (int64_t)temporary.op.getBytes(), /*stride=*/0, /*level=*/0,
          DenseI64ArrayAttr(), FlatSymbolRefAttr(), DenseI64ArrayAttr());
      temporary.op.getSlice().replaceAllUsesWith(slice);
      temporary.op.erase();
    }
    // What nothing uses has no lifetime and no address.
    function.walk([](exec::AllocOp unused) { unused.erase(); });
    return {end, contents};
  }

  llvm::StringMap<int64_t> sharing;
};
} // namespace
