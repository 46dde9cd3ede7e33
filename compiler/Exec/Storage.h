//===- Storage.h - Where units and ports lie --------------------*- C++ -*-===//
#pragma once

#include "dialects/Exec/Exec.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace fsdpq {

/// Bytes of a tensor at capacity.
int64_t getTensorBytes(RankedTensorType type);

/// Places units, their gradients and optimizer state, and the host's arrays in
/// arenas, and declares all of these in the plan. Of a unit only this rank's
/// range has a place.
class Storage {
public:
  Storage(tfm::ArchitectureOp architecture, exec::PlanOp plan);

  struct Place {
    StringRef arena;
    int64_t offset; ///< of the first layer
    int64_t stride; ///< from layer to layer
    int64_t bytes;
  };
  /// This rank's range of a unit.
  Place getRange(StringRef unit) const;
  /// The range of its gradient.
  Place getGradientRange(StringRef unit) const;
  /// What this rank alone has summed of a unit's gradient, whole, where that is
  /// reduced once an optimizer step.
  Place getGradientSum(StringRef unit) const;
  /// A buffer (data, gradient, state0, state1) of the ranges of all layers.
  Place getFlat(StringRef unit, StringRef buffer) const;
  /// An array of the host; made at its first request.
  Place getPort(StringRef name, RankedTensorType type, bool input,
                kern::ExtentAttr extent);
  /// The buffer that units are put together in, and what load functions hand on.
  Place getLoadBuffer() const;
  Place getScratch(StringRef name, int64_t bytes);

  /// Where a stored array of a parameter starts in its unit, and its size.
  fsdp::PartAttr findPart(StringRef param, StringRef part) const;
  fsdp::UnitOp getUnit(StringRef name) const;
  fsdp::UnitOp getUnitOf(StringRef param) const;
  bool hasGradientSum(StringRef unit) const { return summed.contains(unit); }
  fsdp::MeshOp getMesh() const { return mesh; }
  int64_t getShards() const { return shards; }

  /// The ordinal of a layer in a unit.
  static int64_t getOrdinal(fsdp::UnitOp unit, int64_t layer);
  /// How many layers a unit is of; 1 when it is not per layer.
  static int64_t countLayers(fsdp::UnitOp unit) {
    return unit.getLayers() ? unit.getLayers()->size() : 1;
  }
  static int64_t getBytes(fsdp::UnitOp unit) { return *unit.getBytes(); }

  /// Declares arenas, units and parameters, once all ports are known.
  void declare();

private:
  /// Offsets of a unit's first range in its arena (and in those of gradients
  /// and state) and of its first whole gradient in the arena of sums.
  struct UnitPlace {
    mutable fsdp::UnitOp op; ///< accessors of ops are not const
    int64_t offset, sumOffset;
  };
  const UnitPlace &placeOf(StringRef unit) const {
    return units.find(unit)->second;
  }
  void declareUnit(OpBuilder &builder, const UnitPlace &place);
  void declareParam(OpBuilder &builder, tfm::ParamOp param);
  /// @name if there is such a function, else null.
  FlatSymbolRefAttr findFunction(const Twine &name);

  tfm::ArchitectureOp architecture;
  exec::PlanOp plan;
  fsdp::MeshOp mesh;
  int64_t shards = 1;
  llvm::MapVector<StringRef, UnitPlace> units;
  llvm::DenseMap<StringRef, StringRef> unitNames; ///< by parameter
  llvm::StringSet<> summed;
  llvm::StringMap<Place> ports, scratch;
  int64_t baseBytes = 0, trainedBytes = 0, sumBytes = 0, stepBytes = 0;
  int64_t stagedBytes = 0, loadBytes = 0, scratchBytes = 0;
  unsigned stateBuffers = 0;
};

} // namespace fsdpq
