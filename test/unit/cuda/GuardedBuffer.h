//===- GuardedBuffer.h - Memory whose neighbours cannot be accessed -------===//
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <type_traits>
#include <unistd.h>
#include <vector>

namespace fsdpq::test {

/// `size` elements for a kernel to work on, of bytes 0xff (NaN, -1) at first.
/// Begins at a multiple of 16; ends, less at most 15 bytes, where memory that
/// cannot be accessed begins. The page below cannot be accessed either.
template <typename T>
class GuardedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

public:
  explicit GuardedBuffer(size_t size) : count(size) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = (size * sizeof(T) + 15) / 16 * 16;
    const size_t inside = (bytes + page - 1) / page * page;
    mapped = inside + 2 * page;
    base = static_cast<char *>(
        mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base == MAP_FAILED ||
        mprotect(base + page, inside, PROT_READ | PROT_WRITE) != 0)
      std::abort();
    std::memset(base + page, 0xff, inside);
    begin_ = reinterpret_cast<T *>(base + page + inside - bytes);
  }

  GuardedBuffer(const std::vector<T> &values) : GuardedBuffer(values.size()) {
    if (count)
      std::memcpy(begin_, values.data(), count * sizeof(T));
  }

  ~GuardedBuffer() { munmap(base, mapped); }

  GuardedBuffer(const GuardedBuffer &) = delete;
  GuardedBuffer &operator=(const GuardedBuffer &) = delete;

  T *data() { return begin_; }
  size_t size() const { return count; }
  T &operator[](size_t index) { return begin_[index]; }
  T *begin() { return begin_; }
  T *end() { return begin_ + count; }
  std::vector<T> values() const { return {begin_, begin_ + count}; }

private:
  size_t count, mapped;
  char *base;
  T *begin_;
};

} // namespace fsdpq::test
