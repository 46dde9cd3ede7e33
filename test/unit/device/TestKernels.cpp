// Kernels of the tests, in the form that plans hold (see Kernel in plan.fbs).
#include <cmath>
#include <cstdint>
#include <cstring>

/// y[i] = factor * x[i] + shift; args: x, y (f32), shift (extent), factor
/// (scalar).
extern "C" void scale_shift(void *const *args, int64_t begin, int64_t end) {
  const float *x = static_cast<const float *>(args[0]);
  float *y = static_cast<float *>(args[1]);
  const float shift =
      static_cast<float>(*static_cast<const int64_t *>(args[2]));
  const float factor =
      static_cast<float>(*static_cast<const double *>(args[3]));
  for (int64_t i = begin; i < end; ++i)
    y[i] = factor * x[i] + shift;
}

/// Adds 1 to visits[i] (i32) for each item: shows that all are executed once.
extern "C" void count_visits(void *const *args, int64_t begin, int64_t end) {
  int32_t *visits = static_cast<int32_t *>(args[0]);
  for (int64_t i = begin; i < end; ++i)
    ++visits[i];
}

/// y[i] = exp(x[i]), and rows of 64 floats are copied to z: needs expf and
/// memcpy of the process. args: x, y, z.
extern "C" void uses_libm(void *const *args, int64_t begin, int64_t end) {
  const float *x = static_cast<const float *>(args[0]);
  float *y = static_cast<float *>(args[1]);
  for (int64_t i = begin; i < end; ++i)
    y[i] = expf(x[i]);
  void *volatile to = static_cast<float *>(args[2]) + begin;
  std::memcpy(to, x + begin, static_cast<size_t>(end - begin) * sizeof(float));
}
