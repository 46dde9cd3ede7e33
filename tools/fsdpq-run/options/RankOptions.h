//===- RankOptions.h - What the command line says about ranks ---*- C++ -*-===//
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace fsdpq::run {

/// What is not given is decided elsewhere (see RankSetup.h).
struct RankOptions {
  std::optional<int64_t> ranksPerHost = {}; ///< --nproc_per_node
  std::optional<int64_t> ranks = {};        ///< --world_size; none: -1
  std::optional<std::string> masterAddress = {};
  std::optional<uint16_t> masterPort = {}; ///< 0: any that is free
  std::string tokenFile = {};              ///< "": none
  /// How many ranks a process starts that nobody tells; none: it is the only one.
  std::function<int64_t()> ranksByDefault = {};
};

} // namespace fsdpq::run
