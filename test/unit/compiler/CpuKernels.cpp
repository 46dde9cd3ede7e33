//===- CpuKernels.cpp - Compiled kernel bodies against plain loops --------===//
//
// The bodies are the lit inputs of test/Target/Cpu.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cpu/ObjectCompiler.h"
#include "compiler/Target/Cpu/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

using namespace mlir;
using namespace fsdpq;

namespace {

using Entry = void (*)(void *const *, int64_t, int64_t);

/// The kernels of one .mlir file, compiled and loaded.
class Kernels {
public:
  explicit Kernels(StringRef text, StringRef cacheDir = {},
                   const cpu::TargetMachineOptions &target =
                       cpu::TargetMachineOptions::host()) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    DialectRegistry registry;
    cpu::registerCpuDialects(registry);
    MLIRContext context(registry);
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      errors += diagnostic.str() + "\n";
    });
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return;
    SmallVector<kern::FuncOp> functions(module->getOps<kern::FuncOp>());
    auto result = cpu::compileKernels(functions, target, cacheDir, 0);
    if (failed(result))
      return;
    compiled = std::move(*result);
    jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
    auto process =
        llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
            jit->getDataLayout().getGlobalPrefix());
    jit->getMainJITDylib().addGenerator(llvm::cantFail(std::move(process)));
    for (const cpu::CompiledKernel &kernel : compiled)
      llvm::cantFail(jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(
          StringRef(reinterpret_cast<const char *>(kernel.object.data()),
                    kernel.object.size()))));
  }

  static Kernels fromFile(StringRef name,
                          const cpu::TargetMachineOptions &target =
                              cpu::TargetMachineOptions::host()) {
    SmallString<128> path(FSDPQ_TEST_INPUTS);
    path += ("/../Target/Cpu/" + name).str();
    auto file = llvm::MemoryBuffer::getFile(path);
    EXPECT_TRUE(bool(file)) << path.c_str();
    return Kernels(file ? (*file)->getBuffer() : StringRef(), {}, target);
  }

  /// Runs items [begin, end) in two calls.
  template <typename... Args>
  void run(StringRef name, int64_t begin, int64_t end, Args *...arguments) {
    ASSERT_TRUE(jit) << errors;
    auto symbol = jit->lookup(name);
    ASSERT_TRUE(bool(symbol)) << llvm::toString(symbol.takeError());
    auto entry = symbol->toPtr<Entry>();
    void *pointers[] = {
        const_cast<void *>(static_cast<const void *>(arguments))...};
    int64_t middle = begin + (end - begin) / 3;
    entry(pointers, begin, middle);
    entry(pointers, middle, end);
  }

  std::string errors;
  std::vector<cpu::CompiledKernel> compiled;
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

template <typename T>
std::vector<T> uniform(size_t count, double low, double high, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> distribution(low, high);
  std::vector<T> values(count);
  for (T &value : values)
    value = T(distribution(generator));
  return values;
}

template <typename T>
void expectNear(const std::vector<T> &actual, const std::vector<double> &wanted,
                double tolerance) {
  ASSERT_EQ(actual.size(), wanted.size());
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], wanted[i], tolerance * (1 + std::abs(wanted[i])))
        << "at " << i;
}

template <typename T>
void checkRmsNorm(Kernels &kernels, StringRef name, int64_t d,
                  double tolerance) {
  int64_t rows = 5;
  auto x = uniform<T>(rows * d, -2, 2, 1), w = uniform<T>(d, 0, 2, 2);
  std::vector<T> y(rows * d);
  std::vector<double> wanted;
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < d; ++i)
      sum += double(x[row * d + i]) * x[row * d + i];
    for (int64_t i = 0; i < d; ++i)
      wanted.push_back(x[row * d + i] / std::sqrt(sum / d + 1e-5) * w[i]);
  }
  kernels.run(name, 0, rows, x.data(), w.data(), y.data());
  expectNear(y, wanted, tolerance);
}

TEST(CpuKernels, RmsNorm) {
  Kernels kernels = Kernels::fromFile("rms-norm.mlir");
  checkRmsNorm<float>(kernels, "rms_norm_576", 576, 1e-6);
  checkRmsNorm<float>(kernels, "rms_norm_4096", 4096, 1e-6);
  checkRmsNorm<double>(kernels, "rms_norm_100_f64", 100, 1e-14);
}

