// RUN: %opt %s --split-input-file --verify-diagnostics

//===----------------------------------------------------------------------===//
// Encodings
//===----------------------------------------------------------------------===//

// expected-error@+1 {{names 1 sizes of a rank 2 tensor}}
func.func private @rank(tensor<4x4xf32, #tfm.dims<"T">>)

// -----

// expected-error@+1 {{a dynamic size needs a name}}
func.func private @name(tensor<?x4xf32, #tfm.dims<"", "">>)

// -----

//===----------------------------------------------------------------------===//
// Architectures
//===----------------------------------------------------------------------===//

// expected-error@+1 {{needs a list of names as hf, got "Llama"}}
tfm.architecture @a attributes {hf = "Llama"} {
}

// -----

// expected-error@+1 {{needs a list of names as hf, got []}}
tfm.architecture @a attributes {hf = []} {
}

// -----

// expected-error@+1 {{needs a name as gguf, got ["llama"]}}
tfm.architecture @a attributes {gguf = ["llama"]} {
}

// -----

// expected-error@+1 {{needs a dictionary as config, got []}}
tfm.architecture @a attributes {config = []} {
}

// -----

// expected-error@+1 {{needs an expression for the unsupported 'bias', got true}}
tfm.architecture @a attributes {unsupported = {bias = true}} {
}

// -----

// expected-error@+1 {{needs an expression and values for the required 'act', got ["act"]}}
tfm.architecture @a attributes {required = {act = ["act"]}} {
}

// -----

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

tfm.func @types(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{returns 'tensor<4xf32>' where @types declares 'tensor<8xf32>'}}
  tfm.return %x : tensor<4xf32>
}

// -----

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

// expected-error@+1 {{has init "ones"; known are zeros and kaiming_uniform}}
tfm.param @p : tensor<4xf32> {init = "ones"}

// -----

// expected-error@+1 {{@p needs a checkpoint name (hf, gguf) or an init}}
tfm.param @p : tensor<4xf32>

// -----

// expected-error@+1 {{@p: a name holds {layer} exactly when the parameter is per_layer; "p" does not fit}}
tfm.param @p per_layer : tensor<4xf32> {hf = "p"}

// -----

// expected-error@+1 {{@p: a name holds {layer} exactly when the parameter is per_layer; "p.{layer}" does not fit}}
tfm.param @p : tensor<4xf32> {hf = "p", gguf = "p.{layer}"}

// -----

tfm.func @use() {
  // expected-error@+1 {{names no parameter}}
  %p = tfm.use [] : tensor<4xf32>
  tfm.return
}

// -----

tfm.func @use() {
  // expected-error@+1 {{names @p, which is no parameter}}
  %p = tfm.use [@p] : tensor<4xf32>
  tfm.return
}

// -----

tfm.func @use() {
  // expected-error@+1 {{names @use, which is no parameter}}
  %p = tfm.use [@use] : tensor<4xf32>
  tfm.return
}

// -----

tfm.param @p : tensor<4xf32> {hf = "p"}
tfm.func @use() {
  // expected-error@+1 {{gives @p rank 2, it has 1}}
  %p = tfm.use [@p] : tensor<4x4xf32>
  tfm.return
}

// -----

tfm.param @p : tensor<4x8xf32> {hf = "p"}
tfm.func @use() {
  // expected-error@+1 {{joins @p of type 'tensor<4x8xf32>' into 'tensor<4x4xf32>'}}
  %p = tfm.use [@p] : tensor<4x4xf32>
  tfm.return
}

// -----

tfm.param @p : tensor<4x8xf32> {hf = "p"}
tfm.param @q : tensor<2x8xf32> {hf = "q"}
tfm.func @use() {
  // expected-error@+1 {{has 8 rows, its parameters have 6}}
  %p = tfm.use [@p, @q] : tensor<8x8xf32>
  tfm.return
}

// -----

tfm.param @p : tensor<4x8xf32> {hf = "p"}
tfm.func @accumulate(%g: tensor<5x8xf32>) {
  // expected-error@+1 {{'tfm.accumulate' op has 5 rows, its parameters have 4}}
  tfm.accumulate [@p], %g : tensor<5x8xf32>
  tfm.return
}

// -----

tfm.func @norm() {
  // expected-error@+1 {{'tfm.grad_norm' op names @p, which does not exist}}
  %n = tfm.grad_norm [@p] : tensor<1xf32>
  tfm.return
}

// -----

tfm.func @update(%n: tensor<1xf32>) {
  // expected-error@+1 {{'tfm.optimizer_update' op names @p, which does not exist}}
  tfm.optimizer_update [@p], %n rule = "sgd" options = {} : tensor<1xf32>
  tfm.return
}

// -----

tfm.param @p : tensor<4x8xf32> {hf = "p"}
tfm.func @update(%n: tensor<1xf32>) {
  // expected-error@+1 {{has rule "lion"; known are adamw, adam, sgd, adadelta}}
  tfm.optimizer_update [@p], %n rule = "lion" options = {} : tensor<1xf32>
  tfm.return
}

// -----

tfm.param @p : tensor<4x8xf32> {hf = "p"}
tfm.func @update(%n: tensor<1xf32>) {
  // expected-error@+1 {{needs the number "weight_decay" in its options}}
  tfm.optimizer_update [@p], %n rule = "adam" options = {beta1 = 0.9, beta2 = 0.9, epsilon = 0.1} : tensor<1xf32>
  tfm.return
}

// -----

tfm.param @p : tensor<4x8xf32> {hf = "p"}
tfm.func @update(%n: tensor<1xf32>) {
  // expected-error@+1 {{needs the number "rho" in its options}}
  tfm.optimizer_update [@p], %n rule = "adadelta" options = {rho = "big", epsilon = 0.1} : tensor<1xf32>
  tfm.return
}

// -----

//===----------------------------------------------------------------------===//
// Stacks and loops
//===----------------------------------------------------------------------===//

tfm.func @stack(%x: tensor<4xf32>) {
  // expected-error@+1 {{needs its layers, a depth or a map}}
  %y = tfm.stack(%x) kinds = [@k] : tensor<4xf32> -> tensor<4xf32>
  tfm.return
}

// -----

tfm.func @stack(%x: tensor<4xf32>) {
  // expected-error@+1 {{turns 'tensor<4xf32>' into 'tensor<8xf32>'}}
  %y = tfm.stack(%x) kinds = [@k] {layers = array<i32: 0>} : tensor<4xf32> -> tensor<8xf32>
  tfm.return
}

// -----

tfm.func @stack(%x: tensor<4xf32>) {
  // expected-error@+1 {{has no kinds}}
  %y = tfm.stack(%x) kinds = [] {layers = array<i32: 0>} : tensor<4xf32> -> tensor<4xf32>
  tfm.return
}

// -----

tfm.func @stack(%x: tensor<4xf32>) {
  // expected-error@+1 {{names @stack, which is no layer}}
  %y = tfm.stack(%x) kinds = [@stack] {layers = array<i32: 0>} : tensor<4xf32> -> tensor<4xf32>
  tfm.return
}

// -----

// expected-note@+1 {{@k takes 'tensor<4xf32>', 'tensor<4xf32>'}}
tfm.layer @k(%x: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<4xf32> {
  tfm.return %x : tensor<4xf32>
}
tfm.func @stack(%x: tensor<4xf32>, %s: tensor<4xi32>) {
  // expected-error@+1 {{passes 'tensor<4xf32>' and 'tensor<4xi32>' to @k}}
  %y = tfm.stack(%x) shared(%s) kinds = [@k] {layers = array<i32: 0>} : tensor<4xf32>, tensor<4xi32> -> tensor<4xf32>
  tfm.return
}

// -----

tfm.layer @k(%x: tensor<4xf32>) {
  tfm.return
}
tfm.func @stack(%x: tensor<4xf32>) {
  // expected-error@+1 {{needs @k to return 'tensor<4xf32>' first}}
  %y = tfm.stack(%x) kinds = [@k] {layers = array<i32: 0>} : tensor<4xf32> -> tensor<4xf32>
  tfm.return
}

// -----

tfm.layer @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  tfm.return %x : tensor<4xf32>
}
tfm.func @stack(%x: tensor<4xf32>) {
  // expected-error@+1 {{has a layer of kind 1 but 1 kinds}}
  %y = tfm.stack(%x) kinds = [@k] {layers = array<i32: 0, 1>} : tensor<4xf32> -> tensor<4xf32>
  tfm.return
}

// -----

tfm.layer @k(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  tfm.return %x, %x : tensor<4xf32>, tensor<4xf32>
}
// expected-note@+1 {{@k.backward takes 'tensor<4xf32>'}}
tfm.layer @k.backward(%x: tensor<4xf32>) -> tensor<4xf32> {
  tfm.return %x : tensor<4xf32>
}
tfm.func @grad(%x: tensor<4xf32>, %s: tensor<4xi32>) {
  %y, %r = tfm.stack(%x) kinds = [@k] {layers = array<i32: 0>} : tensor<4xf32> -> tensor<4xf32>, !tfm.saved
  // expected-error@+1 {{'tfm.stack_grad' op passes 'tensor<4xf32>' and 'tensor<4xi32>' to @k.backward}}
  %d = tfm.stack_grad(%y) saved(%r) shared(%s) kinds = [@k.backward] {layers = array<i32: 0>}
    : tensor<4xf32>, tensor<4xi32> -> tensor<4xf32>
  tfm.return
}

// -----

tfm.func @loop(%x: tensor<4xf32>) {
  // expected-error@+1 {{has chunks of 0 rows}}
  tfm.chunk_loop(%x) body = @b chunk = 0 : (tensor<4xf32>)
  tfm.return
}

// -----

tfm.func @loop(%x: tensor<4xf32>) {
  // expected-error@+1 {{names @b, which is no function}}
  tfm.chunk_loop(%x) body = @b chunk = 4 : (tensor<4xf32>)
  tfm.return
}

// -----

tfm.func @b(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  tfm.return
}
tfm.func @loop(%x: tensor<4xf32>) {
  // expected-error@+1 {{has 1 operands and 0 results, @b has 2 and 0}}
  tfm.chunk_loop(%x) body = @b chunk = 4 : (tensor<4xf32>)
  tfm.return
}

// -----

tfm.func @b(%x: tensor<4xf32>) {
  tfm.return
}
tfm.func @loop(%x: tensor<4xf32>) {
  // expected-error@+1 {{gives chunks of 2 rows to an argument of type 'tensor<4xf32>'}}
  tfm.chunk_loop(%x) body = @b chunk = 2 : (tensor<4xf32>)
  tfm.return
}

// -----

//===----------------------------------------------------------------------===//
// Embedding, products
//===----------------------------------------------------------------------===//

tfm.func @f(%ids: tensor<4x4xi32>, %w: tensor<8x4xf32>) {
  // expected-error@+1 {{ids must have rank 1, got 'tensor<4x4xi32>'}}
  %y = tfm.embedding %ids, %w : tensor<4x4xi32>, tensor<8x4xf32>
  tfm.return
}

// -----

tfm.func @f(%ids: tensor<4xi32>, %w: tensor<8xf32>) {
  // expected-error@+1 {{the table must have rank 2, got 'tensor<8xf32>'}}
  %y = tfm.embedding %ids, %w : tensor<4xi32>, tensor<8xf32>
  tfm.return
}

// -----

tfm.func @f(%ids: tensor<4xi64>, %w: tensor<8x4xf32>) {
  // expected-error@+1 {{needs i32 ids, got 'tensor<4xi64>'}}
  %y = tfm.embedding %ids, %w : tensor<4xi64>, tensor<8x4xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4xf32>, %w: tensor<8x4xf32>) {
  // expected-error@+1 {{x must have rank 2, got 'tensor<4xf32>'}}
  %y = tfm.linear %x, %w : tensor<4xf32>, tensor<8x4xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x4xf32>, %w: tensor<8xf32>) {
  // expected-error@+1 {{the weight must have rank 2, got 'tensor<8xf32>'}}
  %y = tfm.linear %x, %w : tensor<4x4xf32>, tensor<8xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) {
  // expected-error@+1 {{columns of x and the weight differ: 8 and 4}}
  %y = tfm.linear %x, %w : tensor<4x8xf32>, tensor<8x4xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<?x?xf32, #tfm.dims<"T", "D">>, %w: tensor<?x?xf32, #tfm.dims<"H*E", "F">>) {
  // expected-error@+1 {{columns of x and the weight differ: D and F}}
  %y = tfm.linear %x, %w : tensor<?x?xf32, #tfm.dims<"T", "D">>, tensor<?x?xf32, #tfm.dims<"H*E", "F">>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %a: tensor<2xf32>, %b: tensor<8x2xf32>) {
  // expected-error@+1 {{a must have rank 2, got 'tensor<2xf32>'}}
  %y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 1.0, parts = array<i64: 8>, adapted = array<i1: true>}
    : tensor<4x8xf32>, tensor<8x8xf32>, tensor<2xf32>, tensor<8x2xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %a: tensor<2x8xf32>, %b: tensor<8x2xf32>) {
  // expected-error@+1 {{has 1 parts and 2 adapted flags}}
  %y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 1.0, parts = array<i64: 8>, adapted = array<i1: true, false>}
    : tensor<4x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>, tensor<8x2xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %a: tensor<2x8xf32>, %b: tensor<8x2xf32>) {
  // expected-error@+1 {{adapts nothing}}
  %y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 1.0, parts = array<i64: 8>, adapted = array<i1: false>}
    : tensor<4x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>, tensor<8x2xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %a: tensor<2x8xf32>, %b: tensor<8x2xf32>) {
  // expected-error@+1 {{has parts of 6 outputs and a weight of 8}}
  %y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 1.0, parts = array<i64: 6>, adapted = array<i1: true>}
    : tensor<4x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>, tensor<8x2xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %a: tensor<2x8xf32>, %b: tensor<8x2xf32>) {
  // expected-error@+1 {{adapts 4 outputs and has b of 8 rows}}
  %y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 1.0, parts = array<i64: 4, 4>, adapted = array<i1: true, false>}
    : tensor<4x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>, tensor<8x2xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %a: tensor<2x8xf32>, %b: tensor<8x2xf32>) {
  // expected-error@+1 {{has 2 adapters of rank 2 and a of 2 rows}}
  %y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 1.0, parts = array<i64: 4, 4>, adapted = array<i1: true, true>}
    : tensor<4x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>, tensor<8x2xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %a: tensor<2x4xf32>, %b: tensor<8x2xf32>) {
  // expected-error@+1 {{columns of x and a differ: 8 and 4}}
  %y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 1.0, parts = array<i64: 8>, adapted = array<i1: true>}
    : tensor<4x8xf32>, tensor<8x8xf32>, tensor<2x4xf32>, tensor<8x2xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>, %a: tensor<2x8xf32>, %b: tensor<8x2xf32>) {
  // expected-error@+1 {{columns of x and the weight differ: 8 and 4}}
  %y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 1.0, parts = array<i64: 8>, adapted = array<i1: true>}
    : tensor<4x8xf32>, tensor<8x4xf32>, tensor<2x8xf32>, tensor<8x2xf32>
  tfm.return
}

