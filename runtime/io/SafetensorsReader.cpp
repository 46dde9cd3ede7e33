#include "runtime/io/Json.h"
#include "runtime/io/Safetensors.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <tuple>

namespace fsdpq::rt {

using nlohmann::json;

namespace {

constexpr uint64_t maxHeaderBytes = 100'000'000; // the format's own limit
constexpr size_t maxHeaderDepth = 3;             // header, tensor, shape

struct StoredType {
  const char *name;
  int bits; // of an element; the format has types of 4 and 6 bits
  DType dtype;
};

constexpr StoredType storedTypes[] = {
    {"F64", 64, DType::F64},
    {"F32", 32, DType::F32},
    {"F16", 16, DType::F16},
    {"BF16", 16, DType::BF16},
    {"I64", 64, DType::I64},
    {"I32", 32, DType::I32},
    {"I16", 16, DType::I16},
    {"I8", 8, DType::I8},
    {"U8", 8, DType::U8},
    {"BOOL", 8, DType::BOOL},
    {"U64", 64, DType::Other},
    {"U32", 32, DType::Other},
    {"U16", 16, DType::Other},
    {"C64", 64, DType::Other},
    {"F8_E5M2", 8, DType::Other},
    {"F8_E4M3", 8, DType::Other},
    {"F8_E8M0", 8, DType::Other},
    {"F8_E4M3FNUZ", 8, DType::Other},
    {"F8_E5M2FNUZ", 8, DType::Other},
    {"F6_E2M3", 6, DType::Other},
    {"F6_E3M2", 6, DType::Other},
    {"F4", 4, DType::Other},
};

/// Reads the header of one file.
class HeaderReader {
public:
  explicit HeaderReader(const MappedFile &file) : file(file) {}

  /// The tensors in the order of their data, `place` filled in but for the
  /// file's number. Adds to `metadata` the keys that it does not have.
  std::vector<TensorInfo> read(std::map<std::string, std::string> &metadata);

private:
  TensorInfo readTensor(const std::string &name, const json &entry) const;
  uint64_t readUnsigned(const json &value, const std::string &name,
                        const char *field) const;
  void checkCoverage(const std::vector<TensorInfo> &tensors) const;

  [[noreturn]] void fail(int id, std::string what) const {
    throw Error(id, ExitCode::BadInput, std::move(what), file.path(),
                "the file is damaged or not safetensors: fetch it again");
  }

  const MappedFile &file;
  uint64_t dataStart = 0, dataBytes = 0;
};

std::vector<TensorInfo>
HeaderReader::read(std::map<std::string, std::string> &metadata) {
  uint64_t length;
  if (file.size() < sizeof length)
    fail(1001, "the file has " + std::to_string(file.size()) +
                   " bytes, too few for a header");
  std::memcpy(&length, file.data(), sizeof length);
  if (length > maxHeaderBytes || length > file.size() - sizeof length)
    fail(1001, "a header of " + std::to_string(length) +
                   " bytes does not fit the file of " +
                   std::to_string(file.size()) + " bytes or the limit of " +
                   std::to_string(maxHeaderBytes));
  dataStart = sizeof length + length;
  dataBytes = file.size() - dataStart;

  std::string_view text(
      reinterpret_cast<const char *>(file.data()) + sizeof length, length);
  const json header =
      parseJson(text, file.path() + " (header)", maxHeaderDepth);
  if (!header.is_object())
    fail(1002, "the header is " + describeJson(header) + ", not an object");

  std::vector<TensorInfo> tensors;
  tensors.reserve(header.size());
  for (const auto &[name, entry] : header.items()) {
    if (name != "__metadata__") {
      tensors.push_back(readTensor(name, entry));
      continue;
    }
    if (!entry.is_object())
      fail(1002, "__metadata__ is " + describeJson(entry) + ", not an object");
    for (const auto &[key, value] : entry.items()) {
      if (!value.is_string())
        fail(1002, "__metadata__ \"" + key + "\" is " + describeJson(value) +
                       ", not a string");
      metadata.emplace(key, value.get<std::string>());
    }
  }
  // An empty tensor comes before the one that starts where it does.
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const TensorInfo &left, const TensorInfo &right) {
                     return std::tie(left.place.offset, left.place.bytes) <
                            std::tie(right.place.offset, right.place.bytes);
                   });
  checkCoverage(tensors);
  return tensors;
}

uint64_t HeaderReader::readUnsigned(const json &value, const std::string &name,
                                    const char *field) const {
  constexpr uint64_t limit = std::numeric_limits<int64_t>::max();
  if (!value.is_number_unsigned() || value.get<uint64_t>() > limit)
    fail(1002, "tensor \"" + name + "\": " + describeJson(value) + " in " +
                   field + ", expected a whole number that is not negative");
  return value.get<uint64_t>();
}

