// NCCL between the threads of one process: each rank's collective is a task of its
// stream that meets those of the others.
#include "runtime/comm/nccl/NcclApi.h"
#include "test/unit/device/fake_cuda/FakeStreams.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

using namespace fsdpq::fake;
using namespace fsdpq::rt;

namespace {

/// Ranks that meet again and again.
struct Group {
  explicit Group(int size) : shares(static_cast<size_t>(size)) {}

  /// Waits until all have come; false if this rank's communicator is aborted.
  bool meet(const std::atomic<bool> &aborted) {
    std::unique_lock lock(mutex);
    const uint64_t round = rounds;
    if (++come == shares.size()) {
      come = 0;
      ++rounds;
      changed.notify_all();
      return true;
    }
    while (rounds == round)
      if (changed.wait_for(lock, std::chrono::milliseconds(5)) ==
              std::cv_status::timeout &&
          aborted)
        return false;
    return true;
  }

  std::mutex mutex;
  std::condition_variable changed;
  size_t come = 0;
  uint64_t rounds = 0;
  std::vector<const void *> shares; ///< what each rank sends
};

std::mutex groupsMutex;
std::map<uint64_t, std::shared_ptr<Group>> groups;
std::atomic<uint64_t> latestId = 0;

size_t bytesOf(ncclDataType_t type) {
  return type == ncclFloat64 ? 8 : type == ncclFloat32 ? 4 : 1;
}

template <typename T>
void addTo(std::vector<char> &sum, const void *term, size_t count) {
  for (size_t i = 0; i < count; ++i)
    reinterpret_cast<T *>(sum.data())[i] = static_cast<T>(
        reinterpret_cast<T *>(sum.data())[i] + static_cast<const T *>(term)[i]);
}

} // namespace

struct fsdpq::rt::ncclComm {
  std::shared_ptr<Group> group;
  int rank;
  std::atomic<bool> aborted = false;
};

namespace {

/// Gives a collective to the stream; `make` makes the result from all shares.
template <typename Make>
ncclResult_t give(ncclComm_t comm, const void *send, void *receive,
                  CUstream stream, const Make &make) {
  reinterpret_cast<Stream *>(stream)->give([=] {
    Group &group = *comm->group;
    {
      std::lock_guard lock(group.mutex);
      group.shares[static_cast<size_t>(comm->rank)] = send;
    }
    if (!group.meet(comm->aborted))
      return;
    const std::vector<char> result = make(group);
    if (group.meet(comm->aborted)) // all have read all
      std::memcpy(receive, result.data(), result.size());
  });
  return ncclSuccess;
}

std::vector<char> sum(const Group &group, size_t first, size_t count,
                      ncclDataType_t type) {
  std::vector<char> result(count * bytesOf(type));
  for (const void *share : group.shares) {
    const void *term = static_cast<const char *>(share) + first * bytesOf(type);
    if (type == ncclFloat64)
      addTo<double>(result, term, count);
    else if (type == ncclFloat32)
      addTo<float>(result, term, count);
    else
      addTo<uint8_t>(result, term, count);
  }
  return result;
}

} // namespace

extern "C" {

const char *ncclGetErrorString(ncclResult_t) { return "so said the fake"; }
const char *ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetVersion(int *version) {
  *version = 22703;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  const uint64_t number = ++latestId;
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int size, ncclUniqueId id,
                              int rank) {
  uint64_t number;
  std::memcpy(&number, id.internal, sizeof number);
  std::shared_ptr<Group> group;
  {
    std::lock_guard lock(groupsMutex);
    auto &entry = groups[number];
    if (!entry)
      entry = std::make_shared<Group>(size);
    group = entry;
  }
  *comm = new ncclComm{group, rank};
  return group->meet((*comm)->aborted) ? ncclSuccess : ncclInternalError;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->aborted = true; // tasks may still look at it
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *result) {
  *result = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count,
                           ncclDataType_t type, ncclComm_t comm,
                           CUstream stream) {
  return give(comm, send, receive, stream, [=](const Group &group) {
    std::vector<char> all;
    for (const void *share : group.shares)
      all.insert(all.end(), static_cast<const char *>(share),
                 static_cast<const char *>(share) + count * bytesOf(type));
    return all;
  });
}
ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count,
                               ncclDataType_t type, ncclRedOp_t,
                               ncclComm_t comm, CUstream stream) {
  return give(comm, send, receive, stream, [=](const Group &group) {
    return sum(group, static_cast<size_t>(comm->rank) * count, count, type);
  });
}
ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count,
                           ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                           CUstream stream) {
  return give(comm, send, receive, stream,
              [=](const Group &group) { return sum(group, 0, count, type); });
}

} // extern "C"
