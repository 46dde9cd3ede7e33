//===- FakeStreams.h - Streams and events that are threads ------*- C++ -*-===//
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace fsdpq::fake {

/// What one record of an event stands for.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
  std::chrono::steady_clock::time_point time;

  void reach() {
    std::lock_guard lock(mutex);
    reached = true;
    time = std::chrono::steady_clock::now();
    changed.notify_all();
  }
  void await() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return reached; });
  }
  bool isReached() {
    std::lock_guard lock(mutex);
    return reached;
  }
};

struct Event {
  std::shared_ptr<Mark> latest; ///< none: never recorded
};

class Stream {
public:
  Stream() : thread([this] { work(); }) {}
  ~Stream() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    thread.join();
  }

  void give(std::function<void()> task) {
    std::lock_guard lock(mutex);
    tasks.push_back(std::move(task));
    changed.notify_all();
  }
  bool isIdle() {
    std::lock_guard lock(mutex);
    return tasks.empty();
  }
  void await() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return tasks.empty(); });
  }

private:
  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return stopping || !tasks.empty(); });
      if (tasks.empty())
        return;
      const auto task = tasks.front();
      lock.unlock();
      task();
      lock.lock();
      tasks.pop_front();
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks; ///< the first one is under way
  bool stopping = false;
  std::thread thread;
};

} // namespace fsdpq::fake
