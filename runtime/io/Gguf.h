//===- Gguf.h - The model format of llama.cpp -------------------*- C++ -*-===//
//
// Format (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), little-
// endian, versions 2 and 3:
//   "GGUF", u32 version, u64 tensor count, u64 metadata count,
//   metadata: string key, u32 type, value;
//   tensors:  string name, u32 rank, u64 dimension[rank] (innermost first),
//             u32 ggml type, u64 offset;
//   padding to general.alignment (32), then the data from which offsets count.
// A string is a u64 length and that many bytes.
//
// Errors (exit code BadInput): 1101 not such a file, 1102 the file ends too
// early, 1103 metadata, 1104 description of a tensor, 1105 place of its data;
// 1006 and 1007 see TensorSource.h; 13xx system.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/io/MappedTensorSource.h"
#include "runtime/io/RopeRows.h"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace fsdpq::rt {

/// Tensors keep the file's names and values: shapes are turned to row-major
/// order ([rows, cols]), but q and k rows stay in llama.cpp's order (see
/// RopeRows.h). F32, F16, BF16, F64, I8 to I64, Q4_0, Q4_1 and Q8_0 can be
/// read; other ggml types become DType::Other.
class GgufFile : public MappedTensorSource {
public:
  explicit GgufFile(const std::string &path);

  /// One object: the file's keys, dots included, to their values. Strings are
  /// the file's bytes, which need not be UTF-8; an f32 is widened exactly.
  const nlohmann::json &metadata() const { return metadata_; }

private:
  nlohmann::json metadata_ = nlohmann::json::object();
};

std::unique_ptr<GgufFile> openGguf(const std::string &path);

} // namespace fsdpq::rt
