//===- Utf8.h - Code points of UTF-8 text -----------------------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fsdpq::rt {

/// The text with every maximal ill-formed part replaced by one U+FFFD.
std::string repairUtf8(std::string_view text);

bool isValidUtf8(std::string_view text);

/// Reads the code point at `offset` of well-formed text and moves past it.
char32_t nextCodePoint(std::string_view text, size_t &offset);

/// Reads the code point that ends at `offset` and moves before it.
char32_t previousCodePoint(std::string_view text, size_t &offset);

void appendCodePoint(std::string &text, char32_t codePoint);

/// Unicode properties as the `tokenizers` library means them.
bool isWhitespace(char32_t codePoint);  // White_Space
bool isNumeric(char32_t codePoint);     // general category N
bool isMark(char32_t codePoint);        // general category M
bool isPunctuation(char32_t codePoint); // category P, and all of ASCII's marks
bool isWord(char32_t codePoint);        // \w of UTS #18

} // namespace fsdpq::rt
