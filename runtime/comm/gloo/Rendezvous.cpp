#include "runtime/comm/gloo/Rendezvous.h"

#include "runtime/comm/gloo/Greeting.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <thread>

namespace fsdpq::rt {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

/// How long a caller may take to say who it is.
constexpr milliseconds greetingTime{2000};

/// For which rank 0 tells ranks that come late why there is no run.
constexpr milliseconds lateTime{3000};

/// Callers that have not said it yet; more wait to be accepted.
constexpr size_t mostCallers = 64;

/// Bodies of messages between ranks that know each other.
constexpr uint64_t messageLimit = uint64_t(1) << 40;

int remaining(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return static_cast<int>(
      std::clamp<int64_t>(left.count(), 0, milliseconds(60000).count()));
}

std::string placeOf(const GlooOptions &options) {
  return options.masterAddress + ":" + std::to_string(options.masterPort);
}

std::string whoConnects(const GlooOptions &options) {
  return "rank " + std::to_string(options.rank) + ", connecting";
}

void requireToken(const GlooOptions &options, const SocketAddress &address) {
  if (options.token.empty() && !address.isLoopback())
    throw Error(7016, ExitCode::BadInput,
                "ranks that meet at " + address.text() +
                    ", which others can reach, need a job token",
                whoConnects(options), "set FSDPQ_JOB_TOKEN on all ranks");
}

//===--- Rank 0 -------------------------------------------------------------//

class Host {
public:
  explicit Host(const GlooOptions &options)
      : options(options), own(greetingOf(options)),
        ranks(static_cast<size_t>(options.size)),
        deadline(Clock::now() + options.connectTimeout) {
    listen();
  }

  Rendezvous meet() {
    while (present < options.size - 1) {
      if (Clock::now() >= deadline)
        failAll(notCome());
      await(deadline);
      if (callers.size() < mostCallers)
        accept();
      for (Caller &caller : callers)
        listenTo(caller);
      std::erase_if(callers, [](const Caller &caller) {
        return !caller.socket.isOpen();
      });
      for (auto &link : ranks)
        if (link && link->in.fill(link->socket.descriptor()) !=
                        MessageBuffer::End::None)
          failAll({7001, "rank " + std::to_string(link->rank) +
                             " is gone: it ended before all ranks had come"});
    }
    return welcome();
  }

private:
  /// Who has not said yet who it is.
  struct Caller {
    Socket socket;
    MessageBuffer in;
    std::string address;
    Clock::time_point deadline;
  };

  void listen();
  void await(Clock::time_point next);
  void accept();
  void listenTo(Caller &caller);
  void judge(Caller &caller, const Message &message);
  void refuse(Caller &caller, const Failure &why);
  Failure notCome() const;
  [[noreturn]] void failAll(const Failure &failure);
  Rendezvous welcome();

