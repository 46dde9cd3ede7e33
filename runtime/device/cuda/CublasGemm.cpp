#include "runtime/device/cuda/CublasGemm.h"

#include <algorithm>
#include <array>

namespace fsdpq::rt {

static cublasLtHandle_t makeHandle(const CublasLt &library) {
  cublasLtHandle_t handle = nullptr;
  library.check(library.cublasLtCreate(&handle), "to start");
  return handle;
}

CublasGemm::CublasGemm(const DriverApi &driver, const std::string &gpu)
    : driver(driver), library(CublasLt::get()), handle(makeHandle(library)),
      algorithms(library, handle, gpu) {}

CublasGemm::~CublasGemm() { library.cublasLtDestroy(handle); }

bool CublasGemm::importChoices(const std::string &json) {
  const bool taken = algorithms.importChoices(json);
  if (taken) { // what was prepared may have been chosen otherwise
    known.clear();
    latest.clear();
  }
  return taken;
}

void CublasGemm::run(const GemmCall &call, CUstream stream) {
  const Ready &ready = find(call, stream);
  if (const cublasStatus_t status = multiply(ready, call, stream);
      status != CUBLAS_STATUS_SUCCESS)
    library.check(status, "in a GEMM " + ready.shape.text());
}

const CublasGemm::Ready &CublasGemm::find(const GemmCall &call,
                                          CUstream stream) {
  const GemmShape shape(call);
  if (const auto found = known.find(shape); found != known.end()) {
    latest.splice(latest.begin(), latest, found->second);
    return latest.front();
  }
  latest.push_front(prepare(shape, call, stream));
  known.emplace(shape, latest.begin());
  if (latest.size() > mostShapes) {
    known.erase(latest.back().shape);
    latest.pop_back();
  }
  return latest.front();
}

CublasGemm::Ready CublasGemm::prepare(const GemmShape &shape,
                                      const GemmCall &call, CUstream stream) {
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
  if (const auto *chosen = algorithms.chosen(shape, ready.description)) {
    ready.algorithm = *chosen;
    return ready;
  }
  const auto candidates = algorithms.propose(shape, ready.description);
  ready.algorithm = candidates.front();
  // A product that adds to C cannot be tried: it would be added again.
  if (tunes && shape.overwrites) {
    ready.algorithm = fastest(candidates, ready, call, stream);
    algorithms.choose(shape, ready.algorithm);
  }
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

//===--- Trials -------------------------------------------------------------//

namespace {

/// An event that takes the time.
class Instant {
public:
  explicit Instant(const DriverApi &driver) : driver(driver) {
    driver.check(driver.cuEventCreate(&event, CU_EVENT_DEFAULT),
                 "making an event");
  }
  ~Instant() { driver.cuEventDestroy(event); }
  Instant(const Instant &) = delete;
  Instant &operator=(const Instant &) = delete;

  void take(CUstream stream) {
    driver.check(driver.cuEventRecord(event, stream), "timing a GEMM");
  }
  /// Milliseconds from `begin`; waits for this one.
  float since(const Instant &begin) const {
    driver.check(driver.cuEventSynchronize(event), "timing a GEMM");
    float time = 0;
    driver.check(driver.cuEventElapsedTime(&time, begin.event, event),
                 "timing a GEMM");
    return time;
  }

private:
  const DriverApi &driver;
  CUevent event = nullptr;
};

} // namespace

/// The one with the lowest median of three runs, after one to warm up. Those that
/// fail are left out.
cublasLtMatmulAlgo_t
CublasGemm::fastest(const std::vector<cublasLtMatmulAlgo_t> &candidates,
                    Ready &ready, const GemmCall &call, CUstream stream) {
  Instant begin(driver), end(driver);
  cublasLtMatmulAlgo_t best = candidates.front();
  float bestTime = -1;
  for (const cublasLtMatmulAlgo_t &candidate : candidates) {
    ready.algorithm = candidate;
    if (multiply(ready, call, stream) != CUBLAS_STATUS_SUCCESS)
      continue;
    std::array<float, 3> times;
    bool works = true;
    for (float &time : times) {
      begin.take(stream);
      works &= multiply(ready, call, stream) == CUBLAS_STATUS_SUCCESS;
      end.take(stream);
      time = end.since(begin);
    }
    std::sort(times.begin(), times.end());
    if (works && (bestTime < 0 || times[1] < bestTime)) {
      best = candidate;
      bestTime = times[1];
    }
  }
  return best;
}

} // namespace fsdpq::rt
