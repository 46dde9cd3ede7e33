//===- CudaCubins.cpp - Texts to cubins, their cache, what they need ------===//

#include "compiler/Target/Cuda/CubinCompiler.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

using namespace fsdpq;
using namespace fsdpq::cuda;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace fs = std::filesystem;

namespace {

const Architecture hopper = *Architecture::parse("sm_90a");

//===--- What ptxas says ----------------------------------------------------//

// Of two kernels and of a function that was not inlined into the second.
const char sampleLog[] = R"(
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to x in function 'wide'
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'narrow' for 'sm_90a'
ptxas info    : Function properties for narrow
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers
ptxas info    : Compiling entry function 'wide' for 'sm_90a'
ptxas info    : Function properties for wide
ptxas         .     48 bytes stack frame, 76 bytes spill stores, 60 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 48 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 8.459 ms
ptxas info    : Function properties for helper
ptxas         .     0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
)";

TEST(CudaResources, OfALog) {
  const PtxasReport report = readPtxasLog(sampleLog, "wide");
  EXPECT_THAT(report.kernels, ElementsAre("narrow", "wide"));
  EXPECT_EQ(report.resources.registers, 255u);
  EXPECT_EQ(report.resources.spillBytes, 148u);
  EXPECT_EQ(report.resources.staticSharedBytes, 1024u);
  EXPECT_THAT(report.resources.warnings, ElementsAre(HasSubstr("(C7510)")));

  const Resources narrow = readPtxasLog(sampleLog, "narrow").resources;
  EXPECT_EQ(narrow.registers, 12u);
  EXPECT_EQ(narrow.spillBytes, 0u);
  EXPECT_EQ(narrow.staticSharedBytes, 0u);
}

TEST(CudaResources, OfNoLog) {
  const PtxasReport report = readPtxasLog("", "k");
  EXPECT_THAT(report.kernels, IsEmpty());
  EXPECT_EQ(report.resources.registers, 0u);
}

TEST(CudaResources, WhatCannotBeLaunched) {
  auto check = [](unsigned threads, unsigned registers, unsigned dynamicBytes,
                  unsigned staticBytes) {
    LaunchShape launch;
    launch.threads = threads;
    launch.sharedBytes = dynamicBytes;
    Resources resources;
    resources.registers = registers;
    resources.staticSharedBytes = staticBytes;
    return checkLaunch(launch, resources, hopper);
  };
  EXPECT_THAT(check(384, 168, 227 * 1024 - 1024, 1024), IsEmpty());
  EXPECT_THAT(check(1024, 64, 0, 0), IsEmpty());
  EXPECT_THAT(check(1024, 65, 0, 0),
              ElementsAre(HasSubstr("[FSDPQ-0520] 1024 threads of 65 registers "
                                    "need 73728 registers")));
  EXPECT_THAT(check(33, 255, 0, 0), IsEmpty());
  EXPECT_THAT(check(128, 32, 227 * 1024, 16),
              ElementsAre(HasSubstr("[FSDPQ-0521] its blocks need 232464 bytes "
                                    "of shared memory (232448 of them dynamic), "
                                    "and sm_90a has 232448")));
  EXPECT_THAT(check(0, 32, 0, 0), ElementsAre(HasSubstr("[FSDPQ-0522]")));
  EXPECT_THAT(check(1056, 255, 1 << 20, 0),
              ElementsAre(HasSubstr("[FSDPQ-0522]"), HasSubstr("[FSDPQ-0520]"),
                          HasSubstr("[FSDPQ-0521]")));
}

//===--- With NVRTC ---------------------------------------------------------//

class CudaCubins : public testing::Test {
protected:
  void SetUp() override {
    const CubinResults probe = compileCubins({request(0)}, hopper, "", 1);
    if (!probe.error.empty())
      GTEST_SKIP() << probe.error;
    std::string name = (fs::temp_directory_path() / "cubins.XXXXXX").string();
    ASSERT_TRUE(mkdtemp(name.data()));
    folder = fs::path(name);
    cache = (folder / "cache").string();
  }
  void TearDown() override {
    if (!folder.empty())
      fs::remove_all(folder);
  }

  /// Adds a number to an element: the text depends on it.
  static CubinRequest request(int number) {
    return {"add.cu", "add",
            "extern \"C\" __global__ void __launch_bounds__(32)\n"
            "add(float *x, long long items) {\n"
            "  x[threadIdx.x] += " +
                std::to_string(number) + ".f;\n}\n"};
  }

  std::vector<Cubin> compile(const std::vector<CubinRequest> &requests,
                             unsigned threads = 2) const {
    CubinResults results = compileCubins(requests, hopper, cache, threads);
    EXPECT_EQ(results.error, "");
    EXPECT_EQ(results.cubins.size(), requests.size());
    return std::move(results.cubins);
  }

  std::vector<fs::path> cached() const {
    std::vector<fs::path> files;
    for (const auto &entry : fs::directory_iterator(cache))
      files.push_back(entry.path());
    return files;
  }

  fs::path folder;
  std::string cache;
};

