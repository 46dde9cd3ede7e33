//===- QuantizeParts.h - Parts of the texts of quantised data ---*- C++ -*-===//
#pragma once

#include "compiler/Target/Cuda/Skeletons/TextTemplate.h"

#include <vector>

namespace fsdpq::cuda {

/// `__device__ const float name[]` with these entries.
inline std::string tableText(std::string_view name,
                             const std::vector<float> &values) {
  std::string text = "__device__ const float ";
  text.append(name) += "[" + std::to_string(values.size()) + "] = {";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i % 4 ? ", " : i ? ",\n    " : "\n    ") + floatLiteral(values[i]);
  return text + "};\n";
}

/// rank_of(x, borders): how many of BORDERS ascending borders, a power of two
/// less one, are strictly below x.
inline constexpr std::string_view rankText = R"(
__device__ __forceinline__ int rank_of(float x, const float *borders) {
  int rank = 0;
#pragma unroll
  for (int step = (BORDERS + 1) / 2; step > 0; step /= 2)
    if (x > borders[rank + step - 1])
      rank += step;
  return rank;
}
)";

/// scaled_of: a value scaled by the largest magnitude of its block: by a
/// product with the reciprocal in full blocks, by a quotient in a short last
/// one. A zero stays one, also where that is 0 or so small that its reciprocal
/// is infinite.
inline constexpr std::string_view scaledText = R"(
__device__ __forceinline__ float scaled_of(float x, float largest,
                                           float reciprocal, bool isShort) {
  if (x == 0.0f)
    return 0.0f;
  return isShort ? __fdiv_rn(x, largest) : __fmul_rn(x, reciprocal);
}
)";

} // namespace fsdpq::cuda
