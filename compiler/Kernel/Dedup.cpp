//===- Dedup.cpp - kern-dedup ---------------------------------------------===//

#include "compiler/Kernel/Passes.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/Kern/Kern.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"

namespace fsdpq {
#define GEN_PASS_DEF_KERNDEDUP
#include "compiler/Kernel/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

/// A kernel's text without its name: equal texts are equal kernels.
static std::string printBody(kern::FuncOp kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  StringAttr name = kernel.getSymNameAttr();
  kernel.setSymName("_");
  kernel->print(os, OpPrintingFlags().useLocalScope());
  kernel.setSymNameAttr(name);
  return text;
}

/// The name without the number a symbol table appended ("add_3" is "add").
static StringRef getFamily(StringRef name) {
  StringRef stem = name.rtrim("0123456789");
  return stem.size() < name.size() && stem.ends_with("_") ? stem.drop_back()
                                                          : name;
}

namespace {
struct DedupPass : fsdpq::impl::KernDedupBase<DedupPass> {
  void runOnOperation() override {
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>())
      dedup(architecture);
  }

private:
  void dedup(tfm::ArchitectureOp architecture) {
    llvm::StringMap<kern::FuncOp> byText;
    llvm::DenseMap<Attribute, kern::FuncOp> keptOf;
    SmallVector<kern::FuncOp> kept, joined;
    // Kernels were inserted at the front; their first caller's order is the
    // reverse, and gives the numbering.
    SmallVector<kern::FuncOp> kernels(
        architecture.getBody().getOps<kern::FuncOp>());
    for (kern::FuncOp kernel : llvm::reverse(kernels)) {
      auto [place, isNew] = byText.try_emplace(printBody(kernel), kernel);
      keptOf[kernel.getSymNameAttr()] = place->second;
      (isNew ? kept : joined).push_back(kernel);
    }
    SmallVector<std::pair<kern::CallOp, kern::FuncOp>> calls;
    architecture.walk([&](kern::CallOp call) {
      calls.push_back({call, keptOf[call.getCalleeAttr().getAttr()]});
    });
    for (kern::FuncOp kernel : joined)
      kernel.erase();
    numJoined += joined.size();

    llvm::StringMap<unsigned> families;
    Builder builder(&getContext());
    SmallVector<StringAttr> names;
    for (kern::FuncOp kernel : kept) {
      StringRef family = getFamily(kernel.getSymName());
      unsigned number = families[family]++;
      names.push_back(builder.getStringAttr(
          number ? family + "." + Twine(number) : Twine(family)));
    }
    // All at once: a new name may be another kernel's old one.
    for (auto [kernel, name] : llvm::zip(kept, names))
      kernel.setSymNameAttr(name);
    for (auto [call, kernel] : calls)
      call.setCallee(kernel.getSymName());
    for (kern::FuncOp kernel : llvm::reverse(kept))
      kernel->moveBefore(&architecture.getBody().front(),
                         architecture.getBody().front().begin());
  }
};
} // namespace
