//===- RopeRows.h - The row order of q and k in GGUF files ------*- C++ -*-===//
//
// Rotary embedding turns pairs of rows of a head. Hugging Face pairs row i with
// row i + E/2 of a head of E rows; llama.cpp pairs row 2i with row 2i + 1 for
// the architectures whose rope it calls "normal" (llama and its kin, but not
// qwen2, qwen3, gemma or phi3), so its converter stores their q and k rows as
//   hf.reshape(heads, 2, E/2, cols).swapaxes(1, 2)
// Biases of q and k are permuted likewise (cols = 1).
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace fsdpq::rt {

/// Brings weights [rows, cols], row-major, from that order back to Hugging
/// Face's, in place. `heads` is the number of heads that the tensor holds (the
/// key/value heads for k). Throws Error 1106 unless rows is a multiple of
/// 2 * heads.
void unpermuteRopeRows(float *weights, int64_t rows, int64_t cols,
                       int64_t heads);

} // namespace fsdpq::rt
