//===- Greeting.h - What a rank says when it comes --------------*- C++ -*-===//
#pragma once

#include "runtime/comm/Failure.h"
#include "runtime/comm/gloo/GlooCommunicator.h"
#include "runtime/comm/gloo/Wire.h"

#include <optional>

namespace fsdpq::rt {

/// Longest message of a rank that is not known yet.
inline constexpr uint64_t greetingLimit = uint64_t(1) << 20;

struct Greeting {
  std::string token;
  int64_t protocol = 0;
  int64_t rank = 0, size = 0;
  std::vector<std::pair<std::string, std::string>> fingerprint;

  std::string message() const;
};

Greeting greetingOf(const GlooOptions &options);

/// Nothing if the message is no greeting. Of another protocol only the token
/// and the protocol are read.
std::optional<Greeting> readGreeting(const Message &message);

/// In a time that does not depend on where they differ.
bool sameToken(std::string_view a, std::string_view b);

/// Why `other` cannot be of the run of rank 0 (7012, 7013), if so.
std::optional<Failure> differenceOf(const Greeting &other,
                                    const Greeting &zero);

/// The body of Refused and Failed.
std::string failureMessage(MessageKind kind, const Failure &failure);
Failure readFailure(const Message &message);

} // namespace fsdpq::rt
