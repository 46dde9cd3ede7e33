//===- NcclApi.h - NCCL's functions -----------------------------*- C++ -*-===//
#pragma once

#include <nccl.h>
#include <string>

namespace fsdpq::rt {

#define FSDPQ_NCCL_FUNCTIONS(F)                                                \
  F(ncclGetErrorString)                                                        \
  F(ncclGetLastError)                                                          \
  F(ncclGetUniqueId)                                                           \
  F(ncclCommInitRank)                                                          \
  F(ncclCommDestroy)                                                           \
  F(ncclCommAbort)                                                             \
  F(ncclCommGetAsyncError)                                                     \
  F(ncclAllGather)                                                             \
  F(ncclReduceScatter)                                                         \
  F(ncclAllReduce)

/// Found in libnccl.so.2 once in a process.
struct NcclApi {
  /// Error 4040 without the library, 4041 if it is too old.
  static const NcclApi &get();

#define FSDPQ_DECLARE(name) decltype(&::name) name;
  FSDPQ_NCCL_FUNCTIONS(FSDPQ_DECLARE)
#undef FSDPQ_DECLARE

  /// What a result means, with what NCCL said last on this process.
  std::string text(ncclResult_t result) const;
};

} // namespace fsdpq::rt
