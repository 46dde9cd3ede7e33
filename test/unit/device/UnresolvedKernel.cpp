// A kernel that calls what nobody defines.
#include <cstdint>

extern "C" void fsdpq_test_defined_nowhere(int64_t);

extern "C" void unresolved(void *const *args, int64_t begin, int64_t end) {
  fsdpq_test_defined_nowhere(end - begin);
}
