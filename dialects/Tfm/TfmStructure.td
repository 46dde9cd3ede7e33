//===- TfmStructure.td - Architectures, parameters, layers, stacks --------===//

#ifndef FSDPQ_TFM_STRUCTURE_TD
#define FSDPQ_TFM_STRUCTURE_TD

include "dialects/Tfm/TfmBase.td"

class Tfm_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tfm_Dialect, mnemonic, traits>;

def Tfm_ArchitectureOp : Tfm_Op<"architecture", [
    IsolatedFromAbove, NoTerminator, SingleBlock, Symbol, SymbolTable,
    NoRegionArguments]> {
  let summary = "A family of models";
  let description = [{
    Holds parameters, layer kinds and functions of one architecture. `hf` lists
    the `architectures` entries of a Hugging Face `config.json` it serves, `gguf`
    the `general.architecture` of GGUF files.

    `config` names what is read from the configuration. Each entry holds two
    expressions, for `config.json` and for GGUF metadata. An expression is a
    list of alternatives separated by `|`; the first whose keys exist is taken:

    | alternative | value |
    |---|---|
    | `rms_norm_eps`, `rope_parameters.rope_theta` | the value under the key (a dot also descends into objects) |
    | `hidden_size / num_attention_heads` | the quotient, which must be whole |
    | `10000`, `1e-6`, `true` | a literal |
    | `none` | no value |
    | `absent(output.weight)` | whether the checkpoint has no such tensor |
    | `rows(token_embd.weight)` | the tensor's first size |
    | `prefix(llama.rope.scaling)` | the dictionary of all keys that begin with `llama.rope.scaling.` |

    `unsupported` holds expressions that must be false or absent in
    `config.json`, `required` lists: an expression, then the values it may have.

    ```mlir
    tfm.architecture @llama attributes {
      hf = ["LlamaForCausalLM"], gguf = "llama",
      config = {D = ["hidden_size", "llama.embedding_length"]}
    } {
      tfm.param @embed : tensor<?x?xf32, #tfm.dims<"V", "D">> {hf = "model.embed_tokens.weight"}
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Tfm_ParamOp : Tfm_Op<"param", [Symbol]> {
  let summary = "A parameter";
  let description = [{
    A stored tensor. With `per_layer` there is one for each layer that uses it
    and `{layer}` in a name stands for the layer's number. `hf` and `gguf` are
    the names in checkpoints; `gguf_rope_heads` says that GGUF files hold the
    rows in the order of their own rotary embedding, for so many heads.

    `trainable` parameters get gradients and an optimizer state. The values of a
    quantised one are first rounded to the type `rounded`, when given. A parameter
    that no checkpoint holds has an `init`: `zeros`, or `kaiming_uniform` with
    bound 1/sqrt(columns). `tied_to` names the parameter it is one with when
    `tied` is true; `tfm-bind-config` then removes it.

    ```mlir
    tfm.param @q_proj per_layer : tensor<?x?xf32, #tfm.dims<"H*E", "D">>
      {hf = "model.layers.{layer}.self_attn.q_proj.weight"}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, UnitAttr:$per_layer,
                       TypeAttrOf<AnyRankedTensor>:$type,
                       OptionalAttr<StrAttr>:$hf, OptionalAttr<StrAttr>:$gguf,
                       OptionalAttr<AnyAttr>:$gguf_rope_heads,
                       UnitAttr:$trainable, OptionalAttr<StrAttr>:$init,
                       OptionalAttr<FlatSymbolRefAttr>:$tied_to,
                       OptionalAttr<AnyAttr>:$tied,
                       OptionalAttr<TypeAttr>:$rounded);
  let assemblyFormat = [{
    $sym_name (`per_layer` $per_layer^)? `:` $type attr-dict
  }];
  let extraClassDeclaration = [{
    RankedTensorType getTensorType() { return cast<RankedTensorType>(getType()); }
  }];
  let hasVerifier = 1;
}

def Tfm_UseOp : Tfm_Op<"use", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The value of a parameter";
  let description = [{
    Inside a layer a per-layer parameter means that layer's own. Several
    parameters are taken as one, joined along the first dimension; they then
    share a unit and lie side by side.

    ```mlir
    %w = tfm.use [@q_proj] : tensor<576x576xf32>
    %qkv = tfm.use [@q_proj, @k_proj, @v_proj] : tensor<960x576xf32>
    ```
  }];
  let arguments = (ins SymbolRefArrayAttr:$params);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$params attr-dict `:` type($result)";
}

class Tfm_FuncLike<string mnemonic, list<Trait> traits = []>
    : Tfm_Op<mnemonic, !listconcat([
        FunctionOpInterface, IsolatedFromAbove, SingleBlock,
        AffineScope], traits)> {
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "StringRef":$name, "FunctionType":$type)>];
  let extraClassDeclaration = [{
    ArrayRef<Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ArrayRef<Type> getResultTypes() { return getFunctionType().getResults(); }
    Region *getCallableRegion() { return &getBody(); }
    Operation *getTerminator() { return getBody().front().getTerminator(); }
  }];
}

