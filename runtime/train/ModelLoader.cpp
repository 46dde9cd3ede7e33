#include "runtime/train/ModelLoader.h"

#include "runtime/io/RopeRows.h"
#include "runtime/support/Error.h"
#include "runtime/train/Parameters.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

namespace fsdpq::rt {
namespace {

/// One tensor on its way into the plan.
struct Transfer {
  const plan::Parameter *parameter;
  int64_t ordinal;
  const TensorInfo *tensor;
  /// Heads whose rows llama.cpp interleaved; 0: none.
  int64_t ropeHeads;
};

const TensorInfo &findTensor(const TensorSource &source,
                             const plan::Parameter &parameter, int64_t ordinal,
                             bool isGguf) {
  const flatbuffers::String *pattern =
      isGguf ? parameter.gguf() : parameter.hf();
  if (!pattern || pattern->size() == 0)
    throw Error(5003, ExitCode::BadInput,
                "the model's description gives parameter '" +
                    parameter.name()->str() + "' no " +
                    (isGguf ? "GGUF" : "Hugging Face") + " name",
                source.location(), "add it to the architecture's .mlir file");
  const std::string name = instanceName(*pattern, parameter, ordinal);
  const std::vector<int64_t> expected = shapeOf(parameter);
  const TensorInfo *tensor = source.find(name);
  if (!tensor)
    throw Error(5001, ExitCode::BadInput,
                "the checkpoint has no tensor '" + name + "' " +
                    shapeText(expected),
                source.location(),
                "check that the weights belong to the configuration");
  if (tensor->shape != expected)
    throw Error(5002, ExitCode::BadInput,
                "tensor '" + name + "' has the shape " +
                    shapeText(tensor->shape) + "; the model needs " +
                    shapeText(expected),
                source.location(),
                "check that the weights belong to the configuration");
  return *tensor;
}

/// A bias that the model's description has no place for would be left out of
/// every result.
void refuseUnusedBiases(const TensorSource &source,
                        const std::vector<Transfer> &transfers) {
  std::set<std::string_view> used;
  for (const Transfer &transfer : transfers)
    used.insert(transfer.tensor->name);
  for (const std::string &name : source.names())
    if (name.ends_with(".bias") && !used.contains(name))
      throw Error(5004, ExitCode::BadInput,
                  "the checkpoint has the tensor '" + name +
                      "', for which the model's description has no place",
                  source.location(),
                  "describe the bias in the architecture's .mlir file");
}

std::vector<Transfer> planTransfers(const plan::Plan &plan,
                                    const TensorSource &source, bool isGguf) {
  std::vector<Transfer> transfers;
  for (const plan::Parameter *parameter : *plan.parameters()) {
    if (parameter->init() != plan::Init::Checkpoint)
      continue;
    const int64_t heads = isGguf ? parameter->gguf_rope_heads() : 0;
    for (int64_t i = 0; i < instanceCount(*parameter); ++i)
      transfers.push_back(
          {parameter, i, &findTensor(source, *parameter, i, isGguf), heads});
  }
  refuseUnusedBiases(source, transfers);
  return transfers;
}

/// Converts the tensor into the staging slice, some rows at a time: a whole
/// head where rows must be put in order.
void stage(Executor &executor, const TensorSource &source,
           const Transfer &transfer, std::vector<float> &buffer) {
  constexpr int64_t chunkElements = int64_t(4) << 20;
  const auto staging =
      static_cast<uint32_t>(executor.plan().plan().staging());
  const int64_t elements = elementCount(*transfer.parameter);
  const int64_t perHead =
      transfer.ropeHeads > 0 ? elements / transfer.ropeHeads : 0;
  const int64_t step = perHead > 0 ? perHead : chunkElements;
  for (int64_t begin = 0; begin < elements; begin += step) {
    const int64_t count = std::min(step, elements - begin);
    buffer.resize(static_cast<size_t>(count));
    source.readF32(*transfer.tensor, begin, begin + count, buffer.data());
    if (perHead > 0) {
      const int64_t rows =
          transfer.parameter->shape()->Get(0) / transfer.ropeHeads;
      unpermuteRopeRows(buffer.data(), rows, count / rows, 1);
    }
    executor.writeSlice(staging, 0, buffer.data(),
                        buffer.size() * sizeof(float),
                        static_cast<size_t>(begin) * sizeof(float));
  }
}

} // namespace

void loadModel(Executor &executor, const TensorSource &source, bool isGguf,
               const std::function<void(int64_t, int64_t)> &progress) {
  const std::vector<Transfer> transfers =
      planTransfers(executor.plan().plan(), source, isGguf);
  std::vector<float> buffer;
  int64_t done = 0;
  for (const Transfer &transfer : transfers) {
    stage(executor, source, transfer, buffer);
    const auto load = static_cast<FunctionId>(transfer.parameter->load_function());
    executor.run(load, transfer.ordinal);
    source.release(*transfer.tensor);
    if (progress)
      progress(++done, static_cast<int64_t>(transfers.size()));
  }
  executor.device().synchronize();
}

} // namespace fsdpq::rt
