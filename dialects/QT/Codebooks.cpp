//===- Codebooks.cpp - The values behind quantised codes ------------------===//
//
// NF4: Dettmers et al., "QLoRA: Efficient Finetuning of Quantized LLMs" (2023).
// FP4 and the signed dynamic 8-bit map: as bitsandbytes stores them.
//
//===----------------------------------------------------------------------===//

#include "dialects/QT/QT.h"

#include <array>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace fsdpq::qt;

static constexpr std::array<float, 16> nf4Values = {
    -1.0f, -0.6961928f, -0.52507305f, -0.3949175f, -0.28444138f, -0.18477343f,
    -0.091050036f, 0.0f, 0.0795803f, 0.1609302f, 0.2461123f, 0.33791524f,
    0.44070983f, 0.562617f, 0.72295684f, 1.0f};

// Code 8 is the negative zero.
static constexpr std::array<float, 16> fp4Values = {
    0.0f, 0.0052083335f, 0.6666667f, 1.0f, 0.33333334f, 0.5f, 0.16666667f,
    0.25f, 0.0f, -0.0052083335f, -0.6666667f, -1.0f, -0.33333334f, -0.5f,
    -0.16666667f, -0.25f};

// The magnitudes of the dynamic map between 0 and 1: in each of seven decades
// from 1e-6 the midpoints of 1, 2, 4 ... 64 equal intervals of [0.1, 1].
static constexpr std::array<float, 127> dynamicMagnitudes = {
    5.5000004e-07f, 3.2500002e-06f, 7.75e-06f, 2.1249998e-05f, 4.375e-05f,
    6.625e-05f, 8.875e-05f, 0.00015625001f, 0.00026875004f, 0.00038125002f,
    0.00049375003f, 0.0006062501f, 0.00071875006f, 0.00083125f, 0.0009437501f,
    0.0012812499f, 0.00184375f, 0.00240625f, 0.00296875f, 0.0035312497f,
    0.00409375f, 0.0046562497f, 0.0052187503f, 0.00578125f, 0.00634375f,
    0.00690625f, 0.00746875f, 0.00803125f, 0.00859375f, 0.009156249f,
    0.00971875f, 0.01140625f, 0.01421875f, 0.01703125f, 0.019843752f,
    0.02265625f, 0.02546875f, 0.028281251f, 0.03109375f, 0.03390625f,
    0.036718752f, 0.03953125f, 0.042343747f, 0.04515625f, 0.04796875f,
    0.05078125f, 0.05359375f, 0.05640625f, 0.059218753f, 0.06203125f,
    0.06484375f, 0.067656256f, 0.070468746f, 0.07328125f, 0.07609375f,
    0.07890625f, 0.08171876f, 0.08453125f, 0.08734375f, 0.09015625f,
    0.092968754f, 0.09578126f, 0.09859375f, 0.107031256f, 0.12109375f,
    0.13515624f, 0.14921875f, 0.16328125f, 0.17734376f, 0.19140625f,
    0.20546874f, 0.21953125f, 0.23359375f, 0.24765624f, 0.26171875f,
    0.27578127f, 0.28984374f, 0.30390626f, 0.31796873f, 0.33203125f,
    0.34609374f, 0.36015624f, 0.37421876f, 0.38828123f, 0.40234375f,
    0.41640624f, 0.43046874f, 0.44453126f, 0.45859373f, 0.47265625f,
    0.4867187f, 0.50078124f, 0.5148437f, 0.5289062f, 0.54296875f, 0.5570313f,
    0.5710938f, 0.58515626f, 0.5992187f, 0.61328125f, 0.6273438f, 0.6414063f,
    0.65546876f, 0.6695312f, 0.68359375f, 0.6976563f, 0.7117188f, 0.72578126f,
    0.7398437f, 0.75390625f, 0.7679688f, 0.78203124f, 0.79609376f, 0.8101562f,
    0.82421875f, 0.8382813f, 0.85234374f, 0.86640626f, 0.8804687f, 0.89453125f,
    0.9085938f, 0.92265624f, 0.93671876f, 0.9507812f, 0.96484375f, 0.9789063f,
    0.99296874f};


