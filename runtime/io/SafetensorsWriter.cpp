#include "runtime/io/ElementCodec.h"
#include "runtime/io/Json.h"
#include "runtime/io/Safetensors.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <array>
#include <set>

namespace fsdpq::rt {

namespace {

[[noreturn]] void fail(std::string what, const std::string &path,
                       std::string hint = "") {
  throw Error(1008, ExitCode::RunFailure, std::move(what), path,
              std::move(hint));
}

std::string quote(const std::string &text, const std::string &path) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception &) {
    fail(describeJson(text) + " is not UTF-8", path, "rename it");
  }
}

bool isWritable(DType dtype) {
  switch (dtype) {
  case DType::F32:
  case DType::BF16:
  case DType::F16:
  case DType::I64:
  case DType::I32:
  case DType::U8:
    return true;
  default:
    return false;
  }
}

/// The tensor's size in bytes.
uint64_t checkSpec(const SafetensorsWriter::Spec &tensor, uint64_t begin,
                   const std::string &path) {
  const std::string label = "tensor \"" + tensor.name + "\"";
  if (!isWritable(tensor.dtype))
    fail(label + " cannot be written as " + dtypeName(tensor.dtype), path);
  const int64_t elementBytes = blockBytes(tensor.dtype);
  std::optional<int64_t> elements = checkedElements(tensor.shape);
  int64_t bytes, end;
  if (!elements || __builtin_mul_overflow(*elements, elementBytes, &bytes) ||
      __builtin_add_overflow(static_cast<int64_t>(begin), bytes, &end))
    fail(label + " has an impossible shape", path);
  if (begin % static_cast<uint64_t>(elementBytes) != 0)
    fail(label + " would start at byte " + std::to_string(begin) +
             ", not a multiple of " + std::to_string(elementBytes),
         path, "put tensors of wider types first");
  return static_cast<uint64_t>(bytes);
}

} // namespace

SafetensorsWriter::SafetensorsWriter(
    const std::string &path, std::vector<Spec> specs,
    std::map<std::string, std::string> metadata)
    : path(path), tensors(std::move(specs)), file(path) {
  // Text by hand, since the library would sort the keys.
  metadata.emplace("format", "pt");
  std::string header = "{\"__metadata__\":{";
  for (const char *comma = ""; const auto &[key, value] : metadata) {
    header += comma + quote(key, path) + ":" + quote(value, path);
    comma = ",";
  }
  header += "}";

  std::set<std::string_view> names{"__metadata__"};
  ends.reserve(tensors.size());
  for (const Spec &tensor : tensors) {
    if (!names.insert(tensor.name).second)
      fail("the name \"" + tensor.name + "\" is taken", path);
    const uint64_t begin = dataBytes;
    dataBytes += checkSpec(tensor, begin, path);
    ends.push_back(dataBytes);
    header += "," + quote(tensor.name, path) + ":{\"dtype\":\"" +
              dtypeName(tensor.dtype) +
              "\",\"shape\":" + nlohmann::json(tensor.shape).dump() +
              ",\"data_offsets\":[" + std::to_string(begin) + "," +
              std::to_string(dataBytes) + "]}";
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');

  const uint64_t length = header.size();
  file.write(&length, sizeof length);
  file.write(header);
}

void SafetensorsWriter::append(const void *data, uint64_t bytes) {
  if (bytes > remaining())
    fail("more data than the tensors hold: " + std::to_string(bytes) +
             " bytes where " + std::to_string(remaining()) + " are left",
         path);
  file.write(data, bytes);
  written += bytes;
  while (current < tensors.size() && ends[current] <= written)
    ++current;
}

void SafetensorsWriter::appendF32(const float *values, int64_t count) {
  // An empty tensor is passed over by the next append, not by one of its own.
  while (current < tensors.size() && ends[current] == written)
    ++current;
  if (count == 0)
    return;
  if (current == tensors.size())
    fail("more values than the tensors hold", path);
  const Spec &tensor = tensors[current];
  if (isInteger(tensor.dtype))
    fail("f32 values for tensor \"" + tensor.name + "\" of type " +
             dtypeName(tensor.dtype),
         path);
  const int64_t elementBytes = blockBytes(tensor.dtype);
  const int64_t left =
      static_cast<int64_t>(ends[current] - written) / elementBytes;
  if (count < 0 || count > left)
    fail(std::to_string(count) + " values for tensor \"" + tensor.name +
             "\", of which " + std::to_string(left) + " are left",
         path);
  if (tensor.dtype == DType::F32)
    return append(values, static_cast<uint64_t>(count) * sizeof(float));

  constexpr int64_t piece = 4096;
  std::array<unsigned char, piece * 2> buffer;
  const DType dtype = tensor.dtype;
  for (int64_t begin = 0; begin < count; begin += piece) {
    const int64_t taken = std::min(piece, count - begin);
    encodeF32(dtype, values + begin, taken, buffer.data());
    append(buffer.data(), static_cast<uint64_t>(taken * elementBytes));
  }
}

void SafetensorsWriter::commit() {
  if (remaining() != 0)
    fail(std::to_string(remaining()) + " bytes of data have not been given",
         path);
  file.commit();
}

void writeSafetensors(const std::string &path,
                      const std::vector<NamedTensor> &tensors,
                      std::map<std::string, std::string> metadata) {
  std::vector<SafetensorsWriter::Spec> specs;
  specs.reserve(tensors.size());
  for (const NamedTensor &tensor : tensors)
    specs.push_back({tensor.name, tensor.dtype, tensor.shape});
  SafetensorsWriter writer(path, std::move(specs), std::move(metadata));
  for (const NamedTensor &tensor : tensors) {
    const std::optional<int64_t> elements = checkedElements(tensor.shape);
    writer.append(tensor.data,
                  static_cast<uint64_t>(*elements * blockBytes(tensor.dtype)));
  }
  writer.commit();
}

} // namespace fsdpq::rt
