//===- OutputFolder.h - Where a run leaves its results ----------*- C++ -*-===//
#pragma once

#include <string>

namespace fsdpq::run {

/// The folder of --output_dir. Locked while this lives, once open() was called.
class OutputFolder {
public:
  /// Touches nothing. Error 6021 (BadInput) if the folder holds a result and
  /// `overwrite` is false.
  OutputFolder(std::string path, bool overwrite);
  ~OutputFolder();
  OutputFolder(const OutputFolder &) = delete;
  OutputFolder &operator=(const OutputFolder &) = delete;

  /// Creates the folder and locks it: Error 6022 (BadInput) if another run has
  /// it, 1301 if the system refuses.
  void open();

  const std::string &path() const { return path_; }
  std::string file(const std::string &name) const;

private:
  std::string path_;
  int descriptor = -1;
};

} // namespace fsdpq::run
