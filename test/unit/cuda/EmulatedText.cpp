//===- EmulatedText.cpp - Takes PTX out of CUDA texts ---------------------===//

#include "test/unit/cuda/EmulatedText.h"

#include <algorithm>
#include <cctype>
#include <string_view>

using namespace fsdpq::test;

/// Defined in EmulatorShim.h in the namespace emulated_helpers. A further one
/// needs its name here and its definition there.
static constexpr std::string_view knownHelpers[] = {
    "bf16_of",           "bf16x2_of",         "cp_async_16",     "cp_async_16_zero",
    "cp_async_commit",   "cp_async_wait",     "cp_async_wait_0", "cp_async_wait_1",
    "cp_async_wait_2",   "cp_async_wait_3",   "cp_async_wait_4", "cp_async_wait_5",
    "cp_async_wait_all", "exp2_approx",       "ldmatrix_x2",     "ldmatrix_x2_trans",
    "ldmatrix_x4",       "ldmatrix_x4_trans", "mma_m16n8k16",
};

static constexpr size_t npos = std::string::npos;

static bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

static void blank(std::string &text, size_t begin, size_t end) {
  for (size_t i = begin; i < std::min(end, text.size()); ++i)
    if (text[i] != '\n')
      text[i] = ' ';
}

/// The text with blanks for comments and for what is in quotes.
static std::string withoutLiterals(std::string text) {
  for (size_t i = 0; i < text.size(); ++i) {
    size_t end = npos;
    if (text.compare(i, 2, "//") == 0)
      end = text.find('\n', i);
    else if (text.compare(i, 2, "/*") == 0)
      end = text.find("*/", i + 2) + 2;
    else if (text[i] == '"' ||
             (text[i] == '\'' && (i == 0 || !isWord(text[i - 1])))) {
      for (end = i + 1; end < text.size() && text[end] != text[i]; ++end)
        if (text[end] == '\\')
          ++end;
      ++end;
    } else
      continue;
    end = std::min(end, text.size());
    blank(text, i, end);
    i = end - 1;
  }
  return text;
}

/// Turns preprocessor lines to blanks that end with a semicolon, so that what
/// follows begins a declaration.
static void blankDirectives(std::string &text) {
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    size_t first = text.find_first_not_of(" \t", begin);
    if (first < end && text[first] == '#') {
      while (end != npos && text[end - 1] == '\\')
        end = text.find('\n', end + 1);
      end = std::min(end, text.size());
      blank(text, begin, end);
      text[end - 1] = ';';
    }
    begin = end == npos ? npos : end + 1;
  }
}

static size_t findWord(std::string_view text, std::string_view word, size_t from) {
  for (size_t at = text.find(word, from); at != npos; at = text.find(word, at + 1)) {
    size_t end = at + word.size();
    if ((at == 0 || !isWord(text[at - 1])) &&
        (end == text.size() || !isWord(text[end])))
      return at;
  }
  return npos;
}

static size_t skipBlanks(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(" \t\n", at), text.size());
}

/// What follows the bracket that closes the one at `open`; npos if none does.
static size_t afterBracket(std::string_view text, size_t open, char close) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    depth += text[i] == text[open];
    depth -= text[i] == close;
    if (depth == 0)
      return i + 1;
  }
  return npos;
}

/// The body of a function whose name ends at `at`: its two ends, or npos twice.
static std::pair<size_t, size_t> bodyAfterName(std::string_view text, size_t at) {
  const std::pair<size_t, size_t> none(npos, npos);
  at = skipBlanks(text, at);
  if (at < text.size() && text[at] == '<') {
    at = afterBracket(text, at, '>');
    at = at == npos ? npos : skipBlanks(text, at);
  }
  if (at >= text.size() || text[at] != '(')
    return none;
  at = afterBracket(text, at, ')');
  at = at == npos ? npos : skipBlanks(text, at);
  if (at >= text.size() || text[at] != '{')
    return none;
  return {at, afterBracket(text, at, '}')};
}

/// Puts `replacement` in place of [begin, end) of both texts; lines stay.
static void replace(std::string &text, std::string &code, size_t begin, size_t end,
                    std::string replacement) {
  replacement.append(std::count(text.begin() + begin, text.begin() + end, '\n'),
                     '\n');
  text.replace(begin, end - begin, replacement);
  code.replace(begin, end - begin, replacement);
}

static bool holdsAsm(std::string_view code) {
  return findWord(code, "asm", 0) != npos || findWord(code, "__asm__", 0) != npos;
}

static void replaceHelpers(std::string &text, std::string &code) {
  for (std::string_view name : knownHelpers) {
    bool replaced = false;
    for (size_t at = findWord(code, name, 0); at != npos;
         at = findWord(code, name, at + 1)) {
      auto [open, end] = bodyAfterName(code, at + name.size());
      if (end == npos || !holdsAsm(std::string_view(code).substr(open, end - open)))
        continue;
      size_t begin = code.find_last_of(";{}", at);
      begin = skipBlanks(code, begin == npos ? 0 : begin + 1);
      std::string use = "using emulated_helpers::" + std::string(name) + ";";
      replace(text, code, begin, end, replaced ? "" : use);
      replaced = true;
      at = begin + use.size();
    }
  }
}

static void replaceDynamicShared(std::string &text, std::string &code) {
  for (size_t at = findWord(code, "extern", 0); at != npos;
       at = findWord(code, "extern", at + 1)) {
    size_t shared = skipBlanks(code, at + 6);
    if (code.compare(shared, 10, "__shared__") != 0)
      continue;
    size_t begin = skipBlanks(code, shared + 10), end = code.find(';', at);
    for (std::string_view align : {"__align__", "alignas"})
      if (code.compare(begin, align.size(), align) == 0)
        begin = skipBlanks(
            code, afterBracket(code, skipBlanks(code, begin + align.size()), ')'));
    size_t bracket = code.find('[', at);
    if (end == npos || bracket > end || begin > bracket)
      continue;
    size_t nameEnd = code.find_last_not_of(" \t\n", bracket - 1) + 1, name = nameEnd;
    while (name > begin && isWord(code[name - 1]))
      --name;
    std::string reference =
        "auto &" + code.substr(name, nameEnd - name) + " = *reinterpret_cast<" +
        code.substr(begin, name - begin) + "(*)[]>(emulatedDynamicShared);";
    replace(text, code, at, end + 1, reference);
  }
}

EmulatedText fsdpq::test::emulateText(std::string text) {
  std::string code = withoutLiterals(text);
  blankDirectives(code);
  replaceHelpers(text, code);
  replaceDynamicShared(text, code);

  code = withoutLiterals(text);
  for (std::string_view word : {"asm", "__asm__"})
    if (size_t at = findWord(code, word, 0); at != npos) {
      auto line = 1 + std::count(code.begin(), code.begin() + at, '\n');
      return {"", "line " + std::to_string(line) +
                      ": asm outside of the helpers that the emulator knows; add "
                      "the helper to knownHelpers in EmulatedText.cpp and its "
                      "meaning to EmulatorShim.h"};
    }
  return {std::move(text), ""};
}
