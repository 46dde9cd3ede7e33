//===- Streams.h - Streams and events of the CPU ----------------*- C++ -*-===//
//
// Stream 0 is the thread that calls; each other one has a thread and a queue.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace fsdpq::rt {

/// Pauses at random before each task of a stream, to show that nothing depends
/// on how fast streams are. None by default.
struct StreamDelays {
  uint64_t seed = 0;
  std::chrono::microseconds longest{0};
};

/// The streams of one device. All calls come from one thread.
class Streams {
public:
  /// Error 4007: the system gives no more threads.
  Streams(uint16_t streams, uint32_t events, const StreamDelays &delays);
  /// Drops what has not started and waits for what has.
  ~Streams();
  Streams(const Streams &) = delete;
  Streams &operator=(const Streams &) = delete;

  /// Calls `task` on the stream, on stream 0 at once. What it throws is thrown
  /// again by every later call of this class; no task starts after it.
  void run(std::function<void()> task, uint16_t stream);
  void record(uint32_t event, uint16_t stream);
  void wait(uint32_t event, uint16_t stream);
  /// Returns when all streams are empty. A failure that no call has thrown yet
  /// is thrown at once, though other streams may be waiting for somebody who
  /// must be told of it; one that is known, when all streams are empty.
  void synchronize();

  /// Throws what a task threw.
  void check();

private:
  /// Where an event was recorded last: by the `number`th record of a stream.
  struct Mark {
    uint16_t stream = 0;
    uint64_t number = 0; ///< 0: never
  };
  /// Records of a stream: how many were given, how many it has come to.
  struct Records {
    uint64_t given = 0, reached = 0;
  };
  struct Worker {
    std::deque<std::function<void()>> queue;
    bool busy = false;
    std::thread thread;
  };

  void work(Worker &worker, uint64_t seed);
  void fail(std::exception_ptr failure);
  void pause(std::mt19937_64 &random);
  void throwFailure(); ///< under the lock
  bool idle() const;   ///< under the lock
  void stop();

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Mark> events;
  std::vector<Records> records; ///< of all streams
  std::vector<std::unique_ptr<Worker>> workers; ///< of streams 1, 2, ...
  std::exception_ptr failure;
  bool known = false; ///< a call has thrown the failure
  bool stopping = false;
  StreamDelays delays;
  std::mt19937_64 ownRandom;
};

} // namespace fsdpq::rt
