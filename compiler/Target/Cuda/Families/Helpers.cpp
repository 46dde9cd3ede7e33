//===- Helpers.cpp - Device functions of emitted texts --------------------===//

#include "compiler/Target/Cuda/Families/Helpers.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"

using namespace fsdpq;
using namespace fsdpq::cuda;

static constexpr const char *types = R"(typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
#define DEV __device__ __forceinline__
)";

static StringRef getText(Helper helper) {
  switch (helper) {
  case Helper::Words:
    return R"(
template <int Bytes>
struct Words {
  static constexpr int count = (Bytes + 3) / 4;
  u32 at[count];
};

// What one access moves.
template <int Count>
struct alignas(4 * Count) Chunk {
  u32 at[Count];
};
)";
  case Helper::Read:
    return R"(
// Bytes in memory order, read in accesses of so many bytes.
template <int Bytes, int Access>
DEV Words<Bytes> read(const void *from) {
  Words<Bytes> words;
  if constexpr (Access >= 4) {
    constexpr int count = Access / 4;
#pragma unroll
    for (int i = 0; i < Words<Bytes>::count / count; ++i) {
      const Chunk<count> chunk = static_cast<const Chunk<count> *>(from)[i];
#pragma unroll
      for (int j = 0; j < count; ++j)
        words.at[i * count + j] = chunk.at[j];
    }
  } else {
#pragma unroll
    for (int i = 0; i < Words<Bytes>::count; ++i)
      words.at[i] = 0;
#pragma unroll
    for (int i = 0; i < Bytes / Access; ++i) {
      u32 bits;
      if constexpr (Access == 2)
        bits = static_cast<const u16 *>(from)[i];
      else
        bits = static_cast<const u8 *>(from)[i];
      words.at[i * Access / 4] |= bits << 8 * (i * Access % 4);
    }
  }
  return words;
}
)";
  case Helper::Write:
    return R"(
template <int Access, int Bytes>
DEV void write(void *to, const Words<Bytes> &words) {
  if constexpr (Access >= 4) {
    constexpr int count = Access / 4;
#pragma unroll
    for (int i = 0; i < Words<Bytes>::count / count; ++i) {
      Chunk<count> chunk;
#pragma unroll
      for (int j = 0; j < count; ++j)
        chunk.at[j] = words.at[i * count + j];
      static_cast<Chunk<count> *>(to)[i] = chunk;
    }
  } else {
#pragma unroll
    for (int i = 0; i < Bytes / Access; ++i) {
      const u32 bits = words.at[i * Access / 4] >> 8 * (i * Access % 4);
      if constexpr (Access == 2)
        static_cast<u16 *>(to)[i] = static_cast<u16>(bits);
      else
        static_cast<u8 *>(to)[i] = static_cast<u8>(bits);
    }
  }
}
)";
  case Helper::At:
    return R"(
template <class T>
DEV T from_bits(u64 bits) { return static_cast<T>(bits); }
template <>
DEV float from_bits<float>(u64 bits) { return __uint_as_float(static_cast<u32>(bits)); }
template <>
DEV double from_bits<double>(u64 bits) { return __longlong_as_double(static_cast<i64>(bits)); }

template <class T, int Bytes>
DEV T at(const Words<Bytes> &words, int j) {
  if constexpr (sizeof(T) == 8)
    return from_bits<T>(words.at[2 * j] | static_cast<u64>(words.at[2 * j + 1]) << 32);
  else
    return from_bits<T>(words.at[j * static_cast<int>(sizeof(T)) / 4] >>
                        8 * (j * static_cast<int>(sizeof(T)) % 4));
}
)";
  case Helper::Put:
    return R"(
DEV u64 to_bits(float value) { return __float_as_uint(value); }
DEV u64 to_bits(double value) { return static_cast<u64>(__double_as_longlong(value)); }
DEV u64 to_bits(i64 value) { return static_cast<u64>(value); }
DEV u64 to_bits(int value) { return static_cast<u32>(value); }
DEV u64 to_bits(u16 value) { return value; }
DEV u64 to_bits(i8 value) { return static_cast<u8>(value); }

// Elements come in ascending order: the first of a word replaces all of it.
template <class T, int Bytes>
DEV void put(Words<Bytes> &words, int j, T value) {
  const u64 bits = to_bits(value);
  if constexpr (sizeof(T) == 8) {
    words.at[2 * j] = static_cast<u32>(bits);
    words.at[2 * j + 1] = static_cast<u32>(bits >> 32);
  } else {
    const int word = j * static_cast<int>(sizeof(T)) / 4;
    const int shift = 8 * (j * static_cast<int>(sizeof(T)) % 4);
    words.at[word] = (shift ? words.at[word] : 0) | static_cast<u32>(bits) << shift;
  }
}
)";
  case Helper::FloatBf16:
    return R"(
DEV float f32_of(u16 value) { return __uint_as_float(static_cast<u32>(value) << 16); }
)";
  case Helper::Bf16:
    return R"(
DEV u16 bf16_of(float value) {
  u16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(value));
  return result;
}
)";
  case Helper::Bf16x2:
    return R"(
DEV u32 bf16x2_of(float low, float high) {
  u32 result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}
)";
  case Helper::Maximum:
    return R"(
template <class T>
DEV T maximum(T a, T b) { return a != a || b != b ? a + b : fmax(a, b); }
template <class T>
DEV T minimum(T a, T b) { return a != a || b != b ? a + b : fmin(a, b); }
)";
  }
  llvm_unreachable("a helper without a text");
}

void Helpers::use(Helper helper) {
  if (helper == Helper::Read || helper == Helper::Write ||
      helper == Helper::At || helper == Helper::Put)
    used.insert(Helper::Words);
  used.insert(helper);
}

std::string Helpers::str() const {
  std::string text = types;
  for (Helper helper : used)
    text += getText(helper);
  return text;
}
