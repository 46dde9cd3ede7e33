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

  const uint32_t load = b.function(
      "load_w",
      body(writingFrom(1, launch(quantize, constant(4), sliceArg(staging),
                                 sliceArg(codes), sliceArg(absmax),
                                 extentArg(ofIndex(0, 7, 1))))),
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
  Body inner =
      body(instruction(std::move(gemm)),
           located("model.mlir:12",
                   on(1, launch(norm, chunk, sliceArg(y), extentArg(chunk),
                                scalarArg(rate), constantArg(0.25)))));
  b.function("micro_step", body(fill(x, 7, ofScalar(tokens, 16)),
                                loop(ofScalar(tokens, 1, 24, 1),
                                     body(loop(constant(2), std::move(inner)))),
                                copy(gradient, bias, constant(16))));

  b.input("ids", x, ofScalar(tokens), "i32");
  b.output("loss", gradient, constant(1));

  const uint32_t layers = b.slice("layers", base, 1280, 256, 0, 256);
  const uint32_t adapters = b.slice("adapters", base, 1024, 256);
  const uint32_t gradients = b.slice("adapters.grad", step, 6144, 256);
  const uint32_t whole = b.slice("layer", step, 6400, 256);
  const uint32_t begin =
      b.function("begin_layers", body(fill(whole, 0, constant(256))));
  const uint32_t store =
      b.function("store_layers",
                 body(reduceScatter(plan::Group::World, plan::CommType::U8,
                                    layers, whole, 256, 1)),
                 3);

  const uint32_t unit = b.unit("layers", 256, layers, {0, 1, 5});
  plan.units[unit]->begin_function = static_cast<int32_t>(begin);
  plan.units[unit]->store_function = static_cast<int32_t>(store);
  const uint32_t trained =
      b.unit("adapters", 256, adapters, {}, static_cast<int32_t>(gradients));

  const uint32_t quantised =
      b.parameter("w", unit, {16, 16}, "!qt.nf4<block = 64>");
  b.component(quantised, "codes", "u8", 0, 128);
  b.component(quantised, "absmax", "f32", 128, 4);
  b.loader(quantised, "model.layers.{layer}.w.weight", 2, load);

  const uint32_t adapter = b.parameter("b", trained, {4});
  b.component(adapter, "data", "f32", 0, 4);
  plan.parameters[adapter]->trainable = true;
  plan.parameters[adapter]->init = plan::Init::KaimingUniform;
  plan.parameters[adapter]->fan_in = 4;

  plan.staging = static_cast<int32_t>(staging);
  return b;
}

PlanBuilder cudaPlan() {
  PlanBuilder b = samplePlan();
  b.plan.target = "sm_90a";
  for (auto &kernel : b.plan.kernels) {
    kernel->form = plan::KernelForm::CudaCubin;
    kernel->launch = std::make_unique<plan::LaunchShapeT>();
    kernel->launch->threads = 128;
    kernel->launch->items_per_block = 1;
  }
  plan::KernelT &norm = *b.plan.kernels[1];
  norm.launch->shared_bytes = 65536;
  norm.launch->items_per_block = 4;
  norm.launch->blocks_per_processor = 2;
  norm.launch->maps.emplace_back(0, 64, 128, 8, 64, 80);
  norm.resources = std::make_unique<plan::KernelResources>(168, 24, 1024);
  return b;
}

} // namespace fsdpq::test
