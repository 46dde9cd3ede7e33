#include "test/gpu/KernelCases.h"

#include "compiler/Kernel/Bodies.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;
using namespace fsdpq::test;

//===--- Arrays -------------------------------------------------------------//

static void put(uint8_t *at, ElementKind kind, double value) {
  switch (kind) {
  case ElementKind::F32: {
    const float f = static_cast<float>(value);
    std::memcpy(at, &f, 4);
    return;
  }
  case ElementKind::F64:
    std::memcpy(at, &value, 8);
    return;
  case ElementKind::BF16: {
    const float f = static_cast<float>(value);
    uint32_t word;
    std::memcpy(&word, &f, 4);
    const uint16_t half = static_cast<uint16_t>(
        std::isnan(value) ? 0x7FC0 : (word + 0x7FFF + ((word >> 16) & 1)) >> 16);
    std::memcpy(at, &half, 2);
    return;
  }
  case ElementKind::I32: {
    const int32_t i = static_cast<int32_t>(value);
    std::memcpy(at, &i, 4);
    return;
  }
  case ElementKind::I8:
    *at = static_cast<uint8_t>(value);
  }
}

/// In [0, 1). Arrays have many millions of elements: the standard library's
/// generators take seconds for each.
static double nextUniform(uint64_t &state) {
  state ^= state << 13; // Marsaglia, "Xorshift RNGs", 2003
  state ^= state >> 7;
  state ^= state << 17;
  return static_cast<double>(state >> 11) * 0x1p-53;
}

std::vector<std::vector<uint8_t>> Case::makeArrays() const {
  std::vector<std::vector<uint8_t>> result;
  uint64_t state = 42;
  for (const Array &array : arrays) {
    const size_t size = bytesOf(array.kind);
    std::vector<uint8_t> bytes(array.count * size, 0xA5);
    for (int64_t i = 0; i < array.count; ++i) {
      uint8_t *at = &bytes[i * size];
      if (!array.values.empty())
        put(at, array.kind, array.values[i]);
      else if (array.role != Role::Out)
        put(at, array.kind, array.low + (array.high - array.low) * nextUniform(state));
      else if (array.kind != ElementKind::I32 && array.kind != ElementKind::I8)
        put(at, array.kind, NAN);
    }
    result.push_back(std::move(bytes));
  }
  return result;
}

double Case::touchedBytes() const {
  double bytes = 0;
  for (const Array &array : arrays)
    bytes += static_cast<double>(array.count) * bytesOf(array.kind) *
             (array.role == Role::InOut ? 2 : 1);
  return bytes;
}

//===--- Cases --------------------------------------------------------------//

namespace {

constexpr ElementKind F32 = ElementKind::F32, F64 = ElementKind::F64,
                      BF16 = ElementKind::BF16, I32 = ElementKind::I32,
                      I8 = ElementKind::I8;
constexpr Role In = Role::In, Out = Role::Out, InOut = Role::InOut;

Type typeOf(OpBuilder &b, ElementKind kind) {
  return kind == F32 ? Type(b.getF32Type())
         : kind == F64 ? Type(b.getF64Type())
                       : Type(b.getBF16Type());
}
/// What statistics of `kind` are kept in.
ElementKind sumOf(ElementKind kind) { return kind == BF16 ? F32 : kind; }

std::string nameOf(ElementKind kind) {
  return kind == F32 ? "f32" : kind == F64 ? "f64" : "bf16";
}

std::vector<int32_t> randomInts(int64_t count, int32_t below, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int32_t> uniform(0, below - 1);
  std::vector<int32_t> values(count);
  for (int32_t &value : values)
    value = uniform(generator);
  return values;
}

/// The first row of each row's segment, for segments of about equal length; with
/// `ragged` of very different ones, rows alone among them.
std::vector<int32_t> segmentsOf(int64_t rows, int64_t count, bool ragged) {
  std::vector<int32_t> borders = {0};
  std::mt19937 generator(static_cast<unsigned>(rows + count));
  if (ragged) {
    std::uniform_int_distribution<int32_t> uniform(1, static_cast<int32_t>(rows) - 1);
    for (int64_t i = 1; i < count; ++i)
      borders.push_back(uniform(generator));
    std::sort(borders.begin(), borders.end());
  } else {
    for (int64_t i = 1; i < count; ++i)
      borders.push_back(static_cast<int32_t>(rows * i / count));
  }
  std::vector<int32_t> segments(rows);
  size_t next = 0;
  int32_t first = 0;
  for (int32_t row = 0; row < rows; ++row) {
    while (next < borders.size() && borders[next] <= row)
      first = borders[next++];
    segments[row] = first;
  }
  return segments;
}

class CaseMaker {
public:
  std::map<std::string, std::vector<Case>> groups;

