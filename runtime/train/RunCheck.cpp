#include "runtime/train/RunCheck.h"

#include "runtime/support/Error.h"

#include <cstdio>
#include <string_view>

namespace fsdpq::rt {

uint64_t fingerprintRows(const std::vector<Row> &rows) {
  // FNV-1a over 64-bit words.
  uint64_t hash = 0xCBF29CE484222325;
  const auto add = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x100000001B3;
    hash ^= hash >> 32; // a product's upper half never reaches the lower one
  };
  for (const Row &row : rows) {
    add(row.ids.size());
    for (size_t i = 0; i < row.ids.size(); ++i)
      add(static_cast<uint64_t>(static_cast<uint32_t>(row.ids[i])) << 32 |
          static_cast<uint32_t>(row.labels[i]));
  }
  return hash;
}

namespace {

/// Plan and data first, each a line, then the lines of the options.
std::string encode(const RunIdentity &identity) {
  char data[17];
  std::snprintf(data, sizeof data, "%016llx",
                static_cast<unsigned long long>(identity.data));
  return identity.planHash + "\n" + data + "\n" + identity.options;
}

/// Cuts the first line off.
std::string_view takeLine(std::string_view &text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

[[noreturn]] void fail(size_t rank, const std::string &what,
                       std::string_view here, std::string_view there,
                       const std::string &hint) {
  const auto quoted = [](std::string_view text) {
    return text.empty() ? "nothing" : "'" + std::string(text) + "'";
  };
  throw Error(7020, ExitCode::BadInput,
              "rank " + std::to_string(rank) + " has " + what +
                  " than rank 0: " + quoted(there) + ", not " + quoted(here),
              "", hint);
}

void compare(std::string_view first, std::string_view other, size_t rank) {
  if (const auto a = takeLine(first), b = takeLine(other); a != b)
    fail(rank, "another plan", a, b,
         "run the same version with the same model and options on all ranks");
  if (const auto a = takeLine(first), b = takeLine(other); a != b)
    fail(rank, "other data", a, b,
         "give all ranks the same data file and tokenizer");
  while (!first.empty() || !other.empty())
    if (const auto a = takeLine(first), b = takeLine(other); a != b)
      fail(rank, "other options", a, b, "give all ranks the same options");
}

} // namespace

void checkRanksAgree(Communicator &communicator, const RunIdentity &mine) {
  const std::vector<std::string> all =
      communicator.exchange(encode(mine), "what the ranks are to run");
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all.front())
      compare(all.front(), all[rank], rank);
}

} // namespace fsdpq::rt
