//===- EmittedKernelsTest.cpp - Emitted texts against CPU objects ---------===//
//
// Every body of Bodies.h is printed as CUDA text from its ops (families rows
// and tiles), run by the emulator, and compared with what the CPU's object
// computes from the same arguments. Each text runs four times: with threads in
// both orders, and with arguments that are aligned and that are not.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cuda/Emission.h"
#include "test/unit/compiler/KernelHarness.h"
#include "test/unit/cuda/Emulator.h"
#include "test/unit/cuda/GuardedBuffer.h"

#include "mlir/Parser/Parser.h"

#include <cstring>
#include <functional>
#include <map>

using namespace fsdpq;
using namespace fsdpq::kernels;
using namespace fsdpq::test;

namespace {

/// How a kernel is called. Arguments are filled by their types: floats
/// uniformly between -2 and 2, bytes with anything.
struct Call {
  std::function<kern::FuncOp(OpBuilder &, Location)> build;
  int64_t items;
  /// Of memrefs with a dynamic leading dimension; `rowsOf` by argument.
  int64_t rows;
  std::map<unsigned, int64_t> rowsOf = {};
  std::map<unsigned, std::pair<double, double>> ranges = {};
  std::map<unsigned, std::vector<int64_t>> integers = {};
  /// Values of the i64 and f64 arguments.
  std::vector<double> scalars = {};
  StringRef family = "rows";
  double bound = 0; ///< relative and absolute; 0: by the element type
};

/// One argument: the bytes of a memref or a number.
struct Value {
  Type element; ///< null: a number
  std::vector<char> bytes;
  std::optional<Argument> number;
  int64_t integer = 0;
  double real = 0;
};

int64_t sizeOf(Type element) { return element.getIntOrFloatBitWidth() / 8; }

void put(std::vector<char> &bytes, int64_t index, Type element, double value) {
  auto copy = [&](auto number) {
    std::memcpy(&bytes[index * sizeof number], &number, sizeof number);
  };
  if (element.isF32())
    copy(float(value));
  else if (element.isF64())
    copy(value);
  else if (element.isBF16()) {
    float single = float(value);
    uint32_t bits;
    std::memcpy(&bits, &single, sizeof bits);
    copy(uint16_t(bits >> 16));
  } else if (element.isInteger(32))
    copy(int32_t(value));
  else if (element.isInteger(64))
    copy(int64_t(value));
  else
    copy(int8_t(value));
}

double get(const char *bytes, int64_t index, Type element) {
  auto read = [&](auto number) {
    std::memcpy(&number, bytes + index * sizeof number, sizeof number);
    return number;
  };
  if (element.isF32())
    return read(float());
  if (element.isF64())
    return read(double());
  if (element.isBF16()) {
    uint32_t bits = uint32_t(read(uint16_t())) << 16;
    float single;
    std::memcpy(&single, &bits, sizeof single);
    return single;
  }
  if (element.isInteger(32))
    return read(int32_t());
  return element.isInteger(64) ? double(read(int64_t()))
                               : double(read(int8_t()));
}

double getTolerance(Type element) {
  if (element.isF64())
    return 1e-11;
  return element.isBF16() ? 1.0 / 128 : 2e-5;
}

class EmittedKernels : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    StringRef name = GetParam();
    OpBuilder &b = harness.builder;
    element = name == "f64"   ? Type(b.getF64Type())
              : name == "f32" ? Type(b.getF32Type())
                              : Type(b.getBF16Type());
  }

  /// add({bind(buildX, arguments...), ...}).
  template <typename Build, typename... Args>
  static auto bind(Build build, Args... arguments) {
    return
        [=](OpBuilder &b, Location loc) { return build(b, loc, arguments...); };
  }

  void add(Call call) {
    std::string name = harness.add([&](OpBuilder &b, Location loc) {
      kern::FuncOp kernel = call.build(b, loc);
      kernel->removeAttr("kern.family"); // what skeletons are checked against
      last = kernel;
      return kernel;
    });
    kernels.push_back({std::move(name), last, std::move(call)});
  }

  void runAll() {
    for (auto &[name, kernel, call] : kernels)
      run(name, kernel, call);
  }

private:
  struct Added {
    std::string name;
    kern::FuncOp kernel;
    Call call;
  };

  std::vector<Value> makeArguments(kern::FuncOp kernel, const Call &call);
  void run(StringRef name, kern::FuncOp kernel, const Call &call);
  bool compare(const Value &wanted, const char *actual, const Call &call,
               unsigned number);

