//===- Mesh.h - The ranks of a plan and their groups ------------*- C++ -*-===//
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>

namespace fsdpq::rt {

/// How many ranks a group of this kind has; 0 for a value the schema lacks.
inline uint32_t groupSize(plan::Group group, const plan::Mesh &mesh) {
  switch (group) {
  case plan::Group::World:
    return mesh.ranks();
  case plan::Group::Shard:
    return mesh.shards();
  case plan::Group::Replica:
    return mesh.ranks() / mesh.shards();
  }
  return 0;
}

/// "world", "shard", "replica".
inline const char *groupName(plan::Group group) {
  static constexpr const char *names[] = {"world", "shard", "replica"};
  return group <= plan::Group::MAX ? names[static_cast<int>(group)] : "unknown";
}

/// How many layers a unit's index takes: 1 if it is not per layer.
inline uint32_t ordinalCount(const plan::Unit &unit) {
  return unit.layers() && unit.layers()->size() > 0 ? unit.layers()->size() : 1;
}

} // namespace fsdpq::rt
