//===- VerifyMemory.cpp - exec-verify-memory ------------------------------===//

#include "compiler/Exec/Address.h"
#include "compiler/Exec/Passes.h"
#include "dialects/Exec/Exec.h"

#include <map>

namespace fsdpq {
#define GEN_PASS_DEF_EXECVERIFYMEMORY
#include "compiler/Exec/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
/// Who wrote each byte of the arena of temporaries last: disjoint ranges by
/// their start. Bytes in no range were never written.
class Owners {
public:
  void write(int64_t begin, int64_t end, Operation *owner) {
    split(begin);
    split(end);
    ranges.erase(ranges.lower_bound(begin), ranges.lower_bound(end));
    ranges[begin] = {end, owner};
  }

  /// The first owner in [begin, end) that is not `owner`, or one that never
  /// wrote (null inside the optional).
  std::optional<Operation *> findOther(int64_t begin, int64_t end,
                                       Operation *owner) const {
    auto it = ranges.upper_bound(begin);
    if (it == ranges.begin())
      return nullptr;
    --it;
    for (int64_t cursor = begin; cursor < end; ++it) {
      if (it == ranges.end() || it->first > cursor || it->second.first <= cursor)
        return nullptr;
      if (it->second.second != owner)
        return it->second.second;
      cursor = it->second.first;
    }
    return std::nullopt;
  }

private:
  void split(int64_t position) {
    auto it = ranges.upper_bound(position);
    if (it == ranges.begin())
      return;
    --it;
    auto [end, owner] = it->second;
    if (it->first < position && position < end) {
      it->second.first = position;
      ranges[position] = {end, owner};
    }
  }

  std::map<int64_t, std::pair<int64_t, Operation *>> ranges;
};

/// The temporary a slice is part of.
static Operation *getRoot(Value slice) {
  while (auto sub = slice.getDefiningOp<exec::SubsliceOp>())
    slice = sub.getSource();
  return slice.getDefiningOp();
}

struct VerifyMemoryPass : fsdpq::impl::ExecVerifyMemoryBase<VerifyMemoryPass> {
  void runOnOperation() override {
    getOperation().walk([&](exec::PlanOp plan) {
      arenas.clear();
      for (auto arena : plan.getBody().getOps<exec::ArenaOp>())
        arenas[arena.getSymName()] = arena.getBytes().value_or(0);
      for (auto function : plan.getBody().getOps<exec::FuncOp>()) {
        Owners owners;
        reported.clear();
        // An index argument moves slices of parameters alone.
        int64_t index = std::max<int64_t>((int64_t)function.getIndexCount() - 1, 0);
        SmallVector<int64_t> indices{index};
        run(function.getBody().front(), indices, owners);
      }
    });
  }

private:
  /// Hand-written plans may name indices or temporaries that do not exist.
  bool checkAddressable(Operation *op, Value slice, ArrayRef<int64_t> indices) {
    int64_t levels = 0;
    for (Operation *maker = slice.getDefiningOp();;) {
      if (isa_and_nonnull<exec::AllocOp>(maker)) {
        report(op) << "a temporary has no address yet; run exec-plan-memory";
        return false;
      }
      auto sub = dyn_cast<exec::SubsliceOp>(maker);
      auto whole = dyn_cast<exec::SliceOp>(maker);
      int64_t stride = sub ? sub.getStride() : whole.getStride();
      int64_t level = sub ? sub.getLevel() : whole.getLevel();
      auto table = sub ? sub.getTable() : whole.getTable();
      if (stride != 0 || table) {
        ++levels;
        if (level < 0 || level >= (int64_t)indices.size() ||
            (table && indices[level] >= (int64_t)table->size())) {
          report(op) << "a slice depends on index " << level
                     << ", which is not there or beyond its table";
          return false;
        }
      }
      if (whole)
        break;
      maker = sub.getSource().getDefiningOp();
    }
    if (levels > 1)
      report(op) << "a slice and a part of it both depend on an index";
    return levels <= 1;
  }

