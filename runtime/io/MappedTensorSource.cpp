#include "runtime/io/MappedTensorSource.h"
#include "runtime/io/ElementCodec.h"
#include "runtime/support/Error.h"

namespace fsdpq::rt {

const MappedFile &MappedTensorSource::addFile(const std::string &path) {
  return *files.emplace_back(std::make_unique<MappedFile>(path));
}

bool MappedTensorSource::addTensor(TensorInfo tensor) {
  if (byName.contains(tensor.name))
    return false;
  const TensorInfo &kept = tensors.emplace_back(std::move(tensor));
  byName.emplace(kept.name, &kept);
  return true;
}

const TensorInfo *MappedTensorSource::find(std::string_view name) const {
  auto entry = byName.find(name);
  return entry == byName.end() ? nullptr : entry->second;
}

std::vector<std::string> MappedTensorSource::names() const {
  std::vector<std::string> result;
  result.reserve(tensors.size());
  for (const TensorInfo &tensor : tensors)
    result.push_back(tensor.name);
  return result;
}

const unsigned char *MappedTensorSource::raw(const TensorInfo &tensor) const {
  return files[tensor.place.file]->data() + tensor.place.offset;
}

void MappedTensorSource::checkRange(const TensorInfo &tensor, int64_t begin,
                                    int64_t end) const {
  if (begin < 0 || begin > end || end > tensor.elements())
    throw Error(1006, ExitCode::RunFailure,
                "elements [" + std::to_string(begin) + ", " +
                    std::to_string(end) + ") asked of tensor \"" + tensor.name +
                    "\", which has " + std::to_string(tensor.elements()),
                files[tensor.place.file]->path(),
                "report this: the caller's shape differs from the file's");
}

void MappedTensorSource::readF32(const TensorInfo &tensor, int64_t begin,
                                 int64_t end, float *out) const {
  if (tensor.dtype == DType::Other)
    throw Error(1007, ExitCode::BadInput,
                "tensor \"" + tensor.name + "\" is stored as " +
                    tensor.storedType + ", which cannot be read",
                files[tensor.place.file]->path(),
                "convert it to one of F32, F16, BF16, Q8_0, Q4_1, Q4_0");
  checkRange(tensor, begin, end);
  decodeF32(tensor.dtype, raw(tensor), begin, end, out);
}

void MappedTensorSource::readI64(const TensorInfo &tensor, int64_t begin,
                                 int64_t end, int64_t *out) const {
  if (!isInteger(tensor.dtype))
    throw Error(1007, ExitCode::BadInput,
                "tensor \"" + tensor.name + "\" is stored as " +
                    tensor.storedType + " where integers are needed",
                files[tensor.place.file]->path(),
                "store it as I64, I32, I16, I8, U8 or BOOL");
  checkRange(tensor, begin, end);
  decodeI64(tensor.dtype, raw(tensor), begin, end, out);
}

void MappedTensorSource::release(const TensorInfo &tensor) const {
  files[tensor.place.file]->release(tensor.place.offset, tensor.place.bytes);
}

std::optional<int64_t> checkedElements(const std::vector<int64_t> &shape) {
  int64_t product = 1;
  for (int64_t dimension : shape)
    if (dimension < 0 || __builtin_mul_overflow(product, dimension, &product))
      return std::nullopt;
  return product;
}

} // namespace fsdpq::rt
