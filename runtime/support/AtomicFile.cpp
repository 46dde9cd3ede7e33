#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace fsdpq::rt {

void requireReplaceable(const std::string &path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) &&
      !std::filesystem::is_regular_file(status))
    throw Error(1304, ExitCode::BadInput,
                "'" + path + "' is no regular file and must not be replaced", "",
                "name a file");
}

/// Where a file of this name is, if it is a link.
static std::string target(const std::string &path) {
  requireReplaceable(path);
  std::error_code error;
  const auto place = std::filesystem::weakly_canonical(path, error);
  return std::filesystem::is_symlink(path, error) && !place.empty()
             ? place.string()
             : path;
}

AtomicFile::AtomicFile(std::string finalPath)
    : path(target(finalPath)),
      temporary(path + ".tmp." + std::to_string(::getpid())) {
  descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0)
    throw systemError("creating a file", temporary);
}

AtomicFile::~AtomicFile() {
  if (descriptor < 0)
    return;
  ::close(descriptor);
  ::unlink(temporary.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  write(bytes.data(), bytes.size());
}

void AtomicFile::write(const void *data, size_t bytes) {
  const char *cursor = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t written = ::write(descriptor, cursor, bytes);
    if (written < 0) {
      if (errno == EINTR)
        continue;
      throw systemError("writing", temporary);
    }
    cursor += written;
    bytes -= static_cast<size_t>(written);
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor) != 0)
    throw systemError("flushing", temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    throw systemError("renaming to " + path, temporary);
  ::close(descriptor);
  descriptor = -1;
  // The rename itself is durable only once the folder is flushed.
  std::string folder = std::filesystem::path(path).parent_path().string();
  int directory = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    ::fsync(directory);
    ::close(directory);
  }
}

void writeFileAtomically(const std::string &path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

} // namespace fsdpq::rt
