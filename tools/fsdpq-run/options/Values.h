//===- Values.h - What stands after an option -------------------*- C++ -*-===//
#pragma once

#include "tools/fsdpq-run/options/OptionTable.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::run {

/// true, yes, 1 / false, no, 0, in any case.
std::optional<bool> readBoolean(std::string_view text);

/// Decimal digits, with a minus sign or without.
std::optional<int64_t> readInteger(std::string_view text);

/// A finite decimal number: 3, -0.5, 1e-5.
std::optional<double> readReal(std::string_view text);

/// A number of bytes, at least 1: 22GiB, 1.5 GB, 4096. Powers of 1024 (KiB,
/// MiB, GiB, TiB) and of 1000 (KB, MB, GB, TB), in any case.
std::optional<int64_t> readBytes(std::string_view text);

/// 90% as 0.9; more than 0, at most 1.
std::optional<double> readPercentage(std::string_view text);

/// With the fewest digits that give the number again.
std::string numberText(double value);

/// The parts between commas, white space around them dropped.
std::vector<std::string> splitList(std::string_view text);

/// Whether `word` is one of "a|b|c".
bool isChoice(std::string_view choices, std::string_view word);

/// Checks a value against its option; gives it in one spelling (booleans become
/// true or false). Throws Error 6005, or 6007 for a choice that is not there
/// yet.
std::string checkValue(const OptionSpec &option, const std::string &value);

/// The name with the fewest edits to `word`, if they are few enough for a slip;
/// else "".
std::string_view nearest(std::string_view word,
                         const std::vector<std::string_view> &names);

} // namespace fsdpq::run
