#include "runtime/device/cuda/CublasLt.h"
#include "test/unit/device/fake_cuda/FakeCuda.h"
#include "test/unit/device/fake_cuda/FakeStreams.h"

#include <cstring>

using namespace fsdpq::fake;
using namespace fsdpq::rt;

namespace {

struct Operation {
  uint64_t compute, scale, transA, transB;
};
struct Layout {
  uint64_t type, rows, columns;
  int64_t pitch;
};
static_assert(sizeof(Operation) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));

template <typename T, typename From>
T read(const From *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

double load(const Layout &layout, const void *data, int64_t row,
            int64_t column) {
  const int64_t index = column * layout.pitch + row;
  switch (layout.type) {
  case CUDA_R_32F:
    return static_cast<const float *>(data)[index];
  case CUDA_R_64F:
    return static_cast<const double *>(data)[index];
  default:
    break;
  }
  const uint32_t bits = uint32_t(static_cast<const uint16_t *>(data)[index])
                        << 16;
  return read<float>(&bits);
}

void store(const Layout &layout, void *data, int64_t row, int64_t column,
           double value) {
  const int64_t index = column * layout.pitch + row;
  if (layout.type == CUDA_R_32F) {
    static_cast<float *>(data)[index] = static_cast<float>(value);
  } else if (layout.type == CUDA_R_64F) {
    static_cast<double *>(data)[index] = value;
  } else { // to nearest, ties to even
    const float narrow = static_cast<float>(value);
    uint32_t bits = read<uint32_t>(&narrow);
    bits += 0x7fff + (bits >> 16 & 1);
    static_cast<uint16_t *>(data)[index] = static_cast<uint16_t>(bits >> 16);
  }
}

} // namespace

extern "C" {

const char *cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                               : "CUBLAS_STATUS_OF_THE_FAKE";
}
size_t cublasLtGetVersion() { return 130100; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(fsdpqFakeCuda());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t to, size_t,
                                               cublasComputeType_t compute,
                                               cudaDataType_t scale) {
  const Operation operation{uint64_t(compute), uint64_t(scale), 0, 0};
  std::memcpy(to, &operation, sizeof operation);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to,
                               cublasLtMatmulDescAttributes_t which,
                               const void *value, size_t) {
  Operation operation = read<Operation>(to);
  const uint64_t isSet =
      *static_cast<const cublasOperation_t *>(value) == CUBLAS_OP_T;
  (which == CUBLASLT_MATMUL_DESC_TRANSA ? operation.transA : operation.transB) =
      isSet;
  std::memcpy(to, &operation, sizeof operation);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t to,
                                                 size_t, cudaDataType_t type,
                                                 uint64_t rows,
                                                 uint64_t columns,
                                                 int64_t pitch) {
  const Layout layout{uint64_t(type), rows, columns, pitch};
  std::memcpy(to, &layout, sizeof layout);
  return static_cast<int64_t>(rows) <= pitch ? CUBLAS_STATUS_SUCCESS
                                             : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t,
                                                     size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                     cublasLtMatmulPreferenceAttributes_t which,
                                     const void *value, size_t bytes) {
  uint64_t number = 0;
  std::memcpy(&number, value, bytes);
  const char *name =
      which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES     ? "workspace"
      : which == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK ? "reduction"
      : which == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES ? "alignment A"
      : which == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES ? "alignment B"
                                                            : "alignment C";
  State &state = *fsdpqFakeCuda();
  std::lock_guard lock(state.mutex);
  state.preferences[name] = number;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
    cublasLtMatmulPreference_t, int most,
    cublasLtMatmulHeuristicResult_t results[], int *count) {
  State &state = *fsdpqFakeCuda();
  std::lock_guard lock(state.mutex);
  ++state.heuristics;
  *count = most < 3 ? most : 3;
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    results[i].algo.data[0] = static_cast<uint64_t>(i + 1);
    results[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operationIn,
               const void *alphaIn, const void *a, cublasLtMatrixLayout_t aIn,
               const void *b, cublasLtMatrixLayout_t bIn, const void *betaIn,
               const void *, cublasLtMatrixLayout_t, void *d,
               cublasLtMatrixLayout_t dIn,
               const cublasLtMatmulAlgo_t *algorithm, void *workspace,
               size_t workspaceBytes, CUstream stream) {
  const auto operation = read<Operation>(operationIn);
  const auto layoutA = read<Layout>(aIn), layoutB = read<Layout>(bIn),
             layoutD = read<Layout>(dIn);
  const auto scalar = [&](const void *value) {
    return operation.scale == CUDA_R_64F ? *static_cast<const double *>(value)
                                         : *static_cast<const float *>(value);
  };
  const double alpha = scalar(alphaIn), beta = scalar(betaIn);
  const auto k =
      static_cast<int64_t>(operation.transA ? layoutA.rows : layoutA.columns);
  const auto rows = static_cast<int64_t>(layoutD.rows),
             columns = static_cast<int64_t>(layoutD.columns);
  const bool fits =
      uint64_t(rows) == (operation.transA ? layoutA.columns : layoutA.rows) &&
      uint64_t(columns) ==
          (operation.transB ? layoutB.rows : layoutB.columns) &&
      uint64_t(k) == (operation.transB ? layoutB.columns : layoutB.rows);
  if (!fits)
    return CUBLAS_STATUS_INVALID_VALUE;
  State &state = *fsdpqFakeCuda();
  {
    std::lock_guard lock(state.mutex);
    if (state.isBroken)
      return CUBLAS_STATUS_EXECUTION_FAILED;
    state.products.push_back({static_cast<int>(algorithm->data[0]), rows,
                              columns, workspace, workspaceBytes});
  }
  reinterpret_cast<Stream *>(stream)->give(
      [=] {
        for (int64_t j = 0; j < columns; ++j)
          for (int64_t i = 0; i < rows; ++i) {
            double sum = 0;
            for (int64_t l = 0; l < k; ++l)
              sum += (operation.transA ? load(layoutA, a, l, i)
                                       : load(layoutA, a, i, l)) *
                     (operation.transB ? load(layoutB, b, j, l)
                                       : load(layoutB, b, l, j));
            double value = alpha * sum;
            if (beta != 0)
              value += beta * load(layoutD, d, i, j);
            store(layoutD, d, i, j, value);
          }
      });
  return CUBLAS_STATUS_SUCCESS;
}

} // extern "C"
