// RUN: %opt %s --split-input-file --verify-diagnostics --tfm-check-differentiable

// All are reported at once: in the function, in layers, in the head.
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!cx = tensor<128x64xf32, #tfm.dims<"C", "">>

tfm.architecture @m {
  tfm.param @w per_layer : tensor<64x64xf32> {hf = "w.{layer}", trainable}
  tfm.layer @first(%x: !x) -> !x {
    // The layer's input is active because the stack has trainable layers.
    // expected-error@+1 {{[FSDPQ-0200] 'tfm.silu_grad' has no derivative rule but trainable parameters reach it}}
    %y = tfm.silu_grad %x, %x : !x, !x
    tfm.return %y : !x
  }
  tfm.layer @second(%x: !x) -> !x {
    %w = tfm.use [@w] : tensor<64x64xf32>
    %y = tfm.linear %x, %w : !x, tensor<64x64xf32>
    // expected-error@+1 {{[FSDPQ-0200] 'tfm.gated_silu_grad' has no derivative rule but trainable parameters reach it}}
    %z = tfm.gated_silu_grad %y, %y : !x, !x
    tfm.return %y : !x
  }
  tfm.func @head(%x: !cx) {
    // expected-error@+1 {{[FSDPQ-0200] 'tfm.emit' has no derivative rule but trainable parameters reach it}}
    tfm.emit "out", %x : !cx
    tfm.return
  }
  tfm.func @micro_step(%x: !x) {
    %y = tfm.stack(%x) kinds = [@first, @second] {layers = array<i32: 0, 1>} : !x -> !x
    // expected-error@+1 {{[FSDPQ-0200] 'tfm.silu_grad' has no derivative rule but trainable parameters reach it}}
    %z = tfm.silu_grad %y, %y : !x, !x
    tfm.chunk_loop(%z) body = @head chunk = 128 : (!x)
    tfm.return
  }
}
