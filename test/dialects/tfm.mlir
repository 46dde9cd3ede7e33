// RUN: %opt %s | %opt | FileCheck %s
// RUN: %opt %s --mlir-print-op-generic | %opt | FileCheck %s

!ids = tensor<128xi32, #tfm.dims<"T">>
!t = tensor<128xf32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!kv = tensor<128x32xf32, #tfm.dims<"T", "">>
!qkv = tensor<128x128xf32, #tfm.dims<"T", "">>
!u = tensor<128x8xf32, #tfm.dims<"T", "">>
!h = tensor<128x4xf32, #tfm.dims<"T", "">>
!rope = tensor<128x16xf32, #tfm.dims<"T", "">>
!rows = tensor<128xi32, #tfm.dims<"R">>
!rx = tensor<128x64xf32, #tfm.dims<"R", "">>
!cids = tensor<128xi32, #tfm.dims<"C">>
!cx = tensor<128x64xf32, #tfm.dims<"C", "">>
!norm = tensor<64xf32>
!w = tensor<64x64xf32>
!a = tensor<8x64xf32>
!b = tensor<64x8xf32>
!nf4 = tensor<64x64x!qt.nf4<block = 64, scale = f32>>

// CHECK-LABEL: tfm.architecture @bound
// CHECK-SAME: {config = {D = ["hidden_size", "l.embedding_length"]}, gguf = "l", hf = ["LForCausalLM"]}
tfm.architecture @bound attributes {
  hf = ["LForCausalLM"], gguf = "l", config = {D = ["hidden_size", "l.embedding_length"]}
} {
  // CHECK-NEXT: tfm.param @q per_layer : tensor<64x64xf32> {gguf = "g.{layer}", gguf_rope_heads = 4 : i64, hf = "h.{layer}", trainable}
  tfm.param @q per_layer : !w {hf = "h.{layer}", gguf = "g.{layer}", gguf_rope_heads = 4 : i64, trainable}
  // CHECK-NEXT: tfm.param @k per_layer : tensor<64x64xf32> {init = "kaiming_uniform"}
  tfm.param @k per_layer : !w {init = "kaiming_uniform"}
  // CHECK-NEXT: tfm.param @embed : tensor<384x64xf32> {hf = "e"}
  tfm.param @embed : tensor<384x64xf32> {hf = "e"}
  // CHECK-NEXT: tfm.param @head : tensor<384x64xf32> {hf = "o", tied = true, tied_to = @embed}
  tfm.param @head : tensor<384x64xf32> {hf = "o", tied_to = @embed, tied = true}

  // CHECK-LABEL: tfm.layer @block(%arg0: tensor<128x64xf32, #dims_T_>, %arg1: tensor<128xi32, #dims_T>) -> tensor<128x64xf32, #dims_T_> {
  // CHECK-NEXT: tfm.use [@q] : tensor<64x64xf32>
  // CHECK-NEXT: tfm.use [@q, @k] : tensor<128x64xf32>
  // CHECK-NEXT: tfm.return %arg0 : tensor<128x64xf32, #dims_T_>
  tfm.layer @block(%x: !x, %ids: !ids) -> !x {
    %q = tfm.use [@q] : !w
    %qk = tfm.use [@q, @k] : tensor<128x64xf32>
    tfm.return %x : !x
  }
  tfm.layer @block.forward(%x: !x, %ids: !ids) -> (!x, !x) {
    tfm.return %x, %x : !x, !x
  }
  tfm.layer @block.backward(%dy: !x, %x: !x, %ids: !ids) -> !x {
    tfm.return %dy : !x
  }
  tfm.func @body(%x: !cx, %targets: !cids, %all: !w) -> !cx {
    tfm.return %x : !cx
  }

  // CHECK-LABEL: tfm.func @structure(%arg0: tensor<128x64xf32, #dims_T_> {tfm.port = "x"}
  // CHECK-NEXT: tfm.stack(%arg0) shared(%arg1) kinds = [@block] {layers = array<i32: 0, 0>} : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_T> -> tensor<128x64xf32, #dims_T_>
  // CHECK-NEXT: %[[Y:.*]], %[[SAVED:.*]] = tfm.stack(%arg0) shared(%arg1) kinds = [@block.forward] {layers = array<i32: 0, 0>}
  // CHECK-SAME: -> tensor<128x64xf32, #dims_T_>, !tfm.saved
  // CHECK-NEXT: tfm.stack_grad(%[[Y]]) saved(%[[SAVED]]) shared(%arg1) kinds = [@block.backward] {layers = array<i32: 0, 0>} : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_T> -> tensor<128x64xf32, #dims_T_>
  // CHECK-NEXT: tfm.chunk_loop(%arg2, %arg3) shared(%arg4) body = @body chunk = 128 : (tensor<128x64xf32, #dims_R_>, tensor<128xi32, #dims_R>) shared(tensor<64x64xf32>) -> tensor<128x64xf32, #dims_R_>
  // CHECK-NEXT: tfm.return{{$}}
  tfm.func @structure(%x: !x {tfm.port = "x"}, %ids: !ids, %rx: !rx, %rows: !rows, %all: !w) {
    %y = tfm.stack(%x) shared(%ids) kinds = [@block] {layers = array<i32: 0, 0>} : !x, !ids -> !x
    %z, %s = tfm.stack(%x) shared(%ids) kinds = [@block.forward] {layers = array<i32: 0, 0>}
      : !x, !ids -> !x, !tfm.saved
    %d = tfm.stack_grad(%z) saved(%s) shared(%ids) kinds = [@block.backward] {layers = array<i32: 0, 0>}
      : !x, !ids -> !x
    %r = tfm.chunk_loop(%rx, %rows) shared(%all) body = @body chunk = 128
      : (!rx, !rows) shared(!w) -> !rx
    tfm.return
  }

  // Results are inferred: what is checked for each op is that they are used
  // with the type they should have.
  // CHECK-LABEL: tfm.func @forward
  tfm.func @forward(%ids: !ids, %table: tensor<384x64xf32>, %x: !x, %w: !w, %a: !a, %b: !b,
                    %norm: !norm, %rope: !rope, %kv: !kv, %qkv: !qkv, %rows: !rows, %nf4: !nf4)
      -> (!x, !x, !x, !x, !u, !w, !x, !t, !x, !x, !t) {
    // CHECK-NEXT: %[[V0:.*]] = tfm.embedding %arg0, %arg1 : tensor<128xi32, #dims_T>, tensor<384x64xf32>
    %0 = tfm.embedding %ids, %table : !ids, tensor<384x64xf32>
    // CHECK-NEXT: %[[V1:.*]] = tfm.linear %arg2, %arg3 : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
    %1 = tfm.linear %x, %w : !x, !w
    // CHECK-NEXT: %[[V2:.*]] = tfm.linear %arg2, %arg11 : tensor<128x64xf32, #dims_T_>, tensor<64x64x!qt.nf4<block = 64, scale = f32>>
    %2 = tfm.linear %x, %nf4 : !x, !nf4
    // CHECK-NEXT: %[[V3:.*]], %[[U:.*]] = tfm.lora_linear %arg2, %arg3, %arg4, %arg5 {adapted = array<i1: true>, parts = array<i64: 64>, scale = 2.000000e+00 : f64}
    %3, %u = tfm.lora_linear %x, %w, %a, %b
      {scale = 2.0, parts = array<i64: 64>, adapted = array<i1: true>} : !x, !w, !a, !b
    // CHECK-NEXT: tfm.dropout %arg2 {mask = #tfm.dropout<rate = 1.000000e-01 : f64, site = 2>} : tensor<128x64xf32, #dims_T_>
    %dropped = tfm.dropout %x {mask = #tfm.dropout<rate = 0.1 : f64, site = 2>} : !x
    // CHECK-NEXT: tfm.lora_linear %arg2, %arg3, %arg4, %arg5 {adapted = array<i1: true>, mask = #tfm.dropout<rate = 0.000000e+00 : f64, site = 0>, parts = array<i64: 64>, scale = 2.000000e+00 : f64}
    %masked, %masked_u = tfm.lora_linear %x, %w, %a, %b
      {scale = 2.0, parts = array<i64: 64>, adapted = array<i1: true>, mask = #tfm.dropout<rate = 0.0 : f64, site = 0>} : !x, !w, !a, !b
    // CHECK-NEXT: %[[V4:.*]] = tfm.matmul %arg2, %arg2 {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
    %4 = tfm.matmul %x, %x {trans_a} : !x, !x
    // CHECK-NEXT: %[[V5:.*]], %[[RSTD:.*]] = tfm.rms_norm %arg2, %arg6 {eps = 1.000000e-05 : f64} : tensor<128x64xf32, #dims_T_>, tensor<64xf32>
    %5, %rstd = tfm.rms_norm %x, %norm {eps = 1.0e-5} : !x, !norm
    // CHECK-NEXT: %[[SUM:.*]], %[[V6:.*]], %[[RSTD1:.*]] = tfm.add_rms_norm %arg2, %arg2, %arg6 {eps = 1.000000e-05 : f64}
    %sum, %6, %rstd1 = tfm.add_rms_norm %x, %x, %norm {eps = 1.0e-5} : !x, !x, !norm
    // CHECK-NEXT: tfm.return %[[V0]], %[[V1]], %[[V2]], %[[V3]], %[[U]], %[[V4]], %[[V5]], %[[RSTD]], %[[SUM]], %[[V6]], %[[RSTD1]]
    tfm.return %0, %1, %2, %3, %u, %4, %5, %rstd, %sum, %6, %rstd1
      : !x, !x, !x, !x, !u, !w, !x, !t, !x, !x, !t
  }

  // CHECK-LABEL: tfm.func @forward2
  tfm.func @forward2(%ids: !ids, %x: !x, %rope: !rope, %kv: !kv, %qkv: !qkv, %rows: !rows,
                     %logits: !rx)
      -> (!rope, !x, !x, !h, !x, !h, !x, !x, !x, !x, !x, !x, !rx,
          tensor<128xf32, #tfm.dims<"R">>, tensor<128xf32, #tfm.dims<"R">>) {
    // CHECK-NEXT: tfm.rope_table %arg0 {factors = [1.000000e+00, 2.000000e+00], scaling = {factor = 8.000000e+00 : f64, rope_type = "linear"}, theta = 1.000000e+04 : f64} : tensor<128xi32, #dims_T> -> tensor<128x16xf32, #dims_T_>
    %t = tfm.rope_table %ids {theta = 1.0e4, scaling = {rope_type = "linear", factor = 8.0}, factors = [1.0, 2.0]}
      : !ids -> !rope
    // CHECK-NEXT: tfm.rope %arg1, %arg2 {heads = 4 : i64, inverse} : tensor<128x64xf32, #dims_T_>, tensor<128x16xf32, #dims_T_>
    %0 = tfm.rope %x, %rope {heads = 4 : i64, inverse} : !x, !rope
    // CHECK-NEXT: tfm.attention(%arg1, %arg3, %arg3) %arg0 {heads = 4 : i64, kv_heads = 2 : i64, scale = 5.000000e-01 : f64, window = 32 : i64} : (tensor<128x64xf32, #dims_T_>, tensor<128x32xf32, #dims_T_>, tensor<128x32xf32, #dims_T_>), tensor<128xi32, #dims_T>
    %o, %lse = tfm.attention(%x, %kv, %kv) %ids
      {heads = 4 : i64, kv_heads = 2 : i64, window = 32 : i64, scale = 0.5} : (!x, !kv, !kv), !ids
    // Of 128 columns 64 are the queries'.
    // CHECK-NEXT: tfm.attention(%arg4) %arg0 {heads = 4 : i64, kv_heads = 2 : i64} : (tensor<128x128xf32, #dims_T_>), tensor<128xi32, #dims_T>
    %o1, %lse1 = tfm.attention(%qkv) %ids {heads = 4 : i64, kv_heads = 2 : i64} : (!qkv), !ids
    // CHECK-NEXT: tfm.silu %arg1 : tensor<128x64xf32, #dims_T_>
    %1 = tfm.silu %x : !x
    // CHECK-NEXT: tfm.gated_silu %arg1, %arg1 : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
    %2 = tfm.gated_silu %x, %x : !x, !x
    // CHECK-NEXT: tfm.gated_silu %arg4 : tensor<128x128xf32, #dims_T_>
    %3 = tfm.gated_silu %qkv : !qkv
    // CHECK-NEXT: tfm.add %arg1, %arg1 : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
    %4 = tfm.add %x, %x : !x, !x
    // CHECK-NEXT: tfm.mul %arg1, %arg1 : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
    %5 = tfm.mul %x, %x : !x, !x
    // CHECK-NEXT: tfm.scale %arg1 {factor = 2.000000e+00 : f64} : tensor<128x64xf32, #dims_T_>
    %6 = tfm.scale %x {factor = 2.0} : !x
    // CHECK-NEXT: tfm.gather_rows %arg1, %arg5, %arg0 : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_R>, tensor<128xi32, #dims_T>
    %7 = tfm.gather_rows %x, %rows, %ids : !x, !rows, !ids
    // CHECK-NEXT: tfm.cross_entropy %arg6, %arg5 : tensor<128x64xf32, #dims_R_>, tensor<128xi32, #dims_R>
    %loss, %llse = tfm.cross_entropy %logits, %rows : !rx, !rows
    tfm.return %t, %0, %o, %lse, %o1, %lse1, %1, %2, %3, %4, %5, %6, %7, %loss, %llse
      : !rope, !x, !x, !h, !x, !h, !x, !x, !x, !x, !x, !x, !rx,
        tensor<128xf32, #tfm.dims<"R">>, tensor<128xf32, #tfm.dims<"R">>
  }

  // CHECK-LABEL: tfm.func @gradients
  tfm.func @gradients(%ids: !ids, %x: !x, %w: !w, %a: !a, %b: !b, %u: !u, %t: !t, %norm: !norm,
                      %kv: !kv, %qkv: !qkv, %h: !h, %rx: !rx, %rows: !rows, %r: tensor<128xf32, #tfm.dims<"R">>)
      -> (tensor<384x64xf32>, !x, !a, !b, !x, !x, !norm, !x, !kv, !kv, !qkv, !x, !x, !x, !qkv, !x, !rx,
          tensor<128xf32, #tfm.dims<"R">>, !rx, tensor<128xf32, #tfm.dims<"R">>) {
    // CHECK-NEXT: tfm.embedding_grad %arg1, %arg0 : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_T> -> tensor<384x64xf32>
    %0 = tfm.embedding_grad %x, %ids : !x, !ids -> tensor<384x64xf32>
    // CHECK-NEXT: tfm.lora_linear_grad %arg1, %arg1, %arg5, %arg2, %arg3, %arg4 {adapted = array<i1: true>, parts = array<i64: 64>, scale = 2.000000e+00 : f64}
    %dx, %da, %db = tfm.lora_linear_grad %x, %x, %u, %w, %a, %b
      {scale = 2.0, parts = array<i64: 64>, adapted = array<i1: true>} : !x, !x, !u, !w, !a, !b
    // CHECK-NEXT: tfm.rms_norm_grad %arg1, %arg1, %arg7, %arg6 :
    %1 = tfm.rms_norm_grad %x, %x, %norm, %t : !x, !x, !norm, !t
    // CHECK-NEXT: tfm.rms_norm_grad %arg1, %arg1, %arg7, %arg6, %arg1 :
    %2 = tfm.rms_norm_grad %x, %x, %norm, %t, %x : !x, !x, !norm, !t, !x
    // CHECK-NEXT: tfm.rms_norm_weight_grad %arg1, %arg1, %arg6 :
    %3 = tfm.rms_norm_weight_grad %x, %x, %t : !x, !x, !t
    // CHECK-NEXT: tfm.attention_grad(%arg1, %arg8, %arg8) %arg1, %arg1, %arg10, %arg0 {heads = 4 : i64, kv_heads = 2 : i64, window = 8 : i64}
    // CHECK-SAME: : (tensor<128x64xf32, #dims_T_>, tensor<128x32xf32, #dims_T_>, tensor<128x32xf32, #dims_T_>), tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x4xf32, #dims_T_>, tensor<128xi32, #dims_T>
    %dq, %dk, %dv = tfm.attention_grad(%x, %kv, %kv) %x, %x, %h, %ids
      {heads = 4 : i64, kv_heads = 2 : i64, window = 8 : i64} : (!x, !kv, !kv), !x, !x, !h, !ids
    // CHECK-NEXT: tfm.attention_grad(%arg9) %arg1, %arg1, %arg10, %arg0 {heads = 4 : i64, kv_heads = 2 : i64}
    %dqkv = tfm.attention_grad(%qkv) %x, %x, %h, %ids
      {heads = 4 : i64, kv_heads = 2 : i64} : (!qkv), !x, !x, !h, !ids
    // CHECK-NEXT: tfm.silu_grad %arg1, %arg1 :
    %4 = tfm.silu_grad %x, %x : !x, !x
    // CHECK-NEXT: tfm.gated_silu_grad %arg1, %arg1, %arg1 :
    %dg, %du = tfm.gated_silu_grad %x, %x, %x : !x, !x, !x
    // CHECK-NEXT: tfm.gated_silu_grad %arg1, %arg9 :
    %dgu = tfm.gated_silu_grad %x, %qkv : !x, !qkv
    // CHECK-NEXT: tfm.scatter_rows %arg11, %arg0 : tensor<128x64xf32, #dims_R_>, tensor<128xi32, #dims_T>
    %5 = tfm.scatter_rows %rx, %ids : !rx, !ids
    // CHECK-NEXT: tfm.cross_entropy_grad %arg11, %arg12, %arg13, %arg13 :
    %6 = tfm.cross_entropy_grad %rx, %rows, %r, %r
      : !rx, !rows, tensor<128xf32, #tfm.dims<"R">>, tensor<128xf32, #tfm.dims<"R">>
    // CHECK-NEXT: tfm.fused_cross_entropy %arg11, %arg12 {weight = "loss_weight"} :
    %loss, %dl = tfm.fused_cross_entropy %rx, %rows {weight = "loss_weight"} : !rx, !rows
    // CHECK-NEXT: tfm.splat {scalar = "loss_weight"} : tensor<128xf32, #dims_R>
    %7 = tfm.splat {scalar = "loss_weight"} : tensor<128xf32, #tfm.dims<"R">>
    tfm.return %0, %dx, %da, %db, %1, %2, %3, %dq, %dk, %dv, %dqkv, %4, %dg, %du, %dgu, %5, %6, %loss, %dl, %7
      : tensor<384x64xf32>, !x, !a, !b, !x, !x, !norm, !x, !kv, !kv, !qkv, !x, !x, !x, !qkv, !x, !rx,
        tensor<128xf32, #tfm.dims<"R">>, !rx, tensor<128xf32, #tfm.dims<"R">>
  }

  // CHECK-LABEL: tfm.func @training
  tfm.func @training(%r: tensor<128xf32, #tfm.dims<"R">>, %w: !w) {
    // CHECK-NEXT: tfm.report_loss %arg0 {weight = "loss_weight"} : tensor<128xf32, #dims_R>
    tfm.report_loss %r {weight = "loss_weight"} : tensor<128xf32, #tfm.dims<"R">>
    // CHECK-NEXT: tfm.emit "out", %arg1 : tensor<64x64xf32>
    tfm.emit "out", %w : !w
    // CHECK-NEXT: tfm.accumulate [@q], %arg1 : tensor<64x64xf32>
    tfm.accumulate [@q], %w : !w
    // CHECK-NEXT: %[[N:.*]] = tfm.grad_norm [@q] : tensor<1xf32>
    %n = tfm.grad_norm [@q] : tensor<1xf32>
    // CHECK-NEXT: tfm.optimizer_update [@q], %[[N]] rule = "adamw" options = {beta1 = 5.000000e-01 : f32, beta2 = 7.500000e-01 : f64, epsilon = 1.000000e-05 : f64, weight_decay = 1.000000e-01 : f64} : tensor<1xf32>
    tfm.optimizer_update [@q], %n rule = "adamw" options =
      {beta1 = 0.5 : f32, beta2 = 0.75, epsilon = 1.0e-5, weight_decay = 0.1} : tensor<1xf32>
    // CHECK-NEXT: tfm.optimizer_update [@q], %[[N]] rule = "adam" options
    tfm.optimizer_update [@q], %n rule = "adam" options =
      {beta1 = 0.9, beta2 = 0.95, epsilon = 1.0e-5, weight_decay = 0.1} : tensor<1xf32>
    // CHECK-NEXT: tfm.optimizer_update [@q], %[[N]] rule = "sgd" options = {} : tensor<1xf32>
    tfm.optimizer_update [@q], %n rule = "sgd" options = {} : tensor<1xf32>
    // CHECK-NEXT: tfm.optimizer_update [@q], %[[N]] rule = "adadelta" options = {epsilon = 1.000000e-05 : f64, rho = 9.000000e-01 : f64} : tensor<1xf32>
    tfm.optimizer_update [@q], %n rule = "adadelta" options = {rho = 0.9, epsilon = 1.0e-5} : tensor<1xf32>
    tfm.return
  }
}

// Before tfm-bind-config sizes are expressions and numbers names.
// CHECK-LABEL: tfm.architecture @unbound
tfm.architecture @unbound {
  tfm.param @w : tensor<?x?xf32, #tfm.dims<"H*E", "D">> {hf = "w"}
  tfm.layer @block(%x: tensor<?x?xf32, #tfm.dims<"T", "D">>) -> tensor<?x?xf32, #tfm.dims<"T", "D">> {
    tfm.return %x : tensor<?x?xf32, #tfm.dims<"T", "D">>
  }
  // CHECK-LABEL: tfm.func @f
  // CHECK-SAME: -> (tensor<?x?xf32, #dims_T_H_E>, tensor<?x?xf32, #dims_T_H_E>, tensor<?x?xf32, #dims_T_H>, tensor<?x?xf32, #dims_T_D>)
  tfm.func @f(%x: tensor<?x?xf32, #tfm.dims<"T", "D">>, %rope: tensor<?x?xf32, #tfm.dims<"T", "E">>,
              %ids: tensor<?xi32, #tfm.dims<"T">>)
      -> (tensor<?x?xf32, #tfm.dims<"T", "H*E">>, tensor<?x?xf32, #tfm.dims<"T", "H*E">>,
          tensor<?x?xf32, #tfm.dims<"T", "H">>, tensor<?x?xf32, #tfm.dims<"T", "D">>) {
    %w = tfm.use [@w] : tensor<?x?xf32, #tfm.dims<"H*E", "D">>
    %q = tfm.linear %x, %w : tensor<?x?xf32, #tfm.dims<"T", "D">>, tensor<?x?xf32, #tfm.dims<"H*E", "D">>
    // CHECK: tfm.rope %{{.*}}, %arg1 {heads = #tfm.config<"H">} : tensor<?x?xf32, #dims_T_H_E>, tensor<?x?xf32, #dims_T_E>
    %r = tfm.rope %q, %rope {heads = #tfm.config<"H">}
      : tensor<?x?xf32, #tfm.dims<"T", "H*E">>, tensor<?x?xf32, #tfm.dims<"T", "E">>
    // CHECK: tfm.attention(%{{.*}}) %arg2 {heads = #tfm.config<"H">, kv_heads = #tfm.config<"G">, window = #tfm.config<"window">}
    %o, %lse = tfm.attention(%r, %r, %r) %ids
      {heads = #tfm.config<"H">, kv_heads = #tfm.config<"G">, window = #tfm.config<"window">}
      : (tensor<?x?xf32, #tfm.dims<"T", "H*E">>, tensor<?x?xf32, #tfm.dims<"T", "H*E">>,
         tensor<?x?xf32, #tfm.dims<"T", "H*E">>), tensor<?xi32, #tfm.dims<"T">>
    // CHECK: tfm.stack(%arg0) kinds = [@block] {depth = #tfm.config<"L">, map = #tfm.config<"layer_types">, types = ["a"]}
    %y = tfm.stack(%x) kinds = [@block] {depth = #tfm.config<"L">, map = #tfm.config<"layer_types">, types = ["a"]}
      : tensor<?x?xf32, #tfm.dims<"T", "D">> -> tensor<?x?xf32, #tfm.dims<"T", "D">>
    tfm.return %r, %o, %lse, %y : tensor<?x?xf32, #tfm.dims<"T", "H*E">>, tensor<?x?xf32, #tfm.dims<"T", "H*E">>,
      tensor<?x?xf32, #tfm.dims<"T", "H">>, tensor<?x?xf32, #tfm.dims<"T", "D">>
  }
}
