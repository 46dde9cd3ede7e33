#include "runtime/io/TensorSource.h"

namespace fsdpq::rt {

TensorSource::~TensorSource() = default;

int64_t TensorInfo::elements() const {
  int64_t product = 1;
  for (int64_t dimension : shape)
    product *= dimension;
  return product;
}

} // namespace fsdpq::rt
