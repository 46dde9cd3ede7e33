#include "test/unit/train/ToyModel.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fsdpq::test {

using rt::DeviceAddress;
using rt::LaunchArg;

namespace {

struct NamedKernel final : rt::LoadedKernel {
  FunctionDevice::Function function;
};

template <typename T> T *at(const LaunchArg &arg) {
  return reinterpret_cast<T *>(arg.address);
}

constexpr int64_t layers = 2;

/// The w of both layers, at the start of each whole unit.
constexpr int64_t unitFloats = toyUnitBytes / 4;

/// args: whole units, their gradients, loss, label_targets, labels, loss_weight
void addLosses(const LaunchArg *args, bool withGradient) {
  const float *w = at<float>(args[0]);
  float *gradient = at<float>(args[1]), *loss = at<float>(args[2]);
  const int32_t *targets = at<int32_t>(args[3]);
  const auto weight = static_cast<float>(args[5].real);
  for (int64_t i = 0; i < args[4].integer; ++i) {
    if (targets[i] < 0)
      continue;
    for (int64_t at = 0; at < layers * unitFloats; at += unitFloats) {
      const float error = w[at] - static_cast<float>(targets[i]);
      *loss += weight * error * error;
      if (withGradient)
        gradient[at] += weight * 2 * error;
    }
  }
}

/// args: gradients of whole units, grad_norm
void measure(const LaunchArg *args) {
  const float *gradient = at<float>(args[0]);
  *at<float>(args[1]) = std::hypot(gradient[0], gradient[unitFloats]);
}

/// args: ranges, their gradients, bytes of both, grad_norm, lr, max_grad_norm
void descend(const LaunchArg *args) {
  float *w = at<float>(args[0]), *gradient = at<float>(args[1]);
  const float norm = *at<float>(args[3]);
  const float factor =
      std::min(1.f, static_cast<float>(args[5].real) / (norm + 1e-6f));
  for (int64_t i = 0; i < args[2].integer / 4; ++i) {
    w[i] -= static_cast<float>(args[4].real) * factor * gradient[i];
    gradient[i] = 0;
  }
}

/// args: ids, last_row, logits
void countUp(const LaunchArg *args) {
  const int32_t id = at<int32_t>(args[0])[*at<int32_t>(args[1])];
  float *logits = at<float>(args[2]);
  std::fill_n(logits, toyVocabulary, -1.f);
  logits[(id + 1) % toyVocabulary] = 1;
}

} // namespace

uint32_t addParameter(PlanBuilder &builder, const std::string &name,
                      const std::string &hf, std::vector<int64_t> shape,
                      uint32_t unit, uint64_t offset) {
  uint64_t elements = 1;
  for (int64_t dimension : shape)
    elements *= static_cast<uint64_t>(dimension);
  const uint32_t number = builder.parameter(name, unit, std::move(shape));
  builder.component(number, "data", "f32", offset, elements);
  builder.plan.parameters[number]->hf = hf;
  builder.plan.parameters[number]->trainable = true;
  return number;
}

