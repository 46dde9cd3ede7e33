//===- LinePrefixer.h - Says whose line it is -------------------*- C++ -*-===//
#pragma once

#include <string>
#include <string_view>

namespace fsdpq::run {

/// Puts a prefix in front of each line of a stream that arrives in pieces.
class LinePrefixer {
public:
  explicit LinePrefixer(std::string prefix) : prefix(std::move(prefix)) {}

  /// The lines that `bytes` complete, each with its prefix and line break. A
  /// line of more than 64 KiB is broken.
  std::string add(std::string_view bytes);
  /// What stands behind the last line break, as a line.
  std::string finish();

private:
  std::string prefix, rest;
};

} // namespace fsdpq::run
