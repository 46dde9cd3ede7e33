//===- Remarks.td - Why the compiler did what it did ----------------------===//
//
// The one table of remarks: what a pass may say with --remarks-filter. The text
// of a case is its stable id; its comment is what the documentation page says.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPQ_REMARKS_TD
#define FSDPQ_REMARKS_TD

include "mlir/IR/EnumAttr.td"

class Remark<string symbol, int value, string id> : I32EnumAttrCase<symbol, value, id>;

def Fsdpq_RemarkId : I32EnumAttr<"RemarkId", "Ids of the compiler's remarks", [
  Remark<"FuseLora", 0, "fuse-lora">,
  Remark<"FuseGated", 1, "fuse-gated">,
  Remark<"FuseQkv", 2, "fuse-qkv">,
  Remark<"FuseGateUp", 3, "fuse-gate-up">,
  Remark<"FuseNorm", 4, "fuse-norm-residual">,
  Remark<"FuseLoss", 5, "fuse-xent">,
  Remark<"FuseOptimizer", 6, "fuse-optimizer">,
  Remark<"KeepResiduals", 7, "keep-residuals">,
  Remark<"Recompute", 8, "recompute">,
  Remark<"ChunkLoss", 9, "chunk-loss">,
  Remark<"FormUnit", 10, "form-unit">,
  Remark<"FoldCollectives", 11, "fold-collectives">,
  Remark<"EmitProduct", 12, "emit-product">,
  Remark<"PlanMemory", 13, "plan-memory">,
  Remark<"KeepGathered", 14, "keep-gathered">,
  Remark<"Overlap", 15, "overlap">,
  Remark<"Emission", 16, "emission">,
  Remark<"KernelResources", 17, "kernel-resources">
]> {
  let cppNamespace = "::fsdpq";
}

#endif // FSDPQ_REMARKS_TD
