#include "runtime/device/cuda/Nvrtc.h"

#include "runtime/device/cuda/SharedLibrary.h"
#include "runtime/support/Error.h"

namespace fsdpq::rt {

namespace {

// NVRTC's interface has not changed since its first version, and these few lines
// are all that is needed of it: compiling for a GPU needs no CUDA headers, also
// not when fsdpq itself is built.
using Program = struct _nvrtcProgram *;
using Result = int;

constexpr Result success = 0, invalidOption = 5;

struct Functions {
  explicit Functions(const SharedLibrary &library)
      : version(library.function<decltype(version)>("nvrtcVersion")),
        errorString(
            library.function<decltype(errorString)>("nvrtcGetErrorString")),
        create(library.function<decltype(create)>("nvrtcCreateProgram")),
        destroy(library.function<decltype(destroy)>("nvrtcDestroyProgram")),
        compile(library.function<decltype(compile)>("nvrtcCompileProgram")),
        logSize(library.function<decltype(logSize)>("nvrtcGetProgramLogSize")),
        log(library.function<decltype(log)>("nvrtcGetProgramLog")),
        cubinSize(library.function<decltype(cubinSize)>("nvrtcGetCUBINSize")),
        cubin(library.function<decltype(cubin)>("nvrtcGetCUBIN")),
        path(library.path()) {}

  /// Error 4043 for what is neither right nor the text's fault.
  void check(Result result, const std::string &action) const {
    if (result != success)
      throw Error(4043, ExitCode::RunFailure,
                  "NVRTC failed " + action + ": " + errorString(result), path);
  }

  Result (*version)(int *major, int *minor);
  const char *(*errorString)(Result);
  Result (*create)(Program *, const char *text, const char *name, int headers,
                   const char *const *contents, const char *const *names);
  Result (*destroy)(Program *);
  Result (*compile)(Program, int count, const char *const *options);
  Result (*logSize)(Program, size_t *);
  Result (*log)(Program, char *);
  Result (*cubinSize)(Program, size_t *);
  Result (*cubin)(Program, char *);
  std::string path;
};

const Functions &nvrtc() {
  static const Functions functions(SharedLibrary::get(CudaLibrary::Nvrtc));
  return functions;
}

struct Version {
  int major = 0, minor = 0;
};

Version version() {
  Version found;
  nvrtc().check(nvrtc().version(&found.major, &found.minor),
                "to say its version");
  return found;
}

/// A program, destroyed with its holder.
class OwnedProgram {
public:
  OwnedProgram(const std::string &text, const std::string &name) {
    nvrtc().check(nvrtc().create(&program, text.c_str(), name.c_str(), 0,
                                 nullptr, nullptr),
                  "to take the text '" + name + "'");
  }
  ~OwnedProgram() { nvrtc().destroy(&program); }
  OwnedProgram(const OwnedProgram &) = delete;
  OwnedProgram &operator=(const OwnedProgram &) = delete;

  Program get() const { return program; }

private:
  Program program = nullptr;
};

} // namespace

std::string nvrtcVersion() {
  const Version found = version();
  return std::to_string(found.major) + "." + std::to_string(found.minor);
}

const std::vector<std::string> &nvrtcOptions() {
  static const std::vector<std::string> options = [] {
    std::vector<std::string> list = {"--std=c++17", "-default-device",
                                     "--ptxas-options=-v"};
    // A cubin from its cache would come without the log; ours does better.
    const Version found = version();
    if (found.major > 12 || (found.major == 12 && found.minor >= 9))
      list.push_back("--no-cache");
    return list;
  }();
  return options;
}

NvrtcResult compileCuda(const std::string &text, const std::string &name,
                        const std::string &architecture) {
  const std::string target = "--gpu-architecture=" + architecture;
  std::vector<const char *> options = {target.c_str()};
  for (const std::string &option : nvrtcOptions())
    options.push_back(option.c_str());

  const Functions &functions = nvrtc();
  const OwnedProgram program(text, name);
  const Result compiled = functions.compile(
      program.get(), static_cast<int>(options.size()), options.data());

  NvrtcResult result;
  size_t bytes = 0;
  functions.check(functions.logSize(program.get(), &bytes),
                  "to give the log of '" + name + "'");
  if (bytes > 1) { // its end is a zero
    result.log.resize(bytes);
    functions.check(functions.log(program.get(), result.log.data()),
                    "to give the log of '" + name + "'");
    result.log.resize(bytes - 1);
  }
  if (compiled != success) {
    if (result.log.empty())
      result.log = functions.errorString(compiled);
    if (compiled == invalidOption) { // it does not say which
      result.log += "options:";
      for (const char *option : options)
        result.log += std::string(" ") + option;
    }
    return result;
  }

  functions.check(functions.cubinSize(program.get(), &bytes),
                  "to give the code of '" + name + "'");
  result.cubin.resize(bytes);
  functions.check(functions.cubin(program.get(), reinterpret_cast<char *>(
                                                     result.cubin.data())),
                  "to give the code of '" + name + "'");
  result.succeeded = true;
  return result;
}

} // namespace fsdpq::rt
