//===- KernBase.td - The kern dialect and extents -------------------------===//

#ifndef FSDPQ_KERN_BASE_TD
#define FSDPQ_KERN_BASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Kern_Dialect : Dialect {
  let name = "kern";
  let cppNamespace = "::fsdpq::kern";
  let summary = "Kernel functions";
  let description = [{
    How something is computed: a kernel is a grid of independent work items and
    a body that says what one of them does, with upstream arith, math, linalg,
    tensor and scf on static tiles plus the few ops below. The body is the only
    meaning of a kernel; each target lowers the same text.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let discardableAttrs = (ins "::mlir::DictionaryAttr":$family);
}

class Kern_Op<string mnemonic, list<Trait> traits = []>
    : Op<Kern_Dialect, mnemonic, traits>;

def Kern_ExtentAttr : AttrDef<Kern_Dialect, "Extent"> {
  let mnemonic = "extent";
  let summary = "An integer known when a step begins";
  let description = [{
    `min(cap, floor(mul * scalar / div) + index_mul * index + add)`, where
    `scalar` names a step scalar (empty: 0) and `index` counts the innermost loop.
    In calls `scalar` may be "layer", the number of the layer from 1 on, 0 outside
    of layers; exec-build turns it into a multiple of `index`.

    ```mlir
    #kern.extent<scalar = "tokens", mul = 9, div = 32, cap = 144>
    ```
  }];
  let parameters = (ins
    StringRefParameter<"", [{""}]>:$scalar,
    DefaultValuedParameter<"int64_t", "1">:$mul,
    DefaultValuedParameter<"int64_t", "1">:$div,
    DefaultValuedParameter<"int64_t", "0">:$index_mul,
    DefaultValuedParameter<"int64_t", "0">:$add, "int64_t":$cap);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static ExtentAttr getConstant(::mlir::MLIRContext *context, int64_t value);
    bool isConstant() const { return getScalar().empty() && getIndexMul() == 0; }
    /// The value of a constant extent.
    int64_t getConstantValue() const { return std::min(getCap(), getAdd()); }
    /// This extent times `mul` over `div`. The scalar's multiples must make the
    /// quotient whole.
    ExtentAttr scaled(int64_t mul, int64_t div) const;
  }];
}

#endif // FSDPQ_KERN_BASE_TD
