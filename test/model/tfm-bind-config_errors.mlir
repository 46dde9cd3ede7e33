// RUN: %opt %s --split-input-file --verify-diagnostics --tfm-bind-config='config-text={{"architectures":["M"],"dim":64,"zero":0,"huge":8589934592,"deep":5000,"third":3,"text":"a","kinds":["x","y"],"flag":true,"act":"gelu"}}'

// What is wrong with the options or the file.
// RUN: not %opt %s --split-input-file --tfm-bind-config=tokens=100 2>&1 | FileCheck %s --check-prefix=TOKENS
// RUN: not %opt %s --split-input-file --tfm-bind-config=tokens=0 2>&1 | FileCheck %s --check-prefix=TOKENS0
// RUN: not %opt %s --split-input-file --tfm-bind-config=config=%t.missing 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not %opt %s --split-input-file '--tfm-bind-config=config-text={{}' 2>&1 | FileCheck %s --check-prefix=JSON
// RUN: not %opt %s --split-input-file '--tfm-bind-config=config-text={[]}' 2>&1 | FileCheck %s --check-prefix=OBJECT
// TOKENS: [FSDPQ-0107] tokens = 100: a positive multiple of 128 is needed
// TOKENS0: [FSDPQ-0107] tokens = 0: a positive multiple of 128 is needed
// MISSING: [FSDPQ-0108] cannot read the configuration '{{.*}}.missing':
// JSON: [FSDPQ-0108] the configuration is no JSON:
// OBJECT: [FSDPQ-0108] the configuration is not a JSON object

// expected-error@+1 {{[FSDPQ-0109] unknown architecture 'M'; known: A, B}}
module {
  tfm.architecture @a attributes {hf = ["A", "B"], config = {}} {
  }
}

// -----

// expected-error@+1 {{has no config dictionary [FSDPQ-0101]}}
tfm.architecture @a attributes {hf = ["M"]} {
}

// -----

// expected-error@+1 {{config entry 'D' is not a pair of expressions [FSDPQ-0101]}}
tfm.architecture @a attributes {hf = ["M"], config = {D = "hidden_size"}} {
}

// -----

// All missing entries are reported at once.
// expected-error@+2 {{[FSDPQ-0102] the configuration gives no 'D': nothing under 'size | width'}}
// expected-error@+1 {{[FSDPQ-0102] the configuration gives no 'E': 'dim / third' is not a whole number}}
tfm.architecture @a attributes {hf = ["M"], config = {D = ["size | width", "none"], E = ["dim / third", "none"]}} {
}

// -----

