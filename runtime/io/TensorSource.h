//===- TensorSource.h - A read-only collection of named tensors -*- C++ -*-===//
#pragma once

#include "runtime/io/DType.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

/// One tensor of a TensorSource.
struct TensorInfo {
  std::string name;
  DType dtype = DType::F32;
  /// Row-major, outermost dimension first. Empty: a scalar.
  std::vector<int64_t> shape;

  /// The type as the file spells it: what a message about DType::Other names.
  std::string storedType;

  /// Where the source that made this keeps the bytes; of no use to others.
  struct Place {
    uint32_t file = 0;
    uint64_t offset = 0, bytes = 0;
  } place;

  /// The product of the shape. Sources refuse shapes for which it or the
  /// number of bytes exceeds int64_t.
  int64_t elements() const;
};

/// Reads never write shared state: any number of threads may read at once.
class TensorSource {
public:
  virtual ~TensorSource();

  /// The tensor of this name, or null. The pointer lives as long as the source.
  virtual const TensorInfo *find(std::string_view name) const = 0;

  /// All names, in the order of their data in the file (shard by shard).
  virtual std::vector<std::string> names() const = 0;

  /// Converts elements [begin, end) of the flattened tensor to f32. Works for
  /// every type but DType::Other; block formats take any begin and end.
  /// Throws Error 1006 (range) or 1007 (type).
  virtual void readF32(const TensorInfo &tensor, int64_t begin, int64_t end,
                       float *out) const = 0;

  /// Elements [begin, end) of an integer tensor. Errors as for readF32.
  virtual void readI64(const TensorInfo &tensor, int64_t begin, int64_t end,
                       int64_t *out) const = 0;

  /// Gives the memory that holds the tensor's mapped pages back to the system.
  /// The tensor can still be read; its pages then come from the file again.
  virtual void release(const TensorInfo &tensor) const = 0;

  /// The file or folder, for messages.
  virtual std::string location() const = 0;
};

} // namespace fsdpq::rt
