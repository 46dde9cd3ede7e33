#include "runtime/comm/gloo/Greeting.h"

#include <algorithm>
#include <map>

namespace fsdpq::rt {

/// Changes with whatever ranks say to each other.
static constexpr int64_t protocolVersion = 1;

Greeting greetingOf(const GlooOptions &options) {
  return {options.token, protocolVersion, options.rank, options.size,
          options.fingerprint};
}

std::string Greeting::message() const {
  BodyWriter body;
  body.text(token).number(protocol).number(rank).number(size).number(
      static_cast<int64_t>(fingerprint.size()));
  for (const auto &[name, value] : fingerprint)
    body.text(name).text(value);
  return body.message(MessageKind::Hello);
}

std::optional<Greeting> readGreeting(const Message &message) {
  if (message.kind != MessageKind::Hello)
    return std::nullopt;
  BodyReader body(message.body);
  Greeting greeting;
  greeting.token = body.text();
  greeting.protocol = body.number();
  if (greeting.protocol == protocolVersion) {
    greeting.rank = body.number();
    greeting.size = body.number();
    for (int64_t count = body.number(); count > 0 && body.isWhole(); --count) {
      std::string name = body.text();
      greeting.fingerprint.emplace_back(std::move(name), body.text());
    }
  }
  if (!body.isWhole())
    return std::nullopt;
  return greeting;
}

bool sameToken(std::string_view a, std::string_view b) {
  size_t differences = a.size() ^ b.size();
  for (size_t i = 0; i < a.size() && !b.empty(); ++i)
    differences |= static_cast<unsigned char>(a[i] ^ b[i % b.size()]);
  return differences == 0;
}

std::optional<Failure> differenceOf(const Greeting &other,
                                    const Greeting &zero) {
  if (other.protocol != zero.protocol)
    return Failure{7013, "a rank speaks version " +
                             std::to_string(other.protocol) +
                             " of the ranks' protocol, rank 0 version " +
                             std::to_string(zero.protocol)};
  const std::string who = "rank " + std::to_string(other.rank);
  if (other.size != zero.size)
    return Failure{7012, who + " was started for " +
                             std::to_string(other.size) +
                             " ranks, rank 0 for " + std::to_string(zero.size)};
  // By name: a version may add or leave out some.
  std::map<std::string, std::pair<std::string, std::string>> values;
  for (const auto &[name, value] : other.fingerprint)
    values[name].first = "'" + value + "'";
  for (const auto &[name, value] : zero.fingerprint)
    values[name].second = "'" + value + "'";
  std::string text;
  for (const auto &[name, pair] : values) {
    const auto &[its, ours] = pair;
    if (its != ours)
      text += (text.empty() ? "" : "; ") + who + " has another " + name +
              " than rank 0: " + (its.empty() ? "none" : its) + " and " +
              (ours.empty() ? "none" : ours);
  }
  if (text.empty())
    return std::nullopt;
  return Failure{7013, text};
}

std::string failureMessage(MessageKind kind, const Failure &failure) {
  return BodyWriter().number(failure.id).text(failure.text).message(kind);
}

Failure readFailure(const Message &message) {
  BodyReader body(message.body);
  const auto id = static_cast<int>(body.number());
  return {id, body.text()};
}

} // namespace fsdpq::rt
