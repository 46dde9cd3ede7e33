#include "runtime/comm/gloo/ControlPlane.h"

#include "runtime/comm/gloo/Greeting.h"
#include "runtime/comm/gloo/Signals.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace fsdpq::rt {

using std::chrono::milliseconds;

static constexpr milliseconds beatEvery{500};

/// How much longer than meant a turn of the thread may take.
static constexpr milliseconds lateness{50};

/// How long a rank that ends waits for the others to take its goodbye, or to
/// hear of a failure.
static constexpr milliseconds goodbyeTime{2000}, farewellTime{500};

/// How long ranks go on waiting for an exchange when rank 0's thread, which can
/// say who is missing, should have given it up.
static constexpr milliseconds afterRankZero{5000};

static std::string rankText(int64_t rank) {
  return "rank " + std::to_string(rank);
}

ControlPlane::Wire::Wire(Link link)
    : link(std::move(link)), heard(Clock::now()) {}

ControlPlane::ControlPlane(const GlooOptions &options, std::vector<Link> links)
    : rank_(options.rank), silenceLimit(options.silenceLimit),
      collectiveTimeout(options.collectiveTimeout),
      wakeUp(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      left(static_cast<size_t>(options.size)), nextBeat(Clock::now()),
      lastTurn(Clock::now()) {
  if (!wakeUp.isOpen())
    throw systemError("making an event descriptor", "control plane");
  for (Link &link : links)
    wires.emplace_back(std::move(link));
  if (wires.empty())
    return;
  AllSignalsBlocked blocked;
  thread = std::thread([this] { work(); });
}

ControlPlane::~ControlPlane() {
  if (!thread.joinable())
    return;
  {
    std::lock_guard lock(mutex);
    stopping = true;
    stopBy = Clock::now() + (failure_ ? farewellTime : goodbyeTime);
    const auto message = std::make_shared<const std::string>(
        BodyWriter().message(MessageKind::Goodbye));
    for (Wire &wire : wires)
      send(wire, message);
  }
  wake();
  thread.join();
}

/// With `mutex` held.
void ControlPlane::send(Wire &wire,
                        std::shared_ptr<const std::string> message) {
  if (!wire.shut)
    wire.out.push_back(std::move(message));
}

void ControlPlane::wake() {
  const uint64_t one = 1;
  // It cannot fail but by being full, which wakes as well.
  [[maybe_unused]] const ssize_t written =
      ::write(wakeUp.descriptor(), &one, sizeof one);
}

//===--- Failures -----------------------------------------------------------//

void ControlPlane::fail(const Failure &failure) noexcept {
  {
    std::lock_guard lock(mutex);
    if (failure_)
      return;
    failure_ = failure;
    collections.clear();
    const auto message = std::make_shared<const std::string>(
        failureMessage(MessageKind::Failed, failure));
    for (Wire &wire : wires)
      send(wire, message);
  }
  changed.notify_all();
  wake();
  std::lock_guard lock(actionsMutex);
  acted = true;
  for (const auto &[number, action] : actions)
    action();
}

std::optional<Failure> ControlPlane::failure() const {
  std::lock_guard lock(mutex);
  return failure_;
}

std::optional<Failure> ControlPlane::awaitFailure(milliseconds limit) const {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, limit, [&] { return failure_.has_value(); });
  return failure_;
}

ControlPlane::OnFailure::OnFailure(ControlPlane &control,
                                   std::function<void()> action)
    : control(control) {
  std::lock_guard lock(control.actionsMutex);
  number = control.nextAction++;
  if (control.acted)
    action();
  else
    control.actions[number] = std::move(action);
}

ControlPlane::OnFailure::~OnFailure() {
  std::lock_guard lock(control.actionsMutex);
  control.actions.erase(number);
}

//===--- Exchanges ----------------------------------------------------------//

std::vector<std::string>
ControlPlane::collect(const std::vector<int64_t> &members,
                      std::string_view mine, const std::string &what) {
  const std::string place = rankText(rank_) + ", " + what;
  const auto zeroLeft = [this] { return !isZero() && left[0]; };
  uint64_t number;
  {
    std::lock_guard lock(mutex);
    if (failure_)
      throw failure_->at(place);
    number = ++collected[members];
  }
  if (members.size() == 1)
    return {std::string(mine)};
  if (isZero()) {
    offer(rank_, members, number, what, std::string(mine));
  } else {
    const auto message = std::make_shared<const std::string>(
        BodyWriter()
            .numbers(members)
            .number(static_cast<int64_t>(number))
            .text(what)
            .text(mine)
            .message(MessageKind::Offer));
    std::lock_guard lock(mutex);
    send(wires.front(), message);
  }
  wake();

  std::unique_lock lock(mutex);
  const bool inTime =
      changed.wait_for(lock, collectiveTimeout + afterRankZero, [&] {
        return failure_ || zeroLeft() || results.contains(members);
      });
  // What all have brought holds, whoever has failed since: ranks that find the same
  // fault in it each say so.
  if (const auto result = results.find(members); result != results.end()) {
    std::vector<std::string> all = std::move(result->second);
    results.erase(result);
    return all;
  }
  if (failure_)
    throw failure_->at(place);
  if (inTime)
    throw Failure{7001, "rank 0 has ended its run before " + what}.at(place);
  lock.unlock();
  fail({7004, "rank 0 did not answer for " + what + " within " +
                  durationText(collectiveTimeout + afterRankZero)});
  throw failure()->at(place);
}

