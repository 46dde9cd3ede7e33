//===- JsonRecords.h - The records of a data file ---------------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace fsdpq::rt {

/// Where a record stands, for messages. Counts begin at 1.
struct RecordPlace {
  std::string file;
  int64_t record;
  int64_t line; // of JSON Lines; 0 in an array

  std::string text() const;
};

/// Calls `handle` for every record of a file, in order, one in memory at a
/// time: a JSON array of objects, or one object a line (blank lines are passed
/// over). The first character tells which. Duplicate keys are refused: which of
/// two values was meant nobody can tell. Throws Error 2101 for all else that is
/// not such a file.
void forEachRecord(const std::string &path,
                   const std::function<void(const nlohmann::json &record,
                                            const RecordPlace &place)> &handle);

} // namespace fsdpq::rt
