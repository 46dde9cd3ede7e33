//===- ByteAlphabet.h - Bytes written as printable characters ---*- C++ -*-===//
//
// Byte-level BPE (GPT-2's encoder) works on bytes but stores its vocabulary as
// text. Each byte has a character of its own: bytes that Latin-1 prints stand
// for themselves, the 68 others take U+0100, U+0101, ... in their order. A
// space is therefore U+0120 and a line feed U+010A.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>

namespace fsdpq::rt {

/// Each byte of `text` as its character, in UTF-8.
std::string toByteAlphabet(std::string_view text);

/// Appends the bytes that `token` stands for, or `token` itself when one of
/// its characters is not of the alphabet.
void appendFromByteAlphabet(std::string &bytes, std::string_view token);

} // namespace fsdpq::rt
