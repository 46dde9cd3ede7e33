//===- CubinCompiler.cpp - CUDA texts to cubins ---------------------------===//
//
// The one file of the compiler that catches exceptions, which the runtime throws.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cuda/CubinCompiler.h"
#include "compiler/Target/CodeCache.h"
#include "runtime/device/cuda/Nvrtc.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/SHA256.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

using namespace fsdpq;
using namespace fsdpq::cuda;

static std::string computeHash(StringRef text, const Architecture &architecture,
                               StringRef version) {
  llvm::SHA256 hasher;
  auto add = [&](StringRef part) {
    hasher.update(part);
    hasher.update(StringRef("\0", 1));
  };
  add(version);
  add(architecture.name);
  for (const std::string &option : rt::nvrtcOptions())
    add(option);
  add(text);
  return llvm::toHex(hasher.final(), /*LowerCase=*/true);
}

//===----------------------------------------------------------------------===//
// What the cache holds of a kernel: the log, which says what it needs, before its
// code.
//===----------------------------------------------------------------------===//

static std::vector<uint8_t> pack(const rt::NvrtcResult &compiled) {
  std::vector<uint8_t> entry(sizeof(uint32_t));
  llvm::support::endian::write32le(entry.data(), compiled.log.size());
  entry.insert(entry.end(), compiled.log.begin(), compiled.log.end());
  entry.insert(entry.end(), compiled.cubin.begin(), compiled.cubin.end());
  return entry;
}

static std::optional<rt::NvrtcResult> unpack(ArrayRef<uint8_t> entry) {
  if (entry.size() < sizeof(uint32_t))
    return std::nullopt;
  size_t logBytes = llvm::support::endian::read32le(entry.data());
  entry = entry.drop_front(sizeof(uint32_t));
  if (entry.size() <= logBytes)
    return std::nullopt;
  rt::NvrtcResult result;
  result.succeeded = true;
  result.log.assign(entry.begin(), entry.begin() + logBytes);
  result.cubin.assign(entry.begin() + logBytes, entry.end());
  return result;
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

static void compile(const CubinRequest &request, const CodeCache &cache,
                    const Architecture &architecture, Cubin &cubin) {
  std::optional<rt::NvrtcResult> compiled;
  if (auto entry = cache.lookUp(cubin.hash))
    compiled = unpack(*entry);
  cubin.fromCache = compiled.has_value();
  if (!compiled) {
    compiled = rt::compileCuda(request.text, request.name, architecture.name);
    if (!compiled->succeeded) {
      cubin.error = "[FSDPQ-0524] NVRTC refuses its text:\n" + compiled->log;
      return;
    }
    cache.insert(cubin.hash, pack(*compiled));
  }
  PtxasReport report = readPtxasLog(compiled->log, request.symbol);
  if (!llvm::is_contained(report.kernels, request.symbol)) {
    cubin.error = "[FSDPQ-0523] its text has no kernel '" + request.symbol +
                  "' but " +
                  (report.kernels.empty()
                       ? std::string("none")
                       : "'" + llvm::join(report.kernels, "', '") + "'") +
                  "; write extern \"C\" __global__ void " + request.symbol +
                  "(...)";
    return;
  }
  cubin.code = std::move(compiled->cubin);
  cubin.resources = std::move(report.resources);
}

static void compileAll(const std::vector<CubinRequest> &requests,
                       const Architecture &architecture,
                       const std::string &cacheDir, unsigned threads,
                       std::vector<Cubin> &cubins) {
  std::string version = rt::nvrtcVersion();
  cubins.resize(requests.size());
  llvm::StringMap<size_t> firstOf; // by hash: equal texts are compiled once
  std::vector<size_t> order;
  for (auto [index, request] : llvm::enumerate(requests)) {
    cubins[index].hash = computeHash(request.text, architecture, version);
    if (firstOf.try_emplace(cubins[index].hash, index).second)
      order.push_back(index);
  }
  // Long texts take longest, and one that starts last would be waited for.
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    return requests[a].text.size() > requests[b].text.size();
  });

  CodeCache cache(cacheDir, ".cubin");
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t at; (at = next++) < order.size();) {
      Cubin &cubin = cubins[order[at]];
      try {
        compile(requests[order[at]], cache, architecture, cubin);
      } catch (const std::exception &error) {
        cubin.error = std::string("[FSDPQ-0524] ") + error.what();
      }
    }
  };
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> workers;
  for (size_t i = 1; i < std::min<size_t>(threads, order.size()); ++i)
    workers.emplace_back(work);
  work();
  workers.clear(); // waits for them
  for (Cubin &cubin : cubins)
    if (const Cubin &first = cubins[firstOf[cubin.hash]]; &first != &cubin)
      cubin = first;
}

CubinResults cuda::compileCubins(const std::vector<CubinRequest> &requests,
                                 const Architecture &architecture,
                                 const std::string &cacheDir,
                                 unsigned threads) noexcept {
  CubinResults results;
  if (requests.empty())
    return results;
  try {
    compileAll(requests, architecture, cacheDir, threads, results.cubins);
  } catch (const std::exception &error) { // there is no NVRTC
    results.cubins.clear();
    results.error = error.what();
  }
  return results;
}
