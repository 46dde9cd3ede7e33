//===- NcclApi.h - NCCL's functions -----------------------------*- C++ -*-===//
//
// What is used of nccl.h, declared here: the header comes with a library of 300
// megabytes, which building fsdpq should not need. Numbers and layouts are the
// library's binary interface; test/unit/device/HeadersTest.cpp compares them with the
// header where there is one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cuda.h>
#include <string>

namespace fsdpq::rt {

enum ncclResult_t : int {
  ncclSuccess = 0,
  ncclInternalError = 3,
  ncclInProgress = 7,
};
enum ncclDataType_t : int {
  ncclUint8 = 1,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
};
enum ncclRedOp_t : int { ncclSum = 0 };

using ncclComm_t = struct ncclComm *;
struct ncclUniqueId {
  char internal[128];
};

/// Found in libnccl.so.2 once in a process.
struct NcclApi {
  /// Error 4040 without the library, 4041 if it is too old.
  static const NcclApi &get();

  const char *(*ncclGetErrorString)(ncclResult_t);
  const char *(*ncclGetLastError)(ncclComm_t);
  ncclResult_t (*ncclGetUniqueId)(ncclUniqueId *);
  ncclResult_t (*ncclCommInitRank)(ncclComm_t *, int size, ncclUniqueId,
                                   int rank);
  ncclResult_t (*ncclCommDestroy)(ncclComm_t);
  ncclResult_t (*ncclCommAbort)(ncclComm_t);
  ncclResult_t (*ncclCommGetAsyncError)(ncclComm_t, ncclResult_t *);
  ncclResult_t (*ncclAllGather)(const void *send, void *receive, size_t count,
                                ncclDataType_t, ncclComm_t, CUstream);
  ncclResult_t (*ncclReduceScatter)(const void *send, void *receive,
                                    size_t count, ncclDataType_t, ncclRedOp_t,
                                    ncclComm_t, CUstream);
  ncclResult_t (*ncclAllReduce)(const void *send, void *receive, size_t count,
                                ncclDataType_t, ncclRedOp_t, ncclComm_t,
                                CUstream);

  /// What a result means, with what NCCL said last on this process.
  std::string text(ncclResult_t result) const;
};

} // namespace fsdpq::rt
