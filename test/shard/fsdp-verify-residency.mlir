// RUN: sed s/RANKS/1/ %s | %opt --fsdp-assign-layout --fsdp-insert-collectives --fsdp-fold-trivial-collectives --fsdp-verify-residency | FileCheck %s
// RUN: sed s/RANKS/2/ %s | %opt --fsdp-assign-layout --fsdp-insert-collectives --fsdp-fold-trivial-collectives --fsdp-verify-residency | FileCheck %s

!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.architecture @m
tfm.architecture @m {
  tfm.param @q per_layer : !w {hf = "q.{layer}"}
  fsdp.mesh @mesh ranks = RANKS
  fsdp.unit @base [@q] layers = [0]
  tfm.layer @k(%x: !w) -> !w {
    %q = tfm.use [@q] : !w
    %y = tfm.linear %x, %q : !w, !w
    tfm.return %y : !w
  }
}
