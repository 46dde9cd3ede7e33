//===- Passes.td - The kernel phase: how computed -------------------------===//

#ifndef FSDPQ_KERNEL_PASSES_TD
#define FSDPQ_KERNEL_PASSES_TD

include "mlir/Pass/PassBase.td"

class KernelPass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = [
    "::fsdpq::tfm::TfmDialect", "::fsdpq::qt::QTDialect", "::fsdpq::fsdp::FsdpDialect",
    "::fsdpq::kern::KernDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
}

def KernOutline : KernelPass<"kern-outline"> {
  let summary = "Turn computing operations into kernels, products and calls";
  let description = [{
    Every tfm operation that computes becomes calls of kernel functions and
    matrix products in destination-passing style. Quantised weights are
    dequantised once in each function that multiplies by them. A gradient whose
    only use is `tfm.accumulate` is added where it belongs.

    Input:
    ```mlir
    %y, %rstd = tfm.rms_norm %x, %w {eps = 1.0e-5} : !x, !norm
    %q = tfm.linear %y, %wq : !x, !w
    ```
    Output:
    ```mlir
    kern.func @rms_norm(%x: memref<?x64xf32>, ...) grid(%row) { ... }
    %e0 = kern.empty : !x
    %e1 = kern.empty : !t
    %y, %rstd = kern.call @rms_norm(%x, %w) into(%e0, %e1) grid = ... : ...
    %e2 = kern.empty : !q
    %q = kern.gemm %y, %wq into %e2 {trans_b, ...} : !x, !w into !q
    ```
  }];
  let options = [Option<"rowTokens", "row-tokens", "int64_t", "0",
                        "Tokens that see each other at most, for the cost of "
                        "attention; 0: all">];
  let statistics = [Statistic<"numKernels", "kernels", "Kernels made">];
}

def KernOutlineLoaders : KernelPass<"kern-outline-loaders"> {
  let summary = "Add the functions that load units and their parameters";
  let description = [{
    A unit is put together in a buffer of its size: `load.begin.<unit>` empties
    it, `load.store.<unit>` takes this rank's range of it. For each parameter that
    a checkpoint holds, `load.<name>` takes a piece of its values in f32 and
    copies, rounds or quantises it; pieces are of equal size, each of at most 4 Mi elements
    where the shape allows, and depend on nothing but the shape. Where scales are
    quantised too, `load.mean.<name>` computes their mean over all pieces on all
    ranks, `load.scales.<name>` quantises those of a piece, and
    `load.offset.<name>` stores the mean.

    Output:
    ```mlir
    tfm.func @load.norm(%v: tensor<64xf32> {tfm.port = "staging"}) {
      %d = fsdp.part_of @norm "data" pieces = 1 : tensor<64xf32>
      %0 = kern.copy %v into %d : tensor<64xf32> into tensor<64xf32>
      tfm.return
    }
    ```
  }];
}

def KernDedup : KernelPass<"kern-dedup"> {
  let summary = "Join kernels with equal bodies";
  let description = [{
    Kernels that differ in name alone become one, named for its family:
    `rms_norm`, and where different ones of a family remain `rms_norm.1`, ...

    Input:
    ```mlir
    kern.func @add_3(...) { A }
    kern.func @add_4(...) { A }
    ```
    Output:
    ```mlir
    kern.func @add(...) { A }
    ```
  }];
  let statistics = [Statistic<"numJoined", "joined", "Kernels removed">];
}

def KernSelectImpl : KernelPass<"kern-select-impl"> {
  let summary = "Choose a library or an emitted kernel for each product";
  let description = [{
    `impl = "library"` leaves `kern.gemm` to the device's library where that
    multiplies elements of the type (`library-types`: those of the CPU's library
    are f32 and bf16, a GPU's also has f64), with a result in the same type or, of
    bf16, in f32; `impl = "emitted"` and products of other types become calls of
    emitted kernels.

    Input:
    ```mlir
    %y = kern.gemm %x, %w into %e {trans_b, ...} : tensor<8x4xf64>, tensor<2x4xf64> into tensor<8x2xf64>
    ```
    Output:
    ```mlir
    %y = kern.call @matmul(%x, %w) into(%e) grid = ... : ...
    ```
  }];
  let options = [
    Option<"impl", "impl", "std::string", "\"library\"", "library or emitted">,
    ListOption<"libraryTypes", "library-types", "std::string",
               "Element types that the library multiplies; none: f32 and bf16">,
  ];
  let statistics = [Statistic<"numEmitted", "emitted", "Products emitted">];
}

def KernVerifyKernels : KernelPass<"kern-verify"> {
  let summary = "Check that the kernel phase is complete";
  let description = [{
    No operation that computes is left but `kern.call`, `kern.gemm`, `kern.copy`
    and `kern.fill`, and every kernel is called. Reports every offender. Does not change the IR.
  }];
}

#endif // FSDPQ_KERNEL_PASSES_TD
