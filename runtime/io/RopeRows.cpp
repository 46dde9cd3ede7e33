#include "runtime/io/RopeRows.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <string>
#include <vector>

namespace fsdpq::rt {

void unpermuteRopeRows(float *weights, int64_t rows, int64_t cols,
                       int64_t heads) {
  if (heads <= 0 || rows % heads != 0 || rows / heads % 2 != 0)
    throw Error(1106, ExitCode::BadInput,
                std::to_string(rows) + " rows cannot be " +
                    std::to_string(heads) + " heads of an even size",
                "", "check the model's head counts");
  const int64_t headRows = rows / heads, half = headRows / 2;
  std::vector<float> stored(static_cast<size_t>(headRows * cols));
  for (int64_t head = 0; head < heads; ++head) {
    float *block = weights + head * headRows * cols;
    std::copy_n(block, headRows * cols, stored.data());
    for (int64_t i = 0; i < half; ++i)
      for (int64_t part = 0; part < 2; ++part)
        std::copy_n(stored.data() + (2 * i + part) * cols, cols,
                    block + (part * half + i) * cols);
  }
}

} // namespace fsdpq::rt
