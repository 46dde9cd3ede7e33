//===- Program.h - A plan's functions, ready to run -------------*- C++ -*-===//
//
// The plan's instruction trees flattened into arrays, every name and number
// replaced by an address. Running one needs no look-up, hash or allocation.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/plan/Extents.h"

#include <cstdint>
#include <vector>

namespace fsdpq::rt {

/// The current index of each nesting level; [0] is the function's argument.
using LoopIndices = const int64_t *;

/// The cell of a step scalar, as an I64 or an F64.
union ScalarCell {
  int64_t integer;
  double real;
};

struct ResolvedSlice {
  DeviceAddress base;    ///< arena + offset
  const uint64_t *table; ///< null: use stride
  int64_t stride;
  uint32_t level;

  DeviceAddress at(int64_t index) const {
    return base +
           (table ? table[index] : static_cast<uint64_t>(stride * index));
  }
  DeviceAddress at(LoopIndices indices) const { return at(indices[level]); }
};

struct ResolvedExtent {
  const ScalarCell *scalar;
  plan::Extent extent;

  int64_t at(LoopIndices indices) const {
    return evaluate(extent, scalar->integer, indices[extent.level()]);
  }
};

struct LaunchOp {
  /// Entries [begin, end) of one of the program's arrays.
  struct Span {
    uint32_t begin, end;
  };

  const LoadedKernel *kernel;
  ResolvedExtent grid;
  Span args;
  /// The arguments that change between executions.
  Span slices, extents, scalars;
};

struct GemmOp {
  GemmCall call; ///< m, n, k, a, b, c are set at each execution
  ResolvedExtent m, n, k;
  ResolvedSlice a, b, c;
};

struct CopyOp {
  ResolvedSlice from, to;
  ResolvedExtent bytes;
};

struct FillOp {
  ResolvedSlice to;
  ResolvedExtent bytes;
  uint8_t value;
};

struct AllGatherOp {
  Channel *channel;
  ResolvedSlice from, to;
  int64_t bytes;
  const char *where;
};

struct ReduceScatterOp {
  Channel *channel;
  ResolvedSlice from, to;
  int64_t elements;
  plan::CommType type;
  uint32_t ranges;
  bool accumulate;
  const char *where;
};

struct AllReduceOp {
  Channel *channel;
  ResolvedSlice data;
  int64_t elements;
  plan::CommType type;
  const char *where;
};

struct LoopOp {
  ResolvedExtent count;
  uint32_t bodyEnd; ///< the body is the steps after the loop's up to here
};

struct Program {
  /// An instruction: entry `operand` of the array of its opcode, or the event of
  /// Record and Wait.
  struct Step {
    plan::Op op;
    uint16_t stream;
    uint32_t operand;
  };
  /// Steps [begin, end): step begin + n is the instruction numbered n.
  struct Function {
    uint32_t begin, end;
    int64_t indexCount;
  };
  /// `source` decides argument `arg`.
  template <typename Source>
  struct Patch {
    uint32_t arg;
    Source source;
  };

  std::vector<Function> functions;
  std::vector<Step> steps;
  std::vector<LaunchOp> launches;
  std::vector<GemmOp> gemms;
  std::vector<CopyOp> copies;
  std::vector<FillOp> fills;
  std::vector<AllGatherOp> allGathers;
  std::vector<ReduceScatterOp> reduceScatters;
  std::vector<AllReduceOp> allReduces;
  std::vector<LoopOp> loops;

  std::vector<LaunchArg> args;
  std::vector<Patch<ResolvedSlice>> slicePatches;
  std::vector<Patch<ResolvedExtent>> extentPatches;
  std::vector<Patch<const ScalarCell *>> scalarPatches;
};

/// Where the things that a plan numbers are.
struct Resolution {
  std::vector<ResolvedSlice> slices;
  std::vector<const LoadedKernel *> kernels;
  const ScalarCell *scalars;
  /// The channel of collectives of a group on a stream.
  std::function<Channel *(plan::Group, uint16_t)> channel;
};

/// Resolves slice `slice`, whose arena starts at `arena`.
ResolvedSlice resolve(const plan::Slice &slice, DeviceAddress arena);

/// Flattens all functions of a checked plan. The program refers to the plan's
/// tables and to what `resolution` names.
Program flatten(const plan::Plan &plan, const Resolution &resolution);

} // namespace fsdpq::rt
