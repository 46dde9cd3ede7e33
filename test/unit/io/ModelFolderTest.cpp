#include "runtime/io/ModelFolder.h"
#include "TestFiles.h"
#include "runtime/io/HubCache.h"
#include "runtime/io/Safetensors.h"

#include <cstdlib>
#include <map>
#include <optional>

using namespace fsdpq::rt;
using namespace fsdpq::rt::test;

namespace {

constexpr const char *cacheVariables[] = {"HF_HUB_CACHE",
                                          "HUGGINGFACE_HUB_CACHE", "HF_HOME",
                                          "XDG_CACHE_HOME", "HOME"};

class ModelFolderTest : public testing::Test {
protected:
  ModelFolderTest() {
    for (const char *name : cacheVariables) {
      if (const char *value = std::getenv(name))
        saved[name] = value;
      ::unsetenv(name);
    }
    ::setenv("HF_HUB_CACHE", scratch.path("cache").c_str(), 1);
  }
  ~ModelFolderTest() override {
    for (const char *name : cacheVariables) {
      ::unsetenv(name);
      if (saved.contains(name))
        ::setenv(name, saved[name].c_str(), 1);
    }
  }

  void writeModel(const std::string &folder, float value) {
    scratch.write(folder + "/config.json", R"({"model_type":"llama"})");
    writeSafetensors(scratch.path(folder + "/model.safetensors"),
                     {{"w", DType::F32, {1}, &value}});
  }
  static float weight(const ModelFiles &model) {
    float value;
    model.tensors->readF32(*model.tensors->find("w"), 0, 1, &value);
    return value;
  }
  int openError(const std::string &name, const std::string &fragment,
                const std::string &revision = "") {
    return errorId([&] { openModel(name, revision); }, fragment);
  }

  ScratchFolder scratch;
  std::map<std::string, std::string> saved;
};

TEST_F(ModelFolderTest, LocalFolder) {
  writeModel("local", 5);
  ModelFiles model = openModel(scratch.path("local"), "");
  EXPECT_EQ(model.config["model_type"], "llama");
  EXPECT_FALSE(model.isGguf);
  EXPECT_EQ(model.path, scratch.path("local"));
  EXPECT_EQ(weight(model), 5.0f);
}

TEST_F(ModelFolderTest, GgufFile) {
  std::string path = scratch.write(
      "m.gguf", "GGUF" + bytesOf<uint32_t>(3) + bytesOf<uint64_t>(0) +
                    bytesOf<uint64_t>(1) + bytesOf<uint64_t>(1) + "k" +
                    bytesOf<uint32_t>(4) + bytesOf<uint32_t>(7));
  ModelFiles model = openModel(path);
  EXPECT_TRUE(model.isGguf);
  EXPECT_TRUE(model.config.is_null());
  EXPECT_EQ(model.ggufMetadata["k"], 7);
  EXPECT_EQ(model.path, path);
}

TEST_F(ModelFolderTest, IncompleteFolders) {
  scratch.write("a/tokenizer.json", "{}");
  EXPECT_EQ(openError(scratch.path("a"), "config.json"), 1213);
  scratch.write("a/m.gguf", "x");
  EXPECT_EQ(openError(scratch.path("a"), "name its .gguf file"), 1213);
  scratch.write("b/config.json", "{}");
  EXPECT_EQ(openError(scratch.path("b"), "model.safetensors"), 1213);
  scratch.write("b/pytorch_model.bin", "x");
  EXPECT_EQ(openError(scratch.path("b"), "safetensors"), 1214);
  writeModel("c", 1);
  scratch.write("c/config.json", "[1]");
  EXPECT_EQ(openError(scratch.path("c"), "not an object"), 1205);
  scratch.write("c/config.json", "{");
  EXPECT_EQ(openError(scratch.path("c"), "config.json"), 1201);
  EXPECT_EQ(openError(scratch.path("c/model.safetensors"), "config.json"),
            1214);
  EXPECT_EQ(openError(scratch.path("none"), "no file or folder"), 1211);
  EXPECT_EQ(openError("./org/name", "no file or folder"), 1211);
  EXPECT_EQ(openError("none.gguf", "no file or folder"), 1211);
}

TEST_F(ModelFolderTest, HubCache) {
  const std::string repository = "cache/models--acme--Tiny-1.5";
  writeModel(repository + "/snapshots/abc123", 1);
  writeModel(repository + "/snapshots/def456", 2);
  scratch.write(repository + "/refs/main", "abc123\n");
  scratch.write(repository + "/refs/refs/pr/3", "def456");
  EXPECT_EQ(weight(openModel("acme/Tiny-1.5")), 1.0f);
  EXPECT_EQ(weight(openModel("acme/Tiny-1.5", "main")), 1.0f);
  EXPECT_EQ(weight(openModel("acme/Tiny-1.5", "refs/pr/3")), 2.0f);
  EXPECT_EQ(weight(openModel("acme/Tiny-1.5", "def456")), 2.0f);
  EXPECT_EQ(openModel("acme/Tiny-1.5").path,
            scratch.path(repository + "/snapshots/abc123"));

  EXPECT_EQ(openError("acme/other", "hf download acme/other"), 1212);
  EXPECT_EQ(openError("gpt2", "hf download gpt2"), 1212);
  EXPECT_EQ(openError("acme/Tiny-1.5",
                      "hf download acme/Tiny-1.5 --revision v2", "v2"),
            1212);
  scratch.write(repository + "/refs/v3", "0123");
  EXPECT_EQ(openError("acme/Tiny-1.5", "--revision v3", "v3"), 1212);
  scratch.write(repository + "/snapshots/0123/README.md", "");
  EXPECT_EQ(
      openError("acme/Tiny-1.5", "complete the download: hf download", "v3"),
      1213);
}

TEST_F(ModelFolderTest, CacheNamesCannotLeaveTheCache) {
  writeModel("cache/outside", 1);
  writeModel("cache/models--a--b/snapshots/x", 1);
  EXPECT_FALSE(isHubName("../x"));
  EXPECT_FALSE(isHubName("a/b/c"));
  EXPECT_FALSE(isHubName("a--b"));
  EXPECT_FALSE(isHubName("a/"));
  EXPECT_FALSE(isHubName("-x/y"));
  EXPECT_FALSE(isHubName("a b"));
  EXPECT_EQ(openError("a/b", "hf download", "../../outside"), 1212);
  EXPECT_EQ(openError("a/b", "hf download", "/etc"), 1212);
  scratch.write("cache/models--a--b/refs/main", "../../outside");
  EXPECT_EQ(openError("a/b", "hf download"), 1212);
}

TEST_F(ModelFolderTest, CacheFolderFromTheEnvironment) {
  ::setenv("HUGGINGFACE_HUB_CACHE", "/old", 1);
  ::setenv("HF_HOME", "/hf", 1);
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(hubCacheFolder(), scratch.path("cache"));
  ::setenv("HF_HUB_CACHE", "~/models", 1);
  EXPECT_EQ(hubCacheFolder(), "/home/me/models");
  ::setenv("HF_HUB_CACHE", "", 1);
  EXPECT_EQ(hubCacheFolder(), "/old");
  ::unsetenv("HUGGINGFACE_HUB_CACHE");
  EXPECT_EQ(hubCacheFolder(), "/hf/hub");
  ::unsetenv("HF_HOME");
  EXPECT_EQ(hubCacheFolder(), "/xdg/huggingface/hub");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(hubCacheFolder(), "/home/me/.cache/huggingface/hub");
}

} // namespace
