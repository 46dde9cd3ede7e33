//===- OracleModel.h - Models compiled in process ---------------*- C++ -*-===//
#pragma once

#include "compiler/Pipelines/Compile.h"
#include "runtime/comm/Solo.h"
#include "runtime/data/Dataset.h"
#include "runtime/data/MicroBatch.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/exec/Executor.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fsdpq::test {

/// A file or folder below test/Inputs/oracle.
std::string oraclePath(const std::string &name);
std::string readText(const std::string &path);

/// Options for one of the models there. `config` is config.json or
/// config.legacy.json.
CompileOptions llamaOptions(const std::string &model,
                            std::vector<std::string> programs,
                            const std::string &config = "config.json");

/// The plan; a failure to compile ends the test program's current test by an
/// exception with the diagnostics.
std::shared_ptr<const rt::LoadedPlan> compilePlan(const CompileOptions &options);
std::vector<uint8_t> compileBytes(const CompileOptions &options);

/// By the parameters' checkpoint names, one entry an instance.
using TensorMap = std::map<std::string, std::vector<float>>;

/// A plan on the CPU.
class OracleModel {
public:
  explicit OracleModel(std::shared_ptr<const rt::LoadedPlan> plan,
                       unsigned threads = 0)
      : solo(rt::makeSolo()), device(threads),
        executor_(std::move(plan), device, *solo) {}
  /// One rank's part of it.
  OracleModel(std::shared_ptr<const rt::LoadedPlan> plan,
              const rt::CpuDeviceOptions &options,
              rt::Communicator &communicator)
      : device(options), executor_(std::move(plan), device, communicator) {}

  rt::Executor &executor() { return executor_; }

  /// From a folder with safetensors.
  void load(const std::string &folder);

  /// Adds the gradients of `lossWeight` times the summed loss; gives the loss.
  double microStep(const rt::MicroBatch &batch, double lossWeight);
  /// The same for the batch's mean loss, from cleared gradients.
  double meanLossStep(const rt::MicroBatch &batch);

  /// Of row `row` of the packed batch.
  std::vector<float> logits(const rt::MicroBatch &batch, int32_t row,
                            size_t vocabulary);

  TensorMap gradients() const;
  void clearGradients();
  /// Of the parameters stored as f32.
  TensorMap parameters() const;
  void setParameters(const TensorMap &values);

  /// One optimizer step with the scalars of step `number` (from 1); gives the
  /// norm of the gradients.
  float optimizerStep(int64_t number, double lr = 1e-3,
                      double maxGradNorm = 1e30);

private:
  std::unique_ptr<rt::Communicator> solo; ///< null for one rank of several
  rt::CpuDevice device;
  rt::Executor executor_;
};

/// Every element within atol + rtol * |wanted|. `what` names the tensors.
void expectClose(const std::vector<float> &actual,
                 const std::vector<float> &wanted, double rtol, double atol,
                 const std::string &what);
void expectClose(const TensorMap &actual, const TensorMap &wanted, double rtol,
                 double atol);

/// Rows of random ids, all labelled but for the first `masked` ones.
std::vector<rt::Row> randomRows(const std::vector<int> &lengths, int vocabulary,
                                unsigned seed, int masked = 0);

} // namespace fsdpq::test
