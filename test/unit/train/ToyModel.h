//===- ToyModel.h - A plan whose results can be computed by hand -*- C++
//-*-===//
//
// The model predicts every token by one number per layer: the loss of a
// labelled token with target y is the sum over layers of (w[layer] - y)^2. The
// device executes kernels that are C++ functions, so no compiler is needed.
//
// Parameters, of layers 0 and 3: "scale" [2] (Checkpoint: toy.{layer}.scale, in
// pieces of one element), and the adapter "q.lora_A" [1, 1] (PEFT name, zeros),
// the w above, and "q.lora_B" [2, 1] (Kaiming).
//
// Units: "base" holds scale, "adapters" the rest. Each may be cut into 1, 2 or
// 3 ranges; of two ranges the border goes through lora_B, of three through
// scale.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/device/Device.h"
#include "runtime/train/Trainer.h"
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
  void prepare(uint16_t, uint32_t) override {}
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
  void record(uint32_t, uint16_t) override {}
  void wait(uint32_t, uint16_t) override {}
  void hostCall(std::function<void()> task, uint16_t) override { task(); }
  void synchronize() override {}
};

inline constexpr int64_t toyCapacity = 256, toyVocabulary = 8;
/// Of a unit.
inline constexpr int64_t toyUnitBytes = 6 * 256;
/// The arena that starts with the unit that is being loaded.
inline constexpr uint32_t toyWholeArena = 1;

/// Programs: micro_step, optimizer_step (plain gradient descent), eval_step,
/// logits (the token after one of id i is i + 1, modulo the vocabulary).
/// `device` gets the kernels.
PlanBuilder toyModel(FunctionDevice &device, uint32_t ranks = 1,
                     uint32_t shards = 1);

/// Adds a trainable parameter stored as f32, which starts as zeros, to unit
/// `unit` from byte `offset` on; its number.
uint32_t addParameter(PlanBuilder &builder, const std::string &name,
                      const std::string &hf, std::vector<int64_t> shape,
                      uint32_t unit, uint64_t offset);

/// Rows of one prompt token and the given learnt targets.
std::vector<rt::Row> rowsOf(const std::vector<std::vector<int32_t>> &targets);

/// Of micro-batches of one row, in order, with a learning rate of 1/8.
rt::TrainerOptions inOrder(int64_t accumulation);

} // namespace fsdpq::test
