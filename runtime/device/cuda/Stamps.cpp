#include "runtime/device/cuda/Stamps.h"

namespace fsdpq::rt {

Stamps::~Stamps() {
  for (const Stamp &stamp : waiting)
    driver.cuEventDestroy(stamp.event);
  if (origin)
    driver.cuEventDestroy(origin);
  for (CUevent event : spare)
    driver.cuEventDestroy(event);
}

CUevent Stamps::take() {
  CUevent event = nullptr;
  if (!spare.empty()) {
    event = spare.back();
    spare.pop_back();
  } else {
    driver.check(driver.cuEventCreate(&event, CU_EVENT_DEFAULT),
                 "making an event");
  }
  return event;
}

void Stamps::tie(CUstream stream) {
  if (!origin)
    origin = take();
  driver.check(driver.cuEventRecord(origin, stream), "reading the GPU's clock");
  driver.check(driver.cuEventSynchronize(origin), "reading the GPU's clock");
  originTime = Clock::now();
}

void Stamps::add(Device::UseTime use, CUstream stream) {
  if (!origin)
    tie(stream);
  if (waiting.size() >= mostWaiting) {
    driver.check(driver.cuEventSynchronize(waiting.front().event),
                 "reading the GPU's clock");
    while (!waiting.empty() &&
           driver.cuEventQuery(waiting.front().event) == CUDA_SUCCESS)
      tell();
  }
  const CUevent event = take();
  waiting.push_back({event, std::move(use)});
  driver.check(driver.cuEventRecord(event, stream), "reading the GPU's clock");
}

/// Tells the first, which is done.
void Stamps::tell() {
  Stamp stamp = std::move(waiting.front());
  waiting.pop_front();
  spare.push_back(stamp.event);
  float milliseconds = 0;
  driver.check(driver.cuEventElapsedTime(&milliseconds, origin, stamp.event),
               "reading the GPU's clock");
  stamp.use(originTime +
            std::chrono::duration_cast<Clock::duration>(
                std::chrono::duration<double, std::milli>(milliseconds)));
}

void Stamps::finish(CUstream stream) {
  if (waiting.empty())
    return;
  while (!waiting.empty())
    tell();
  tie(stream);
}

} // namespace fsdpq::rt
