//===- Emulator.cpp - Compiles, loads and launches ------------------------===//

#include "test/unit/cuda/Emulator.h"

#include "test/unit/cuda/EmulatedGrid.h"
#include "test/unit/cuda/EmulatedText.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <unistd.h>

using namespace fsdpq;
using namespace fsdpq::test;
namespace fs = std::filesystem;

/// What a block may have on sm_90, of it 1 KiB for the system.
static constexpr uint64_t maxSharedBytes = 227 << 10;
static constexpr unsigned maxThreads = 1024;

Argument::Argument(double value)
    : letter('d'), bits(std::bit_cast<uint64_t>(value)) {}

struct EmulatedKernel::Loaded {
  explicit Loaded(void *library) : library(library) {}
  ~Loaded() { dlclose(library); }

  Loaded(const Loaded &) = delete;
  Loaded &operator=(const Loaded &) = delete;

  void *library;
  EmulatedImage image;
};

static std::string readText(const fs::path &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

static void writeText(const fs::path &path, const std::string &text) {
  std::ofstream(path, std::ios::binary) << text;
}

static const std::string &prelude(const char *name) {
  static const fs::path folder = FSDPQ_EMULATOR_SOURCES;
  static const std::string services = readText(folder / "EmulatorServices.h"),
                           shim = readText(folder / "EmulatorShim.h");
  return name == std::string_view("shim") ? shim : services;
}

static std::string sourceOf(const cuda::KernelText &kernel, const std::string &text) {
  return "#line 1 \"EmulatorServices.h\"\n" + prelude("services") +
         "constexpr unsigned long long emulatedSharedBytes = " +
         std::to_string(kernel.launch.sharedBytes) +
         ";\n#line 1 \"EmulatorShim.h\"\n" + prelude("shim") +
         "namespace {\n#line 1 \"" + kernel.symbol + ".cu\"\n" + text +
         "\n}\n"
         "extern \"C\" __attribute__((visibility(\"default\"))) EmulatedImage\n"
         "fsdpqEmulatedImage(const EmulatorServices *services) {\n"
         "  emulator = services;\n"
         "  return emulatedImage<&" +
         kernel.symbol + ">(&" + kernel.symbol + ");\n}\n";
}

static std::string quoted(const fs::path &path) { return "'" + path.string() + "'"; }

/// The object for `source` under `path` with the suffix .so. Others may write the
/// same one at the same time, so files get their names when they are complete.
static std::string buildObject(const std::string &source, const fs::path &path) {
  auto with = [&](const std::string &suffix) {
    return fs::path(path.string() + suffix);
  };
  // The source is compared too: two may have the same hash.
  if (fs::exists(with(".so")) && readText(with(".cpp")) == source)
    return "";
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  const std::string own = "." + std::to_string(getpid());
  const fs::path text = with(own + ".cpp"), object = with(own + ".o"),
                 library = with(own + ".so"), log = with(own + ".log");
  writeText(text, source);
  // Linked without the sanitizer's flags: the shim has the calls it makes.
  const std::string command = FSDPQ_EMULATOR_COMPILER " -c " + quoted(text) + " -o " +
                              quoted(object) + " 2> " + quoted(log) +
                              " && " FSDPQ_EMULATOR_LINKER " " + quoted(object) +
                              " -o " + quoted(library) + " 2>> " + quoted(log);
  std::string error;
  if (std::system(command.c_str()) != 0) {
    constexpr size_t shown = 4000;
    error = "the host compiler refuses it:\n" + readText(log).substr(0, shown);
  } else {
    fs::rename(text, with(".cpp"), failed);
    fs::rename(library, with(".so"), failed);
    if (failed)
      error = "cannot write " + with(".so").string() + ": " + failed.message();
  }
  for (const fs::path &file : {text, object, library, log})
    fs::remove(file, failed);
  return error;
}

EmulatedKernel EmulatedKernel::compile(const cuda::KernelText &kernel) {
  EmulatedKernel result;
  result.kernel = kernel;
  auto refuse = [&](const std::string &what) {
    result.loaded = nullptr;
    result.error_ = kernel.symbol + ": " + what;
    return result;
  };
  const cuda::LaunchShape &shape = kernel.launch;
  if (!shape.maps.empty())
    return refuse("tensor maps are not emulated");
  if (shape.threads == 0 || shape.threads > maxThreads)
    return refuse("a block of " + std::to_string(shape.threads) + " threads");
  if (shape.itemsPerBlock <= 0)
    return refuse("itemsPerBlock is " + std::to_string(shape.itemsPerBlock));

  EmulatedText text = emulateText(kernel.text);
  if (!text.error.empty())
    return refuse(text.error);
  const std::string source = sourceOf(kernel, text.text);
  const size_t hash = std::hash<std::string>()(FSDPQ_EMULATOR_COMPILER + source);
  char name[24];
  std::snprintf(name, sizeof name, "%016zx", hash);
  const fs::path path = fs::path(FSDPQ_EMULATOR_CACHE) / name;
  if (std::string error = buildObject(source, path); !error.empty())
    return refuse(error);

  void *library = dlopen((path.string() + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return refuse(dlerror());
  auto loaded = std::make_shared<Loaded>(library);
  using Entry = EmulatedImage (*)(const EmulatorServices *);
  auto entry = reinterpret_cast<Entry>(dlsym(library, "fsdpqEmulatedImage"));
  loaded->image = entry(&emulatorServices);
  result.loaded = loaded;

  const std::string parameters = loaded->image.parameters;
  if (size_t at = parameters.find('?'); at != std::string::npos)
    return refuse("parameter " + std::to_string(at) +
                  " is no pointer, long long or double");
  if (!parameters.ends_with('i'))
    return refuse("the last parameter is not long long items");
  const uint64_t shared = shape.sharedBytes + loaded->image.staticSharedBytes;
  if (shared > maxSharedBytes)
    return refuse(std::to_string(shared) + " bytes of shared memory, more than " +
                  std::to_string(maxSharedBytes));
  return result;
}

std::string EmulatedKernel::launch(const std::vector<Argument> &args, int64_t items,
                                   unsigned processors, Order order) const {
  if (!loaded)
    return error_;
  std::vector<Argument> all = args;
  all.push_back(items);
  std::string letters;
  for (const Argument &argument : all)
    letters += argument.letter;
  if (letters != loaded->image.parameters)
    return kernel.symbol + ": arguments are " + letters + ", parameters " +
           loaded->image.parameters +
           " (p: pointer, i: long long, d: double; the last is items)";

  const cuda::LaunchShape &shape = kernel.launch;
  int64_t blocks = items / shape.itemsPerBlock + (items % shape.itemsPerBlock > 0);
  if (shape.blocksPerProcessor)
    blocks = std::min(blocks, int64_t(shape.blocksPerProcessor) * processors);
  if (items < 0 || blocks > std::numeric_limits<int32_t>::max())
    return kernel.symbol + ": a grid of " + std::to_string(items) + " items";

  EmulatedGrid grid{loaded->image,     static_cast<unsigned>(blocks), shape.threads,
                    shape.sharedBytes, order == Order::Descending,    {}};
  for (Argument &argument : all)
    grid.arguments.push_back(&argument.bits);
  std::string error = runGrid(grid);
  return error.empty() ? "" : kernel.symbol + ": " + error;
}
