//===- Skeletons.cpp - Kernels with hand-written texts --------------------===//

#include "compiler/Target/Cuda/Families/Skeletons.h"

#include "compiler/Kernel/Bodies/Families.h"
#include "compiler/Target/Cuda/Skeletons/Attention.h"
#include "compiler/Target/Cuda/Skeletons/CrossEntropy.h"
#include "compiler/Target/Cuda/Skeletons/Quantised.h"
#include "compiler/Target/Cuda/Skeletons/Rope.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;
using kernels::AttentionFamily;
using kernels::CrossEntropyFamily;
using kernels::QuantisedFamily;
using kernels::RopeFamily;

static constexpr StringRef wgmmaAttention = "wgmma_attention",
                           mmaAttention = "mma_attention",
                           attentionDelta = "attention_delta",
                           dequantize = "dequantize", quantize = "quantize",
                           quantizeScales = "quantize_scales", rope = "rope",
                           fusedCrossEntropy = "fused_cross_entropy";

bool cuda::isSkeleton(StringRef name) {
  return llvm::is_contained(
      ArrayRef({wgmmaAttention, mmaAttention, attentionDelta, dequantize,
                quantize, quantizeScales, rope, fusedCrossEntropy}),
      name);
}

/// Whether the kernel is the one that `family` builds.
static bool isBuiltFrom(kern::FuncOp kernel, const kernels::Family &family) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  OpBuilder builder(module->getBodyRegion());
  kern::FuncOp canonical = kernels::build(builder, kernel.getLoc(), family);
  return OperationEquivalence::isRegionEquivalentTo(
      &kernel.getBody(), &canonical.getBody(),
      OperationEquivalence::IgnoreLocations);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

static AttentionParams getParams(const kernels::AttentionShape &shape) {
  return {shape.heads, shape.kvHeads, shape.headDim, shape.window.value_or(0),
          shape.scale, shape.packed};
}

static std::optional<StringRef> choose(const AttentionFamily &family,
                                       const Architecture &architecture,
                                       std::string &reason) {
  if (!family.shape.element.isBF16()) {
    reason = "attention is hand-written for bf16 only";
    return std::nullopt;
  }
  AttentionParams params = getParams(family.shape);
  if (family.kind == AttentionFamily::Delta) {
    if (params.headDim % 8 == 0 && params.headDim <= 256)
      return attentionDelta;
  } else if (hasWgmmaAttention(params, architecture)) {
    return wgmmaAttention;
  } else if (hasMmaAttention(params, architecture)) {
    return mmaAttention;
  }
  reason = ("no text for heads of " + Twine(params.headDim) + " elements on " +
            architecture.name)
               .str();
  return std::nullopt;
}

static std::optional<KernelText> emit(const AttentionFamily &family,
                                      StringRef name,
                                      const Architecture &architecture) {
  AttentionParams params = getParams(family.shape);
  bool isWgmma = name == wgmmaAttention;
  if (family.kind == AttentionFamily::Delta)
    return name == attentionDelta ? std::optional(emitAttentionDelta(params))
                                  : std::nullopt;
  if (!isWgmma && name != mmaAttention)
    return std::nullopt;
  switch (family.kind) {
  case AttentionFamily::Forward:
    return isWgmma ? emitWgmmaAttention(params)
                   : emitMmaAttention(params, architecture);
  case AttentionFamily::GradQ:
    return isWgmma ? emitWgmmaAttentionGradQ(params)
                   : emitMmaAttentionGradQ(params, architecture);
  default:
    return isWgmma ? emitWgmmaAttentionGradKV(params)
                   : emitMmaAttentionGradKV(params, architecture);
  }
}

//===----------------------------------------------------------------------===//
// Block formats
//===----------------------------------------------------------------------===//

