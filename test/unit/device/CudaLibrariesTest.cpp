// NVIDIA's libraries: where they are looked for, and NVRTC itself where it is.
#include "runtime/device/cuda/LibrarySearch.h"
#include "runtime/device/cuda/LibraryVersions.h"
#include "runtime/device/cuda/Nvrtc.h"
#include "runtime/support/Error.h"
#include "test/unit/device/CudaTestKernels.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <thread>
#include <unistd.h>

using namespace fsdpq::rt;
using namespace fsdpq::test;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

/// A tree of empty files, and an environment.
class LibrarySearch : public testing::Test {
protected:
  LibrarySearch()
      : root(fs::temp_directory_path() /
             ("fsdpq-cuda-search-" + std::to_string(::getpid()))) {
    fs::create_directories(root);
  }
  ~LibrarySearch() override { fs::remove_all(root); }

  void add(const std::string &file) {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << "no library\n";
  }

  SearchPlaces
  places(const std::map<std::string, std::string> &variables) const {
    return {[variables](const char *name) -> std::string {
              const auto found = variables.find(name);
              return found == variables.end() ? "" : found->second;
            },
            (root / "toolkit").string(), /*asksLoader=*/false};
  }

  /// The candidates, below the root.
  std::vector<std::string>
  found(CudaLibrary which,
        const std::map<std::string, std::string> &variables) {
    std::vector<std::string> folders, names;
    for (const Candidate &candidate :
         candidatesFor(which, places(variables), folders))
      names.push_back(fs::relative(candidate.name, root).string());
    return names;
  }

  std::string at(const std::string &folder) const {
    return (root / folder).string();
  }

  const fs::path root;
};

} // namespace

TEST_F(LibrarySearch, ANamedFolderIsFirst) {
  add("mine/libnvrtc.so.12");
  add("home/lib64/libnvrtc.so.13");
  add("toolkit/lib64/libnvrtc.so.13");
  EXPECT_THAT(found(CudaLibrary::Nvrtc, {{"FSDPQ_CUDA_PATH", at("mine")},
                                         {"CUDA_HOME", at("home")}}),
              ElementsAre("mine/libnvrtc.so.12", "home/lib64/libnvrtc.so.13",
                          "toolkit/lib64/libnvrtc.so.13"));
}

TEST_F(LibrarySearch, TheNewestVersionOfAFolderIsFirst) {
  for (const char *file : {"libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.13",
                           "libnvrtc.alt.so.13", "libnvrtc-builtins.so.13.0"})
    add(std::string("toolkit/lib64/") + file);
  EXPECT_THAT(found(CudaLibrary::Nvrtc, {}),
              ElementsAre("toolkit/lib64/libnvrtc.so.13",
                          "toolkit/lib64/libnvrtc.so.12",
                          "toolkit/lib64/libnvrtc.so"));
}