TEST_F(CudaCubins, CompileOnce) {
  const auto first = compile({request(1), request(2), request(1)});
  for (const Cubin &cubin : first) {
    EXPECT_EQ(cubin.error, "");
    EXPECT_FALSE(cubin.fromCache);
    ASSERT_GT(cubin.code.size(), 4u);
    EXPECT_EQ(std::string(cubin.code.begin(), cubin.code.begin() + 4),
              "\x7f"
              "ELF");
    EXPECT_GT(cubin.resources.registers, 0u);
    EXPECT_EQ(cubin.resources.spillBytes, 0u);
  }
  EXPECT_EQ(first[0].hash, first[2].hash);
  EXPECT_NE(first[0].hash, first[1].hash);
  EXPECT_EQ(first[0].code, first[2].code);
  EXPECT_EQ(cached().size(), 2u);
  EXPECT_EQ(fs::status(cache).permissions(), fs::perms::owner_all);

  const auto second = compile({request(2), request(1)});
  EXPECT_TRUE(second[0].fromCache);
  EXPECT_TRUE(second[1].fromCache);
  EXPECT_EQ(second[0].code, first[1].code);
  EXPECT_EQ(second[1].resources.registers, first[0].resources.registers);
}

TEST_F(CudaCubins, HashesTellArchitecturesApart) {
  const auto ours = compile({request(1)});
  const CubinResults other = compileCubins(
      {request(1)}, *Architecture::parse("sm_80"), cache, 1);
  ASSERT_EQ(other.cubins.size(), 1u);
  EXPECT_NE(other.cubins[0].hash, ours[0].hash);
  EXPECT_FALSE(other.cubins[0].fromCache);
}

TEST_F(CudaCubins, DamagedFilesAreReplaced) {
  const auto first = compile({request(1)});
  const fs::path file = cached().at(0);
  const uintmax_t bytes = fs::file_size(file);
  for (uintmax_t size : {bytes - 1, bytes / 2, uintmax_t(3), uintmax_t(0)}) {
    fs::resize_file(file, size);
    const auto again = compile({request(1)});
    EXPECT_FALSE(again[0].fromCache) << size;
    EXPECT_EQ(again[0].code, first[0].code);
    EXPECT_EQ(fs::file_size(file), bytes);
  }
  std::fstream(file, std::ios::in | std::ios::out).seekp(bytes / 2).put('~');
  EXPECT_FALSE(compile({request(1)})[0].fromCache);
  EXPECT_TRUE(compile({request(1)})[0].fromCache);
}

TEST_F(CudaCubins, ACacheThatCannotBeUsedCostsTimeOnly) {
  std::ofstream(folder / "file") << "in the way";
  cache = (folder / "file" / "cache").string();
  EXPECT_EQ(compile({request(1)})[0].error, "");
  cache = "";
  EXPECT_EQ(compile({request(1)})[0].error, "");
}

TEST_F(CudaCubins, ManyShareACache) {
  std::vector<CubinRequest> requests;
  for (int i = 0; i < 6; ++i)
    requests.push_back(request(i));
  std::atomic<int> failures = 0;
  {
    std::vector<std::jthread> others;
    for (int i = 0; i < 3; ++i)
      others.emplace_back([&] {
        for (const Cubin &cubin :
             compileCubins(requests, hopper, cache, 2).cubins)
          failures += !cubin.error.empty() || cubin.code.empty();
      });
  }
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(cached().size(), requests.size()); // no file was left aside
  for (const Cubin &cubin : compile(requests))
    EXPECT_TRUE(cubin.fromCache);
}

TEST_F(CudaCubins, AllErrorsAreReported) {
  CubinRequest broken = request(1), nameless = request(2);
  broken.text += "\nint f() { return wrong; }\n";
  broken.name = "broken.cu";
  nameless.symbol = "other";
  const auto cubins = compile({broken, request(3), nameless});
  EXPECT_THAT(cubins[0].error, HasSubstr("[FSDPQ-0524]"));
  EXPECT_THAT(cubins[0].error, HasSubstr("broken.cu(6): error: identifier "
                                         "\"wrong\" is undefined"));
  EXPECT_EQ(cubins[1].error, "");
  EXPECT_THAT(cubins[2].error,
              HasSubstr("[FSDPQ-0523] its text has no kernel 'other' but "
                        "'add'"));
  EXPECT_TRUE(cubins[2].code.empty());
}

TEST_F(CudaCubins, SpillsAndSharedMemoryAreSeen) {
  CubinRequest request{"k.cu", "k",
                       "extern \"C\" __global__ void\n"
                       "__launch_bounds__(1024, 2) k(float *x, long long n) {\n"
                       "  __shared__ float s[100];\n"
                       "  float v[64];\n"
                       "#pragma unroll\n"
                       "  for (int i = 0; i < 64; ++i)\n"
                       "    v[i] = x[i * 1024 + threadIdx.x];\n"
                       "  s[threadIdx.x % 100] = v[0];\n"
                       "  __syncthreads();\n"
                       "#pragma unroll\n"
                       "  for (int i = 0; i < 64; ++i)\n"
                       "    x[i * 1024 + threadIdx.x] = v[63 - i] * s[i];\n"
                       "}\n"};
  const Resources resources = compile({request})[0].resources;
  EXPECT_LE(resources.registers, 32u);
  EXPECT_GT(resources.spillBytes, 0u);
  EXPECT_EQ(resources.staticSharedBytes, 400u);
}

} // namespace
