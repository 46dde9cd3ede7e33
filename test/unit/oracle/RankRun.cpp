#include "test/unit/oracle/RankRun.h"

#include "runtime/comm/inprocess/InProcess.h"
#include "runtime/train/AdapterInit.h"
#include "runtime/train/Parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <exception>
#include <stdexcept>
#include <thread>

namespace fsdpq::test {

CompileOptions compileOptions(const RankRun &run) {
  CompileOptions options = llamaOptions("llama_gqa", {"micro_step"});
  options.trainAll = run.type == TrainType::Full;
  if (!options.trainAll) {
    options.loraRank = 4;
    options.loraScale = 2;
    options.loraDropout = run.dropout;
    options.loraTargets = {"all"};
  }
  if (run.type == TrainType::Qlora)
    options.quantScheme = "!qt.nf4<block = 64, scale = dq<256>>";
  options.checkpointing = run.checkpointing;
  options.ranks = run.ranks;
  options.shards = run.shards ? run.shards : run.ranks;
  options.keepGathered = run.keepGathered;
  options.splitUnits = run.splitUnits;
  options.deterministic = run.deterministic;
  options.reduceEachMicroStep = run.reduceEachMicroStep;
  options.kernelCache = testing::TempDir() + "fsdpq-rank-kernels";
  options.threads = 1;
  return options;
}

/// Adapters whose two halves are both alive, so that both have gradients.
static void initialise(rt::Executor &executor) {
  rt::initialiseAdapters(executor, 1);
  const plan::Plan &plan = executor.plan().plan();
  for (const plan::Parameter *parameter : *plan.parameters()) {
    if (parameter->init() != plan::Init::Zeros)
      continue;
    std::vector<float> values(static_cast<size_t>(rt::elementCount(*parameter)));
    for (int64_t i = 0; i < rt::instanceCount(plan, *parameter); ++i) {
      rt::kaimingUniform(values, 10000, 2, parameter->name()->string_view(), i);
      rt::writeParameter(executor, *parameter, i, values.data());
    }
  }
}

static RankResult trainRank(const RankRun &run,
                            std::shared_ptr<const rt::LoadedPlan> plan,
                            rt::Communicator &communicator) {
  rt::CpuDeviceOptions device;
  device.threads = run.ranks == 1 ? 2 : 1;
  device.deterministic = run.deterministic;
  device.delays = run.delays;
  device.delays.seed += static_cast<uint64_t>(communicator.rank()) * 16;
  OracleModel model(std::move(plan), device, communicator);
  model.load(oraclePath("llama_gqa"));
  initialise(model.executor());

  std::vector<int> lengths;
  for (int64_t i = 0; i < 2 * run.microBatches * run.steps; ++i)
    lengths.push_back(static_cast<int>(5 + i * 7 % 20));
  const std::vector<rt::Row> rows = randomRows(lengths, 256, 3, 2);
  rt::TrainerOptions options;
  options.batches.batchSize = 2;
  options.batches.accumulation = run.microBatches / run.ranks;
  options.batches.shuffle = false;
  options.lossAverage = run.average;
  options.lr = 1e-3;
  options.beta2 = 0.95;
  options.maxGradNorm = 0.1;

  RankResult result;
  rt::Trainer trainer(model.executor(), rows, options);
  const uint64_t receivedBefore = model.executor().receivedBytes();
  trainer.run(
      [&](const rt::StepRecord &record) {
        result.losses.push_back(record.loss);
        result.norms.push_back(record.gradNorm);
      },
      [] { return false; });
  result.receivedBytes = model.executor().receivedBytes() - receivedBefore;
  const plan::Plan &content = model.executor().plan().plan();
  for (const plan::Parameter *parameter : *content.parameters())
    if (parameter->trainable())
      for (int64_t i = 0; i < rt::instanceCount(content, *parameter); ++i)
        result.parameters[rt::instanceName(*parameter->hf(), content, *parameter,
                                           i)] =
            rt::readParameter(model.executor(), *parameter, i);
  return result;
}

RankResult train(const RankRun &run) {
  const auto plan = compilePlan(compileOptions(run));
  auto communicators =
      rt::makeInProcessRanks(run.ranks, std::chrono::seconds(60));
  std::vector<RankResult> results(communicators.size());
  std::vector<std::exception_ptr> failures(communicators.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < communicators.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        results[rank] = trainRank(run, plan, *communicators[rank]);
      } catch (const std::exception &error) {
        communicators[rank]->abort(error.what());
        failures[rank] = std::current_exception();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::exception_ptr &failure : failures)
    if (failure)
      std::rethrow_exception(failure);
  for (const RankResult &result : results)
    if (!(result == results.front()))
      throw std::runtime_error("ranks end with different results");
  return results.front();
}

} // namespace fsdpq::test
