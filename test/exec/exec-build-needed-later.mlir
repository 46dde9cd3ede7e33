// RUN: %opt %s --exec-build | FileCheck %s

// A value that is needed after it was handed to something that overwrites it
// must survive: in a copy, or as a copy.
!x = tensor<4x2xf32>
tfm.architecture @m {
  tfm.param @w : !x {hf = "w"}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @u [@w] {bytes = 256 : i64, parts = [#fsdp.part<@w, "data", offset = 0, bytes = 32>]}
  kern.func @make(%x: memref<?x2xf32>, %y: memref<?x2xf32>) grid(%i) {
  }
  kern.func @add(%x: memref<?x2xf32>, %s: memref<?x2xf32>, %y: memref<?x2xf32>) grid(%i) {
  }
  tfm.layer @k(%x: !x) -> !x {
    %e = kern.empty : !x
    %y = kern.call @make(%x) into(%e) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x) into(!x)
    tfm.return %y : !x
  }
  tfm.layer @s(%x: !x, %s: !x) -> !x {
    %e = kern.empty : !x
    %y = kern.call @add(%x, %s) into(%e) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x, !x) into(!x)
    tfm.return %y : !x
  }

  // The stack's input, read again after it: the loop overwrites its slot.
  // CHECK-LABEL: exec.func @after_stack
  // CHECK: exec.launch @make reads(%{{.*}}) writes(%[[X:[0-9]+]])
  // CHECK: exec.copy %[[X]] to %{{.*}}
  // CHECK: exec.loop
  // CHECK: exec.launch @add reads(%{{.*}}, %[[X]])
  tfm.func @after_stack(%p: !x {tfm.port = "x"}) {
    %e = kern.empty : !x
    %x = kern.call @make(%p) into(%e) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x) into(!x)
    %y = tfm.stack(%x) kinds = [@k] {layers = array<i32: 0, 0>} : !x -> !x
    %e1 = kern.empty : !x
    %z = kern.call @add(%y, %x) into(%e1) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x, !x) into(!x)
    tfm.return
  }

  // The stack's input, shared by all layers as well.
  // CHECK-LABEL: exec.func @shared
  // CHECK: exec.launch @make reads(%{{.*}}) writes(%[[S:[0-9]+]])
  // CHECK: exec.copy %[[S]] to %{{.*}}
  // CHECK: exec.loop
  // CHECK: exec.launch @add reads(%{{.*}}, %[[S]])
  tfm.func @shared(%p: !x {tfm.port = "x"}) {
    %e = kern.empty : !x
    %x = kern.call @make(%p) into(%e) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x) into(!x)
    %y = tfm.stack(%x) shared(%x) kinds = [@s] {layers = array<i32: 0, 0>} : !x, !x -> !x
    tfm.return
  }

  // The host's array, read again after an operation in place.
  // CHECK-LABEL: exec.func @argument
  // CHECK: %[[P:.*]] = exec.slice "x" of @step
  // CHECK: exec.copy %[[P]] to %[[C:.*]] bytes
  // CHECK: exec.launch @make reads(%[[P]]) writes(%[[C]])
  // CHECK: exec.launch @make reads(%[[P]])
  tfm.func @argument(%p: !x {tfm.port = "x"}) {
    %z = kern.call @make(%p) into(%p) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x) into(!x)
    %e = kern.empty : !x
    %y = kern.call @make(%p) into(%e) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x) into(!x)
    tfm.return
  }

  // A parameter is never written in place.
  // CHECK-LABEL: exec.func @parameter
  // CHECK: %[[W:.*]] = exec.slice "w" of @base
  // CHECK: exec.copy %[[W]] to %[[C:.*]] bytes
  // CHECK: exec.launch @make reads(%{{.*}}) writes(%[[C]])
  tfm.func @parameter(%p: !x {tfm.port = "x"}) {
    %g = fsdp.local @u
    %w = fsdp.view %g [@w] : !x
    %z = kern.call @make(%p) into(%w) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x) into(!x)
    tfm.return
  }
}
