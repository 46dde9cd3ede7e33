//===- MmaPieces.h - What the mma attention texts share ---------*- C++ -*-===//
//
// The texts of forward, gradQ and gradKV are these pieces end to end:
//   mmaConstants     literals of the shape and the tiles
//   mmaInstructions  PTX instructions as functions
//   mmaTileText      tiles in shared memory, products, which block does what
//   (the kernel)
// They run on every architecture from sm_80 on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/Skeletons/Attention.h"

#include <optional>
#include <string>

namespace fsdpq::cuda {

/// What a block holds. Forward and gradQ: a tile of queries stays, tiles of
/// keys stream by; gradKV: the other way round. Both divide 128; two tiles that
/// stream are in shared memory at a time, each of two matrices.
struct MmaTiles {
  int staying, streaming; ///< rows
  int warps;              ///< each has staying / warps rows, 16 or 32
  unsigned sharedBytes;
};

/// The largest tiles that fit on the architecture; nothing if none do.
std::optional<MmaTiles> mmaForwardTiles(const AttentionParams &,
                                        const Architecture &);
std::optional<MmaTiles> mmaGradQTiles(const AttentionParams &,
                                      const Architecture &);
std::optional<MmaTiles> mmaGradKVTiles(const AttentionParams &,
                                       const Architecture &);

/// The head dim with the columns of zeros that products need.
int64_t mmaPaddedDim(const AttentionParams &);

/// heads, kvHeads, group, headDim, paddedDim, pitches, window, queryRows,
/// keyRows, warps, threads, scaleLog2, hidden.
std::string mmaConstants(const AttentionParams &, int queryRows, int keyRows,
                         int warps);

std::string mmaInstructions(const AttentionParams &);
std::string mmaTileText(const AttentionParams &);

/// Parameters of q, k and v, ending in a comma, and what makes q, k, v of them.
struct MmaOperands {
  std::string parameters, pointers;
};
MmaOperands mmaOperands(const AttentionParams &);

LaunchShape mmaLaunch(const MmaTiles &);

} // namespace fsdpq::cuda