static QuantisedParams getParams(const QuantisedFamily &family) {
  QuantisedParams params;
  params.block = family.format.block;
  params.nested = family.format.nested;
  params.count = family.count;
  params.bf16 = family.element.isBF16();
  auto assign = [](auto &to, auto from) {
    to.assign(from.begin(), from.end());
  };
  switch (family.kind) {
  case QuantisedFamily::Dequantize:
    assign(params.codebook, qt::getCodebook(family.format.isNF4));
    if (params.nested)
      assign(params.scaleCodebook, qt::getDynamicMap());
    break;
  case QuantisedFamily::Quantize: {
    qt::Quantizer quantizer = qt::getQuantizer(family.format.isNF4);
    assign(params.thresholds, quantizer.thresholds);
    assign(params.codesByValue, quantizer.codes);
    params.roundFirst = family.element.isBF16();
    break;
  }
  case QuantisedFamily::QuantizeScales:
    assign(params.thresholds, qt::getDynamicThresholds());
    break;
  }
  return params;
}

static std::optional<StringRef> choose(const QuantisedFamily &family,
                                       const Architecture &,
                                       std::string &reason) {
  int64_t block = family.format.block, nested = family.format.nested;
  if (!llvm::isPowerOf2_64(block) || (nested && !llvm::isPowerOf2_64(nested)))
    reason = ("no text for blocks of " + Twine(block) + " and " + Twine(nested))
                 .str();
  else if (family.kind == QuantisedFamily::Quantize &&
           (block < 4 || block > 4096))
    reason = ("no text to quantise blocks of " + Twine(block)).str();
  else if (!family.element.isF32() && !family.element.isBF16())
    reason = "dequantised values are f32 or bf16";
  else if (family.kind == QuantisedFamily::Dequantize)
    return dequantize;
  else
    return family.kind == QuantisedFamily::Quantize ? quantize : quantizeScales;
  return std::nullopt;
}

static std::optional<KernelText> emit(const QuantisedFamily &family,
                                      StringRef name, const Architecture &) {
  QuantisedParams params = getParams(family);
  if (family.kind == QuantisedFamily::Dequantize && name == dequantize)
    return emitDequantize(params);
  if (family.kind == QuantisedFamily::Quantize && name == quantize)
    return emitQuantize(params);
  if (family.kind == QuantisedFamily::QuantizeScales && name == quantizeScales)
    return emitQuantizeScales(params);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

static RopeParams getParams(const RopeFamily &family) {
  return {family.columns, family.headDim, family.heads, family.inverse};
}

static std::optional<StringRef>
choose(const RopeFamily &family, const Architecture &, std::string &reason) {
  if (family.element.isBF16() && hasRope(getParams(family)))
    return rope;
  reason =
      ("no text for " + Twine(family.heads) + " heads of " +
       Twine(family.headDim) + " elements in rows of " + Twine(family.columns))
          .str();
  return std::nullopt;
}

static std::optional<KernelText> emit(const RopeFamily &family, StringRef name,
                                      const Architecture &) {
  if (name != rope)
    return std::nullopt;
  return emitRope(getParams(family));
}

static std::optional<StringRef> choose(const CrossEntropyFamily &family,
                                       const Architecture &,
                                       std::string &reason) {
  if (family.element.isBF16() || family.element.isF32())
    return fusedCrossEntropy;
  reason = "logits are f32 or bf16";
  return std::nullopt;
}

static std::optional<KernelText> emit(const CrossEntropyFamily &family,
                                      StringRef name, const Architecture &) {
  if (name != fusedCrossEntropy)
    return std::nullopt;
  return emitFusedCrossEntropy({family.vocabulary, family.element.isBF16()});
}

//===----------------------------------------------------------------------===//

std::optional<std::string>
cuda::chooseSkeleton(kern::FuncOp kernel, const Architecture &architecture,
                     std::string &reason) {
  auto family = kernels::getFamily(kernel);
  if (!family) {
    if (kernel->hasAttr("kern.family"))
      reason = "the hint kern.family is of no known form";
    return std::nullopt;
  }
  auto name = std::visit(
      [&](const auto &shape) { return choose(shape, architecture, reason); },
      *family);
  if (!name)
    return std::nullopt;
  if (!isBuiltFrom(kernel, *family)) {
    reason = "the body is not the one that its hint describes";
    return std::nullopt;
  }
  return name->str();
}

std::optional<KernelText> cuda::emitSkeleton(kern::FuncOp kernel,
                                             StringRef name,
                                             const Architecture &architecture) {
  auto family = kernels::getFamily(kernel);
  if (!family)
    return std::nullopt;
  return std::visit(
      [&](const auto &shape) { return emit(shape, name, architecture); },
      *family);
}
