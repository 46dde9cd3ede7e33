//===- TrainStep.cpp - Speed and memory of training steps -----------------===//
//
// Compiles a model's training plan, fills it with random weights and measures
// optimizer steps on random tokens: tokens a second, memory, what each kernel
// takes and how far it is from what the machine can do, and the same plan's
// matrix products alone. One JSON line on standard output, a table on the other.
//
//   fsdpq_gpu step --config config.json [--models DIR] [--rows 4]
//     [--length 2048] [--type qlora|lora|full] [--precision bf16|fp32]
//     [--checkpointing] [--rank 16] [--dropout 0] [--steps 6] [--device cuda|cpu]
//     [--peak_tflops 989] [--peak_tbs 4.8] [--name X]
//
// The peaks are those of the machine's data sheet; the defaults are an H200's.
//
//===----------------------------------------------------------------------===//

#include "test/gpu/Gpu.h"

#include "compiler/Pipelines/Compile.h"
#include "runtime/comm/Solo.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/exec/Executor.h"
#include "runtime/exec/InstructionLabels.h"
#include "runtime/observe/Trace.h"
#include "runtime/plan/Cost.h"
#include "runtime/plan/Elements.h"
#include "runtime/plan/MemoryTable.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/support/Error.h"
#include "runtime/train/MicroStep.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

using namespace fsdpq;
using namespace fsdpq::rt;

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

struct Request {
  std::string config, models = "models", type = "qlora", precision = "bf16",
                      device = "cuda", name, cache, target;
  int64_t rows = 4, length = 2048, rank = 16, steps = 6, warmUp = 3;
  double peakTflops = 989, peakTbs = 4.8, dropout = 0;
  bool checkpointing = false;
};

Request parse(int argc, char **argv) {
  Request request;
  std::map<std::string, std::string *> texts = {
      {"--config", &request.config},       {"--models", &request.models},
      {"--type", &request.type},           {"--precision", &request.precision},
      {"--device", &request.device},       {"--name", &request.name},
      {"--cache", &request.cache}};
  std::map<std::string, int64_t *> numbers = {{"--rows", &request.rows},
                                              {"--length", &request.length},
                                              {"--rank", &request.rank},
                                              {"--steps", &request.steps},
                                              {"--warm_up", &request.warmUp}};
  std::map<std::string, double *> reals = {{"--peak_tflops", &request.peakTflops},
                                           {"--peak_tbs", &request.peakTbs},
                                           {"--dropout", &request.dropout}};
  for (int i = 0; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--checkpointing")
      request.checkpointing = true;
    else if (i + 1 < argc && texts.count(option))
      *texts[option] = argv[++i];
    else if (i + 1 < argc && numbers.count(option))
      *numbers[option] = std::stoll(argv[++i]);
    else if (i + 1 < argc && reals.count(option))
      *reals[option] = std::stod(argv[++i]);
    else
      throw Error(2001, ExitCode::BadInput, "unknown option '" + option + "'");
  }
  if (request.config.empty())
    throw Error(2001, ExitCode::BadInput, "--config is missing");
  return request;
}

