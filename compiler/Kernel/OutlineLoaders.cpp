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

#include <numeric>

namespace fsdpq {
#define GEN_PASS_DEF_KERNOUTLINELOADERS
#include "compiler/Kernel/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

/// A piece that is staged has at most so many elements, if the tensor can be cut.
static constexpr int64_t pieceElements = int64_t(1) << 22;

/// How many pieces of equal size a tensor comes in. Pieces are whole blocks of
/// nested scales, so that the arrays of each lie apart from the others'.
static int64_t countPieces(int64_t elements, int64_t granule) {
  if (elements % granule != 0)
    return 1;
  int64_t granules = elements / granule;
  // Shapes that do not divide well are staged whole, not in crumbs.
  int64_t fewest = llvm::divideCeil(elements, pieceElements);
  for (int64_t pieces = fewest; pieces <= std::min(granules, 16 * fewest); ++pieces)
    if (granules % pieces == 0)
      return pieces;
  return 1;
}

namespace {
/// Writes the functions that load units and their parameters.
class LoaderBuilder {
public:
  LoaderBuilder(tfm::ArchitectureOp architecture, SymbolTable &symbols)
      : symbols(symbols), top(&architecture.getBody().front()),
        builder(architecture.getContext()) {}

  /// The buffer of a unit, empty; and what is in it, stored.
  void build(fsdp::UnitOp unit) {
    beginFunction(unit.getLoc(), "load.begin." + unit.getSymName());
    auto type = RankedTensorType::get({(int64_t)*unit.getBytes()},
                                      builder.getI8Type());
    kern::FillOp::create(
        builder, unit.getLoc(),
        fsdp::WholeOp::create(builder, unit.getLoc(), type, unit.getSymName()));
    endFunction(unit.getLoc());
    beginFunction(unit.getLoc(), "load.store." + unit.getSymName());
    fsdp::StoreOp::create(builder, unit.getLoc(), unit.getSymName());
    endFunction(unit.getLoc());
  }

  void build(tfm::ParamOp paramOp) {
    param = paramOp;
    RankedTensorType type = param.getTensorType();
    elements = type.getNumElements();
    if (auto format = qt::getBlockFormat(type.getElementType()))
      quantize(*format);
    else
      copy(type.getElementType());
  }

private:
  tfm::FuncOp beginFunction(Location loc, const Twine &name,
                            TypeRange arguments = {}) {
    builder.setInsertionPointToEnd(top);
    auto function =
        tfm::FuncOp::create(builder, loc, name.str(),
                            builder.getFunctionType(arguments, {}));
    builder.setInsertionPointToStart(&function.getBody().front());
    return function;
  }
  void endFunction(Location loc) {
    tfm::ReturnOp::create(builder, loc, ValueRange());
  }

  /// Begins the function that takes a staged piece.
  Value beginPiece() {
    auto source = RankedTensorType::get({elements / pieces}, builder.getF32Type());
    tfm::FuncOp function =
        beginFunction(param.getLoc(), "load." + param.getSymName(), source);
    function.setArgAttr(0, "tfm.port", builder.getStringAttr("staging"));
    return function.getBody().getArgument(0);
  }

  /// This piece of a stored array of `count` elements.
  Value part(StringRef name, int64_t count, Type element) {
    return fsdp::PartOp::create(
        builder, param.getLoc(),
        RankedTensorType::get({count / pieces}, element),
        FlatSymbolRefAttr::get(param.getSymNameAttr()),
        builder.getStringAttr(name), builder.getI64IntegerAttr(pieces));
  }
  /// This piece, or all (`whole`), of `count` values between functions.
  Value scratch(StringRef name, int64_t count, Type element, bool whole = false) {
    int64_t cuts = whole ? 1 : pieces;
    return fsdp::ScratchOp::create(builder, param.getLoc(),
                                   RankedTensorType::get({count / cuts}, element),
                                   builder.getStringAttr(name),
                                   builder.getI64IntegerAttr(cuts));
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
               DenseI64ArrayAttr(), FloatAttr())
        .getResults();
  }

