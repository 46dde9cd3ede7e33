#include "runtime/support/MappedFile.h"
#include "runtime/support/Error.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fsdpq::rt {

MappedFile::MappedFile(const std::string &path) : path_(path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    throw systemError("opening", path, ExitCode::BadInput);
  struct stat status;
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw Error(1302, ExitCode::BadInput, "not a regular file", path,
                "name a file");
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ > 0) {
    void *mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapped == MAP_FAILED) {
      Error error = systemError("mapping", path);
      ::close(descriptor);
      throw error;
    }
    data_ = static_cast<const unsigned char *>(mapped);
  }
  ::close(descriptor);
}

MappedFile::~MappedFile() {
  if (data_)
    ::munmap(const_cast<unsigned char *>(data_), size_);
}

void MappedFile::release(size_t offset, size_t bytes) const {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t begin = (offset + page - 1) / page * page;
  size_t end = (offset + bytes) / page * page;
  if (begin < end && end <= size_)
    ::madvise(const_cast<unsigned char *>(data_) + begin, end - begin,
              MADV_DONTNEED);
}

} // namespace fsdpq::rt
