#include "compiler/Kernel/RopeFrequencies.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace fsdpq;

static std::optional<double> getNumber(DictionaryAttr dictionary,
                                       StringRef name) {
  Attribute value = dictionary ? dictionary.get(name) : Attribute();
  if (!isa_and_nonnull<IntegerAttr, FloatAttr>(value))
    return std::nullopt;
  return tfm::getBoundFloat(value);
}

FailureOr<SmallVector<double>>
fsdpq::computeRopeFrequencies(tfm::RopeTableOp op) {
  int64_t headDim =
      cast<RankedTensorType>(op.getTable().getType()).getDimSize(1);
  double theta = tfm::getBoundFloat(op.getTheta());
  SmallVector<double> frequencies;
  for (int64_t i = 0; i < headDim / 2; ++i)
    frequencies.push_back(std::pow(theta, -2.0 * double(i) / double(headDim)));

  if (Attribute given = op.getFactorsAttr()) {
    auto factors = dyn_cast<ArrayAttr>(given);
    bool numbers =
        factors && llvm::all_of(factors, [](Attribute factor) {
          return isa<IntegerAttr, FloatAttr>(factor) &&
                 tfm::getBoundFloat(factor) > 0 &&
                 std::isfinite(tfm::getBoundFloat(factor));
        });
    if (!numbers)
      return op.emitError("[FSDPQ-0401] rotary factors must be positive numbers");
    if (factors.size() != frequencies.size())
      return op.emitError("[FSDPQ-0401] ")
             << factors.size() << " rotary factors for " << frequencies.size()
             << " frequencies";
    for (auto [frequency, factor] : llvm::zip(frequencies, factors))
      frequency /= tfm::getBoundFloat(factor);
    return frequencies;
  }

  auto scaling = dyn_cast_or_null<DictionaryAttr>(op.getScalingAttr());
  auto type = scaling ? scaling.getAs<StringAttr>("rope_type") : StringAttr();
  if (scaling && !type)
    type = scaling.getAs<StringAttr>("type");
  if (!type || type.getValue() == "default" || type.getValue() == "none")
    return frequencies;

  std::optional<double> factor = getNumber(scaling, "factor");
  if (!factor || *factor <= 0)
    return op.emitError("[FSDPQ-0402] rope scaling '")
           << type.getValue() << "' needs a positive 'factor'";
  if (type.getValue() == "linear") {
    for (double &frequency : frequencies)
      frequency /= *factor;
    return frequencies;
  }

  // llama3: long wavelengths are divided by the factor, short ones kept, those
  // between are blended (Llama 3.1 model card; Hugging Face's parameters).
  std::optional<double> low = getNumber(scaling, "low_freq_factor");
  std::optional<double> high = getNumber(scaling, "high_freq_factor");
  std::optional<double> context =
      getNumber(scaling, "original_max_position_embeddings");
  if (!low || !high || !context || *low <= 0 || *high <= *low || *context <= 0)
    return op.emitError("[FSDPQ-0402] rope scaling 'llama3' needs "
                        "0 < low_freq_factor < high_freq_factor and "
                        "original_max_position_embeddings");
  for (double &frequency : frequencies) {
    double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength > *context / *low) {
      frequency /= *factor;
    } else if (wavelength >= *context / *high) {
      double blend = (*context / wavelength - *low) / (*high - *low);
      frequency = (1 - blend) * frequency / *factor + blend * frequency;
    }
  }
  return frequencies;
}