  void copy(Type element) {
    pieces = countPieces(elements, 1);
    Value values = beginPiece();
    Value data = part("data", elements, element);
    int64_t count = elements / pieces, width = std::gcd(count, kernels::flatTile);
    if (element.isF32())
      kern::CopyOp::create(builder, param.getLoc(), values, data);
    else
      call(
          [&](OpBuilder &b, Location l) {
            return kernels::buildCast(b, l, width, builder.getF32Type(), element);
          },
          values, data, count / width);
    endFunction(param.getLoc());
  }

  void quantize(qt::BlockFormat format) {
    pieces = countPieces(elements, format.block * std::max<int64_t>(format.nested, 1));
    int64_t blocks = llvm::divideCeil(elements, format.block);
    Type i8 = builder.getI8Type(), f32 = builder.getF32Type();
    Value values = beginPiece();
    Value codes = part("codes", (elements + 1) / 2, i8);
    Value scales = format.nested ? scratch("scales", blocks, f32)
                                 : part("absmax", blocks, f32);
    scales = call(
        [&](OpBuilder &b, Location l) {
          return kernels::buildQuantize(b, l, format, elements / pieces,
                                        param.getRounded().value_or(Type()));
        },
        values, {codes, scales}, blocks / pieces)[1];
    if (format.nested)
      call(
          [&](OpBuilder &b, Location l) {
            return kernels::buildScaleSum(b, l, blocks / pieces);
          },
          scales, scratch("sums", pieces, builder.getF64Type()), 1);
    endFunction(param.getLoc());
    if (format.nested)
      quantizeScales(format, blocks);
  }

  /// The offset of nested scales is their mean, which ranks compute together.
  void quantizeScales(qt::BlockFormat format, int64_t blocks) {
    Location loc = param.getLoc();
    Type i8 = builder.getI8Type(), f32 = builder.getF32Type();
    beginFunction(loc, "load.mean." + param.getSymName());
    Value sums = fsdp::AllReduceOp::create(
        builder, loc, RankedTensorType::get({pieces}, builder.getF64Type()),
        scratch("sums", pieces, builder.getF64Type(), /*whole=*/true),
        builder.getUnitAttr());
    call(
        [&](OpBuilder &b, Location l) {
          return kernels::buildScaleMean(b, l, pieces, blocks);
        },
        sums, scratch("mean", 1, f32, /*whole=*/true), 1);
    kern::FillOp::create(builder, loc, sums);
    endFunction(loc);

    beginFunction(loc, "load.scales." + param.getSymName());
    int64_t nested = llvm::divideCeil(blocks, format.nested);
    call(
        [&](OpBuilder &b, Location l) {
          return kernels::buildQuantizeScales(b, l, format, blocks / pieces);
        },
        {scratch("scales", blocks, f32), scratch("mean", 1, f32, /*whole=*/true)},
        {part("absmax_u8", blocks, i8), part("nested_absmax", nested, f32)},
        nested / pieces);
    endFunction(loc);

    int64_t cuts = std::exchange(pieces, 1);
    beginFunction(loc, "load.offset." + param.getSymName());
    kern::CopyOp::create(builder, loc, scratch("mean", 1, f32),
                         part("offset", 1, f32));
    endFunction(loc);
    pieces = cuts;
  }

  SymbolTable &symbols;
  Block *top;
  OpBuilder builder;
  tfm::ParamOp param;
  int64_t elements = 0, pieces = 1; ///< of `param`
};

struct OutlineLoadersPass
    : fsdpq::impl::KernOutlineLoadersBase<OutlineLoadersPass> {
  void runOnOperation() override {
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      SymbolTable symbols(architecture);
      LoaderBuilder loader(architecture, symbols);
      SmallVector<fsdp::UnitOp> units(
          architecture.getBody().getOps<fsdp::UnitOp>());
      for (fsdp::UnitOp unit : units) {
        SmallVector<tfm::ParamOp> loaded;
        for (auto symbol : unit.getParams().getAsRange<FlatSymbolRefAttr>())
          if (auto param = symbols.lookup<tfm::ParamOp>(symbol.getAttr());
              !param.getInit())
            loaded.push_back(param);
        if (loaded.empty())
          continue;
        loader.build(unit);
        for (tfm::ParamOp param : loaded)
          loader.build(param);
      }
    }
  }
};
} // namespace