protected:
  KernelHarness harness;
  Type element;

private:
  kern::FuncOp last;
  std::vector<Added> kernels;
  std::mt19937 generator{7};
};

std::vector<Value> EmittedKernels::makeArguments(kern::FuncOp kernel,
                                                 const Call &call) {
  std::vector<Value> arguments;
  size_t scalar = 0;
  for (BlockArgument argument : kernel.getArguments()) {
    Value &value = arguments.emplace_back();
    unsigned number = argument.getArgNumber();
    auto memref = dyn_cast<MemRefType>(argument.getType());
    if (!memref) {
      value.real = call.scalars.at(scalar++);
      value.integer = int64_t(value.real);
      value.number = argument.getType().isF64() ? Argument(value.real)
                                                : Argument(value.integer);
      continue;
    }
    value.element = memref.getElementType();
    int64_t count = 1;
    for (int64_t size : memref.getShape())
      count *= !ShapedType::isDynamic(size) ? size
               : call.rowsOf.count(number)  ? call.rowsOf.at(number)
                                            : call.rows;
    value.bytes.resize(count * sizeOf(value.element));
    std::pair<double, double> range = {-2, 2};
    if (value.element.isInteger(8))
      range = {-128, 127.99};
    if (auto found = call.ranges.find(number); found != call.ranges.end())
      range = found->second;
    std::uniform_real_distribution<double> distribution(range.first,
                                                        range.second);
    auto integers = call.integers.find(number);
    for (int64_t i = 0; i < count; ++i)
      put(value.bytes, i, value.element,
          integers != call.integers.end()
              ? double(integers->second[i % integers->second.size()])
          : value.element.isInteger(8) ? std::floor(distribution(generator))
                                       : distribution(generator));
  }
  return arguments;
}

/// Whether the results are those of the CPU.
bool EmittedKernels::compare(const Value &wanted, const char *actual,
                             const Call &call, unsigned number) {
  double bound = call.bound ? call.bound : getTolerance(wanted.element);
  if (isa<IntegerType>(wanted.element))
    bound = 0;
  int64_t count = wanted.bytes.size() / sizeOf(wanted.element);
  for (int64_t i = 0; i < count; ++i) {
    double a = get(actual, i, wanted.element),
           b = get(wanted.bytes.data(), i, wanted.element);
    if ((std::isnan(a) && std::isnan(b)) ||
        std::abs(a - b) <= bound * (1 + std::abs(b)))
      continue;
    ADD_FAILURE() << "argument " << number << " at " << i << " is " << a
                  << " instead of " << b;
    return false;
  }
  return true;
}

void EmittedKernels::run(StringRef name, kern::FuncOp kernel,
                         const Call &call) {
  SCOPED_TRACE(name.str());
  auto architecture = cuda::Architecture::parse("sm_90a");
  ASSERT_TRUE(succeeded(cuda::prepareEmission(kernel, *architecture)))
      << harness.errors;
  EXPECT_EQ(kernel.getEmissionAttr().getFamily(), call.family);
  auto text = cuda::emitKernel(kernel, *architecture);
  ASSERT_TRUE(succeeded(text)) << harness.errors;
  EmulatedKernel emulated = EmulatedKernel::compile(*text);
  ASSERT_EQ(emulated.error(), "") << text->text;

  std::vector<Value> arguments = makeArguments(kernel, call),
                     wanted = arguments;
  std::vector<void *> pointers;
  for (Value &value : wanted)
    pointers.push_back(value.element ? static_cast<void *>(value.bytes.data())
                       : value.number->letter == 'd'
                           ? static_cast<void *>(&value.real)
                           : static_cast<void *>(&value.integer));
  auto entry = harness.lookUp(name);
  ASSERT_TRUE(entry) << harness.errors;
  entry(pointers.data(), 0, call.items);

  std::vector<std::vector<char>> first;
  for (bool isAligned : {true, false})
    for (Order order : {Order::Ascending, Order::Descending}) {
      std::vector<std::unique_ptr<GuardedBuffer<char>>> buffers;
      std::vector<char *> begins;
      std::vector<Argument> passed;
      for (Value &value : arguments) {
        if (!value.element) {
          passed.push_back(*value.number);
          continue;
        }
        // Buffers end at a page; those of whole 16 bytes begin at 16 bytes.
        int64_t shift = isAligned ? 0 : sizeOf(value.element);
        buffers.push_back(
            std::make_unique<GuardedBuffer<char>>(value.bytes.size() + shift));
        begins.push_back(buffers.back()->data() + shift);
        std::memcpy(begins.back(), value.bytes.data(), value.bytes.size());
        passed.push_back(Argument(begins.back()));
      }
      ASSERT_EQ(emulated.launch(passed, call.items, 3, order), "")
          << text->text;
      size_t buffer = 0;
      std::vector<std::vector<char>> results;
      for (auto [number, value] : llvm::enumerate(wanted)) {
        if (!value.element)
          continue;
        char *begin = begins[buffer++];
        ASSERT_TRUE(compare(value, begin, call, number)) << text->text;
        results.emplace_back(begin, begin + value.bytes.size());
      }
      if (first.empty())
        first = results;
      EXPECT_TRUE(results == first) << "bits depend on order or alignment";
    }
}

