//===- AtomicFile.h - Files that are either old or whole --------*- C++ -*-===//
#pragma once

#include <string>
#include <string_view>

namespace fsdpq::rt {

/// Error 1304 (BadInput) if something that is no regular file stands under
/// `path`: a folder or a device must not be replaced by a file.
void requireReplaceable(const std::string &path);

/// A file being written beside its final name (of a symbolic link: beside what
/// it names). commit() flushes it to the disk
/// and renames it; without commit() it is removed and whatever stood under the
/// final name stays. Throws Error 1301 when the system refuses (disk full), and
/// 1304.
class AtomicFile {
public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  void write(std::string_view bytes);
  void write(const void *data, size_t bytes);
  void commit();

private:
  std::string path, temporary;
  int descriptor = -1;
};

/// Writes `bytes` under `path` in one atomic step.
void writeFileAtomically(const std::string &path, std::string_view bytes);

} // namespace fsdpq::rt
