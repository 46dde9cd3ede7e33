#include "runtime/train/Parameters.h"

#include "runtime/support/Error.h"

namespace fsdpq::rt {

int64_t instanceCount(const plan::Parameter &parameter) {
  return parameter.layers() && parameter.layers()->size() > 0
             ? parameter.layers()->size()
             : 1;
}

int64_t layerOf(const plan::Parameter &parameter, int64_t ordinal) {
  if (!parameter.layers() || parameter.layers()->size() == 0)
    return -1;
  return parameter.layers()->Get(static_cast<uint32_t>(ordinal));
}

int64_t elementCount(const plan::Parameter &parameter) {
  int64_t elements = 1;
  for (int64_t dimension : *parameter.shape())
    elements *= dimension; // checkPlan bounds the product
  return elements;
}

std::string instanceName(const flatbuffers::String &pattern,
                         const plan::Parameter &parameter, int64_t ordinal) {
  static constexpr std::string_view placeholder = "{layer}";
  std::string name = pattern.str();
  const std::string layer = std::to_string(layerOf(parameter, ordinal));
  for (size_t at = 0;
       (at = name.find(placeholder, at)) != std::string::npos;
       at += layer.size())
    name.replace(at, placeholder.size(), layer);
  return name;
}

bool isAdapter(const plan::Parameter &parameter) {
  return parameter.init() != plan::Init::Checkpoint;
}

int64_t trainableElements(const plan::Plan &plan) {
  int64_t total = 0;
  for (const plan::Parameter *parameter : *plan.parameters())
    if (parameter->trainable())
      total += elementCount(*parameter) * instanceCount(*parameter);
  return total;
}

std::vector<int64_t> shapeOf(const plan::Parameter &parameter) {
  return {parameter.shape()->begin(), parameter.shape()->end()};
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// The slice that holds the parameter as f32.
static uint32_t dataSlice(const plan::Parameter &parameter) {
  const auto &components = *parameter.components();
  if (components.size() == 1 && components.Get(0)->dtype()->str() == "f32" &&
      components.Get(0)->elements() ==
          static_cast<uint64_t>(elementCount(parameter)))
    return components.Get(0)->slice();
  throw Error(5003, ExitCode::BadInput,
              "the plan stores parameter '" + parameter.name()->str() +
                  "' as " + parameter.scheme()->str() +
                  ", not as f32 values that can be read and written");
}

void writeParameter(Executor &executor, const plan::Parameter &parameter,
                    int64_t ordinal, const float *values) {
  executor.writeSlice(dataSlice(parameter), ordinal, values,
                      static_cast<size_t>(elementCount(parameter)) *
                          sizeof(float));
}

std::vector<float> readParameter(const Executor &executor,
                                 const plan::Parameter &parameter,
                                 int64_t ordinal) {
  std::vector<float> values(static_cast<size_t>(elementCount(parameter)));
  executor.readSlice(dataSlice(parameter), ordinal, values.data(),
                     values.size() * sizeof(float));
  return values;
}

} // namespace fsdpq::rt
