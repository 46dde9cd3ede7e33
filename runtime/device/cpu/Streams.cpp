#include "runtime/device/cpu/Streams.h"

#include <algorithm>

namespace fsdpq::rt {

Streams::Streams(uint16_t streams, uint32_t eventCount,
                 const StreamDelays &delays)
    : events(eventCount), delays(delays), ownRandom(delays.seed) {
  for (uint16_t stream = 1; stream < streams; ++stream)
    workers.push_back(std::make_unique<Worker>());
  for (size_t i = 0; i < workers.size(); ++i)
    workers[i]->thread = std::thread([this, i, seed = delays.seed + i + 1] {
      work(*workers[i], seed);
    });
}

Streams::~Streams() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
    for (auto &worker : workers)
      worker->queue.clear();
  }
  changed.notify_all();
  for (auto &worker : workers)
    worker->thread.join();
}

void Streams::pause(std::mt19937_64 &random) {
  if (delays.longest.count() > 0)
    std::this_thread::sleep_for(std::chrono::microseconds(
        random() % static_cast<uint64_t>(delays.longest.count() + 1)));
}

void Streams::fail(std::exception_ptr cause) {
  {
    std::lock_guard lock(mutex);
    if (!failure)
      failure = cause;
    for (auto &worker : workers)
      worker->queue.clear();
  }
  changed.notify_all();
}

void Streams::work(Worker &worker, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return stopping || !worker.queue.empty(); });
    if (worker.queue.empty())
      return;
    const std::function<void()> task = std::move(worker.queue.front());
    worker.queue.pop_front();
    worker.busy = true;
    lock.unlock();
    pause(random);
    try {
      task();
    } catch (...) {
      fail(std::current_exception());
    }
    lock.lock();
    worker.busy = false;
    changed.notify_all();
  }
}

void Streams::check() {
  std::lock_guard lock(mutex);
  if (failure)
    std::rethrow_exception(failure);
}

void Streams::run(std::function<void()> task, uint16_t stream) {
  if (stream == 0) {
    check();
    pause(ownRandom);
    try {
      task();
    } catch (...) {
      fail(std::current_exception());
      throw;
    }
    return;
  }
  {
    std::lock_guard lock(mutex);
    if (failure)
      std::rethrow_exception(failure);
    workers[stream - 1]->queue.push_back(std::move(task));
  }
  changed.notify_all();
}

void Streams::record(uint32_t event, uint16_t stream) {
  uint64_t number;
  {
    std::lock_guard lock(mutex);
    number = ++events[event].given;
  }
  run(
      [this, event, number] {
        {
          std::lock_guard lock(mutex);
          events[event].reached = std::max(events[event].reached, number);
        }
        changed.notify_all();
      },
      stream);
}

void Streams::wait(uint32_t event, uint16_t stream) {
  uint64_t number;
  {
    std::lock_guard lock(mutex);
    number = events[event].given;
  }
  if (number == 0)
    return check();
  run(
      [this, event, number] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] {
          return events[event].reached >= number || failure || stopping;
        });
        if (failure)
          std::rethrow_exception(failure);
      },
      stream);
}

void Streams::synchronize() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] {
    for (const auto &worker : workers)
      if (worker->busy || !worker->queue.empty())
        return false;
    return true;
  });
  if (failure)
    std::rethrow_exception(failure);
}

} // namespace fsdpq::rt