// -----

tfm.func @f(%a: tensor<4xf32>, %b: tensor<4x4xf32>) {
  // expected-error@+1 {{a must have rank 2, got 'tensor<4xf32>'}}
  %y = tfm.matmul %a, %b : tensor<4xf32>, tensor<4x4xf32>
  tfm.return
}

// -----

tfm.func @f(%a: tensor<4xf32>, %b: tensor<4x4xf32>) {
  // expected-error@+1 {{b must have rank 2, got 'tensor<4xf32>'}}
  %y = tfm.matmul %b, %a : tensor<4x4xf32>, tensor<4xf32>
  tfm.return
}

// -----

tfm.func @f(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) {
  // expected-error@+1 {{the contracted sizes differ: 4 and 2}}
  %y = tfm.matmul %a, %b {trans_a, trans_b} : tensor<4x8xf32>, tensor<8x2xf32>
  tfm.return
}

// -----

//===----------------------------------------------------------------------===//
// Normalisation
//===----------------------------------------------------------------------===//

tfm.func @f(%x: tensor<4xf32>, %w: tensor<8xf32>) {
  // expected-error@+1 {{x must have rank 2, got 'tensor<4xf32>'}}
  %y, %r = tfm.rms_norm %x, %w {eps = 0.1} : tensor<4xf32>, tensor<8xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{the weight must have rank 1, got 'tensor<4x8xf32>'}}
  %y, %r = tfm.rms_norm %x, %x {eps = 0.1} : tensor<4x8xf32>, tensor<4x8xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{'tfm.rms_norm' op columns of x and the weight differ: 8 and 4}}
  %y, %r = tfm.rms_norm %x, %w {eps = 0.1} : tensor<4x8xf32>, tensor<4xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{x must have rank 2, got 'tensor<4xf32>'}}
  %s, %y, %r = tfm.add_rms_norm %x, %x, %w {eps = 0.1} : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{the weight must have rank 1, got 'tensor<4x8xf32>'}}
  %s, %y, %r = tfm.add_rms_norm %x, %x, %x {eps = 0.1} : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %r: tensor<4x4xf32>, %w: tensor<8xf32>) {
  // expected-error@+1 {{adds 'tensor<4x8xf32>' and 'tensor<4x4xf32>'}}
  %s, %y, %t = tfm.add_rms_norm %x, %r, %w {eps = 0.1} : tensor<4x8xf32>, tensor<4x4xf32>, tensor<8xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{'tfm.add_rms_norm' op columns of x and the weight differ: 8 and 4}}
  %s, %y, %r = tfm.add_rms_norm %x, %x, %w {eps = 0.1} : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4xf32>, %r: tensor<4xf32>) {
  // expected-error@+1 {{x must have rank 2, got 'tensor<4xf32>'}}
  %dw = tfm.rms_norm_weight_grad %x, %x, %r : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  tfm.return
}

