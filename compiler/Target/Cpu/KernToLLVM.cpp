//===- KernToLLVM.cpp - The pass kern-to-llvm -----------------------------===//

#include "compiler/Target/Cpu/Lowering.h"
#include "compiler/Target/Cpu/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace fsdpq;

void cpu::registerCpuDialects(DialectRegistry &registry) {
  registry.insert<kern::KernDialect, affine::AffineDialect, arith::ArithDialect,
                  bufferization::BufferizationDialect, cf::ControlFlowDialect,
                  func::FuncDialect, linalg::LinalgDialect, LLVM::LLVMDialect,
                  math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                  tensor::TensorDialect, vector::VectorDialect>();
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
}

/// Structured control flow and affine arithmetic to branches.
static LogicalResult lowerControlFlow(ModuleOp module) {
  MLIRContext *context = module.getContext();
  RewritePatternSet patterns(context);
  populateAffineToStdConversionPatterns(patterns);
  populateSCFToControlFlowConversionPatterns(patterns);
  ConversionTarget target(*context);
  target.addIllegalDialect<scf::SCFDialect, affine::AffineDialect>();
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  return applyPartialConversion(module, target, std::move(patterns));
}

namespace {

/// The bits of constants in bf16.
struct Bf16ConstantBits : OpConversionPattern<arith::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isBF16())
      return failure();
    Type type = getTypeConverter()->convertType(op.getType());
    Attribute bits;
    if (auto scalar = dyn_cast<FloatAttr>(op.getValue()))
      bits = IntegerAttr::get(type, scalar.getValue().bitcastToAPInt());
    else if (auto tile = dyn_cast<DenseElementsAttr>(op.getValue()))
      bits = tile.bitcast(rewriter.getI16Type());
    else
      return failure();
    rewriter.replaceOpWithNewOp<LLVM::ConstantOp>(op, type,
                                                  cast<TypedAttr>(bits));
    return success();
  }
};

} // namespace

/// bf16 is 16 bits to LLVM: nothing computes in it, and of selections between
/// values in it the code generator makes calls into a run-time library.
static void convertBf16ToBits(LLVMTypeConverter &converter,
                              RewritePatternSet &patterns) {
  converter.addConversion([](BFloat16Type type) -> Type {
    return IntegerType::get(type.getContext(), 16);
  });
  patterns.add<Bf16ConstantBits>(converter, patterns.getContext(),
                                 /*benefit=*/2);
}

static LogicalResult convertToLLVM(ModuleOp module) {
  MLIRContext *context = module.getContext();
  LowerToLLVMOptions options(context);
  options.useBarePtrCallConv = true;
  LLVMTypeConverter converter(context, options);
  RewritePatternSet patterns(context);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateMathToLibmConversionPatterns(patterns, /*benefit=*/0);
  index::populateIndexToLLVMConversionPatterns(converter, patterns);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  convertBf16ToBits(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  return applyFullConversion(module, target, std::move(patterns));
}

/// The function that the runtime calls: unpacks the arguments.
static void createEntry(ModuleOp module, StringRef name, TypeRange types) {
  Location loc = module.getLoc();
  MLIRContext *context = module.getContext();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto items = module.lookupSymbol<LLVM::LLVMFuncOp>((name + ".items").str());
  items.setLinkage(LLVM::Linkage::Internal);

  auto pointer = LLVM::LLVMPointerType::get(context);
  Type i64 = builder.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                          {pointer, i64, i64});
  auto entry = LLVM::LLVMFuncOp::create(builder, loc, name, type);
  entry.setPassthroughAttr(
      builder.getArrayAttr(builder.getStringAttr("nounwind")));
  Block *block = entry.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  SmallVector<Value> arguments;
  for (auto [index, argumentType] : llvm::enumerate(types)) {
    Value cell = LLVM::GEPOp::create(builder, loc, pointer, pointer,
                                     block->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{int32_t(index)});
    Value argument = LLVM::LoadOp::create(builder, loc, pointer, cell);
    if (!isa<MemRefType>(argumentType))
      argument = LLVM::LoadOp::create(builder, loc, argumentType, argument);
    arguments.push_back(argument);
  }
  arguments.push_back(block->getArgument(1));
  arguments.push_back(block->getArgument(2));
  LLVM::CallOp::create(builder, loc, items, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
}

namespace fsdpq::cpu {
#define GEN_PASS_DEF_KERNTOLLVM
#include "compiler/Target/Cpu/Passes.h.inc"
} // namespace fsdpq::cpu

namespace {

class KernToLLVM : public cpu::impl::KernToLLVMBase<KernToLLVM> {
public:
  using KernToLLVMBase::KernToLLVMBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    cpu::registerCpuDialects(registry);
  }

  LogicalResult initialize(MLIRContext *context) override {
    cleanUp.addPass(createCanonicalizerPass(
        GreedyRewriteConfig().setRegionSimplificationLevel(
            GreedySimplifyRegionLevel::Disabled)));
    cleanUp.addPass(createCSEPass());
    return success();
  }

  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }

private:
  LogicalResult run();
  LogicalResult lowerKernel(kern::FuncOp kernel);

  OpPassManager cleanUp{ModuleOp::getOperationName()};
};

} // namespace

