//===- EmulatedText.h - CUDA text to C++ text -------------------*- C++ -*-===//
#pragma once

#include <string>

namespace fsdpq::test {

/// A CUDA text that a host compiler takes after EmulatorShim.h, its lines where
/// they were:
///  - a definition of a known helper that holds asm becomes a using declaration of
///    the shim's;
///  - `extern __shared__ T name[];` becomes a reference to the emulator's memory.
struct EmulatedText {
  std::string text;
  std::string error; ///< asm that is left: its line and what to do. Or "".
};

EmulatedText emulateText(std::string text);

} // namespace fsdpq::test
