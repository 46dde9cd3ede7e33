#include "runtime/device/cuda/HostTasks.h"

#include "runtime/support/StopSignalMask.h"

namespace fsdpq::rt {

HostTasks::HostTasks(const DriverApi &driver, CUstream stream,
                     DeviceFailure &failure)
    : driver(driver), stream(stream), failure(failure) {
  void *memory = nullptr;
  driver.check(driver.cuMemHostAlloc(&memory, sizeof(uint32_t),
                                     CU_MEMHOSTALLOC_DEVICEMAP),
               "making room for a host task's number");
  done = static_cast<uint32_t *>(memory);
  *done = 0;
  driver.check(driver.cuMemHostGetDevicePointer(&doneOnGpu, done, 0),
               "finding a host task's number on the GPU");
  thread = std::thread([this] {
    blockStopSignals();
    work();
  });
}

HostTasks::~HostTasks() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  thread.join();
  driver.cuMemFreeHost(done);
}

void HostTasks::run(std::function<void()> task) {
  {
    std::lock_guard lock(mutex);
    tasks.push_back(std::move(task));
  }
  const CUresult result =
      driver.cuLaunchHostFunc(stream, &HostTasks::reached, this);
  if (result != CUDA_SUCCESS) {
    std::lock_guard lock(mutex);
    tasks.pop_back();
  }
  driver.check(result, "giving a task of the host to a stream");
  driver.check(driver.cuStreamWaitValue32(stream, doneOnGpu, ++given,
                                          CU_STREAM_WAIT_VALUE_GEQ),
               "making a stream wait for a task of the host");
}

void CUDA_CB HostTasks::reached(void *self) {
  auto &tasks = *static_cast<HostTasks *>(self);
  {
    std::lock_guard lock(tasks.mutex);
    ++tasks.due;
  }
  tasks.changed.notify_all();
}

void HostTasks::work() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return stopping || due > 0; });
    if (due == 0)
      return;
    --due;
    std::function<void()> task = std::move(tasks.front());
    tasks.pop_front();
    lock.unlock();
    try {
      if (!failure.isSet())
        task();
    } catch (...) {
      failure.set(std::current_exception());
    }
    task = nullptr;
    __atomic_add_fetch(done, 1, __ATOMIC_RELEASE);
    lock.lock();
  }
}

} // namespace fsdpq::rt
