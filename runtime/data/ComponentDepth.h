//===- ComponentDepth.h - How deep sequences may nest -----------*- C++ -*-===//
#pragma once

#include "runtime/data/JsonField.h"

namespace fsdpq::rt {

/// Components of tokenizer.json nest by "Sequence". Real files go one level
/// down; a hostile one must not exhaust the stack. Throws Error 2001.
inline void checkComponentDepth(const JsonField &field, int depth) {
  constexpr int kMaximum = 16;
  if (depth > kMaximum)
    field.fail(2001, "sequences are nested deeper than " +
                         std::to_string(kMaximum) + " levels");
}

} // namespace fsdpq::rt
