// RUN: %opt %s --tfm-set-precision --split-input-file --verify-diagnostics

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>
!ww = tensor<128x64xf32>

tfm.architecture @mixed {
  tfm.param @w : !w {hf = "w"}
  tfm.param @t : !w {hf = "t", trainable}
  tfm.func @f(%x: !x) -> tensor<128x128xf32, #tfm.dims<"T", "">> {
    // expected-error @below {{[FSDPQ-0160] joins the trained @t with frozen parameters, which are stored in 'bf16'}}
    %w = tfm.use [@w, @t] : !ww
    %y = tfm.linear %x, %w : !x, !ww
    tfm.return %y : tensor<128x128xf32, #tfm.dims<"T", "">>
  }
}

// -----

// One layer cannot take its shared operand in two types.
!ids = tensor<128xi32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>

tfm.architecture @shared {
  tfm.param @w : tensor<384x64xf32> {hf = "w"}
  tfm.layer @k(%x: !x, %s: !x) -> !x {
    %y = tfm.add %x, %x : !x, !x
    tfm.return %y : !x
  }
  tfm.func @f(%ids: !ids) -> !x {
    %w = tfm.use [@w] : tensor<384x64xf32>
    %x = tfm.embedding %ids, %w : !ids, tensor<384x64xf32>
    %table = tfm.rope_table %ids {theta = 1.0e4} : !ids -> !x
    %y = tfm.stack(%x) shared(%x) kinds = [@k] {layers = array<i32: 0>} : !x, !x -> !x
    // expected-error @below {{[FSDPQ-0161] gives 'tensor<128x64xf32, #tfm.dims<"T", "">>' to @k, which another operation gives 'tensor<128x64xbf16, #tfm.dims<"T", "">>'}}
    %z = tfm.stack(%y) shared(%table) kinds = [@k] {layers = array<i32: 0>} : !x, !x -> !x
    tfm.return %z : !x
  }
}
