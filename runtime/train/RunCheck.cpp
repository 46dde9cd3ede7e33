#include "runtime/train/RunCheck.h"

#include "runtime/support/Error.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <string_view>

namespace fsdpq::rt {

namespace {

/// FNV-1a over 64-bit words.
class Hash {
public:
  void add(uint64_t word) {
    value_ = (value_ ^ word) * 0x100000001B3;
    value_ ^= value_ >> 32; // a product's upper half never reaches the lower
  }
  void add(std::string_view text) {
    add(text.size());
    for (const char c : text)
      add(static_cast<uint64_t>(static_cast<unsigned char>(c)));
  }
  uint64_t value() const { return value_; }

private:
  uint64_t value_ = 0xCBF29CE484222325;
};

} // namespace

uint64_t fingerprintRows(const std::vector<Row> &rows) {
  Hash hash;
  for (const Row &row : rows) {
    hash.add(row.ids.size());
    for (size_t i = 0; i < row.ids.size(); ++i)
      hash.add(static_cast<uint64_t>(static_cast<uint32_t>(row.ids[i])) << 32 |
               static_cast<uint32_t>(row.labels[i]));
  }
  return hash.value();
}

uint64_t fingerprintTensors(const TensorSource &source) {
  constexpr int64_t sample = 256; // at the start, in the middle, at the end
  Hash hash;
  std::vector<float> values;
  for (const std::string &name : source.names()) {
    const TensorInfo &tensor = *source.find(name);
    hash.add(std::string_view(name));
    hash.add(std::string_view(tensor.storedType));
    for (const int64_t size : tensor.shape)
      hash.add(static_cast<uint64_t>(size));
    if (tensor.dtype == DType::Other)
      continue;
    const int64_t elements = tensor.elements();
    for (const int64_t begin :
         {int64_t(0), elements / 2, std::max<int64_t>(elements - sample, 0)}) {
      const int64_t end = std::min(begin + sample, elements);
      values.resize(static_cast<size_t>(end - begin));
      source.readF32(tensor, begin, end, values.data());
      for (const float value : values)
        hash.add(static_cast<uint64_t>(std::bit_cast<uint32_t>(value)));
    }
  }
  return hash.value();
}

namespace {

/// Plan, data and weights first, each a line, then the lines of the options.
std::string encode(const RunIdentity &identity) {
  char hashes[2 * 17 + 1];
  std::snprintf(hashes, sizeof hashes, "%016llx\n%016llx",
                static_cast<unsigned long long>(identity.data),
                static_cast<unsigned long long>(identity.weights));
  return identity.planHash + "\n" + hashes + "\n" + identity.options;
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
  if (const auto a = takeLine(first), b = takeLine(other); a != b)
    fail(rank, "other weights", a, b, "give all ranks the same checkpoint");
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