std::vector<int64_t> numbers(int64_t count,
                             std::function<int64_t(int64_t)> value) {
  std::vector<int64_t> list(count);
  for (int64_t i = 0; i < count; ++i)
    list[i] = value(i);
  return list;
}

/// What masters and moments are kept in: not bf16.
class EmittedOptimizers : public EmittedKernels {};
/// What values are dequantised to: not f64.
class EmittedFormats : public EmittedKernels {};

TEST_P(EmittedKernels, Norm) {
  for (int64_t d : {1, 33, 100, 131, 576, 4096}) {
    int64_t rows = d > 1000 ? 2 : 5;
    add({bind(buildRmsNorm, d, element, 1e-5, false), rows, rows});
    add({bind(buildRmsNorm, d, element, 1e-5, true), rows, rows});
    add({bind(buildRmsNormGrad, d, element, false),
         rows,
         rows,
         {},
         {{3, {0.5, 1.5}}}});
    add({bind(buildRmsNormGrad, d, element, true),
         rows,
         rows,
         {},
         {{3, {0.5, 1.5}}}});
    add({bind(buildRmsNormWeightGrad, d, element),
         d / columnTile(d),
         rows,
         {},
         {{2, {0.5, 1.5}}},
         {},
         {double(rows)}});
  }
  runAll();
}

TEST_P(EmittedKernels, Elementwise) {
  for (int64_t d : {1, 8, 100, 1111, 2048}) {
    int64_t rows = 3;
    add({bind(buildSilu, d, element), rows, rows});
    add({bind(buildSiluGrad, d, element), rows, rows});
    add({bind(buildAdd, d, element), 1, 1});
    add({bind(buildMul, d, element), rows, rows});
    add({bind(buildScale, d, 0.7, element), rows, rows});
    add({bind(buildDropout, d, 0.3, element), rows, rows, {}, {}, {},
         {5 * 64 + 2, 0x1p51 + 12345}});
    for (bool packed : {false, true}) {
      add({bind(buildGatedSilu, d, packed, element), rows, rows});
      add({bind(buildGatedSiluGrad, d, packed, element), rows, rows});
    }
  }
  add({bind(buildSplat, element), 300, 300, {}, {}, {}, {0.3}});
  for (int64_t n : {5, 1024, 3 * 1024})
    add({bind(buildAccumulate, n, element), n / std::gcd(n, flatTile), 0});
  runAll();
}

TEST_P(EmittedKernels, Rows) {
  int64_t rows = 5, source = 7;
  std::vector<int64_t> chosen = {3, 0, 6, 3, 1};
  for (int64_t d : {1, 20, 1000}) {
    add({bind(buildEmbedding, source, d, element),
         rows,
         rows,
         {},
         {},
         {{0, chosen}}});
    add({bind(buildGatherRows, d, element),
         rows,
         rows,
         {{0, source}},
         {},
         {{1, chosen}}});
    add({bind(buildScatterRows, d, element),
         rows,
         rows,
         {},
         {},
         {{1, {2, -1, 0, 4, -1}}}});
    add({bind(buildEmbeddingGrad, source, d, element),
         d / columnTile(d),
         rows,
         {},
         {},
         {{1, chosen}},
         {double(rows)}});
  }
  runAll();
}

