//===- EmulatorShim.h - The words of CUDA texts, for a host compiler ------===//
//
// Pasted after EmulatorServices.h and before every text that the emulator runs.
// The text itself is put into an unnamed namespace. Includes nothing, so that a
// text finds no more names than NVRTC would give it.
//
//===----------------------------------------------------------------------===//

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
// Arrays with a name; "extern __shared__" is rewritten before this is seen. They
// are in a section of their own for the emulator to find them all.
#define __shared__ static __attribute__((section("emulated_shared")))
// Other threads may write between two reads of one, and do at barriers.
#define __restrict__

typedef decltype(sizeof(0)) size_t;

const EmulatorServices *emulator;

//===----------------------------------------------------------------------===//
// Vector types
//===----------------------------------------------------------------------===//

#define EMULATED_VECTORS(name, type)                                             \
  struct name##1 { type x; };                                                    \
  struct alignas(2 * sizeof(type)) name##2 { type x, y; };                       \
  struct name##3 { type x, y, z; };                                              \
  struct alignas(sizeof(type) > 4 ? 16 : 4 * sizeof(type)) name##4 {             \
    type x, y, z, w;                                                             \
  };                                                                             \
  inline name##1 make_##name##1(type x) { return {x}; }                          \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }               \
  inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }    \
  inline name##4 make_##name##4(type x, type y, type z, type w) {                \
    return {x, y, z, w};                                                         \
  }
EMULATED_VECTORS(char, signed char)
EMULATED_VECTORS(uchar, unsigned char)
EMULATED_VECTORS(short, short)
EMULATED_VECTORS(ushort, unsigned short)
EMULATED_VECTORS(int, int)
EMULATED_VECTORS(uint, unsigned)
EMULATED_VECTORS(longlong, long long)
EMULATED_VECTORS(ulonglong, unsigned long long)
EMULATED_VECTORS(float, float)
EMULATED_VECTORS(double, double)
#undef EMULATED_VECTORS

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
constexpr int warpSize = 32;

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

template <typename To, typename From>
inline To emulatedBits(From from) {
  static_assert(sizeof(To) == sizeof(From), "other size");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

inline unsigned __float_as_uint(float x) { return emulatedBits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return emulatedBits<float>(x); }
inline int __float_as_int(float x) { return emulatedBits<int>(x); }
inline float __int_as_float(int x) { return emulatedBits<float>(x); }
inline long long __double_as_longlong(double x) {
  return emulatedBits<long long>(x);
}
inline double __longlong_as_double(long long x) { return emulatedBits<double>(x); }

inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(unsigned long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(unsigned x) { return __builtin_ffs(static_cast<int>(x)); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i)
    reversed |= (x >> i & 1) << (31 - i);
  return reversed;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned picked = 0;
  for (int i = 0; i < 4; ++i)
    picked |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff)
              << 8 * i;
  return picked;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31));
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline int __mulhi(int a, int b) {
  return static_cast<int>(static_cast<long long>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >>
                                         64);
}

//===----------------------------------------------------------------------===//
// Numbers. Contraction is off, so each operation rounds on its own; what the
// hardware approximates is exact to rounding here.
//===----------------------------------------------------------------------===//

