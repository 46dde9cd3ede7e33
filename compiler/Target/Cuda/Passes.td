//===- Passes.td - Passes of the CUDA target ------------------------------===//

#ifndef FSDPQ_TARGET_CUDA_PASSES_TD
#define FSDPQ_TARGET_CUDA_PASSES_TD

include "mlir/Pass/PassBase.td"

def KernPrepareEmission : Pass<"kern-prepare-emission"> {
  let summary = "Choose how each kernel becomes CUDA text";
  let description = [{
    Sets `emission` of every `kern.func`. A body that is the one its hint
    `kern.family` describes may get a skeleton, a hand-written text for the shape
    at hand. Others are printed from their ops: `rows` keeps tiles in registers
    and takes what is elementwise or a reduction to scalars, `tiles` keeps them in
    shared memory and takes the rest. A kernel that no family can print is an
    error (FSDPQ-0510). Results are those of the body in any case.

    ```mlir
    kern.func @double(%x: memref<?x4096xf32>) grid(%row) {
      // loads a row, adds it to itself, stores it
    }
    // becomes
    kern.func @double(%x: memref<?x4096xf32>) grid(%row)
        attributes {emission = #kern.emission<family = "rows", threads = 256, group = 256>} {
    }
    ```
  }];
  let options = [
    Option<"arch", "arch", "std::string", /*default=*/"\"sm_90a\"",
           "GPU to emit for, as NVRTC names it">,
  ];
  let statistics = [
    Statistic<"numRows", "rows", "Kernels with tiles in registers">,
    Statistic<"numTiles", "tiles", "Kernels with tiles in shared memory">,
    Statistic<"numSkeletons", "skeletons", "Kernels with a skeleton">,
  ];
}

def KernToCuda : Pass<"kern-to-cuda"> {
  let summary = "Print the CUDA text of each prepared kernel";
  let description = [{
    For people and tests. Prints to standard output, for each `kern.func` with an
    `emission`, a line `// ==== name`, the shape of its launch and its text. The IR
    stays as it is.

    ```
    // ==== double
    // launch: threads = 256, items a block = 1, shared bytes = 0, blocks a processor = 0
    ```
  }];
  let options = [
    Option<"arch", "arch", "std::string", /*default=*/"\"sm_90a\"",
           "GPU to emit for, as NVRTC names it">,
  ];
}

def KernCheckResources : Pass<"kern-check-resources"> {
  let summary = "Check that prepared kernels can be launched";
  let description = [{
    Compiles the CUDA text of each `kern.func` with NVRTC, which takes no GPU. A
    kernel that NVRTC refuses, or that needs more registers, shared memory or
    threads than a block of the architecture has, is an error (FSDPQ-0520 to
    0525); all are reported. Remarks (`kernel-resources`) say what each kernel
    needs, and which of them spill registers. Does not change the IR.

    ```mlir
    kern.func @double(%x: memref<?x4096xf32>) grid(%row)
        attributes {emission = #kern.emission<family = "rows", threads = 256, group = 256>} {
    }
    // remark: @double: 256 threads of 24 registers, 0 bytes of shared memory
    ```
  }];
  let options = [
    Option<"arch", "arch", "std::string", /*default=*/"\"sm_90a\"",
           "GPU to compile for, as NVRTC names it">,
    Option<"cache", "cache", "std::string", /*default=*/"",
           "Folder of compiled kernels">,
  ];
}

#endif // FSDPQ_TARGET_CUDA_PASSES_TD