// -----

//===----------------------------------------------------------------------===//
// Rotary embedding, attention
//===----------------------------------------------------------------------===//

tfm.func @f(%p: tensor<4xi32>) {
  // expected-error@+1 {{makes a [T, E] table from T positions, got 'tensor<4xf32>' from 'tensor<4xi32>'}}
  %t = tfm.rope_table %p {theta = 10000} : tensor<4xi32> -> tensor<4xf32>
  tfm.return
}

// -----

tfm.func @f(%p: tensor<4xi32>) {
  // expected-error@+1 {{needs an even head size, got 7}}
  %t = tfm.rope_table %p {theta = 10000} : tensor<4xi32> -> tensor<4x7xf32>
  tfm.return
}

// -----

tfm.func @f(%p: tensor<4xi32>) {
  // expected-error@+1 {{[FSDPQ-0110] has rope_type "yarn"; known are default, linear and llama3}}
  %t = tfm.rope_table %p {theta = 10000, scaling = {rope_type = "yarn"}} : tensor<4xi32> -> tensor<4x8xf32>
  tfm.return
}

// -----

tfm.func @f(%p: tensor<4xi32>) {
  // The older spelling of the key.
  // expected-error@+1 {{[FSDPQ-0110] has rope_type "dynamic"}}
  %t = tfm.rope_table %p {theta = 10000, scaling = {type = "dynamic"}} : tensor<4xi32> -> tensor<4x8xf32>
  tfm.return
}

