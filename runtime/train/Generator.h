//===- Generator.h - Greedy continuation of a prompt ------------*- C++ -*-===//
#pragma once

#include "runtime/exec/Executor.h"

#include <cstdint>
#include <vector>

namespace fsdpq::rt {

struct GeneratorOptions {
  int64_t maxNewTokens = 128;
  /// Ids that end the text; they are not part of the answer.
  std::vector<int32_t> stopIds;
};

struct Generation {
  enum class End { StopToken, MaxNewTokens, Capacity };
  std::vector<int32_t> ids; ///< after the prompt
  End end;
};

/// Appends the most likely token (of equal ones the lowest id) until one of the
/// stop ids, `maxNewTokens`, or the plan's capacity. The plan's program
/// `logits` is run over the whole sequence for each token: there is no cache of
/// keys and values.
///
/// Errors: 5030 (BadInput) the prompt is empty or longer than the plan's
/// capacity; 5031 (NonFiniteLoss) no logit is finite.
Generation generateGreedily(Executor &executor,
                            const std::vector<int32_t> &prompt,
                            const GeneratorOptions &options);

} // namespace fsdpq::rt
