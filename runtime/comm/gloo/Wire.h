//===- Wire.h - Messages between rank 0 and the others ----------*- C++ -*-===//
//
// A message is a 16-byte header (4 bytes magic "FSPQ", u32 kind, u64 bytes of
// the body), then the body: numbers of 8 bytes and texts (a number, then so
// many bytes). All little-endian.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

enum class MessageKind : uint32_t {
  Hello = 1, ///< of a rank that comes: see Rendezvous.cpp
  Accepted,  ///< to it: there is nothing wrong with it
  Refused,   ///< to it: id, text; rank 0 waits for others
  Welcome,   ///< to all: rank 0's address; all ranks are here
  Heartbeat,
  Failed,  ///< id, text: see Failure.h
  Goodbye, ///< no more messages from here
  Offer,   ///< to rank 0: members, number, what, data
  Result,  ///< from rank 0: members, data of each
};

struct Message {
  MessageKind kind;
  std::string body;
};

class BodyWriter {
public:
  BodyWriter &number(int64_t value);
  BodyWriter &text(std::string_view value);
  BodyWriter &numbers(const std::vector<int64_t> &values);

  /// The whole message.
  std::string message(MessageKind kind) const;

private:
  std::string body;
};

/// Reads what BodyWriter wrote. Past the end of a body, and for texts longer
/// than it, it gives zeros and empty texts, and isWhole() is false.
class BodyReader {
public:
  explicit BodyReader(std::string_view body) : rest(body) {}

  int64_t number();
  std::string text();
  std::vector<int64_t> numbers();

  bool isWhole() const { return whole; }

private:
  std::string_view take(size_t bytes);

  std::string_view rest;
  bool whole = true;
};

/// Puts messages together from the bytes that a socket gives.
class MessageBuffer {
public:
  enum class End {
    None,
    Closed,  ///< by the other side, or broken
    Garbage, ///< what comes is no message, or too long a one
  };

  /// Bodies up to so many bytes are taken.
  explicit MessageBuffer(uint64_t limit) : limit(limit) {}

  void setLimit(uint64_t bytes) { limit = bytes; }

  /// Reads what there is without waiting, some megabytes at most. Messages that
  /// came before the end are there.
  End fill(int descriptor);
  /// The next message that is complete.
  std::optional<Message> take();
  /// Bytes ever read.
  uint64_t received() const { return total; }

private:
  bool startBody();

  static constexpr size_t headerBytes = 16;
  uint64_t limit;
  uint64_t total = 0;
  char header[headerBytes];
  size_t headerRead = 0;
  Message current{};
  size_t bodyRead = 0;
  std::deque<Message> ready;
};

} // namespace fsdpq::rt
