#include "runtime/comm/gloo/Wire.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace fsdpq::rt {

static_assert(std::endian::native == std::endian::little);

static constexpr char magic[4] = {'F', 'S', 'P', 'Q'};

//===--- Bodies -------------------------------------------------------------//

BodyWriter &BodyWriter::number(int64_t value) {
  body.append(reinterpret_cast<const char *>(&value), sizeof value);
  return *this;
}

BodyWriter &BodyWriter::text(std::string_view value) {
  number(static_cast<int64_t>(value.size()));
  body.append(value);
  return *this;
}

BodyWriter &BodyWriter::numbers(const std::vector<int64_t> &values) {
  number(static_cast<int64_t>(values.size()));
  for (int64_t value : values)
    number(value);
  return *this;
}

std::string BodyWriter::message(MessageKind kind) const {
  const auto number = static_cast<uint32_t>(kind);
  const uint64_t bytes = body.size();
  std::string text;
  text.reserve(sizeof magic + sizeof number + sizeof bytes + body.size());
  text.append(magic, sizeof magic);
  text.append(reinterpret_cast<const char *>(&number), sizeof number);
  text.append(reinterpret_cast<const char *>(&bytes), sizeof bytes);
  text += body;
  return text;
}

std::string_view BodyReader::take(size_t bytes) {
  if (bytes > rest.size()) {
    whole = false;
    rest = {};
    return {};
  }
  const std::string_view taken = rest.substr(0, bytes);
  rest.remove_prefix(bytes);
  return taken;
}

int64_t BodyReader::number() {
  int64_t value = 0;
  const std::string_view bytes = take(sizeof value);
  if (!bytes.empty())
    std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string BodyReader::text() {
  return std::string(take(static_cast<size_t>(number())));
}

std::vector<int64_t> BodyReader::numbers() {
  std::vector<int64_t> values;
  for (int64_t count = number(); count > 0 && whole; --count)
    values.push_back(number());
  return values;
}

//===--- Messages -----------------------------------------------------------//

bool MessageBuffer::startBody() {
  uint32_t kind;
  uint64_t bytes;
  std::memcpy(&kind, header + sizeof magic, sizeof kind);
  std::memcpy(&bytes, header + sizeof magic + sizeof kind, sizeof bytes);
  if (bytes > limit)
    return false;
  current.kind = static_cast<MessageKind>(kind);
  current.body.resize(bytes);
  bodyRead = 0;
  return true;
}

MessageBuffer::End MessageBuffer::fill(int descriptor) {
  for (size_t room = size_t(4) << 20; room > 0;) {
    const bool inHeader = headerRead < headerBytes;
    char *to = inHeader ? header + headerRead : current.body.data() + bodyRead;
    const size_t wanted =
        std::min(room, inHeader ? headerBytes - headerRead
                                : current.body.size() - bodyRead);
    const ssize_t got = ::recv(descriptor, to, wanted, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return End::None;
    if (got <= 0)
      return End::Closed;
    room -= static_cast<size_t>(got);
    total += static_cast<size_t>(got);
    if (inHeader) {
      headerRead += static_cast<size_t>(got);
      if (std::memcmp(header, magic, std::min(headerRead, sizeof magic)) != 0)
        return End::Garbage;
      if (headerRead < headerBytes)
        continue;
      if (!startBody())
        return End::Garbage;
    } else {
      bodyRead += static_cast<size_t>(got);
    }
    if (bodyRead == current.body.size()) {
      ready.push_back(std::move(current));
      current = {};
      headerRead = 0;
    }
  }
  return End::None;
}

std::optional<Message> MessageBuffer::take() {
  if (ready.empty())
    return std::nullopt;
  Message first = std::move(ready.front());
  ready.pop_front();
  return first;
}

} // namespace fsdpq::rt
