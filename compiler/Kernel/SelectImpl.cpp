//===- SelectImpl.cpp - kern-select-impl ----------------------------------===//

#include "compiler/Kernel/Bodies.h"
#include "compiler/Kernel/Passes.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/Support/Remarks.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace fsdpq {
#define GEN_PASS_DEF_KERNSELECTIMPL
#include "compiler/Kernel/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct SelectImplPass : fsdpq::impl::KernSelectImplBase<SelectImplPass> {
  using KernSelectImplBase::KernSelectImplBase;

  void runOnOperation() override {
    if (impl != "library" && impl != "emitted") {
      getOperation().emitError("[FSDPQ-0410] impl = '")
          << impl << "'; known: library, emitted";
      return signalPassFailure();
    }
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      SymbolTable symbols(architecture);
      SmallVector<kern::GemmOp> products;
      architecture.walk([&](kern::GemmOp op) {
        if (impl == "emitted" || !isInLibrary(op))
          products.push_back(op);
      });
      for (kern::GemmOp op : products)
        if (failed(emitKernel(op, symbols)))
          return signalPassFailure();
    }
  }

private:
  static Type elementOf(Value value) {
    return cast<RankedTensorType>(value.getType()).getElementType();
  }

  /// Products with a result of the operands' type, and of bf16 with one in f32.
  bool isInLibrary(kern::GemmOp op) const {
    Type type = elementOf(op.getA()), result = elementOf(op.getOut());
    if (result != type && !(type.isBF16() && result.isF32()))
      return false;
    if (libraryTypes.empty())
      return type.isF32() || type.isBF16();
    std::string name;
    llvm::raw_string_ostream(name) << type;
    return llvm::is_contained(libraryTypes, name);
  }

  LogicalResult emitKernel(kern::GemmOp op, SymbolTable &symbols) {
    if (op.getTransA() && op.getTransB())
      return op.emitError("[FSDPQ-0412] an emitted product of two transposed "
                          "matrices is not supported; use impl = \"library\"");
    int64_t n = op.getN().getCap();
    int64_t aColumns = op.getTransA() ? op.getM().getCap() : op.getK().getCap();
    int64_t bColumns = op.getTransB() ? op.getK().getCap() : n;
    bool whole = (int64_t)op.getLda() == aColumns &&
                 (int64_t)op.getLdb() == bColumns && (int64_t)op.getLdc() == n &&
                 !op.getAOffset() && !op.getBOffset() && !op.getCOffset();
    if (!whole)
      return op.emitError("[FSDPQ-0411] an emitted product of parts of wider "
                          "matrices is not supported; use impl = \"library\"");
    OpBuilder builder(op);
    kernels::MatmulShape shape{op.getM().getCap(),
                               n,
                               op.getK().getCap(),
                               op.getTransA(),
                               op.getTransB(),
                               op.getAlpha().convertToDouble(),
                               op.getBeta().convertToDouble(),
                               elementOf(op.getA()),
                               elementOf(op.getOut())};
    Block *top = &op->getParentOfType<tfm::ArchitectureOp>().getBody().front();
    OpBuilder atStart = OpBuilder::atBlockBegin(top);
    kern::FuncOp kernel = kernels::buildMatmul(atStart, op.getLoc(), shape);
    kernel->remove();
    symbols.insert(kernel, top->begin());
    SmallVector<Attribute> extents;
    if (op.getTransA())
      extents.push_back(op.getK());
    auto call = kern::CallOp::create(
        builder, op.getLoc(), FlatSymbolRefAttr::get(kernel),
        ValueRange{op.getA(), op.getB()}, op.getOut(), op.getM(),
        builder.getArrayAttr(extents), builder.getStrArrayAttr({}),
        DenseI64ArrayAttr(), FloatAttr());
    remarkPassed(op.getLoc(), RemarkId::EmitProduct)
        << "an emitted kernel computes this product";
    op.getResult().replaceAllUsesWith(call.getResult(0));
    op.erase();
    ++numEmitted;
    return success();
  }
};
} // namespace
