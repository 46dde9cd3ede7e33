//===- SlurmLists.h - SLURM's short forms of lists --------------*- C++ -*-===//
//
// Errors (exit code BadInput): 6051 the text is not such a list.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::run {

/// "n[01-03,7],m1" names n01, n02, n03, n7 and m1; a name may have several
/// bracketed parts, of which the last counts fastest. At most 65536 names.
/// `variable` is where the list stands, for messages.
std::vector<std::string> expandHostList(std::string_view list,
                                        const std::string &variable);

/// "2(x3),1" means 2, 2, 2, 1. At most 65536 numbers.
std::vector<int64_t> expandCounts(std::string_view list,
                                  const std::string &variable);

} // namespace fsdpq::run