#define EMULATED_LIBRARY(name)                                                   \
  extern "C" float name##f(float) noexcept;                                      \
  extern "C" double name(double) noexcept;                                       \
  inline float name(float x) { return name##f(x); }
#define EMULATED_LIBRARY2(name)                                                  \
  extern "C" float name##f(float, float) noexcept;                               \
  extern "C" double name(double, double) noexcept;                               \
  inline float name(float x, float y) { return name##f(x, y); }
EMULATED_LIBRARY(exp)
EMULATED_LIBRARY(exp2)
EMULATED_LIBRARY(expm1)
EMULATED_LIBRARY(log)
EMULATED_LIBRARY(log2)
EMULATED_LIBRARY(log10)
EMULATED_LIBRARY(log1p)
EMULATED_LIBRARY(sin)
EMULATED_LIBRARY(cos)
EMULATED_LIBRARY(tan)
EMULATED_LIBRARY(atan)
EMULATED_LIBRARY(sinh)
EMULATED_LIBRARY(cosh)
EMULATED_LIBRARY(tanh)
EMULATED_LIBRARY(erf)
EMULATED_LIBRARY(erfc)
EMULATED_LIBRARY(sqrt)
EMULATED_LIBRARY(cbrt)
EMULATED_LIBRARY(fabs)
EMULATED_LIBRARY(floor)
EMULATED_LIBRARY(ceil)
EMULATED_LIBRARY(trunc)
EMULATED_LIBRARY(round)
EMULATED_LIBRARY(rint)
EMULATED_LIBRARY(nearbyint)
EMULATED_LIBRARY2(pow)
EMULATED_LIBRARY2(fmod)
EMULATED_LIBRARY2(atan2)
EMULATED_LIBRARY2(fmin)
EMULATED_LIBRARY2(fmax)
EMULATED_LIBRARY2(copysign)
#undef EMULATED_LIBRARY
#undef EMULATED_LIBRARY2
extern "C" float fmaf(float, float, float) noexcept;
extern "C" double fma(double, double, double) noexcept;
extern "C" float ldexpf(float, int) noexcept;
extern "C" double ldexp(double, int) noexcept;
extern "C" int abs(int) noexcept;
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }
inline float rsqrtf(float x) { return static_cast<float>(1 / sqrt(double(x))); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline void sincosf(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }

template <typename T>
inline bool isnan(T x) { return __builtin_isnan(x); }
template <typename T>
inline bool isinf(T x) { return __builtin_isinf(x); }
template <typename T>
inline bool isfinite(T x) { return __builtin_isfinite(x); }
template <typename T>
inline bool signbit(T x) { return __builtin_signbit(x); }

#define EMULATED_ORDER(type)                                                     \
  inline type min(type a, type b) { return b < a ? b : a; }                      \
  inline type max(type a, type b) { return a < b ? b : a; }
EMULATED_ORDER(int)
EMULATED_ORDER(unsigned)
EMULATED_ORDER(long)
EMULATED_ORDER(unsigned long)
EMULATED_ORDER(long long)
EMULATED_ORDER(unsigned long long)
#undef EMULATED_ORDER
inline unsigned min(int a, unsigned b) { return min(unsigned(a), b); }
inline unsigned min(unsigned a, int b) { return min(a, unsigned(b)); }
inline unsigned max(int a, unsigned b) { return max(unsigned(a), b); }
inline unsigned max(unsigned a, int b) { return max(a, unsigned(b)); }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1 / a; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __frsqrt_rn(float a) { return rsqrtf(a); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float a) { return fminf(fmaxf(a, 0), 1); }
inline float __expf(float x) { return expf(x); }
inline float __exp2f(float x) { return exp2f(x); }
inline float __exp10f(float x) { return powf(10, x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }

inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(ceilf(x)); }
inline unsigned __float2uint_rz(float x) { return static_cast<unsigned>(x); }
inline unsigned __float2uint_rn(float x) { return static_cast<unsigned>(rintf(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

#define EMULATED_LOAD(name)                                                      \
  template <typename T>                                                          \
  inline T name(const T *from) { return *from; }
EMULATED_LOAD(__ldg)
EMULATED_LOAD(__ldca)
EMULATED_LOAD(__ldcg)
EMULATED_LOAD(__ldcs)
EMULATED_LOAD(__ldlu)
EMULATED_LOAD(__ldcv)
#undef EMULATED_LOAD

template <typename T>
struct EmulatedIdentity { typedef T type; };
/// T, but not deduced from the argument.
template <typename T>
using EmulatedSame = typename EmulatedIdentity<T>::type;

#define EMULATED_STORE(name)                                                     \
  template <typename T>                                                          \
  inline void name(T *to, EmulatedSame<T> value) { *to = value; }
EMULATED_STORE(__stwb)
EMULATED_STORE(__stcg)
EMULATED_STORE(__stcs)
EMULATED_STORE(__stwt)
#undef EMULATED_STORE

#define EMULATED_ATOMIC(name, result)                                            \
  template <typename T>                                                          \
  inline T name(T *at, EmulatedSame<T> value) {                                  \
    const T old = *at;                                                           \
    *at = result;                                                                \
    return old;                                                                  \
  }
EMULATED_ATOMIC(atomicAdd, old + value)
EMULATED_ATOMIC(atomicSub, old - value)
EMULATED_ATOMIC(atomicMin, value < old ? value : old)
EMULATED_ATOMIC(atomicMax, old < value ? value : old)
EMULATED_ATOMIC(atomicAnd, old & value)
EMULATED_ATOMIC(atomicOr, old | value)
EMULATED_ATOMIC(atomicXor, old ^ value)
EMULATED_ATOMIC(atomicExch, value)
#undef EMULATED_ATOMIC
template <typename T>
inline T atomicCAS(T *at, EmulatedSame<T> expected, EmulatedSame<T> value) {
  const T old = *at;
  if (old == expected)
    *at = value;
  return old;
}

inline void __threadfence() {}
inline void __threadfence_block() {}

//===----------------------------------------------------------------------===//
// Barriers and warps
//===----------------------------------------------------------------------===//

inline void __syncthreads() { emulator->barrier(false); }
inline int __syncthreads_count(int predicate) {
  return static_cast<int>(emulator->barrier(predicate));
}
inline int __syncthreads_or(int predicate) { return emulator->barrier(predicate) > 0; }
inline int __syncthreads_and(int predicate) {
  return emulator->barrier(predicate) == blockDim.x;
}

inline void __syncwarp(unsigned mask = ~0u) { emulator->syncWarp(mask); }
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return emulator->ballot(mask, predicate);
}
inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, !predicate) == 0;
}

template <typename T>
inline T emulatedShuffle(unsigned mask, T value, unsigned source) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles take 4 or 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = emulator->shuffle(mask, bits, source);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
/// The first lane of the segment of `width` lanes that this thread is in.
inline int emulatedSegment(int width) {
  return static_cast<int>(threadIdx.x & 31) & ~(width - 1);
}
template <typename T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  return emulatedShuffle(mask, value, emulatedSegment(width) | (source & (width - 1)));
}
template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = threadIdx.x & 31, source = lane - static_cast<int>(delta);
  return emulatedShuffle(mask, value,
                         source < emulatedSegment(width) ? lane : source);
}
template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = threadIdx.x & 31, source = lane + static_cast<int>(delta);
  return emulatedShuffle(mask, value,
                         source >= emulatedSegment(width) + width ? lane : source);
}
template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  const int lane = threadIdx.x & 31, source = lane ^ bits;
  return emulatedShuffle(mask, value,
                         source >= emulatedSegment(width) + width ? lane : source);
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

