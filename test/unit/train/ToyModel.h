//===- ToyModel.h - A plan whose results can be computed by hand -*- C++ -*-===//
//
// The model predicts every token by one number per layer: the loss of a
// labelled token with target y is the sum over layers of (w[layer] - y)^2. The
// device executes kernels that are C++ functions, so no compiler is needed.
//
// Parameters: "scale" [2] (Checkpoint: toy.{layer}.scale, two layers, stored as
// loaded), and the adapter "q.lora_A" [1, 1] (PEFT name, zeros), the w above,
// of layers 0 and 3; "q.lora_B" [2, 1] (Kaiming).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/device/Device.h"
#include "test/unit/plan/PlanBuilder.h"

#include <functional>
#include <map>
#include <string>

namespace fsdpq::test {

/// Memory of the host; a kernel is found by its name.
class FunctionDevice final : public rt::Device {
public:
  using Function = std::function<void(const rt::LaunchArg *)>;
  std::map<std::string, Function> functions;

  void requireTarget(std::string_view) const override {}
  rt::DeviceAddress allocate(uint64_t bytes, std::string_view) override;
  void free(rt::DeviceAddress address, uint64_t bytes) override;
  void upload(rt::DeviceAddress to, const void *from, uint64_t bytes) override;
  void download(void *to, rt::DeviceAddress from, uint64_t bytes) override;
  std::unique_ptr<rt::LoadedKernel>
  loadKernel(const rt::KernelImage &image) override;
  void launch(const rt::LoadedKernel &kernel, const rt::LaunchArg *args,
              uint32_t argCount, int64_t grid, uint16_t stream) override;
  void gemm(const rt::GemmCall &, uint16_t) override {}
  void copy(rt::DeviceAddress to, rt::DeviceAddress from, int64_t bytes,
            uint16_t stream) override;
  void fill(rt::DeviceAddress to, uint8_t value, int64_t bytes,
            uint16_t stream) override;
  void synchronize() override {}
};

inline constexpr int64_t toyCapacity = 256, toyVocabulary = 8;

/// Programs: micro_step, optimizer_step (plain gradient descent), eval_step,
/// logits (the token after one of id i is i + 1, modulo the vocabulary).
/// `device` gets the kernels.
PlanBuilder toyModel(FunctionDevice &device);

} // namespace fsdpq::test