  const GlooOptions &options;
  const Greeting own;
  Socket listener;
  std::string place; ///< where it listens
  std::vector<Caller> callers;
  std::vector<std::optional<Link>> ranks;
  int64_t present = 0; ///< beside rank 0
  std::optional<Failure> fatal; ///< that ends the run: whoever comes is told
  int64_t told = 0;             ///< ranks that know of it, beside rank 0
  int64_t refused = 0;
  std::string lastRefused;
  const Clock::time_point deadline;
};

void Host::listen() {
  if (options.listenFd >= 0) {
    listener = Socket(options.listenFd);
    setUp(listener.descriptor());
    const SocketAddress address = ownAddress(listener.descriptor());
    place = address.text();
    return requireToken(options, address);
  }
  place = placeOf(options);
  std::string problem;
  for (const SocketAddress &address :
       resolve(options.masterAddress, options.masterPort, problem)) {
    requireToken(options, address);
    listener = listenAt(address);
    if (listener.isOpen())
      return;
    problem = std::strerror(errno);
  }
  throw Failure{7010, "rank 0 cannot listen at " + place + ": " + problem}.at(
      "");
}

/// Waits until there is something to do, or `next`.
void Host::await(Clock::time_point next) {
  std::vector<pollfd> waits;
  if (callers.size() < mostCallers)
    waits.push_back({listener.descriptor(), POLLIN, 0});
  for (const Caller &caller : callers) {
    waits.push_back({caller.socket.descriptor(), POLLIN, 0});
    next = std::min(next, caller.deadline);
  }
  for (const auto &link : ranks)
    if (link && !fatal)
      waits.push_back({link->socket.descriptor(), POLLIN, 0});
  ::poll(waits.data(), waits.size(), remaining(next));
}

void Host::accept() {
  Socket socket(::accept(listener.descriptor(), nullptr, nullptr));
  if (!socket.isOpen())
    return; // who was there has gone
  setUp(socket.descriptor());
  std::string address = otherAddress(socket.descriptor()).text();
  callers.push_back({std::move(socket), MessageBuffer(greetingLimit),
                     std::move(address), Clock::now() + greetingTime});
}

void Host::listenTo(Caller &caller) {
  const MessageBuffer::End end = caller.in.fill(caller.socket.descriptor());
  if (const auto message = caller.in.take())
    return judge(caller, *message);
  if (end == MessageBuffer::End::Garbage)
    refuse(caller, {7014, "what came is no greeting of a rank"});
  else if (end == MessageBuffer::End::Closed)
    refuse(caller, {7014, "the connection ended within the greeting"});
  else if (Clock::now() >= caller.deadline)
    refuse(caller,
           {7014, "no greeting came within " + durationText(greetingTime)});
}

void Host::judge(Caller &caller, const Message &message) {
  const auto greeting = readGreeting(message);
  if (!greeting)
    return refuse(caller, {7014, "what came is no greeting of a rank"});
  if (!sameToken(greeting->token, options.token))
    return refuse(caller, {7014, "the token is not that of the run that rank 0 "
                                 "at " +
                                     place + " belongs to"});
  if (fatal) {
    sendSome(caller.socket.descriptor(),
             failureMessage(MessageKind::Failed, *fatal));
    caller.socket.close();
    ++told;
    return;
  }
  const std::string name = "rank " + std::to_string(greeting->rank);
  const bool isNumber = greeting->rank >= 0 && greeting->rank < options.size;
  const auto index = static_cast<size_t>(greeting->rank);
  if (greeting->protocol == own.protocol && isNumber &&
      (greeting->rank == 0 || ranks[index]))
    return refuse(caller, {7015, name + " is there already"});
  if (const auto difference = differenceOf(*greeting, own)) {
    sendSome(caller.socket.descriptor(),
             failureMessage(MessageKind::Failed, *difference));
    caller.socket.close();
    ++told;
    failAll(*difference);
  }
  if (!isNumber)
    return refuse(caller, {7014, "there is no " + name});
  sendSome(caller.socket.descriptor(),
           BodyWriter().message(MessageKind::Accepted));
  caller.in.setLimit(messageLimit);
  ranks[index] =
      Link{greeting->rank, std::move(caller.socket), std::move(caller.in)};
  ++present;
}

void Host::refuse(Caller &caller, const Failure &why) {
  ++refused;
  lastRefused = caller.address + " (" + why.text + ")";
  sendSome(caller.socket.descriptor(),
           failureMessage(MessageKind::Refused, why));
  caller.socket.close();
}

Failure Host::notCome() const {
  std::vector<int64_t> missing;
  for (int64_t rank = 1; rank < options.size; ++rank)
    if (!ranks[static_cast<size_t>(rank)])
      missing.push_back(rank);
  std::string text = rankList(missing) + " did not come to rank 0 at " + place +
                     " within " + durationText(options.connectTimeout);
  if (refused > 0)
    text += "; callers refused: " + std::to_string(refused) +
            ", the last one was " + lastRefused;
  return {7011, text};
}

void Host::failAll(const Failure &failure) {
  const std::string message = failureMessage(MessageKind::Failed, failure);
  for (const auto &link : ranks)
    if (link) {
      sendSome(link->socket.descriptor(), message);
      ++told;
    }
  // Ranks that are still on their way would look for rank 0 until their time is
  // over, and not learn why it is gone.
  fatal = failure;
  const Clock::time_point end = Clock::now() + lateTime;
  while (told < options.size - 1 && Clock::now() < end) {
    await(end);
    if (callers.size() < mostCallers)
      accept();
    for (Caller &caller : callers)
      if (caller.socket.isOpen())
        listenTo(caller);
    std::erase_if(callers, [](const Caller &caller) {
      return !caller.socket.isOpen();
    });
  }
  throw failure.at(whoConnects(options));
}

Rendezvous Host::welcome() {
  // The address that a rank of another host came to, if there is one.
  SocketAddress address = ownAddress(listener.descriptor());
  Rendezvous result;
  for (auto &link : ranks)
    if (link) {
      const SocketAddress here = ownAddress(link->socket.descriptor());
      if (result.links.empty() || address.isLoopback())
        address = here;
      result.links.push_back(std::move(*link));
    }
  result.dataAddress = address.host();
  const std::string message =
      BodyWriter().text(result.dataAddress).message(MessageKind::Welcome);
  for (const Link &link : result.links)
    sendSome(link.socket.descriptor(), message);
  return result;
}

//===--- The others ---------------------------------------------------------//

class Guest {
public:
  explicit Guest(const GlooOptions &options)
      : options(options), deadline(Clock::now() + options.connectTimeout) {}

