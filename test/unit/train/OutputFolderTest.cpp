#include "tools/fsdpq-run/OutputFolder.h"

#include "test/unit/io/TestFiles.h"
#include "tools/fsdpq-run/Places.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace fsdpq::run;
using namespace fsdpq::rt::test;

TEST(OutputFolder, ResultsAreNotOverwrittenUnasked) {
  ScratchFolder scratch;
  const std::string path = scratch.path("a/b");
  {
    OutputFolder folder(path, false);
    EXPECT_FALSE(std::filesystem::exists(path)); // nothing is touched
    folder.open();
    EXPECT_TRUE(std::filesystem::is_directory(path));
    EXPECT_EQ(folder.file("x"), path + "/x");
  }
  for (const char *result :
       {"adapter_model.safetensors", "model.safetensors", "metrics.jsonl"}) {
    scratch.write(std::string("a/b/") + result, "");
    EXPECT_EQ(errorId([&] { OutputFolder(path, false); }, result), 6021);
    OutputFolder(path, true).open();
    std::filesystem::remove(path + "/" + result);
  }
}

TEST(OutputFolder, OneRunAtATime) {
  ScratchFolder scratch;
  OutputFolder second(scratch.path(), false);
  {
    OutputFolder first(scratch.path(), false);
    first.open();
    EXPECT_EQ(errorId([&] { second.open(); }), 6022);
  }
  second.open();
}

TEST(OutputFolder, PlaceThatIsAFile) {
  ScratchFolder scratch;
  const std::string file = scratch.write("file", "");
  EXPECT_EQ(errorId([&] { OutputFolder(file, false).open(); }), 1301);
  EXPECT_EQ(errorId([&] { OutputFolder(file + "/x", false).open(); }), 1301);
}

TEST(Places, VariablesAndOptions) {
  ::setenv("FSDPQ_CACHE", "/some/cache", 1);
  EXPECT_EQ(kernelCacheFolder(), "/some/cache");
  ::unsetenv("FSDPQ_CACHE");
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(kernelCacheFolder(), "/home/someone/.cache/fsdpq/kernels");
  ::setenv("FSDPQ_MODELS", "/some/models", 1);
  EXPECT_EQ(modelsPlace(""), "/some/models");
  EXPECT_EQ(modelsPlace("mine.mlir"), "mine.mlir");
  ::unsetenv("FSDPQ_MODELS");
}

TEST(Places, FilesThatCannotBeRead) {
  ScratchFolder scratch;
  requireFile(scratch.write("rows.jsonl", ""), "--dataset");
  EXPECT_EQ(errorId([&] { requireFile(scratch.path(), "--dataset"); },
                    "--dataset names a folder"),
            6029);
  EXPECT_EQ(errorId([&] { requireFile(scratch.path("no"), "--plan"); },
                    "--plan cannot be read"),
            6029);
}
