//===- MappedTensorSource.h - Tensors that lie in mapped files --*- C++ -*-===//
//
// What safetensors and GGUF have in common: a table of tensors, each a byte
// range of a mapped file. The formats differ in how they fill the table.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/io/TensorSource.h"
#include "runtime/support/MappedFile.h"

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>

namespace fsdpq::rt {

class MappedTensorSource : public TensorSource {
public:
  const TensorInfo *find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  void readF32(const TensorInfo &tensor, int64_t begin, int64_t end,
               float *out) const override;
  void readI64(const TensorInfo &tensor, int64_t begin, int64_t end,
               int64_t *out) const override;
  void release(const TensorInfo &tensor) const override;
  std::string location() const override { return location_; }

  /// The tensor's bytes as they are stored (place.bytes of them, at any
  /// alignment), valid as long as the source.
  const unsigned char *raw(const TensorInfo &tensor) const;

protected:
  explicit MappedTensorSource(std::string location)
      : location_(std::move(location)) {}

  /// Maps a file; its number (TensorInfo::Place::file) is the count of files
  /// added before it.
  const MappedFile &addFile(const std::string &path);
  uint32_t fileCount() const { return static_cast<uint32_t>(files.size()); }
  const MappedFile &file(uint32_t number) const { return *files[number]; }

  /// Appends to the table. The place has been checked to lie within its file
  /// and to hold the shape. False, and nothing done, if the name is taken.
  bool addTensor(TensorInfo tensor);

private:
  void checkRange(const TensorInfo &tensor, int64_t begin, int64_t end) const;

  std::string location_;
  std::vector<std::unique_ptr<MappedFile>> files;
  std::deque<TensorInfo> tensors; // addresses stay while it grows
  std::unordered_map<std::string_view, const TensorInfo *> byName;
};

/// The product of the dimensions, or nothing if one is negative or the product
/// does not fit.
std::optional<int64_t> checkedElements(const std::vector<int64_t> &shape);

} // namespace fsdpq::rt
