//===- OutlineLoaders.cpp - kern-outline-loaders --------------------------===//

#include "compiler/Kernel/Bodies.h"
#include "compiler/Kernel/Passes.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace fsdpq {
#define GEN_PASS_DEF_KERNOUTLINELOADERS
#include "compiler/Kernel/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
/// Writes the function that stores one parameter.
class LoaderBuilder {
public:
  LoaderBuilder(tfm::ArchitectureOp architecture, SymbolTable &symbols)
      : symbols(symbols), top(&architecture.getBody().front()),
        builder(architecture.getContext()) {}

  void build(tfm::ParamOp paramOp) {
    param = paramOp;
    Location loc = param.getLoc();
    RankedTensorType type = param.getTensorType();
    auto source = RankedTensorType::get(type.getShape(), builder.getF32Type());
    builder.setInsertionPointToEnd(top);
    auto function =
        tfm::FuncOp::create(builder, loc, ("load." + param.getSymName()).str(),
                            builder.getFunctionType(source, {}));
    function.setArgAttr(0, "tfm.port", builder.getStringAttr("staging"));
    builder.setInsertionPointToStart(&function.getBody().front());
    Value values = function.getBody().getArgument(0);
    if (auto format = qt::getBlockFormat(type.getElementType()))
      quantize(*format, type.getNumElements(), values);
    else
      kern::CopyOp::create(builder, loc, values, part("data", type));
    tfm::ReturnOp::create(builder, loc, ValueRange());
  }

private:
  Value part(StringRef name, RankedTensorType type) {
    return fsdp::PartOp::create(
        builder, param.getLoc(), type,
        FlatSymbolRefAttr::get(param.getSymNameAttr()),
        builder.getStringAttr(name));
  }

  ResultRange call(llvm::function_ref<kern::FuncOp(OpBuilder &, Location)> body,
                   ValueRange inputs, ValueRange outs, int64_t items) {
    OpBuilder atStart = OpBuilder::atBlockBegin(top);
    kern::FuncOp kernel = body(atStart, param.getLoc());
    kernel->remove();
    symbols.insert(kernel, top->begin());
    return kern::CallOp::create(
               builder, param.getLoc(), FlatSymbolRefAttr::get(kernel), inputs,
               outs, kern::ExtentAttr::getConstant(builder.getContext(), items),
               builder.getArrayAttr({}), builder.getStrArrayAttr({}),
               DenseI64ArrayAttr())
        .getResults();
  }

  void quantize(qt::BlockFormat format, int64_t elements, Value values) {
    int64_t blocks = (elements + format.block - 1) / format.block;
    Type i8 = builder.getI8Type(), f32 = builder.getF32Type();
    auto scalesType = RankedTensorType::get({blocks}, f32);
    Value codes = part("codes", RankedTensorType::get({(elements + 1) / 2}, i8));
    Value scales = format.nested
                       ? Value(kern::EmptyOp::create(builder, param.getLoc(),
                                                     scalesType))
                       : part("absmax", scalesType);
    scales = call(
        [&](OpBuilder &b, Location l) {
          return kernels::buildQuantize(b, l, format, elements);
        },
        values, {codes, scales}, blocks)[1];
    if (!format.nested)
      return;
    Value offset = call(
        [&](OpBuilder &b, Location l) {
          return kernels::buildScaleMean(b, l, blocks);
        },
        scales, part("offset", RankedTensorType::get({1}, f32)), 1)[0];
    int64_t nested = (blocks + format.nested - 1) / format.nested;
    call(
        [&](OpBuilder &b, Location l) {
          return kernels::buildQuantizeScales(b, l, format, blocks);
        },
        {scales, offset},
        {part("absmax_u8", RankedTensorType::get({blocks}, i8)),
         part("nested_absmax", RankedTensorType::get({nested}, f32))},
        nested);
  }

  SymbolTable &symbols;
  Block *top;
  OpBuilder builder;
  tfm::ParamOp param;
};

struct OutlineLoadersPass
    : fsdpq::impl::KernOutlineLoadersBase<OutlineLoadersPass> {
  void runOnOperation() override {
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      SymbolTable symbols(architecture);
      LoaderBuilder loader(architecture, symbols);
      SmallVector<tfm::ParamOp> params(
          architecture.getBody().getOps<tfm::ParamOp>());
      for (tfm::ParamOp param : params)
        if (!param.getInit())
          loader.build(param);
    }
  }
};
} // namespace
