#include "compiler/Exec/PeriodicRuns.h"

using namespace mlir;
using namespace fsdpq;

SmallVector<PeriodicRun> fsdpq::findPeriodicRuns(ArrayRef<int32_t> kinds) {
  SmallVector<PeriodicRun> runs;
  int64_t size = kinds.size();
  for (int64_t start = 0; start < size;) {
    PeriodicRun best{start, 1, 1};
    for (int64_t period = 1; 2 * period <= size - start || period == 1; ++period) {
      int64_t count = 1;
      while (start + (count + 1) * period <= size &&
             kinds.slice(start + count * period, period) ==
                 kinds.slice(start, period))
        ++count;
      // A longer period pays only by covering more: its body is larger.
      if ((count > 1 || period == 1) &&
          count * period > best.count * best.period)
        best = {start, period, count};
    }
    runs.push_back(best);
    start += best.period * best.count;
  }
  return runs;
}
