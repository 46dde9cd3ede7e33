#include "runtime/device/cpu/Products.h"
#include "runtime/device/cpu/Parallel.h"
#include "runtime/support/Error.h"
#include "runtime/support/HalfFloat.h"

#include <exception>
#include <oneapi/dnnl/dnnl.h>
#include <string>
#include <vector>

namespace fsdpq::rt {

namespace {

template <typename T>
T *pointer(DeviceAddress address) {
  return reinterpret_cast<T *>(address);
}

/// oneDNN takes the number of threads from OpenMP's setting of this thread.
class ThreadSetting {
public:
  explicit ThreadSetting(unsigned threads) : before(omp_get_max_threads()) {
    omp_set_num_threads(static_cast<int>(threads));
  }
  ~ThreadSetting() { omp_set_num_threads(before); }

private:
  int before;
};

/// One product of f32 by oneDNN.
void callLibrary(const GemmCall &call) {
  const dnnl_status_t status = dnnl_sgemm(
      call.transA ? 'T' : 'N', call.transB ? 'T' : 'N', call.m, call.n, call.k,
      call.alpha, pointer<float>(call.a), call.lda, pointer<float>(call.b),
      call.ldb, call.beta, pointer<float>(call.c), call.ldc);
  if (status == dnnl_out_of_memory)
    throw Error(4002, ExitCode::DoesNotFit, "no memory for a GEMM's workspace");
  if (status != dnnl_success)
    throw Error(4005, ExitCode::RunFailure,
                "oneDNN refused a GEMM of m " + std::to_string(call.m) +
                    ", n " + std::to_string(call.n) + ", k " +
                    std::to_string(call.k) + " with status " +
                    std::to_string(status));
}

/// Calls `compute` for each of `count` parts, each on one thread with the library
/// inside it on the same.
template <typename Compute>
void computeParts(int64_t count, unsigned threads, const Compute &compute) {
  std::exception_ptr failure;
  inParallel(count, threads, [&](int64_t begin, int64_t end) {
    ThreadSetting setting(1);
    try {
      compute(begin, end);
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
    }
  });
  if (failure)
    std::rethrow_exception(failure);
}

//===--- f32 ----------------------------------------------------------------//

/// Cuts C into panels that depend on nothing but its shape, each computed by one
/// thread: how the library would share the work out between threads changes the
/// order of its sums. Panels have at least 64 rows (or columns) but where C has
/// less, for the library sums narrow products in another order.
void multiplyInPanels(const GemmCall &call, unsigned threads) {
  constexpr int64_t smallest = 64, mostPanels = 16;
  const bool alongRows = call.m >= call.n;
  const int64_t length = alongRows ? call.m : call.n;
  const int64_t panel =
      std::max(smallest, (length / mostPanels + smallest - 1) / smallest * smallest);
  const int64_t panels = std::max<int64_t>(1, length / panel); // the last is longer
  computeParts(panels, threads, [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; ++number) {
      const int64_t first = number * panel;
      const int64_t size = number + 1 == panels ? length - first : panel;
      GemmCall part = call;
      const auto advance = [](DeviceAddress &address, int64_t elements) {
        address += static_cast<uint64_t>(elements) * sizeof(float);
      };
      if (alongRows) {
        part.m = size;
        advance(part.a, call.transA ? first : first * call.lda);
        advance(part.c, first * call.ldc);
      } else {
        part.n = size;
        advance(part.b, call.transB ? first * call.ldb : first);
        advance(part.c, first);
      }
      callLibrary(part);
    }
  });
}

//===--- bf16 ---------------------------------------------------------------//

/// Blocks of C, and of the sums that it is made of. They are large enough that
/// widening is a small part of the work, and three blocks of f32 fit a core's
/// second-level cache or little more.
constexpr int64_t blockRows = 256, blockColumns = 512, blockDepth = 512;

/// Rows of bf16 as adjacent rows of f32.
void widen(const uint16_t *from, int64_t pitch, int64_t rows, int64_t columns,
           float *to) {
  for (int64_t row = 0; row < rows; ++row, from += pitch, to += columns) {
#pragma omp simd
    for (int64_t column = 0; column < columns; ++column)
      to[column] = bf16ToF32(from[column]);
  }
}

void narrow(const float *from, int64_t rows, int64_t columns, uint16_t *to,
            int64_t pitch) {
  for (int64_t row = 0; row < rows; ++row, from += columns, to += pitch) {
#pragma omp simd
    for (int64_t column = 0; column < columns; ++column)
      to[column] = f32ToBf16(from[column]);
  }
}

/// Blocks of C one after the other, with the buffers of one thread.
class BlockMultiplier {
public:
  explicit BlockMultiplier(const GemmCall &call)
      : call(call), a(size(std::min(call.m, blockRows))),
        b(size(std::min(call.n, blockColumns))),
        c(call.outDtype == plan::DType::BF16
              ? static_cast<size_t>(std::min(call.m, blockRows) *
                                    std::min(call.n, blockColumns))
              : 0) {}

