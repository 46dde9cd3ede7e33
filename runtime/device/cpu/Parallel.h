//===- Parallel.h - Work shared out between OpenMP's threads ----*- C++ -*-===//
#pragma once

#include "runtime/support/StopSignalMask.h"

#include <algorithm>
#include <cstdint>
#include <omp.h>

namespace fsdpq::rt {

/// Once for each of OpenMP's threads.
inline void keepFromSignals() {
  thread_local bool isDone = false;
  if (!isDone)
    blockStopSignals();
  isDone = true;
}

/// Calls body(begin, end) for contiguous ranges that make up [0, count), on at
/// most `threads` threads. Which thread gets which range depends on nothing but
/// the numbers. The body must not throw.
template <typename Body>
void inParallel(int64_t count, int64_t threads, const Body &body) {
  threads = std::min(count, threads);
  if (threads <= 1) {
    body(int64_t(0), count);
    return;
  }
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    if (omp_get_thread_num() > 0)
      keepFromSignals();
    // OpenMP may give fewer threads than asked for.
    const int64_t parts = omp_get_num_threads(), part = omp_get_thread_num();
    const int64_t size = count / parts, rest = count % parts;
    const int64_t begin = part * size + std::min(part, rest);
    body(begin, begin + size + (part < rest ? 1 : 0));
  }
}

} // namespace fsdpq::rt
