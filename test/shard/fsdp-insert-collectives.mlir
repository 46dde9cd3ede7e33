// RUN: %opt %s --split-input-file --fsdp-insert-collectives | FileCheck %s
// RUN: %opt %s --split-input-file --fsdp-insert-collectives=reduce=step | FileCheck %s --check-prefix=STEP
// RUN: sed 's/ranks = 2/ranks = 4 shards = 2/' %s | %opt --split-input-file --fsdp-insert-collectives | FileCheck %s --check-prefix=GROUPS
// RUN: sed 's/ranks = 2/ranks = 4 shards = 2/' %s | %opt --split-input-file --fsdp-insert-collectives=reduce=step | FileCheck %s --check-prefix=BOTH
// RUN: sed 's/ranks = 2/ranks = 4 shards = 2 {deterministic}/' %s | %opt --split-input-file --fsdp-insert-collectives | FileCheck %s --check-prefix=WORLD

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// A unit is gathered once in a layer however many of its parameters are used,
// before its first use and released after its last. Units that are needed at one
// place start together; a layer's trained unit comes with what it needs first. The
// backward kind has a gradient from before what computes the first addition to it,
// and reduces it after the last.
// CHECK-LABEL: tfm.layer @forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = fsdp.all_gather_start @base
// CHECK-NEXT:   %[[V1:.+]] = fsdp.all_gather_start @trained
// CHECK-NEXT:   %[[V2:.+]] = fsdp.wait %[[V0]]
// CHECK-NEXT:   %[[V3:.+]] = fsdp.view %[[V2]] [@q] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V4:.+]] = fsdp.view %[[V2]] [@k] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V5:.+]] = fsdp.wait %[[V1]]
// CHECK-NEXT:   %[[V6:.+]] = fsdp.view %[[V5]] [@a] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V7:.+]] = tfm.linear %[[ARG0]], %[[V3]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V8:.+]] = tfm.linear %[[V7]], %[[V6]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   fsdp.release %[[V5]]
// CHECK-NEXT:   %[[V9:.+]] = tfm.linear %[[V8]], %[[V4]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   fsdp.release %[[V2]]
// CHECK-NEXT:   tfm.return %[[V9]] : tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   fsdp.gradient_start @trained
// CHECK-NEXT:   %[[V0:.+]] = tfm.matmul %[[ARG0]], %[[ARG1]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@a], %[[V0]] : tensor<64x64xf32>
// CHECK-NEXT:   fsdp.reduce_scatter_start @trained
// CHECK-NEXT:   %[[V1:.+]] = fsdp.all_gather_start @trained
// CHECK-NEXT:   %[[V2:.+]] = fsdp.wait %[[V1]]
// CHECK-NEXT:   %[[V3:.+]] = fsdp.view %[[V2]] [@a] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V4:.+]] = tfm.matmul %[[ARG0]], %[[V3]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   fsdp.release %[[V2]]
// CHECK-NEXT:   %[[V5:.+]] = fsdp.all_gather_start @base
// CHECK-NEXT:   %[[V6:.+]] = fsdp.wait %[[V5]]
// CHECK-NEXT:   %[[V7:.+]] = fsdp.view %[[V6]] [@q] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V8:.+]] = tfm.matmul %[[V4]], %[[V7]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   fsdp.release %[[V6]]
// CHECK-NEXT:   tfm.return %[[V8]] : tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.func @nothing(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   tfm.return %[[ARG0]] : tensor<128x64xf32, #dims_T_>
tfm.architecture @m {
  tfm.param @q per_layer : !w {hf = "q.{layer}"}
  tfm.param @k per_layer : !w {hf = "k.{layer}"}
  tfm.param @a per_layer : !w {hf = "a.{layer}", trainable}
  fsdp.mesh @mesh ranks = 2
  fsdp.unit @base [@q, @k] layers = [0, 1]
  fsdp.unit @trained [@a] layers = [0, 1] {trainable}
  tfm.layer @forward(%x: !x) -> !x {
    %q = tfm.use [@q] : !w
    %y = tfm.linear %x, %q : !x, !w
    %a = tfm.use [@a] : !w
    %z = tfm.linear %y, %a : !x, !w
    %k = tfm.use [@k] : !w
    %z1 = tfm.linear %z, %k : !x, !w
    tfm.return %z1 : !x
  }
  tfm.layer @backward(%dy: !x, %y: !x) -> !x {
    %q = tfm.use [@q] : !w
    %a = tfm.use [@a] : !w
    %da = tfm.matmul %dy, %y {trans_a} : !x, !x
    tfm.accumulate [@a], %da : !w
    %d = tfm.matmul %dy, %a : !x, !w
    %dx = tfm.matmul %d, %q : !x, !w
    tfm.return %dx : !x
  }
  tfm.func @nothing(%x: !x) -> !x {
    tfm.return %x : !x
  }
}

