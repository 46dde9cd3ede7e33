//===- RecordingDevice.h - Writes down what it is told ----------*- C++ -*-===//
#pragma once

#include "runtime/device/Device.h"

#include <cstring>
#include <string>
#include <vector>

namespace fsdpq::test {

/// Has memory but executes nothing: `log` holds one line a call. Addresses
/// print as "arena+offset", arenas numbered in the order of their allocation.
class RecordingDevice final : public rt::Device {
public:
  std::vector<std::string> log;

  void requireTarget(std::string_view) const override {}

  rt::DeviceAddress allocate(uint64_t bytes, std::string_view) override {
    arenas.push_back(std::vector<uint8_t>(bytes + 1));
    return reinterpret_cast<rt::DeviceAddress>(arenas.back().data());
  }
  void free(rt::DeviceAddress, uint64_t) override { ++freed; }

  void upload(rt::DeviceAddress to, const void *from, uint64_t bytes) override {
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
    log.push_back("upload " + place(to) + " " + std::to_string(bytes));
  }
  void download(void *to, rt::DeviceAddress from, uint64_t bytes) override {
    std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
    log.push_back("download " + place(from) + " " + std::to_string(bytes));
  }

  std::unique_ptr<rt::LoadedKernel>
  loadKernel(const rt::KernelImage &image) override {
    auto kernel = std::make_unique<Kernel>();
    kernel->name = image.name;
    return kernel;
  }

  void launch(const rt::LoadedKernel &kernel, const rt::LaunchArg *args,
              uint32_t argCount, int64_t grid, uint16_t stream) override {
    std::string line = static_cast<const Kernel &>(kernel).name + " grid " +
                       std::to_string(grid) + " stream " +
                       std::to_string(stream) + ":";
    for (uint32_t i = 0; i < argCount; ++i)
      switch (args[i].kind) {
      case rt::LaunchArg::Kind::Address:
        line += " " + place(args[i].address);
        break;
      case rt::LaunchArg::Kind::Integer:
        line += " " + std::to_string(args[i].integer);
        break;
      case rt::LaunchArg::Kind::Real:
        line += " " + std::to_string(args[i].real);
        break;
      }
    log.push_back(line);
  }

  void gemm(const rt::GemmCall &call, uint16_t stream) override {
    auto operand = [&](rt::DeviceAddress address, bool trans, int64_t pitch) {
      return " " + place(address) + (trans ? "'" : "") + "/" +
             std::to_string(pitch);
    };
    log.push_back("gemm " + std::to_string(call.m) + " " +
                  std::to_string(call.n) + " " + std::to_string(call.k) +
                  " alpha " + std::to_string(call.alpha) + " beta " +
                  std::to_string(call.beta) + ":" +
                  operand(call.a, call.transA, call.lda) +
                  operand(call.b, call.transB, call.ldb) +
                  operand(call.c, false, call.ldc));
  }
  void copy(rt::DeviceAddress to, rt::DeviceAddress from, int64_t bytes,
            uint16_t stream) override {
    log.push_back("copy " + place(to) + " " + place(from) + " " +
                  std::to_string(bytes));
  }
  void fill(rt::DeviceAddress to, uint8_t value, int64_t bytes,
            uint16_t stream) override {
    log.push_back("fill " + place(to) + " " + std::to_string(value) + " " +
                  std::to_string(bytes));
  }
  void prepare(uint16_t streamCount, uint32_t eventCount) override {
    streams = streamCount;
    events = eventCount;
  }
  void record(uint32_t event, uint16_t stream) override {
    log.push_back("record " + std::to_string(event) + " stream " +
                  std::to_string(stream));
  }
  void wait(uint32_t event, uint16_t stream) override {
    log.push_back("wait " + std::to_string(event) + " stream " +
                  std::to_string(stream));
  }
  void hostCall(std::function<void()> task, uint16_t stream) override {
    log.push_back("host call stream " + std::to_string(stream));
    task();
  }
  void synchronize() override {}

  unsigned freed = 0;
  uint16_t streams = 0;
  uint32_t events = 0;

private:
  struct Kernel : rt::LoadedKernel {
    std::string name;
  };

  std::string place(rt::DeviceAddress address) const {
    for (size_t i = 0; i < arenas.size(); ++i) {
      const auto begin = reinterpret_cast<rt::DeviceAddress>(arenas[i].data());
      if (address >= begin && address < begin + arenas[i].size())
        return std::to_string(i) + "+" + std::to_string(address - begin);
    }
    return "nowhere";
  }

  std::vector<std::vector<uint8_t>> arenas;
};

} // namespace fsdpq::test
