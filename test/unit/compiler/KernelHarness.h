//===- KernelHarness.h - Builds, compiles and runs kernels ------*- C++ -*-===//
#pragma once

#include "compiler/Kernel/Bodies.h"
#include "compiler/Target/Cpu/ObjectCompiler.h"
#include "compiler/Target/Cpu/Passes.h"
#include "runtime/support/HalfFloat.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace fsdpq::test {

/// An element stored in bf16.
struct Bf16 {
  Bf16() = default;
  explicit Bf16(double value) : bits(rt::f32ToBf16(float(value))) {}
  operator float() const { return rt::bf16ToF32(bits); }
  uint16_t bits = 0;
};

/// The type in which elements of T are summed up.
template <typename T>
using Sum = std::conditional_t<std::is_same_v<T, Bf16>, float, T>;

/// Kernels are added, then compiled together before the first one runs.
class KernelHarness {
public:
  using Entry = void (*)(void *const *, int64_t, int64_t);

  KernelHarness() : builder(&context) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    DialectRegistry registry;
    cpu::registerCpuDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToEnd(module->getBody());
    handler.emplace(&context, [this](Diagnostic &diagnostic) {
      errors += diagnostic.str() + "\n";
    });
  }

  template <typename T>
  Type type() {
    return std::is_same_v<T, double> ? Type(builder.getF64Type())
           : std::is_same_v<T, Bf16> ? Type(builder.getBF16Type())
                                     : Type(builder.getF32Type());
  }

  /// `build(OpBuilder &, Location)`. Gives the name to run the kernel by.
  template <typename Build>
  std::string add(Build build) {
    kern::FuncOp kernel = build(builder, builder.getUnknownLoc());
    EXPECT_TRUE(succeeded(verify(kernel))) << errors;
    kernel.setSymName(
        (kernel.getSymName() + "_" + Twine(kernels.size())).str());
    kernels.push_back(kernel);
    return kernel.getSymName().str();
  }

  /// Runs all items in two calls.
  template <typename... Args>
  void run(StringRef name, int64_t items, Args *...arguments) {
    Entry entry = lookUp(name);
    ASSERT_TRUE(entry) << name.str() << ": " << errors;
    errors.clear();
    void *pointers[] = {
        const_cast<void *>(static_cast<const void *>(arguments))...};
    entry(pointers, 0, items / 3);
    entry(pointers, items / 3, items);
  }

  Entry lookUp(StringRef name) {
    if (!jit && !compile())
      return nullptr;
    auto symbol = jit->lookup(name);
    if (!symbol) {
      errors += llvm::toString(symbol.takeError());
      return nullptr;
    }
    return symbol->toPtr<Entry>();
  }

  std::string errors;
  MLIRContext context;
  OpBuilder builder;

private:
  bool compile() {
    auto compiled =
        cpu::compileKernels(kernels, cpu::TargetMachineOptions::host(), "", 0);
    if (failed(compiled))
      return false;
    jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
    auto process =
        llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
            jit->getDataLayout().getGlobalPrefix());
    jit->getMainJITDylib().addGenerator(llvm::cantFail(std::move(process)));
    for (const cpu::CompiledKernel &kernel : *compiled)
      llvm::cantFail(jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(
          StringRef(reinterpret_cast<const char *>(kernel.object.data()),
                    kernel.object.size()))));
    return true;
  }

  OwningOpRef<ModuleOp> module;
  std::optional<ScopedDiagnosticHandler> handler;
  SmallVector<kern::FuncOp> kernels;
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

/// The tolerance of results in T: relative, and absolute below 1.
template <typename T>
constexpr double tolerance = std::is_same_v<T, Bf16>  ? 0x1p-8
                             : std::is_same_v<T, float> ? 1e-5
                                                        : 1e-11;

template <typename T>
void expectNear(const std::vector<T> &actual, const std::vector<double> &wanted,
                const char *what, double bound = tolerance<T>) {
  ASSERT_EQ(actual.size(), wanted.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], wanted[i], bound * (1 + std::abs(wanted[i])))
        << what << " at " << i;
}

/// That results in bf16 were rounded once: to half a unit in the last place, and
/// what f32 leaves before. Nothing for other types.
template <typename T>
void expectRounded(const std::vector<T> &actual,
                   const std::vector<double> &wanted, const char *what) {
  if constexpr (std::is_same_v<T, Bf16>) {
    for (size_t i = 0; i < actual.size(); ++i)
      ASSERT_NEAR(actual[i], wanted[i],
                  (0x1p-8 + 1e-5) * std::abs(wanted[i]) + 1e-6)
          << what << " at " << i;
  }
}

template <typename T>
std::vector<double> widen(const std::vector<T> &values) {
  return std::vector<double>(values.begin(), values.end());
}

} // namespace fsdpq::test