template <typename T>
void checkGated(Kernels &kernels, StringRef name, int64_t f, double tolerance) {
  int64_t rows = 4;
  auto x = uniform<T>(rows * 2 * f, -20, 20, 3);
  x[0] = T(-200); // exp of its negative is infinite in f32
  std::vector<T> y(rows * f);
  std::vector<double> wanted;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < f; ++i) {
      double gate = x[row * 2 * f + i];
      wanted.push_back(gate / (1 + std::exp(-gate)) * x[row * 2 * f + f + i]);
    }
  kernels.run(name, 0, rows, x.data(), y.data());
  expectNear(y, wanted, tolerance);
}

TEST(CpuKernels, Gated) {
  Kernels kernels = Kernels::fromFile("gated.mlir");
  checkGated<float>(kernels, "silu_1536", 1536, 1e-6);
  checkGated<double>(kernels, "silu_100_f64", 100, 1e-14);
}

void checkDequantize(Kernels &kernels) {
  // The tables as the body has them; two entries of the dynamic map suffice.
  const float nf4[16] = {-1.0f,        -0.6961928f,  -0.52507305f,  -0.3949175f,
                         -0.28444138f, -0.18477343f, -0.091050036f, 0.0f,
                         0.0795803f,   0.1609302f,   0.2461123f,    0.33791524f,
                         0.44070983f,  0.562617f,    0.72295684f,   1.0f};
  int64_t blocks = 515;
  std::mt19937 generator(4);
  std::vector<uint8_t> codes(blocks * 32), absmax(blocks);
  for (uint8_t &code : codes)
    code = generator();
  for (uint8_t &code : absmax)
    code = generator() % 2 ? 255 : 254;
  std::vector<float> nested = {0.013f, 0.0271f, 0.33f}, offset = {0.1234567f};
  std::vector<float> y(blocks * 64);
  kernels.run("dequantize_nf4", 0, blocks, codes.data(), absmax.data(),
              nested.data(), offset.data(), y.data());
  for (int64_t block = 0; block < blocks; ++block) {
    volatile float product =
        (absmax[block] == 255 ? 1.0f : 0.99296874f) * nested[block / 256];
    volatile float scale = product + offset[0];
    for (int64_t i = 0; i < 64; ++i) {
      uint8_t pair = codes[block * 32 + i / 2];
      float value = nf4[i % 2 ? pair & 15 : pair >> 4];
      ASSERT_EQ(y[block * 64 + i], value * scale) << block << " " << i;
    }
  }
}

TEST(CpuKernels, DequantizeNF4IsExact) {
  Kernels kernels = Kernels::fromFile("dequantize-nf4.mlir");
  checkDequantize(kernels);
}

void checkCrossEntropy(Kernels &kernels, StringRef name, int64_t v) {
  int64_t rows = 3;
  auto logits = uniform<float>(rows * v, -8, 8, 5);
  std::vector<int32_t> labels = {0, int32_t(v - 1), 777};
  std::vector<float> losses(rows);
  double weight = 0.125;
  std::vector<double> gradients, wantedLosses;
  for (int64_t row = 0; row < rows; ++row) {
    const float *x = &logits[row * v];
    double sum = 0;
    for (int64_t i = 0; i < v; ++i)
      sum += std::exp(double(x[i]));
    wantedLosses.push_back(std::log(sum) - x[labels[row]]);
    for (int64_t i = 0; i < v; ++i)
      gradients.push_back(weight *
                          (std::exp(double(x[i])) / sum - (i == labels[row])));
  }
  kernels.run(name, 0, rows, logits.data(), labels.data(), losses.data(),
              &weight);
  expectNear(losses, wantedLosses, 1e-6);
  expectNear(logits, gradients, 1e-7);
}

TEST(CpuKernels, CrossEntropyInPlace) {
  Kernels kernels = Kernels::fromFile("cross-entropy.mlir");
  checkCrossEntropy(kernels, "cross_entropy_49152", 49152);
  checkCrossEntropy(kernels, "cross_entropy_128256", 128256);
}

