//===- Execution.cpp - Kernels mean what their bodies say -----------------===//

#include "test/unit/oracle/FinishPlan.h"
#include "test/unit/oracle/OracleModel.h"

#include "runtime/train/AdapterInit.h"
#include "runtime/train/Trainer.h"

#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::test;

/// The text of the kernel whose name begins with `name`.
static std::pair<size_t, size_t> findKernel(const std::string &ir,
                                            const std::string &name) {
  const size_t begin = ir.find("kern.func @" + name);
  if (begin == std::string::npos)
    throw std::runtime_error("no kernel " + name);
  return {begin, ir.find("\n    }\n", begin) - begin};
}

/// `ir` with the first `from` in the kernel replaced.
static std::string changeKernel(const std::string &ir, const std::string &name,
                                const std::string &from, const std::string &to) {
  const auto [begin, size] = findKernel(ir, name);
  const size_t at = ir.find(from, begin);
  if (at >= begin + size)
    throw std::runtime_error("no '" + from + "' in " + name);
  std::string changed = ir;
  return changed.replace(at, from.size(), to);
}

TEST(KernelBodies, AreWhatRuns) {
  CompileOptions options = llamaOptions("llama_mha", {"micro_step"});
  options.compileTo = "kernel";
  const CompileResult kernels = compileModel(options);
  ASSERT_TRUE(kernels.succeeded) << kernels.diagnostics;
  options.compileTo.clear();
  const rt::MicroBatch batch = rt::packRows(randomRows({40, 21}, 384, 3), 512);
  TensorMap gradients;
  const auto lossOf = [&](const std::string &ir) {
    const CompileResult result = finishPlan(ir, options);
    if (!result.succeeded)
      throw std::runtime_error(result.diagnostics);
    OracleModel model(rt::LoadedPlan::fromBytes(result.plan, "changed"));
    model.load(oraclePath("llama_mha"));
    const double loss = model.meanLossStep(batch);
    gradients = model.gradients();
    return loss;
  };

  const double loss = lossOf(kernels.ir);
  const TensorMap unchanged = gradients;
  // The rest of the pipeline is the compiler's own.
  OracleModel compiled(compilePlan(options));
  compiled.load(oraclePath("llama_mha"));
  EXPECT_EQ(loss, compiled.meanLossStep(batch));

  // The constant of 1 + exp(-x) in silu.
  EXPECT_NE(loss, lossOf(changeKernel(kernels.ir, "packed_gated_silu_128_f32(",
                                      "arith.constant 1.0", "arith.constant 1.5")));
  // The sum of two activations.
  EXPECT_NE(loss, lossOf(changeKernel(kernels.ir, "add_64_f32(", "arith.addf",
                                      "arith.subf")));
  // A derivative: the loss stays, the gradients do not.
  EXPECT_EQ(loss,
            lossOf(changeKernel(kernels.ir, "packed_gated_silu_grad_128_f32(",
                                "arith.constant 1.0", "arith.constant 1.5")));
  EXPECT_NE(unchanged, gradients);
}

namespace {
struct TrainingTrace {
  std::vector<double> losses, norms;
  TensorMap adapters;
  bool operator==(const TrainingTrace &) const = default;
};
} // namespace

static TrainingTrace train(std::shared_ptr<const rt::LoadedPlan> plan,
                           uint64_t seed, unsigned threads) {
  OracleModel model(std::move(plan), threads);
  model.load(oraclePath("llama_gqa"));
  rt::initialiseAdapters(model.executor(), seed);
  const std::vector<rt::Row> rows =
      randomRows({30, 25, 41, 18, 33, 27, 12, 50}, 384, 17, 5);
  rt::TrainerOptions options;
  options.batches.batchSize = 2;
  options.batches.accumulation = 2;
  options.batches.seed = seed;
  options.epochs = 3;
  options.lr = 1e-3;
  options.maxGradNorm = 0.5;
  options.beta2 = 0.95;
  rt::Trainer trainer(model.executor(), rows, options);
  TrainingTrace trace;
  trainer.run(
      [&](const rt::StepRecord &record) {
        trace.losses.push_back(record.loss);
        trace.norms.push_back(record.gradNorm);
      },
      [] { return false; });
  for (auto &[name, values] : model.parameters())
    if (name.find("lora_") != std::string::npos)
      trace.adapters[name] = values;
  return trace;
}

TEST(Determinism, SeedsDecideBits) {
  CompileOptions options = llamaOptions("llama_gqa", {"micro_step"});
  options.trainAll = false;
  options.loraRank = 4;
  options.loraScale = 2;
  options.loraTargets = {"all"};
  options.quantScheme = "!qt.nf4<block = 64, scale = dq<256>>";
  const auto plan = compilePlan(options);
  const TrainingTrace first = train(plan, 1, 2);
  EXPECT_EQ(first.losses.size(), 6u);
  EXPECT_EQ(first.adapters.size(), 3u * 6 * 2);
  EXPECT_EQ(first, train(plan, 1, 2));
  EXPECT_EQ(first, train(plan, 1, 1)) << "the number of threads matters";
  EXPECT_NE(first, train(plan, 2, 2));
  // Compiled once more.
  EXPECT_EQ(plan->hash(), compilePlan(options)->hash());
}
