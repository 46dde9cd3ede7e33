#include "test/unit/plan/PlanBuilder.h"

namespace fsdpq::test {

PlanBuilder shardedPlan() {
  using plan::CommType;
  using plan::Group;
  PlanBuilder b;
  auto &plan = b.plan;
  b.mesh(4, 2);
  const uint16_t gather = b.stream("gather"), reduce = b.stream("reduce");
  const uint32_t started = b.event(), gathered = b.event(), free = b.event(),
                 summed = b.event(), reduced = b.event();
  const uint32_t rate = b.scalarF64("lr");

  const uint32_t base = b.arena("base", 2048),
                 adapters = b.arena("adapters", 256),
                 gradients = b.arena("gradients", 256),
                 step = b.arena("step", 8192);
  auto content = std::make_unique<plan::ContentT>();
  content->name = "gathered layers";
  content->bytes = 2048;
  plan.arenas[step]->contents.push_back(std::move(content));

  // The ranges of this rank.
  const uint32_t layerRange = b.slice("layers", base, 0, 512, 0, 512);
  const uint32_t adapterRange = b.slice("adapters", adapters, 0, 256);
  const uint32_t gradient = b.slice("adapters.grad", gradients, 0, 256);
  const uint32_t layers = b.unit("layers", 1024, layerRange, {0, 1, 2, 3});
  const uint32_t trained =
      b.unit("adapters", 512, adapterRange, {}, static_cast<int32_t>(gradient));

  // What the gathers read and write, and the layers read.
  const uint32_t firstRange = b.unitSlice("first", layers, {0}, base, 0, 512);
  const uint32_t nextRange =
      b.unitSlice("next", layers, {1, 2, 3}, base, 512, 512, 1, 512);
  const uint32_t firstSlot =
      b.unitSlice("first.slot", layers, {0}, step, 0, 1024);
  const uint32_t nextSlot = b.unitSlice("next.slot", layers, {1, 2, 3}, step, 0,
                                        1024, 1, 0, {1024, 0, 1024});
  const uint32_t codes = b.unitSlice("w.codes", layers, {0, 1, 2}, step, 0, 256,
                                     1, 0, {0, 1024, 0});
  const uint32_t lastCodes =
      b.unitSlice("last.codes", layers, {3}, step, 1024, 256);
  const uint32_t trainedRange =
      b.unitSlice("trained", trained, {0}, adapters, 0, 256);
  const uint32_t trainedWhole =
      b.unitSlice("trained.whole", trained, {0}, step, 2048, 512);
  const uint32_t x = b.slice("x", step, 2560, 1024);
  const uint32_t sums = b.slice("sums", step, 3584, 512);
  const uint32_t norm = b.slice("norm", step, 4096, 8);

  const uint32_t layer = b.kernel("layer"), backward = b.kernel("backward"),
                 square = b.kernel("square"), adamw = b.kernel("adamw");

  b.function(
      "micro_step",
      body(record(started), on(gather, wait(started)),
           on(gather, allGather(Group::Shard, trainedWhole, trainedRange, 256)),
           located("layer 0", on(gather, allGather(Group::Shard, firstSlot,
                                                   firstRange, 512))),
           on(gather, record(gathered)),
           loop(constant(3),
                body(wait(gathered), record(free), on(gather, wait(free)),
                     located("layer i + 1",
                             on(gather, allGather(Group::Shard, nextSlot,
                                                  nextRange, 512))),
                     on(gather, record(gathered)),
                     located("layer i",
                             writingFrom(2, launch(layer, constant(4),
                                                   sliceArg(codes),
                                                   sliceArg(trainedWhole),
                                                   sliceArg(x)))))),
           wait(gathered),
           writingFrom(2, launch(layer, constant(4), sliceArg(lastCodes),
                                 sliceArg(trainedWhole), sliceArg(x))),
           writingFrom(2, launch(backward, constant(4), sliceArg(x),
                                 sliceArg(trainedWhole), sliceArg(sums))),
           record(summed), on(reduce, wait(summed)),
           on(reduce, reduceScatter(Group::Shard, CommType::F32, gradient, sums,
                                    64, 2, /*accumulate=*/true)),
           on(reduce, record(reduced)), wait(reduced)));
  b.function("optimizer_step",
             body(allReduce(Group::Replica, CommType::F32, gradient, 64),
                  writingFrom(1, launch(square, constant(1), sliceArg(gradient),
                                        sliceArg(norm))),
                  allReduce(Group::World, CommType::F64, norm, 1),
                  writingFrom(2, launch(adamw, constant(1), sliceArg(gradient),
                                        sliceArg(norm), sliceArg(adapterRange),
                                        scalarArg(rate)))));

  // w: 512 values of 4 bits in blocks of 64; their 8 scales of 8 bits each.
  const uint32_t staging = b.slice("staging", step, 4352, 1024);
  const uint32_t whole = b.slice("layer", step, 5376, 1024);
  const uint32_t newCodes = b.slice("new.codes", step, 5376, 128, 0, 128);
  const uint32_t newScales = b.slice("new.absmax_u8", step, 5632, 4, 0, 4);
  const uint32_t newOffset = b.slice("new.offset", step, 5888, 4);
  const uint32_t absmax = b.slice("absmax", step, 6400, 32);
  const uint32_t ownAbsmax = b.slice("own.absmax", step, 6400, 16, 0, 16);
  const uint32_t mean = b.slice("mean", step, 6432, 4);
  const uint32_t quantize = b.kernel("quantize"), average = b.kernel("average"),
                 scales = b.kernel("scales");
  const uint32_t begin =
      b.function("begin_layers", body(fill(whole, 0, constant(1024)),
                                      fill(absmax, 0, constant(32))));
  const uint32_t load = b.function(
      "load_w",
      body(writingFrom(1, launch(quantize, constant(4), sliceArg(staging),
                                 sliceArg(newCodes), sliceArg(ownAbsmax)))),
      2);
  const uint32_t meanOf = b.function(
      "mean_w", body(allReduce(Group::World, CommType::F32, absmax, 8),
                     writingFrom(1, launch(average, constant(1),
                                           sliceArg(absmax), sliceArg(mean)))));
  const uint32_t scalesOf = b.function(
      "scales_w",
      body(writingFrom(2, launch(scales, constant(1), sliceArg(ownAbsmax),
                                 sliceArg(mean), sliceArg(newScales)))),
      2);
  const uint32_t offsetOf =
      b.function("offset_w", body(copy(newOffset, mean, constant(4))));
  const uint32_t store =
      b.function("store_layers",
                 body(reduceScatter(Group::World, CommType::U8, layerRange,
                                    whole, 512, 2)),
                 4);
  plan.units[layers]->begin_function = static_cast<int32_t>(begin);
  plan.units[layers]->store_function = static_cast<int32_t>(store);
  plan.staging = static_cast<int32_t>(staging);

  const uint32_t w = b.parameter("w", layers, {16, 32}, "!qt.nf4<block = 64>");
  b.component(w, "codes", "u8", 0, 256);
  b.component(w, "absmax_u8", "u8", 256, 8);
  b.component(w, "offset", "f32", 512, 1);
  plan::LoaderT &loader = b.loader(w, "model.layers.{layer}.w.weight", 2, load);
  loader.mean_function = static_cast<int32_t>(meanOf);
  loader.scales_function = static_cast<int32_t>(scalesOf);
  loader.offset_function = static_cast<int32_t>(offsetOf);

  const uint32_t a = b.parameter("a", trained, {8, 8});
  b.component(a, "data", "f32", 0, 64);
  plan.parameters[a]->trainable = true;
  const uint32_t c = b.parameter("c", trained, {32});
  b.component(c, "data", "f32", 256, 32);
  plan.parameters[c]->trainable = true;
  return b;
}

} // namespace fsdpq::test