TEST(CpuKernels, AdamW) {
  Kernels kernels = Kernels::fromFile("adamw.mlir");
  int64_t count = 3 * 1024;
  auto p = uniform<float>(count, -1, 1, 6), g = uniform<float>(count, -1, 1, 7),
       m = uniform<float>(count, -1, 1, 8), v = uniform<float>(count, 0, 1, 9);
  double rate = 0.01, correction1 = 0.271, correction2 = 0.003;
  std::vector<double> wantedP, wantedM, wantedV;
  for (int64_t i = 0; i < count; ++i) {
    wantedM.push_back(0.9 * m[i] + 0.1 * g[i]);
    wantedV.push_back(0.999 * v[i] + 0.001 * g[i] * g[i]);
    double update =
        wantedM[i] / correction1 / (std::sqrt(wantedV[i] / correction2) + 1e-8);
    wantedP.push_back(p[i] - rate * (update + 0.01 * p[i]));
  }
  kernels.run("adamw", 0, 3, p.data(), g.data(), m.data(), v.data(), &rate,
              &correction1, &correction2);
  expectNear(p, wantedP, 1e-6);
  expectNear(m, wantedM, 1e-6);
  expectNear(v, wantedV, 1e-6);
}

template <typename T>
void checkAttention(Kernels &kernels, StringRef name, int64_t heads, int64_t e,
                    double tolerance) {
  int64_t tokens = 160, width = heads * e;
  auto q = uniform<T>(tokens * width, -2, 2, 10),
       k = uniform<T>(tokens * width, -2, 2, 11),
       v = uniform<T>(tokens * width, -2, 2, 12);
  std::vector<int32_t> segment(tokens);
  for (int64_t i = 0; i < tokens; ++i)
    segment[i] = i < 7 ? 0 : i < 77 ? 7 : 77;
  std::vector<T> out(tokens * width), lse(tokens * heads);
  std::vector<double> wanted(tokens * width), wantedLse(tokens * heads);
  for (int64_t i = 0; i < tokens; ++i)
    for (int64_t h = 0; h < heads; ++h) {
      double sum = 0;
      std::vector<double> values(e);
      for (int64_t j = segment[i]; j <= i; ++j) {
        double dot = 0;
        for (int64_t c = 0; c < e; ++c)
          dot += double(q[i * width + h * e + c]) * k[j * width + h * e + c];
        double weight = std::exp(dot / std::sqrt(double(e)));
        sum += weight;
        for (int64_t c = 0; c < e; ++c)
          values[c] += weight * v[j * width + h * e + c];
      }
      for (int64_t c = 0; c < e; ++c)
        wanted[i * width + h * e + c] = values[c] / sum;
      wantedLse[i * heads + h] = std::log(sum);
    }
  kernels.run(name, 0, tokens / 32 * heads, q.data(), k.data(), v.data(),
              segment.data(), out.data(), lse.data());
  expectNear(out, wanted, tolerance);
  expectNear(lse, wantedLse, tolerance);
}

TEST(CpuKernels, Attention) {
  Kernels kernels = Kernels::fromFile("attention.mlir");
  checkAttention<float>(kernels, "attention_64", 2, 64, 3e-6);
  checkAttention<float>(kernels, "attention_80", 1, 80, 3e-6);
  checkAttention<double>(kernels, "attention_16_f64", 2, 16, 1e-13);
}

template <typename T>
void checkContraction(Kernels &kernels, StringRef name, int64_t m, int64_t n,
                      int64_t k, bool transA, bool transB, double tolerance) {
  auto a = uniform<T>(m * k, -1, 1, 13), b = uniform<T>(k * n, -1, 1, 14),
       c = uniform<T>(m * n, -1, 1, 15);
  std::vector<double> wanted(c.begin(), c.end());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t r = 0; r < k; ++r)
        wanted[i * n + j] += double(transA ? a[r * m + i] : a[i * k + r]) *
                             (transB ? b[j * k + r] : b[r * n + j]);
  kernels.run(name, 0, 1, a.data(), b.data(), c.data());
  expectNear(c, wanted, tolerance);
}