  void run(Block &block, SmallVectorImpl<int64_t> &indices, Owners &owners) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<exec::LoopOp>(op)) {
        indices.push_back(0);
        for (int64_t i = 0; i < loop.getCount().getConstantValue(); ++i) {
          indices.back() = i;
          run(loop.getBody().front(), indices, owners);
        }
        indices.pop_back();
        continue;
      }
      SmallVector<Value> reads, writes;
      getEffects(&op, reads, writes);
      if (reported.contains(&op) ||
          !llvm::all_of(llvm::concat<Value>(reads, writes), [&](Value slice) {
            return checkAddressable(&op, slice, indices);
          })) {
        reported.insert(&op);
        continue;
      }
      for (Value slice : reads)
        checkRead(&op, slice, indices, owners);
      for (Value slice : writes) {
        Address address = getAddress(slice);
        int64_t begin = address.at(indices);
        if (!checkBounds(&op, address, begin))
          continue;
        if (address.arena == exec::activationArena)
          owners.write(begin, begin + address.bytes, getRoot(slice));
      }
    }
  }

  static void getEffects(Operation *op, SmallVectorImpl<Value> &reads,
                         SmallVectorImpl<Value> &writes) {
    if (auto launch = dyn_cast<exec::LaunchOp>(op)) {
      llvm::append_range(reads, launch.getReads());
      llvm::append_range(writes, launch.getWrites());
    } else if (auto gemm = dyn_cast<exec::GemmOp>(op)) {
      reads.append({gemm.getA(), gemm.getB()});
      if (gemm.getBeta().convertToDouble() != 0)
        reads.push_back(gemm.getC());
      writes.push_back(gemm.getC());
    } else if (auto copy = dyn_cast<exec::CopyOp>(op)) {
      reads.push_back(copy.getSource());
      writes.push_back(copy.getDest());
    } else if (auto fill = dyn_cast<exec::FillOp>(op)) {
      writes.push_back(fill.getDest());
    } else if (auto gather = dyn_cast<exec::AllGatherOp>(op)) {
      reads.push_back(gather.getSource());
      writes.push_back(gather.getDest());
    } else if (auto reduce = dyn_cast<exec::ReduceScatterOp>(op)) {
      reads.push_back(reduce.getSource());
      if (reduce.getAccumulate())
        reads.push_back(reduce.getDest());
      writes.push_back(reduce.getDest());
    } else if (auto sum = dyn_cast<exec::AllReduceOp>(op)) {
      reads.push_back(sum.getData());
      writes.push_back(sum.getData());
    }
  }

  bool checkBounds(Operation *op, const Address &address, int64_t begin) {
    auto found = arenas.find(address.arena);
    if (found != arenas.end() && begin >= 0 &&
        begin + address.bytes <= found->second)
      return true;
    report(op) << "the slice '" << address.name << "' covers bytes " << begin
               << " to " << begin + address.bytes << " of @" << address.arena
               << ", which has "
               << (found == arenas.end() ? 0 : found->second);
    return false;
  }

  void checkRead(Operation *op, Value slice, ArrayRef<int64_t> indices,
                 const Owners &owners) {
    Address address = getAddress(slice);
    int64_t begin = address.at(indices);
    if (!checkBounds(op, address, begin) ||
        address.arena != exec::activationArena)
      return;
    auto other = owners.findOther(begin, begin + address.bytes, getRoot(slice));
    if (!other || !reported.insert(op).second)
      return;
    if (!*other) {
      report(op) << "the temporary '" << address.name
                 << "' is read before it is written";
      return;
    }
    report(op).attachNote((*other)->getLoc())
        << "the temporary '" << address.name
        << "' was overwritten through this one while still needed";
  }

  InFlightDiagnostic report(Operation *op) {
    signalPassFailure();
    return op->emitOpError("[FSDPQ-0590] ");
  }

  llvm::StringMap<int64_t> arenas;
  llvm::SmallPtrSet<Operation *, 8> reported;
};
} // namespace