/// On rank 0, what one rank gives to a collection.
void ControlPlane::offer(int64_t from, const std::vector<int64_t> &members,
                         uint64_t number, const std::string &what,
                         std::string data) {
  std::optional<Failure> wrong;
  {
    std::lock_guard lock(mutex);
    if (failure_)
      return; // nobody waits any more
    auto [entry, isNew] = collections.try_emplace(members);
    Collection &collection = entry->second;
    if (isNew)
      collection = {number, what,
                    std::vector<std::optional<std::string>>(members.size()),
                    Clock::now() + collectiveTimeout};
    const auto position = static_cast<size_t>(
        std::find(members.begin(), members.end(), from) - members.begin());
    const auto gone =
        std::find_if(members.begin(), members.end(), [&](int64_t rank) {
          return left[static_cast<size_t>(rank)];
        });
    if (collection.what != what || collection.number != number) {
      const auto other = static_cast<size_t>(
          std::find_if(
              collection.brought.begin(), collection.brought.end(),
              [](const auto &brought) { return brought.has_value(); }) -
          collection.brought.begin());
      wrong = {7005, rankText(from) + " is at " + what + " (number " +
                         std::to_string(number) + ") where " +
                         rankText(members[other]) + " is at " +
                         collection.what + " (number " +
                         std::to_string(collection.number) + ")"};
    } else if (gone != members.end()) {
      wrong = {7001, rankText(*gone) + " has ended its run before " + what};
    } else {
      collection.brought[position] = std::move(data);
      if (std::all_of(collection.brought.begin(), collection.brought.end(),
                      [](const auto &brought) { return brought.has_value(); }))
        complete(members, collection);
    }
  }
  if (wrong)
    fail(*wrong);
}

/// Gives all members what all brought. With `mutex` held.
void ControlPlane::complete(const std::vector<int64_t> &members,
                            Collection &collection) {
  BodyWriter body;
  body.numbers(members);
  for (const auto &brought : collection.brought)
    body.text(*brought);
  const auto message =
      std::make_shared<const std::string>(body.message(MessageKind::Result));
  for (Wire &wire : wires)
    if (std::binary_search(members.begin(), members.end(), wire.link.rank))
      send(wire, message);
  if (std::binary_search(members.begin(), members.end(), rank_)) {
    auto &all = results[members];
    for (auto &brought : collection.brought)
      all.push_back(std::move(*brought));
    changed.notify_all();
  }
  collections.erase(std::vector<int64_t>(members));
}

void ControlPlane::sayLeft(int64_t rank) {
  std::optional<Failure> wrong;
  {
    std::lock_guard lock(mutex);
    left[static_cast<size_t>(rank)] = true;
    for (const auto &[members, collection] : collections)
      for (size_t i = 0; i < members.size(); ++i)
        if (members[i] == rank && !collection.brought[i])
          wrong = {7001, rankText(rank) + " has ended its run before " +
                             collection.what};
  }
  changed.notify_all();
  if (wrong)
    fail(*wrong);
}

void ControlPlane::checkCollections() {
  std::optional<Failure> late;
  {
    std::lock_guard lock(mutex);
    for (const auto &[members, collection] : collections) {
      if (Clock::now() < collection.deadline)
        continue;
      std::vector<int64_t> missing;
      for (size_t i = 0; i < members.size(); ++i)
        if (!collection.brought[i])
          missing.push_back(members[i]);
      late = {7004, rankList(missing) + " did not come to " + collection.what +
                        " within " + durationText(collectiveTimeout)};
    }
  }
  if (late)
    fail(*late);
}

//===--- The thread ---------------------------------------------------------//

void ControlPlane::work() {
  try {
    while (!isDone())
      turn();
  } catch (const std::exception &error) {
    fail({7003, rankText(rank_) + " failed: " + error.what()});
    for (Wire &wire : wires) {
      if (wire.link.socket.isOpen())
        write(wire);
      wire.link.socket.close();
    }
  }
}

bool ControlPlane::isDone() {
  std::lock_guard lock(mutex);
  if (!stopping)
    return false;
  return Clock::now() >= stopBy ||
         std::none_of(wires.begin(), wires.end(), [](const Wire &wire) {
           return wire.link.socket.isOpen();
         });
}

