//===- Resources.cpp - What a kernel needs of a multiprocessor ------------===//

#include "compiler/Target/Cuda/Resources.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

using namespace fsdpq;
using llvm::StringRef;
using llvm::Twine;

/// The number that stands before `words` in a line, 0 if they are not in it:
/// ("Used 32 registers, 512 bytes smem", " bytes smem") is 512.
static unsigned getCount(StringRef line, StringRef words) {
  size_t at = line.find(words);
  if (at == StringRef::npos)
    return 0;
  StringRef before = line.take_front(at);
  StringRef digits = before.take_back(
      before.size() - (before.find_last_not_of("0123456789") + 1));
  unsigned count = 0;
  return digits.getAsInteger(10, count) ? 0 : count;
}

cuda::PtxasReport cuda::readPtxasLog(std::string_view log,
                                     std::string_view symbol) {
  PtxasReport report;
  bool isWanted = false;
  llvm::SmallVector<StringRef> lines;
  StringRef(log).split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    if (line.contains("Potential Performance Loss")) {
      report.resources.warnings.push_back(line.trim().str());
      continue;
    }
    if (line.contains("Compiling entry function")) {
      StringRef name = line.split('\'').second.split('\'').first;
      report.kernels.push_back(name.str());
      isWanted = name == StringRef(symbol);
    }
    if (!isWanted)
      continue;
    // A function that is not inlined follows with spills of its own.
    Resources &resources = report.resources;
    resources.spillBytes += getCount(line, " bytes spill stores") +
                            getCount(line, " bytes spill loads");
    resources.registers =
        std::max(resources.registers, getCount(line, " registers"));
    resources.staticSharedBytes =
        std::max(resources.staticSharedBytes, getCount(line, " bytes smem"));
  }
  return report;
}

std::vector<std::string> cuda::checkLaunch(const LaunchShape &launch,
                                           const Resources &resources,
                                           const Architecture &architecture) {
  constexpr unsigned maxThreads = 1024, warp = 32, maxRegisters = 65536;
  std::vector<std::string> reasons;
  auto add = [&](const Twine &reason) { reasons.push_back(reason.str()); };
  if (launch.threads == 0 || launch.threads > maxThreads)
    add("[FSDPQ-0522] its blocks have " + Twine(launch.threads) +
        " threads, possible are 1 to " + Twine(maxThreads) +
        "; choose another number (#kern.emission)");
  // Warps get registers in pieces of eight a thread.
  uint64_t threads = llvm::alignTo(launch.threads, warp);
  uint64_t registers = threads * llvm::alignTo(resources.registers, 8);
  if (registers > maxRegisters)
    add("[FSDPQ-0520] " + Twine(launch.threads) + " threads of " +
        Twine(resources.registers) + " registers need " + Twine(registers) +
        " registers, and a block has " + Twine(maxRegisters) +
        "; state __launch_bounds__(" + Twine(launch.threads) +
        ", 1) in the text, or start fewer threads");
  uint64_t shared = (uint64_t)launch.sharedBytes + resources.staticSharedBytes;
  if (shared > architecture.maxSharedBytes())
    add("[FSDPQ-0521] its blocks need " + Twine(shared) +
        " bytes of shared memory (" + Twine(launch.sharedBytes) +
        " of them dynamic), and " + architecture.name + " has " +
        Twine(architecture.maxSharedBytes()) +
        "; choose smaller tiles or fewer stages (#kern.emission)");
  return reasons;
}
