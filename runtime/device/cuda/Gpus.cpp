//===- Gpus.cpp - Which GPUs there are ------------------------------------===//
#include "runtime/device/cuda/Gpus.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/DriverApi.h"

namespace fsdpq::rt {

std::string architectureName(int major, int minor) {
  // From Hopper on, what makes a GPU fast is in the set that no other has.
  constexpr int firstWithOwnSet = 9;
  return "sm_" + std::to_string(major) + std::to_string(minor) +
         (major >= firstWithOwnSet ? "a" : "");
}

GpuInfo describeGpu(const DriverApi &driver, int ordinal) {
  const char *action = "describing a GPU";
  GpuInfo info{ordinal, "", "", 0, 0, 0};
  CUdevice device = 0;
  driver.check(driver.cuDeviceGet(&device, ordinal), action);
  char name[256] = "";
  driver.check(driver.cuDeviceGetName(name, sizeof name, device), action);
  info.name = name;
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    driver.check(driver.cuDeviceGetAttribute(&value, which, device), action);
    return value;
  };
  info.architecture =
      architectureName(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                       attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  info.processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  size_t bytes = 0;
  driver.check(driver.cuDeviceTotalMem(&bytes, device), action);
  info.totalBytes = bytes;
  return info;
}

std::vector<GpuInfo> findGpus(std::string &why) {
  std::vector<GpuInfo> gpus;
  try {
    const DriverApi &driver = DriverApi::get();
    int count = 0;
    driver.check(driver.cuDeviceGetCount(&count), "counting the GPUs");
    for (int ordinal = 0; ordinal < count; ++ordinal)
      gpus.push_back(describeGpu(driver, ordinal));
    if (gpus.empty())
      why = "the CUDA driver finds no GPU";
  } catch (const Error &error) {
    gpus.clear();
    // Without its id and its hint.
    const std::string text = error.what();
    const size_t begin = text.find("]: ");
    why = text.substr(begin == std::string::npos ? 0 : begin + 3);
    why = why.substr(0, why.find('\n'));
  }
  return gpus;
}

bool canAccessPeer(int from, int to) {
  const DriverApi &driver = DriverApi::get();
  CUdevice first = 0, second = 0;
  int can = 0;
  driver.check(driver.cuDeviceGet(&first, from), "describing a GPU");
  driver.check(driver.cuDeviceGet(&second, to), "describing a GPU");
  driver.check(driver.cuDeviceCanAccessPeer(&can, first, second),
               "asking how two GPUs are linked");
  return can != 0;
}

} // namespace fsdpq::rt