  template <typename Build>
  Case &add(const std::string &group, const std::string &name, Build build,
            std::vector<Array> arrays, int64_t items) {
    groups[group].push_back({group + " " + name, build, std::move(arrays), items});
    return groups[group].back();
  }

  void addRows();
  void addTraining();
  void addQuantised();
  void addAttention();
  void addProducts();
};

const std::vector<std::pair<int64_t, int64_t>> rowShapes = {
    {1, 64}, {128, 64}, {256, 72}, {384, 100}, {128, 576}, {8192, 4096}, {2048, 8192}};

std::string shapeName(int64_t rows, int64_t columns, ElementKind kind) {
  return std::to_string(rows) + "x" + std::to_string(columns) + " " + nameOf(kind);
}

void CaseMaker::addRows() {
  for (auto [r, d] : rowShapes)
    for (ElementKind e : {F32, BF16}) {
      const int64_t rows = r, columns = d, n = rows * columns;
      const std::string name = shapeName(rows, columns, e);
      const auto type = [e](OpBuilder &b) { return typeOf(b, e); };
      for (bool residual : {false, true}) {
        std::vector<Array> arrays = {{e, n}};
        if (residual)
          arrays.push_back({e, n});
        arrays.push_back({e, columns, In, 0.5, 1.5});
        if (residual)
          arrays.push_back({e, n, Out});
        arrays.push_back({e, n, Out});
        arrays.push_back({sumOf(e), rows, Out});
        add(residual ? "add_rms_norm" : "rms_norm", name,
            [=](OpBuilder &b, Location l) {
              return buildRmsNorm(b, l, columns, type(b), 1e-5, residual);
            },
            arrays, rows);
      }
      for (bool plus : {false, true}) {
        std::vector<Array> arrays = {{e, n},
                                     {e, n},
                                     {e, columns, In, 0.5, 1.5},
                                     {sumOf(e), rows, In, 0.5, 2}};
        if (plus)
          arrays.push_back({e, n});
        arrays.push_back({e, n, Out});
        add("rms_norm_grad", name + (plus ? " plus" : ""),
            [=](OpBuilder &b, Location l) {
              return buildRmsNormGrad(b, l, columns, type(b), plus);
            },
            arrays, rows);
      }
      const auto elementwise = [&](const std::string &group, int64_t inputs,
                                   auto build) {
        std::vector<Array> arrays(inputs, Array{e, n, In, -4, 4});
        arrays.push_back({e, n, Out});
        add(group, name,
            [=](OpBuilder &b, Location l) { return build(b, l, columns, type(b)); },
            arrays, rows);
      };
      Case &dropout = add(
          "dropout", name,
          [=](OpBuilder &b, Location l) {
            return buildDropout(b, l, columns, 0.3, type(b));
          },
          {{e, n}, {e, n, Out}}, rows);
      dropout.integers = {5 * 64 + 2};
      dropout.reals = {0x1p51 + 12345};
      elementwise("silu", 1, buildSilu);
      elementwise("silu_grad", 2, buildSiluGrad);
      elementwise("add", 2, buildAdd);
      elementwise("mul", 2, buildMul);
      for (bool packed : {false, true}) {
        const std::string form = name + (packed ? " packed" : "");
        std::vector<Array> arrays(packed ? 1 : 2,
                                  Array{e, packed ? 2 * n : n, In, -4, 4});
        arrays.push_back({e, n, Out});
        add("gated_silu", form,
            [=](OpBuilder &b, Location l) {
              return buildGatedSilu(b, l, columns, packed, type(b));
            },
            arrays, rows);
        std::vector<Array> grads = {{e, n}};
        for (int i = 0; i < (packed ? 1 : 2); ++i)
          grads.push_back({e, packed ? 2 * n : n, In, -4, 4});
        for (int i = 0; i < (packed ? 1 : 2); ++i)
          grads.push_back({e, packed ? 2 * n : n, Out});
        add("gated_silu_grad", form,
            [=](OpBuilder &b, Location l) {
              return buildGatedSiluGrad(b, l, columns, packed, type(b));
            },
            grads, rows);
      }
      const int64_t vocabulary = 1000;
      add("embedding", name,
          [=](OpBuilder &b, Location l) {
            return buildEmbedding(b, l, vocabulary, columns, type(b));
          },
          {{I32, rows, In, 0, 0, randomInts(rows, vocabulary, 3)},
           {e, vocabulary * columns},
           {e, n, Out}},
          rows);
      if (rows >= 128) {
        auto chosen = randomInts(rows / 2, static_cast<int32_t>(rows), 4);
        add("gather_rows", name,
            [=](OpBuilder &b, Location l) {
              return buildGatherRows(b, l, columns, type(b));
            },
            {{e, n}, {I32, rows / 2, In, 0, 0, chosen}, {e, n / 2, Out}}, rows / 2);
        std::vector<int32_t> index(rows, -1);
        for (int64_t i = 0; i < rows / 2; ++i)
          index[2 * i] = static_cast<int32_t>(i);
        add("scatter_rows", name,
            [=](OpBuilder &b, Location l) {
              return buildScatterRows(b, l, columns, type(b));
            },
            {{e, n / 2}, {I32, rows, In, 0, 0, index}, {e, n, Out}}, rows);
      }
      if (rows <= 2048) {
        add("rms_norm_weight_grad", name,
            [=](OpBuilder &b, Location l) {
              return buildRmsNormWeightGrad(b, l, columns, type(b));
            },
            {{e, n}, {e, n}, {sumOf(e), rows}, {sumOf(e), columns, InOut}},
            columns / columnTile(columns))
            .integers = {rows};
        add("embedding_grad", name,
            [=](OpBuilder &b, Location l) {
              return buildEmbeddingGrad(b, l, vocabulary, columns, type(b));
            },
            {{e, n},
             {I32, rows, In, 0, 0, randomInts(rows, vocabulary, 3)},
             {sumOf(e), vocabulary * columns, InOut}},
            columns / columnTile(columns))
            .integers = {rows};
      }
    }
  for (ElementKind e : {F32, BF16})
    for (auto [rows, heads, kvHeads, headDim] :
         std::vector<std::array<int64_t, 4>>{{1, 1, 1, 16}, {128, 4, 2, 16},
                                             {256, 9, 3, 64}, {8192, 32, 32, 128},
                                             {8192, 32, 8, 128}}) {
      const int64_t columns = (heads + 2 * kvHeads) * headDim, r = rows,
                    d = headDim, h = heads + kvHeads;
      for (bool inverse : {false, true})
        add("rope",
            shapeName(rows, columns, e) + " " + std::to_string(d) +
                (inverse ? " inverse" : ""),
            [=](OpBuilder &b, Location l) {
              return buildRope(b, l, columns, d, h, inverse, typeOf(b, e));
            },
            {{sumOf(e), r * d}, {e, r * columns, InOut}}, r);
      std::vector<double> frequencies(d / 2);
      for (int64_t i = 0; i < d / 2; ++i)
        frequencies[i] = std::pow(10000.0, -2.0 * i / d);
      if (e == F32)
        // The angle is a product in f32: half a unit of thousands of radians.
        add("rope_table", shapeName(r, d, e),
            [=](OpBuilder &b, Location l) {
              return buildRopeTable(b, l, frequencies, b.getF32Type());
            },
            {{I32, r, In, 0, 0, randomInts(r, 4096, 5)}, {F32, r * d, Out}}, r)
            .tolerance = 1e-4;
    }
}

void CaseMaker::addTraining() {
  for (ElementKind e : {F32, BF16})
    for (auto [rows, vocabulary] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 128}, {128, 1000}, {512, 32000}, {512, 128256}, {128, 151936}}) {
      const int64_t r = rows, v = vocabulary;
      auto targets = randomInts(r, static_cast<int32_t>(v), 6);
      if (r > 1)
        targets[r / 2] = targets[r - 1] = -1; // nothing to learn
      const std::string name = shapeName(r, v, e);
      const Array target{I32, r, In, 0, 0, targets};
      add("cross_entropy", name,
          [=](OpBuilder &b, Location l) {
            return buildCrossEntropy(b, l, v, typeOf(b, e));
          },
          {{e, r * v, In, -8, 8}, target, {sumOf(e), r, Out}, {sumOf(e), r, Out}}, r);
      add("cross_entropy_grad", name,
          [=](OpBuilder &b, Location l) {
            return buildCrossEntropyGrad(b, l, v, typeOf(b, e));
          },
          {{e, r * v, In, -8, 8},
           target,
           {sumOf(e), r, In, 14, 15},
           {sumOf(e), r},
           {e, r * v, Out}},
          r);
      add("fused_cross_entropy", name,
          [=](OpBuilder &b, Location l) {
            return buildFusedCrossEntropy(b, l, v, typeOf(b, e));
          },
          {target, {e, r * v, InOut, -8, 8}, {sumOf(e), r, Out}}, r)
          .reals = {0.01};
    }
  for (int64_t n : {64, 1024, 65536, 40'000'512}) {
    const int64_t items = n / std::gcd(n, flatTile);
    const std::string name = std::to_string(n);
    add("accumulate", name,
        [=](OpBuilder &b, Location l) {
          return buildAccumulate(b, l, n, b.getF32Type());
        },
        {{F32, n}, {F32, n, InOut}}, items);
    const int64_t tile = std::gcd(n, flatTile);
    add("sum_squares", name,
        [=](OpBuilder &b, Location l) {
          return buildSumSquares(b, l, n, tile, b.getF32Type());
        },
        {{F32, n}, {F64, items, Out}}, items)
        .tolerance = 1e-6;
    for (const char *rule : {"adamw", "adam", "sgd", "adadelta"}) {
      const bool adam = rule[0] == 'a' && rule[3] == 'm', sgd = rule[0] == 's';
      std::vector<Array> arrays = {{F32, 1, In, 0.5, 2},
                                   {F32, n, InOut},
                                   {F32, n, InOut}};
      if (!sgd) {
        arrays.push_back({F32, n, InOut, 0, 0.1});
        arrays.push_back({F32, n, InOut, 0, 0.1});
      }
      Case &made = add(
          "optimizer", rule + (" " + name),
          [=, name = std::string(rule)](OpBuilder &b, Location l) {
            SmallVector<NamedAttribute> options;
            const auto set = [&](StringRef key, double value) {
              options.push_back(b.getNamedAttr(key, b.getF64FloatAttr(value)));
            };
            if (name == "adamw" || name == "adam") {
              set("beta1", 0.9);
              set("beta2", 0.95);
            }
            if (name == "adadelta")
              set("rho", 0.9);
            if (name != "sgd")
              set("epsilon", 1e-5);
            if (name == "adamw" || name == "adam")
              set("weight_decay", name == "adamw" ? 0.1 : 0.0);
            return buildOptimizer(b, l, name, b.getDictionaryAttr(options), n,
                                  b.getF32Type());
          },
          arrays, items);
      made.reals = {0.3, 1e-3};
      if (adam)
        made.reals.insert(made.reals.end(), {0.1, 0.05});
    }
  }
  add("add_partials", "4x3x64",
      [=](OpBuilder &b, Location l) {
        return buildAddPartials(b, l, 4, 3, 64, false);
      },
      {{F64, 4 * 3 * 64}, {F64, 1, Out}}, 1);
  add("norm", "",
      [=](OpBuilder &b, Location l) { return buildNorm(b, l, b.getF32Type()); },
      {{F64, 1, In, 1, 2}, {F32, 1, Out}}, 1);
  for (int64_t count : {0, 1, 128, 512})
    add("report_loss", std::to_string(count),
        [=](OpBuilder &b, Location l) {
          return buildReportLoss(b, l, b.getF32Type());
        },
        {{F32, std::max<int64_t>(count, 1)}, {F32, 1, InOut}}, 1)
        .integers = {count};
  for (Case &made : groups["report_loss"])
    made.reals = {0.25};
  add("splat", "",
      [=](OpBuilder &b, Location l) { return buildSplat(b, l, b.getF32Type()); },
      {{F32, 300, Out}}, 300)
      .reals = {0.125};
}

