#include "runtime/device/cuda/GemmShape.h"

namespace fsdpq::rt {

//===--- Shapes -------------------------------------------------------------//

static uint16_t alignmentOf(DeviceAddress address) {
  constexpr uint64_t most = 256;
  const uint64_t bits = address | most;
  return static_cast<uint16_t>(bits & ~(bits - 1));
}

GemmShape::GemmShape(const GemmCall &call)
    : m(call.m), n(call.n), k(call.k), lda(call.lda), ldb(call.ldb),
      ldc(call.ldc), workspaceBytes(call.workspaceBytes), dtype(call.dtype),
      outDtype(call.outDtype), transA(call.transA), transB(call.transB),
      overwrites(call.beta == 0), alignA(alignmentOf(call.a)),
      alignB(alignmentOf(call.b)), alignC(alignmentOf(call.c)) {}

size_t GemmShape::hash() const {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t field :
       {uint64_t(m), uint64_t(n), uint64_t(k), uint64_t(lda), uint64_t(ldb),
        uint64_t(ldc), workspaceBytes,
        uint64_t(dtype) << 32 | uint64_t(outDtype) << 24 |
            uint64_t(transA) << 2 | uint64_t(transB) << 1 |
            uint64_t(overwrites),
        uint64_t(alignA) << 32 | uint64_t(alignB) << 16 | uint64_t(alignC)}) {
    hash = (hash ^ field) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }
  return hash;
}

std::string GemmShape::text() const {
  const auto number = [](auto value) { return std::to_string(value); };
  const auto name = [](plan::DType type) -> std::string {
    switch (type) {
    case plan::DType::F32:
      return "f32";
    case plan::DType::F64:
      return "f64";
    case plan::DType::BF16:
      break;
    }
    return "bf16";
  };
  return name(dtype) + ">" + name(outDtype) + " " + (transA ? "t" : "n") +
         (transB ? "t" : "n") + " " + number(m) + "x" + number(n) + "x" +
         number(k) + " ld " + number(lda) + "," + number(ldb) + "," +
         number(ldc) + (overwrites ? " new" : " add") + " align " +
         number(alignA) + "," + number(alignB) + "," + number(alignC) +
         " workspace " + number(workspaceBytes);
}

//===--- Descriptions -------------------------------------------------------//

static cudaDataType_t dataType(plan::DType type) {
  switch (type) {
  case plan::DType::F32:
    return CUDA_R_32F;
  case plan::DType::F64:
    return CUDA_R_64F;
  case plan::DType::BF16:
    break;
  }
  return CUDA_R_16BF;
}

GemmDescription::GemmDescription(const CublasLt &library,
                                 const GemmShape &shape) {
  const std::string where = "describing a GEMM " + shape.text();
  const bool isDouble = shape.dtype == plan::DType::F64;
  library.check(library.cublasLtMatmulDescInit_internal(
                    &operation, sizeof operation,
                    isDouble ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                    isDouble ? CUDA_R_64F : CUDA_R_32F),
                where);
  const auto transpose = [&](cublasLtMatmulDescAttributes_t which, bool isSet) {
    const cublasOperation_t value = isSet ? CUBLAS_OP_T : CUBLAS_OP_N;
    library.check(library.cublasLtMatmulDescSetAttribute(&operation, which,
                                                         &value, sizeof value),
                  where);
  };
  transpose(CUBLASLT_MATMUL_DESC_TRANSA, shape.transB);
  transpose(CUBLASLT_MATMUL_DESC_TRANSB, shape.transA);

  // By columns, a row-major matrix is its transpose.
  const auto describe = [&](cublasLtMatrixLayoutOpaque_t &layout,
                            plan::DType type, int64_t rows, int64_t columns,
                            int64_t pitch) {
    library.check(library.cublasLtMatrixLayoutInit_internal(
                      &layout, sizeof layout, dataType(type),
                      static_cast<uint64_t>(columns),
                      static_cast<uint64_t>(rows), pitch),
                  where);
  };
  describe(a, shape.dtype, shape.transA ? shape.k : shape.m,
           shape.transA ? shape.m : shape.k, shape.lda);
  describe(b, shape.dtype, shape.transB ? shape.n : shape.k,
           shape.transB ? shape.k : shape.n, shape.ldb);
  describe(c, shape.outDtype, shape.m, shape.n, shape.ldc);
}

//===--- Algorithms ---------------------------------------------------------//

cublasLtMatmulAlgo_t
chooseAlgorithm(const CublasLt &library, cublasLtHandle_t handle,
                const GemmShape &shape, const GemmDescription &description) {
  const std::string where = "choosing how to compute a GEMM " + shape.text();
  cublasLtMatmulPreferenceOpaque_t preference;
  library.check(library.cublasLtMatmulPreferenceInit_internal(
                    &preference, sizeof preference),
                where);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t which,
                          auto value) {
    library.check(library.cublasLtMatmulPreferenceSetAttribute(
                      &preference, which, &value, sizeof value),
                  where);
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, shape.workspaceBytes);
  // In place means atomic additions in whatever order they come.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         uint32_t(CUBLASLT_REDUCTION_SCHEME_MASK &
                  ~CUBLASLT_REDUCTION_SCHEME_INPLACE));
  // The library's A is B, and the other way round.
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t(shape.alignB));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32_t(shape.alignA));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, uint32_t(shape.alignC));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, uint32_t(shape.alignC));

  cublasLtMatmulHeuristicResult_t result;
  int count = 0;
  GemmDescription copy = description; // the library takes no const pointers
  const cublasStatus_t status = library.cublasLtMatmulAlgoGetHeuristic(
      handle, &copy.operation, &copy.b, &copy.a, &copy.c, &copy.c, &preference,
      /*requestedAlgoCount=*/1, &result, &count);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0 ||
      result.state != CUBLAS_STATUS_SUCCESS)
    throw Error(4004, ExitCode::RunFailure,
                "cuBLASLt cannot compute a GEMM " + shape.text() + ": " +
                    library.cublasLtGetStatusName(status));
  return result.algo;
}

} // namespace fsdpq::rt
