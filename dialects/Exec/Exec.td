//===- Exec.td - The plan as IR -------------------------------------------===//

#ifndef FSDPQ_EXEC_TD
#define FSDPQ_EXEC_TD

include "dialects/Kern/KernBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::fsdpq::exec";
  let summary = "Which bytes, in which order";
  let description = [{
    The plan that the runtime executes: arenas, byte ranges in them, and
    instructions over those. Each instruction is one opcode of
    `runtime/plan/plan.fbs`; exec-serialize writes it down. No instruction
    allocates, compiles or looks anything up by name.
  }];
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::fsdpq::kern::KernDialect"]; // for extents
}

class Exec_Op<string mnemonic, list<Trait> traits = []>
    : Op<Exec_Dialect, mnemonic, traits>;

def Exec_SliceType : TypeDef<Exec_Dialect, "Slice"> {
  let mnemonic = "slice";
  let summary = "A byte range, possibly another one in each iteration";
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Exec_PlanOp : Exec_Op<"plan", [
    IsolatedFromAbove, NoTerminator, SingleBlock, Symbol, SymbolTable,
    NoRegionArguments]> {
  let summary = "All that a rank executes";
  let description = [{
    Holds arenas, step scalars, ports, parameters, kernels and functions.

    ```mlir
    exec.plan @llama {
      exec.arena @activations {bytes = 4096 : i64}
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}

def Exec_ArenaOp : Exec_Op<"arena", [Symbol]> {
  let summary = "One allocation";
  let description = [{
    `bytes` of the arena of temporaries is set by exec-plan-memory, and so is
    `contents`: the bytes by name of what is alive when most of it is in use.
    An arena with `shares` lies in the bytes of another one; the two are never in
    use at the same time.

    ```mlir
    exec.arena @base {bytes = 61440 : i64}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<I64Attr>:$bytes,
                       OptionalAttr<FlatSymbolRefAttr>:$shares,
                       OptionalAttr<DictionaryAttr>:$contents);
  let assemblyFormat = "$sym_name attr-dict";
}

def Exec_ScalarOp : Exec_Op<"scalar", [Symbol]> {
  let summary = "A number the host gives before a call";
  let description = [{
    An integer has a `max`, at which memory is planned; without it the scalar is
    a double.

    ```mlir
    exec.scalar @tokens {max = 512 : i64}
    exec.scalar @lr
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<I64Attr>:$max);
  let assemblyFormat = "$sym_name attr-dict";
}

def Exec_PortOp : Exec_Op<"port"> {
  let summary = "An array the host writes or reads";
  let description = [{
    ```mlir
    exec.port "ids" input i32 at @step[0] extent = #kern.extent<scalar = "tokens", cap = 512>
    ```
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$input, TypeAttr:$type,
                       FlatSymbolRefAttr:$arena, I64Attr:$offset,
                       Kern_ExtentAttr:$extent);
  let assemblyFormat = [{
    $name (`input` $input^)? $type `at` $arena `[` $offset `]` `extent` `=` $extent attr-dict
  }];
}

def Exec_UnitOp : Exec_Op<"unit", [Symbol]> {
  let summary = "Parameters that move together";
  let description = [{
    Buffers of `bytes`, one for each of `layers` or one alone, of which this rank
    keeps one of the mesh's ranges: at `offset` of `arena`, one layer's after the
    other's, and the gradient's at `gradient` of the arena of gradients.

    ```mlir
    exec.unit @layers.base in @base[0] bytes = 4608 {layers = array<i32: 0, 1>,
      begin = @load.begin.layers.base, store = @load.store.layers.base}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$arena,
                       I64Attr:$offset, I64Attr:$bytes,
                       OptionalAttr<DenseI32ArrayAttr>:$layers,
                       OptionalAttr<I64Attr>:$gradient,
                       OptionalAttr<FlatSymbolRefAttr>:$begin,
                       OptionalAttr<FlatSymbolRefAttr>:$store);
  let assemblyFormat = [{
    $sym_name `in` $arena `[` $offset `]` `bytes` `=` $bytes attr-dict
  }];
}

def Exec_ParamOp : Exec_Op<"param", [Symbol]> {
  let summary = "A stored parameter";
  let description = [{
    `parts` are dictionaries (name, element type, offset in the unit, elements)
    of the stored arrays. `loader` names the functions that load it: `piece`, and
    where scales are quantised too `mean`, `scales` and `offset`; `pieces` is how
    many pieces it comes in. The rest is as in `tfm.param`.

    ```mlir
    exec.param @norm : tensor<64xf32> in @norm.base
      {hf = "model.norm.weight", pieces = 1 : i64, loader = {piece = @load.norm},
       parts = [{name = "data", type = "f32", offset = 0 : i64, elements = 64 : i64} ]}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type,
                       FlatSymbolRefAttr:$unit,
                       OptionalAttr<StrAttr>:$hf, OptionalAttr<StrAttr>:$gguf,
                       OptionalAttr<I64Attr>:$gguf_rope_heads,
                       UnitAttr:$trainable, OptionalAttr<StrAttr>:$init,
                       DictArrayAttr:$parts,
                       DefaultValuedAttr<I64Attr, "0">:$pieces,
                       OptionalAttr<DictionaryAttr>:$loader);
  let assemblyFormat = "$sym_name `:` $type `in` $unit attr-dict";
}

def Exec_FuncOp : Exec_Op<"func", [
    IsolatedFromAbove, NoTerminator, SingleBlock, Symbol, NoRegionArguments]> {
  let summary = "A list of instructions";
  let description = [{
    `index_count` > 0: called with an index below it, level 0 of slices.

    ```mlir
    exec.func @load.norm attributes {index_count = 30 : i64} {
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       DefaultValuedAttr<I64Attr, "0">:$index_count);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}

//===----------------------------------------------------------------------===//
// Byte ranges
//===----------------------------------------------------------------------===//

def Exec_AllocOp : Exec_Op<"alloc", [MemoryEffects<[MemAlloc<DefaultResource>]>]> {
  let summary = "A temporary without an address yet";
  let description = [{
    Inside a loop it is a new one in each iteration; outside it lives from its
    first to its last use. exec-plan-memory turns it into an `exec.slice`.

    ```mlir
    %b = exec.alloc "q" bytes = 131072
    ```
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$bytes);
  let results = (outs Exec_SliceType:$slice);
  let assemblyFormat = "$name `bytes` `=` $bytes attr-dict";
  let hasVerifier = 1;
}

def Exec_SliceOp : Exec_Op<"slice", [Pure]> {
  let summary = "A byte range of an arena";
  let description = [{
    Its start is `offset`, plus `stride` times or the `table` entry of the index
    at `level` (see plan.fbs). With `unit`, what lies there is to be parameters of
    that unit's ordinal `ordinals[index]`, or `ordinals[0]` if there is but one.

    ```mlir
    %s = exec.slice "q_proj" of @base[256] bytes = 2048 {stride = 20480 : i64, level = 1 : i64}
    ```
  }];
  let arguments = (ins StrAttr:$name, FlatSymbolRefAttr:$arena, I64Attr:$offset,
                       I64Attr:$bytes,
                       DefaultValuedAttr<I64Attr, "0">:$stride,
                       DefaultValuedAttr<I64Attr, "0">:$level,
                       OptionalAttr<DenseI64ArrayAttr>:$table,
                       OptionalAttr<FlatSymbolRefAttr>:$unit,
                       OptionalAttr<DenseI64ArrayAttr>:$ordinals);
  let results = (outs Exec_SliceType:$slice);
  let assemblyFormat = "$name `of` $arena `[` $offset `]` `bytes` `=` $bytes attr-dict";
}

def Exec_SubsliceOp : Exec_Op<"subslice", [Pure]> {
  let summary = "A byte range of a byte range";
  let description = [{
    As `exec.slice`, relative to its operand. At most one of the two may depend
    on an index.

    ```mlir
    %x0 = exec.subslice %x[0] bytes = 1024 {stride = 1024 : i64, level = 1 : i64}
    ```
  }];
  let arguments = (ins Exec_SliceType:$source, I64Attr:$offset, I64Attr:$bytes,
                       DefaultValuedAttr<I64Attr, "0">:$stride,
                       DefaultValuedAttr<I64Attr, "0">:$level,
                       OptionalAttr<DenseI64ArrayAttr>:$table,
                       OptionalAttr<FlatSymbolRefAttr>:$unit,
                       OptionalAttr<DenseI64ArrayAttr>:$ordinals);
  let results = (outs Exec_SliceType:$slice);
  let assemblyFormat = "$source `[` $offset `]` `bytes` `=` $bytes attr-dict";
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

class Exec_Instruction<string mnemonic, list<Trait> traits = []>
    : Exec_Op<mnemonic, traits>;

def Exec_LaunchOp : Exec_Instruction<"launch", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Run a kernel";
  let description = [{
    The kernel's arguments are the `reads`, the `writes` (which it may read
    too), the extents and the scalars. `flops` is what it computes at capacity
    where that is more than moving its bytes.

    ```mlir
    exec.launch @rms_norm reads(%x, %w) writes(%y, %r)
      grid = #kern.extent<scalar = "tokens", cap = 512> {extents = [], scalars = []} stream = 0
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Exec_SliceType>:$reads,
                       Variadic<Exec_SliceType>:$writes, Kern_ExtentAttr:$grid,
                       TypedArrayAttrBase<Kern_ExtentAttr, "extents">:$extents,
                       StrArrayAttr:$scalars, OptionalAttr<F64Attr>:$flops,
                       I64Attr:$stream);
  let assemblyFormat = [{
    $kernel `reads` `(` $reads `)` `writes` `(` $writes `)` `grid` `=` $grid attr-dict
    `stream` `=` $stream
  }];
}

def Exec_GemmOp : Exec_Instruction<"gemm"> {
  let summary = "Matrix product by the device's library";
  let description = [{
    As `kern.gemm`; offsets are part of the slices.

    ```mlir
    exec.gemm %a, %b into %c f32 {trans_b, alpha = 1.0, beta = 0.0,
      m = #kern.extent<scalar = "tokens", cap = 512>, n = #kern.extent<add = 64, cap = 64>,
      k = #kern.extent<add = 64, cap = 64>, lda = 64, ldb = 64, ldc = 64} stream = 0
    ```
  }];
  let arguments = (ins Exec_SliceType:$a, Exec_SliceType:$b, Exec_SliceType:$c,
                       TypeAttr:$type, UnitAttr:$trans_a, UnitAttr:$trans_b,
                       F64Attr:$alpha, F64Attr:$beta, Kern_ExtentAttr:$m,
                       Kern_ExtentAttr:$n, Kern_ExtentAttr:$k, I64Attr:$lda,
                       I64Attr:$ldb, I64Attr:$ldc,
                       OptionalAttr<TypeAttr>:$out_type, I64Attr:$stream);
  let assemblyFormat = "$a `,` $b `into` $c $type attr-dict `stream` `=` $stream";
  let extraClassDeclaration = [{
    /// The element type of `c`.
    Type getResultType() { return getOutType().value_or(getType()); }
  }];
}

def Exec_CopyOp : Exec_Instruction<"copy"> {
  let summary = "Copy bytes";
  let description = [{
    ```mlir
    exec.copy %a to %b bytes = #kern.extent<add = 256, cap = 256> stream = 0
    ```
  }];
  let arguments = (ins Exec_SliceType:$source, Exec_SliceType:$dest,
                       Kern_ExtentAttr:$bytes, I64Attr:$stream);
  let assemblyFormat = "$source `to` $dest `bytes` `=` $bytes attr-dict `stream` `=` $stream";
}

def Exec_FillOp : Exec_Instruction<"fill"> {
  let summary = "Set bytes to zero";
  let description = [{
    ```mlir
    exec.fill %a bytes = #kern.extent<add = 256, cap = 256> stream = 0
    ```
  }];
  let arguments = (ins Exec_SliceType:$dest, Kern_ExtentAttr:$bytes, I64Attr:$stream);
  let assemblyFormat = "$dest `bytes` `=` $bytes attr-dict `stream` `=` $stream";
}

def Exec_AllGatherOp : Exec_Instruction<"all_gather"> {
  let summary = "Put the ranks' bytes one after the other";
  let description = [{
    `dest` becomes the `source` (`bytes` long) of all ranks of the group, in rank
    order. `event` is recorded when it is done.

    ```mlir
    exec.all_gather %shard to %whole bytes = 2304 {group = "shard", event = 0 : i64} stream = 1
    ```
  }];
  let arguments = (ins Exec_SliceType:$source, Exec_SliceType:$dest, I64Attr:$bytes,
                       StrAttr:$group, I64Attr:$event, I64Attr:$stream);
  let assemblyFormat = [{
    $source `to` $dest `bytes` `=` $bytes attr-dict `stream` `=` $stream
  }];
  let hasVerifier = 1;
}

def Exec_ReduceScatterOp : Exec_Instruction<"reduce_scatter"> {
  let summary = "Sum over ranks, each keeping a range";
  let description = [{
    `source` has `ranges` ranges of `elements`; rank r of the group gets range
    r mod ranges, summed in rank order, in `dest`, or with `accumulate` added to
    it rank after rank. `event` is recorded when it is done.

    ```mlir
    exec.reduce_scatter %whole to %shard elements = 576 f32
      {accumulate, group = "shard", ranges = 2 : i64, event = 1 : i64} stream = 2
    ```
  }];
  let arguments = (ins Exec_SliceType:$source, Exec_SliceType:$dest,
                       I64Attr:$elements, TypeAttr:$type, I64Attr:$ranges,
                       UnitAttr:$accumulate, StrAttr:$group, I64Attr:$event,
                       I64Attr:$stream);
  let assemblyFormat = [{
    $source `to` $dest `elements` `=` $elements $type attr-dict `stream` `=` $stream
  }];
  let hasVerifier = 1;
}

def Exec_AllReduceOp : Exec_Instruction<"all_reduce"> {
  let summary = "Sum over ranks, in place";
  let description = [{
    `event` is recorded when it is done.

    ```mlir
    exec.all_reduce %v elements = 1 f64 {group = "shard", event = 2 : i64} stream = 2
    ```
  }];
  let arguments = (ins Exec_SliceType:$data, I64Attr:$elements, TypeAttr:$type,
                       StrAttr:$group, I64Attr:$event, I64Attr:$stream);
  let assemblyFormat = [{
    $data `elements` `=` $elements $type attr-dict `stream` `=` $stream
  }];
  let hasVerifier = 1;
}

def Exec_RecordOp : Exec_Instruction<"record", [MemoryEffects<[MemWrite]>]> {
  let summary = "Mark how far a stream has come";
  let description = [{
    ```mlir
    exec.record 3 stream = 0
    ```
  }];
  let arguments = (ins I64Attr:$event, I64Attr:$stream);
  let assemblyFormat = "$event attr-dict `stream` `=` $stream";
}

def Exec_WaitOp : Exec_Instruction<"wait", [MemoryEffects<[MemWrite]>]> {
  let summary = "Go on only after what an event marked";
  let description = [{
    The latest record of the event in the order of instructions counts; without
    one it does nothing. What a collective `holds` must not be overwritten before
    the wait for it.

    ```mlir
    exec.wait 1 holds(%whole) stream = 0
    ```
  }];
  let arguments = (ins I64Attr:$event, Variadic<Exec_SliceType>:$holds, I64Attr:$stream);
  let assemblyFormat = "$event (`holds` `(` $holds^ `)`)? attr-dict `stream` `=` $stream";
}

def Exec_LoopOp : Exec_Instruction<"loop", [NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "Instructions again and again";
  let description = [{
    Loops are numbered by depth from 1: the `level` of slices inside.

    ```mlir
    exec.loop count = #kern.extent<add = 30, cap = 30> {
    }
    ```
  }];
  let arguments = (ins Kern_ExtentAttr:$count);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`count` `=` $count attr-dict-with-keyword $body";
}

#endif // FSDPQ_EXEC_TD