LogicalResult KernToLLVM::lowerKernel(kern::FuncOp kernel) {
  if (vectorBits != 128 && vectorBits != 256 && vectorBits != 512)
    return kernel.emitError("kern-to-llvm: vector-bits must be 128, 256 or "
                            "512, got ")
           << vectorBits;
  // Sixteen vector registers below AVX-512, thirty-two with it.
  cpu::LoweringOptions options{vectorBits, vectorBits == 512 ? 8u : 4u, 2,
                               permutes};
  if (kern::ScheduleAttr schedule = kernel.getScheduleAttr()) {
    if (schedule.getVector())
      options.vectorBits =
          std::min<unsigned>(vectorBits, schedule.getVector() * 32);
    if (schedule.getTileRows()) {
      options.tileRows = schedule.getTileRows();
      options.tileVectors = schedule.getTileVectors();
    }
  }
  if (failed(cpu::fuseElementwise(kernel)))
    return failure();
  FailureOr<func::FuncOp> function =
      cpu::convertKernelToFunc(kernel, options.vectorBits);
  if (failed(function) || failed(cpu::bufferizeKernel(*function)))
    return failure();
  cpu::lowerContractions(*function, options);
  cpu::lowerTransposes(*function, options);
  if (failed(cpu::lowerLookups(*function, options)) ||
      failed(cpu::lowerToLoops(*function)) ||
      failed(cpu::promoteAllocations(*function)))
    return failure();
  cpu::expandMath(*function);
  return success();
}

LogicalResult KernToLLVM::run() {
  ModuleOp module = getOperation();
  SmallVector<kern::FuncOp> kernels(module.getOps<kern::FuncOp>());
  SmallVector<std::pair<std::string, SmallVector<Type>>> entries;
  for (kern::FuncOp kernel : kernels) {
    auto types = llvm::map_range(kernel.getArguments(), [](Value argument) {
      return argument.getType();
    });
    entries.emplace_back(kernel.getSymName().str(),
                         llvm::to_vector_of<Type>(types));
  }
  // Equal indices are recognised as the same value.
  if (failed(runPipeline(cleanUp, module)))
    return failure();
  for (kern::FuncOp kernel : kernels)
    if (failed(lowerKernel(kernel)))
      return failure();

  RewritePatternSet patterns(&getContext());
  memref::populateExpandStridedMetadataPatterns(patterns);
  if (failed(applyPatternsGreedily(module, std::move(patterns))) ||
      failed(lowerControlFlow(module)) ||
      failed(runPipeline(cleanUp, module)) || failed(convertToLLVM(module)))
    return failure();
  for (auto &[name, types] : entries)
    createEntry(module, name, types);
  return success();
}
