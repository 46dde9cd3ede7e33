#include "runtime/io/Gguf.h"
#include "TestFiles.h"

#include <chrono>
#include <random>

using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using nlohmann::json;

namespace {

enum : uint32_t { // the format's numbers
  U8 = 0,
  I8 = 1,
  U16 = 2,
  I16 = 3,
  U32 = 4,
  I32 = 5,
  Float32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  U64 = 10,
  I64 = 11,
  Float64 = 12,
};
enum : uint32_t {
  TypeF32 = 0,
  TypeF16 = 1,
  TypeQ40 = 2,
  TypeQ41 = 3,
  TypeQ80 = 8,
  TypeQ6K = 14,
  TypeBF16 = 30
};

std::string text(const std::string &value) {
  return bytesOf<uint64_t>(value.size()) + value;
}

/// Builds a file piece by piece, so that a test can put anything anywhere.
struct Builder {
  std::string metadata, tensors, data;
  uint64_t metadataCount = 0, tensorCount = 0;
  uint32_t version = 3;
  size_t alignment = 32;

  Builder &meta(const std::string &key, uint32_t type,
                const std::string &value) {
    metadata += text(key) + bytesOf(type) + value;
    ++metadataCount;
    return *this;
  }
  Builder &tensor(const std::string &name, std::vector<uint64_t> innermostFirst,
                  uint32_t type, uint64_t offset) {
    tensors +=
        text(name) + bytesOf(static_cast<uint32_t>(innermostFirst.size()));
    for (uint64_t dimension : innermostFirst)
      tensors += bytesOf(dimension);
    tensors += bytesOf(type) + bytesOf(offset);
    ++tensorCount;
    return *this;
  }
  /// Puts a tensor with its bytes at the next aligned place.
  Builder &stored(const std::string &name, std::vector<uint64_t> dimensions,
                  uint32_t type, const std::string &bytes) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    tensor(name, dimensions, type, data.size());
    data += bytes;
    return *this;
  }
  std::string build() const {
    std::string file = "GGUF" + bytesOf(version) + bytesOf(tensorCount) +
                       bytesOf(metadataCount) + metadata + tensors;
    if (!data.empty())
      file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data;
  }
};

std::string floats(std::vector<float> values) {
  std::string bytes;
  for (float value : values)
    bytes += bytesOf(value);
  return bytes;
}

std::vector<float> readAll(const TensorSource &source,
                           const std::string &name) {
  const TensorInfo *tensor = source.find(name);
  std::vector<float> values(static_cast<size_t>(tensor->elements()));
  source.readF32(*tensor, 0, tensor->elements(), values.data());
  return values;
}

class GgufTest : public testing::Test {
protected:
  std::unique_ptr<GgufFile> open(const std::string &bytes) {
    return openGguf(scratch.write("model.gguf", bytes));
  }
  int openError(const std::string &bytes, const std::string &fragment = "") {
    return errorId([&] { open(bytes); }, fragment);
  }
  ScratchFolder scratch;
};

TEST_F(GgufTest, AllKindsOfMetadata) {
  std::string strings =
      bytesOf(String) + bytesOf<uint64_t>(3) + text("a") + text("") + text("ç");
  std::string nested = bytesOf(Array) + bytesOf<uint64_t>(2) + bytesOf(U8) +
                       bytesOf<uint64_t>(2) + "\x01\x02" + bytesOf(Bool) +
                       bytesOf<uint64_t>(1) + "\x01";
  auto file = open(Builder()
                       .meta("u8", U8, "\xff")
                       .meta("i8", I8, "\xff")
                       .meta("u16", U16, bytesOf<uint16_t>(65535))
                       .meta("i16", I16, bytesOf<int16_t>(-2))
                       .meta("u32", U32, bytesOf<uint32_t>(4294967295))
                       .meta("i32", I32, bytesOf<int32_t>(-3))
                       .meta("f32", Float32, bytesOf(1e-5f))
                       .meta("yes", Bool, "\x01")
                       .meta("no", Bool, std::string(1, '\0'))
                       .meta("llama.name", String, text("value"))
                       .meta("strings", Array, strings)
                       .meta("nested", Array, nested)
                       .meta("u64", U64, bytesOf(UINT64_MAX))
                       .meta("i64", I64, bytesOf(INT64_MIN))
                       .meta("f64", Float64, bytesOf(0.1))
                       .build());
  json expected = {{"u8", 255},
                   {"i8", -1},
                   {"u16", 65535},
                   {"i16", -2},
                   {"u32", 4294967295},
                   {"i32", -3},
                   {"f32", static_cast<double>(1e-5f)},
                   {"yes", true},
                   {"no", false},
                   {"llama.name", "value"},
                   {"strings", {"a", "", "ç"}},
                   {"nested", json::array({{1, 2}, json::array({true})})},
                   {"u64", UINT64_MAX},
                   {"i64", INT64_MIN},
                   {"f64", 0.1}};
  EXPECT_EQ(file->metadata(), expected);
  EXPECT_TRUE(file->names().empty());
}

