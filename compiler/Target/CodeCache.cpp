//===- CodeCache.cpp - Content-addressed compiled kernels -----------------===//

#include "compiler/Target/CodeCache.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace fsdpq;

static constexpr size_t digestSize = 32;

static StringRef toStringRef(ArrayRef<uint8_t> bytes) {
  return StringRef(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

std::string CodeCache::getPath(StringRef hash) const {
  SmallString<128> path(folder);
  llvm::sys::path::append(path, hash + suffix);
  return path.str().str();
}

std::optional<std::vector<uint8_t>> CodeCache::lookUp(StringRef hash) const {
  if (folder.empty())
    return std::nullopt;
  auto file = llvm::MemoryBuffer::getFile(getPath(hash), /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!file || (*file)->getBufferSize() <= digestSize)
    return std::nullopt;
  ArrayRef<uint8_t> bytes(
      reinterpret_cast<const uint8_t *>((*file)->getBufferStart()),
      (*file)->getBufferSize());
  ArrayRef<uint8_t> code = bytes.drop_back(digestSize);
  if (ArrayRef<uint8_t>(llvm::SHA256::hash(code)) !=
      bytes.take_back(digestSize))
    return std::nullopt;
  return std::vector<uint8_t>(code.begin(), code.end());
}

void CodeCache::insert(StringRef hash, ArrayRef<uint8_t> code) const {
  namespace fs = llvm::sys::fs;
  if (folder.empty() ||
      fs::create_directories(folder, /*IgnoreExisting=*/true, fs::owner_all))
    return;
  std::string path = getPath(hash);
  llvm::Expected<fs::TempFile> file = fs::TempFile::create(
      path + ".%%%%%%%%", fs::owner_read | fs::owner_write);
  if (!file) {
    llvm::consumeError(file.takeError());
    return;
  }
  bool isWritten;
  {
    llvm::raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
    auto digest = llvm::SHA256::hash(code);
    stream << toStringRef(code) << toStringRef(digest);
    stream.flush();
    isWritten = !stream.has_error();
    stream.clear_error();
  }
  llvm::consumeError(isWritten ? file->keep(path) : file->discard());
}