CompileOptions compileOptions(const Request &request) {
  CompileOptions options;
  options.models = request.models;
  std::ifstream file(request.config);
  if (!file)
    throw Error(2001, ExitCode::BadInput, "cannot read " + request.config);
  options.configText.assign(std::istreambuf_iterator<char>(file), {});
  options.tokens = request.rows * request.length;
  options.rowTokens = request.length;
  options.programs = {"micro_step"};
  options.precision = request.precision == "bf16" ? "bf16" : "f32";
  options.target = request.target;
  options.checkpointing = request.checkpointing;
  options.kernelCache = request.cache;
  options.optimizerOptions = {
      {"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-5}, {"weight_decay", 0.1}};
  if (request.type == "full") {
    options.trainAll = true;
  } else {
    options.loraRank = request.rank;
    options.loraTargets = {"q_proj", "k_proj",  "v_proj",   "o_proj",
                           "up_proj", "gate_proj", "down_proj"};
    options.loraScale = 2;
    options.loraDropout = request.dropout;
    if (request.type == "qlora")
      options.quantScheme = "!qt.nf4<block = 64, scale = dq<256>>";
  }
  return options;
}

/// What a stored part of a parameter may plausibly hold.
std::vector<uint8_t> randomComponent(const plan::Parameter &parameter,
                                     const plan::Component &component,
                                     std::mt19937_64 &generator) {
  const uint64_t elements = component.elements();
  const std::string name = component.name()->str();
  const std::string dtype = component.dtype()->str();
  std::vector<uint8_t> bytes(elements * *elementBytes(dtype));
  if (dtype == "u8") {
    for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      const uint64_t word = generator();
      std::memcpy(&bytes[i], &word, 8);
    }
    return bytes;
  }
  const bool isNorm = parameter.shape()->size() == 1;
  // 16 bits of each draw make a value: good enough, and billions are made.
  uint64_t word = 0;
  for (uint64_t i = 0; i < elements; ++i) {
    word = i % 4 == 0 ? generator() : word >> 16;
    float value = (static_cast<float>(word & 0xFFFF) - 32767.5f) * (0.03f / 32768);
    if (name == "nested_absmax")
      value = 0.02f;
    else if (name == "offset")
      value = 0.05f;
    else if (isNorm)
      value += 1;
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (dtype == "bf16") {
      const uint16_t half = static_cast<uint16_t>(bits >> 16);
      std::memcpy(&bytes[2 * i], &half, 2);
    } else {
      std::memcpy(&bytes[4 * i], &bits, 4);
    }
  }
  return bytes;
}

/// All layers get the values of the first.
void fillWeights(Executor &executor) {
  const plan::Plan &plan = executor.plan().plan();
  std::mt19937_64 generator(1);
  for (const plan::Parameter *parameter : *plan.parameters()) {
    const plan::Unit &unit = *plan.units()->Get(parameter->unit());
    const size_t layers = unit.layers() && unit.layers()->size() > 0
                              ? unit.layers()->size()
                              : 1;
    for (const plan::Component *component : *parameter->components()) {
      const auto bytes = randomComponent(*parameter, *component, generator);
      for (size_t layer = 0; layer < layers; ++layer)
        executor.writeSlice(unit.range(), static_cast<int64_t>(layer),
                            bytes.data(), bytes.size(), component->offset());
    }
  }
}

MicroBatch randomBatch(const Request &request, int64_t vocabulary) {
  std::mt19937 generator(7);
  std::uniform_int_distribution<int32_t> token(0, static_cast<int32_t>(vocabulary) - 1);
  std::vector<Row> rows(static_cast<size_t>(request.rows));
  for (Row &row : rows)
    for (int64_t i = 0; i < request.length; ++i) {
      row.ids.push_back(token(generator));
      row.labels.push_back(row.ids.back());
    }
  return packRows(rows, request.length);
}

/// A device that can be told to compute matrix products and nothing else.
class Filter final : public Device {
public:
  explicit Filter(Device &inner) : inner(inner) {}

  bool productsOnly = false;

  void requireTarget(std::string_view target) const override {
    inner.requireTarget(target);
  }
  void prepare(uint16_t streams, uint32_t events) override {
    inner.prepare(streams, events);
  }
  DeviceAddress allocate(uint64_t bytes, std::string_view what) override {
    return inner.allocate(bytes, what);
  }
  void free(DeviceAddress address, uint64_t bytes) override {
    inner.free(address, bytes);
  }
  void upload(DeviceAddress to, const void *from, uint64_t bytes) override {
    inner.upload(to, from, bytes);
  }
  void download(void *to, DeviceAddress from, uint64_t bytes) override {
    inner.download(to, from, bytes);
  }
  std::unique_ptr<LoadedKernel> loadKernel(const KernelImage &image) override {
    return inner.loadKernel(image);
  }
  void launch(const LoadedKernel &kernel, const LaunchArg *arguments,
              uint32_t count, int64_t grid, uint16_t stream) override {
    if (!productsOnly)
      inner.launch(kernel, arguments, count, grid, stream);
  }
  void gemm(const GemmCall &call, uint16_t stream) override {
    inner.gemm(call, stream);
  }
  void copy(DeviceAddress to, DeviceAddress from, int64_t bytes,
            uint16_t stream) override {
    if (!productsOnly)
      inner.copy(to, from, bytes, stream);
  }
  void fill(DeviceAddress to, uint8_t value, int64_t bytes,
            uint16_t stream) override {
    if (!productsOnly)
      inner.fill(to, value, bytes, stream);
  }
  void record(uint32_t event, uint16_t stream) override {
    if (!productsOnly)
      inner.record(event, stream);
  }
  void wait(uint32_t event, uint16_t stream) override {
    if (!productsOnly)
      inner.wait(event, stream);
  }
  void hostCall(std::function<void()> task, uint16_t stream) override {
    inner.hostCall(std::move(task), stream);
  }
  void stamp(UseTime use, uint16_t stream) override {
    inner.stamp(std::move(use), stream);
  }
  void synchronize() override { inner.synchronize(); }

private:
  Device &inner;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

class Bench {
public:
  Bench(const Request &request, std::shared_ptr<const LoadedPlan> plan,
        Device &device)
      : request(request), communicator(makeSolo()),
        executor(plan, device, *communicator),
        step(executor, "micro_step"), update(executor.function("optimizer_step")),
        device(device) {}

  Executor &program() { return executor; }

  /// Seconds of one optimizer step.
  double run(const MicroBatch &batch) {
    const auto begun = Clock::now();
    step.run(batch, meanLossWeight(batch, 1));
    OptionalScalar(executor, "lr").set(1e-5);
    OptionalScalar(executor, "bias_correction1").set(0.1);
    OptionalScalar(executor, "bias_correction2").set(0.05);
    OptionalScalar(executor, "max_grad_norm").set(1.0);
    executor.run(update);
    device.synchronize();
    return secondsSince(begun);
  }

  double medianStep(const MicroBatch &batch) {
    for (int64_t i = 0; i < request.warmUp; ++i)
      run(batch);
    std::vector<double> times;
    for (int64_t i = 0; i < request.steps; ++i)
      times.push_back(run(batch));
    return median(times);
  }

  /// What each kernel takes in one step, what it computes and moves meanwhile (at
  /// full capacity), and how near that is to what the machine can do.
  void printTable(const MicroBatch &batch, double seconds) {
    Trace trace(0);
    executor.setTrace(&trace);
    run(batch);
    trace.restartTimes();
    run(batch);
    executor.setTrace(nullptr);
    struct Line {
      uint64_t count = 0;
      double seconds = 0, flops = 0, bytes = 0;
    };
    std::map<std::string, Line> lines;
    Line sum;
    const std::vector<Cost> costs = labelCosts();
    const std::vector<Trace::LabelTimes> labels = trace.labelTimes();
    for (size_t i = 0; i < labels.size(); ++i) {
      const Trace::LabelTimes &times = labels[i];
      if (times.count == 0)
        continue;
      const Cost cost = i < costs.size() ? costs[i] : Cost();
      const auto count = static_cast<double>(times.count);
      for (Line *line : {&lines[times.label->name], &sum}) {
        line->count += times.count;
        line->seconds += times.seconds;
        line->flops += count * (cost.matmulFlops + cost.kernelFlops);
        line->bytes += count * cost.memoryBytes;
      }
    }
    std::vector<std::pair<std::string, Line>> sorted(lines.begin(), lines.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
      return a.second.seconds > b.second.seconds;
    });
    sorted.emplace_back("sum", sum);
    std::fprintf(stderr, "%-46s %6s %10s %9s %6s %8s %6s %9s\n", "kernel", "count",
                 "ms", "us each", "share", "TFLOP/s", "TB/s", "of limit");
    for (const auto &[name, line] : sorted) {
      const double limit = std::max(line.flops / (request.peakTflops * 1e12),
                                    line.bytes / (request.peakTbs * 1e12));
      std::fprintf(stderr,
                   "%-46s %6llu %10.3f %9.1f %5.1f%% %8.1f %6.2f %8.1f%%\n",
                   name.c_str(), static_cast<unsigned long long>(line.count),
                   line.seconds * 1e3, line.seconds * 1e6 / line.count,
                   100 * line.seconds / seconds, line.flops / line.seconds / 1e12,
                   line.bytes / line.seconds / 1e12, 100 * limit / line.seconds);
    }
  }

private:
  /// What one execution costs, in the order of the executor's labels.
  std::vector<Cost> labelCosts() const {
    const plan::Plan &plan = executor.plan().plan();
    std::vector<Cost> costs;
    for (const plan::Function *function : *plan.functions()) {
      const size_t first = costs.size();
      costs.resize(first + instructionLabels(plan, *function).size());
      unroll(plan, *function, 0, [&](const UnrolledInstruction &unrolled) {
        costs[first + unrolled.number] = costOf(plan, unrolled);
      });
    }
    return costs;
  }

  const Request &request;
  std::unique_ptr<Communicator> communicator;
  Executor executor;
  MicroStep step;
  FunctionId update;
  Device &device;
};

int64_t findVocabulary(const plan::Plan &plan) {
  for (const plan::Parameter *parameter : *plan.parameters())
    if (parameter->name()->string_view().find("embed") != std::string_view::npos)
      return parameter->shape()->Get(0);
  throw Error(2001, ExitCode::BadInput, "the model has no embedding");
}

int measure(Request request) {
  std::unique_ptr<Device> device;
  CudaDevice *gpu = nullptr;
  if (request.device == "cuda") {
    auto made = std::make_unique<CudaDevice>(0);
    gpu = made.get();
    request.target = made->info().architecture;
    device = std::move(made);
  } else {
    request.target = "cpu";
    device = std::make_unique<CpuDevice>();
  }
  const auto begun = Clock::now();
  CompileResult compiled = compileModel(compileOptions(request));
  if (!compiled.succeeded)
    throw Error(2001, ExitCode::BadInput, compiled.diagnostics);
  auto plan = LoadedPlan::fromBytes(std::move(compiled.plan), "compiled plan");
  const double ready = secondsSince(begun);

  const int64_t vocabulary = findVocabulary(plan->plan());
  const MicroBatch batch = randomBatch(request, vocabulary);
  uint64_t arenaBytes = 0;
  for (const plan::Arena *arena : *plan->plan().arenas())
    arenaBytes += arena->bytes();

  const uint64_t before = gpu ? gpu->usedBytes() : 0;
  Filter filter(*device);
  Bench bench(request, plan, filter);
  fillWeights(bench.program());
  LossCell cell(bench.program());
  cell.clear();
  bench.run(batch);
  const double loss = cell.read();
  const double seconds = bench.medianStep(batch);
  const uint64_t used = gpu ? gpu->usedBytes() - before : 0;
  bench.printTable(batch, seconds);
  filter.productsOnly = true;
  const double products = bench.medianStep(batch);
  std::printf(
      "{\"case\": \"%s\", \"type\": \"%s\", \"precision\": \"%s\", \"rows\": %lld, "
      "\"length\": %lld, \"checkpointing\": %s, \"rank\": %lld, "
      "\"tokens_per_second\": %.1f, \"step_ms\": %.3f, \"products_ms\": %.3f, "
      "\"arena_gib\": %.3f, \"device_gib\": %.3f, \"first_loss\": %.5f, "
      "\"compile_s\": %.3f, \"kernels\": %u, \"from_cache\": %u, \"to_ready_s\": "
      "%.3f}\n",
      request.name.c_str(), request.type.c_str(), request.precision.c_str(),
      static_cast<long long>(request.rows), static_cast<long long>(request.length),
      request.checkpointing ? "true" : "false", static_cast<long long>(request.rank),
      request.rows * request.length / seconds, seconds * 1e3, products * 1e3,
      arenaBytes / 1073741824.0, used / 1073741824.0, loss, compiled.seconds,
      compiled.kernels, compiled.kernelsFromCache, ready);
  return 0;
}

} // namespace

int fsdpq::test::measureStep(int argc, char **argv) {
  return measure(parse(argc, argv));
}
