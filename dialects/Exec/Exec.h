//===- Exec.h - The plan as IR ----------------------------------*- C++ -*-===//
#pragma once

#include "dialects/Kern/Kern.h"
#include "dialects/Support/LLVM.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Exec/ExecDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Exec/ExecTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Exec/ExecOps.h.inc"

namespace fsdpq::exec {

/// Slices and arenas start at multiples of this many bytes.
constexpr int64_t alignment = 256;

/// Streams: collectives that bring parameters and those that take gradients
/// away have one each, beside computation.
constexpr int64_t computeStream = 0, gatherStream = 1, reduceStream = 2;

/// Groups of ranks (see Mesh in plan.fbs).
constexpr StringLiteral worldGroup = "world", shardGroup = "shard",
                        replicaGroup = "replica";

/// Names of the arenas.
constexpr StringLiteral baseArena = "base", adapterArena = "trained",
                        gradientArena = "gradients", sumArena = "gradient_sums",
                        stateArena = "moments",
                        stepArena = "step", stagingArena = "staging",
                        activationArena = "activations";

} // namespace fsdpq::exec
