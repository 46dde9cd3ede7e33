//===- DriverApi.h - The CUDA driver's functions ----------------*- C++ -*-===//
#pragma once

#include "runtime/support/Error.h"

#include <cuda.h>
#include <string>

namespace fsdpq::rt {

// cuda.h gives most of these names a version ("cuMemAlloc_v2"): it is expanded
// wherever they are used, here and by callers.
#define FSDPQ_DRIVER_FUNCTIONS(F)                                              \
  F(cuInit)                                                                    \
  F(cuGetErrorName)                                                            \
  F(cuGetErrorString)                                                          \
  F(cuDeviceGetCount)                                                          \
  F(cuDeviceGet)                                                               \
  F(cuDeviceGetName)                                                           \
  F(cuDeviceGetAttribute)                                                      \
  F(cuDeviceTotalMem)                                                          \
  F(cuDeviceCanAccessPeer)                                                     \
  F(cuDevicePrimaryCtxRetain)                                                  \
  F(cuDevicePrimaryCtxRelease)                                                 \
  F(cuCtxSetCurrent)                                                           \
  F(cuCtxGetCurrent)                                                           \
  F(cuCtxGetStreamPriorityRange)                                               \
  F(cuMemGetInfo)                                                              \
  F(cuMemAlloc)                                                                \
  F(cuMemFree)                                                                 \
  F(cuMemHostAlloc)                                                            \
  F(cuMemHostGetDevicePointer)                                                 \
  F(cuMemFreeHost)                                                             \
  F(cuMemsetD8Async)                                                           \
  F(cuMemcpyHtoDAsync)                                                         \
  F(cuMemcpyDtoHAsync)                                                         \
  F(cuMemcpyDtoDAsync)                                                         \
  F(cuStreamCreateWithPriority)                                                \
  F(cuStreamDestroy)                                                           \
  F(cuStreamQuery)                                                             \
  F(cuStreamSynchronize)                                                       \
  F(cuStreamWaitEvent)                                                         \
  F(cuStreamWaitValue32)                                                       \
  F(cuEventCreate)                                                             \
  F(cuEventDestroy)                                                            \
  F(cuEventRecord)                                                             \
  F(cuEventQuery)                                                              \
  F(cuEventSynchronize)                                                        \
  F(cuEventElapsedTime)                                                        \
  F(cuLaunchHostFunc)                                                          \
  F(cuLaunchKernel)                                                            \
  F(cuModuleLoadData)                                                          \
  F(cuModuleUnload)                                                            \
  F(cuModuleGetFunction)                                                       \
  F(cuFuncGetAttribute)                                                        \
  F(cuFuncSetAttribute)                                                        \
  F(cuFuncGetParamInfo)                                                        \
  F(cuTensorMapEncodeTiled)

/// Found in libcuda.so.1 once in a process.
struct DriverApi {
  /// Error 4040 without a driver, 4041 if it is too old. It is initialised: Error
  /// 4042 if it finds no GPU or cannot be used.
  static const DriverApi &get();

#define FSDPQ_DECLARE(name) decltype(&::name) name;
  FSDPQ_DRIVER_FUNCTIONS(FSDPQ_DECLARE)
#undef FSDPQ_DECLARE

  /// "CUDA_ERROR_INVALID_VALUE (invalid argument)"
  std::string text(CUresult result) const;

  /// The Error for a call that failed "launching kernel 'x'": 4050, or 4002 where
  /// memory ran out. Of failures that appear in whatever call comes next, it says
  /// so.
  Error error(CUresult result, const std::string &action) const;
  void check(CUresult result, const char *action) const {
    if (result != CUDA_SUCCESS)
      throw error(result, action);
  }
};

/// The GPU cannot be used any more by this process.
bool endsContext(CUresult result);

} // namespace fsdpq::rt