PlanBuilder toyModel(FunctionDevice &device, uint32_t ranks, uint32_t shards) {
  device.functions["micro"] = [](const LaunchArg *args) {
    addLosses(args, true);
  };
  device.functions["eval"] = [](const LaunchArg *args) {
    addLosses(args, false);
  };
  device.functions["measure"] = measure;
  device.functions["descend"] = descend;
  device.functions["count_up"] = countUp;

  PlanBuilder b;
  b.mesh(ranks, shards);
  const uint32_t tokens = b.scalarI64("tokens", toyCapacity);
  const uint32_t labels = b.scalarI64("labels", toyCapacity);
  const uint32_t weight = b.scalarF64("loss_weight");
  const uint32_t lr = b.scalarF64("lr");
  const uint32_t maxNorm = b.scalarF64("max_grad_norm");

  // What a rank holds, of both layers.
  constexpr int64_t all = layers * toyUnitBytes;
  const int64_t range = toyUnitBytes / shards;
  const uint32_t held = b.arena("held", 3 * all);
  const uint32_t base = b.slice("base", held, 0, range, 0, range);
  const uint32_t adapters = b.slice("adapters", held, all, range, 0, range);
  const uint32_t gradients =
      b.slice("gradients", held, 2 * all, range, 0, range);
  const uint32_t adaptersInLoop =
      b.slice("adapters in a loop", held, all, range, 1, range);
  const uint32_t gradientsInLoop =
      b.slice("gradients in a loop", held, 2 * all, range, 1, range);
  const uint32_t allAdapters =
      b.slice("all adapters", held, all, layers * range);
  const uint32_t allGradients =
      b.slice("all gradients", held, 2 * all, layers * range);

  // Whole units: one that is being loaded, and both layers of adapters.
  const uint32_t whole = b.arena("whole", toyUnitBytes + 2 * all);
  constexpr int64_t scaleOffset = 508;
  const uint32_t loading = b.slice("loading", whole, 0, toyUnitBytes);
  const uint32_t scalePiece =
      b.slice("a piece of scale", whole, scaleOffset, 4, 0, 4);
  const uint32_t oneW = b.slice("whole adapters of a layer", whole,
                                toyUnitBytes, toyUnitBytes, 1, toyUnitBytes);
  const uint32_t w = b.slice("whole adapters", whole, toyUnitBytes, all);
  const uint32_t oneSum =
      b.slice("whole gradients of a layer", whole, toyUnitBytes + all,
              toyUnitBytes, 1, toyUnitBytes);
  const uint32_t sums =
      b.slice("whole gradients", whole, toyUnitBytes + all, all);

  const uint32_t step = b.arena("step", 16384);
  const uint32_t staging = b.slice("staging", step, 0, 64);
  const uint32_t loss = b.slice("loss", step, 1280, 4);
  const uint32_t norm = b.slice("norm", step, 1536, 4);
  const uint32_t lastRow = b.slice("last_row", step, 1792, 4);
  const uint32_t logits = b.slice("logits", step, 2048, toyVocabulary * 4);
  const uint32_t ids = b.slice("ids", step, 4096, toyCapacity * 4);
  const uint32_t targets = b.slice("targets", step, 8192, toyCapacity * 4);

  const uint32_t begin =
      b.function("begin_base", body(fill(loading, 0, constant(toyUnitBytes))));
  const uint32_t piece =
      b.function("load_scale", body(copy(scalePiece, staging, constant(4))), 2);
  const uint32_t store =
      b.function("store_base",
                 body(reduceScatter(plan::Group::World, plan::CommType::U8,
                                    base, loading, range, shards)),
                 layers);
  for (const char *program : {"micro_step", "eval_step"}) {
    Body steps;
    steps.push_back(
        loop(constant(layers),
             body(allGather(plan::Group::Shard, oneW, adaptersInLoop, range))));
    steps.push_back(fill(sums, 0, constant(all)));
    steps.push_back(launch(b.kernel(program[0] == 'm' ? "micro" : "eval"),
                           constant(1), sliceArg(w), sliceArg(sums),
                           sliceArg(loss), sliceArg(targets),
                           extentArg(ofScalar(labels)), scalarArg(weight)));
    if (program[0] == 'm')
      steps.push_back(
          loop(constant(layers),
               body(reduceScatter(plan::Group::World, plan::CommType::F32,
                                  gradientsInLoop, oneSum, range / 4, shards,
                                  /*accumulate=*/true))));
    b.function(program, std::move(steps));
  }
  b.function(
      "optimizer_step",
      body(loop(constant(layers), body(allGather(plan::Group::Shard, oneSum,
                                                 gradientsInLoop, range))),
           launch(b.kernel("measure"), constant(1), sliceArg(sums),
                  sliceArg(norm)),
           launch(b.kernel("descend"), constant(1), sliceArg(allAdapters),
                  sliceArg(allGradients), extentArg(constant(layers * range)),
                  sliceArg(norm), scalarArg(lr), scalarArg(maxNorm))));
  b.function("logits", body(launch(b.kernel("count_up"), constant(1),
                                   sliceArg(ids), sliceArg(lastRow),
                                   sliceArg(logits))));

  b.input("ids", ids, ofScalar(tokens), "i32");
  b.input("label_targets", targets, ofScalar(labels), "i32");
  b.input("last_row", lastRow, constant(1), "i32");
  b.output("loss", loss, constant(1));
  b.output("grad_norm", norm, constant(1));
  b.output("logits", logits, constant(toyVocabulary));

  const uint32_t baseUnit = b.unit("base", toyUnitBytes, base, {0, 3});
  b.plan.units[baseUnit]->begin_function = static_cast<int32_t>(begin);
  b.plan.units[baseUnit]->store_function = static_cast<int32_t>(store);
  const uint32_t adapterUnit = b.unit("adapters", toyUnitBytes, adapters,
                                      {0, 3}, static_cast<int32_t>(gradients));

  const uint32_t scale = b.parameter("scale", baseUnit, {2});
  b.component(scale, "data", "f32", scaleOffset, 2);
  b.loader(scale, "toy.{layer}.scale", 2, piece);
  b.plan.parameters[scale]->gguf = "blk.{layer}.scale";
  const std::string module = "base_model.model.layers.{layer}.attn.q_proj.";
  addParameter(b, "q.lora_A", module + "lora_A.weight", {1, 1}, adapterUnit, 0);
  plan::ParameterT &second =
      *b.plan
           .parameters[addParameter(b, "q.lora_B", module + "lora_B.weight",
                                    {2, 1}, adapterUnit, toyUnitBytes / 2 - 4)];
  second.init = plan::Init::KaimingUniform;
  second.fan_in = 4;
  b.plan.staging = static_cast<int32_t>(staging);
  return b;
}