void CaseMaker::addQuantised() {
  for (bool nf4 : {true, false})
    for (int64_t nested : {0, 256})
      for (auto [n, block] : std::vector<std::pair<int64_t, int64_t>>{
               {64, 64}, {1, 64}, {333, 64}, {65536, 128}, {16384, 64},
               {4096 * 4096, 64}, {11008 * 4096, 64}}) {
        qt::BlockFormat format;
        format.isNF4 = nf4;
        format.block = block;
        format.nested = nested;
        const int64_t elements = n, blocks = (n + block - 1) / block;
        const std::string name = std::string(nf4 ? "nf4 " : "fp4 ") +
                                 (nested ? "nested " : "") + std::to_string(n) +
                                 " by " + std::to_string(block);
        std::vector<Array> inputs = {{I8, (n + 1) / 2, In, 0, 256}};
        if (nested) {
          inputs.push_back({I8, blocks, In, 0, 256});
          inputs.push_back({F32, (blocks + 255) / 256, In, 0.01, 0.02});
          inputs.push_back({F32, 1, In, 0.04, 0.05});
        } else {
          inputs.push_back({F32, blocks, In, 0.01, 0.1});
        }
        for (ElementKind e : {F32, BF16}) {
          auto arrays = inputs;
          arrays.push_back({e, n, Out});
          add("dequantize", name + " " + nameOf(e),
              [=](OpBuilder &b, Location l) {
                return buildDequantize(b, l, format, elements, typeOf(b, e));
              },
              arrays, blocks)
              .tolerance = 1e-30; // exact
        }
        if (nested) {
          add("quantize_scales", name,
              [=](OpBuilder &b, Location l) {
                return buildQuantizeScales(b, l, format, blocks);
              },
              {{F32, blocks, In, 0.01, 0.1},
               {F32, 1, In, 0.04, 0.05},
               {I8, blocks, Out},
               {F32, (blocks + 255) / 256, Out}},
              (blocks + 255) / 256)
              .tolerance = 1e-30;
          continue;
        }
        add("quantize", name,
            [=](OpBuilder &b, Location l) {
              return buildQuantize(b, l, format, elements);
            },
            {{F32, n}, {I8, (n + 1) / 2, Out}, {F32, blocks, Out}}, blocks)
            .tolerance = 1e-30;
        add("scale_sum", name,
            [=](OpBuilder &b, Location l) { return buildScaleSum(b, l, blocks); },
            {{F32, blocks, In, 0.01, 0.1}, {F64, 1, Out}}, 1);
      }
}

