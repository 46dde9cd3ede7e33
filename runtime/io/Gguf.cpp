#include "runtime/io/Gguf.h"
#include "runtime/io/Json.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

namespace fsdpq::rt {

using nlohmann::json;

namespace {

// An array element of one byte becomes a json value of 16: a bound keeps a
// hostile file from asking for more memory than a machine has. The largest
// real vocabularies have 0.3 million tokens and 0.5 million merges.
constexpr uint64_t maxMetadataValues = uint64_t{1} << 25;
constexpr uint64_t maxNameBytes = 65535; // the format's own limit for keys
constexpr uint32_t maxRank = 4;          // ggml's limit
constexpr int maxArrayDepth = 4;
constexpr uint64_t defaultAlignment = 32;
constexpr uint64_t maxAlignment = uint64_t{1} << 30;

enum class ValueType : uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64,
};

struct GgmlType {
  const char *name;
  DType dtype;
};

const std::map<uint32_t, GgmlType> ggmlTypes = {
    {0, {"F32", DType::F32}},        {1, {"F16", DType::F16}},
    {2, {"Q4_0", DType::Q4_0}},      {3, {"Q4_1", DType::Q4_1}},
    {6, {"Q5_0", DType::Other}},     {7, {"Q5_1", DType::Other}},
    {8, {"Q8_0", DType::Q8_0}},      {9, {"Q8_1", DType::Other}},
    {10, {"Q2_K", DType::Other}},    {11, {"Q3_K", DType::Other}},
    {12, {"Q4_K", DType::Other}},    {13, {"Q5_K", DType::Other}},
    {14, {"Q6_K", DType::Other}},    {15, {"Q8_K", DType::Other}},
    {16, {"IQ2_XXS", DType::Other}}, {17, {"IQ2_XS", DType::Other}},
    {18, {"IQ3_XXS", DType::Other}}, {19, {"IQ1_S", DType::Other}},
    {20, {"IQ4_NL", DType::Other}},  {21, {"IQ3_S", DType::Other}},
    {22, {"IQ2_S", DType::Other}},   {23, {"IQ4_XS", DType::Other}},
    {24, {"I8", DType::I8}},         {25, {"I16", DType::I16}},
    {26, {"I32", DType::I32}},       {27, {"I64", DType::I64}},
    {28, {"F64", DType::F64}},       {29, {"IQ1_M", DType::Other}},
    {30, {"BF16", DType::BF16}},     {34, {"TQ1_0", DType::Other}},
    {35, {"TQ2_0", DType::Other}},   {39, {"MXFP4", DType::Other}},
};

/// Reads the part before the data from front to back; no step leaves the file.
class GgufReader {
public:
  explicit GgufReader(const MappedFile &file) : file(file) {}

  void readHeader();
  json readMetadata();
  /// In the order of their data.
  std::vector<TensorInfo> readTensors(const json &metadata);

private:
  template <typename T>
  T read();
  std::string readString(const char *what, uint64_t limit);
  json readValue(ValueType type, const std::string &key, int depth);
  json readArray(const std::string &key, int depth);
  TensorInfo readTensor();
  void placeTensors(std::vector<TensorInfo> &tensors, uint64_t alignment) const;
  uint64_t readAlignment(const json &metadata) const;

  uint64_t remaining() const { return file.size() - position; }
  void need(uint64_t bytes, const char *what) const {
    if (bytes > remaining())
      fail(1102, std::string("the file ends within ") + what + " at byte " +
                     std::to_string(position) + ": " + std::to_string(bytes) +
                     " bytes needed, " + std::to_string(remaining()) + " left");
  }
  /// Every item takes at least `itemBytes`, so a count that the rest of the
  /// file cannot hold is refused before anything is allocated for it.
  void checkCount(uint64_t count, uint64_t itemBytes, const char *what) const {
    if (count > remaining() / itemBytes)
      fail(1102, std::to_string(count) + " " + what + " do not fit the " +
                     std::to_string(remaining()) + " bytes left at byte " +
                     std::to_string(position));
  }
  [[noreturn]] void fail(int id, std::string what) const {
    throw Error(id, ExitCode::BadInput, std::move(what), file.path(),
                "the file is damaged or not GGUF: fetch it again");
  }