// -----

tfm.func @f(%p: tensor<4xi32>) {
  // expected-error@+1 {{[FSDPQ-0110] has rope_type 3 : i64; known are default, linear and llama3}}
  %t = tfm.rope_table %p {theta = 10000, scaling = {rope_type = 3}} : tensor<4xi32> -> tensor<4x8xf32>
  tfm.return
}

// -----

tfm.func @f(%p: tensor<4xi32>) {
  // expected-error@+1 {{[FSDPQ-0110] has rope scaling "linear", which is no dictionary}}
  %t = tfm.rope_table %p {theta = 10000, scaling = "linear"} : tensor<4xi32> -> tensor<4x8xf32>
  tfm.return
}

// -----

tfm.func @f(%p: tensor<4xi32>) {
  // expected-error@+1 {{[FSDPQ-0110] has a rope scaling factor without a rope_type}}
  %t = tfm.rope_table %p {theta = 10000, scaling = {factor = 2.0}} : tensor<4xi32> -> tensor<4x8xf32>
  tfm.return
}

// -----

tfm.func @f(%p: tensor<4xi32>) {
  // expected-error@+1 {{[FSDPQ-0110] has heads of 4098 columns; 4096 is the most}}
  %t = tfm.rope_table %p {theta = 10000} : tensor<4xi32> -> tensor<4x4098xf32>
  tfm.return
}

