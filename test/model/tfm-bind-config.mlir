// RUN: %opt %s --tfm-bind-config=config=%inputs/models/alternating.json | FileCheck %s
// RUN: %opt %s '--tfm-bind-config=config-text={{"architectures":["M"],"num_hidden_layers":3,"hidden_size":32,"num_attention_heads":2,"head_dim":8,"window":null,"scaling":{"rope_type":"linear","factor":2.5,"other":null},"tie":false}} tokens=128' | FileCheck %s --check-prefix=TEXT
// RUN: %opt %s '--tfm-bind-config=gguf=true config-text={{"general.architecture":"m","m.dim":64,"m.heads":4,"m.blocks":1,"tensors":{"embd":[384,64]}}}' | FileCheck %s --check-prefix=GGUF

!x = tensor<?x?xf32, #tfm.dims<"T", "D">>
!q = tensor<?x?xf32, #tfm.dims<"T", "H*E">>

// Other architectures go.
// CHECK-NOT: @other
// TEXT-NOT: @other
tfm.architecture @other attributes {hf = ["Other"], gguf = "other", config = {}} {
}

// What is left of `config` are its numbers, for those who read the plan.
// CHECK-LABEL: tfm.architecture @m
// CHECK-SAME: config = {D = 64 : i64, E = 16 : i64, H = 4 : i64, L = 5 : i64, V = 384 : i64, eps = 1.000000e-05 : f64, tied = true, window = 32 : i64}
// CHECK-NOT: unsupported
// TEXT-LABEL: tfm.architecture @m
// TEXT-SAME: config = {D = 32 : i64, E = 8 : i64, H = 2 : i64, L = 3 : i64, V = 100 : i64, eps = 1.250000e-01 : f64, tied = false}
// GGUF-LABEL: tfm.architecture @m
// GGUF-SAME: config = {D = 64 : i64, E = 16 : i64, H = 4 : i64, L = 1 : i64, V = 384 : i64, eps = 2.500000e-01 : f64, tied = true}
tfm.architecture @m attributes {
  hf = ["M", "AlternatingForCausalLM"], gguf = "m",
  config = {
    D = ["hidden_size", "m.dim"], H = ["num_attention_heads", "m.heads"],
    E = ["head_dim | hidden_size / num_attention_heads", "m.dim / m.heads"],
    L = ["num_hidden_layers", "m.blocks"], V = ["vocab_size | 100", "rows(embd)"],
    eps = ["rms_norm_eps | 0.125", "m.eps | 0.25"],
    window = ["window | sliding_window | none", "none"],
    kinds = ["layer_types | none", "none"],
    scaling = ["scaling | none", "none"],
    tied = ["tie_word_embeddings | tie", "absent(head)"]
  },
  unsupported = {bias = "attention_bias | false"}
} {
  // Products of sizes; GGUF row order takes a number.
  // CHECK: tfm.param @q per_layer : tensor<64x64xf32> {gguf = "g.{layer}", gguf_rope_heads = 4 : i64, hf = "q.{layer}"}
  // TEXT: tfm.param @q per_layer : tensor<16x32xf32> {gguf = "g.{layer}", gguf_rope_heads = 2 : i64, hf = "q.{layer}"}
  tfm.param @q per_layer : tensor<?x?xf32, #tfm.dims<"H*E", "D">>
    {hf = "q.{layer}", gguf = "g.{layer}", gguf_rope_heads = #tfm.config<"H">}
  // CHECK-NEXT: tfm.param @embed : tensor<384x64xf32> {hf = "embed"}
  // TEXT-NEXT: tfm.param @embed : tensor<100x32xf32> {hf = "embed"}
  tfm.param @embed : tensor<?x?xf32, #tfm.dims<"V", "D">> {hf = "embed"}
  // The head is one with the embedding, or its own parameter.
  // CHECK-NOT: @head
  // TEXT-NEXT: tfm.param @head : tensor<100x32xf32> {hf = "head"}
  // GGUF-NOT: @head
  tfm.param @head : tensor<?x?xf32, #tfm.dims<"V", "D">> {hf = "head", tied_to = @embed, tied = #tfm.config<"tied">}

  // CHECK: tfm.layer @a(%{{.*}}: tensor<512x64xf32, #dims_T_>) -> tensor<512x64xf32, #dims_T_> {
  // TEXT: tfm.layer @a(%{{.*}}: tensor<128x32xf32, #dims_T_>) -> tensor<128x32xf32, #dims_T_> {
  tfm.layer @a(%x: !x) -> !x {
    // CHECK-NEXT: tfm.use [@q] : tensor<64x64xf32>
    %w = tfm.use [@q] : tensor<?x?xf32, #tfm.dims<"H*E", "D">>
    tfm.return %x : !x
  }
  tfm.layer @b(%x: !x) -> !x {
    tfm.return %x : !x
  }

  // CHECK-LABEL: tfm.func @f
  // TEXT-LABEL: tfm.func @f
  // GGUF-LABEL: tfm.func @f
  tfm.func @f(%x: !x, %q: !q, %ids: tensor<?xi32, #tfm.dims<"T">>, %rows: tensor<?xi32, #tfm.dims<"R">>,
              %n: tensor<?xf32, #tfm.dims<"D">>) {
    // CHECK-NEXT: tfm.rms_norm %{{.*}}, %{{.*}} {eps = 1.000000e-05 : f64} : tensor<512x64xf32, #dims_T_>, tensor<64xf32>
    %y, %rstd = tfm.rms_norm %x, %n {eps = #tfm.config<"eps">} : !x, tensor<?xf32, #tfm.dims<"D">>
    // An absent value takes its attribute with it, a null counts as absent.
    // CHECK-NEXT: tfm.attention(%{{.*}}) %{{.*}} {heads = 4 : i64, kv_heads = 4 : i64, window = 32 : i64} : (tensor<512x64xf32, #dims_T_>
    // TEXT: tfm.attention(%{{.*}}) %{{.*}} {heads = 2 : i64, kv_heads = 2 : i64} : (tensor<128x16xf32, #dims_T_>
    %o, %lse = tfm.attention(%q, %q, %q) %ids
      {heads = #tfm.config<"H">, kv_heads = #tfm.config<"H">, window = #tfm.config<"window">}
      : (!q, !q, !q), tensor<?xi32, #tfm.dims<"T">>
    // CHECK-NEXT: tfm.rope_table %{{.*}} {theta = 1.000000e+04 : f64} : tensor<512xi32, #dims_T> -> tensor<512x16xf32, #dims_T_>
    // TEXT-NEXT: tfm.rope_table %{{.*}} {scaling = {factor = 2.500000e+00 : f64, rope_type = "linear"}, theta = 1.000000e+04 : f64} : tensor<128xi32, #dims_T> -> tensor<128x8xf32, #dims_T_>
    %t = tfm.rope_table %ids {theta = 1.0e4, scaling = #tfm.config<"scaling">}
      : tensor<?xi32, #tfm.dims<"T">> -> tensor<?x?xf32, #tfm.dims<"T", "E">>
    // R is a run-time size of the same capacity.
    // CHECK-NEXT: tfm.gather_rows %{{.*}} : tensor<512x64xf32, #dims_T_>, tensor<512xi32, #dims_R>, tensor<512xi32, #dims_T>
    %g = tfm.gather_rows %x, %rows, %ids : !x, tensor<?xi32, #tfm.dims<"R">>, tensor<?xi32, #tfm.dims<"T">>
    // A list of layer types chooses kinds; without one all are the first.
    // CHECK-NEXT: tfm.stack(%{{.*}}) kinds = [@a, @b] {layers = array<i32: 0, 1, 0, 1, 0>} : tensor<512x64xf32, #dims_T_>
    // TEXT: tfm.stack(%{{.*}}) kinds = [@a, @b] {layers = array<i32: 0, 0, 0>}
    // GGUF: tfm.stack(%{{.*}}) kinds = [@a, @b] {layers = array<i32: 0>}
    %z = tfm.stack(%x) kinds = [@a, @b]
      {depth = #tfm.config<"L">, map = #tfm.config<"kinds">, types = ["sliding_attention", "full_attention"]} : !x -> !x
    tfm.return
  }
  // CHECK-LABEL: tfm.func @tied
  // CHECK-NEXT: tfm.use [@embed] : tensor<384x64xf32>
  // TEXT-LABEL: tfm.func @tied
  // TEXT-NEXT: tfm.use [@head] : tensor<100x32xf32>
  tfm.func @tied() {
    %w = tfm.use [@head] : tensor<?x?xf32, #tfm.dims<"V", "D">>
    tfm.return
  }
}
