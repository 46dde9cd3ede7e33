#include "runtime/device/cpu/Streams.h"

#include "runtime/support/StopSignalMask.h"
#include "runtime/support/Error.h"

#include <string>
#include <system_error>

namespace fsdpq::rt {

Streams::Streams(uint16_t streams, uint32_t eventCount,
                 const StreamDelays &delays)
    : events(eventCount), records(streams), delays(delays),
      ownRandom(delays.seed) {
  for (uint16_t stream = 1; stream < streams; ++stream)
    workers.push_back(std::make_unique<Worker>());
  try {
    for (size_t i = 0; i < workers.size(); ++i)
      workers[i]->thread = std::thread([this, i, seed = delays.seed + i + 1] {
        work(*workers[i], seed);
      });
  } catch (const std::system_error &error) {
    stop();
    throw Error(4007, ExitCode::RunFailure,
                "no thread for " + std::to_string(workers.size()) +
                    " streams: " + error.what(),
                "", "start fewer ranks, or allow more threads (ulimit -u)");
  }
}

Streams::~Streams() { stop(); }

void Streams::stop() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
    for (auto &worker : workers)
      worker->queue.clear();
  }
  changed.notify_all();
  for (auto &worker : workers)
    if (worker->thread.joinable())
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
  blockStopSignals();
  std::mt19937_64 random(seed);
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return stopping || !worker.queue.empty(); });
    if (stopping)
      return;
    lock.unlock();
    pause(random);
    lock.lock();
    if (worker.queue.empty()) // dropped in the meantime
      continue;
    const std::function<void()> task = std::move(worker.queue.front());
    worker.queue.pop_front();
    worker.busy = true;
    lock.unlock();
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

void Streams::throwFailure() {
  if (!failure)
    return;
  known = true;
  std::rethrow_exception(failure);
}

bool Streams::idle() const {
  for (const auto &worker : workers)
    if (worker->busy || !worker->queue.empty())
      return false;
  return true;
}

void Streams::check() {
  std::lock_guard lock(mutex);
  throwFailure();
}

void Streams::run(std::function<void()> task, uint16_t stream) {
  if (stream == 0) {
    check();
    pause(ownRandom);
    try {
      task();
    } catch (...) {
      fail(std::current_exception());
      check(); // throws the first failure
    }
    return;
  }
  {
    std::lock_guard lock(mutex);
    throwFailure();
    workers[stream - 1]->queue.push_back(std::move(task));
  }
  changed.notify_all();
}

void Streams::record(uint32_t event, uint16_t stream) {
  {
    std::lock_guard lock(mutex);
    throwFailure();
    events[event] = {stream, ++records[stream].given};
  }
  run(
      [this, stream] {
        {
          std::lock_guard lock(mutex);
          ++records[stream].reached;
        }
        changed.notify_all();
      },
      stream);
}

void Streams::wait(uint32_t event, uint16_t stream) {
  Mark mark;
  {
    std::lock_guard lock(mutex);
    throwFailure();
    mark = events[event];
  }
  if (mark.number == 0)
    return;
  run(
      [this, mark] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] {
          return records[mark.stream].reached >= mark.number || failure ||
                 stopping;
        });
        if (failure)
          std::rethrow_exception(failure);
      },
      stream);
}

void Streams::synchronize() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return idle() || (failure && !known); });
  throwFailure();
}

} // namespace fsdpq::rt
