// RUN: %opt %s --split-input-file --verify-diagnostics --tfm-build-programs=programs=logits,train

// expected-error@+1 {{[FSDPQ-0120] an architecture needs @trunk(ids, positions, segments) and @head(rows), each with one result}}
tfm.architecture @none {
}

// -----

// expected-error@+1 {{[FSDPQ-0120]}}
tfm.architecture @few {
  tfm.func @trunk(%ids: tensor<128xi32, #tfm.dims<"T">>) -> tensor<128xi32, #tfm.dims<"T">> {
    tfm.return %ids : tensor<128xi32, #tfm.dims<"T">>
  }
  tfm.func @head(%ids: tensor<128xi32, #tfm.dims<"T">>) -> tensor<128xi32, #tfm.dims<"T">> {
    tfm.return %ids : tensor<128xi32, #tfm.dims<"T">>
  }
}

// -----

!ids = tensor<128xi32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>

// expected-error@+1 {{[FSDPQ-0121] unknown program 'train'; known: micro_step, eval_step, logits}}
tfm.architecture @m {
  tfm.param @embed : tensor<384x64xf32> {hf = "embed"}
  tfm.func @trunk(%ids: !ids, %positions: !ids, %segments: !ids) -> !x {
    %w = tfm.use [@embed] : tensor<384x64xf32>
    %x = tfm.embedding %ids, %w : !ids, tensor<384x64xf32>
    tfm.return %x : !x
  }
  tfm.func @head(%x: !x) -> !x {
    tfm.return %x : !x
  }
}
