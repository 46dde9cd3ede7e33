#include "tools/fsdpq-run/DeviceChoice.h"

#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/support/Error.h"
#include "tools/fsdpq-run/MachineMemory.h"
#include "tools/fsdpq-run/ranks/RunTogether.h"

#include <algorithm>

#ifdef FSDPQ_HAS_CUDA
#include "runtime/comm/nccl/NcclCommunicator.h"
#include "runtime/device/cuda/CudaDevice.h"
#endif

namespace fsdpq::run {

using rt::Error;
using rt::ExitCode;

namespace {

constexpr const char *cpu = "cpu";

/// A GPU as far as the choice goes.
struct VisibleGpu {
  std::string architecture;
  uint64_t bytes;
};

std::vector<VisibleGpu> visibleGpus(std::string &why) {
  std::vector<VisibleGpu> visible;
#ifdef FSDPQ_HAS_CUDA
  for (const rt::GpuInfo &gpu : rt::findGpus(why))
    visible.push_back({gpu.architecture, gpu.totalBytes});
#else
  why = "fsdpq-run was built without cuda.h";
#endif
  return visible;
}

[[noreturn]] void refuse(const std::string &what, const std::string &hint) {
  throw Error(6060, ExitCode::BadInput, what, "", hint);
}

/// What rank 0 wants the ranks to compile for: "cpu" or an architecture.
std::string wantedTarget(Settings &settings) {
  std::string why;
  const std::vector<VisibleGpu> gpus = visibleGpus(why);
  if (settings.device == "cuda") {
    if (gpus.empty())
      refuse("--device cuda: " + why,
             "`fsdpq-run doctor` says what is missing");
    return gpus.front().architecture;
  }
  if (settings.device == cpu)
    return cpu;
  if (gpus.empty()) {
    settings.deviceReason = why;
    return cpu;
  }
  if (!settings.planFile.empty()) {
    // What is wrong with the file is said where the plan is read.
    try {
      const auto plan = rt::LoadedPlan::fromFile(settings.planFile);
      if (plan->plan().target()->str() != gpus.front().architecture) {
        settings.deviceReason =
            "the plan is for " + plan->plan().target()->str();
        return cpu;
      }
    } catch (const Error &) {
      return cpu;
    }
  }
  return gpus.front().architecture;
}

/// This rank's GPU, of the kind that rank 0 has.
void takeGpu(Settings &settings, const RankSetup &setup) {
  std::string why;
  const std::vector<VisibleGpu> gpus = visibleGpus(why);
  const std::string self = "rank " + std::to_string(setup.rank);
  if (gpus.empty())
    refuse(self + " has no GPU, but rank 0 has: " + why,
           "give --device cpu, or GPUs to all");
  settings.usesGpu = true;
  settings.gpus = static_cast<int64_t>(gpus.size());
  settings.gpu = static_cast<int>(setup.localRank % settings.gpus);
  const VisibleGpu &own = gpus[static_cast<size_t>(settings.gpu)];
  if (own.architecture != settings.target)
    refuse(self + "'s GPU is " + own.architecture + ", rank 0's " +
               settings.target,
           "CUDA_VISIBLE_DEVICES can leave GPUs out");
  settings.gpuBytes = own.bytes;
}

} // namespace

void decideDevice(Settings &settings, const RankSetup &setup,
                  rt::Communicator &communicator) {
  std::string mine;
  runTogether(communicator, "choosing the device", [&] {
    if (communicator.rank() == 0)
      mine = wantedTarget(settings);
  });
  settings.target = communicator.exchange(mine, "the device").front();
  if (settings.target != cpu)
    runTogether(communicator, "finding the GPUs",
                [&] { takeGpu(settings, setup); });
}

int64_t countRanksByDefault(const Settings &settings) {
  if (settings.device == cpu || !settings.planFile.empty())
    return 1;
  std::string why;
  const std::vector<VisibleGpu> gpus = visibleGpus(why);
  for (const VisibleGpu &gpu : gpus)
    if (gpu.architecture != gpus.front().architecture)
      return 1;
  return std::max<int64_t>(1, static_cast<int64_t>(gpus.size()));
}

void decideTarget(Settings &settings) {
  if (settings.device != "cuda" || settings.target != cpu)
    return;
  std::string why;
  const std::vector<VisibleGpu> gpus = visibleGpus(why);
  if (gpus.empty())
    refuse("--device cuda: " + why,
           "say with --target which GPUs the plan is for: sm_90a");
  settings.target = gpus.front().architecture;
}

/// Ranks of this host that have the same GPU.
static int64_t sharers(const Settings &settings, const RankSetup &setup) {
  return (setup.localRanks - setup.localRank % settings.gpus + settings.gpus -
          1) /
         settings.gpus;
}

std::unique_ptr<rt::Communicator>
communicatorFor(const Settings &settings, const RankSetup &setup,
                std::unique_ptr<rt::Communicator> communicator) {
#ifdef FSDPQ_HAS_CUDA
  if (settings.usesGpu) {
    rt::NcclOptions options;
    options.collectiveTimeout = settings.collectiveTimeout;
    // All ranks of a host alike: NCCL compares their hosts.
    if (setup.localRanks > settings.gpus)
      options.sharesGpuAs = setup.localRank;
    return rt::makeNccl(std::move(communicator), options);
  }
#endif
  return communicator;
}

double memoryOfRank(const Settings &settings, const RankSetup &setup) {
  if (settings.usesGpu)
    return static_cast<double>(settings.gpuBytes) /
           static_cast<double>(sharers(settings, setup));
  return static_cast<double>(machineMemory()) /
         static_cast<double>(setup.localRanks);
}

//===--- The device ---------------------------------------------------------//

ChosenDevice::ChosenDevice(const Settings &settings, bool deterministic) {
#ifdef FSDPQ_HAS_CUDA
  if (settings.usesGpu) {
    auto cuda = std::make_unique<rt::CudaDevice>(settings.gpu);
    text_ =
        "GPU " + std::to_string(settings.gpu) + " (" + cuda->info().name + ")";
    usedBefore = cuda->usedBytes();
    gpu = cuda.get();
    device = std::move(cuda);
    return;
  }
#endif
  rt::CpuDeviceOptions options;
  options.threads = settings.threads;
  options.deterministic = deterministic;
  auto host = std::make_unique<rt::CpuDevice>(options);
  text_ = std::to_string(host->threads()) + " threads";
  if (!settings.deviceReason.empty())
    text_ += " of the CPU (" + settings.deviceReason + ")";
  device = std::move(host);
}

ChosenDevice::~ChosenDevice() = default;

uint64_t ChosenDevice::usedBytes() const {
#ifdef FSDPQ_HAS_CUDA
  if (gpu) {
    const uint64_t used = gpu->usedBytes();
    return used > usedBefore ? used - usedBefore : 0;
  }
#endif
  return 0;
}

} // namespace fsdpq::run
