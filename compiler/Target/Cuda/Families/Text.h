//===- Text.h - Lines of CUDA text ------------------------------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"

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

  const std::string &str() const { return buffer; }

private:
  std::string buffer;
  unsigned depth;
};

} // namespace fsdpq::cuda
