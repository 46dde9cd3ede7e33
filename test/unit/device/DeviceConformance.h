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
#include <utility>
#include <vector>

namespace fsdpq::test {

struct DeviceUnderTest {
  std::string name;
  std::function<std::unique_ptr<rt::Device>()> make;
  /// The kernel `symbol` of TestKernels.cpp in the device's form. The image's
  /// bytes live as long as the program.
  std::function<rt::KernelImage(const char *symbol)> kernel;
  /// Of GEMMs, beside f32: of A and B, and of C.
  std::vector<std::pair<plan::DType, plan::DType>> gemmTypes = {};
  /// Why it cannot be tested on this machine; "" if it can.
  std::string missing = "";
};

class DeviceConformance : public testing::TestWithParam<DeviceUnderTest> {
protected:
  void SetUp() override {
    if (!GetParam().missing.empty())
      GTEST_SKIP() << GetParam().missing;
  }
};

/// The bytes of a file, e.g. an object.
std::vector<uint8_t> readBytes(const std::string &path);

} // namespace fsdpq::test