// -----

tfm.func @f(%p: tensor<4xi32>) {
  // expected-error@+1 {{[FSDPQ-0111] has theta = 0 : i64; it must be positive}}
  %t = tfm.rope_table %p {theta = 0} : tensor<4xi32> -> tensor<4x8xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // expected-error@+1 {{[FSDPQ-0111] has eps = -1.000000e+00 : f64; it must be positive}}
  %y, %r = tfm.rms_norm %x, %w {eps = -1.0} : tensor<4x8xf32>, tensor<8xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // expected-error@+1 {{[FSDPQ-0111] has eps = 0.000000e+00 : f64; it must be positive}}
  %s, %y, %r = tfm.add_rms_norm %x, %x, %w {eps = 0.0} : tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>
  tfm.return
}

// -----

tfm.func @f(%q: tensor<4x16xf32>, %s: tensor<4xi32>) {
  // expected-error@+1 {{[FSDPQ-0111] has window = 0 : i64; it must be positive}}
  %o, %l = tfm.attention(%q, %q, %q) %s {heads = 2 : i64, kv_heads = 2 : i64, window = 0 : i64}
    : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>), tensor<4xi32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4xf32>, %t: tensor<4x8xf32>) {
  // expected-error@+1 {{needs matrices, got 'tensor<4xf32>' and 'tensor<4x8xf32>'}}
  %y = tfm.rope %x, %t {heads = 2 : i64} : tensor<4xf32>, tensor<4x8xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x16xf32>, %t: tensor<4x8xf32>) {
  // expected-error@+1 {{rotates 3 heads of 8 columns in a row of 16}}
  %y = tfm.rope %x, %t {heads = 3 : i64} : tensor<4x16xf32>, tensor<4x8xf32>
  tfm.return
}

