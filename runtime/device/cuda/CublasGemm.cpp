#include "runtime/device/cuda/CublasGemm.h"

namespace fsdpq::rt {

static cublasLtHandle_t makeHandle(const CublasLt &library) {
  cublasLtHandle_t handle = nullptr;
  library.check(library.cublasLtCreate(&handle), "to start");
  return handle;
}

CublasGemm::CublasGemm()
    : library(CublasLt::get()), handle(makeHandle(library)) {}

CublasGemm::~CublasGemm() { library.cublasLtDestroy(handle); }

void CublasGemm::run(const GemmCall &call, CUstream stream) {
  const Ready &ready = find(call);
  if (const cublasStatus_t status = multiply(ready, call, stream);
      status != CUBLAS_STATUS_SUCCESS)
    library.check(status, "in a GEMM " + ready.shape.text());
}

const CublasGemm::Ready &CublasGemm::find(const GemmCall &call) {
  const GemmShape shape(call);
  if (const auto found = known.find(shape); found != known.end()) {
    latest.splice(latest.begin(), latest, found->second);
    return latest.front();
  }
  latest.push_front(prepare(shape, call));
  known.emplace(shape, latest.begin());
  if (latest.size() > mostShapes) {
    known.erase(latest.back().shape);
    latest.pop_back();
  }
  return latest.front();
}

CublasGemm::Ready CublasGemm::prepare(const GemmShape &shape,
                                      const GemmCall &call) const {
  using plan::DType;
  const bool isKnown =
      call.outDtype == call.dtype ||
      (call.dtype == DType::BF16 && call.outDtype == DType::F32);
  if (!isKnown)
    throw Error(4004, ExitCode::RunFailure,
                std::string("the GPU has no GEMM of ") +
                    plan::EnumNameDType(call.dtype) + " that gives " +
                    plan::EnumNameDType(call.outDtype),
                "", "compile such products to kernels");
  Ready ready{shape, GemmDescription(library, shape), {}};
  ready.algorithm =
      chooseAlgorithm(library, handle, shape, ready.description);
  return ready;
}

cublasStatus_t CublasGemm::multiply(const Ready &ready, const GemmCall &call,
                                    CUstream stream) const {
  const double alpha64 = call.alpha, beta64 = call.beta;
  const bool isDouble = call.dtype == plan::DType::F64;
  const void *alpha =
      isDouble ? static_cast<const void *>(&alpha64) : &call.alpha;
  const void *beta = isDouble ? static_cast<const void *>(&beta64) : &call.beta;
  auto &description = const_cast<GemmDescription &>(ready.description);
  void *c = reinterpret_cast<void *>(call.c);
  return library.cublasLtMatmul(
      handle, &description.operation, alpha, reinterpret_cast<void *>(call.b),
      &description.b, reinterpret_cast<void *>(call.a), &description.a, beta, c,
      &description.c, c, &description.c, &ready.algorithm,
      call.workspaceBytes ? reinterpret_cast<void *>(call.workspace) : nullptr,
      call.workspaceBytes, stream);
}

} // namespace fsdpq::rt
