// RUN: %opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{block must be a power of two from 2 to 4096, got 48}}
func.func private @block(!qt.nf4<block = 48, scale = f32>)

// -----

// expected-error@+1 {{block must be a power of two from 2 to 4096, got 1}}
func.func private @small(!qt.fp4<block = 1, scale = f32>)

// -----

// expected-error@+1 {{block must be a power of two from 2 to 4096, got 8192}}
func.func private @large(!qt.nf4<block = 8192, scale = f32>)

// -----

// expected-error@+1 {{the nested block must be a power of two, got 100}}
func.func private @nested(!qt.nf4<block = 64, scale = dq<100>>)

// -----

// expected-error@+1 {{the nested block must be a power of two, got 1}}
func.func private @nested(!qt.nf4<block = 64, scale = dq<1>>)

// -----

// expected-error@+1 {{scale is 'f32' or 'dq<N>', not 'bf16'}}
func.func private @scale(!qt.nf4<block = 64, scale = bf16>)

// -----

func.func @quantizeToFloat(%w: tensor<64xf32>) {
  // expected-error@+1 {{needs a qt element type on its quantised side, got 'bf16'}}
  %q = qt.quantize %w : tensor<64xf32> -> tensor<64xbf16>
  return
}

// -----

func.func @dequantizeFloat(%w: tensor<64xf32>) {
  // expected-error@+1 {{needs a qt element type on its quantised side, got 'f32'}}
  %q = qt.dequantize %w : tensor<64xf32> -> tensor<64xf32>
  return
}

// -----

func.func @quantizeInteger(%w: tensor<64xi32>) {
  // expected-error@+1 {{needs a floating-point element type on its other side, got 'i32'}}
  %q = qt.quantize %w : tensor<64xi32> -> tensor<64x!qt.nf4<block = 64, scale = f32>>
  return
}

// -----

func.func @shape(%w: tensor<64x2xf32>) {
  // expected-error@+1 {{changes the shape: 'tensor<128x!qt.nf4<block = 64, scale = f32>>' against 'tensor<64x2xf32>'}}
  %q = qt.quantize %w : tensor<64x2xf32> -> tensor<128x!qt.nf4<block = 64, scale = f32>>
  return
}