TEST_P(EmittedKernels, Rope) {
  int64_t rows = 3;
  for (int64_t e : {20, 64, 128}) {
    std::vector<double> frequencies;
    for (int64_t i = 0; i < e / 2; ++i)
      frequencies.push_back(std::pow(1e4, -2.0 * i / e));
    add({[=, this](OpBuilder &b, Location loc) {
           // Of bf16 the table is f32.
           return buildRopeTable(b, loc, frequencies,
                                 element.isBF16() ? Type(b.getF32Type())
                                                  : element);
         },
         rows,
         rows,
         {},
         {},
         {{0, {0, 3, 1000}}}});
    for (bool inverse : {false, true}) {
      add({bind(buildRope, 3 * e + 8, e, int64_t(3), inverse, element), rows,
           rows});
      add({bind(buildRope, 5 * e, e, int64_t(5), inverse, element), 1, 1});
    }
  }
  runAll();
}

TEST_P(EmittedKernels, CrossEntropy) {
  for (int64_t v : {1, 50, 2048, 5000}) {
    std::vector<int64_t> targets = {v - 1, -1, 0, v / 2};
    int64_t rows = targets.size();
    add({bind(buildCrossEntropy, v, element),
         rows,
         rows,
         {},
         {},
         {{1, targets}}});
    add({bind(buildCrossEntropyGrad, v, element),
         rows,
         rows,
         {},
         {{2, {1, 4}}},
         {{1, targets}}});
    add({bind(buildFusedCrossEntropy, v, element),
         rows,
         rows,
         {},
         {},
         {{0, targets}},
         {0.25}});
  }
  add({bind(buildReportLoss, element), 1, 40, {}, {}, {}, {37, 0.25}});
  runAll();
}

TEST_P(EmittedOptimizers, Optimizer) {
  OpBuilder &b = harness.builder;
  auto options =
      [&](std::initializer_list<std::pair<const char *, double>> list) {
        SmallVector<NamedAttribute> entries;
        for (auto [name, value] : list)
          entries.push_back(b.getNamedAttr(name, b.getF64FloatAttr(value)));
        return b.getDictionaryAttr(entries);
      };
  auto adam = options({{"beta1", 0.9},
                       {"beta2", 0.99},
                       {"epsilon", 1e-8},
                       {"weight_decay", 0.01}});
  auto adadelta =
      options({{"rho", 0.9}, {"epsilon", 1e-6}, {"weight_decay", 0.0}});
  for (int64_t n : {100, 4096}) {
    int64_t items = n / std::gcd(n, flatTile);
    std::map<unsigned, std::pair<double, double>> ranges = {
        {0, {0.5, 3}}, {3, {0, 1}}, {4, {0.1, 1}}};
    for (StringRef rule : {"adamw", "adam"})
      add({bind(buildOptimizer, rule, adam, n, element),
           items,
           1,
           {},
           ranges,
           {},
           {1.0, 1e-3, 0.1, 0.2}});
    add({bind(buildOptimizer, StringRef("sgd"),
              options({{"weight_decay", 0.0}}), n, element),
         items,
         1,
         {},
         ranges,
         {},
         {1.0, 1e-3}});
    add({bind(buildOptimizer, StringRef("adadelta"), adadelta, n, element),
         items,
         1,
         {},
         ranges,
         {},
         {1.0, 1e-3}});
    add({bind(buildSumSquares, n, std::gcd(n, flatTile), element), items,
         items});
  }
  add({bind(buildSums, int64_t(5) * 1024, int64_t(1024)), 5, 5});
  add({bind(buildAddPartials, int64_t(2), int64_t(3), int64_t(5), false), 1,
       1});
  add({bind(buildAddPartials, int64_t(1), int64_t(1), int64_t(100), true), 1,
       1});
  add({bind(buildNorm, element), 1, 1, {}, {{0, {1, 9}}}});
  runAll();
}

TEST_P(EmittedFormats, Quantise) {
  for (bool isNF4 : {true, false})
    for (int64_t n : {1, 63, 64, 1000, 64 * 9}) {
      int64_t blocks = llvm::divideCeil(n, 64);
      qt::BlockFormat plain{64, 0, isNF4}, nested{64, 4, isNF4};
      int64_t outer = llvm::divideCeil(blocks, 4);
      add({bind(buildDequantize, plain, n, element),
           blocks,
           blocks,
           {},
           {{1, {0, 2}}},
           {},
           {},
           "rows"});
      add({bind(buildDequantize, nested, n, element),
           blocks,
           blocks,
           {{2, outer}},
           {{2, {0, 2}}}});
      if (element.isF32()) {
        add({bind(static_cast<kern::FuncOp (*)(OpBuilder &, Location,
                                               qt::BlockFormat, int64_t)>(
                      [](OpBuilder &b, Location loc, qt::BlockFormat format,
                         int64_t n) {
                        return buildQuantize(b, loc, format, n);
                      }),
                  plain, n),
             blocks, blocks});
        add({bind(buildQuantizeScales, nested, blocks),
             outer,
             outer,
             {},
             {{0, {0, 2}}}});
      }
    }
  if (element.isF32()) {
    add({bind(buildScaleSum, int64_t(1000)), 1, 1});
    add({bind(buildScaleMean, int64_t(3), int64_t(100)), 1, 1});
  }
  runAll();
}

