//===- MappedFile.h - A file's bytes, read-only -----------------*- C++ -*-===//
#pragma once

#include <cstddef>
#include <string>

namespace fsdpq::rt {

/// Maps a whole file for reading. An empty file maps to no bytes.
/// Throws Error 1301 when it cannot be opened or mapped.
class MappedFile {
public:
  explicit MappedFile(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const std::string &path() const { return path_; }
  const unsigned char *data() const { return data_; }
  size_t size() const { return size_; }

  /// Gives the pages of [offset, offset + bytes) back to the system; they are
  /// read again from the file when touched. Keeps host memory at the tensors
  /// in use while a checkpoint streams through.
  void release(size_t offset, size_t bytes) const;

private:
  std::string path_;
  const unsigned char *data_ = nullptr;
  size_t size_ = 0;
};

} // namespace fsdpq::rt
