#include "runtime/comm/nccl/NcclCommunicator.h"

#include "runtime/comm/nccl/NcclChannel.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>
#include <unistd.h>

namespace fsdpq::rt {
namespace {

using std::chrono::milliseconds;

void setDefault(const char *variable, const std::string &value) {
  ::setenv(variable, value.c_str(), /*overwrite=*/0);
}

/// NCCL reads these when it is first used.
void setUpEnvironment(const NcclOptions &options) {
  setDefault("NCCL_NVLS_ENABLE", "0");
  if (options.sharesGpuAs < 0)
    return;
  // It refuses two ranks of one host on one GPU.
  char host[256] = "host";
  ::gethostname(host, sizeof host - 1);
  setDefault("NCCL_HOSTID",
             std::string(host) + "-" + std::to_string(options.sharesGpuAs));
  setDefault("NCCL_SOCKET_IFNAME", "lo");
  setDefault("NCCL_IB_DISABLE", "1");
}

class NcclCommunicator final : public Communicator {
public:
  NcclCommunicator(std::unique_ptr<Communicator> other,
                   const NcclOptions &options)
      : control(std::move(other)), limit(options.collectiveTimeout) {
    if (control->size() == 1)
      return;
    setUpEnvironment(options);
    nccl = &NcclApi::get();
    watch.emplace(*control, limit);
  }

  int64_t rank() const override { return control->rank(); }
  int64_t size() const override { return control->size(); }

  std::unique_ptr<Channel> openChannel(const std::vector<int64_t> &members,
                                       Device &device, uint16_t stream,
                                       const std::string &name) override;

  std::vector<std::string> exchange(std::string_view mine,
                                    std::string_view what) override {
    return control->exchange(mine, what);
  }
  void abort(const std::string &cause) noexcept override {
    control->abort(cause);
  }
  void fail(const Failure &failure) noexcept override {
    control->fail(failure);
  }
  std::optional<Failure> failure() const override { return control->failure(); }

private:
  ncclUniqueId makeId(const std::vector<int64_t> &members,
                      const std::string &name);
  ncclComm_t join(const ncclUniqueId &id, int64_t size, int64_t position,
                  CudaDevice &device, const std::string &name);

  std::unique_ptr<Communicator> control;
  const milliseconds limit;
  const NcclApi *nccl = nullptr;
  std::optional<NcclWatch> watch;
};

/// The first member makes the number by which NCCL's ranks meet. All ranks of the
/// run tell each other at once, whatever group each is in.
ncclUniqueId NcclCommunicator::makeId(const std::vector<int64_t> &members,
                                      const std::string &name) {
  std::string mine;
  if (members.front() == rank() && members.size() > 1) {
    ncclUniqueId id;
    if (const ncclResult_t result = nccl->ncclGetUniqueId(&id);
        result != ncclSuccess)
      throw Error(7001, ExitCode::PeerFailure,
                  "NCCL cannot start the channel '" + name +
                      "': " + nccl->text(result),
                  "", "NCCL_DEBUG=INFO says more");
    mine.assign(id.internal, sizeof id.internal);
  }
  const std::vector<std::string> all =
      control->exchange(mine, "the identifier of the channel '" + name + "'");
  ncclUniqueId id{};
  const std::string &chosen = all[static_cast<size_t>(members.front())];
  std::memcpy(id.internal, chosen.data(),
              std::min(chosen.size(), sizeof id.internal));
  return id;
}

/// Meeting waits for all members, and cannot be ended from outside: when the run
/// fails meanwhile, the thread that waits is left behind.
ncclComm_t NcclCommunicator::join(const ncclUniqueId &id, int64_t size,
                                  int64_t position, CudaDevice &device,
                                  const std::string &name) {
  struct Meeting {
    ncclComm_t comm = nullptr;
    std::string problem;
  };
  std::promise<Meeting> promise;
  std::future<Meeting> met = promise.get_future();
  device.makeCurrent();
  CUcontext context = nullptr;
  const DriverApi &driver = DriverApi::get();
  driver.check(driver.cuCtxGetCurrent(&context), "meeting the other ranks");
  std::thread([promise = std::move(promise), nccl = nccl, &driver, context, id,
               size, position]() mutable {
    Meeting meeting;
    driver.cuCtxSetCurrent(context);
    const ncclResult_t result = nccl->ncclCommInitRank(
        &meeting.comm, static_cast<int>(size), id, static_cast<int>(position));
    if (result != ncclSuccess)
      meeting.problem = nccl->text(result);
    promise.set_value(std::move(meeting));
  }).detach();

  const std::string where = "rank " + std::to_string(rank()) +
                            ", the opening of the channel '" + name + "'";
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (met.wait_for(milliseconds(20)) != std::future_status::ready) {
    if (const auto failure = control->failure())
      throw failure->at(where);
    if (std::chrono::steady_clock::now() < deadline)
      continue;
    control->fail({7004, "NCCL did not open the channel '" + name +
                             "' within " + durationText(limit) + " on rank " +
                             std::to_string(rank())});
    throw control->failure()
        .value_or(Failure{7004, "NCCL did not answer"})
        .at(where);
  }
  const Meeting meeting = met.get();
  if (!meeting.problem.empty()) {
    if (const auto failure = control->failure())
      throw failure->at(where);
    throw Error(7001, ExitCode::PeerFailure,
                "NCCL cannot open the channel '" + name +
                    "': " + meeting.problem,
                where, "NCCL_DEBUG=INFO says more");
  }
  return meeting.comm;
}

std::unique_ptr<Channel>
NcclCommunicator::openChannel(const std::vector<int64_t> &members,
                              Device &device, uint16_t stream,
                              const std::string &name) {
  auto *gpu = dynamic_cast<CudaDevice *>(&device);
  if (!gpu)
    throw Error(7006, ExitCode::RunFailure,
                "the channel '" + name +
                    "' is between GPUs, but the device is "
                    "none");
  const auto count = static_cast<int64_t>(members.size());
  // A group of one is one on all ranks, for groups of a kind are equally large.
  if (count == 1)
    return std::make_unique<LoneGpuChannel>(*gpu, stream);
  const ncclUniqueId id = makeId(members, name);
  const int64_t position =
      std::find(members.begin(), members.end(), rank()) - members.begin();
  const ncclComm_t comm = join(id, count, position, *gpu, name);
  return std::make_unique<NcclChannel>(*watch, *gpu, stream, name, comm, count,
                                       position);
}

} // namespace

std::unique_ptr<Communicator> makeNccl(std::unique_ptr<Communicator> control,
                                       const NcclOptions &options) {
  return std::make_unique<NcclCommunicator>(std::move(control), options);
}

} // namespace fsdpq::rt
