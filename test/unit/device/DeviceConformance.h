//===- DeviceConformance.h - What every Device must do ----------*- C++ -*-===//
//
// A device joins the suite with
//   INSTANTIATE_TEST_SUITE_P(Name, DeviceConformance, testing::Values(...));
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/device/Device.h"

#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace fsdpq::test {

struct DeviceUnderTest {
  std::string name;
  std::function<std::unique_ptr<rt::Device>()> make;
  /// The kernel `symbol` of TestKernels.cpp in the device's form. The image's
  /// bytes live as long as the program.
  std::function<rt::KernelImage(const char *symbol)> kernel;
};

class DeviceConformance : public testing::TestWithParam<DeviceUnderTest> {};

/// The bytes of a file, e.g. an object.
std::vector<uint8_t> readBytes(const std::string &path);

} // namespace fsdpq::test
