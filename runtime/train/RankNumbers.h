//===- RankNumbers.h - Numbers that ranks tell each other -------*- C++ -*-===//
#pragma once

#include "runtime/comm/Communicator.h"

#include <span>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

/// Gives `mine` to all ranks; what each gave, in rank order, bit for bit. All
/// ranks give equally many: Error 7021 (PeerFailure) names one that does not.
/// `what` names the numbers in messages.
std::vector<std::vector<double>> exchangeNumbers(Communicator &communicator,
                                                 std::span<const double> mine,
                                                 std::string_view what);

} // namespace fsdpq::rt