  Rendezvous meet() {
    milliseconds pause{20};
    while (true) {
      if (auto result = attempt())
        return std::move(*result);
      if (Clock::now() + pause >= deadline)
        throw Failure{
            7011, "rank 0 was not reached at " + placeOf(options) + " within " +
                      durationText(options.connectTimeout) + ": " + problem}
            .at(whoConnects(options));
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, milliseconds(500));
    }
  }

private:
  std::optional<Rendezvous> attempt();
  std::optional<Rendezvous> greet(Socket socket);

  const GlooOptions &options;
  const Clock::time_point deadline;
  std::string problem; ///< of the last attempt
};

std::optional<Rendezvous> Guest::attempt() {
  for (const SocketAddress &address :
       resolve(options.masterAddress, options.masterPort, problem)) {
    requireToken(options, address);
    Socket socket = connectTo(
        address, milliseconds(std::min(remaining(deadline), 5000)), problem);
    if (!socket.isOpen())
      continue;
    if (auto result = greet(std::move(socket)))
      return result;
  }
  return std::nullopt;
}

/// Nothing if who listens there is not rank 0, or ends at once: rank 0 may yet
/// come.
std::optional<Rendezvous> Guest::greet(Socket socket) {
  const int descriptor = socket.descriptor();
  sendSome(descriptor, greetingOf(options).message());
  MessageBuffer in(greetingLimit);
  bool accepted = false;
  while (Clock::now() < deadline) {
    pollfd waits = {descriptor, POLLIN, 0};
    ::poll(&waits, 1, remaining(deadline));
    const MessageBuffer::End end = in.fill(descriptor);
    while (const auto message = in.take()) {
      if (message->kind == MessageKind::Accepted) {
        accepted = true;
      } else if (message->kind == MessageKind::Refused ||
                 message->kind == MessageKind::Failed) {
        const bool ours = message->kind == MessageKind::Refused;
        Failure failure = readFailure(*message);
        if (ours)
          failure.text = "rank 0 refused rank " + std::to_string(options.rank) +
                         ": " + failure.text;
        throw failure.at(whoConnects(options));
      } else if (message->kind == MessageKind::Welcome) {
        const std::string zero = BodyReader(message->body).text();
        const SocketAddress here = ownAddress(descriptor);
        in.setLimit(messageLimit);
        Rendezvous result;
        // Who came over the loopback is on rank 0's host.
        result.dataAddress = here.isLoopback() ? zero : here.host();
        result.links.push_back({0, std::move(socket), std::move(in)});
        return result;
      }
    }
    if (end == MessageBuffer::End::None)
      continue;
    if (accepted)
      throw Failure{7001, "rank 0 is gone: it ended before all ranks had come"}
          .at(whoConnects(options));
    problem = end == MessageBuffer::End::Garbage
                  ? "what listens there is no rank of fsdpq"
                  : "the connection was closed";
    return std::nullopt;
  }
  problem = accepted ? "other ranks have not come" : "it did not answer";
  return std::nullopt;
}

//===--- Both ---------------------------------------------------------------//

void check(const GlooOptions &options) {
  const auto refuse = [](const std::string &what) {
    throw Error(7019, ExitCode::BadInput, what);
  };
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size)
    refuse("there is no rank " + std::to_string(options.rank) + " of " +
           std::to_string(options.size));
  if (options.size > 1 && options.masterPort == 0 && options.listenFd < 0)
    refuse("the ranks have no port to meet at");
  if (options.silenceLimit < milliseconds(1000))
    refuse("a rank cannot be called stopped after " +
           durationText(options.silenceLimit) + "; 1 s is the least");
  if (options.collectiveTimeout <= milliseconds(0))
    refuse("collectives cannot be done within " +
           durationText(options.collectiveTimeout));
}

} // namespace

Rendezvous meet(const GlooOptions &options) {
  Socket unused(options.rank == 0 && options.size > 1 ? -1 : options.listenFd);
  check(options);
  if (options.size == 1)
    return {{}, "127.0.0.1"};
  return options.rank == 0 ? Host(options).meet() : Guest(options).meet();
}

} // namespace fsdpq::rt
