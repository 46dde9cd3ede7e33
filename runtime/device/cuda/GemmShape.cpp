#include "runtime/device/cuda/GemmAlgorithms.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

namespace fsdpq::rt {

using nlohmann::json;

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

std::vector<cublasLtMatmulAlgo_t>
GemmAlgorithms::propose(const GemmShape &shape,
                        const GemmDescription &description) const {
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

  std::array<cublasLtMatmulHeuristicResult_t, mostProposals> results;
  int count = 0;
  GemmDescription copy = description; // the library takes no const pointers
  const cublasStatus_t status = library.cublasLtMatmulAlgoGetHeuristic(
      handle, &copy.operation, &copy.b, &copy.a, &copy.c, &copy.c, &preference,
      mostProposals, results.data(), &count);
  std::vector<cublasLtMatmulAlgo_t> proposals;
  if (status == CUBLAS_STATUS_SUCCESS)
    for (int i = 0; i < count; ++i)
      if (results[static_cast<size_t>(i)].state == CUBLAS_STATUS_SUCCESS)
        proposals.push_back(results[static_cast<size_t>(i)].algo);
  if (proposals.empty())
    throw Error(4004, ExitCode::RunFailure,
                "cuBLASLt cannot compute a GEMM " + shape.text() + ": " +
                    library.cublasLtGetStatusName(status));
  return proposals;
}

const cublasLtMatmulAlgo_t *
GemmAlgorithms::chosen(const GemmShape &shape,
                       const GemmDescription &description) const {
  if (choices.empty())
    return nullptr;
  const auto found = choices.find(shape.text());
  if (found == choices.end())
    return nullptr;
  GemmDescription copy = description;
  cublasLtMatmulHeuristicResult_t result;
  const cublasStatus_t status = library.cublasLtMatmulAlgoCheck(
      handle, &copy.operation, &copy.b, &copy.a, &copy.c, &copy.c,
      &found->second, &result);
  return status == CUBLAS_STATUS_SUCCESS &&
                 result.workspaceSize <= shape.workspaceBytes
             ? &found->second
             : nullptr;
}

void GemmAlgorithms::choose(const GemmShape &shape,
                            const cublasLtMatmulAlgo_t &algorithm) {
  choices.insert_or_assign(shape.text(), algorithm);
}

//===--- Files --------------------------------------------------------------//

static std::string hexOf(const cublasLtMatmulAlgo_t &algorithm) {
  static constexpr char digits[] = "0123456789abcdef";
  const auto *bytes = reinterpret_cast<const unsigned char *>(&algorithm);
  std::string text;
  for (size_t i = 0; i < sizeof algorithm; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

static bool readHex(const std::string &text, cublasLtMatmulAlgo_t &algorithm) {
  auto *bytes = reinterpret_cast<unsigned char *>(&algorithm);
  if (text.size() != 2 * sizeof algorithm)
    return false;
  for (size_t i = 0; i < sizeof algorithm; ++i) {
    const char *begin = text.data() + 2 * i;
    if (std::from_chars(begin, begin + 2, bytes[i], 16).ptr != begin + 2)
      return false;
  }
  return true;
}

std::string GemmAlgorithms::exportChoices() const {
  json list = json::object();
  for (const auto &[shape, algorithm] : choices)
    list[shape] = hexOf(algorithm);
  return json{{"cublasLt", library.cublasLtGetVersion()},
              {"gpu", gpu},
              {"algorithms", list}}
      .dump(1);
}

bool GemmAlgorithms::importChoices(const std::string &text) {
  const auto refuse = [](const std::string &what) -> Error {
    return Error(4009, ExitCode::BadInput,
                 "what should be GEMM algorithms is not: " + what);
  };
  const json file = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!file.is_object() || !file.contains("cublasLt") ||
      !file.contains("gpu") || !file.contains("algorithms") ||
      !file["algorithms"].is_object())
    throw refuse("no JSON object with cublasLt, gpu and algorithms");
  if (file["cublasLt"] != library.cublasLtGetVersion() || file["gpu"] != gpu)
    return false;
  std::map<std::string, cublasLtMatmulAlgo_t> read;
  for (const auto &[shape, hex] : file["algorithms"].items())
    if (!hex.is_string() || !readHex(hex.get<std::string>(), read[shape]))
      throw refuse("the algorithm of \"" + shape + "\"");
  for (const auto &[shape, algorithm] : read)
    choices.insert_or_assign(shape, algorithm);
  return true;
}

} // namespace fsdpq::rt
