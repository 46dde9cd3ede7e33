//===- Kern.td - Kernel functions and what their bodies are made of -------===//

#ifndef FSDPQ_KERN_TD
#define FSDPQ_KERN_TD

include "dialects/Kern/KernBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

def Kern_ScheduleAttr : AttrDef<Kern_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "Choices of a lowering that do not change results";
  let description = [{
    A list of `key = value`; an absent key leaves the choice to the target. An
    unknown key is an error, so a misspelt schedule is never silently ignored.

    - `vector = N`: f32 lanes of a vector register to prefer (4, 8 or 16).
    - `register_tile = [R, V]`: a contraction keeps R rows of V vectors of its
      output in registers (1 to 16 rows, 1 to 4 vectors).

    ```mlir
    #kern.schedule<vector = 16, register_tile = [8, 2]>
    ```
  }];
  // Zero: not given.
  let parameters = (ins "int64_t":$vector, "int64_t":$tileRows,
                        "int64_t":$tileVectors);
  let genVerifyDecl = 1;
  let hasCustomAssemblyFormat = 1;
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

def Kern_EmissionAttr : AttrDef<Kern_Dialect, "Emission"> {
  let mnemonic = "emission";
  let summary = "How a kernel becomes CUDA text";
  let description = [{
    Written by kern-prepare-emission; emission does what it says and decides
    nothing.

    - `family`: `rows` (tiles in registers), `tiles` (tiles in shared memory), or
      the name of a skeleton.
    - `threads`: of a block.
    - `group`: threads that work on one tile together. A block holds
      `threads / (group * teams)` work items.
    - `teams`: groups of one work item, which share out the iterations of its
      loops.
    - `shared`: bytes of dynamic shared memory of a block.
    - `blocks`: if not 0, at most so many blocks a multiprocessor are started,
      and each takes several work items in turn.

    ```mlir
    #kern.emission<family = "rows", threads = 256, group = 256>
    ```
  }];
  let parameters = (ins StringRefParameter<>:$family, "int64_t":$threads,
    "int64_t":$group, DefaultValuedParameter<"int64_t", "1">:$teams,
    DefaultValuedParameter<"int64_t", "0">:$shared,
    DefaultValuedParameter<"int64_t", "0">:$blocks);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

def Kern_FuncOp : Kern_Op<"func", [
    IsolatedFromAbove, Symbol, RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"::fsdpq::kern::ReturnOp">]> {
  let summary = "A kernel: a grid of independent work items";
  let description = [{
    The block's arguments are the kernel's arguments, then the index of the work
    item. Arguments are

    - memrefs, row-major, of f32, f64, bf16, i32, i8 or i64, whose leading
      dimension may be dynamic. Distinct memref arguments never alias: a kernel
      that works in place takes one argument and both loads and stores it.
    - `i64`: an extent known when the kernel is launched.
    - `f64`: a scalar known when the kernel is launched.

    Items run in any order and at the same time, so no item may read what
    another writes. Memrefs are touched only by `kern.load`, `kern.store`,
    `memref.load` and `memref.store`, always in bounds.

    `emission` is set for CUDA, when it has been decided how the kernel is
    emitted. The discardable attribute `kern.family`, a dictionary with a string
    `kind`, says what a body was built from: a hint where to look for a skeleton,
    which is used only if the body is the one that the hint describes.

    ```mlir
    kern.func @scale(%x: memref<?x64xf32>, %s: f64) grid(%row) {
      %c0 = arith.constant 0 : index
      %f = arith.truncf %s : f64 to f32
      %t = kern.load %x[%row, %c0] : memref<?x64xf32> -> tensor<64xf32>
      %e = tensor.empty() : tensor<64xf32>
      %r = linalg.generic {
          indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
          iterator_types = ["parallel"]}
          ins(%t : tensor<64xf32>) outs(%e : tensor<64xf32>) {
      ^bb0(%a: f32, %b: f32):
        %m = arith.mulf %a, %f : f32
        linalg.yield %m : f32
      } -> tensor<64xf32>
      kern.store %r, %x[%row, %c0] : tensor<64xf32> -> memref<?x64xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       OptionalAttr<Kern_ScheduleAttr>:$schedule,
                       OptionalAttr<Kern_EmissionAttr>:$emission);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [
    // Makes the block with its arguments and terminator.
    OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::TypeRange":$arguments,
                   CArg<"ScheduleAttr", "{}">:$schedule)>
  ];
  let extraClassDeclaration = [{
    /// The kernel's arguments, without the item index.
    ::mlir::Block::BlockArgListType getArguments() {
      return getBody().front().getArguments().drop_back();
    }
    ::mlir::BlockArgument getItem() {
      return getBody().front().getArguments().back();
    }
  }];
}

def Kern_ReturnOp : Kern_Op<"return", [
    Pure, Terminator, HasParent<"::fsdpq::kern::FuncOp">]> {
  let summary = "End of a work item";
  let description = [{
    Implied at the end of a `kern.func`.
  }];
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

def Kern_LoadOp : Kern_Op<"load"> {
  let summary = "Read a static tile of a memref";
  let description = [{
    The tile starts at the indices, one for each dimension of the memref. The
    result's shape gives the sizes of the trailing dimensions; sizes of missing
    leading dimensions are 1. The result is the value at this point: later
    stores do not change it.

    ```mlir
    %t = kern.load %x[%row, %c0] : memref<?x576xf32> -> tensor<576xf32>
    %q = kern.load %x[%row, %c0] : memref<?x576xf32> -> tensor<32x64xf32>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$source,
                       Variadic<Index>:$indices);
  let results = (outs AnyStaticShapeTensor:$tile);
  let assemblyFormat = [{
    $source `[` $indices `]` attr-dict `:` type($source) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Kern_StoreOp : Kern_Op<"store"> {
  let summary = "Write a static tile of a memref";
  let description = [{
    The place of the tile is given as in `kern.load`.

    ```mlir
    kern.store %t, %y[%row, %c0] : tensor<576xf32> -> memref<?x576xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$tile,
                       Arg<AnyMemRef, "", [MemWrite]>:$dest,
                       Variadic<Index>:$indices);
  let assemblyFormat = [{
    $tile `,` $dest `[` $indices `]` attr-dict `:` type($tile) `->` type($dest)
  }];
  let hasVerifier = 1;
}

def Kern_LookupOp : Kern_Op<"lookup", [Pure]> {
  let summary = "Entry of a constant table";
  let description = [{
    The table has a power of two of entries, at most 256, and the index is taken
    modulo that. Used in the regions of `linalg.generic` for codebooks. The
    vector form exists for lowerings.

    ```mlir
    %v = kern.lookup %code, dense<[0.0, 1.0, -1.0, 0.5]> : tensor<4xf32> : i32 -> f32
    ```
  }];
  let arguments = (ins AnyTypeOf<[I32, VectorOfRankAndType<[1], [I32]>]>:$index,
                       ElementsAttr:$table);
  let results = (outs AnyTypeOf<[
      F32, F64, VectorOfRankAndType<[1], [F32, F64]>]>:$result);
  let assemblyFormat = [{
    $index `,` $table attr-dict `:` type($index) `->` type($result)
  }];
  let hasVerifier = 1;
}

include "dialects/Kern/KernCalls.td"

#endif // FSDPQ_KERN_TD
