// The conformance suite on the first GPU of this machine, if it has one.
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/Nvrtc.h"
#include "test/unit/device/CudaTestKernels.h"
#include "test/unit/device/DeviceConformance.h"

#include <map>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;

static KernelImage compiled(const char *symbol) {
  static std::map<std::string, std::vector<uint8_t>> cubins;
  std::string why;
  std::vector<uint8_t> &cubin = cubins[symbol];
  if (cubin.empty()) {
    NvrtcResult result =
        compileCuda(cudaText(symbol), symbol, findGpus(why).at(0).architecture);
    EXPECT_TRUE(result.succeeded) << result.log;
    cubin = std::move(result.cubin);
  }
  static const plan::LaunchShape *shape = launchShape();
  return {symbol,       symbol,       plan::KernelForm::CudaCubin,
          cubin.data(), cubin.size(), shape};
}

static DeviceUnderTest firstGpu() {
  using plan::DType;
  DeviceUnderTest gpu{"gpu0",
                      [] { return std::make_unique<CudaDevice>(0); },
                      compiled,
                      {{DType::BF16, DType::BF16},
                       {DType::BF16, DType::F32},
                       {DType::F64, DType::F64}}};
  if (std::string why; findGpus(why).empty())
    gpu.missing = why;
  return gpu;
}

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformance, testing::Values(firstGpu()),
                         [](const auto &info) { return info.param.name; });

TEST(Gpus, TheReasonForNoneIsSaid) {
  std::string why;
  const auto gpus = findGpus(why);
  EXPECT_NE(gpus.empty(), why.empty());
  for (const GpuInfo &gpu : gpus) {
    EXPECT_TRUE(gpu.architecture.starts_with("sm_")) << gpu.architecture;
    EXPECT_GT(gpu.processors, 0);
    EXPECT_GT(gpu.totalBytes, 0u);
  }
}

TEST(Gpus, OneThatIsNotThereIsRefused) { EXPECT_ANY_THROW(CudaDevice(4711)); }