  const MappedFile &file;
  uint64_t position = 0;
  uint64_t tensorCount = 0, metadataCount = 0, valueCount = 0;
};

template <typename T>
T GgufReader::read() {
  need(sizeof(T), "a number");
  T value;
  std::memcpy(&value, file.data() + position, sizeof value);
  position += sizeof value;
  return value;
}

std::string GgufReader::readString(const char *what, uint64_t limit) {
  const uint64_t length = read<uint64_t>();
  need(length, what);
  if (length > limit)
    fail(1103, std::string(what) + " of " + std::to_string(length) +
                   " bytes, at most " + std::to_string(limit) + " are allowed");
  std::string text(reinterpret_cast<const char *>(file.data()) + position,
                   length);
  position += length;
  return text;
}

void GgufReader::readHeader() {
  if (file.size() < 4 || std::memcmp(file.data(), "GGUF", 4) != 0)
    fail(1101, "the file does not start with \"GGUF\"");
  position = 4;
  const uint32_t version = read<uint32_t>();
  if (version == 1)
    fail(1101, "GGUF version 1 is obsolete, 2 and 3 can be read");
  if (version == __builtin_bswap32(2) || version == __builtin_bswap32(3))
    fail(1101, "the file is big-endian");
  if (version != 2 && version != 3)
    fail(1101, "GGUF version " + std::to_string(version) +
                   " is not known, 2 and 3 can be read");
  tensorCount = read<uint64_t>();
  metadataCount = read<uint64_t>();
}

json GgufReader::readMetadata() {
  checkCount(metadataCount, 8 + 4 + 1, "metadata entries");
  json metadata = json::object();
  for (uint64_t i = 0; i < metadataCount; ++i) {
    std::string key = readString("a metadata key", maxNameBytes);
    const uint32_t type = read<uint32_t>();
    json value = readValue(static_cast<ValueType>(type), key, 0);
    auto [entry, isNew] = metadata.emplace(std::move(key), std::move(value));
    if (!isNew)
      fail(1103, "metadata key " + describeJson(entry.key()) + " stands twice");
  }
  return metadata;
}

json GgufReader::readValue(ValueType type, const std::string &key, int depth) {
  switch (type) {
  case ValueType::U8:
    return read<uint8_t>();
  case ValueType::I8:
    return read<int8_t>();
  case ValueType::U16:
    return read<uint16_t>();
  case ValueType::I16:
    return read<int16_t>();
  case ValueType::U32:
    return read<uint32_t>();
  case ValueType::I32:
    return read<int32_t>();
  case ValueType::F32:
    return read<float>();
  case ValueType::Bool: {
    const uint8_t value = read<uint8_t>();
    if (value > 1)
      fail(1103, "metadata " + describeJson(key) + ": " +
                     std::to_string(value) + " is no boolean");
    return value == 1;
  }
  case ValueType::String:
    return readString("a metadata string", file.size());
  case ValueType::Array:
    return readArray(key, depth + 1);
  case ValueType::U64:
    return read<uint64_t>();
  case ValueType::I64:
    return read<int64_t>();
  case ValueType::F64:
    return read<double>();
  }
  fail(1103, "metadata " + describeJson(key) + " has the unknown type " +
                 std::to_string(static_cast<uint32_t>(type)));
}

json GgufReader::readArray(const std::string &key, int depth) {
  if (depth > maxArrayDepth)
    fail(1103, "metadata " + describeJson(key) +
                   ": arrays are nested more than " +
                   std::to_string(maxArrayDepth) + " levels deep");
  const ValueType type = static_cast<ValueType>(read<uint32_t>());
  const uint64_t count = read<uint64_t>();
  // A string takes its length, an array its type and count.
  const uint64_t itemBytes = type == ValueType::String  ? 8
                             : type == ValueType::Array ? 12
                                                        : 1;
  checkCount(count, itemBytes, "array elements");
  valueCount += count;
  if (valueCount > maxMetadataValues)
    fail(1103, "metadata " + describeJson(key) + ": more than " +
                   std::to_string(maxMetadataValues) + " values in arrays");
  json::array_t values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i)
    values.push_back(readValue(type, key, depth));
  return values;
}

