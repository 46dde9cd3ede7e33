#include "runtime/device/cpu/ObjectLoader.h"
#include "runtime/support/Error.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>

#include <mutex>
#include <utility>

namespace orc = llvm::orc;

namespace fsdpq::rt {

class ObjectLoader::Session {
public:
  Session() {
    static std::once_flag initialised;
    std::call_once(initialised, [] { llvm::InitializeNativeTarget(); });
    // Kernels have no static constructors: no platform is needed to run them.
    auto made = orc::LLJITBuilder()
                    .setPlatformSetUp(orc::setUpInactivePlatform)
                    .create();
    if (!made)
      throw Error(4006, ExitCode::RunFailure,
                  "LLVM cannot load objects here: " +
                      llvm::toString(made.takeError()));
    jit = std::move(*made);
    // A failed link reports its cause here; lookup() says only that it failed.
    jit->getExecutionSession().setErrorReporter([this](llvm::Error error) {
      report += (report.empty() ? "" : "; ") + llvm::toString(std::move(error));
    });
  }

  orc::JITDylib &add(const KernelImage &image) {
    // The name only has to be unique.
    auto library = jit->createJITDylib(std::to_string(count++) + "." +
                                       std::string(image.name));
    if (!library)
      fail(image, library.takeError());
    auto object = llvm::MemoryBuffer::getMemBufferCopy(
        {reinterpret_cast<const char *>(image.code), image.codeBytes},
        image.name);
    if (auto error = jit->addObjectFile(*library, std::move(object))) {
      remove(*library);
      fail(image, std::move(error));
    }
    return *library;
  }

  KernelEntry link(orc::JITDylib &library, const KernelImage &image) {
    auto address = jit->lookup(library, image.symbol);
    if (!address) {
      llvm::Error error = address.takeError();
      remove(library);
      fail(image, std::move(error));
    }
    return address->toPtr<KernelEntry>();
  }

  void remove(orc::JITDylib &library) {
    llvm::consumeError(jit->getExecutionSession().removeJITDylib(library));
  }

private:
  [[noreturn]] void fail(const KernelImage &image, llvm::Error error) {
    const std::string cause = llvm::toString(std::move(error));
    const std::string reported = std::exchange(report, "");
    throw Error(4003, ExitCode::RunFailure,
                "kernel '" + std::string(image.name) + "' (entry '" +
                    std::string(image.symbol) + "') cannot be loaded: " +
                    (reported.empty() ? cause : reported),
                "", "make the plan again with this version's compiler");
  }

  std::unique_ptr<orc::LLJIT> jit;
  uint64_t count = 0;
  std::string report;
};

namespace {

/// Unloads its code when it goes.
template <typename Session>
class SessionObject final : public LoadedObject {
public:
  SessionObject(KernelEntry entry, Session &session, orc::JITDylib &library)
      : LoadedObject(entry), session(session), library(library) {}
  ~SessionObject() override { session.remove(library); }

private:
  Session &session;
  orc::JITDylib &library;
};

} // namespace

ObjectLoader::ObjectLoader() : session(std::make_unique<Session>()) {}
ObjectLoader::~ObjectLoader() = default;

std::unique_ptr<LoadedObject> ObjectLoader::load(const KernelImage &image) {
  orc::JITDylib &library = session->add(image);
  KernelEntry entry = session->link(library, image);
  return std::make_unique<SessionObject<Session>>(entry, *session, library);
}

std::string missingHostFeatures(std::string_view target) {
  const auto host = llvm::sys::getHostCPUFeatures();
  llvm::SmallVector<llvm::StringRef> words;
  llvm::SplitString({target.data(), target.size()}, words, " ,");
  std::string missing;
  for (llvm::StringRef word : words) {
    if (!word.consume_front("+"))
      continue;
    auto feature = host.find(word);
    if (feature != host.end() && !feature->second)
      missing += (missing.empty() ? "" : " ") + word.str();
  }
  return missing;
}

} // namespace fsdpq::rt
