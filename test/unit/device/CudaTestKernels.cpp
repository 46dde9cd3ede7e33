#include "test/unit/device/CudaTestKernels.h"

#include <deque>

namespace fsdpq::test {

std::string cudaText(const std::string &symbol) {
  if (symbol == "count_visits")
    return R"(
extern "C" __global__ void count_visits(int *visits, long long items) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < items;
       i += (long long)gridDim.x * blockDim.x)
    ++visits[i];
}
)";
  if (symbol == "scale_shift")
    return R"(
extern "C" __global__ void scale_shift(const float *x, float *y, long long shift,
                                       double factor, long long items) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < items;
       i += (long long)gridDim.x * blockDim.x)
    y[i] = (float)factor * x[i] + (float)shift;
}
)";
  return "";
}

const plan::LaunchShape *launchShape(uint32_t sharedBytes,
                                     uint32_t blocksPerProcessor,
                                     const std::vector<plan::TensorMap> &maps) {
  static std::deque<flatbuffers::FlatBufferBuilder> kept;
  flatbuffers::FlatBufferBuilder &builder = kept.emplace_back();
  constexpr uint32_t threads = 128;
  const auto list = builder.CreateVectorOfStructs(maps);
  builder.Finish(plan::CreateLaunchShape(builder, threads, sharedBytes, threads,
                                         blocksPerProcessor, list));
  return flatbuffers::GetRoot<plan::LaunchShape>(builder.GetBufferPointer());
}

} // namespace fsdpq::test
