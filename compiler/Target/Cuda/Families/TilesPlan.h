//===- TilesPlan.h - Which tiles live in shared memory, and where -*- C++
//-*-===//
#pragma once

#include "compiler/Target/Cuda/Families/Emitter.h"

namespace fsdpq::cuda {

/// A piece of shared memory, for one tile or for several that follow each other
/// in place.
struct TileBuffer {
  Type element;
  int64_t elements;
  int64_t begin = 0, end = 0; ///< numbers of the first and last op that use it
  int64_t offset = 0;         ///< in bytes

  int64_t getBytes() const { return elements * cuda::getBytes(element); }
};

struct TilesPlan {
  static FailureOr<TilesPlan> of(kern::FuncOp kernel, Decline &declined);

  std::vector<TileBuffer> buffers;
  /// The buffer of each tile that is kept.
  llvm::DenseMap<Value, unsigned> places;
  int64_t sharedBytes = 0;

  std::optional<unsigned> getPlace(Value tile) const {
    auto found = places.find(tile);
    if (found == places.end())
      return std::nullopt;
    return found->second;
  }
};

/// Whether the op only repeats scalars: no element of a tile is read.
bool isFill(linalg::GenericOp op);

} // namespace fsdpq::cuda
