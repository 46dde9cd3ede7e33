//===- Text.h - Lines of CUDA text ------------------------------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <string>

namespace fsdpq::cuda {

/// Lines with the indentation of the blocks that are open.
class Text {
public:
  explicit Text(unsigned depth = 0) : depth(depth) {}

  void line(const Twine &content) {
    buffer.append(2 * depth, ' ');
    buffer += content.str();
    buffer += '\n';
  }
  /// `head {`; a head "" opens a block of its own.
  void open(const Twine &head) {
    std::string text = head.str();
    line(text.empty() ? "{" : text + " {");
    ++depth;
  }
  void close() {
    --depth;
    line("}");
  }
  /// A pragma stands before a loop.
  void unroll() { line("#pragma unroll"); }
  void unroll(int64_t times) { line("#pragma unroll " + Twine(times)); }

  /// Takes back the line that begins at `begin` and ends at `end` if nothing
  /// after it mentions `name`.
  void dropUnless(StringRef name, size_t begin, size_t end);
  size_t size() const { return buffer.size(); }

  const std::string &str() const { return buffer; }

private:
  std::string buffer;
  unsigned depth;
};

inline void Text::dropUnless(StringRef name, size_t begin, size_t end) {
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  StringRef rest = StringRef(buffer).drop_front(end);
  for (size_t at = rest.find(name); at != StringRef::npos;
       at = rest.find(name, at + 1))
    if (!isWord(rest[at - 1]) && !isWord(rest[at + name.size()]))
      return;
  buffer.erase(begin, end - begin);
}

} // namespace fsdpq::cuda
