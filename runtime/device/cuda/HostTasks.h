//===- HostTasks.h - Calls of the host within a GPU's stream ----*- C++ -*-===//
#pragma once

#include "runtime/device/cuda/DeviceFailure.h"
#include "runtime/device/cuda/DriverApi.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

namespace fsdpq::rt {

/// The host tasks of one stream, on a thread of their own: the driver calls the
/// host functions of all streams one after the other, so one that waits would
/// hold up every stream. Its function only says how far the stream has come; the
/// stream then waits for a number in host memory that the thread raises when the
/// task is done.
class HostTasks {
public:
  HostTasks(const DriverApi &driver, CUstream stream, DeviceFailure &failure);
  /// Nothing may be under way on the stream, unless its context has ended.
  ~HostTasks();
  HostTasks(const HostTasks &) = delete;
  HostTasks &operator=(const HostTasks &) = delete;

  /// What the task throws becomes the device's failure; after one, tasks are
  /// dropped.
  void run(std::function<void()> task);

private:
  static void CUDA_CB reached(void *self);
  void work();

  const DriverApi &driver;
  const CUstream stream;
  DeviceFailure &failure;
  uint32_t *done = nullptr; ///< tasks; in host memory that the GPU reads
  CUdeviceptr doneOnGpu = 0;
  uint32_t given = 0;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  size_t due = 0; ///< of the tasks, those that the stream has come to
  bool stopping = false;
  std::thread thread;
};

} // namespace fsdpq::rt
