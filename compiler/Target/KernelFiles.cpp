//===- KernelFiles.cpp - Kernels' texts in a folder -----------------------===//

#include "compiler/Target/KernelFiles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace fsdpq;

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

static std::string join(StringRef folder, StringRef file) {
  SmallString<128> place(folder);
  path::append(place, file);
  return place.str().str();
}

static llvm::Error makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

llvm::Error fsdpq::writeKernelFiles(StringRef folder,
                                    ArrayRef<KernelFile> files) {
  if (std::error_code error = fs::create_directories(folder))
    return makeError("[FSDPQ-0527] cannot make the folder '" + folder +
                     "' for kernels: " + error.message());
  for (const auto &[file, text] : files) {
    std::string place = join(folder, file);
    std::error_code error;
    llvm::raw_fd_ostream stream(place, error);
    if (!error) {
      stream << text;
      stream.close();
      error = stream.error();
      stream.clear_error();
    }
    if (error)
      return makeError("[FSDPQ-0527] cannot write the kernel '" + place +
                       "': " + error.message());
  }
  return llvm::Error::success();
}

llvm::Expected<llvm::StringMap<std::string>>
fsdpq::readKernelFiles(StringRef folder, StringRef suffix,
                       ArrayRef<StringRef> kernels) {
  llvm::StringMap<std::string> texts;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error)) {
    StringRef name = path::filename(entry->path());
    if (!name.consume_back(suffix))
      continue;
    if (!llvm::is_contained(kernels, name))
      return makeError("[FSDPQ-0526] '" + entry->path() +
                       "' is named for no kernel of this plan; there are: " +
                       llvm::join(kernels, ", "));
    auto file = llvm::MemoryBuffer::getFile(entry->path(), /*IsText=*/true);
    if (!file)
      return makeError("[FSDPQ-0526] cannot read the kernel '" + entry->path() +
                       "': " + file.getError().message());
    texts[name] = (*file)->getBuffer().str();
  }
  if (error)
    return makeError("[FSDPQ-0526] cannot read the folder of kernels '" + folder +
                     "': " + error.message());
  if (texts.empty())
    return makeError("[FSDPQ-0526] the folder '" + folder + "' holds no " +
                     suffix + " file; --dump_kernels writes those of a plan");
  return texts;
}