  void multiply(int64_t row, int64_t column) {
    GemmCall block = call;
    block.m = std::min(blockRows, call.m - row);
    block.n = std::min(blockColumns, call.n - column);
    block.a = address(a);
    block.b = address(b);
    const int64_t corner = row * call.ldc + column;
    uint16_t *narrowC = pointer<uint16_t>(call.c) + corner;
    const bool isNarrow = call.outDtype == plan::DType::BF16;
    if (isNarrow) {
      block.c = address(c);
      block.ldc = block.n;
      if (call.beta != 0)
        widen(narrowC, call.ldc, block.m, block.n, c.data());
    } else {
      block.c = call.c + static_cast<uint64_t>(corner) * sizeof(float);
    }
    for (int64_t depth = 0; depth < call.k; depth += blockDepth) {
      block.k = std::min(blockDepth, call.k - depth);
      block.lda = fill(a, call.a, call.lda, call.transA, row, block.m, depth,
                       block.k);
      block.ldb = fill(b, call.b, call.ldb, !call.transB, column, block.n,
                       depth, block.k);
      callLibrary(block);
      block.beta = 1;
    }
    if (isNarrow)
      narrow(c.data(), block.m, block.n, narrowC, call.ldc);
  }

private:
  size_t size(int64_t length) const {
    return static_cast<size_t>(length * std::min(call.k, blockDepth));
  }
  static DeviceAddress address(std::vector<float> &buffer) {
    return reinterpret_cast<DeviceAddress>(buffer.data());
  }

  /// Widens a block of an operand as it lies: `count` from `first` on of the
  /// dimension that C has too, and a part of the depth. Gives its row pitch.
  static int64_t fill(std::vector<float> &buffer, DeviceAddress from,
                      int64_t pitch, bool depthIsOuter, int64_t first,
                      int64_t count, int64_t depth, int64_t depthCount) {
    const uint16_t *values = pointer<uint16_t>(from);
    if (depthIsOuter) {
      widen(values + depth * pitch + first, pitch, depthCount, count,
            buffer.data());
      return count;
    }
    widen(values + first * pitch + depth, pitch, count, depthCount,
          buffer.data());
    return depthCount;
  }

  const GemmCall &call;
  std::vector<float> a, b, c;
};

void multiplyHalves(const GemmCall &call, unsigned threads) {
  const int64_t columns = (call.n + blockColumns - 1) / blockColumns;
  const int64_t rows = (call.m + blockRows - 1) / blockRows;
  computeParts(rows * columns, threads, [&](int64_t begin, int64_t end) {
    BlockMultiplier blocks(call);
    for (int64_t number = begin; number < end; ++number)
      blocks.multiply(number / columns * blockRows,
                      number % columns * blockColumns);
  });
}

//===--- No sums ------------------------------------------------------------//

/// What a GEMM without a product does.
void scaleRows(const GemmCall &call) {
  for (int64_t row = 0; row < call.m; ++row)
    for (int64_t column = 0; column < call.n; ++column) {
      const int64_t place = row * call.ldc + column;
      if (call.outDtype == plan::DType::BF16) {
        uint16_t &element = pointer<uint16_t>(call.c)[place];
        element = call.beta == 0 ? 0 : f32ToBf16(call.beta * bf16ToF32(element));
      } else {
        float &element = pointer<float>(call.c)[place];
        element = call.beta == 0 ? 0 : call.beta * element;
      }
    }
}

} // namespace

bool canMultiply(plan::DType dtype, plan::DType outDtype) {
  if (dtype == plan::DType::F32)
    return outDtype == plan::DType::F32;
  return dtype == plan::DType::BF16 &&
         (outDtype == plan::DType::BF16 || outDtype == plan::DType::F32);
}

void multiply(const GemmCall &call, unsigned threads, bool deterministic) {
  if (call.k <= 0)
    return scaleRows(call);
  if (call.dtype == plan::DType::BF16)
    return multiplyHalves(call, threads);
  if (deterministic)
    return multiplyInPanels(call, threads);
  ThreadSetting setting(threads);
  callLibrary(call);
}

} // namespace fsdpq::rt
