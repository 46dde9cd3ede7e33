//===- Passes.td - Passes of the CPU target -------------------------------===//

#ifndef FSDPQ_TARGET_CPU_PASSES_TD
#define FSDPQ_TARGET_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def KernToLLVM : Pass<"kern-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Lower kern.func to LLVM dialect functions of the CPU ABI";
  let description = [{
    Every `kern.func` becomes

    ```
    void symbol(void *const *args, int64_t begin, int64_t end)
    ```

    which executes the work items [begin, end), and a private function
    `symbol.items` with the loop over them, whose pointer arguments do not
    alias. Results do not depend on how a grid is cut into calls.

    Elementwise producers are fused, tiles that can be computed in place are,
    other tiles live in the stack frame (at most 256 KiB a kernel, more is an
    error). Contractions become register-tiled vector code, table look-ups
    vector permutes, the rest scalar loops for LLVM to vectorise. Fast-math
    flags are those that the body has: none is added.

    ```mlir
    kern.func @zero(%x: memref<?x64xf32>) grid(%row) {
      %c0 = arith.constant 0 : index
      %z = arith.constant dense<0.0> : tensor<64xf32>
      kern.store %z, %x[%row, %c0] : tensor<64xf32> -> memref<?x64xf32>
    }
    // becomes
    llvm.func internal @zero.items(!llvm.ptr {llvm.noalias}, i64, i64)
    llvm.func @zero(!llvm.ptr, i64, i64)
    ```
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "unsigned", /*default=*/"512",
           "Width of the target's vector registers: 128, 256 or 512">,
    Option<"permutes", "permutes", "bool", /*default=*/"true",
           "The target has AVX-512F permutes, for tables of 16 entries">,
  ];
}

#endif // FSDPQ_TARGET_CPU_PASSES_TD