void CaseMaker::addAttention() {
  struct Shape {
    int64_t rows, segments;
    bool ragged;
    int64_t heads, kvHeads, headDim;
    int64_t window;
    bool packed;
  };
  const std::vector<Shape> shapes = {
      {128, 1, false, 1, 1, 64, 0, true},     {128, 1, false, 4, 2, 16, 0, true},
      {256, 3, true, 4, 2, 64, 0, false},     {384, 5, true, 8, 1, 128, 0, true},
      {1024, 300, true, 4, 4, 128, 0, false}, {512, 128, true, 2, 2, 64, 0, true},
      {640, 2, true, 6, 3, 80, 0, true},      {512, 2, true, 4, 4, 96, 100, false},
      {512, 1, false, 4, 2, 128, 77, true},   {384, 2, true, 2, 1, 256, 0, true},
      {2048, 4, false, 8, 2, 128, 0, true},   {1152, 7, true, 4, 4, 64, 0, true}};
  for (const Shape &s : shapes)
    for (ElementKind e : {F32, BF16}) {
      if (e == F32 && (s.rows > 512 || s.headDim > 128))
        continue;
      const auto shape = [=](OpBuilder &b) {
        AttentionShape made{s.heads, s.kvHeads, s.headDim, std::nullopt,
                            1 / std::sqrt(double(s.headDim)), s.packed,
                            typeOf(b, e)};
        if (s.window)
          made.window = s.window;
        return made;
      };
      const std::string name =
          std::to_string(s.rows) + " in " + std::to_string(s.segments) + " " +
          std::to_string(s.heads) + ":" + std::to_string(s.kvHeads) + "x" +
          std::to_string(s.headDim) + (s.packed ? " packed" : "") +
          (s.window ? " window " + std::to_string(s.window) : "") + " " + nameOf(e);
      const int64_t q = s.rows * s.heads * s.headDim,
                    kv = s.rows * s.kvHeads * s.headDim, h = s.rows * s.heads;
      const Array segments{I32, s.rows, In, 0, 0,
                           segmentsOf(s.rows, s.segments, s.ragged)};
      std::vector<Array> qkv;
      if (s.packed)
        qkv = {{e, q + 2 * kv, In, -2, 2}};
      else
        qkv = {{e, q, In, -2, 2}, {e, kv, In, -2, 2}, {e, kv, In, -2, 2}};
      auto forward = qkv;
      forward.insert(forward.end(), {segments, {e, q, Out}, {sumOf(e), h, Out}});
      // A row of bf16 probabilities rounds each of them.
      const double tolerance = e == BF16 ? 8e-3 : 5e-5;
      add("attention", name,
          [=](OpBuilder &b, Location l) { return buildAttention(b, l, shape(b)); },
          forward, s.rows / attentionTile * s.heads)
          .tolerance = tolerance;
      add("attention_delta", name,
          [=](OpBuilder &b, Location l) {
            return buildAttentionDelta(b, l, shape(b));
          },
          {{e, q}, {e, q}, {sumOf(e), h, Out}}, s.rows)
          .tolerance = 1e-4;
      // Large lse keep probabilities below 1 for any scores.
      auto backward = qkv;
      backward.insert(backward.end(), {Array{e, q},
                                       Array{sumOf(e), h, In, 6, 7},
                                       Array{sumOf(e), h, In, -0.1, 0.1}, segments});
      auto gradQ = backward, gradKV = backward;
      gradQ.push_back({e, s.packed ? q + 2 * kv : q, Out});
      gradKV.push_back({e, s.packed ? q + 2 * kv : kv, Out});
      if (!s.packed)
        gradKV.push_back({e, kv, Out});
      add("attention_grad_q", name,
          [=](OpBuilder &b, Location l) {
            return buildAttentionGradQ(b, l, shape(b));
          },
          gradQ, s.rows / attentionTile * s.heads)
          .tolerance = tolerance;
      Case &made = add("attention_grad_kv", name,
                       [=](OpBuilder &b, Location l) {
                         return buildAttentionGradKV(b, l, shape(b));
                       },
                       gradKV, s.rows / attentionTile * s.kvHeads);
      made.tolerance = tolerance;
      made.integers = {s.rows};
    }
}

void CaseMaker::addProducts() {
  for (ElementKind e : {F32, F64})
    for (auto [transA, transB] : std::vector<std::pair<bool, bool>>{
             {false, false}, {false, true}, {true, false}})
      for (double beta : {0.0, 1.0}) {
        const int64_t m = transA ? 40 : 128, n = 72, k = transA ? 128 : 96;
        add("matmul",
            nameOf(e) + (transA ? " ta" : "") + (transB ? " tb" : "") +
                (beta != 0 ? " adding" : ""),
            [=, ta = transA, tb = transB](OpBuilder &b, Location l) {
              MatmulShape shape{m, n, k, ta, tb, 0.5, beta, typeOf(b, e),
                                typeOf(b, e)};
              return buildMatmul(b, l, shape);
            },
            {{e, m * k}, {e, k * n}, {e, m * n, beta != 0 ? InOut : Out}}, m)
            .integers = transA ? std::vector<int64_t>{k} : std::vector<int64_t>{};
      }
}

} // namespace

std::map<std::string, std::vector<Case>> fsdpq::test::makeCases() {
  CaseMaker maker;
  maker.addRows();
  maker.addTraining();
  maker.addQuantised();
  maker.addAttention();
  maker.addProducts();
  return std::move(maker.groups);
}
