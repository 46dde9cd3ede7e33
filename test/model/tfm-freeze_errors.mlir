// RUN: %opt %s --split-input-file --verify-diagnostics --tfm-freeze=train=all
// RUN: not %opt %s --split-input-file --tfm-freeze=train=some 2>&1 | FileCheck %s --check-prefix=SOME
// RUN: not %opt %s --split-input-file --tfm-freeze=train=adapters 2>&1 | FileCheck %s --check-prefix=NOTHING
// SOME: [FSDPQ-0130] train = 'some'; known: all, adapters
// NOTHING: [FSDPQ-0132] nothing is trainable: the model has no adapters

tfm.architecture @m {
  // expected-error@+1 {{[FSDPQ-0131] @q is quantised and cannot be trained; train adapters}}
  tfm.param @q per_layer : tensor<64x64x!qt.nf4<block = 64, scale = f32>> {hf = "q.{layer}"}
}