TensorInfo GgufReader::readTensor() {
  TensorInfo tensor;
  tensor.name = readString("a tensor name", maxNameBytes);
  const std::string label = "tensor " + describeJson(tensor.name);
  const uint32_t rank = read<uint32_t>();
  if (rank > maxRank)
    fail(1104, label + " has " + std::to_string(rank) +
                   " dimensions, at most " + std::to_string(maxRank) +
                   " are allowed");
  for (uint32_t i = 0; i < rank; ++i)
    tensor.shape.push_back(std::bit_cast<int64_t>(read<uint64_t>()));
  std::reverse(tensor.shape.begin(), tensor.shape.end());
  std::optional<int64_t> elements = checkedElements(tensor.shape);
  if (!elements)
    fail(1104, label + ": the shape has too many elements");

  const uint32_t type = read<uint32_t>();
  tensor.place.offset = read<uint64_t>();
  auto known = ggmlTypes.find(type);
  if (known == ggmlTypes.end()) {
    tensor.dtype = DType::Other;
    tensor.storedType = "ggml type " + std::to_string(type);
    return tensor;
  }
  tensor.dtype = known->second.dtype;
  tensor.storedType = known->second.name;

  // Blocks do not cross rows.
  const int64_t block = blockElements(tensor.dtype);
  const int64_t row = rank == 0 ? 1 : tensor.shape.back();
  if (row % block != 0)
    fail(1104, label + ": rows of " + std::to_string(row) +
                   " elements are not whole blocks of " + tensor.storedType);
  int64_t bytes;
  if (__builtin_mul_overflow(*elements / block, blockBytes(tensor.dtype),
                             &bytes))
    fail(1104, label + ": the shape has too many elements");
  tensor.place.bytes = static_cast<uint64_t>(bytes);
  return tensor;
}

uint64_t GgufReader::readAlignment(const json &metadata) const {
  auto entry = metadata.find("general.alignment");
  if (entry == metadata.end())
    return defaultAlignment;
  if (!entry->is_number_unsigned() ||
      !std::has_single_bit(entry->get<uint64_t>()) ||
      entry->get<uint64_t>() > maxAlignment)
    fail(1103, "general.alignment is " + describeJson(*entry) +
                   ", expected a power of two");
  return entry->get<uint64_t>();
}

std::vector<TensorInfo> GgufReader::readTensors(const json &metadata) {
  // Name, rank, type and offset of a scalar.
  checkCount(tensorCount, 8 + 4 + 4 + 8, "tensors");
  std::vector<TensorInfo> tensors;
  tensors.reserve(tensorCount);
  for (uint64_t i = 0; i < tensorCount; ++i)
    tensors.push_back(readTensor());
  placeTensors(tensors, readAlignment(metadata));
  return tensors;
}

/// Turns offsets within the data into offsets within the file.
void GgufReader::placeTensors(std::vector<TensorInfo> &tensors,
                              uint64_t alignment) const {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const TensorInfo &left, const TensorInfo &right) {
                     return left.place.offset < right.place.offset;
                   });
  // The position is at most the file's size, far from overflow. A file without
  // data may lack the padding.
  const uint64_t dataStart = (position + alignment - 1) / alignment * alignment;
  const uint64_t dataBytes =
      file.size() > dataStart ? file.size() - dataStart : 0;
  uint64_t end = 0;
  for (TensorInfo &tensor : tensors) {
    auto &[number, offset, bytes] = tensor.place;
    const std::string label = "tensor " + describeJson(tensor.name) +
                              " at byte " + std::to_string(offset) +
                              " of the data";
    if (offset % alignment != 0)
      fail(1105, label + " is not aligned to " + std::to_string(alignment));
    if (offset > dataBytes || bytes > dataBytes - offset)
      fail(1105, label + " with " + std::to_string(bytes) +
                     " bytes leaves the file's " + std::to_string(dataBytes) +
                     " bytes of data");
    if (offset < end)
      fail(1105, label + " overlaps the tensor before it");
    end = offset + bytes;
    offset += dataStart;
  }
}

} // namespace

GgufFile::GgufFile(const std::string &path) : MappedTensorSource(path) {
  GgufReader reader(addFile(path));
  reader.readHeader();
  metadata_ = reader.readMetadata();
  for (TensorInfo &tensor : reader.readTensors(metadata_)) {
    const std::string name = tensor.name;
    if (!addTensor(std::move(tensor)))
      throw Error(1104, ExitCode::BadInput,
                  "two tensors are called " + describeJson(name), path,
                  "fetch the file again");
  }
}

std::unique_ptr<GgufFile> openGguf(const std::string &path) {
  return std::make_unique<GgufFile>(path);
}

} // namespace fsdpq::rt
