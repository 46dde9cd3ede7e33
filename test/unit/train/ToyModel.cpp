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

/// args: w, gradient, loss, label_targets, labels, loss_weight
void addLosses(const LaunchArg *args, bool withGradient) {
  const float *w = at<float>(args[0]);
  float *gradient = at<float>(args[1]), *loss = at<float>(args[2]);
  const int32_t *targets = at<int32_t>(args[3]);
  const auto weight = static_cast<float>(args[5].real);
  for (int64_t i = 0; i < args[4].integer; ++i) {
    if (targets[i] < 0)
      continue;
    for (int64_t layer = 0; layer < layers; ++layer) {
      const float error = w[layer] - static_cast<float>(targets[i]);
      *loss += weight * error * error;
      if (withGradient)
        gradient[layer] += weight * 2 * error;
    }
  }
}

/// args: w, gradient, grad_norm, lr, max_grad_norm
void descend(const LaunchArg *args) {
  float *w = at<float>(args[0]), *gradient = at<float>(args[1]);
  const float norm = std::hypot(gradient[0], gradient[1]);
  *at<float>(args[2]) = norm;
  const float factor = std::min(
      1.f, static_cast<float>(args[4].real) / (norm + 1e-6f));
  for (int64_t layer = 0; layer < layers; ++layer) {
    w[layer] -= static_cast<float>(args[3].real) * factor * gradient[layer];
    gradient[layer] = 0;
  }
}

/// args: ids, last_row, logits
void countUp(const LaunchArg *args) {
  const int32_t id = at<int32_t>(args[0])[*at<int32_t>(args[1])];
  float *logits = at<float>(args[2]);
  std::fill_n(logits, toyVocabulary, -1.f);
  logits[(id + 1) % toyVocabulary] = 1;
}

std::unique_ptr<plan::ComponentT> dataComponent(uint32_t slice,
                                                uint64_t elements) {
  auto component = std::make_unique<plan::ComponentT>();
  component->name = "data";
  component->dtype = "f32";
  component->slice = slice;
  component->elements = elements;
  return component;
}

std::unique_ptr<plan::ParameterT>
parameter(const std::string &name, const std::string &hf,
          std::vector<int64_t> shape, uint32_t slice, plan::Init init) {
  auto result = std::make_unique<plan::ParameterT>();
  result->name = name;
  result->hf = hf;
  result->layers = {0, 3};
  uint64_t elements = 1;
  for (int64_t dimension : shape)
    elements *= static_cast<uint64_t>(dimension);
  result->shape = std::move(shape);
  result->scheme = "f32";
  result->components.push_back(dataComponent(slice, elements));
  result->init = init;
  result->load_function = -1;
  result->gradient = -1;
  result->trainable = init != plan::Init::Checkpoint;
  return result;
}

} // namespace

PlanBuilder toyModel(FunctionDevice &device) {
  device.functions["micro"] = [](const LaunchArg *args) {
    addLosses(args, true);
  };
  device.functions["eval"] = [](const LaunchArg *args) {
    addLosses(args, false);
  };
  device.functions["descend"] = descend;
  device.functions["count_up"] = countUp;

  PlanBuilder b;
  const uint32_t tokens = b.scalarI64("tokens", toyCapacity);
  const uint32_t labels = b.scalarI64("labels", toyCapacity);
  const uint32_t weight = b.scalarF64("loss_weight");
  const uint32_t lr = b.scalarF64("lr");
  const uint32_t maxNorm = b.scalarF64("max_grad_norm");

  const uint32_t arena = b.arena("all", 16384);
  const uint32_t staging = b.slice("staging", arena, 0, 64);
  const uint32_t scale = b.slice("scale", arena, 256, 8, 0, 8);
  const uint32_t w = b.slice("w", arena, 512, 8);
  const uint32_t wOfLayer = b.slice("w of layer", arena, 512, 4, 0, 4);
  const uint32_t second = b.slice("lora_B", arena, 768, 8, 0, 8);
  const uint32_t gradient = b.slice("gradient", arena, 1024, 8);
  const uint32_t loss = b.slice("loss", arena, 1280, 4);
  const uint32_t norm = b.slice("norm", arena, 1536, 4);
  const uint32_t lastRow = b.slice("last_row", arena, 1792, 4);
  const uint32_t logits = b.slice("logits", arena, 2048, toyVocabulary * 4);
  const uint32_t ids = b.slice("ids", arena, 4096, toyCapacity * 4);
  const uint32_t targets = b.slice("targets", arena, 8192, toyCapacity * 4);

  b.function("load_scale", body(copy(scale, staging, constant(8))), layers);
  for (const char *program : {"micro_step", "eval_step"})
    b.function(program,
               body(launch(b.kernel(program[0] == 'm' ? "micro" : "eval"),
                           constant(1), sliceArg(w), sliceArg(gradient),
                           sliceArg(loss), sliceArg(targets),
                           extentArg(ofScalar(labels)), scalarArg(weight))));
  b.function("optimizer_step",
             body(launch(b.kernel("descend"), constant(1), sliceArg(w),
                         sliceArg(gradient), sliceArg(norm), scalarArg(lr),
                         scalarArg(maxNorm))));
  b.function("logits", body(launch(b.kernel("count_up"), constant(1),
                                   sliceArg(ids), sliceArg(lastRow),
                                   sliceArg(logits))));

  b.input("ids", ids, ofScalar(tokens), "i32");
  b.input("label_targets", targets, ofScalar(labels), "i32");
  b.input("last_row", lastRow, constant(1), "i32");
  b.output("loss", loss, constant(1));
  b.output("grad_norm", norm, constant(1));
  b.output("logits", logits, constant(toyVocabulary));

  auto base = parameter("scale", "toy.{layer}.scale", {2}, scale,
                        plan::Init::Checkpoint);
  base->gguf = "blk.{layer}.scale";
  base->load_function = 0;
  b.plan.parameters.push_back(std::move(base));
  const std::string module = "base_model.model.layers.{layer}.attn.q_proj.";
  b.plan.parameters.push_back(parameter("q.lora_A", module + "lora_A.weight",
                                        {1, 1}, wOfLayer, plan::Init::Zeros));
  auto kaiming = parameter("q.lora_B", module + "lora_B.weight", {2, 1},
                           second, plan::Init::KaimingUniform);
  kaiming->fan_in = 4;
  b.plan.parameters.push_back(std::move(kaiming));
  b.plan.staging = static_cast<int32_t>(staging);
  return b;
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