ArrayRef<float> fsdpq::qt::getCodebook(bool isNF4) {
  return isNF4 ? ArrayRef<float>(nf4Values) : ArrayRef<float>(fp4Values);
}

ArrayRef<float> fsdpq::qt::getDynamicMap() {
  // The map holds 0 and 1 but not -1.
  static const std::array<float, 256> map = [] {
    std::array<float, 256> values{};
    for (size_t i = 0; i < 127; ++i) {
      values[126 - i] = -dynamicMagnitudes[i];
      values[128 + i] = dynamicMagnitudes[i];
    }
    values[127] = 0.0f;
    values[255] = 1.0f;
    return values;
  }();
  return map;
}

Quantizer fsdpq::qt::getQuantizer(bool isNF4) {
  Quantizer quantizer;
  ArrayRef<float> values = getCodebook(isNF4);
  SmallVector<uint8_t> order;
  for (unsigned code = 0; code < 16; ++code)
    if (isNF4 || code != 8) // both zeros of fp4 dequantise alike; use +0
      order.push_back(code);
  llvm::sort(order, [&](uint8_t a, uint8_t b) { return values[a] < values[b]; });
  for (size_t i = 0; i + 1 < order.size(); ++i)
    quantizer.thresholds.push_back(
        (values[order[i]] + values[order[i + 1]]) / 2.0f);
  quantizer.codes = order;
  if (isNF4) {
    // Four of bitsandbytes' CUDA literals lie halfway between two floats and
    // round away from the midpoint. People train on the CUDA kernels.
    for (auto [index, value] :
         {std::pair{0, -0.8480964303016663f}, {8, 0.1202552542090416f},
          {12, 0.5016633868217468f}, {14, 0.8614783883094788f}})
      quantizer.thresholds[index] = value;
  }
  return quantizer;
}

SmallVector<float> fsdpq::qt::getDynamicThresholds() {
  ArrayRef<float> map = getDynamicMap();
  SmallVector<float> thresholds;
  for (size_t i = 0; i + 1 < map.size(); ++i) {
    // x is nearer to map[i + 1] exactly when x > (map[i] + map[i + 1]) / 2. The
    // midpoint rounded down to f32 makes `x > threshold` right for every f32 x.
    double midpoint = (double(map[i]) + double(map[i + 1])) / 2.0;
    float threshold = static_cast<float>(midpoint);
    if (double(threshold) > midpoint)
      threshold = std::nextafter(threshold, -INFINITY);
    thresholds.push_back(threshold);
  }
  return thresholds;
}

std::optional<BlockFormat> fsdpq::qt::getBlockFormat(Type type) {
  if (auto nf4 = dyn_cast<NF4Type>(type))
    return BlockFormat{nf4.getBlock(), nf4.getNested(), true};
  if (auto fp4 = dyn_cast<FP4Type>(type))
    return BlockFormat{fp4.getBlock(), fp4.getNested(), false};
  return std::nullopt;
}

bool fsdpq::qt::isQuantized(Type type) {
  return getBlockFormat(type).has_value();
}

SmallVector<StoredPart> fsdpq::qt::getStoredParts(BlockFormat format,
                                                  int64_t elements) {
  int64_t blocks = (elements + format.block - 1) / format.block;
  SmallVector<StoredPart> parts;
  parts.push_back({"codes", true, (elements + 1) / 2});
  if (!format.nested) {
    parts.push_back({"absmax", false, blocks});
    return parts;
  }
  parts.push_back({"absmax_u8", true, blocks});
  parts.push_back({"nested_absmax", false,
                   (blocks + format.nested - 1) / format.nested});
  parts.push_back({"offset", false, 1});
  return parts;
}
