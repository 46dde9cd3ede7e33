//===- KernelCheck.cpp - Kernels on a GPU against the CPU back end --------===//
//
// Each kernel body is compiled for the CPU and for the GPU of this machine and
// run on the same inputs. Outputs are poisoned first and stand between guard
// bytes; a second run on the GPU must give the same bits. Groups of cases run in
// child processes with a time limit, so that a kernel that hangs ends its group
// only. One JSON line a case.
//
//   fsdpq_gpu kernels [--group NAME] [--seconds LIMIT] [--jobs CHILDREN]
//
//===----------------------------------------------------------------------===//

#include "test/gpu/Gpu.h"
#include "test/gpu/KernelCases.h"

#include "compiler/Target/Cpu/ObjectCompiler.h"
#include "compiler/Target/Cpu/Passes.h"
#include "compiler/Target/Cuda/Emission.h"
#include "compiler/Target/Cuda/KernelCompiler.h"
#include "test/gpu/KernelDevices.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/TargetSelect.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::test;

namespace {

double toDouble(const uint8_t *at, ElementKind kind) {
  switch (kind) {
  case ElementKind::F32: {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  }
  case ElementKind::F64: {
    double value;
    std::memcpy(&value, at, 8);
    return value;
  }
  case ElementKind::BF16: {
    uint16_t half;
    std::memcpy(&half, at, 2);
    const uint32_t word = static_cast<uint32_t>(half) << 16;
    float value;
    std::memcpy(&value, &word, 4);
    return value;
  }
  case ElementKind::I32: {
    int32_t value;
    std::memcpy(&value, at, 4);
    return value;
  }
  case ElementKind::I8:
    return *at;
  }
  return 0;
}

/// How far two arrays are apart: the norm of the difference over the norm of the
/// wanted values, and the largest difference over the largest value.
struct Distance {
  double relative = 0, largest = 0;
  bool finite = true;
};

Distance compare(const std::vector<uint8_t> &actual,
                 const std::vector<uint8_t> &wanted, ElementKind kind) {
  const size_t size = bytesOf(kind), count = wanted.size() / size;
  double difference = 0, norm = 0, largest = 0, scale = 0;
  Distance distance;
  for (size_t i = 0; i < count; ++i) {
    const double a = toDouble(&actual[i * size], kind);
    const double w = toDouble(&wanted[i * size], kind);
    if (std::isnan(a) && std::isnan(w))
      continue; // neither wrote it
    if (!std::isfinite(a - w))
      distance.finite = false;
    difference += (a - w) * (a - w);
    norm += w * w;
    largest = std::max(largest, std::abs(a - w));
    scale = std::max(scale, std::abs(w));
  }
  distance.relative = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
  distance.largest = scale > 0 ? largest / scale : largest;
  return distance;
}

double toleranceOf(const Case &checked, ElementKind kind) {
  if (checked.tolerance > 0)
    return checked.tolerance;
  switch (kind) {
  case ElementKind::BF16:
    return 4e-3;
  case ElementKind::F32:
    return 2e-5;
  case ElementKind::F64:
    return 1e-11;
  default:
    return 0;
  }
}

class Checker {
public:
  Checker() : builder(&context) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    DialectRegistry registry;
    cpu::registerCpuDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        errors += diagnostic.str() + "\n";
    });
  }

  /// Checks all cases of a group; gives the number that failed.
  int run(const std::vector<Case> &cases) {
    const auto arch = cuda::Architecture::parse(gpu.architecture());
    if (!arch)
      return fail("group", "the GPU's architecture is unknown");
    OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToEnd(module->getBody());
    SmallVector<kern::FuncOp> kernels;
    for (const auto &[number, checked] : llvm::enumerate(cases)) {
      kern::FuncOp kernel = checked.build(builder, builder.getUnknownLoc());
      kernel.setSymName((kernel.getSymName() + "_" + Twine(number)).str());
      kernels.push_back(kernel);
    }
    auto objects = cpu::compileKernels(
        kernels, cpu::TargetMachineOptions::host(), "", 0);
    if (failed(objects))
      return fail("group", errors);
    for (kern::FuncOp kernel : kernels)
      if (failed(cuda::prepareEmission(kernel, *arch)))
        return fail("group", errors);
    auto cubins = cuda::compileKernels(kernels, *arch, {});
    if (failed(cubins))
      return fail("group", errors);
    int failures = 0;
    for (size_t i = 0; i < cases.size(); ++i)
      failures += !check(cases[i], (*objects)[i], (*cubins)[i]);
    return failures;
  }

