//===- KernCalls.td - Calls of kernels and library products ---------------===//

#ifndef FSDPQ_KERN_CALLS_TD
#define FSDPQ_KERN_CALLS_TD

include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

class Kern_DestinationOp<string mnemonic, list<Trait> traits = []>
    : Kern_Op<mnemonic, !listconcat([InferTypeOpAdaptor], traits)>;

def Kern_EmptyOp : Kern_Op<"empty", [MemoryEffects<[MemAlloc<DefaultResource>]>]> {
  let summary = "A tensor yet to be written";
  let description = [{
    ```mlir
    %e = kern.empty : tensor<512x64xf32, #tfm.dims<"T", "">>
    ```
  }];
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Kern_PortOp : Kern_Op<"port", [MemoryEffects<[MemAlloc<DefaultResource>]>]> {
  let summary = "An array that the host reads or writes";
  let description = [{
    ```mlir
    %loss = kern.port "loss" : tensor<1xf32>
    ```
  }];
  let arguments = (ins StrAttr:$port);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$port attr-dict `:` type($result)";
}

def Kern_FillOp : Kern_DestinationOp<"fill", [MemoryEffects<[MemWrite]>]> {
  let summary = "Zeros";
  let description = [{
    ```mlir
    %z = kern.fill into %e : tensor<64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$out);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "`into` $out attr-dict `:` type($out)";
}

def Kern_CopyOp : Kern_DestinationOp<"copy", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The same values elsewhere";
  let description = [{
    ```mlir
    %c = kern.copy %x into %e : tensor<64xf32> into tensor<64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$out);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `into` $out attr-dict `:` type($input) `into` type($out)";
}

def Kern_CallOp : Kern_DestinationOp<"call", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Run a kernel";
  let description = [{
    The kernel's arguments are the inputs (a quantised tensor gives each of its
    stored arrays), then the destinations, then the extents, then the step
    scalars. `flops` is what it computes at capacity where that is more than
    moving its bytes. Results are the destinations after the call; a destination that the
    kernel reads is updated in place. The k-th destination starts
    `out_offsets[k]` elements into its operand.

    ```mlir
    %y, %r = kern.call @rms_norm(%x, %w) into(%e0, %e1)
      grid = #kern.extent<scalar = "tokens", cap = 512>
      {extents = [], scalars = []} : (!x, !norm) into(!x, !t)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyRankedTensor>:$inputs,
                       Variadic<AnyRankedTensor>:$outs, Kern_ExtentAttr:$grid,
                       TypedArrayAttrBase<Kern_ExtentAttr, "extents">:$extents,
                       StrArrayAttr:$scalars,
                       OptionalAttr<DenseI64ArrayAttr>:$out_offsets,
                       OptionalAttr<F64Attr>:$flops);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $callee `(` $inputs `)` `into` `(` $outs `)` `grid` `=` $grid attr-dict
    `:` (`(` type($inputs)^ `)`)? `into` `(` type($outs) `)`
  }];
}

def Kern_GemmOp : Kern_DestinationOp<"gemm", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Matrix product";
  let description = [{
    `c[m, n] = alpha * op(a)[m, k] * op(b)[k, n] + beta * c[m, n]` on row-major
    buffers: `a` starts `a_offset` elements into its operand and has rows
    `lda` elements apart, and so on, so an operand may be some columns of a
    wider tensor. Operands are of one element type and so is the result, which may
    also be f32 where they are bf16; products are summed in f32 (of f64 in f64).
    kern-select-impl decides whether a library or an emitted kernel
    computes it.

    ```mlir
    %y = kern.gemm %x, %w into %e {trans_b, alpha = 1.0, beta = 0.0,
      m = #kern.extent<scalar = "tokens", cap = 512>, n = #kern.extent<add = 64, cap = 64>,
      k = #kern.extent<add = 64, cap = 64>, lda = 64, ldb = 64, ldc = 64} : !x, !w into !x
    ```
  }];
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b, AnyRankedTensor:$out,
                       UnitAttr:$trans_a, UnitAttr:$trans_b, F64Attr:$alpha, F64Attr:$beta,
                       Kern_ExtentAttr:$m, Kern_ExtentAttr:$n, Kern_ExtentAttr:$k,
                       I64Attr:$lda, I64Attr:$ldb, I64Attr:$ldc,
                       DefaultValuedAttr<I64Attr, "0">:$a_offset,
                       DefaultValuedAttr<I64Attr, "0">:$b_offset,
                       DefaultValuedAttr<I64Attr, "0">:$c_offset);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $a `,` $b `into` $out attr-dict `:` type($a) `,` type($b) `into` type($out)
  }];
  let hasVerifier = 1;
}

#endif // FSDPQ_KERN_CALLS_TD