// -----

// What the body of a chunk loop uses is gathered once, outside the loop. A unit that
// is used on both sides of a stack is gathered for each: it is not whole for as long
// as the stack runs. The gradient is one for the loop and what comes after it.
// CHECK-LABEL: tfm.func @body(
// CHECK-SAME: %[[ARG0:.+]]: tensor<32x64xf32, #dims_C_>, %[[ARG1:.+]]: tensor<64x64xf32>) -> tensor<32x64xf32, #dims_C_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.linear %[[ARG0]], %[[ARG1]] : tensor<32x64xf32, #dims_C_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.matmul %[[V0]], %[[ARG0]] {trans_a} : tensor<32x64xf32, #dims_C_>, tensor<32x64xf32, #dims_C_>
// CHECK-NEXT:   tfm.accumulate [@h], %[[V1]] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.matmul %[[V0]], %[[ARG1]] : tensor<32x64xf32, #dims_C_>, tensor<64x64xf32>
// CHECK-NEXT:   tfm.return %[[V2]] : tensor<32x64xf32, #dims_C_>
// CHECK-LABEL: tfm.func @micro_step(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_R_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = fsdp.all_gather_start @h.trained
// CHECK-NEXT:   %[[V1:.+]] = fsdp.wait %[[V0]]
// CHECK-NEXT:   %[[V2:.+]] = fsdp.view %[[V1]] [@h] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V3:.+]] = tfm.linear %[[ARG0]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   fsdp.release %[[V1]]
// CHECK-NEXT:   %[[V4:.+]] = tfm.stack(%[[V3]]) kinds = [@k] {layers = array<i32: 0, 0>} : tensor<128x64xf32, #dims_T_> -> tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V5:.+]] = fsdp.all_gather_start @h.trained
// CHECK-NEXT:   %[[V6:.+]] = fsdp.wait %[[V5]]
// CHECK-NEXT:   %[[V7:.+]] = fsdp.view %[[V6]] [@h] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V8:.+]] = fsdp.view %[[V6]] [@h] : tensor<64x64xf32>
// CHECK-NEXT:   fsdp.gradient_start @h.trained
// CHECK-NEXT:   %[[V9:.+]] = tfm.chunk_loop(%[[ARG1]]) shared(%[[V8]]) body = @body chunk = 32 : (tensor<128x64xf32, #dims_R_>) shared(tensor<64x64xf32>) -> tensor<128x64xf32, #dims_R_>
// CHECK-NEXT:   %[[V10:.+]] = tfm.linear %[[V4]], %[[V7]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   fsdp.release %[[V6]]
// CHECK-NEXT:   %[[V11:.+]] = tfm.matmul %[[V10]], %[[V4]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@h], %[[V11]] : tensor<64x64xf32>
// CHECK-NEXT:   fsdp.reduce_scatter_start @h.trained
// CHECK-NEXT:   tfm.return %[[V10]] : tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.func @optimizer_step(
// CHECK-NEXT:   tfm.return

