#include "test/unit/plan/PlanBuilder.h"

namespace fsdpq::test {

PlanBuilder samplePlan() {
  PlanBuilder b;
  auto &plan = b.plan;
  plan.streams = {"compute", "copy"};
  auto model = std::make_unique<plan::KeyValueT>();
  model->key = "model";
  model->value = "sample";
  plan.metadata.push_back(std::move(model));

  const uint32_t tokens = b.scalarI64("tokens", 64);
  const uint32_t rate = b.scalarF64("lr");
  const uint32_t base = b.arena("base", 4096), step = b.arena("step", 8192);

  const uint32_t codes = b.slice("w.codes", base, 0, 128, 0, 128);
  const uint32_t absmax =
      b.slice("w.absmax", base, 512, 16, 0, 0, {0, 64, 256});
  const uint32_t staging = b.slice("staging", step, 0, 1024);
  const uint32_t x = b.slice("x", step, 1024, 1024);              // 64 x 4
  const uint32_t y = b.slice("y", step, 2048, 1024, 1, 1024);     // of 3
  const uint32_t w = b.slice("w", step, 5120, 64, 2, 0, {0, 64}); // 4 x 4
  const uint32_t gradient = b.slice("b.grad", step, 6144, 16);
  const uint32_t bias = b.slice("b", base, 1024, 16);

  const uint32_t quantize = b.kernel("quantize", {1, 2, 3});
  const uint32_t norm = b.kernel("rms_norm", {4, 5});

  b.function(
      "load_w",
      body(launch(quantize, constant(4), sliceArg(staging), sliceArg(codes),
                  sliceArg(absmax), extentArg(ofIndex(0, 7, 1)))),
      3);

  plan::GemmT gemm;
  gemm.m = own(ofScalar(tokens));
  gemm.n = own(constant(4));
  gemm.k = own(constant(4));
  gemm.alpha = 1;
  gemm.trans_b = true;
  gemm.a = x;
  gemm.b = w;
  gemm.c = y;
  gemm.lda = gemm.ldb = gemm.ldc = 4;
  // Chunks of 24 tokens, the last one shorter.
  const plan::Extent chunk(static_cast<int32_t>(tokens), 1, 1, 1, -24, 0, 24);
  Body inner = body(instruction(std::move(gemm)),
                    launch(norm, chunk, sliceArg(y), extentArg(chunk),
                           scalarArg(rate), constantArg(0.25)));
  inner[1]->stream = 1;
  inner[1]->location = "model.mlir:12";
  b.function("micro_step", body(fill(x, 7, ofScalar(tokens, 16)),
                                loop(ofScalar(tokens, 1, 24, 1),
                                     body(loop(constant(2), std::move(inner)))),
                                copy(gradient, bias, constant(16))));

  b.input("ids", x, ofScalar(tokens), "i32");
  b.output("loss", gradient, constant(1));

  auto component = [](const std::string &name, const std::string &dtype,
                      uint32_t slice, uint64_t elements) {
    auto result = std::make_unique<plan::ComponentT>();
    result->name = name;
    result->dtype = dtype;
    result->slice = slice;
    result->elements = elements;
    return result;
  };
  auto quantised = std::make_unique<plan::ParameterT>();
  quantised->name = "w";
  quantised->hf = "model.layers.{layer}.w.weight";
  quantised->layers = {0, 1, 5};
  quantised->shape = {16, 16};
  quantised->scheme = "!qt.nf4<block = 64>";
  quantised->components.push_back(component("codes", "u8", codes, 128));
  quantised->components.push_back(component("absmax", "f32", absmax, 4));
  quantised->load_function = 0;
  quantised->gradient = -1;
  plan.parameters.push_back(std::move(quantised));

  auto adapter = std::make_unique<plan::ParameterT>();
  adapter->name = "b";
  adapter->shape = {4};
  adapter->scheme = "f32";
  adapter->components.push_back(component("data", "f32", bias, 4));
  adapter->trainable = true;
  adapter->init = plan::Init::KaimingUniform;
  adapter->fan_in = 4;
  adapter->load_function = -1;
  adapter->gradient = static_cast<int32_t>(gradient);
  plan.parameters.push_back(std::move(adapter));

  plan.staging = static_cast<int32_t>(staging);
  return b;
}

} // namespace fsdpq::test