def Tfm_LayerOp : Tfm_FuncLike<"layer"> {
  let summary = "A kind of layer";
  let description = [{
    One body shared by all layers of the kind. Before `tfm-autodiff` it maps the
    carried activation (its first argument) and what all layers share (the
    others) to the next activation.

    ```mlir
    tfm.layer @block(%x: tensor<512x64xf32, #tfm.dims<"T", "">>) -> tensor<512x64xf32, #tfm.dims<"T", "">> {
      tfm.return %x : tensor<512x64xf32, #tfm.dims<"T", "">>
    }
    ```
  }];
}

def Tfm_FuncOp : Tfm_FuncLike<"func"> {
  let summary = "A function of the whole model";
  let description = [{
    An architecture has `@trunk` (ids, positions, segment starts to the last
    activation) and `@head` (rows of it to logits). The passes make the programs
    that run from these: `@micro_step`, `@optimizer_step`, `@eval_step`,
    `@logits`.

    ```mlir
    tfm.func @head(%x: tensor<128x64xf32>) -> tensor<128x64xf32> {
      tfm.return %x : tensor<128x64xf32>
    }
    ```
  }];
}

def Tfm_ReturnOp : Tfm_Op<"return", [
    Pure, Terminator, ParentOneOf<["LayerOp", "FuncOp"]>]> {
  let summary = "Ends a layer or function";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
  let builders = [OpBuilder<(ins), [{ }]>];
  let hasVerifier = 1;
}

def Tfm_StackOp : Tfm_Op<"stack", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Layers one after the other";
  let description = [{
    Applies one layer after the other to `x`. `kinds` are the layer kinds and
    `layers` holds, for each layer from the lowest, the position of its kind in
    `kinds`. `shared` operands are given to every layer.

    Until `tfm-bind-config` the number of layers is `depth`, a configuration
    value, and `map` may name the configuration's list of layer types; the
    position of a type in `types` is then that of its kind.

    With a second result, `!tfm.saved`, layers keep their residuals: the results
    of the kinds after the first.

    ```mlir
    %y = tfm.stack(%x) shared(%rope, %segments) kinds = [@block] {layers = array<i32: 0, 0>}
      : !x, !rope, !ids -> !x
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, Variadic<AnyRankedTensor>:$shared,
                       SymbolRefArrayAttr:$kinds,
                       OptionalAttr<DenseI32ArrayAttr>:$layers,
                       OptionalAttr<AnyAttr>:$depth, OptionalAttr<AnyAttr>:$map,
                       OptionalAttr<StrArrayAttr>:$types);
  let results = (outs AnyRankedTensor:$y, Optional<Tfm_SavedType>:$saved);
  let assemblyFormat = [{
    `(` $x `)` (`shared` `(` $shared^ `)`)? `kinds` `=` $kinds attr-dict
    `:` type($x) (`,` type($shared)^)? `->` type($y) (`,` type($saved)^)?
  }];
}

def Tfm_StackGradOp : Tfm_Op<"stack_grad", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The backward pass of a stack";
  let description = [{
    Runs the layers from the highest to the lowest. `kinds` are the backward
    kinds in the order of the stack's kinds, `layers` the kind numbers from the
    lowest layer, as in the stack. A backward kind maps the gradient of the
    layer's result, the residuals and the shared operands to the gradient of the
    layer's input.

    ```mlir
    %dx = tfm.stack_grad(%dy) saved(%s) shared(%rope) kinds = [@block.backward]
      {layers = array<i32: 0, 0>} : !x, !rope -> !x
    ```
  }];
  let arguments = (ins AnyRankedTensor:$dy, Tfm_SavedType:$saved,
                       Variadic<AnyRankedTensor>:$shared,
                       SymbolRefArrayAttr:$kinds, DenseI32ArrayAttr:$layers);
  let results = (outs AnyRankedTensor:$dx);
  let assemblyFormat = [{
    `(` $dy `)` `saved` `(` $saved `)` (`shared` `(` $shared^ `)`)? `kinds` `=` $kinds
    attr-dict `:` type($dy) (`,` type($shared)^)? `->` type($dx)
  }];
}

def Tfm_ChunkLoopOp : Tfm_Op<"chunk_loop", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A function applied to chunks of rows";
  let description = [{
    Cuts the `sliced` operands into chunks of `chunk` rows, calls `body` with
    each chunk of them and the `shared` operands, and joins the results along
    the first dimension. Only one chunk's intermediate values are alive at a
    time. The last chunk may have fewer rows.

    ```mlir
    %dr = tfm.chunk_loop(%rows, %targets) shared(%x) body = @head.backward chunk = 512
      : (!rows, !rows) shared(!x) -> !rx
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$sliced,
                       Variadic<AnyRankedTensor>:$shared,
                       FlatSymbolRefAttr:$body, I64Attr:$chunk);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `(` $sliced `)` (`shared` `(` $shared^ `)`)? `body` `=` $body `chunk` `=` $chunk
    attr-dict `:` `(` type($sliced) `)` (`shared` `(` type($shared)^ `)`)? (`->` type($results)^)?
  }];
}

#endif // FSDPQ_TFM_STRUCTURE_TD