TensorInfo HeaderReader::readTensor(const std::string &name,
                                    const json &entry) const {
  const std::string where = file.path() + ": tensor \"" + name + "\"";
  const std::string &spelling = requireString(entry, "dtype", where);
  const json &shape = requireArray(entry, "shape", where);
  const json &offsets = requireArray(entry, "data_offsets", where);

  auto stored = std::find_if(
      std::begin(storedTypes), std::end(storedTypes),
      [&](const StoredType &type) { return spelling == type.name; });
  if (stored == std::end(storedTypes))
    fail(1002, "tensor \"" + name + "\": unknown dtype " +
                   describeJson(entry["dtype"]));

  TensorInfo tensor{name, stored->dtype, {}, spelling, {}};
  for (const json &dimension : shape)
    tensor.shape.push_back(
        static_cast<int64_t>(readUnsigned(dimension, name, "shape")));
  std::optional<int64_t> elements = checkedElements(tensor.shape);
  int64_t bits;
  if (!elements ||
      __builtin_mul_overflow(*elements, int64_t{stored->bits}, &bits))
    fail(1002, "tensor \"" + name + "\": the shape has too many elements");

  if (offsets.size() != 2)
    fail(1002, "tensor \"" + name + "\": data_offsets has " +
                   std::to_string(offsets.size()) + " numbers, not 2");
  uint64_t begin = readUnsigned(offsets[0], name, "data_offsets");
  uint64_t end = readUnsigned(offsets[1], name, "data_offsets");
  if (begin > end || end > dataBytes)
    fail(1003, "tensor \"" + name + "\": bytes [" + std::to_string(begin) +
                   ", " + std::to_string(end) + ") of " +
                   std::to_string(dataBytes));
  if (bits % 8 != 0 || end - begin != static_cast<uint64_t>(bits / 8))
    fail(1003, "tensor \"" + name + "\": " + std::to_string(*elements) +
                   " elements of " + spelling + " in " +
                   std::to_string(end - begin) + " bytes");
  tensor.place.offset = dataStart + begin;
  tensor.place.bytes = end - begin;
  return tensor;
}

void HeaderReader::checkCoverage(const std::vector<TensorInfo> &tensors) const {
  uint64_t end = dataStart;
  for (const TensorInfo &tensor : tensors) {
    if (tensor.place.offset != end)
      fail(1003, "tensor \"" + tensor.name + "\" starts at byte " +
                     std::to_string(tensor.place.offset - dataStart) +
                     " of the data; the one before it ends at byte " +
                     std::to_string(end - dataStart));
    end += tensor.place.bytes;
  }
  if (end != file.size())
    fail(1003, "no tensor holds the last " + std::to_string(file.size() - end) +
                   " bytes");
}

/// Shards lie beside their index. A name that could lead anywhere else comes
/// from no honest writer.
void checkShardName(const std::string &name, const std::string &indexPath) {
  constexpr std::string_view forbidden("/\\\0", 3);
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(forbidden) != std::string::npos)
    throw Error(1004, ExitCode::BadInput,
                "shard name " + describeJson(name) +
                    " is not the name of a file beside the index",
                indexPath, "fetch the model from a source that you trust");
}

} // namespace

SafetensorsSource::SafetensorsSource(const std::string &path)
    : MappedTensorSource(path) {
  namespace fs = std::filesystem;
  std::error_code ignored; // what cannot be looked at counts as absent
  if (!fs::is_directory(path, ignored)) {
    addShard(path);
    return;
  }
  const std::string single = (fs::path(path) / "model.safetensors").string();
  const std::string index = single + ".index.json";
  if (fs::exists(single, ignored))
    addShard(single);
  else if (fs::exists(index, ignored))
    addIndexedShards(path, index);
  else
    throw Error(1004, ExitCode::BadInput,
                "neither model.safetensors nor model.safetensors.index.json",
                path, "name a folder that holds one of them");
}

void SafetensorsSource::addShard(const std::string &path) {
  const uint32_t number = fileCount();
  for (TensorInfo &tensor : HeaderReader(addFile(path)).read(metadata_)) {
    tensor.place.file = number;
    const std::string name = tensor.name;
    if (!addTensor(std::move(tensor)))
      throw Error(1004, ExitCode::BadInput,
                  "tensor \"" + name + "\" is in this shard and in " +
                      file(find(name)->place.file).path(),
                  path, "fetch the model again");
  }
}

void SafetensorsSource::addIndexedShards(const std::string &folder,
                                         const std::string &indexPath) {
  const json index = readJsonFile(indexPath);
  const json &map = requireObject(index, "weight_map", indexPath);
  std::set<std::string> shards;
  for (const auto &[tensor, shard] : map.items()) {
    if (!shard.is_string())
      throw Error(1004, ExitCode::BadInput,
                  "weight_map: the shard of \"" + tensor + "\" is " +
                      describeJson(shard) + ", not a string",
                  indexPath);
    checkShardName(shard.get_ref<const std::string &>(), indexPath);
    shards.insert(shard.get<std::string>());
  }
  for (const std::string &shard : shards) {
    const std::string path = (std::filesystem::path(folder) / shard).string();
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
      throw Error(1004, ExitCode::BadInput,
                  "shard " + shard + ", which the index names, is missing",
                  indexPath, "the download is incomplete: fetch it again");
    addShard(path);
  }
  for (const auto &[name, shard] : map.items()) {
    const TensorInfo *tensor = find(name);
    if (!tensor ||
        std::filesystem::path(file(tensor->place.file).path()).filename() !=
            shard.get<std::string>())
      throw Error(1004, ExitCode::BadInput,
                  "tensor \"" + name + "\" is not in shard " +
                      shard.get<std::string>() + ", where the index puts it",
                  indexPath, "index and shards differ: fetch the model again");
  }
}

std::unique_ptr<SafetensorsSource> openSafetensors(const std::string &path) {
  return std::make_unique<SafetensorsSource>(path);
}

} // namespace fsdpq::rt
