//===- TfmBase.td - The tfm dialect, its attributes and types -------------===//

#ifndef FSDPQ_TFM_BASE_TD
#define FSDPQ_TFM_BASE_TD

include "dialects/Tfm/TfmInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tfm_Dialect : Dialect {
  let name = "tfm";
  let cppNamespace = "::fsdpq::tfm";
  let summary = "Transformers: what is computed";
  let description = [{
    A transformer as a mathematician would write it: global shapes, value
    semantics, no memory, no devices. Activations are `[T, D]`, the tokens of
    all rows of a micro-batch end to end, so padding never enters the model.

    Sizes are symbolic until `tfm-bind-config` reads the checkpoint's
    configuration. A symbol that stays a run-time value (`T` tokens, `R`
    labelled rows, `C` rows of a chunk) keeps its name in the encoding, beside
    the capacity that memory is planned for.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class Tfm_Attr<string name, string mnemonic_, list<Trait> traits = []>
    : AttrDef<Tfm_Dialect, name, traits> {
  let mnemonic = mnemonic_;
}

def Tfm_DimsAttr : Tfm_Attr<"Dims", "dims", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding, ["verifyEncoding"]>]> {
  let summary = "Symbolic sizes of a tensor";
  let description = [{
    The encoding of a tensor whose sizes are named: one expression a dimension,
    a product of names and integers, or empty for a plain static size.

    ```mlir
    tensor<?x?xf32, #tfm.dims<"T", "H*E">>     // before tfm-bind-config
    tensor<512x576xf32, #tfm.dims<"T", "">>    // after it: at most 512 tokens
    ```
  }];
  let parameters = (ins ArrayRefParameter<"StringAttr">:$names);
  let assemblyFormat = "`<` $names `>`";
}

def Tfm_ConfigAttr : Tfm_Attr<"Config", "config"> {
  let summary = "A value of the model's configuration";
  let description = [{
    Stands for the named entry of the architecture's `config` dictionary until
    `tfm-bind-config` replaces it by the number, boolean or dictionary found.

    ```mlir
    eps = #tfm.config<"eps">
    ```
  }];
  let parameters = (ins "StringAttr":$name);
  let assemblyFormat = "`<` $name `>`";
}

def Tfm_DropoutAttr : Tfm_Attr<"Dropout", "dropout"> {
  let summary = "Which elements are dropped, and how often";
  let description = [{
    An element is dropped with probability `rate`, 0 <= rate < 1, and kept ones
    are multiplied by `1 / (1 - rate)`. Whether it is dropped is a function of the
    step scalar `dropout_key`, the number of the layer, `site` (0 to 63: the place
    within the layer), the row and the column alone: a backward pass and what
    recomputes a layer find the same elements without storing them.

    ```mlir
    #tfm.dropout<rate = 1.0e-01 : f64, site = 2>
    ```
  }];
  let parameters = (ins "FloatAttr":$rate, "int64_t":$site);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t lastSite = 63;
  }];
}

class Tfm_Type<string name, string mnemonic_> : TypeDef<Tfm_Dialect, name> {
  let mnemonic = mnemonic_;
}

def Tfm_SavedType : Tfm_Type<"Saved", "saved"> {
  let summary = "What a stack keeps for its backward pass";
  let description = [{
    The residuals of all layers of a stack. What they are is told by the layer
    kinds: the results of a forward kind after the first are the leading
    operands, after the incoming gradient, of the matching backward kind.
  }];
}

#endif // FSDPQ_TFM_BASE_TD
