//===- Safetensors.h - The checkpoint format of Hugging Face ----*- C++ -*-===//
//
// Format (https://github.com/huggingface/safetensors): u64 N, N bytes of JSON
//   {"__metadata__": {string: string}, NAME: {"dtype", "shape",
//    "data_offsets": [begin, end]}, ...}
// padded with spaces, then the data; offsets count from its start. The tensors'
// ranges cover the data without holes or overlap.
//
// Errors (exit code BadInput unless the system failed): 1001 length of the
// header, 1002 a field of the header, 1003 byte ranges, 1004 index or shards,
// 1008 what a writer was asked; 1006 and 1007 see TensorSource.h; 12xx JSON;
// 13xx system.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/io/MappedTensorSource.h"
#include "runtime/support/AtomicFile.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fsdpq::rt {

/// One file, or a folder's shards seen as one collection. F64, F32, F16, BF16,
/// I64, I32, I16, I8, U8 and BOOL can be read; the format's other types become
/// DType::Other.
class SafetensorsSource : public MappedTensorSource {
public:
  /// `path` is a file, or a folder that holds model.safetensors or else
  /// model.safetensors.index.json with its shards.
  explicit SafetensorsSource(const std::string &path);

  /// The __metadata__ of the file; of sharded files those of all shards, where
  /// the first shard that has a key decides.
  const std::map<std::string, std::string> &metadata() const {
    return metadata_;
  }

private:
  void addShard(const std::string &path);
  void addIndexedShards(const std::string &folder,
                        const std::string &indexPath);

  std::map<std::string, std::string> metadata_;
};

std::unique_ptr<SafetensorsSource> openSafetensors(const std::string &path);

/// Writes a file tensor by tensor, so that no more than one need be in memory.
/// The file appears under its name, whole, at commit(); until then, and if the
/// writer is destroyed or fails, what stood there stays.
class SafetensorsWriter {
public:
  /// F32, BF16, F16, I64, I32 or U8.
  struct Spec {
    std::string name;
    DType dtype;
    std::vector<int64_t> shape;
  };

  /// `tensors` in the order in which their data will come. Each must start at
  /// a multiple of its element size, because PyTorch refuses to view it
  /// otherwise: give wide types first. {"format": "pt"} is added to `metadata`
  /// unless it has a format.
  SafetensorsWriter(const std::string &path, std::vector<Spec> tensors,
                    std::map<std::string, std::string> metadata = {});

  /// Appends stored bytes (little-endian), in pieces of any size that may run
  /// from one tensor into the next.
  void append(const void *data, uint64_t bytes);

  /// Appends values of the current tensor, which is F32, F16 or BF16, rounded
  /// to nearest even. Pieces of any size that end within the tensor.
  void appendF32(const float *values, int64_t count);

  /// Puts the file under its name. All data must have come.
  void commit();

private:
  uint64_t remaining() const { return dataBytes - written; }

  std::string path;
  std::vector<Spec> tensors;
  std::vector<uint64_t> ends; // of each tensor, in bytes of data
  size_t current = 0;         // the tensor that the next byte belongs to
  uint64_t dataBytes = 0, written = 0;
  AtomicFile file;
};

/// A tensor in memory, stored as `dtype`, row-major.
struct NamedTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  const void *data;
};

/// SafetensorsWriter in one call.
void writeSafetensors(const std::string &path,
                      const std::vector<NamedTensor> &tensors,
                      std::map<std::string, std::string> metadata = {});

} // namespace fsdpq::rt
