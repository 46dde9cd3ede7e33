#include "runtime/io/DType.h"

#include <iterator>

namespace fsdpq::rt {

namespace {
struct Description {
  const char *name;
  int64_t elements, bytes;
  bool integer;
};

// In the order of the enumeration.
constexpr Description descriptions[] = {
    {"F64", 1, 8, false},    {"F32", 1, 4, false},    {"F16", 1, 2, false},
    {"BF16", 1, 2, false},   {"I64", 1, 8, true},     {"I32", 1, 4, true},
    {"I16", 1, 2, true},     {"I8", 1, 1, true},      {"U8", 1, 1, true},
    {"BOOL", 1, 1, true},    {"Q4_0", 32, 18, false}, {"Q4_1", 32, 20, false},
    {"Q8_0", 32, 34, false}, {"other", 1, 0, false},
};
static_assert(std::size(descriptions) == static_cast<size_t>(DType::Other) + 1);

const Description &describe(DType dtype) {
  return descriptions[static_cast<size_t>(dtype)];
}
} // namespace

int64_t blockElements(DType dtype) { return describe(dtype).elements; }
int64_t blockBytes(DType dtype) { return describe(dtype).bytes; }
const char *dtypeName(DType dtype) { return describe(dtype).name; }
bool isInteger(DType dtype) { return describe(dtype).integer; }

} // namespace fsdpq::rt
