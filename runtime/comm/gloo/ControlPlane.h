//===- ControlPlane.h - What ranks tell each other beside data --*- C++ -*-===//
//
// Rank 0 is connected to all others. A thread of each rank sends a heartbeat
// every half second and listens: who falls silent or goes without a goodbye
// fails the run (7002, 7001). The first failure that rank 0 knows of is what
// all ranks are told.
//
// When rank 0 has ended its run in order, nobody watches the others any more,
// and exchanges fail (7001).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/Failure.h"
#include "runtime/comm/gloo/Rendezvous.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace fsdpq::rt {

class ControlPlane {
public:
  using Clock = std::chrono::steady_clock;

  ControlPlane(const GlooOptions &options, std::vector<Link> links);
  /// Says goodbye; waits a second or two at most for the others to take it.
  ~ControlPlane();
  ControlPlane(const ControlPlane &) = delete;
  ControlPlane &operator=(const ControlPlane &) = delete;

  int64_t rank() const { return rank_; }

  /// Gives `mine` to all members, whose calls must have equal `what`, and
  /// returns what each gave. Throws 7001-7005.
  std::vector<std::string> collect(const std::vector<int64_t> &members,
                                   std::string_view mine,
                                   const std::string &what);

  /// Ends the run on all ranks, unless something else has.
  void fail(const Failure &failure) noexcept;
  std::optional<Failure> failure() const;
  /// Waits up to `limit` for a failure.
  std::optional<Failure> awaitFailure(std::chrono::milliseconds limit) const;

  /// Calls `action` once when the run fails (at once if it has), on any thread.
  /// It must not call the control plane.
  class OnFailure {
  public:
    OnFailure(ControlPlane &control, std::function<void()> action);
    /// Waits for the end of a call.
    ~OnFailure();
    OnFailure(const OnFailure &) = delete;
    OnFailure &operator=(const OnFailure &) = delete;

  private:
    ControlPlane &control;
    uint64_t number;
  };

private:
  /// A connection as the thread sees it.
  struct Wire {
    explicit Wire(Link link);

    Link link;
    std::deque<std::shared_ptr<const std::string>> out;
    size_t sent = 0; ///< of the first of `out`
    Clock::time_point heard;
    bool saidGoodbye = false;
    bool shut = false; ///< nothing is sent any more
  };
  /// An exchange that rank 0 collects.
  struct Collection {
    uint64_t number;
    std::string what;
    std::vector<std::optional<std::string>> brought;
    Clock::time_point deadline;
  };

  void work();
  void turn();
  void read(Wire &wire);
  void write(Wire &wire);
  void handle(Wire &wire, const Message &message);
  void closed(Wire &wire, MessageBuffer::End end);
  void beat();
  void checkSilence();
  void checkCollections();
  bool isDone();

  void offer(int64_t from, const std::vector<int64_t> &members, uint64_t number,
             const std::string &what, std::string data);
  void complete(const std::vector<int64_t> &members, Collection &collection);
  void sayLeft(int64_t rank);

  void send(Wire &wire, std::shared_ptr<const std::string> message);
  void wake();
  bool isZero() const { return rank_ == 0; }

  const int64_t rank_;
  const std::chrono::milliseconds silenceLimit, collectiveTimeout;
  Socket wakeUp; ///< an eventfd

  // Guards all below, but the sockets, which are the thread's.
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::vector<Wire> wires;
  std::optional<Failure> failure_;
  std::map<std::vector<int64_t>, uint64_t> collected; ///< how often
  std::map<std::vector<int64_t>, Collection> collections;
  std::map<std::vector<int64_t>, std::vector<std::string>> results;
  std::vector<bool> left; ///< ranks that ended in order
  bool stopping = false;
  Clock::time_point stopBy;

  // Held while actions are called.
  std::mutex actionsMutex;
  std::map<uint64_t, std::function<void()>> actions;
  uint64_t nextAction = 0;
  bool acted = false;

  Clock::time_point nextBeat, lastTurn; ///< the thread's
  std::thread thread;
};

} // namespace fsdpq::rt
