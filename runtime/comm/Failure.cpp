#include "runtime/comm/Failure.h"

namespace fsdpq::rt {

static const char *hintFor(int id) {
  switch (id) {
  case 7001:
    return "see what that rank said last; a process that is killed without a "
           "word may have run out of memory";
  case 7002:
    return "its process may be stopped, or its host unreachable";
  case 7004:
    return "a rank that is slow needs a longer --collective-timeout";
  case 7005:
    return "all ranks must run the same plan";
  case 7010:
    return "another run may have the port: give another --master_port";
  case 7011:
    return "all ranks need the same --master_addr and --master_port, and must "
           "reach that host";
  case 7012:
  case 7013:
    return "start all ranks with the same fsdpq and the same options";
  case 7014:
    return "ranks of one run share one token; another run may have the port";
  case 7015:
    return "give each process another RANK; another run may have the port";
  case 7018:
    return "the ranks' hosts must reach each other on all ports";
  default:
    return "";
  }
}

Error Failure::at(const std::string &where) const {
  return Error(id, ExitCode::PeerFailure, text, where, hintFor(id));
}

std::string rankList(std::span<const int64_t> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

std::string durationText(std::chrono::milliseconds duration) {
  return duration.count() % 1000 == 0
             ? std::to_string(duration.count() / 1000) + " s"
             : std::to_string(duration.count()) + " ms";
}

} // namespace fsdpq::rt
