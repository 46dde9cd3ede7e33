#include "runtime/comm/Communicator.h"

namespace fsdpq::rt {

std::vector<int64_t> groupMembers(plan::Group group, int64_t ranks,
                                  int64_t shards, int64_t rank) {
  int64_t first = 0, step = 1, count = ranks;
  if (group == plan::Group::Shard) {
    first = rank / shards * shards;
    count = shards;
  } else if (group == plan::Group::Replica) {
    first = rank % shards;
    step = shards;
    count = ranks / shards;
  }
  std::vector<int64_t> members;
  for (int64_t i = 0; i < count; ++i)
    members.push_back(first + i * step);
  return members;
}

} // namespace fsdpq::rt
