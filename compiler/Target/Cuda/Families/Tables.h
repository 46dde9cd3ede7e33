//===- Tables.h - Constant arrays of a text ---------------------*- C++ -*-===//
#pragma once

#include "compiler/Target/Cuda/Families/Text.h"
#include "mlir/IR/BuiltinAttributes.h"

#include "llvm/ADT/MapVector.h"

namespace fsdpq::cuda {

/// Constant arrays of a text. Each has a copy in shared memory, where threads
/// find different entries at the speed of one.
class Tables {
public:
  /// The name of the shared array with these entries.
  std::string get(DenseElementsAttr entries);
  /// The name of an array in global memory, for tiles that are constants.
  std::string getGlobal(DenseElementsAttr entries);

  bool hasShared() const { return !shared.empty(); }
  /// Definitions, outside of functions.
  std::string str() const;
  /// Fills the shared arrays; ends with a barrier. For all threads of a block.
  void fill(Text &text) const;

private:
  llvm::MapVector<Attribute, std::string> shared, global;
};

} // namespace fsdpq::cuda