void ControlPlane::turn() {
  std::vector<pollfd> waits = {{wakeUp.descriptor(), POLLIN, 0}};
  std::vector<Wire *> waiting;
  Clock::time_point next = nextBeat;
  {
    std::lock_guard lock(mutex);
    for (Wire &wire : wires)
      if (wire.link.socket.isOpen()) {
        const short events = wire.out.empty() ? POLLIN : POLLIN | POLLOUT;
        waits.push_back({wire.link.socket.descriptor(), events, 0});
        waiting.push_back(&wire);
      }
    for (const auto &[members, collection] : collections)
      next = std::min(next, collection.deadline);
    if (stopping)
      next = std::min(next, stopBy);
  }
  const milliseconds pause = std::max(
      std::chrono::ceil<milliseconds>(next - Clock::now()), milliseconds(0));
  ::poll(waits.data(), waits.size(), static_cast<int>(pause.count()));
  if (waits[0].revents) {
    uint64_t count;
    [[maybe_unused]] const ssize_t got =
        ::read(wakeUp.descriptor(), &count, sizeof count);
  }
  // Time in which this process itself was stopped is nobody's silence.
  const Clock::time_point now = Clock::now();
  if (const auto late = now - lastTurn - pause; late > lateness)
    for (Wire &wire : wires)
      wire.heard += late;
  lastTurn = now;
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (waits[i + 1].revents & ~POLLOUT)
      read(*waiting[i]);
    if (waiting[i]->link.socket.isOpen())
      write(*waiting[i]);
  }
  beat();
  checkSilence();
  checkCollections();
}

void ControlPlane::read(Wire &wire) {
  MessageBuffer &in = wire.link.in;
  const uint64_t before = in.received();
  const MessageBuffer::End end = in.fill(wire.link.socket.descriptor());
  if (in.received() != before)
    wire.heard = Clock::now();
  while (const auto message = in.take())
    handle(wire, *message);
  if (end != MessageBuffer::End::None && wire.link.socket.isOpen())
    closed(wire, end);
}

void ControlPlane::handle(Wire &wire, const Message &message) {
  BodyReader body(message.body);
  switch (message.kind) {
  case MessageKind::Failed:
    return fail(readFailure(message));
  case MessageKind::Goodbye: {
    wire.saidGoodbye = true;
    sayLeft(wire.link.rank);
    std::lock_guard lock(mutex);
    if (!stopping) { // else the own goodbye is on its way
      wire.shut = true;
      wire.link.socket.close();
    }
    return;
  }
  case MessageKind::Offer: {
    const std::vector<int64_t> members = body.numbers();
    const auto number = static_cast<uint64_t>(body.number());
    const std::string what = body.text();
    return offer(wire.link.rank, members, number, what, body.text());
  }
  case MessageKind::Result: {
    const std::vector<int64_t> members = body.numbers();
    std::vector<std::string> all;
    for (size_t i = 0; i < members.size(); ++i)
      all.push_back(body.text());
    {
      std::lock_guard lock(mutex);
      results[members] = std::move(all);
    }
    changed.notify_all();
    return;
  }
  default: // a heartbeat
    return;
  }
}

void ControlPlane::closed(Wire &wire, MessageBuffer::End end) {
  bool expected;
  {
    std::lock_guard lock(mutex);
    wire.shut = true;
    wire.out.clear();
    wire.link.socket.close();
    expected = stopping || wire.saidGoodbye;
  }
  if (!expected)
    fail({7001, rankText(wire.link.rank) + " is gone: " +
                    (end == MessageBuffer::End::Garbage
                         ? "what it sent is no message"
                         : "its connection ended without a goodbye")});
}

void ControlPlane::write(Wire &wire) {
  while (true) {
    std::shared_ptr<const std::string> message;
    {
      std::lock_guard lock(mutex);
      if (wire.out.empty()) {
        if (stopping && !wire.shut) {
          wire.shut = true;
          ::shutdown(wire.link.socket.descriptor(), SHUT_WR);
        }
        return;
      }
      message = wire.out.front();
    }
    const int64_t sent = sendSome(wire.link.socket.descriptor(),
                                  std::string_view(*message).substr(wire.sent));
    if (sent < 0) {
      // What it said before it went is still to be read.
      read(wire);
      if (wire.link.socket.isOpen())
        closed(wire, MessageBuffer::End::Closed);
      return;
    }
    if (sent == 0)
      return;
    wire.sent += static_cast<size_t>(sent);
    if (wire.sent == message->size()) {
      wire.sent = 0;
      std::lock_guard lock(mutex);
      wire.out.pop_front();
    }
  }
}

void ControlPlane::beat() {
  if (Clock::now() < nextBeat)
    return;
  nextBeat = Clock::now() + beatEvery;
  const auto message = std::make_shared<const std::string>(
      BodyWriter().message(MessageKind::Heartbeat));
  std::lock_guard lock(mutex);
  for (Wire &wire : wires)
    if (wire.out.empty()) // else something is on its way anyhow
      send(wire, message);
}

void ControlPlane::checkSilence() {
  for (Wire &wire : wires) {
    if (!wire.link.socket.isOpen() || Clock::now() - wire.heard <= silenceLimit)
      continue;
    bool expected;
    {
      std::lock_guard lock(mutex);
      expected = stopping;
    }
    if (!expected)
      fail({7002, rankText(wire.link.rank) +
                      " does not answer: nothing came "
                      "from it for " +
                      durationText(silenceLimit)});
  }
}

} // namespace fsdpq::rt
