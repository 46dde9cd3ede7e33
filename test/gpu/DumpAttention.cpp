//===- DumpAttention.cpp - Writes the attention texts for a checker -------===//
//
//   fsdpq_gpu attention FOLDER [ARCHITECTURE]
//
// Writes NAME.cu (the CUDA text) and NAME.json (what it computes, how it is
// started) into FOLDER for forward, grad_q, grad_kv and delta of a list of
// shapes, of every family of texts that the architecture (sm_90a) has.
// attention_check.py runs them.
//
//===----------------------------------------------------------------------===//

#include "test/gpu/Gpu.h"

#include "compiler/Target/Cuda/Skeletons/Attention.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace fsdpq::cuda;

namespace {

struct Shape {
  int64_t heads, kvHeads, headDim;
  int64_t window = 0;
};

const std::vector<Shape> wgmmaShapes = {
    {32, 32, 128}, {32, 8, 128}, {8, 1, 128}, {1, 1, 128}, {6, 3, 128},
    {32, 32, 64},  {32, 8, 64},  {8, 1, 64},  {1, 1, 64}};
const std::vector<Shape> mmaShapes = {
    {32, 32, 128}, {32, 8, 128}, {8, 1, 128}, {32, 8, 128, 1000},
    {1, 1, 64},    {9, 3, 64},   {4, 2, 32},  {4, 4, 80},
    {4, 1, 96},    {2, 1, 40},   {4, 2, 256}, {4, 2, 64, 100}};

bool failed = false;

void write(const std::filesystem::path &path, const std::string &contents) {
  std::ofstream file(path, std::ios::binary);
  file << contents;
  file.close();
  if (!file) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    failed = true;
  }
}

std::string json(const AttentionParams &params,
                 const Architecture &architecture, const char *family,
                 const char *kind, const KernelText &kernel) {
  auto number = [](double value) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.17g", value);
    return std::string(buffer);
  };
  std::string maps;
  for (const TensorMap &map : kernel.launch.maps)
    maps += std::string(maps.empty() ? "" : ", ") +
            "{\"argument\": " + std::to_string(map.argument) +
            ", \"boxColumns\": " + std::to_string(map.boxColumns) +
            ", \"boxRows\": " + std::to_string(map.boxRows) +
            ", \"begin\": " + std::to_string(map.begin) +
            ", \"columns\": " + std::to_string(map.columns) +
            ", \"pitch\": " + std::to_string(map.pitch) + "}";
  return "{\"family\": \"" + std::string(family) + "\", \"kind\": \"" + kind +
         "\", \"symbol\": \"" + kernel.symbol + "\", \"architecture\": \"" +
         architecture.name +
         "\",\n \"heads\": " + std::to_string(params.heads) +
         ", \"kvHeads\": " + std::to_string(params.kvHeads) +
         ", \"headDim\": " + std::to_string(params.headDim) +
         ", \"window\": " + std::to_string(params.window) +
         ", \"scale\": " + number(params.scale) +
         ", \"packed\": " + (params.packed ? "true" : "false") +
         ",\n \"launch\": {\"threads\": " +
         std::to_string(kernel.launch.threads) +
         ", \"sharedBytes\": " + std::to_string(kernel.launch.sharedBytes) +
         ", \"itemsPerBlock\": " + std::to_string(kernel.launch.itemsPerBlock) +
         ", \"blocksPerProcessor\": " +
         std::to_string(kernel.launch.blocksPerProcessor) + ", \"maps\": [" +
         maps + "]}}\n";
}

void dump(const std::filesystem::path &folder, const AttentionParams &params,
          const Architecture &architecture, const char *family,
          const char *kind, const KernelText &kernel) {
  std::string name =
      std::string(family) + "-" + std::to_string(params.heads) + "-" +
      std::to_string(params.kvHeads) + "-" + std::to_string(params.headDim) +
      (params.window ? "-w" + std::to_string(params.window) : "") +
      (params.packed ? "-packed-" : "-apart-") + kind;
  write(folder / (name + ".cu"), kernel.text);
  write(folder / (name + ".json"),
        json(params, architecture, family, kind, kernel));
}

} // namespace

int fsdpq::test::dumpAttention(int argc, char **argv) {
  std::optional<Architecture> architecture =
      Architecture::parse(argc > 1 ? argv[1] : "sm_90a");
  if (argc < 1 || argc > 2 || !architecture) {
    std::fprintf(stderr, "usage: fsdpq_gpu attention FOLDER [ARCHITECTURE]\n");
    return 2;
  }
  std::filesystem::path folder = argv[0];
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  auto paramsOf = [](const Shape &shape, bool packed) {
    return AttentionParams{shape.heads,
                           shape.kvHeads,
                           shape.headDim,
                           shape.window,
                           1 / std::sqrt(static_cast<double>(shape.headDim)),
                           packed};
  };
  for (bool packed : {true, false}) {
    for (const Shape &shape : wgmmaShapes) {
      AttentionParams params = paramsOf(shape, packed);
      if (!hasWgmmaAttention(params, *architecture))
        continue;
      dump(folder, params, *architecture, "wgmma", "forward",
           emitWgmmaAttention(params));
      dump(folder, params, *architecture, "wgmma", "grad_q",
           emitWgmmaAttentionGradQ(params));
      dump(folder, params, *architecture, "wgmma", "grad_kv",
           emitWgmmaAttentionGradKV(params));
      dump(folder, params, *architecture, "wgmma", "delta",
           emitAttentionDelta(params));
    }
    for (const Shape &shape : mmaShapes) {
      AttentionParams params = paramsOf(shape, packed);
      if (!hasMmaAttention(params, *architecture))
        continue;
      dump(folder, params, *architecture, "mma", "forward",
           emitMmaAttention(params, *architecture));
      dump(folder, params, *architecture, "mma", "grad_q",
           emitMmaAttentionGradQ(params, *architecture));
      dump(folder, params, *architecture, "mma", "grad_kv",
           emitMmaAttentionGradKV(params, *architecture));
      dump(folder, params, *architecture, "mma", "delta",
           emitAttentionDelta(params));
    }
  }
  return failed;
}
