#include "runtime/train/ModelLoader.h"

#include "runtime/comm/Communicator.h"
#include "runtime/io/RopeRows.h"
#include "runtime/plan/Mesh.h"
#include "runtime/support/Error.h"
#include "runtime/train/Parameters.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <vector>

namespace fsdpq::rt {
namespace {

/// One tensor on its way into the plan.
struct Transfer {
  const plan::Parameter *parameter;
  int64_t number; ///< of the parameter in the plan
  const TensorInfo *tensor;
  /// Heads whose rows llama.cpp interleaved; 0: none.
  int64_t ropeHeads;

  int64_t pieceElements() const {
    return elementCount(*parameter) / parameter->loader()->pieces();
  }
};

/// What fills a unit of one ordinal.
struct Filling {
  const plan::Unit *unit;
  int64_t ordinal;
  std::vector<Transfer> transfers;
};

const TensorInfo &findTensor(const TensorSource &source, const plan::Plan &plan,
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
  const std::string name = instanceName(*pattern, plan, parameter, ordinal);
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
                        const std::vector<Filling> &fillings) {
  std::set<std::string_view> used;
  for (const Filling &filling : fillings)
    for (const Transfer &transfer : filling.transfers)
      used.insert(transfer.tensor->name);
  for (const std::string &name : source.names())
    if (name.ends_with(".bias") && !used.contains(name))
      throw Error(5004, ExitCode::BadInput,
                  "the checkpoint has the tensor '" + name +
                      "', for which the model's description has no place",
                  source.location(),
                  "describe the bias in the architecture's .mlir file");
}

std::vector<Filling> planFillings(const plan::Plan &plan,
                                  const TensorSource &source, bool isGguf) {
  std::vector<Filling> fillings;
  for (uint32_t u = 0; u < plan.units()->size(); ++u) {
    const plan::Unit *unit = plan.units()->Get(u);
    if (unit->begin_function() < 0)
      continue;
    for (int64_t ordinal = 0; ordinal < ordinalCount(*unit); ++ordinal) {
      Filling filling{unit, ordinal, {}};
      for (uint32_t i = 0; i < plan.parameters()->size(); ++i) {
        const plan::Parameter *parameter = plan.parameters()->Get(i);
        if (parameter->unit() == u && parameter->loader())
          filling.transfers.push_back(
              {parameter, i,
               &findTensor(source, plan, *parameter, ordinal, isGguf),
               isGguf ? parameter->gguf_rope_heads() : 0});
      }
      fillings.push_back(std::move(filling));
    }
  }
  refuseUnusedBiases(source, fillings);
  return fillings;
}

/// One rank's part in loading.
class Loading {
public:
  Loading(Executor &executor, const TensorSource &source)
      : executor(executor), source(source),
        rank(executor.communicator().rank()),
        ranks(executor.communicator().size()) {}

  LoadReport report;

  /// Puts the tensor into the unit's whole buffer.
  void put(const Transfer &transfer) {
    const plan::Loader &loader = *transfer.parameter->loader();
    forOwnPieces(transfer, [&](int64_t piece) {
      stage(transfer, piece);
      run(loader.piece_function(), piece);
    });
    source.release(*transfer.tensor);
    if (loader.mean_function() >= 0) {
      run(loader.mean_function());
      forOwnPieces(transfer, [&](int64_t piece) {
        run(loader.scales_function(), piece);
      });
      if (firstPiece(transfer) == 0)
        run(loader.offset_function());
    }
    ++report.tensors;
  }

  void run(int64_t function, int64_t index = 0) {
    executor.run(static_cast<FunctionId>(function), index);
  }

private:
  /// The first piece of this rank, if there are so many.
  int64_t firstPiece(const Transfer &transfer) const {
    return (rank + ranks - transfer.number % ranks) % ranks;
  }

  template <typename Action>
  void forOwnPieces(const Transfer &transfer, Action action) {
    const int64_t pieces = transfer.parameter->loader()->pieces();
    for (int64_t piece = firstPiece(transfer); piece < pieces; piece += ranks)
      action(piece);
  }

  /// Converts a piece into the staging slice, some elements at a time.
  void stage(const Transfer &transfer, int64_t piece) {
    constexpr int64_t chunkElements = int64_t(4) << 20;
    const auto staging =
        static_cast<uint32_t>(executor.plan().plan().staging());
    const int64_t first = piece * transfer.pieceElements();
    const int64_t last = first + transfer.pieceElements();
    for (int64_t begin = first; begin < last;) {
      const std::span<const float> values =
          transfer.ropeHeads > 0
              ? readHead(transfer, begin, last)
              : readPlain(transfer, begin,
                          std::min(last, begin + chunkElements));
      executor.writeSlice(staging, 0, values.data(), values.size_bytes(),
                          static_cast<size_t>(begin - first) * sizeof(float));
      begin += static_cast<int64_t>(values.size());
    }
    report.elementsRead += transfer.pieceElements();
  }

  std::span<const float> readPlain(const Transfer &transfer, int64_t begin,
                                   int64_t end) {
    buffer.resize(static_cast<size_t>(end - begin));
    source.readF32(*transfer.tensor, begin, end, buffer.data());
    return buffer;
  }

  /// The elements from `begin` on that lie before `end` and in the same head,
  /// whose rows are put in order.
  std::span<const float> readHead(const Transfer &transfer, int64_t begin,
                                  int64_t end) {
    const plan::Parameter &parameter = *transfer.parameter;
    const int64_t perHead = elementCount(parameter) / transfer.ropeHeads;
    const int64_t headBegin = begin / perHead * perHead;
    const int64_t headRows = parameter.shape()->Get(0) / transfer.ropeHeads;
    buffer.resize(static_cast<size_t>(perHead));
    source.readF32(*transfer.tensor, headBegin, headBegin + perHead,
                   buffer.data());
    unpermuteRopeRows(buffer.data(), headRows, perHead / headRows,
                      /*heads=*/1);
    const int64_t count = std::min(end, headBegin + perHead) - begin;
    return std::span(buffer).subspan(static_cast<size_t>(begin - headBegin),
                                     static_cast<size_t>(count));
  }

  Executor &executor;
  const TensorSource &source;
  int64_t rank, ranks;
  std::vector<float> buffer;
};

} // namespace

LoadReport loadModel(Executor &executor, const TensorSource &source,
                     bool isGguf,
                     const std::function<void(int64_t, int64_t)> &progress) {
  const std::vector<Filling> fillings =
      planFillings(executor.plan().plan(), source, isGguf);
  int64_t total = 0;
  for (const Filling &filling : fillings)
    total += static_cast<int64_t>(filling.transfers.size());
  Loading loading(executor, source);
  for (const auto &[unit, ordinal, transfers] : fillings) {
    loading.run(unit->begin_function());
    for (const Transfer &transfer : transfers) {
      loading.put(transfer);
      if (progress)
        progress(loading.report.tensors, total);
    }
    loading.run(unit->store_function(), ordinal);
  }
  executor.device().synchronize();
  return loading.report;
}

} // namespace fsdpq::rt
