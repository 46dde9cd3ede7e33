// RUN: not %opt %s --tfm-chunk-loss=rows=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not %opt %s --tfm-chunk-loss=rows=200 2>&1 | FileCheck %s --check-prefix=ODD
// ZERO: [FSDPQ-0211] rows = 0: a positive multiple of 128 is needed
// ODD: [FSDPQ-0211] rows = 200: a positive multiple of 128 is needed

// RUN: %opt %s --verify-diagnostics --tfm-chunk-loss=rows=128

tfm.architecture @m {
  tfm.func @head(%x: tensor<200x4xf32, #tfm.dims<"C", "">>) {
    tfm.return
  }
  tfm.func @f(%x: tensor<200x4xf32, #tfm.dims<"R", "">>) {
    // expected-error@+1 {{[FSDPQ-0212] 200 rows cannot be cut into chunks of multiples of 128}}
    tfm.chunk_loop(%x) body = @head chunk = 200 : (tensor<200x4xf32, #tfm.dims<"R", "">>)
    tfm.return
  }
}
