//===- Storage.h - Where units and ports lie --------------------*- C++ -*-===//
#pragma once

#include "dialects/Exec/Exec.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"
#include "llvm/ADT/MapVector.h"

namespace fsdpq {

/// Bytes of a tensor at capacity.
int64_t getTensorBytes(RankedTensorType type);

/// Places units, their gradients and optimizer state, and the host's arrays in
/// arenas, and declares all of these in the plan.
class Storage {
public:
  Storage(tfm::ArchitectureOp architecture, exec::PlanOp plan);

  struct Place {
    StringRef arena;
    int64_t offset; ///< of the first layer
    int64_t stride; ///< from layer to layer
    int64_t bytes;
  };
  /// A stored array of a parameter.
  Place getPart(StringRef param, StringRef part) const;
  /// The gradient of a parameter.
  Place getGradient(StringRef param) const;
  /// A whole buffer (data, gradient, state0, state1) of a trainable unit.
  Place getFlat(StringRef unit, StringRef buffer) const;
  /// An array of the host; made at its first request.
  Place getPort(StringRef name, RankedTensorType type, bool input,
                kern::ExtentAttr extent);

  /// The ordinal of a layer in the unit that holds a parameter.
  int64_t getOrdinal(StringRef param, int64_t layer) const;
  /// How many layers hold the parameter; 0 when it is not per layer.
  int64_t getLayerCount(StringRef param) const;

  /// Declares arenas, scalars and parameters, once all ports are known.
  void declare();

private:
  struct UnitPlace {
    mutable fsdp::UnitOp op; ///< accessors of ops are not const
    int64_t offset; ///< in its arena, and in those of gradients and state
    int64_t layers() const { return op.getLayers() ? op.getLayers()->size() : 1; }
    int64_t bytes() const { return *op.getBytes(); }
  };
  const UnitPlace &unitOf(StringRef param) const;
  fsdp::PartAttr findPart(StringRef param, StringRef part) const;
  void declareParam(OpBuilder &builder, tfm::ParamOp param);

  tfm::ArchitectureOp architecture;
  exec::PlanOp plan;
  llvm::MapVector<StringAttr, UnitPlace> units; ///< by unit name
  llvm::DenseMap<StringRef, StringAttr> unitNames; ///< by parameter
  llvm::StringMap<Place> ports;
  int64_t baseBytes = 0, trainedBytes = 0, stepBytes = 0, stagingBytes = 0;
  unsigned stateBuffers = 0;
};

} // namespace fsdpq