// -----

tfm.func @f(%q: tensor<4x16xf32>, %s: tensor<4xi32>) {
  // expected-error@+1 {{takes q, k, v or one joined tensor, got 2 operands}}
  %o, %l = tfm.attention(%q, %q) %s {heads = 2 : i64, kv_heads = 2 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>), tensor<4xi32>
  tfm.return
}

// -----

tfm.func @f(%q: tensor<4xf32>, %s: tensor<4xi32>) {
  // expected-error@+1 {{q, k and v must have rank 2, got 'tensor<4xf32>'}}
  %o, %l = tfm.attention(%q) %s {heads = 2 : i64, kv_heads = 2 : i64} : (tensor<4xf32>), tensor<4xi32>
  tfm.return
}

// -----

tfm.func @f(%q: tensor<4x16xf32>, %s: tensor<4xi32>) {
  // expected-error@+1 {{attribute 'heads' failed to satisfy constraint: an integer}}
  %o, %l = tfm.attention(%q) %s {heads = "two", kv_heads = 2 : i64} : (tensor<4x16xf32>), tensor<4xi32>
  tfm.return
}

// -----

tfm.func @f(%q: tensor<4x16xf32>, %s: tensor<4xi32>) {
  // expected-error@+1 {{a joined qkv needs sizes that are already bound}}
  %o, %l = tfm.attention(%q) %s {heads = #tfm.config<"H">, kv_heads = 2 : i64} : (tensor<4x16xf32>), tensor<4xi32>
  tfm.return
}

// -----

tfm.func @f(%q: tensor<4x16xf32>, %s: tensor<4xi32>) {
  // expected-error@+1 {{16 columns do not hold 6 heads}}
  %o, %l = tfm.attention(%q) %s {heads = 4 : i64, kv_heads = 1 : i64} : (tensor<4x16xf32>), tensor<4xi32>
  tfm.return
}

// -----

tfm.func @f(%q: tensor<4x16xf32>, %s: tensor<4xi32>) {
  // expected-error@+1 {{shares 3 key heads among 4 query heads}}
  %o, %l = tfm.attention(%q, %q, %q) %s {heads = 4 : i64, kv_heads = 3 : i64}
    : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>), tensor<4xi32>
  tfm.return
}