// What is reduced once a step is not reduced here; the optimizer step begins by it.
// STEP-LABEL: tfm.func @micro_step(
// STEP-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_R_>) -> tensor<128x64xf32, #dims_T_> {
// STEP-NEXT:   %[[V0:.+]] = fsdp.all_gather_start @h.trained
// STEP-NEXT:   %[[V1:.+]] = fsdp.wait %[[V0]]
// STEP-NEXT:   %[[V2:.+]] = fsdp.view %[[V1]] [@h] : tensor<64x64xf32>
// STEP-NEXT:   %[[V3:.+]] = tfm.linear %[[ARG0]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// STEP-NEXT:   fsdp.release %[[V1]]
// STEP-NEXT:   %[[V4:.+]] = tfm.stack(%[[V3]]) kinds = [@k] {layers = array<i32: 0, 0>} : tensor<128x64xf32, #dims_T_> -> tensor<128x64xf32, #dims_T_>
// STEP-NEXT:   %[[V5:.+]] = fsdp.all_gather_start @h.trained
// STEP-NEXT:   %[[V6:.+]] = fsdp.wait %[[V5]]
// STEP-NEXT:   %[[V7:.+]] = fsdp.view %[[V6]] [@h] : tensor<64x64xf32>
// STEP-NEXT:   %[[V8:.+]] = fsdp.view %[[V6]] [@h] : tensor<64x64xf32>
// STEP-NEXT:   %[[V9:.+]] = tfm.chunk_loop(%[[ARG1]]) shared(%[[V8]]) body = @body chunk = 32 : (tensor<128x64xf32, #dims_R_>) shared(tensor<64x64xf32>) -> tensor<128x64xf32, #dims_R_>
// STEP-NEXT:   %[[V10:.+]] = tfm.linear %[[V4]], %[[V7]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// STEP-NEXT:   fsdp.release %[[V6]]
// STEP-NEXT:   %[[V11:.+]] = tfm.matmul %[[V10]], %[[V4]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// STEP-NEXT:   tfm.accumulate [@h], %[[V11]] : tensor<64x64xf32>
// STEP-NEXT:   tfm.return %[[V10]] : tensor<128x64xf32, #dims_T_>
// STEP-LABEL: tfm.func @optimizer_step(
// STEP-NEXT:   fsdp.reduce_sums @h.trained
// STEP-NEXT:   tfm.return

// Ranks that hold the same range of a gradient sum it once a step, after the sums.
// GROUPS-LABEL: tfm.func @optimizer_step(
// GROUPS-NEXT:   fsdp.reduce_replicas @h.trained
// GROUPS-NEXT:   tfm.return
// BOTH-LABEL: tfm.func @optimizer_step(
// BOTH-NEXT:   fsdp.reduce_sums @h.trained
// BOTH-NEXT:   fsdp.reduce_replicas @h.trained
// BOTH-NEXT:   tfm.return

// On a deterministic mesh every reduction is over all ranks.
// WORLD-LABEL: tfm.func @optimizer_step(
// WORLD-NEXT:   tfm.return
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>
!rx = tensor<128x64xf32, #tfm.dims<"R", "">>
!cx = tensor<32x64xf32, #tfm.dims<"C", "">>
tfm.architecture @head {
  tfm.param @h : !w {hf = "h", trainable}
  tfm.param @q per_layer : !w {hf = "q.{layer}"}
  fsdp.mesh @mesh ranks = 2
  fsdp.unit @h.trained [@h] {trainable}
  fsdp.unit @layers.base [@q] layers = [0, 1]
  tfm.layer @k(%x: !x) -> !x {
    %q = tfm.use [@q] : !w
    %y = tfm.linear %x, %q : !x, !w
    tfm.return %y : !x
  }
  tfm.func @body(%x: !cx) -> !cx {
    %h = tfm.use [@h] : !w
    %y = tfm.linear %x, %h : !cx, !w
    %dh = tfm.matmul %y, %x {trans_a} : !cx, !cx
    tfm.accumulate [@h], %dh : !w
    %dx = tfm.matmul %y, %h : !cx, !w
    tfm.return %dx : !cx
  }
  tfm.func @micro_step(%x: !x, %r: !rx) -> !x {
    %h = tfm.use [@h] : !w
    %x0 = tfm.linear %x, %h : !x, !w
    %y = tfm.stack(%x0) kinds = [@k] {layers = array<i32: 0, 0>} : !x -> !x
    %d = tfm.chunk_loop(%r) body = @body chunk = 32 : (!rx) -> !rx
    %z = tfm.linear %y, %h : !x, !w
    %dh = tfm.matmul %z, %y {trans_a} : !x, !x
    tfm.accumulate [@h], %dh : !w
    tfm.return %z : !x
  }
  tfm.func @optimizer_step() {
    tfm.return
  }
}