TEST(CpuKernels, Contractions) {
  Kernels kernels = Kernels::fromFile("contraction.mlir");
  checkContraction<float>(kernels, "nn", 13, 37, 29, false, false, 2e-6);
  checkContraction<float>(kernels, "tn", 32, 48, 64, true, false, 2e-6);
  checkContraction<float>(kernels, "nt", 16, 100, 80, false, true, 2e-6);
  checkContraction<float>(kernels, "tt", 9, 64, 32, true, true, 2e-6);
  checkContraction<double>(kernels, "nt_f64", 8, 20, 12, false, true, 1e-14);
}

// Sixteen registers of 256 bits, and tables without permutes.
TEST(CpuKernels, WithoutAvx512) {
  cpu::TargetMachineOptions target = cpu::TargetMachineOptions::host();
  if (target.features.find("+avx2") == std::string::npos)
    GTEST_SKIP() << "this CPU has no AVX2";
  target = {"haswell", "+avx2,+fma"};
  Kernels attention = Kernels::fromFile("attention.mlir", target);
  checkAttention<float>(attention, "attention_64", 2, 64, 3e-6);
  checkAttention<double>(attention, "attention_16_f64", 2, 16, 1e-13);
  Kernels dequantize = Kernels::fromFile("dequantize-nf4.mlir", target);
  checkDequantize(dequantize);
  Kernels contraction = Kernels::fromFile("contraction.mlir", target);
  checkContraction<float>(contraction, "nt", 16, 100, 80, false, true, 2e-6);
}

// exp at the ends of its range, and what is not a number.
TEST(CpuKernels, Exp) {
  Kernels kernels(R"(
    #id = affine_map<(d0) -> (d0)>
    kern.func @exp(%x: memref<?x64xf32>) grid(%row) {
      %c0 = arith.constant 0 : index
      %a = kern.load %x[%row, %c0] : memref<?x64xf32> -> tensor<64xf32>
      %e = tensor.empty() : tensor<64xf32>
      %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) {
      ^bb0(%v: f32, %o: f32):
        %w = math.exp %v : f32
        linalg.yield %w : f32
      } -> tensor<64xf32>
      kern.store %b, %x[%row, %c0] : tensor<64xf32> -> memref<?x64xf32>
    })");
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x;
  for (float value = -86; value < 88.72f; value += 0.00391f)
    x.push_back(value);
  x.resize(x.size() / 64 * 64);
  auto y = x;
  kernels.run("exp", 0, x.size() / 64, y.data());
  for (size_t i = 0; i < x.size(); ++i) {
    double wanted = std::exp(double(x[i]));
    ASSERT_NEAR(y[i] / wanted, 1, 1.5e-7) << x[i];
  }
  std::vector<float> ends = {-infinity, infinity, NAN,    0,
                             -1e30f,    88.72f,   88.73f, 1e30f};
  ends.resize(64);
  kernels.run("exp", 0, 1, ends.data());
  EXPECT_EQ(ends[0], 0);
  EXPECT_EQ(ends[1], infinity);
  EXPECT_TRUE(std::isnan(ends[2]));
  EXPECT_EQ(ends[3], 1);
  EXPECT_EQ(ends[4], 0);
  EXPECT_TRUE(std::isfinite(ends[5]));
  EXPECT_EQ(ends[6], infinity);
  EXPECT_EQ(ends[7], infinity);
}

// The same bits, whatever pieces the grid is cut into.
TEST(CpuKernels, CutsDoNotMatter) {
  Kernels kernels = Kernels::fromFile("rms-norm.mlir");
  int64_t rows = 9;
  auto x = uniform<float>(rows * 576, -2, 2, 17),
       w = uniform<float>(576, 0, 2, 18);
  std::vector<float> whole(rows * 576), pieces(rows * 576);
  kernels.run("rms_norm_576", 0, rows, x.data(), w.data(), whole.data());
  for (int64_t row = 0; row < rows; ++row)
    kernels.run("rms_norm_576", row, row + 1, x.data(), w.data(),
                pieces.data());
  EXPECT_EQ(whole, pieces);
}