TEST_F(LibrarySearch, WheelsOfAVirtualEnvironmentAreFound) {
  // Those for CUDA 13 share a folder, older ones have one each.
  add("venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  add("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  add("venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2");
  const std::string packages = "venv/lib/python3.12/site-packages/nvidia/";
  const std::map<std::string, std::string> active = {
      {"VIRTUAL_ENV", at("venv")}};
  EXPECT_THAT(found(CudaLibrary::Nvrtc, active),
              ElementsAre(packages + "cuda_nvrtc/lib/libnvrtc.so.12",
                          packages + "cu13/lib/libnvrtc.so.13"));
  EXPECT_THAT(found(CudaLibrary::Nccl, active),
              ElementsAre(packages + "nccl/lib/libnccl.so.2"));
}

TEST_F(LibrarySearch, SoAreThoseOfThePythonOnThePath) {
  add("other/bin/tool");
  add("env/bin/python3");
  add("env/lib/python3.11/site-packages/nvidia/cu13/lib/libcublasLt.so.13");
  EXPECT_THAT(
      found(CudaLibrary::CublasLt,
            {{"PATH", at("other/bin") + ":" + at("env/bin") + "/:/nowhere"}}),
      ElementsAre("env/lib/python3.11/site-packages/nvidia/cu13/lib/"
                  "libcublasLt.so.13"));
}

TEST_F(LibrarySearch, WhatSetupFetchedIsLast) {
  add("home/.cache/fsdpq/cuda/lib/libnvrtc.so.13");
  add("cache/fsdpq/cuda/lib/libnvrtc.so.13");
  EXPECT_THAT(found(CudaLibrary::Nvrtc, {{"HOME", at("home")}}),
              ElementsAre("home/.cache/fsdpq/cuda/lib/libnvrtc.so.13"));
  EXPECT_THAT(found(CudaLibrary::Nvrtc,
                    {{"HOME", at("home")}, {"XDG_CACHE_HOME", at("cache")}}),
              ElementsAre("cache/fsdpq/cuda/lib/libnvrtc.so.13"));
}

TEST_F(LibrarySearch, TheDriverIsNotTakenFromToolkits) {
  add("toolkit/lib64/stubs/libcuda.so");
  add("toolkit/lib64/libcuda.so.1");
  add("named/libcuda.so.1");
  EXPECT_THAT(found(CudaLibrary::Driver, {{"CUDA_HOME", at("toolkit")}}),
              ElementsAre());
  EXPECT_THAT(found(CudaLibrary::Driver, {{"FSDPQ_CUDA_PATH", at("named")}}),
              ElementsAre("named/libcuda.so.1"));
}

static std::string loadError(const SearchPlaces &places) {
  try {
    SharedLibrary::load(CudaLibrary::Nvrtc, places);
  } catch (const Error &error) {
    EXPECT_EQ(error.id(), 4040);
    EXPECT_EQ(error.exitCode(), ExitCode::BadInput);
    return error.what();
  }
  return "loaded";
}

TEST_F(LibrarySearch, WhatWasTriedIsSaid) {
  const std::string message =
      loadError(places({{"FSDPQ_CUDA_PATH", at("mine")}}));
  EXPECT_THAT(message, HasSubstr("NVRTC (libnvrtc.so.13) is not to be found"));
  EXPECT_THAT(message, HasSubstr(at("mine") + "/lib64"));
  EXPECT_THAT(message, HasSubstr(at("toolkit") + "/lib64"));
  EXPECT_THAT(message, HasSubstr("nvidia-cuda-nvrtc"));
}

TEST_F(LibrarySearch, AFileThatIsNoLibraryIsNamed) {
  add("toolkit/lib64/libnvrtc.so.13");
  EXPECT_THAT(loadError(places({})),
              testing::AllOf(HasSubstr("cannot be loaded"),
                             HasSubstr(at("toolkit/lib64/libnvrtc.so.13"))));
}

//===--- NVRTC --------------------------------------------------------------//

namespace {

class Nvrtc : public testing::Test {
protected:
  void SetUp() override {
    try {
      SharedLibrary::get(CudaLibrary::Nvrtc);
    } catch (const Error &error) {
      GTEST_SKIP() << error.what();
    }
  }
};

} // namespace

TEST_F(Nvrtc, SaysItsVersion) {
  EXPECT_THAT(nvrtcVersion(), testing::MatchesRegex("[0-9]+\\.[0-9]+"));
  EXPECT_EQ(versionOf(CudaLibrary::Nvrtc), nvrtcVersion());
}

TEST_F(Nvrtc, CompilesATextAndTellsItsRegisters) {
  const NvrtcResult result =
      compileCuda(cudaText("scale_shift"), "scale_shift.cu", "sm_90a");
  ASSERT_TRUE(result.succeeded) << result.log;
  ASSERT_GT(result.cubin.size(), 64u);
  EXPECT_EQ(std::string(result.cubin.begin() + 1, result.cubin.begin() + 4),
            "ELF");
  EXPECT_THAT(result.log, HasSubstr("registers"));
}

TEST_F(Nvrtc, GivesTheErrorsOfABrokenText) {
  const NvrtcResult result =
      compileCuda("extern \"C\" __global__ void f() { undeclared = 1; }",
                  "broken.cu", "sm_90a");
  EXPECT_FALSE(result.succeeded);
  EXPECT_TRUE(result.cubin.empty());
  EXPECT_THAT(result.log, HasSubstr("broken.cu(1): error"));
  EXPECT_THAT(result.log, HasSubstr("undeclared"));
}

TEST_F(Nvrtc, AnUnknownArchitectureIsAnErrorOfTheText) {
  const NvrtcResult result =
      compileCuda(cudaText("count_visits"), "f.cu", "sm_1");
  EXPECT_FALSE(result.succeeded);
  EXPECT_THAT(result.log, HasSubstr("sm_1"));
}

TEST_F(Nvrtc, GivesTheSameBytesOnSeveralThreads) {
  const auto compile = [](const char *symbol) {
    return compileCuda(cudaText(symbol), symbol, "sm_90a").cubin;
  };
  const auto first = compile("scale_shift"), second = compile("count_visits");
  std::vector<int> same(4);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      same[static_cast<size_t>(i)] =
          compile("scale_shift") == first && compile("count_visits") == second;
    });
  threads.clear();
  EXPECT_EQ(same, std::vector<int>(4, 1));
}
