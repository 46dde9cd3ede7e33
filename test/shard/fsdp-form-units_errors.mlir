// RUN: %opt %s --verify-diagnostics --fsdp-form-units
// RUN: not %opt %s --fsdp-form-units=ranks=0 2>&1 | FileCheck %s
// CHECK: [FSDPQ-0300] ranks = 0, shards = 0: shards must divide ranks
// RUN: not %opt %s "--fsdp-form-units=ranks=4 shards=3" 2>&1 | FileCheck %s --check-prefix=THREE
// THREE: [FSDPQ-0300] ranks = 4, shards = 3: shards must divide ranks
// RUN: not %opt %s "--fsdp-form-units=ranks=2 shards=4" 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: [FSDPQ-0300] ranks = 2, shards = 4: shards must divide ranks
// RUN: not %opt %s "--fsdp-form-units=ranks=2 shards=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: [FSDPQ-0300] ranks = 2, shards = -1: shards must divide ranks

tfm.architecture @m {
  // expected-error@+1 {{[FSDPQ-0301] @q is used by no layer of a stack}}
  tfm.param @q per_layer : tensor<64xf32> {hf = "q.{layer}"}
  tfm.layer @alone(%x: tensor<64xf32>) -> tensor<64xf32> {
    %q = tfm.use [@q] : tensor<64xf32>
    tfm.return %q : tensor<64xf32>
  }
}