TEST_P(EmittedKernels, Matmul) {
  for (bool accumulates : {false, true})
    for (auto [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{3, 5, 7},
                           {2, 520, 300},
                           {4, 64, 32}}) {
      MatmulShape shape{};
      shape.m = m, shape.n = n, shape.k = k;
      shape.alpha = 0.5, shape.beta = accumulates;
      // Products of bf16 are also given as they were summed up.
      shape.element = element;
      shape.result = accumulates && element.isBF16()
                         ? Type(harness.builder.getF32Type())
                         : element;
      for (bool transB : {false, true}) {
        shape.transA = false, shape.transB = transB;
        add({bind(buildMatmul, shape),
             m,
             m,
             {},
             {},
             {},
             {},
             transB ? "tiles" : "rows",
             1e-4});
      }
      shape.transA = true, shape.transB = false;
      add({bind(buildMatmul, shape),
           m,
           k,
           {},
           {},
           {},
           {double(k)},
           "rows",
           1e-4});
    }
  runAll();
}

TEST_P(EmittedKernels, Attention) {
  int64_t rows = 128, tiles = rows / attentionTile;
  auto segments = numbers(rows, [](int64_t row) {
    return row < 37 ? 0 : row < 90 ? 37 : 90;
  });
  double bound = element.isBF16() ? 2e-2 : element.isF32() ? 1e-4 : 1e-10;
  for (auto [heads, kvHeads, headDim, window, packed] :
       {std::tuple<int64_t, int64_t, int64_t, int64_t, bool>{2, 1, 16, 0, true},
        {2, 2, 24, 20, false}}) {
    AttentionShape shape{heads, kvHeads, headDim, std::nullopt,
                         0.3,   packed,  element};
    if (window)
      shape.window = window;
    unsigned inputs = packed ? 1 : 3;
    auto call = [&](auto build, int64_t items, unsigned segment) {
      Call result{bind(build, shape), items, rows};
      result.integers[segment] = segments;
      result.bound = bound;
      result.family = "tiles";
      return result;
    };
    add(call(buildAttention, tiles * heads, inputs));
    Call delta = call(buildAttentionDelta, rows, 99);
    delta.family = "rows";
    add(delta);
    Call gradQ = call(buildAttentionGradQ, tiles * heads, inputs + 3);
    gradQ.ranges[inputs + 1] = {2, 4};
    add(gradQ);
    Call gradKV = call(buildAttentionGradKV, tiles * kvHeads, inputs + 3);
    gradKV.ranges[inputs + 1] = {2, 4};
    gradKV.scalars = {double(rows)};
    add(gradKV);
  }
  runAll();
}

/// Kernels whose results depend on the order of reads and writes of one memref.
class EmittedHazards : public EmittedKernels {
protected:
  void addText(StringRef text, int64_t items, int64_t rows) {
    add({[=, this](OpBuilder &b, Location) {
           OwningOpRef<ModuleOp> parsed =
               parseSourceString<ModuleOp>(text, harness.builder.getContext());
           kern::FuncOp kernel = *parsed->getOps<kern::FuncOp>().begin();
           kernel->remove();
           b.insert(kernel);
           return kernel;
         },
         items, rows});
  }
};

