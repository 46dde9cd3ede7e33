//===- EmulatorServices.h - What emulated kernels and emulator share ------===//
//
// Included by the emulator and pasted before every kernel text, so it includes
// nothing.
//
//===----------------------------------------------------------------------===//
#pragma once

/// What a thread of a kernel asks of the emulator. Addresses that must be in
/// shared memory are checked; "mask" always names lanes of the caller's warp.
struct EmulatorServices {
  /// Ends the launch with an error of the calling thread; does not return. Line 0:
  /// no place is known.
  void (*fail)(const char *what, const char *file, unsigned line);

  /// Waits for all threads of the block. Gives how many had a true predicate.
  unsigned (*barrier)(bool predicate);

  /// Waits for the lanes in mask.
  void (*syncWarp)(unsigned mask);

  /// Gives the value of lane `source`; garbage if mask does not name it.
  unsigned long long (*shuffle)(unsigned mask, unsigned long long value,
                                unsigned source);

  /// The lanes in mask whose predicate is true.
  unsigned (*ballot)(unsigned mask, bool predicate);

  /// ldmatrix: `count` matrices of 8 x 8 elements of 16 bits; lane 8 j + r gives
  /// the address of row r of matrix j. out[j]: the lane's fragment of matrix j.
  void (*loadMatrices)(unsigned *out, const void *row, unsigned count,
                       bool transposed);

  /// mma.m16n8k16, bf16 inputs: c[4] += a[4] * b[2], one fragment a lane.
  void (*multiply)(float *c, const unsigned *a, const unsigned *b);

  /// cp.async of 16 bytes (of zeros if not valid). Until the thread waits for
  /// its group the 16 bytes are garbage.
  void (*copy)(void *shared, const void *global, bool valid);
  void (*commitCopies)();
  /// Performs the copies of all groups but the `pending` newest.
  void (*waitForCopies)(unsigned pending);
};

/// What the shared object of a kernel gives to the emulator.
struct EmulatedImage {
  /// Runs one thread of the kernel; arguments[i] points to its i-th argument.
  void (*run)(void *const *arguments);
  /// A letter for each parameter of the kernel: p (pointer), i (long long),
  /// d (double), ? (anything else).
  const char *parameters;
  /// The x of threadIdx, blockIdx, blockDim and gridDim.
  unsigned *threadIndex, *blockIndex, *threads, *blocks;
  unsigned char *staticShared;
  unsigned long long staticSharedBytes;
  /// The bytes [dynamicShared, +sharedBytes) lie within whole pages that begin at
  /// dynamicPages; another page on either side is there to be protected.
  unsigned char *dynamicShared, *dynamicPages;
  unsigned long long dynamicPageBytes;
};

inline constexpr unsigned emulatedPage = 4096;
