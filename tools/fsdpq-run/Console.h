//===- Console.h - What fsdpq-run says --------------------------*- C++ -*-===//
//
// Results go to the standard output, everything said about them to the
// standard error. Of several ranks rank 0 speaks; the others report failures.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace fsdpq::run {

/// From now on this process prints neither notes nor results.
void beSilent();
bool isSilent();

/// "note: <text>" on the standard error.
void note(const std::string &text);

/// `text` on the standard output; Error 1301 if it cannot be written.
void printResult(const std::string &text);

/// "12,345,678"
std::string grouped(int64_t value);

/// `value` with so many digits behind the point.
std::string fixed(double value, int digits);

} // namespace fsdpq::run
