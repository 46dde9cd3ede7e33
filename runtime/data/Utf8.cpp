#include "runtime/data/Utf8.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

namespace fsdpq::rt {

std::string repairUtf8(std::string_view text) {
  if (isValidUtf8(text))
    return std::string(text);
  std::string repaired;
  repaired.reserve(text.size());
  for (size_t offset = 0; offset < text.size();)
    appendCodePoint(repaired, nextCodePoint(text, offset));
  return repaired;
}

bool isValidUtf8(std::string_view text) {
  for (size_t offset = 0; offset < text.size();) {
    UChar32 codePoint;
    U8_NEXT(text.data(), offset, text.size(), codePoint);
    if (codePoint < 0)
      return false;
  }
  return true;
}

char32_t nextCodePoint(std::string_view text, size_t &offset) {
  UChar32 codePoint;
  U8_NEXT_OR_FFFD(text.data(), offset, text.size(), codePoint);
  return static_cast<char32_t>(codePoint);
}

char32_t previousCodePoint(std::string_view text, size_t &offset) {
  // Well-formed text: the lead byte is the first one that is no trail byte.
  size_t begin = offset;
  while (begin > 0 && U8_IS_TRAIL(text[begin - 1]))
    --begin;
  offset = begin == 0 ? 0 : begin - 1;
  size_t end = offset;
  return nextCodePoint(text, end);
}

void appendCodePoint(std::string &text, char32_t codePoint) {
  char bytes[U8_MAX_LENGTH];
  int32_t length = 0;
  U8_APPEND_UNSAFE(bytes, length, codePoint);
  text.append(bytes, length);
}

bool isWhitespace(char32_t codePoint) { return u_isUWhiteSpace(codePoint); }

bool isNumeric(char32_t codePoint) {
  return (U_GET_GC_MASK(codePoint) & U_GC_N_MASK) != 0;
}

bool isMark(char32_t codePoint) {
  return (U_GET_GC_MASK(codePoint) & U_GC_M_MASK) != 0;
}

bool isPunctuation(char32_t codePoint) {
  if (codePoint < 0x80)
    return codePoint > ' ' && codePoint < 0x7F && !u_isalnum(codePoint);
  return (U_GET_GC_MASK(codePoint) & U_GC_P_MASK) != 0;
}

bool isWord(char32_t codePoint) {
  return u_hasBinaryProperty(codePoint, UCHAR_ALPHABETIC) ||
         u_hasBinaryProperty(codePoint, UCHAR_JOIN_CONTROL) ||
         (U_GET_GC_MASK(codePoint) &
          (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0;
}

} // namespace fsdpq::rt
