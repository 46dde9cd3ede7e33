//===- JsonLines.h - One JSON value a line ----------------------*- C++ -*-===//
#pragma once

#include "runtime/support/MappedFile.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace fsdpq::rt {

/// Reads a .jsonl file value by value. Lines end in LF or CRLF, the last may
/// lack its end; lines of white space are skipped but counted. Errors are those
/// of Json.h, with "path:line" as the place.
///
///   JsonLines lines(path);
///   for (nlohmann::json value; lines.next(value);)
///     use(value, lines.place());
class JsonLines {
public:
  explicit JsonLines(const std::string &path) : file(path) {}

  /// Stores the next value; false at the end of the file.
  bool next(nlohmann::json &value);

  /// The line, from 1, of the value that next() stored last.
  int64_t line() const { return number; }
  /// "path:line" of that value.
  std::string place() const;

private:
  MappedFile file;
  size_t position = 0;
  int64_t number = 0;
};

} // namespace fsdpq::rt
