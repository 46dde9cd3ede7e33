#include "runtime/train/ModelLoader.h"
#include "runtime/comm/Solo.h"
#include "runtime/io/TensorSource.h"
#include "runtime/train/Parameters.h"
#include "test/unit/io/TestFiles.h"
#include "test/unit/train/ToyRanks.h"

#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using namespace fsdpq::test;
using testing::ElementsAre;

namespace {

/// Tensors in memory, of which `released` were given back.
class MemorySource final : public TensorSource {
public:
  void add(const std::string &name, std::vector<int64_t> shape,
           std::vector<float> values) {
    TensorInfo info;
    info.name = name;
    info.shape = std::move(shape);
    tensors.push_back({std::move(info), std::move(values)});
  }
  mutable std::vector<std::string> released;
  /// How often each element was read, over all tensors in order.
  mutable std::map<std::string, std::vector<int>> reads;
  std::string broken; ///< reading the tensor of this name fails

  const TensorInfo *find(std::string_view name) const override {
    for (const auto &[info, values] : tensors)
      if (info.name == name)
        return &info;
    return nullptr;
  }
  std::vector<std::string> names() const override { return {}; }
  void readF32(const TensorInfo &tensor, int64_t begin, int64_t end,
               float *out) const override {
    if (tensor.name == broken)
      throw Error(1006, ExitCode::BadInput, "a broken tensor");
    for (const auto &[info, values] : tensors)
      if (&info == &tensor) {
        std::copy(values.begin() + begin, values.begin() + end, out);
        std::vector<int> &counts = reads[info.name];
        counts.resize(values.size());
        for (int64_t i = begin; i < end; ++i)
          ++counts[static_cast<size_t>(i)];
      }
  }
  void readI64(const TensorInfo &, int64_t, int64_t, int64_t *) const override {}
  void release(const TensorInfo &tensor) const override {
    released.push_back(tensor.name);
  }
  std::string location() const override { return "memory"; }

private:
  // Addresses stay while it grows.
  std::deque<std::pair<TensorInfo, std::vector<float>>> tensors;
};

MemorySource toySource() {
  MemorySource source;
  source.add("toy.0.scale", {2}, {1, 2});
  source.add("toy.3.scale", {2}, {3, 4});
  return source;
}

/// Makes scale [8, 2], in four pieces, which cut each of its two heads.
void widenScale(PlanBuilder &b) {
  plan::ParameterT &scale = *b.plan.parameters[0];
  scale.shape = {8, 2};
  scale.gguf_rope_heads = 2;
  scale.components[0]->offset = 480;
  scale.components[0]->elements = 16;
  const uint32_t piece = b.slice("a wide piece", toyWholeArena, 480, 16, 0, 16);
  scale.loader->pieces = 4;
  scale.loader->piece_function = b.function(
      "load_wide",
      body(copy(piece, static_cast<uint32_t>(b.plan.staging), constant(16))),
      4);
}

} // namespace

TEST(ModelLoader, EveryInstanceGetsItsTensor) {
  FunctionDevice device;
  const auto solo = makeSolo();
  Executor executor(toyModel(device).load(), device, *solo);
  const MemorySource source = toySource();
  std::vector<int64_t> seen;
  const LoadReport report = loadModel(
      executor, source, /*isGguf=*/false,
      [&](int64_t done, int64_t total) { seen.push_back(done * 10 + total); });
  EXPECT_EQ(report.tensors, 2);
  EXPECT_EQ(report.elementsRead, 4);
  const auto &scale = parameterOf(executor, 0);
  EXPECT_THAT(readParameter(executor, scale, 0), ElementsAre(1, 2));
  EXPECT_THAT(readParameter(executor, scale, 1), ElementsAre(3, 4));
  EXPECT_THAT(source.released, ElementsAre("toy.0.scale", "toy.3.scale"));
  EXPECT_THAT(seen, ElementsAre(12, 22));
}

TEST(ModelLoader, WrongTensorsAreNamedBeforeAnythingIsLoaded) {
  FunctionDevice device;
  const auto solo = makeSolo();
  Executor executor(toyModel(device).load(), device, *solo);
  MemorySource source;
  source.add("toy.0.scale", {2}, {1, 2});
  EXPECT_EQ(errorId([&] { loadModel(executor, source, false); },
                    "no tensor 'toy.3.scale' [2]"),
            5001);
  source.add("toy.3.scale", {1, 2}, {3, 4});
  EXPECT_EQ(errorId([&] { loadModel(executor, source, false); },
                    "'toy.3.scale' has the shape [1, 2]; the model needs [2]"),
            5002);
  EXPECT_EQ(errorId([&] { loadModel(executor, source, true); },
                    "'blk.0.scale'"),
            5001);
  EXPECT_TRUE(source.released.empty());
}

