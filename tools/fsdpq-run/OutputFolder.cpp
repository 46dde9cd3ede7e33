#include "tools/fsdpq-run/OutputFolder.h"

#include "runtime/support/Error.h"
#include "runtime/train/AdapterConfig.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

namespace fsdpq::run {

namespace fs = std::filesystem;
using rt::Error;
using rt::ExitCode;

OutputFolder::OutputFolder(std::string path, bool overwrite)
    : path_(std::move(path)) {
  if (overwrite)
    return;
  for (const char *result :
       {rt::adapterWeightsFile, "model.safetensors", "metrics.jsonl"}) {
    std::error_code ignored;
    if (fs::exists(fs::path(path_) / result, ignored))
      throw Error(6021, ExitCode::BadInput,
                  "the output folder already holds " + std::string(result),
                  path_, "choose another --output_dir, or allow --overwrite");
  }
}

OutputFolder::~OutputFolder() {
  if (descriptor >= 0)
    ::close(descriptor);
}

void OutputFolder::open() {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) {
    errno = error.value();
    throw rt::systemError("creating the output folder", path_);
  }
  descriptor = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    throw rt::systemError("opening the output folder", path_);
  // Some file systems cannot lock; their users are told by the files.
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(6022, ExitCode::BadInput, "another run uses the output folder",
                path_, "choose another --output_dir, or wait for it to end");
}

std::string OutputFolder::file(const std::string &name) const {
  return (fs::path(path_) / name).string();
}

} // namespace fsdpq::run