private:
  int fail(const std::string &name, const std::string &why) {
    std::printf("{\"case\": \"%s\", \"passed\": false, \"why\": \"%s\"}\n",
                name.c_str(), escape(why).c_str());
    std::fflush(stdout);
    return 1;
  }

  bool check(const Case &checked, const cpu::CompiledKernel &object,
             const cuda::CompiledKernel &cubin) {
    std::vector<std::vector<uint8_t>> inputs = checked.makeArrays();
    auto wanted = inputs;
    host.run(object, checked, wanted);
    auto actual = inputs, again = inputs;
    std::string problem = gpu.run(cubin, checked, actual);
    if (problem.empty())
      problem = gpu.run(cubin, checked, again);
    if (problem.empty() && actual != again)
      problem = "two runs differ";
    double worst = 0, largest = 0;
    for (size_t i = 0; problem.empty() && i < wanted.size(); ++i) {
      const Array &array = checked.arrays[i];
      if (array.role == Role::In) {
        if (actual[i] != inputs[i])
          problem = "it wrote its input " + std::to_string(i);
        continue;
      }
      const Distance distance = compare(actual[i], wanted[i], array.kind);
      worst = std::max(worst, distance.relative);
      largest = std::max(largest, distance.largest);
      if (!distance.finite)
        problem = "output " + std::to_string(i) + " is not finite where the CPU's is";
      else if (distance.relative > toleranceOf(checked, array.kind))
        problem = "output " + std::to_string(i) + " is off by " +
                  std::to_string(distance.relative);
    }
    const double seconds = problem.empty() ? gpu.seconds(cubin, checked, inputs) : 0;
    std::printf("{\"case\": \"%s\", \"passed\": %s, \"relative\": %.3g, \"largest\": "
                "%.3g, \"us\": %.2f, \"gb_per_s\": %.1f, \"registers\": %u, "
                "\"spills\": %u, \"threads\": %u, \"why\": \"%s\"}\n",
                checked.name.c_str(), problem.empty() ? "true" : "false", worst,
                largest, seconds * 1e6,
                seconds > 0 ? checked.touchedBytes() / seconds / 1e9 : 0,
                cubin.resources.registers, cubin.resources.spillBytes,
                cubin.launch.threads, escape(problem).c_str());
    std::fflush(stdout);
    return problem.empty();
  }

  static std::string escape(const std::string &text) {
    std::string out;
    for (char c : text) {
      if (c == '"' || c == '\\')
        out += '\\';
      out += c == '\n' ? ' ' : c;
    }
    return out;
  }

  MLIRContext context;
  OpBuilder builder;
  std::string errors;
  HostRunner host;
  GpuRunner gpu;
};

/// Groups that run in children, each of which is killed after some time.
class Children {
public:
  Children(unsigned seconds, size_t atOnce) : limit(seconds), atOnce(atOnce) {}

  /// Starts a child for the group, as soon as there is room.
  void start(const std::string &group) {
    await(atOnce - 1);
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/proc/self/exe", "fsdpq_gpu", "kernels", "--group", group.c_str(),
              nullptr);
      ::_exit(127);
    }
    running[child] = {group, Clock::now() + std::chrono::seconds(limit)};
  }

  /// Waits for all; whether all cases have passed.
  bool finish() {
    await(0);
    return passed;
  }

private:
  using Clock = std::chrono::steady_clock;
  struct Group {
    std::string name;
    Clock::time_point end;
  };

  void await(size_t most) {
    while (running.size() > most) {
      int status = 0;
      for (auto place = running.begin(); place != running.end();) {
        const auto [child, group] = *place;
        const bool isLate = Clock::now() > group.end;
        if (isLate)
          ::kill(child, SIGKILL);
        if (::waitpid(child, &status, isLate ? 0 : WNOHANG) == 0) {
          ++place;
          continue;
        }
        if (isLate)
          fail(group.name, "no end after " + std::to_string(limit) + " s");
        else if (WIFSIGNALED(status))
          fail(group.name, "ended by signal " + std::to_string(WTERMSIG(status)));
        else if (WEXITSTATUS(status) > 1)
          fail(group.name,
               "ended with exit code " + std::to_string(WEXITSTATUS(status)));
        else if (WEXITSTATUS(status) == 1)
          passed = false;
        place = running.erase(place);
      }
      ::usleep(10'000);
    }
  }

  void fail(const std::string &group, const std::string &why) {
    std::printf("{\"case\": \"%s\", \"passed\": false, \"why\": \"%s\"}\n",
                group.c_str(), why.c_str());
    std::fflush(stdout);
    passed = false;
  }

  unsigned limit;
  size_t atOnce;
  std::map<pid_t, Group> running;
  bool passed = true;
};

} // namespace

int fsdpq::test::checkKernels(int argc, char **argv) {
  std::string group;
  unsigned limit = 90, jobs = 1;
  for (int i = 0; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--group")
      group = argv[i + 1];
    else if (std::string(argv[i]) == "--seconds")
      limit = static_cast<unsigned>(std::stoul(argv[i + 1]));
    else if (std::string(argv[i]) == "--jobs")
      jobs = std::max(1u, static_cast<unsigned>(std::stoul(argv[i + 1])));
  }
  const auto groups = makeCases();
  if (!group.empty()) {
    Checker checker;
    return checker.run(groups.at(group)) == 0 ? 0 : 1;
  }
  Children children(limit, jobs);
  for (const auto &[name, cases] : groups)
    children.start(name);
  return children.finish() ? 0 : 1;
}
