// RUN: %opt %s --verify-diagnostics --tfm-autodiff

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!cx = tensor<128x64xf32, #tfm.dims<"C", "">>

tfm.architecture @m {
  tfm.param @w : tensor<64x64xf32> {hf = "w", trainable}
  tfm.func @head(%x: !cx, %w: tensor<64x64xf32>) {
    %y = tfm.linear %x, %w : !cx, tensor<64x64xf32>
    tfm.return
  }
  tfm.func @micro_step(%x: !x) {
    %w = tfm.use [@w] : tensor<64x64xf32>
    // expected-error@+1 {{[FSDPQ-0201] the gradient of a value that all chunks share is not supported}}
    tfm.chunk_loop(%x) shared(%w) body = @head chunk = 128 : (!x) shared(tensor<64x64xf32>)
    tfm.return
  }
}