std::vector<rt::Row> rowsOf(const std::vector<std::vector<int32_t>> &targets) {
  std::vector<rt::Row> rows;
  for (const std::vector<int32_t> &learnt : targets) {
    rt::Row row{{1}, {rt::kIgnoredLabel}};
    row.ids.insert(row.ids.end(), learnt.begin(), learnt.end());
    row.labels.insert(row.labels.end(), learnt.begin(), learnt.end());
    rows.push_back(row);
  }
  return rows;
}

rt::TrainerOptions inOrder(int64_t accumulation) {
  rt::TrainerOptions options;
  options.batches.accumulation = accumulation;
  options.batches.shuffle = false;
  options.lr = 0.125;
  return options;
}

DeviceAddress FunctionDevice::allocate(uint64_t bytes, std::string_view) {
  return reinterpret_cast<DeviceAddress>(new uint8_t[bytes]());
}
void FunctionDevice::free(DeviceAddress address, uint64_t) {
  delete[] reinterpret_cast<uint8_t *>(address);
}
void FunctionDevice::upload(DeviceAddress to, const void *from,
                            uint64_t bytes) {
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
}
void FunctionDevice::download(void *to, DeviceAddress from, uint64_t bytes) {
  std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
}

std::unique_ptr<rt::LoadedKernel>
FunctionDevice::loadKernel(const rt::KernelImage &image) {
  auto kernel = std::make_unique<NamedKernel>();
  kernel->function = functions.at(std::string(image.name));
  return kernel;
}
void FunctionDevice::launch(const rt::LoadedKernel &kernel,
                            const LaunchArg *args, uint32_t, int64_t,
                            uint16_t) {
  static_cast<const NamedKernel &>(kernel).function(args);
}

void FunctionDevice::copy(DeviceAddress to, DeviceAddress from, int64_t bytes,
                          uint16_t) {
  std::memcpy(reinterpret_cast<void *>(to),
              reinterpret_cast<const void *>(from),
              static_cast<size_t>(bytes));
}
void FunctionDevice::fill(DeviceAddress to, uint8_t value, int64_t bytes,
                          uint16_t) {
  std::memset(reinterpret_cast<void *>(to), value,
              static_cast<size_t>(bytes));
}

} // namespace fsdpq::test