TEST_P(EmittedHazards, OneMemRef) {
  // The tile is that of before the store, which hits its second half.
  addText(
      R"(kern.func @shifted(%x: memref<?x200xf32>, %y: memref<?x128xf32>) grid(%r) {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %a = kern.load %x[%r, %c0] : memref<?x200xf32> -> tensor<128xf32>
    kern.store %a, %x[%r, %c64] : tensor<128xf32> -> memref<?x200xf32>
    kern.store %a, %y[%r, %c0] : tensor<128xf32> -> memref<?x128xf32>
  })",
      3, 3);
  // Each iteration reads what the one before wrote, from other threads.
  addText(R"(kern.func @wave(%x: memref<?x640xf32>) grid(%r) {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c576 = arith.constant 576 : index
    %e = tensor.empty() : tensor<64xf32>
    scf.for %i = %c0 to %c576 step %c32 {
      %a = kern.load %x[%r, %i] : memref<?x640xf32> -> tensor<64xf32>
      %to = arith.addi %i, %c32 : index
      %b = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
                           iterator_types = ["parallel"]}
          ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) {
      ^bb0(%v: f32, %o: f32):
        %n = arith.negf %v : f32
        linalg.yield %n : f32
      } -> tensor<64xf32>
      kern.store %b, %x[%r, %to] : tensor<64xf32> -> memref<?x640xf32>
    }
  })",
          2, 2);
  // The same with a block an item.
  addText(R"(kern.func @wide_wave(%x: memref<?x8192xf32>) grid(%r) {
    %c0 = arith.constant 0 : index
    %c1024 = arith.constant 1024 : index
    %c6144 = arith.constant 6144 : index
    scf.for %i = %c0 to %c6144 step %c1024 {
      %a = kern.load %x[%r, %i] : memref<?x8192xf32> -> tensor<2048xf32>
      %to = arith.addi %i, %c1024 : index
      kern.store %a, %x[%r, %to] : tensor<2048xf32> -> memref<?x8192xf32>
    }
  })",
          2, 2);
  // A number among the elements of a tile, written and read back.
  addText(
      R"(kern.func @number(%x: memref<?x1024xf32>, %y: memref<?x1024xf32>) grid(%r) {
    %c0 = arith.constant 0 : index
    %c700 = arith.constant 700 : index
    %one = arith.constant 1.0 : f32
    %a = kern.load %y[%r, %c0] : memref<?x1024xf32> -> tensor<1024xf32>
    kern.store %a, %x[%r, %c0] : tensor<1024xf32> -> memref<?x1024xf32>
    %v = memref.load %x[%r, %c700] : memref<?x1024xf32>
    %w = arith.addf %v, %one : f32
    memref.store %w, %x[%r, %c700] : memref<?x1024xf32>
    %b = kern.load %x[%r, %c0] : memref<?x1024xf32> -> tensor<1024xf32>
    kern.store %b, %y[%r, %c0] : tensor<1024xf32> -> memref<?x1024xf32>
  })",
      3, 3);
  // Two results in place of what both are made of.
  addText(R"(kern.func @exchange(%x: memref<?x256xf32>) grid(%r) {
    %c0 = arith.constant 0 : index
    %c128 = arith.constant 128 : index
    %a = kern.load %x[%r, %c0] : memref<?x256xf32> -> tensor<128xf32>
    %b = kern.load %x[%r, %c128] : memref<?x256xf32> -> tensor<128xf32>
    kern.store %b, %x[%r, %c0] : tensor<128xf32> -> memref<?x256xf32>
    kern.store %a, %x[%r, %c128] : tensor<128xf32> -> memref<?x256xf32>
  })",
          5, 5);
  // Reads of what was stored in one branch only.
  addText(
      R"(kern.func @branch(%x: memref<?x256xf32>, %y: memref<?xf32>) grid(%r) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c100 = arith.constant 100 : index
    %odd = arith.remui %r, %c2 : index
    %is = arith.cmpi eq, %odd, %c1 : index
    scf.if %is {
      %a = kern.load %x[%r, %c0] : memref<?x256xf32> -> tensor<128xf32>
      kern.store %a, %x[%r, %c100] : tensor<128xf32> -> memref<?x256xf32>
    }
    %v = memref.load %x[%r, %c100] : memref<?x256xf32>
    memref.store %v, %y[%r] : memref<?xf32>
  })",
      4, 4);
  runAll();
}

INSTANTIATE_TEST_SUITE_P(Elements, EmittedHazards, testing::Values("f32"),
                         [](const auto &info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(Elements, EmittedKernels,
                         testing::Values("f32", "f64", "bf16"),
                         [](const auto &info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Elements, EmittedOptimizers,
                         testing::Values("f32", "f64"),
                         [](const auto &info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Elements, EmittedFormats,
                         testing::Values("f32", "bf16"),
                         [](const auto &info) { return info.param; });

} // namespace
