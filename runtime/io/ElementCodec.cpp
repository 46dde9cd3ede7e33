#include "runtime/io/ElementCodec.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace fsdpq::rt {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian and are read in place");

namespace {

// Files need not align their tensors, so elements are copied out bytewise;
// compilers turn this into plain (vector) loads.
template <typename T>
T load(const unsigned char *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Applies `convert` to each stored T. __restrict: bytes may alias anything,
/// which would otherwise keep the loop from being vectorised.
template <typename T, typename Out, typename Convert>
void decodePlain(const unsigned char *__restrict raw, int64_t begin,
                 int64_t end, Out *__restrict out, Convert convert) {
  raw += begin * static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0, count = end - begin; i < count; ++i)
    out[i] = convert(load<T>(raw + i * static_cast<int64_t>(sizeof(T))));
}

template <typename T, typename Out>
void decodeCast(const unsigned char *raw, int64_t begin, int64_t end,
                Out *out) {
  decodePlain<T>(raw, begin, end, out,
                 [](T value) { return static_cast<Out>(value); });
}

template <typename Out>
void decodeBool(const unsigned char *raw, int64_t begin, int64_t end,
                Out *out) {
  decodePlain<uint8_t>(raw, begin, end, out, [](uint8_t value) {
    return static_cast<Out>(value != 0);
  });
}

// The scale has 11 significant bits and a code at most 8, so their product is
// exact in f32: fusing it with the addition below changes nothing.

void decodeQ40(const unsigned char *__restrict block, float *__restrict out) {
  float scale = f16ToF32(load<uint16_t>(block));
  const unsigned char *codes = block + 2;
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>((codes[j] & 15) - 8) * scale;
    out[j + 16] = static_cast<float>((codes[j] >> 4) - 8) * scale;
  }
}

void decodeQ41(const unsigned char *__restrict block, float *__restrict out) {
  float scale = f16ToF32(load<uint16_t>(block));
  float minimum = f16ToF32(load<uint16_t>(block + 2));
  const unsigned char *codes = block + 4;
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>(codes[j] & 15) * scale + minimum;
    out[j + 16] = static_cast<float>(codes[j] >> 4) * scale + minimum;
  }
}

void decodeQ80(const unsigned char *__restrict block, float *__restrict out) {
  float scale = f16ToF32(load<uint16_t>(block));
  const unsigned char *codes = block + 2;
  for (int j = 0; j < 32; ++j)
    out[j] = static_cast<float>(static_cast<int8_t>(codes[j])) * scale;
}

/// Whole blocks go straight to `out`; one that the range cuts goes through a
/// buffer.
template <void decodeBlock(const unsigned char *, float *)>
void decodeBlocks(DType dtype, const unsigned char *raw, int64_t begin,
                  int64_t end, float *out) {
  constexpr int64_t size = 32;
  const int64_t bytes = blockBytes(dtype);
  float buffer[size];
  for (int64_t position = begin; position < end;) {
    const int64_t block = position / size, skipped = position % size;
    const int64_t taken = std::min(size - skipped, end - position);
    if (taken == size) {
      decodeBlock(raw + block * bytes, out);
    } else {
      decodeBlock(raw + block * bytes, buffer);
      std::copy_n(buffer + skipped, taken, out);
    }
    position += taken;
    out += taken;
  }
}

} // namespace

void decodeF32(DType dtype, const unsigned char *raw, int64_t begin,
               int64_t end, float *out) {
  switch (dtype) {
  case DType::F64:
    return decodeCast<double>(raw, begin, end, out);
  case DType::F32:
    return decodeCast<float>(raw, begin, end, out);
  case DType::F16:
    return decodePlain<uint16_t>(raw, begin, end, out, f16ToF32);
  case DType::BF16:
    return decodePlain<uint16_t>(raw, begin, end, out, bf16ToF32);
  case DType::I64:
    return decodeCast<int64_t>(raw, begin, end, out);
  case DType::I32:
    return decodeCast<int32_t>(raw, begin, end, out);
  case DType::I16:
    return decodeCast<int16_t>(raw, begin, end, out);
  case DType::I8:
    return decodeCast<int8_t>(raw, begin, end, out);
  case DType::U8:
    return decodeCast<uint8_t>(raw, begin, end, out);
  case DType::BOOL:
    return decodeBool(raw, begin, end, out);
  case DType::Q4_0:
    return decodeBlocks<decodeQ40>(dtype, raw, begin, end, out);
  case DType::Q4_1:
    return decodeBlocks<decodeQ41>(dtype, raw, begin, end, out);
  case DType::Q8_0:
    return decodeBlocks<decodeQ80>(dtype, raw, begin, end, out);
  case DType::Other:
    break;
  }
  assert(false && "the caller checks that the type is readable");
}

void decodeI64(DType dtype, const unsigned char *raw, int64_t begin,
               int64_t end, int64_t *out) {
  switch (dtype) {
  case DType::I64:
    return decodeCast<int64_t>(raw, begin, end, out);
  case DType::I32:
    return decodeCast<int32_t>(raw, begin, end, out);
  case DType::I16:
    return decodeCast<int16_t>(raw, begin, end, out);
  case DType::I8:
    return decodeCast<int8_t>(raw, begin, end, out);
  case DType::U8:
    return decodeCast<uint8_t>(raw, begin, end, out);
  case DType::BOOL:
    return decodeBool(raw, begin, end, out);
  default:
    assert(false && "the caller checks that the type is an integer");
  }
}

void encodeF32(DType dtype, const float *values, int64_t count,
               unsigned char *out) {
  auto narrow = [&](auto convert) {
    for (int64_t i = 0; i < count; ++i) {
      uint16_t half = convert(values[i]);
      std::memcpy(out + 2 * i, &half, sizeof half);
    }
  };
  switch (dtype) {
  case DType::F32:
    std::memcpy(out, values, static_cast<size_t>(count) * sizeof(float));
    return;
  case DType::F16:
    return narrow(f32ToF16);
  case DType::BF16:
    return narrow(f32ToBf16);
  default:
    assert(false && "the caller checks that the type can be written");
  }
}

} // namespace fsdpq::rt