TEST_F(GgufTest, TensorsOfAllReadableKinds) {
  std::string q40 = bytesOf<uint16_t>(0x3800), q41 = q40, q80 = q40;
  q41 += bytesOf<uint16_t>(0xc200);
  for (int j = 0; j < 16; ++j) {
    q40 += static_cast<char>(j << 4 | (15 - j));
    q41 += static_cast<char>(j << 4 | (15 - j));
  }
  for (int j = 0; j < 32; ++j)
    q80 += static_cast<char>(j - 16);
  auto file =
      open(Builder()
               .stored("matrix", {3, 2}, TypeF32, floats({1, 2, 3, 4, 5, 6}))
               .stored("half", {2}, TypeF16,
                       bytesOf<uint16_t>(0x3c00) + bytesOf<uint16_t>(0xc000))
               .stored("brain", {1}, TypeBF16, bytesOf<uint16_t>(0x4000))
               .stored("q4_0", {32, 2}, TypeQ40, q40 + q40)
               .stored("q4_1", {32}, TypeQ41, q41)
               .stored("q8_0", {32}, TypeQ80, q80)
               .build());
  EXPECT_EQ(file->find("matrix")->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(readAll(*file, "matrix"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(readAll(*file, "half"), (std::vector<float>{1, -2}));
  EXPECT_EQ(readAll(*file, "brain"), (std::vector<float>{2}));
  EXPECT_EQ(file->find("q4_0")->dtype, DType::Q4_0);
  EXPECT_EQ(file->find("q4_0")->shape, (std::vector<int64_t>{2, 32}));
  std::vector<float> values = readAll(*file, "q4_0");
  EXPECT_EQ(values[0], 3.5f);
  EXPECT_EQ(values[16], -4.0f);
  EXPECT_EQ(values[63], 3.5f);
  values = readAll(*file, "q4_1");
  EXPECT_EQ(values[0], 4.5f);
  EXPECT_EQ(values[17], -2.5f);
  values = readAll(*file, "q8_0");
  EXPECT_EQ(values[0], -8.0f);
  EXPECT_EQ(values[31], 7.5f);
  float piece[5];
  file->readF32(*file->find("q4_0"), 30, 35, piece);
  EXPECT_EQ(piece[0], 3.0f);
  EXPECT_EQ(piece[2], 3.5f);
}

TEST_F(GgufTest, VersionTwoAndOtherAlignment) {
  Builder builder;
  builder.version = 2;
  builder.alignment = 8;
  builder.meta("general.alignment", U32, bytesOf<uint32_t>(8));
  builder.stored("a", {3}, TypeF32, floats({1, 2, 3}));
  builder.stored("b", {1}, TypeF32, floats({4}));
  auto file = open(builder.build());
  EXPECT_EQ(file->find("b")->place.offset - file->find("a")->place.offset, 16u);
  EXPECT_EQ(readAll(*file, "b"), (std::vector<float>{4}));
}

TEST_F(GgufTest, UnreadableTypesOnlyFailWhenRead) {
  auto file = open(Builder()
                       .stored("k", {256}, TypeQ6K, std::string(210, 'x'))
                       .stored("new", {256}, 99, std::string(32, 'x'))
                       .stored("f", {1}, TypeF32, floats({8}))
                       .build());
  EXPECT_EQ(readAll(*file, "f"), (std::vector<float>{8}));
  EXPECT_EQ(errorId([&] { readAll(*file, "k"); }, "Q6_K"), 1007);
  EXPECT_EQ(errorId([&] { readAll(*file, "new"); }, "ggml type 99"), 1007);
}

TEST_F(GgufTest, NotAGgufFile) {
  EXPECT_EQ(openError(""), 1101);
  EXPECT_EQ(openError("GGU"), 1101);
  EXPECT_EQ(openError("ggml" + std::string(40, '\0')), 1101);
  Builder builder;
  for (uint32_t version : {0u, 1u, 4u, 0x03000000u}) {
    builder.version = version;
    EXPECT_EQ(openError(builder.build()), 1101);
  }
}

TEST_F(GgufTest, HugeCountsAreRefusedWithoutAllocation) {
  for (uint64_t count : {uint64_t{1} << 20, uint64_t{1} << 40, UINT64_MAX}) {
    Builder builder;
    builder.tensorCount = count;
    EXPECT_EQ(openError(builder.build()), 1102);
    builder.tensorCount = 0;
    builder.metadataCount = count;
    EXPECT_EQ(openError(builder.build()), 1102);
    for (uint32_t type : {U8, U64, String, Array})
      EXPECT_EQ(openError(Builder()
                              .meta("k", Array, bytesOf(type) + bytesOf(count))
                              .build()),
                1102);
    EXPECT_EQ(openError(Builder().meta("k", String, bytesOf(count)).build()),
              1102);
  }
  // The bytes are there, but each would take 16 in memory.
  const uint64_t count = (uint64_t{1} << 25) + 1;
  EXPECT_EQ(openError(Builder()
                          .meta("k", Array,
                                bytesOf(U8) + bytesOf(count) +
                                    std::string(count, 'x'))
                          .build(),
                      "values in arrays"),
            1103);
}

TEST_F(GgufTest, BadMetadata) {
  EXPECT_EQ(openError(Builder().meta("k", 13, "xxxx").build(), "type 13"),
            1103);
  EXPECT_EQ(openError(Builder().meta("k", Bool, "\x02").build()), 1103);
  EXPECT_EQ(openError(Builder().meta("k", U8, "1").meta("k", U8, "2").build(),
                      "twice"),
            1103);
  std::string nested;
  for (int depth = 0; depth < 5000; ++depth)
    nested += bytesOf(Array) + bytesOf<uint64_t>(1);
  EXPECT_EQ(openError(Builder().meta("k", Array, nested).build(), "nested"),
            1103);
  EXPECT_EQ(
      openError(Builder().meta(std::string(70'000, 'k'), U8, "1").build()),
      1103);
  for (uint32_t alignment : {0u, 3u, 48u, 0x80000000u})
    EXPECT_EQ(openError(Builder()
                            .meta("general.alignment", U32, bytesOf(alignment))
                            .stored("f", {1}, TypeF32, floats({8}))
                            .build()),
              1103);
  EXPECT_EQ(
      openError(
          Builder().meta("general.alignment", String, text("32")).build()),
      1103);
}

TEST_F(GgufTest, BadTensors) {
  auto one = [&](std::vector<uint64_t> dimensions, uint32_t type,
                 uint64_t offset, const std::string &fragment = "") {
    Builder builder;
    builder.tensor("t", dimensions, type, offset);
    builder.data = std::string(64, 'x');
    return openError(builder.build(), fragment);
  };
  EXPECT_EQ(one({16}, TypeF32, 0), 0);
  EXPECT_EQ(one({8}, TypeF32, 32), 0);
  EXPECT_EQ(one({}, TypeF32, 0), 0);
  EXPECT_EQ(one({17}, TypeF32, 0), 1105);
  EXPECT_EQ(one({9}, TypeF32, 32), 1105);
  EXPECT_EQ(one({1}, TypeF32, 64), 1105);
  EXPECT_EQ(one({1}, TypeF32, 4, "aligned"), 1105);
  EXPECT_EQ(one({1}, TypeF32, UINT64_MAX - 31), 1105);
  EXPECT_EQ(one({1}, TypeQ6K, 96), 1105);
  EXPECT_EQ(one({1, 1, 1, 1, 1}, TypeF32, 0, "5 dimensions"), 1104);
  EXPECT_EQ(one({UINT64_MAX}, TypeF32, 0), 1104);
  EXPECT_EQ(one({uint64_t{1} << 32, uint64_t{1} << 32}, TypeF32, 0), 1104);
  EXPECT_EQ(one({uint64_t{1} << 62}, TypeF32, 0), 1104); // bytes overflow
  EXPECT_EQ(one({(uint64_t{1} << 62) + 4}, TypeF32, 0), 1104);
  EXPECT_EQ(one({33}, TypeQ40, 0, "whole blocks"), 1104);
  EXPECT_EQ(one({16, 2}, TypeQ40, 0), 1104);
  EXPECT_EQ(one({}, TypeQ40, 0), 1104);

  Builder overlapping;
  overlapping.tensor("a", {16}, TypeF32, 0).tensor("b", {8}, TypeF32, 32);
  overlapping.data = std::string(64, 'x');
  EXPECT_EQ(openError(overlapping.build(), "overlaps"), 1105);
  EXPECT_EQ(openError(Builder()
                          .stored("a", {1}, TypeF32, floats({1}))
                          .stored("a", {1}, TypeF32, floats({1}))
                          .build(),
                      "two tensors"),
            1104);
}

std::string smallFile() {
  return Builder()
      .meta("general.architecture", String, text("llama"))
      .meta("tokens", Array,
            bytesOf(String) + bytesOf<uint64_t>(2) + text("a") + text("b"))
      .meta("scores", Array,
            bytesOf(Float32) + bytesOf<uint64_t>(2) + floats({1, 2}))
      .stored("a", {32, 1}, TypeQ40, std::string(18, 'q'))
      .stored("b", {2, 2}, TypeF32, floats({1, 2, 3, 4}))
      .build();
}

TEST_F(GgufTest, EveryTruncationIsRefused) {
  const std::string whole = smallFile();
  EXPECT_EQ(openError(whole), 0);
  for (size_t size = 0; size < whole.size(); ++size)
    ASSERT_NE(openError(whole.substr(0, size)), 0) << size;
}

TEST_F(GgufTest, RandomChangesDoNoHarm) {
  const std::string whole = smallFile();
  std::mt19937 random(99);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    for (int change = 0; change <= round % 4; ++change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    try {
      auto file = open(bytes);
      for (const std::string &name : file->names())
        if (file->find(name)->dtype != DType::Other)
          readAll(*file, name);
    } catch (const Error &) {
    }
  }
}

TEST_F(GgufTest, LargeVocabulariesAreFast) {
  constexpr uint64_t count = 150'000;
  std::string tokens = bytesOf(String) + bytesOf(count);
  for (uint64_t i = 0; i < count; ++i)
    tokens += text("token" + std::to_string(i));
  const std::string bytes = Builder().meta("tokens", Array, tokens).build();
  auto start = std::chrono::steady_clock::now();
  auto file = open(bytes);
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  EXPECT_EQ(file->metadata()["tokens"][count - 1], "token149999");
  EXPECT_LT(seconds.count(), 2.0); // 0.02 s; generous for a sanitised build
}

TEST(RopeRows, InvertsTheConvertersOrder) {
  // Two heads of six rows, two columns; each element holds its row in Hugging
  // Face's order and its column.
  constexpr int64_t heads = 2, headRows = 6, cols = 2;
  std::vector<float> expected, stored(heads * headRows * cols);
  for (int64_t row = 0; row < heads * headRows; ++row)
    for (int64_t col = 0; col < cols; ++col)
      expected.push_back(static_cast<float>(10 * row + col));
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t part = 0; part < 2; ++part)
      for (int64_t i = 0; i < headRows / 2; ++i)
        for (int64_t col = 0; col < cols; ++col)
          stored[static_cast<size_t>((head * headRows + i * 2 + part) * cols +
                                     col)] =
              expected[static_cast<size_t>(
                  (head * headRows + part * headRows / 2 + i) * cols + col)];
  EXPECT_EQ(stored[2], 30.0f); // second stored row: Hugging Face's row 3
  unpermuteRopeRows(stored.data(), heads * headRows, cols, heads);
  EXPECT_EQ(stored, expected);
}

TEST(RopeRows, RefusesOddHeads) {
  float weights[6] = {};
  for (int64_t heads : {0, -1, 2, 4})
    EXPECT_EQ(errorId([&] { unpermuteRopeRows(weights, 6, 1, heads); }), 1106);
}

} // namespace
