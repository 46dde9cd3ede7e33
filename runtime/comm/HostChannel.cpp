#include "runtime/comm/HostChannel.h"

#include "runtime/plan/Communication.h"
#include "runtime/plan/Elements.h"

#include <algorithm>
#include <cstring>

namespace fsdpq::rt {

namespace {

/// Terms of a sum travel in pieces, so that a rank needs room for one piece of
/// each other rank only.
constexpr int64_t pieceBytes = int64_t(1) << 20;

template <typename T>
void addAs(std::byte *sum, const std::byte *term, int64_t bytes) {
  T *to = reinterpret_cast<T *>(sum);
  const T *from = reinterpret_cast<const T *>(term);
  for (int64_t i = 0, n = bytes / static_cast<int64_t>(sizeof(T)); i < n; ++i)
    to[i] = static_cast<T>(to[i] + from[i]);
}

void add(std::byte *sum, const std::byte *term, int64_t bytes,
         plan::CommType type) {
  switch (type) {
  case plan::CommType::U8:
    return addAs<uint8_t>(sum, term, bytes);
  case plan::CommType::F32:
    return addAs<float>(sum, term, bytes);
  case plan::CommType::F64:
    return addAs<double>(sum, term, bytes);
  }
}

void copyBytes(std::byte *to, const std::byte *from, int64_t bytes) {
  if (bytes > 0 && to != from)
    std::memmove(to, from, static_cast<size_t>(bytes));
}

std::byte *pointer(DeviceAddress address) {
  return reinterpret_cast<std::byte *>(address);
}

} // namespace

std::string CollectiveCall::text() const {
  static constexpr const char *names[] = {"all_gather", "reduce_scatter",
                                          "all_reduce"};
  return std::string(names[static_cast<size_t>(kind)]) + " number " +
         std::to_string(sequence) + " of " + std::to_string(bytes) + " bytes" +
         (kind == Kind::AllGather
              ? ""
              : std::string(" of ") + plan::EnumNameCommType(type));
}

HostChannel::HostChannel(std::vector<int64_t> ranks, int64_t rank,
                         Device &device, uint16_t stream, std::string name)
    : members(std::move(ranks)),
      position_(std::find(members.begin(), members.end(), rank) -
                members.begin()),
      device(device), stream(stream), name_(std::move(name)) {}

std::string HostChannel::describe(const CollectiveCall &call,
                                  const char *where) const {
  std::string text = call.text() + " on the channel '" + name_ + "'";
  if (where && *where)
    text += std::string(", at ") + where;
  return text;
}

void HostChannel::allGather(DeviceAddress from, DeviceAddress to, int64_t bytes,
                            const char *where) {
  const CollectiveCall call{CollectiveCall::Kind::AllGather, plan::CommType::U8,
                            false, 1, ++sequence, bytes};
  device.hostCall(
      [this, call, where, from, to] {
        gather(call, where, pointer(from), pointer(to));
      },
      stream);
}

void HostChannel::reduceScatter(DeviceAddress from, DeviceAddress to,
                                int64_t elements, plan::CommType type,
                                uint32_t ranges, bool accumulate,
                                const char *where) {
  const CollectiveCall call{CollectiveCall::Kind::ReduceScatter, type,
                            accumulate, ranges, ++sequence,
                            elements * elementBytes(type)};
  device.hostCall(
      [this, call, where, from, to] {
        reduce(call, where, pointer(from), pointer(to));
      },
      stream);
}

void HostChannel::allReduce(DeviceAddress data, int64_t elements,
                            plan::CommType type, const char *where) {
  const CollectiveCall call{CollectiveCall::Kind::AllReduce, type, false, 1,
                            ++sequence, elements * elementBytes(type)};
  device.hostCall(
      [this, call, where, data] { sumEverywhere(call, where, pointer(data)); },
      stream);
}

void HostChannel::gather(const CollectiveCall &call, const char *where,
                         const std::byte *from, std::byte *to) {
  std::vector<const std::byte *> send(members.size(), from);
  std::vector<std::byte *> receive;
  for (int64_t i = 0; i < size(); ++i)
    receive.push_back(to + i * call.bytes);
  copyBytes(receive[static_cast<size_t>(position_)], from, call.bytes);
  if (size() > 1)
    exchange(call, where, send, receive, call.bytes);
}

void HostChannel::reduce(const CollectiveCall &call, const char *where,
                         const std::byte *from, std::byte *to) {
  std::vector<const std::byte *> ranges;
  for (int64_t i = 0; i < size(); ++i)
    ranges.push_back(from + i % call.ranges * call.bytes);
  sumPieces(call, where, ranges, to, call.accumulate);
}

/// to = [to +] the sum of what the members have for this rank, where from[i] is
/// what this rank has for member i; call.bytes each.
void HostChannel::sumPieces(const CollectiveCall &call, const char *where,
                            std::span<const std::byte *const> from,
                            std::byte *to, bool accumulate) {
  std::vector<const std::byte *> send(members.size());
  std::vector<std::byte *> receive(members.size());
  for (int64_t begin = 0; begin < call.bytes; begin += pieceBytes) {
    const int64_t bytes = std::min(pieceBytes, call.bytes - begin);
    scratch.resize(std::max(scratch.size(),
                            static_cast<size_t>(size() * bytes)));
    for (size_t i = 0; i < members.size(); ++i) {
      send[i] = from[i] + begin;
      receive[i] = scratch.data() + static_cast<int64_t>(i) * bytes;
    }
    if (size() > 1)
      exchange(call, where, send, receive, bytes);
    // The own term may be what is overwritten.
    const auto own = static_cast<size_t>(position_);
    copyBytes(receive[own], send[own], bytes);
    if (!accumulate)
      copyBytes(to + begin, receive[0], bytes);
    for (size_t i = accumulate ? 0 : 1; i < members.size(); ++i)
      add(to + begin, receive[i], bytes, call.type);
  }
}

void HostChannel::sumEverywhere(const CollectiveCall &call, const char *where,
                                std::byte *data) {
  if (size() == 1 || call.bytes == 0)
    return;
  if (call.bytes <= smallAllReduceBytes) {
    const std::vector<const std::byte *> all(members.size(), data);
    return sumPieces(call, where, all, data, /*accumulate=*/false);
  }
  // Each rank sums a range of the data, then all take each other's. Ranges are
  // whole elements; those beyond the end are cut.
  const int64_t width = elementBytes(call.type), elements = call.bytes / width;
  const int64_t share = (elements + size() - 1) / size() * width;
  CollectiveCall part = call;
  part.bytes = share;
  std::vector<std::byte> padded(static_cast<size_t>(share * size()));
  copyBytes(padded.data(), data, call.bytes);
  std::vector<const std::byte *> send;
  std::vector<std::byte *> receive;
  for (int64_t i = 0; i < size(); ++i) {
    send.push_back(padded.data() + i * share);
    receive.push_back(padded.data() + i * share);
  }
  std::vector<std::byte> sum(static_cast<size_t>(share));
  sumPieces(part, where, send, sum.data(), /*accumulate=*/false);
  const std::vector<const std::byte *> own(members.size(), sum.data());
  exchange(part, where, own, receive, share);
  copyBytes(receive[static_cast<size_t>(position_)], sum.data(), share);
  copyBytes(data, padded.data(), call.bytes);
}

} // namespace fsdpq::rt