tfm.architecture @a attributes {hf = ["M"], config = {}} {
  tfm.func @f(%x: tensor<4x8xf32>) {
    // expected-error@+1 {{refers to the configuration's 'factor', which the architecture does not define [FSDPQ-0103]}}
    %y = tfm.scale %x {factor = #tfm.config<"factor">} : tensor<4x8xf32>
    tfm.return
  }
}

// -----

// expected-error@+1 {{[FSDPQ-0103] the size 'F' is not in the configuration}}
tfm.architecture @a attributes {hf = ["M"], config = {D = ["dim", "none"]}} {
  tfm.param @p : tensor<?x?xf32, #tfm.dims<"D", "F">> {hf = "p"}
}

// -----

// expected-error@+1 {{[FSDPQ-0103] the size 'D' is "a", not a whole number}}
tfm.architecture @a attributes {hf = ["M"], config = {D = ["text", "none"]}} {
  tfm.param @p : tensor<?xf32, #tfm.dims<"D">> {hf = "p"}
}

// -----

// expected-error@+1 {{[FSDPQ-0104] the checkpoint asks for 'bias', which @a does not describe}}
tfm.architecture @a attributes {hf = ["M"], config = {}, unsupported = {bias = "flag | false", other = "other | false"}} {
}

// -----

// expected-error@+1 {{[FSDPQ-0105] the size 'D' is out of range: factor 'D' is 0}}
tfm.architecture @a attributes {hf = ["M"], config = {D = ["zero", "none"]}} {
  tfm.param @p : tensor<?xf32, #tfm.dims<"D">> {hf = "p"}
}

// -----

// expected-error@+1 {{[FSDPQ-0105] the size 'D' is out of range: factor 'D' is 8589934592}}
tfm.architecture @a attributes {hf = ["M"], config = {D = ["huge", "none"]}} {
  tfm.param @p : tensor<?xf32, #tfm.dims<"D">> {hf = "p"}
}

// -----

// A product that is too large though its factors are not.
// expected-error@+1 {{[FSDPQ-0105] the size 'D*1000000*1000000' is out of range: factor '1000000' is 1000000}}
tfm.architecture @a attributes {hf = ["M"], config = {D = ["dim", "none"]}} {
  tfm.param @p : tensor<?xf32, #tfm.dims<"D*1000000*1000000">> {hf = "p"}
}

// -----

tfm.architecture @a attributes {hf = ["M"], config = {L = ["deep", "none"]}} {
  tfm.layer @k(%x: tensor<4xf32>) -> tensor<4xf32> {
    tfm.return %x : tensor<4xf32>
  }
  tfm.func @f(%x: tensor<4xf32>) {
    // expected-error@+1 {{[FSDPQ-0105] the configuration has 5000 layers; 1 to 4096 are possible}}
    %y = tfm.stack(%x) kinds = [@k] {depth = #tfm.config<"L">} : tensor<4xf32> -> tensor<4xf32>
    tfm.return
  }
}

// -----

tfm.architecture @a attributes {hf = ["M"], config = {kinds = ["kinds", "none"]}} {
  tfm.layer @k(%x: tensor<4xf32>) -> tensor<4xf32> {
    tfm.return %x : tensor<4xf32>
  }
  tfm.func @f(%x: tensor<4xf32>) {
    // expected-error@+1 {{[FSDPQ-0106] the configuration has a layer of type "y", for which the stack has no kind}}
    %y = tfm.stack(%x) kinds = [@k] {map = #tfm.config<"kinds">, types = ["x"]} : tensor<4xf32> -> tensor<4xf32>
    tfm.return
  }
}

// -----

tfm.architecture @a attributes {hf = ["M"], config = {kinds = ["kinds", "none"]}} {
  tfm.layer @k(%x: tensor<4xf32>) -> tensor<4xf32> {
    tfm.return %x : tensor<4xf32>
  }
  tfm.func @f(%x: tensor<4xf32>) {
    // More types than kinds.
    // expected-error@+1 {{[FSDPQ-0106] the configuration has a layer of type "y", for which the stack has no kind}}
    %y = tfm.stack(%x) kinds = [@k] {map = #tfm.config<"kinds">, types = ["x", "y"]} : tensor<4xf32> -> tensor<4xf32>
    tfm.return
  }
}

// -----

tfm.architecture @a attributes {hf = ["M"], config = {L = ["third", "none"], kinds = ["kinds", "none"]}} {
  tfm.layer @k(%x: tensor<4xf32>) -> tensor<4xf32> {
    tfm.return %x : tensor<4xf32>
  }
  tfm.func @f(%x: tensor<4xf32>) {
    // expected-error@+1 {{[FSDPQ-0106] the configuration names 2 layer types for 3 layers}}
    %y = tfm.stack(%x) kinds = [@k, @k] {depth = #tfm.config<"L">, map = #tfm.config<"kinds">, types = ["x", "y"]}
      : tensor<4xf32> -> tensor<4xf32>
    tfm.return
  }
}

// -----

tfm.architecture @a attributes {hf = ["M"], config = {kinds = ["none", "none"]}} {
  tfm.layer @k(%x: tensor<4xf32>) -> tensor<4xf32> {
    tfm.return %x : tensor<4xf32>
  }
  tfm.func @f(%x: tensor<4xf32>) {
    // expected-error@+1 {{[FSDPQ-0106] the configuration does not say how many layers the stack has}}
    %y = tfm.stack(%x) kinds = [@k] {map = #tfm.config<"kinds">} : tensor<4xf32> -> tensor<4xf32>
    tfm.return
  }
}

// -----

// Neither true nor false, and an expression with no alternative left.
// expected-error@+2 {{[FSDPQ-0104] the configuration's 'bias' is "a", not true or false}}
// expected-error@+1 {{[FSDPQ-0102] the configuration gives no 'gone': nothing under 'gone'}}
tfm.architecture @a attributes {hf = ["M"], config = {}, unsupported = {bias = "text", gone = "gone"}} {
}

// -----

// A value that the description is not for; an absent one is the family's own.
// expected-error@+1 {{[FSDPQ-0104] the configuration's 'act' is "gelu"; @a describes ["silu", "swish"]}}
tfm.architecture @a attributes {hf = ["M"], config = {}, required = {act = ["act", "silu", "swish"], other = ["other", 1]}} {
}

// -----

// expected-error@+1 {{[FSDPQ-0105] the configuration's sizes make a tensor of more than 1099511627776 elements}}
tfm.architecture @a attributes {hf = ["M"], config = {}} {
  tfm.param @p : tensor<?x?xf32, #tfm.dims<"10000000", "10000000">> {hf = "p"}
}

// -----

tfm.architecture @a attributes {hf = ["M"], config = {t = ["text", "none"]}} {
  tfm.param @p : tensor<4xf32> {hf = "p"}
  // expected-error@+1 {{[FSDPQ-0113] whether @q is tied is "a", not true or false}}
  tfm.param @q : tensor<4xf32> {hf = "q", tied_to = @p, tied = #tfm.config<"t">}
}

// -----

tfm.architecture @a attributes {hf = ["M"], config = {kinds = ["text", "none"]}} {
  tfm.layer @k(%x: tensor<4xf32>) -> tensor<4xf32> {
    tfm.return %x : tensor<4xf32>
  }
  tfm.func @f(%x: tensor<4xf32>) {
    // expected-error@+1 {{[FSDPQ-0106] the configuration's layer types are "a", not a list of names}}
    %y = tfm.stack(%x) kinds = [@k] {map = #tfm.config<"kinds">} : tensor<4xf32> -> tensor<4xf32>
    tfm.return
  }
}

// -----

tfm.architecture @a attributes {hf = ["M"], config = {L = ["text", "none"]}} {
  tfm.layer @k(%x: tensor<4xf32>) -> tensor<4xf32> {
    tfm.return %x : tensor<4xf32>
  }
  tfm.func @f(%x: tensor<4xf32>) {
    // expected-error@+1 {{[FSDPQ-0106] the configuration's number of layers is "a", not a whole number}}
    %y = tfm.stack(%x) kinds = [@k] {depth = #tfm.config<"L">} : tensor<4xf32> -> tensor<4xf32>
    tfm.return
  }
}
