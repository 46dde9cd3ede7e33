//===- QT.td - Quantised storage types and their arithmetic ---------------===//

#ifndef FSDPQ_QT_TD
#define FSDPQ_QT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def QT_Dialect : Dialect {
  let name = "qt";
  let cppNamespace = "::fsdpq::qt";
  let summary = "Quantised storage types";
  let description = [{
    Types for weights that are stored in a few bits an element and computed
    with in floating point. A `qt` type is the element type of a tensor:
    `tensor<4096x4096x!qt.nf4<block = 64, scale = dq<256>>>` is one value, and
    its codes, block scales and offsets are parts of how it is stored, never
    attributes: a 4096 x 11008 weight has 704,512 scales.

    There is no folder that joins `qt.dequantize` and `qt.quantize`: the loss
    between them is what fine-tuning over a quantised base is about.
  }];
  let useDefaultTypePrinterParser = 1;
}

class QT_Type<string name, string mnemonic_> : TypeDef<QT_Dialect, name> {
  let mnemonic = mnemonic_;
}

class QT_BlockType<string name, string mnemonic_> : QT_Type<name, mnemonic_> {
  let parameters = (ins "int64_t":$block, "int64_t":$nested);
  let genVerifyDecl = 1;
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// Whether the block scales are themselves quantised.
    bool isDoubleQuantized() const { return getNested() != 0; }
  }];
}

def QT_NF4 : QT_BlockType<"NF4", "nf4"> {
  let summary = "4-bit NormalFloat";
  let description = [{
    Four bits an element, indexing the 16 quantiles of a normal distribution
    (Dettmers et al., "QLoRA", 2023, appendix E) scaled by the largest magnitude
    of a block of `block` consecutive elements of the flattened tensor. Two
    codes a byte, the first in the high nibble.

    `scale = f32`: one f32 a block. `scale = dq<256>`: double quantisation. The
    mean of the scales is kept as `offset` and the differences are stored in 8
    bits (bitsandbytes' signed dynamic map) with one f32 for every 256 of them.

    ```mlir
    !qt.nf4<block = 64, scale = f32>
    !qt.nf4<block = 64, scale = dq<256>>
    ```
  }];
}

def QT_FP4 : QT_BlockType<"FP4", "fp4"> {
  let summary = "4-bit floating point";
  let description = [{
    As `!qt.nf4`, with the 16 values of a float with one sign, two exponent and
    one mantissa bit (bitsandbytes' table, largest magnitude 1).

    ```mlir
    !qt.fp4<block = 64, scale = f32>
    ```
  }];
}

class QT_Op<string mnemonic, list<Trait> traits = []>
    : Op<QT_Dialect, mnemonic, traits>;

def QT_QuantizeOp : QT_Op<"quantize", [Pure]> {
  let summary = "Round a tensor to a quantised type";
  let description = [{
    The result holds, for each element, the nearest representable value. Blocks
    run over the flattened tensor; the last may be short.

    ```mlir
    %q = qt.quantize %w : tensor<64x64xf32> -> tensor<64x64x!qt.nf4<block = 64, scale = f32>>
    ```
  }];
  let arguments = (ins AnyTensor:$input);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def QT_DequantizeOp : QT_Op<"dequantize", [Pure]> {
  let summary = "Values of a quantised tensor";
  let description = [{
    The arithmetic is table value times scale in f32 with one rounding to the
    result's element type. A nested scale is `table8[code] * nested + offset`,
    two f32 roundings; contracting them into one changes 9 % of the scales.

    ```mlir
    %w = qt.dequantize %q : tensor<64x64x!qt.nf4<block = 64, scale = f32>> -> tensor<64x64xf32>
    ```
  }];
  let arguments = (ins AnyTensor:$input);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

#endif // FSDPQ_QT_TD
