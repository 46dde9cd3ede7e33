//===- Estimate.h - How long a plan should take -----------------*- C++ -*-===//
//
// Gives the unrolled instructions of a function to model streams of a described
// machine. One instruction takes
//   gemm         max(2 m n k / matmul rate, bytes of its matrices / memory)
//   launch       max(flops / kernel rate, bytes of its slices / memory)
//   copy, fill   bytes read and written / memory
//     each + launch_overhead
//   collective   max(messages * latency + bytes / link, local bytes / memory)
//     + collective_overhead; the bytes are those of trafficBytes(), sent in
//     G - 1 messages (a large all_reduce: 2 (G - 1)) over the slowest link that the
//     groups of this kind span
// at full capacity. The host costs nothing, links are not shared between
// streams, and all ranks reach a collective at the same time: what is left is
// the order that the plan itself demands.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/Hardware.h"
#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdpq::rt {

/// The calls of one collective instruction.
struct SiteEstimate {
  uint32_t instruction; ///< its number in text order
  std::string name;     ///< opcode, source slice and location
  uint64_t calls = 0;
  uint64_t bytes = 0; ///< that a rank receives, and sends
  double seconds = 0; ///< of all calls
  double exposed = 0; ///< of which the first stream was kept waiting

  double hidden() const { return seconds - exposed; }
};

struct FunctionEstimate {
  std::string name;
  double seconds = 0;
  std::vector<double> busy; ///< seconds that each stream works
  /// Seconds that the first stream waits for others or spends in collectives of
  /// its own. More than its collectives' sum where it waits for other work too.
  double exposed = 0;
  uint64_t bytes = 0;              ///< that a rank receives, and sends
  std::vector<SiteEstimate> sites; ///< in text order
};

/// One call of the function (with an index: at index 0). `plan` must have
/// passed checkPlan. Throws Error 3042 (BadInput) where the machine's
/// description lacks what the plan needs, and 3026 (see Unroll.h).
FunctionEstimate estimateFunction(const plan::Plan &plan,
                                  const plan::Function &function,
                                  const Hardware &hardware);

/// All functions of a plan on a machine that a file describes, or what is wrong:
/// for callers without exceptions.
struct PlanEstimate {
  std::vector<FunctionEstimate> functions; ///< in the plan's order
  std::string error;                       ///< of one line; "" if there is none
};
PlanEstimate estimateFunctions(const plan::Plan &plan,
                               const std::string &hardwareFile) noexcept;

struct StepEstimate {
  FunctionEstimate microStep, optimizerStep;
  int64_t accumulation;
  double seconds;                ///< of an optimizer step
  double tokensPerSecond;        ///< of one rank
  double tokensPerSecondOverall; ///< of all ranks
  uint64_t bytes;                ///< that a rank receives in an optimizer step
  uint64_t arenaBytes, memoryBytes; ///< of a rank: needed, and there
  std::string hardware;
  std::vector<std::string> streams;

  bool fits() const { return arenaBytes <= memoryBytes; }
  /// A table for people.
  std::string text() const;
};

/// An optimizer step: `accumulation` (at least 1) times the function
/// micro_step, each with as many tokens as the scalar "tokens" allows, then
/// optimizer_step. Throws as above, and Error 3043 (BadInput) for a plan that
/// lacks one of them.
StepEstimate estimateStep(const plan::Plan &plan, const Hardware &hardware,
                          int64_t accumulation);

} // namespace fsdpq::rt
