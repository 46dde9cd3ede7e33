//===- Gpu.h - The commands of fsdpq_gpu ------------------------*- C++ -*-===//
#pragma once

namespace fsdpq::test {

/// Kernels against the CPU back end; see KernelCheck.cpp.
int checkKernels(int argc, char **argv);
/// Texts of attention, for attention_check.py; see DumpAttention.cpp.
int dumpAttention(int argc, char **argv);
/// Speed and memory of training steps; see TrainStep.cpp.
int measureStep(int argc, char **argv);

} // namespace fsdpq::test
