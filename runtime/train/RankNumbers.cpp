#include "runtime/train/RankNumbers.h"

#include "runtime/support/Error.h"

#include <cstring>
#include <string>

namespace fsdpq::rt {

std::vector<std::vector<double>> exchangeNumbers(Communicator &communicator,
                                                 std::span<const double> mine,
                                                 std::string_view what) {
  const std::vector<std::string> texts = communicator.exchange(
      {reinterpret_cast<const char *>(mine.data()), mine.size_bytes()}, what);
  std::vector<std::vector<double>> numbers;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].size() != mine.size_bytes())
      throw Error(7021, ExitCode::PeerFailure,
                  "rank " + std::to_string(rank) + " gives " +
                      std::to_string(texts[rank].size()) + " bytes of " +
                      std::string(what) + ", this rank " +
                      std::to_string(mine.size_bytes()),
                  "",
                  "run the same version with the same options on all ranks");
    std::vector<double> &received = numbers.emplace_back(mine.size());
    if (!mine.empty())
      std::memcpy(received.data(), texts[rank].data(), mine.size_bytes());
  }
  return numbers;
}

} // namespace fsdpq::rt
