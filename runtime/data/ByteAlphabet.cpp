#include "runtime/data/ByteAlphabet.h"

#include "runtime/data/Utf8.h"

#include <array>
#include <cstdint>

namespace fsdpq::rt {
namespace {

constexpr char32_t kFirstSubstitute = 0x100;
constexpr size_t kSubstitutes = 68;

struct ByteAlphabet {
  std::array<std::string, 256> character;
  std::array<int16_t, kFirstSubstitute + kSubstitutes> byte;

  ByteAlphabet() {
    byte.fill(-1);
    char32_t substitute = kFirstSubstitute;
    for (int value = 0; value < 256; ++value) {
      bool printable =
          (value >= '!' && value <= '~') || (value >= 0xA1 && value != 0xAD);
      char32_t codePoint = printable ? value : substitute++;
      appendCodePoint(character[value], codePoint);
      byte[codePoint] = static_cast<int16_t>(value);
    }
  }
};

const ByteAlphabet &alphabet() {
  static const ByteAlphabet instance;
  return instance;
}

} // namespace

std::string toByteAlphabet(std::string_view text) {
  const ByteAlphabet &table = alphabet();
  std::string result;
  result.reserve(text.size() * 2);
  for (unsigned char byte : text)
    result += table.character[byte];
  return result;
}

void appendFromByteAlphabet(std::string &bytes, std::string_view token) {
  const ByteAlphabet &table = alphabet();
  size_t before = bytes.size();
  for (size_t offset = 0; offset < token.size();) {
    char32_t codePoint = nextCodePoint(token, offset);
    if (codePoint >= table.byte.size() || table.byte[codePoint] < 0) {
      bytes.resize(before);
      bytes += token;
      return;
    }
    bytes += static_cast<char>(table.byte[codePoint]);
  }
}

} // namespace fsdpq::rt
