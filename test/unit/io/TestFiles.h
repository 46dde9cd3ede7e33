//===- TestFiles.h - Files for the io tests ---------------------*- C++ -*-===//
#pragma once

#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <type_traits>
#include <unistd.h>

namespace fsdpq::rt::test {

/// A folder that lives as long as the test.
class ScratchFolder {
public:
  ScratchFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "fsdpq-io-XXXXXX").string();
    root = ::mkdtemp(pattern.data());
  }
  ~ScratchFolder() { std::filesystem::remove_all(root); }
  ScratchFolder(const ScratchFolder &) = delete;

  std::string path(const std::string &name = "") const {
    return name.empty() ? root.string() : (root / name).string();
  }

  /// Writes a file, with its folders, and returns its path.
  std::string write(const std::string &name, const std::string &bytes) const {
    std::filesystem::create_directories((root / name).parent_path());
    // Some file systems flush a file that is truncated and written again,
    // which takes milliseconds; a new file costs nothing.
    std::filesystem::remove(root / name);
    std::ofstream(root / name, std::ios::binary) << bytes;
    return path(name);
  }

private:
  std::filesystem::path root;
};

inline std::string readFile(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The bytes of a little-endian number.
template <typename T>
std::string bytesOf(T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// Runs `action`, which must throw an Error, and returns its id; the message
/// must contain `fragment`.
template <typename Action>
int errorId(Action action, const std::string &fragment = "") {
  try {
    action();
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos)
        << error.what();
    return error.id();
  }
  return 0;
}

} // namespace fsdpq::rt::test