// -----

tfm.func @f(%q: tensor<4x16xf32>, %s: tensor<4xi32>) {
  // expected-error@+1 {{has q of 16 columns in 4 heads and k of 16 in 2}}
  %o, %l = tfm.attention(%q, %q, %q) %s {heads = 4 : i64, kv_heads = 2 : i64}
    : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>), tensor<4xi32>
  tfm.return
}

// -----

tfm.func @f(%q: tensor<4x16xf32>, %k: tensor<4x8xf32>, %s: tensor<4xi32>) {
  // expected-error@+1 {{columns of k and v differ: 8 and 16}}
  %o, %l = tfm.attention(%q, %k, %q) %s {heads = 4 : i64, kv_heads = 2 : i64}
    : (tensor<4x16xf32>, tensor<4x8xf32>, tensor<4x16xf32>), tensor<4xi32>
  tfm.return
}

// -----

//===----------------------------------------------------------------------===//
// Element-wise
//===----------------------------------------------------------------------===//

tfm.func @f(%x: tensor<4x16xf32>) {
  // expected-error@+1 {{takes gate and up or one joined tensor, got 3 operands}}
  %y = tfm.gated_silu %x, %x, %x : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{gate and up must have rank 2, got 'tensor<4xf32>'}}
  %y = tfm.gated_silu %x : tensor<4xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x7xf32>) {
  // expected-error@+1 {{a joined gate_up needs an even, bound size}}
  %y = tfm.gated_silu %x : tensor<4x7xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x16xf32>, %y: tensor<4x8xf32>) {
  // expected-error@+1 {{'tfm.gated_silu' op multiplies 'tensor<4x16xf32>' and 'tensor<4x8xf32>'}}
  %z = tfm.gated_silu %x, %y : tensor<4x16xf32>, tensor<4x8xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x16xf32>, %y: tensor<4x8xf32>) {
  // expected-error@+1 {{'tfm.add' op adds 'tensor<4x16xf32>' and 'tensor<4x8xf32>'}}
  %z = tfm.add %x, %y : tensor<4x16xf32>, tensor<4x8xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x16xf32>, %y: tensor<4x8xf32>) {
  // expected-error@+1 {{'tfm.mul' op multiplies 'tensor<4x16xf32>' and 'tensor<4x8xf32>'}}
  %z = tfm.mul %x, %y : tensor<4x16xf32>, tensor<4x8xf32>
  tfm.return
}

