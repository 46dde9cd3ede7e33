#include "runtime/comm/nccl/NcclWatch.h"

#include "runtime/support/StopSignalMask.h"

#include <algorithm>

namespace fsdpq::rt {

using std::chrono::milliseconds;

//===--- One communicator ---------------------------------------------------//

WatchedComm::WatchedComm(CudaDevice &device, CUstream stream, std::string name,
                         ncclComm_t comm)
    : nccl(NcclApi::get()), driver(DriverApi::get()), device_(device),
      stream(stream), name(std::move(name)), comm(comm) {}

WatchedComm::~WatchedComm() {
  try {
    device_.makeCurrent();
  } catch (const Error &) {
    return; // the context has ended, and all in it
  }
  for (const Pending &each : pending)
    spare.push_back(each.event);
  for (CUevent event : spare)
    driver.cuEventDestroy(event);
  if (const ncclComm_t alive = comm.exchange(nullptr))
    nccl.ncclCommDestroy(alive);
}

std::string WatchedComm::describe(const Pending &pending) const {
  std::string text = pending.call.text() + " on the channel '" + name + "'";
  if (pending.where && *pending.where)
    text += std::string(", at ") + pending.where;
  return text;
}

void WatchedComm::given(const CollectiveCall &call, const char *where) {
  std::lock_guard lock(mutex);
  CUevent event = nullptr;
  if (spare.empty()) {
    driver.check(driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING),
                 "making an event");
  } else {
    event = spare.back();
    spare.pop_back();
  }
  if (pending.empty())
    firstSince = Clock::now();
  pending.push_back({event, call, where});
  driver.check(driver.cuEventRecord(event, stream), "watching a collective");
}

/// Forgets what is done; what is wrong with the rest.
std::optional<Failure> WatchedComm::look(milliseconds limit, int64_t rank) {
  std::lock_guard lock(mutex);
  while (!pending.empty() &&
         driver.cuEventQuery(pending.front().event) == CUDA_SUCCESS) {
    spare.push_back(pending.front().event);
    pending.pop_front();
    firstSince = Clock::now();
  }
  const std::string who = "rank " + std::to_string(rank);
  ncclResult_t state = ncclSuccess;
  if (const ncclComm_t alive = comm.load())
    nccl.ncclCommGetAsyncError(alive, &state);
  if (state != ncclSuccess && state != ncclInProgress)
    return Failure{7001, who + " lost the others in " +
                             (pending.empty() ? "the channel '" + name + "'"
                                              : describe(pending.front())) +
                             ": " + nccl.text(state)};
  if (!pending.empty() && Clock::now() - firstSince > limit)
    return Failure{7004, describe(pending.front()) + " did not end within " +
                             durationText(limit) + " on " + who};
  return std::nullopt;
}

void WatchedComm::end() {
  if (const ncclComm_t alive = comm.exchange(nullptr))
    nccl.ncclCommAbort(alive);
}

//===--- All of them --------------------------------------------------------//

NcclWatch::NcclWatch(Communicator &control, milliseconds limit)
    : control(control), limit(limit), thread([this] {
        blockStopSignals();
        work();
      }) {}

NcclWatch::~NcclWatch() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  thread.join();
}

void NcclWatch::add(WatchedComm &comm) {
  std::lock_guard lock(mutex);
  comms.push_back(&comm);
}

void NcclWatch::remove(WatchedComm &comm) {
  std::lock_guard lock(mutex);
  std::erase(comms, &comm);
}

/// With `mutex` held.
void NcclWatch::endAll(const Failure &failure) {
  for (WatchedComm *comm : comms) {
    // First what later calls throw: the stream goes on when its collective ends.
    comm->device().fail(std::make_exception_ptr(
        failure.at("rank " + std::to_string(control.rank()))));
    comm->end();
  }
}

void NcclWatch::work() {
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, every, [this] { return stopping; })) {
    try {
      std::optional<Failure> failure = control.failure();
      for (WatchedComm *comm : comms) {
        if (failure)
          break;
        comm->device().makeCurrent();
        if ((failure = comm->look(limit, control.rank()))) {
          control.fail(*failure);
          failure = control.failure().value_or(*failure);
        }
      }
      if (failure)
        endAll(*failure);
    } catch (const Error &error) { // the GPU's context has ended
      endAll({7003, "rank " + std::to_string(control.rank()) +
                        " failed: " + error.what()});
    }
  }
}

} // namespace fsdpq::rt
