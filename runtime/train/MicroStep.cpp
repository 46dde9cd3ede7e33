#include "runtime/train/MicroStep.h"

#include "runtime/support/SplitMix.h"

namespace fsdpq::rt {

OptionalScalar::OptionalScalar(Executor &executor, std::string_view name)
    : executor(executor) {
  if (executor.plan().findScalar(name))
    id = executor.scalar(name);
}

static std::optional<InputId> findInput(const Executor &executor,
                                        std::string_view name) {
  if (executor.plan().findInput(name))
    return executor.input(name);
  return std::nullopt;
}

MicroStep::MicroStep(Executor &executor, std::string_view program)
    : executor(executor), function(executor.function(program)),
      tokens(executor, "tokens"), labels(executor, "labels"),
      weight(executor, "loss_weight"), dropoutKey(executor, "dropout_key"),
      ids(findInput(executor, "ids")),
      positions(findInput(executor, "positions")),
      segments(findInput(executor, "segments")),
      labelRows(findInput(executor, "label_rows")),
      labelTargets(findInput(executor, "label_targets")),
      labelIndex(findInput(executor, "label_index")) {}

void MicroStep::write(const std::optional<InputId> &id,
                      const std::vector<int32_t> &values) {
  if (id && !values.empty())
    executor.writeInput(*id, values.data(), values.size() * sizeof(int32_t));
}

void MicroStep::run(const MicroBatch &batch, double lossWeight) {
  tokens.set(batch.paddedTokens);
  labels.set(batch.paddedLabelled);
  weight.set(lossWeight);
  write(ids, batch.ids);
  write(positions, batch.positions);
  write(segments, batch.segmentStart);
  write(labelRows, batch.labelRows);
  write(labelTargets, batch.labelTargets);
  write(labelIndex, batch.labelIndex);
  executor.run(function);
}

LossCell::LossCell(Executor &executor)
    : executor(executor), output(executor.output("loss")),
      slice(executor.plan()
                .plan()
                .outputs()
                ->Get(static_cast<uint32_t>(output))
                ->slice()) {}

void LossCell::clear() {
  const float zero = 0;
  executor.writeSlice(slice, 0, &zero, sizeof zero);
}

double LossCell::read() const {
  float loss;
  executor.readOutput(output, &loss, sizeof loss);
  return loss;
}

double dropoutKey(uint64_t seed, int64_t microBatch) {
  const uint64_t bits =
      splitmix::mix(splitmix::mix(seed) + (static_cast<uint64_t>(microBatch) + 1) * splitmix::gamma);
  return static_cast<double>(bits >> 12);
}

double meanLossWeight(const MicroBatch &batch, int64_t parts) {
  if (batch.labelled == 0)
    return 0;
  return 1 / (static_cast<double>(batch.labelled) * static_cast<double>(parts));
}

} // namespace fsdpq::rt