// Two heads of four rows: llama.cpp stores rows 0, 2, 1, 3 of each head.
TEST(ModelLoader, GgufRowsGetHuggingFacesOrder) {
  for (const ToyMesh &mesh : toyMeshes)
    expectSuccess(onToyRanks(
        mesh,
        [&](Executor &executor) {
          MemorySource source;
          const std::vector<float> stored = {0, 1, 4,  5,  2,  3,  6,  7,
                                             8, 9, 12, 13, 10, 11, 14, 15};
          for (const char *name :
               {"toy.0.scale", "toy.3.scale", "blk.0.scale", "blk.3.scale"})
            source.add(name, {8, 2}, stored);
          const auto &loaded = parameterOf(executor, 0);
          loadModel(executor, source, /*isGguf=*/true);
          EXPECT_THAT(
              readParameter(executor, loaded, 1),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
              << mesh;
          loadModel(executor, source, /*isGguf=*/false);
          EXPECT_EQ(readParameter(executor, loaded, 1), stored) << mesh;
        },
        [](PlanBuilder &b, FunctionDevice &, int64_t) { widenScale(b); }));
}

TEST(ModelLoader, EachElementIsReadByOneRank) {
  for (const ToyMesh &mesh : toyMeshes) {
    std::vector<MemorySource> sources(mesh.ranks);
    std::vector<LoadReport> reports(mesh.ranks);
    expectSuccess(onToyRanks(mesh, [&](Executor &executor) {
      const auto rank = static_cast<size_t>(executor.communicator().rank());
      sources[rank].add("toy.0.scale", {2}, {1, 2});
      sources[rank].add("toy.3.scale", {2}, {3, 4});
      reports[rank] = loadModel(executor, sources[rank], false);
      EXPECT_THAT(readParameter(executor, parameterOf(executor, 0), 0),
                  ElementsAre(1, 2));
      EXPECT_THAT(readParameter(executor, parameterOf(executor, 0), 1),
                  ElementsAre(3, 4));
    }));
    for (const std::string name : {"toy.0.scale", "toy.3.scale"}) {
      std::vector<int> total(2);
      for (const MemorySource &source : sources)
        if (source.reads.contains(name))
          for (size_t i = 0; i < total.size(); ++i)
            total[i] += source.reads[name][i];
      EXPECT_THAT(total, ElementsAre(1, 1)) << name << " on " << mesh;
    }
    // Two pieces, the first of which is rank 0's.
    for (size_t rank = 0; rank < reports.size(); ++rank) {
      EXPECT_EQ(reports[rank].tensors, 2);
      EXPECT_EQ(reports[rank].elementsRead, mesh.ranks == 1 ? 4
                                            : rank < 2      ? 2
                                                            : 0);
      EXPECT_EQ(sources[rank].released.size(), 2u);
    }
  }
}

// Pieces are dealt from the rank on that the parameter's number says.
TEST(ModelLoader, OrderWithQuantisedScales) {
  std::vector<std::vector<std::string>> calls(2);
  expectSuccess(onToyRanks(
      {2, 2},
      [&](Executor &executor) {
        MemorySource source;
        for (const char *name :
             {"toy.0.scale", "toy.0.second", "toy.3.scale", "toy.3.second"})
          source.add(name, {2}, {1, 2});
        loadModel(executor, source, false);
      },
      [&](PlanBuilder &b, FunctionDevice &device, int64_t rank) {
        std::vector<std::string> &mine = calls[static_cast<size_t>(rank)];
        const auto noting = [&](const std::string &name, int64_t pieces) {
          device.functions[name] = [&mine, name](const LaunchArg *args) {
            mine.push_back(name + std::to_string(args[0].integer));
          };
          return static_cast<int32_t>(b.function(
              name,
              body(launch(b.kernel(name), constant(1),
                          extentArg(pieces > 0 ? ofIndex(0) : constant(0)))),
              pieces));
        };
        b.plan.parameters.resize(1); // no adapters
        const uint32_t second = b.parameter("second", 0, {2});
        b.component(second, "data", "f32", 600, 2);
        for (const uint32_t number : {0u, second}) {
          const std::string name = number == 0 ? "a" : "b";
          plan::LoaderT &loader = b.loader(
              number, number == 0 ? "toy.{layer}.scale" : "toy.{layer}.second",
              2, static_cast<uint32_t>(noting(name + " piece ", 2)));
          loader.mean_function = noting(name + " mean ", 0);
          loader.scales_function = noting(name + " scales ", 2);
          loader.offset_function = noting(name + " offset ", 0);
        }
      }));
  const std::vector<std::string> wanted[] = {
      {"a piece 0", "a mean 0", "a scales 0", "a offset 0", "b piece 1",
       "b mean 0", "b scales 1"},
      {"a piece 1", "a mean 0", "a scales 1", "b piece 0", "b mean 0",
       "b scales 0", "b offset 0"}};
  for (const size_t rank : {0, 1}) {
    std::vector<std::string> twice = wanted[rank]; // for each layer
    twice.insert(twice.end(), wanted[rank].begin(), wanted[rank].end());
    EXPECT_EQ(calls[rank], twice) << "rank " << rank;
  }
}

TEST(ModelLoader, ARankThatFailsStopsTheOthers) {
  const auto ends = onToyRanks({3, 3}, [](Executor &executor) {
    MemorySource source = toySource();
    if (executor.communicator().rank() == 1)
      source.broken = "toy.3.scale";
    loadModel(executor, source, false);
  });
  EXPECT_EQ(ends[1].id, 1006);
  for (const size_t rank : {0, 2}) {
    EXPECT_EQ(ends[rank].id, 7003);
    EXPECT_THAT(ends[rank].message, testing::HasSubstr("a broken tensor"));
  }
}