// Each item writes what it has read elsewhere in the same memref: stores must
// not be seen by loads that come before them.
TEST(CpuKernels, LoadsAreValues) {
  Kernels kernels(R"(
    kern.func @swap(%x: memref<?x2x40xf32>) grid(%row) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %a = kern.load %x[%row, %c0, %c0] : memref<?x2x40xf32> -> tensor<40xf32>
      %b = kern.load %x[%row, %c1, %c0] : memref<?x2x40xf32> -> tensor<40xf32>
      kern.store %b, %x[%row, %c0, %c0] : tensor<40xf32> -> memref<?x2x40xf32>
      kern.store %a, %x[%row, %c1, %c0] : tensor<40xf32> -> memref<?x2x40xf32>
    }
    #id = affine_map<(d0) -> (d0)>
    #flip = affine_map<(d0) -> (39 - d0)>
    kern.func @flip(%x: memref<?x40xf32>) grid(%row) {
      %c0 = arith.constant 0 : index
      %a = kern.load %x[%row, %c0] : memref<?x40xf32> -> tensor<40xf32>
      %e = tensor.empty() : tensor<40xf32>
      %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%a : tensor<40xf32>) outs(%e : tensor<40xf32>) {
      ^bb0(%v: f32, %o: f32):
        %i = linalg.index 0 : index
        %last = arith.constant 39 : index
        %j = arith.subi %last, %i : index
        %w = tensor.extract %a[%j] : tensor<40xf32>
        linalg.yield %w : f32
      } -> tensor<40xf32>
      kern.store %b, %x[%row, %c0] : tensor<40xf32> -> memref<?x40xf32>
    })");
  auto x = uniform<float>(3 * 80, -1, 1, 16);
  auto wanted = x;
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t i = 0; i < 40; ++i)
      std::swap(wanted[row * 80 + i], wanted[row * 80 + 40 + i]);
  kernels.run("swap", 0, 3, x.data());
  EXPECT_EQ(x, wanted);
  for (int64_t row = 0; row < 6; ++row)
    std::reverse(wanted.begin() + row * 40, wanted.begin() + (row + 1) * 40);
  kernels.run("flip", 0, 6, x.data());
  EXPECT_EQ(x, wanted);
}

TEST(CpuKernels, CacheIgnoresDamagedFiles) {
  SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("fsdpq-cache", folder));
  const char *text = R"(
    kern.func @one(%x: memref<?xf32>) grid(%row) {
      %v = arith.constant 1.0 : f32
      memref.store %v, %x[%row] : memref<?xf32>
    })";
  Kernels first(text, folder);
  ASSERT_EQ(first.compiled.size(), 1u) << first.errors;
  EXPECT_FALSE(first.compiled[0].fromCache);
  Kernels second(text, folder);
  EXPECT_TRUE(second.compiled[0].fromCache);
  EXPECT_EQ(second.compiled[0].object, first.compiled[0].object);
  EXPECT_EQ(second.compiled[0].hash, first.compiled[0].hash);

  std::string path = (folder + "/" + first.compiled[0].hash + ".o").str();
  {
    std::error_code error;
    llvm::raw_fd_ostream file(path, error, llvm::sys::fs::CD_OpenExisting);
    ASSERT_FALSE(error);
    file << "damaged";
  }
  Kernels third(text, folder);
  EXPECT_FALSE(third.compiled[0].fromCache);
  EXPECT_EQ(third.compiled[0].object, first.compiled[0].object);
  llvm::sys::fs::remove_directories(folder);
}

TEST(CpuKernels, TooLargeFrameNamesTheKernel) {
  Kernels kernels(R"(
    kern.func @wide(%x: memref<?x99999xf32>) grid(%row) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %a = kern.load %x[%row, %c0] : memref<?x99999xf32> -> tensor<99999xf32>
      %next = arith.addi %row, %c1 : index
      %b = kern.load %x[%next, %c0] : memref<?x99999xf32> -> tensor<99999xf32>
      kern.store %b, %x[%row, %c0] : tensor<99999xf32> -> memref<?x99999xf32>
      kern.store %a, %x[%next, %c0] : tensor<99999xf32> -> memref<?x99999xf32>
    })");
  EXPECT_NE(kernels.errors.find("kernel @wide needs"), std::string::npos)
      << kernels.errors;
}

} // namespace
