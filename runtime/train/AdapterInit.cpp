#include "runtime/train/AdapterInit.h"

#include "runtime/support/SplitMix.h"
#include "runtime/train/Parameters.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fsdpq::rt {
namespace {

uint64_t fnv1a64(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (unsigned char byte : text)
    hash = (hash ^ byte) * 0x100000001B3;
  return hash;
}

} // namespace

void kaimingUniform(std::span<float> values, int64_t fanIn, uint64_t seed,
                    std::string_view parameter, int64_t layer, int64_t first) {
  const double bound = 1 / std::sqrt(static_cast<double>(fanIn));
  const uint64_t key = splitmix::mix(splitmix::mix(fnv1a64(parameter)) +
                           static_cast<uint64_t>(layer) + splitmix::mix(seed));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits =
        splitmix::mix(key + (static_cast<uint64_t>(first) + i + 1) * splitmix::gamma);
    const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
    values[i] = static_cast<float>(bound * (2 * unit - 1));
  }
}

void initialiseAdapters(Executor &executor, uint64_t seed) {
  const plan::Plan &plan = executor.plan().plan();
  std::vector<float> values;
  for (const plan::Parameter *parameter : *plan.parameters()) {
    if (!isAdapter(*parameter))
      continue;
    const ElementRange held = heldElements(executor, *parameter);
    values.assign(static_cast<size_t>(held.size()), 0.f);
    for (int64_t i = 0; i < instanceCount(plan, *parameter); ++i) {
      if (parameter->init() == plan::Init::KaimingUniform)
        kaimingUniform(values, parameter->fan_in(), seed,
                       parameter->name()->string_view(),
                       layerOf(plan, *parameter, i), held.begin);
      writeHeldElements(executor, *parameter, i, values);
    }
  }
}

} // namespace fsdpq::rt
