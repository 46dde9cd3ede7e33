//===- Fsdp.td - Where parameters live and when they are whole ------------===//

#ifndef FSDPQ_FSDP_TD
#define FSDPQ_FSDP_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Fsdp_Dialect : Dialect {
  let name = "fsdp";
  let cppNamespace = "::fsdpq::fsdp";
  let summary = "Sharded parameters: where and when";
  let description = [{
    Parameters are grouped into units. A unit is one flat buffer, padded so that
    N equal byte ranges make it up: rank r holds the r-th, and gathered bytes in
    rank order are the buffer, quantised codes and scales together. A unit is
    whole only between a gather and its release.

    Collectives write a resource of their own, so that CSE cannot merge two
    gathers of a unit (the second one is the point: parameters are gathered
    again in the backward pass) and their order is kept.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

def Fsdp_CommResource : Resource<"::fsdpq::fsdp::CommResource">;

class Fsdp_Op<string mnemonic, list<Trait> traits = []>
    : Op<Fsdp_Dialect, mnemonic, traits>;

def Fsdp_PartAttr : AttrDef<Fsdp_Dialect, "Part"> {
  let mnemonic = "part";
  let summary = "A stored array inside a unit";
  let description = [{
    `name` is `data` for a plain parameter, or what `qt` names the arrays of a
    quantised one. `offset` and `bytes` are within the unit.

    ```mlir
    #fsdp.part<@q_proj, "codes", offset = 0, bytes = 2048>
    ```
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$param, "::mlir::StringAttr":$name,
                        "int64_t":$offset, "int64_t":$bytes);
  let assemblyFormat = [{
    `<` $param `,` $name `,` `offset` `=` $offset `,` `bytes` `=` $bytes `>`
  }];
}

class Fsdp_Type<string name, string mnemonic_> : TypeDef<Fsdp_Dialect, name> {
  let mnemonic = mnemonic_;
}
def Fsdp_PendingType : Fsdp_Type<"Pending", "pending"> {
  let summary = "A gather under way";
}
def Fsdp_GatheredType : Fsdp_Type<"Gathered", "gathered"> {
  let summary = "A whole unit, until it is released";
}

def Fsdp_MeshOp : Fsdp_Op<"mesh", [Symbol]> {
  let summary = "The ranks";
  let description = [{
    Units are cut into `shards` ranges, a divisor of `ranks` (without it: as many
    as ranks): rank r holds range r mod shards. Ranks r of equal r / shards form a shard group, which has a
    whole model; those of equal r mod shards a replica group, which holds the
    same range. `deterministic` asks for results that do not depend on how many
    ranks there are: gradients are then summed rank after rank onto what was
    summed before, and norms in one fixed order.

    ```mlir
    fsdp.mesh @mesh ranks = 4 shards = 2
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$ranks,
                       OptionalAttr<I64Attr>:$shards, UnitAttr:$deterministic);
  let assemblyFormat = [{
    $sym_name `ranks` `=` $ranks (`shards` `=` $shards^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The mesh of an architecture; null before fsdp-form-units.
    static MeshOp of(::mlir::Operation *architecture);

    int64_t getNumShards() { return getShards().value_or(getRanks()); }
    /// Whether units are cut at all.
    bool isSharded() { return getNumShards() > 1; }
  }];
}

def Fsdp_UnitOp : Fsdp_Op<"unit", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Parameters that move together";
  let description = [{
    `params` are its members in storage order. With `layers` there is one buffer
    for each of those layers, otherwise one. A trainable unit also has a gradient
    and optimizer state of the same layout. `parts` and `bytes` (padded) are set
    by fsdp-assign-layout.

    ```mlir
    fsdp.unit @block.base [@q_proj, @k_proj] layers = [0, 1]
      {bytes = 4608 : i64, parts = [#fsdp.part<@q_proj, "data", offset = 0, bytes = 4096>]}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, SymbolRefArrayAttr:$params,
                       OptionalAttr<DenseI32ArrayAttr>:$layers,
                       UnitAttr:$trainable, OptionalAttr<I64Attr>:$bytes,
                       OptionalAttr<TypedArrayAttrBase<Fsdp_PartAttr, "parts">>:$parts);
  let assemblyFormat = "$sym_name $params (`layers` `=` $layers^)? attr-dict";
}

def Fsdp_AllGatherStartOp : Fsdp_Op<"all_gather_start", [
    MemoryEffects<[MemWrite<Fsdp_CommResource>]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Start to make a unit whole";
  let description = [{
    Inside a layer a per-layer unit means that layer's own.

    ```mlir
    %p = fsdp.all_gather_start @block.base
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$unit);
  let results = (outs Fsdp_PendingType:$pending);
  let assemblyFormat = "$unit attr-dict";
}

def Fsdp_WaitOp : Fsdp_Op<"wait", [MemoryEffects<[MemWrite<Fsdp_CommResource>]>]> {
  let summary = "Wait until a gather is complete";
  let description = [{
    ```mlir
    %g = fsdp.wait %p
    ```
  }];
  let arguments = (ins Fsdp_PendingType:$pending);
  let results = (outs Fsdp_GatheredType:$gathered);
  let assemblyFormat = "$pending attr-dict";
}

def Fsdp_LocalOp : Fsdp_Op<"local", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A unit that is whole where it is stored";
  let description = [{
    What a gather becomes on a mesh of one rank. It needs no release.

    ```mlir
    %g = fsdp.local @block.base
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$unit);
  let results = (outs Fsdp_GatheredType:$gathered);
  let assemblyFormat = "$unit attr-dict";
}

def Fsdp_ViewOp : Fsdp_Op<"view", [Pure]> {
  let summary = "Parameters inside a whole unit";
  let description = [{
    Several parameters are one value, joined along the first dimension, as in
    `tfm.use`.

    ```mlir
    %w = fsdp.view %g [@q_proj] : tensor<64x64xf32>
    ```
  }];
  let arguments = (ins Fsdp_GatheredType:$gathered, SymbolRefArrayAttr:$params);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$gathered $params attr-dict `:` type($result)";
}

def Fsdp_KeepOp : Fsdp_Op<"keep", [MemoryEffects<[MemWrite<Fsdp_CommResource>]>]> {
  let summary = "A gathered unit stays whole for the backward pass";
  let description = [{
    In the place of a release, in a layer of a stack that has a backward pass.

    ```mlir
    fsdp.keep %g
    ```
  }];
  let arguments = (ins Fsdp_GatheredType:$gathered);
  let assemblyFormat = "$gathered attr-dict";
}

def Fsdp_KeptOp : Fsdp_Op<"kept", [MemoryEffects<[MemWrite<Fsdp_CommResource>]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A unit that the forward pass kept whole";
  let description = [{
    The layer's own, in its backward kind. It must be released.

    ```mlir
    %g = fsdp.kept @block.base
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$unit);
  let results = (outs Fsdp_GatheredType:$gathered);
  let assemblyFormat = "$unit attr-dict";
}

def Fsdp_ReleaseOp : Fsdp_Op<"release", [MemoryEffects<[MemWrite<Fsdp_CommResource>]>]> {
  let summary = "End of a unit's being whole";
  let description = [{
    Its bytes may be overwritten from here on: no view may be used later.

    ```mlir
    fsdp.release %g
    ```
  }];
  let arguments = (ins Fsdp_GatheredType:$gathered);
  let assemblyFormat = "$gathered attr-dict";
}

class Fsdp_UnitUse<string mnemonic, string summary_> : Fsdp_Op<mnemonic, [
    MemoryEffects<[MemWrite<Fsdp_CommResource>]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = summary_;
  let arguments = (ins FlatSymbolRefAttr:$unit);
  let assemblyFormat = "$unit attr-dict";
}

def Fsdp_GradientStartOp : Fsdp_UnitUse<"gradient_start",
    "A whole gradient of a unit, zero at first"> {
  let description = [{
    From here to its reduction, `fsdp.gradient` of the unit's parameters means
    this one and not the sum that is kept.

    ```mlir
    fsdp.gradient_start @block.adapters
    ```
  }];
}

def Fsdp_ReduceScatterStartOp : Fsdp_UnitUse<"reduce_scatter_start",
    "Add a unit's gradient to the ranks' sums, each keeping its range"> {
  let description = [{
    Adds what was written since `fsdp.gradient_start`, of all ranks of the shard
    group (on a deterministic mesh: of all ranks), to the range that this rank
    keeps.

    ```mlir
    fsdp.reduce_scatter_start @block.adapters
    ```
  }];
}

def Fsdp_ReduceSumsOp : Fsdp_UnitUse<"reduce_sums",
    "Reduce what every rank has summed by itself"> {
  let description = [{
    For units whose gradients are summed over micro-steps where they are, whole,
    and reduced once an optimizer step: reduces the sums of all layers into the
    ranges and sets them to zero.

    ```mlir
    fsdp.reduce_sums @block.adapters
    ```
  }];
}

def Fsdp_ReduceReplicasOp : Fsdp_UnitUse<"reduce_replicas",
    "Sum a unit's gradient ranges over the ranks that hold the same"> {
  let description = [{
    ```mlir
    fsdp.reduce_replicas @block.adapters
    ```
  }];
}

def Fsdp_AllReduceOp : Fsdp_Op<"all_reduce", [MemoryEffects<[MemWrite<Fsdp_CommResource>]>,
    AllTypesMatch<["value", "result"]>]> {
  let summary = "Sum a value over ranks";
  let description = [{
    Over the shard group, or with `world` over all ranks.

    ```mlir
    %s = fsdp.all_reduce %v : tensor<1xf64>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$value, UnitAttr:$world);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Fsdp_AllGatherOp : Fsdp_Op<"all_gather", [MemoryEffects<[MemWrite<Fsdp_CommResource>]>]> {
  let summary = "The values of all ranks of the shard group, in rank order";
  let description = [{
    ```mlir
    %a = fsdp.all_gather %v : tensor<8xf64> -> tensor<16xf64>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
}

def Fsdp_GradientOp : Fsdp_Op<"gradient", [MemoryEffects<[MemRead]>]> {
  let summary = "The gradient of parameters where it is summed";
  let description = [{
    Several parameters are one value, as in `fsdp.view`.

    ```mlir
    %g = fsdp.gradient [@q.lora_A] : tensor<8x64xf32>
    ```
  }];
  let arguments = (ins SymbolRefArrayAttr:$params);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$params attr-dict `:` type($result)";
}

def Fsdp_FlatOp : Fsdp_Op<"flat", [MemoryEffects<[MemRead]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "This rank's ranges of a trainable unit, all layers end to end";
  let description = [{
    `buffer` is `data`, `gradient`, `state0` or `state1`.

    ```mlir
    %g = fsdp.flat @layers.trained "gradient" : tensor<64512xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$unit, StrAttr:$buffer);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$unit $buffer attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

def Fsdp_WholeOp : Fsdp_Op<"whole", [MemoryEffects<[MemRead]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The buffer that a unit is loaded into";
  let description = [{
    One for all units, as large as the largest.

    ```mlir
    %w = fsdp.whole @block.base : tensor<4608xi8>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$unit);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$unit attr-dict `:` type($result)";
}

def Fsdp_PartOp : Fsdp_Op<"part_of", [MemoryEffects<[MemRead]>]> {
  let summary = "A piece of a stored array in the buffer that a unit is loaded into";
  let description = [{
    The array is cut into `pieces` of equal size; the function's index is the
    number of the piece.

    ```mlir
    %c = fsdp.part_of @q_proj "codes" pieces = 4 : tensor<512xi8>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$param, StrAttr:$part, I64Attr:$pieces);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$param $part `pieces` `=` $pieces attr-dict `:` type($result)";
}

def Fsdp_ScratchOp : Fsdp_Op<"scratch", [MemoryEffects<[MemRead]>]> {
  let summary = "Values that live from one load function to the next";
  let description = [{
    Named buffers that all parameters share, one after the other; cut into
    `pieces` as `fsdp.part_of` is.

    ```mlir
    %s = fsdp.scratch "scales" pieces = 4 : tensor<64xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$pieces);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$name `pieces` `=` $pieces attr-dict `:` type($result)";
}

def Fsdp_StoreOp : Fsdp_UnitUse<"store",
    "Keep this rank's range of the unit that was loaded"> {
  let description = [{
    Sums the ranks' buffers, in which no two ranks wrote the same byte. The
    function's index is the ordinal of the layer.

    ```mlir
    fsdp.store @block.base
    ```
  }];
}

#endif // FSDPQ_FSDP_TD
