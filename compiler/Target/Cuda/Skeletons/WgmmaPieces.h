//===- WgmmaPieces.h - What the wgmma attention texts share -----*- C++ -*-===//
//
// The texts of forward, gradQ and gradKV are these pieces end to end:
//   wgmmaConstants   literals of the shape
//   wgmmaPrelude     PTX instructions as functions
//   wgmmaProducts    matrix products of a warpgroup
//   wgmmaSchedule    which tiles a block computes, in which order
//   wgmmaGradBlocks  in gradQ and gradKV: products of tiles and blocks
//   (the kernel)
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/Skeletons/Attention.h"

#include <string>
#include <string_view>

namespace fsdpq::cuda {

/// HEADS, KV_HEADS, GROUP, E, PIECES (of 64 columns), Q_COLUMN .. V_COLUMN,
/// Q_PITCH, KV_PITCH, O_PITCH, SCALE, SCALE_LOG2. TILE_HEADS: heads that tiles
/// are made of; SORTED_TILES: so many tiles are dealt out over all heads at
/// once, as what they read (`streamedHeads` heads of two matrices) stays in the
/// L2 cache.
std::string wgmmaConstants(const AttentionParams &, int64_t tileHeads,
                           int64_t streamedHeads);

/// Types, barriers, copies, wgmma descriptors, stores of accumulators.
extern const std::string_view wgmmaPrelude;

/// first_product and add_product of two operands in shared memory for
/// 64 x `sharedColumns` accumulators, add_product with the left operand in
/// registers for 64 x `registerColumns`.
std::string wgmmaProducts(int sharedColumns, int registerColumns);

/// MAX_TILES, sort_key, sort_tiles, sort_query_tiles, Schedule.
extern const std::string_view wgmmaSchedule;

/// STAGES, LOG2E, TILE, BLOCK; inner and outer: what both gradients multiply.
extern const std::string_view wgmmaGradBlocks;

/// The kernel's parameters up to the tensor maps.
struct WgmmaOperands {
  std::string matrices;    ///< "const u16* qkv" or q, k, v
  std::string maps;        ///< parameters of the tensor maps
  std::string q, k, v, dO; ///< names of the tensor maps
  LaunchShape launch;      ///< with maps; threads, items and blocks
};

/// `withGrad`: `dO` follows q, k and v. Boxes are 64 columns x `boxRows`.
WgmmaOperands wgmmaOperands(const AttentionParams &, unsigned boxRows,
                            bool withGrad);

} // namespace fsdpq::cuda