#define __builtin_assume(condition)                                              \
  ((condition) ? void() : emulator->fail("not so: " #condition, __FILE__, __LINE__))
#define __trap() emulator->fail("__trap", __FILE__, __LINE__)

// Calls that -fsanitize puts into the text, instead of libubsan.
struct EmulatedPlace {
  const char *file;
  unsigned line, column;
};
#define EMULATED_CHECK(name, what, ...)                                          \
  extern "C" void __ubsan_handle_##name##_abort(void *place, ##__VA_ARGS__) {    \
    auto *at = static_cast<EmulatedPlace *>(place);                              \
    emulator->fail(what, at->file, at->line);                                    \
    __builtin_unreachable();                                                     \
  }
EMULATED_CHECK(type_mismatch_v1, "misaligned address", void *)
EMULATED_CHECK(out_of_bounds, "index outside of the array", void *)
EMULATED_CHECK(shift_out_of_bounds, "shift by a wrong number of bits", void *, void *)
EMULATED_CHECK(add_overflow, "signed overflow of an addition", void *, void *)
EMULATED_CHECK(sub_overflow, "signed overflow of a subtraction", void *, void *)
EMULATED_CHECK(mul_overflow, "signed overflow of a product", void *, void *)
EMULATED_CHECK(negate_overflow, "signed overflow of a negation", void *)
EMULATED_CHECK(divrem_overflow, "division by zero or overflow", void *, void *)
#undef EMULATED_CHECK

//===----------------------------------------------------------------------===//
// Helpers that wrap PTX. A text that defines one gets the one below instead; see
// knownHelpers in EmulatedText.cpp.
//===----------------------------------------------------------------------===//

namespace emulated_helpers {

inline unsigned short bf16_of(float x) {
  const unsigned bits = __float_as_uint(x);
  if (isnan(x))
    return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline unsigned bf16x2_of(float low, float high) {
  return bf16_of(low) | static_cast<unsigned>(bf16_of(high)) << 16;
}

/// Without subnormal numbers, as .ftz says.
inline float exp2_approx(float x) {
  const float y = exp2f(x);
  return y < 0x1p-126f ? 0 : y;
}

inline void cp_async_16_zero(void *shared, const void *global, bool valid) {
  emulator->copy(shared, global, valid);
}
inline void cp_async_16(void *shared, const void *global) {
  emulator->copy(shared, global, true);
}
inline void cp_async_commit() { emulator->commitCopies(); }
template <int pending>
inline void cp_async_wait() { emulator->waitForCopies(pending); }
inline void cp_async_wait_all() {
  emulator->commitCopies();
  emulator->waitForCopies(0);
}
#define EMULATED_WAIT(n)                                                         \
  inline void cp_async_wait_##n() { emulator->waitForCopies(n); }
EMULATED_WAIT(0)
EMULATED_WAIT(1)
EMULATED_WAIT(2)
EMULATED_WAIT(3)
EMULATED_WAIT(4)
EMULATED_WAIT(5)
#undef EMULATED_WAIT

inline void ldmatrix_x4(unsigned (&r)[4], const void *shared) {
  emulator->loadMatrices(r, shared, 4, false);
}
inline void ldmatrix_x4_trans(unsigned (&r)[4], const void *shared) {
  emulator->loadMatrices(r, shared, 4, true);
}
inline void ldmatrix_x2(unsigned (&r)[2], const void *shared) {
  emulator->loadMatrices(r, shared, 2, false);
}
inline void ldmatrix_x2_trans(unsigned (&r)[2], const void *shared) {
  emulator->loadMatrices(r, shared, 2, true);
}
inline void mma_m16n8k16(float (&c)[4], const unsigned (&a)[4],
                         const unsigned (&b)[2]) {
  emulator->multiply(c, a, b);
}

} // namespace emulated_helpers

//===----------------------------------------------------------------------===//
// The image
//===----------------------------------------------------------------------===//

/// At a multiple of 1024, as the hardware's, and ending as near as that allows to
/// a page that is protected. emulatedSharedBytes: of the launch; the emulator
/// defines it.
constexpr size_t emulatedUpTo(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}
constexpr size_t emulatedPages = emulatedUpTo(emulatedSharedBytes, emulatedPage);
alignas(emulatedPage) unsigned char
    emulatedDynamicPages[emulatedPage + emulatedPages + emulatedPage];
unsigned char *const emulatedDynamicShared =
    emulatedDynamicPages + emulatedPage + emulatedPages -
    emulatedUpTo(emulatedSharedBytes, 1024);

// The ends of the section, which the linker defines where there is one.
__attribute__((section("emulated_shared"), used)) unsigned char emulatedSection[16];
extern unsigned char __start_emulated_shared[], __stop_emulated_shared[];

template <typename T>
struct EmulatedLetter { static constexpr char value = '?'; };
template <typename T>
struct EmulatedLetter<T *> { static constexpr char value = 'p'; };
template <>
struct EmulatedLetter<long long> { static constexpr char value = 'i'; };
template <>
struct EmulatedLetter<double> { static constexpr char value = 'd'; };

template <typename... T>
struct EmulatedTypes {};

template <typename Kernel, typename... Bound>
inline void emulatedCall(Kernel kernel, void *const *, EmulatedTypes<>,
                         const Bound &...bound) {
  kernel(bound...);
}
template <typename Kernel, typename Next, typename... Rest, typename... Bound>
inline void emulatedCall(Kernel kernel, void *const *arguments,
                         EmulatedTypes<Next, Rest...>, const Bound &...bound) {
  emulatedCall(kernel, arguments + 1, EmulatedTypes<Rest...>(), bound...,
               *static_cast<const Next *>(*arguments));
}

template <auto kernel, typename... Parameters>
inline EmulatedImage emulatedImage(void (*)(Parameters...)) {
  static const char letters[] = {EmulatedLetter<Parameters>::value..., 0};
  EmulatedImage image = {};
  image.run = [](void *const *arguments) {
    emulatedCall(kernel, arguments, EmulatedTypes<Parameters...>());
  };
  image.parameters = letters;
  image.threadIndex = &threadIdx.x;
  image.blockIndex = &blockIdx.x;
  image.threads = &blockDim.x;
  image.blocks = &gridDim.x;
  image.staticShared = __start_emulated_shared;
  image.staticSharedBytes = __stop_emulated_shared - __start_emulated_shared;
  image.dynamicShared = emulatedDynamicShared;
  image.dynamicPages = emulatedDynamicPages + emulatedPage;
  image.dynamicPageBytes = emulatedPages;
  return image;
}