// -----

//===----------------------------------------------------------------------===//
// Rows, loss
//===----------------------------------------------------------------------===//

tfm.func @f(%x: tensor<4xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{x must have rank 2, got 'tensor<4xf32>'}}
  %z = tfm.gather_rows %x, %i, %i : tensor<4xf32>, tensor<4xi32>, tensor<4xi32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %i: tensor<4x4xi32>) {
  // expected-error@+1 {{rows must have rank 1, got 'tensor<4x4xi32>'}}
  %z = tfm.gather_rows %x, %i, %i : tensor<4x8xf32>, tensor<4x4xi32>, tensor<4x4xi32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{rows of x and the index differ: 4 and 8}}
  %z = tfm.gather_rows %x, %i, %i : tensor<4x8xf32>, tensor<8xi32>, tensor<8xi32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4xf32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{dy must have rank 2, got 'tensor<4xf32>'}}
  %z = tfm.scatter_rows %x, %i : tensor<4xf32>, tensor<8xi32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %i: tensor<8x8xi32>) {
  // expected-error@+1 {{the index must have rank 1, got 'tensor<8x8xi32>'}}
  %z = tfm.scatter_rows %x, %i : tensor<4x8xf32>, tensor<8x8xi32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{logits must have rank 2, got 'tensor<4xf32>'}}
  %l, %s = tfm.cross_entropy %x, %i : tensor<4xf32>, tensor<4xi32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{logits must have rank 2, got 'tensor<4xf32>'}}
  %l, %s = tfm.fused_cross_entropy %x, %i {weight = "w"} : tensor<4xf32>, tensor<4xi32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %i: tensor<4xi64>) {
  // expected-error@+1 {{needs i32 targets, got 'tensor<4xi64>'}}
  %l, %s = tfm.cross_entropy %x, %i : tensor<4x8xf32>, tensor<4xi64>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{rows of logits and targets differ: 4 and 8}}
  %l, %s = tfm.cross_entropy %x, %i : tensor<4x8xf32>, tensor<8xi32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x8xf32>) {
  // expected-error@+1 {{multiplies elements of 'bf16' and 'f32'}}
  %y = tfm.linear %x, %w : tensor<4x8xbf16>, tensor<8x8xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %a: tensor<2x8xf32>, %b: tensor<8x2xbf16>) {
  // expected-error@+1 {{multiplies elements of 'bf16' and 'f32'}}
  %y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 1.0, parts = array<i64: 8>, adapted = array<i1: true>}
    : tensor<4x8xbf16>, tensor<8x8xbf16>, tensor<2x8xf32>, tensor<8x2xbf16>
  tfm.return
}

// -----

tfm.func @f(%a: tensor<4x8xf32>, %b: tensor<8x8xbf16>) {
  // expected-error@+1 {{multiplies elements of 'f32' and 'bf16'}}
  %y = tfm.matmul %a, %b : tensor<4x8xf32>, tensor<8x8xbf16>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{changes more than the element type: 'tensor<4x8xf32>' to 'tensor<8x4xbf16>'}}
  %y = tfm.cast %x : tensor<4x8xf32> -> tensor<8x4xbf16>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{casts between floating point types, not 'i32'}}
  %y = tfm.cast %x : tensor<4x8xf32> -> tensor<4x8xi32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{drops at a rate of 1.000000e+00, not 0 or more and less than 1}}
  %y = tfm.dropout %x {mask = #tfm.dropout<rate = 1.0 : f64, site = 0>} : tensor<4x8xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{has site 64, not 0 to 63}}
  %y = tfm.dropout %x {mask = #tfm.dropout<rate = 0.5 : f64, site = 64>} : tensor<4x8xf32>
  tfm.return
}

// -----

tfm.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{x must have rank 2, got 'tensor<8xf32>'}}
  %y = tfm.dropout %x {mask = #tfm.dropout<rate = 0.5 : f64, site = 0>} : tensor<8xf32>
  tfm.return
}
