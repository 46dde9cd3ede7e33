#include "runtime/io/Safetensors.h"
#include "TestFiles.h"

#include <csignal>
#include <random>
#include <sys/resource.h>

using namespace fsdpq::rt;
using namespace fsdpq::rt::test;

namespace {

std::string makeFile(const std::string &header, const std::string &data = "") {
  return bytesOf<uint64_t>(header.size()) + header + data;
}

/// One tensor "t" with these fields and 8 bytes of data.
std::string makeEntry(const std::string &fields) {
  return makeFile("{\"t\":{" + fields + "}}", std::string(8, 'x'));
}

std::vector<float> readAll(const TensorSource &source,
                           const std::string &name) {
  const TensorInfo *tensor = source.find(name);
  std::vector<float> values(static_cast<size_t>(tensor->elements()));
  source.readF32(*tensor, 0, tensor->elements(), values.data());
  return values;
}

/// Opens the file and reads whatever it holds; errors are fine, crashes and
/// sanitiser reports are not.
void readEverything(const std::string &path) {
  try {
    auto source = openSafetensors(path);
    for (const std::string &name : source->names())
      if (source->find(name)->dtype != DType::Other)
        readAll(*source, name);
  } catch (const Error &) {
  }
}

class SafetensorsTest : public testing::Test {
protected:
  int openError(const std::string &bytes, const std::string &fragment = "") {
    std::string path = scratch.write("hostile.safetensors", bytes);
    return errorId([&] { openSafetensors(path); }, fragment);
  }

  /// F32 "a" = {1, 2}, U8 "b" = {7}.
  std::string writeSmall(const std::string &name) {
    const float a[] = {1, 2};
    const uint8_t b[] = {7};
    writeSafetensors(scratch.path(name),
                     {{"a", DType::F32, {2}, a}, {"b", DType::U8, {1}, b}});
    return scratch.path(name);
  }

  ScratchFolder scratch;
};

TEST_F(SafetensorsTest, ReadsAFileOfThePythonPackage) {
  auto source = openSafetensors(FSDPQ_TEST_INPUTS "/io/tables.safetensors");
  EXPECT_EQ(source->names(),
            (std::vector<std::string>{"dynamic8", "dynamic8_unsigned", "fp4",
                                      "nf4"}));
  const TensorInfo *nf4 = source->find("nf4");
  ASSERT_TRUE(nf4);
  EXPECT_EQ(nf4->shape, (std::vector<int64_t>{16}));
  std::vector<float> values = readAll(*source, "nf4");
  EXPECT_EQ(values[0], -1.0f);
  EXPECT_EQ(values[1], -0.6961928009986877f);
  EXPECT_EQ(values[7], 0.0f);
  EXPECT_EQ(values[15], 1.0f);
  EXPECT_EQ(readAll(*source, "dynamic8")[255], 1.0f);
  EXPECT_EQ(source->find("none"), nullptr);
  source->release(*nf4);
  EXPECT_EQ(readAll(*source, "nf4"), values);
}

TEST_F(SafetensorsTest, RoundTripOfAllWrittenTypes) {
  const float f32[] = {1.5f, -2, 3, 4, 5, 6};
  const uint16_t bf16[] = {0x3f80, 0x4000}, f16[] = {0x3c00, 0x4000};
  const int64_t i64[] = {INT64_MIN, 5};
  const int32_t i32[] = {-9, 9};
  const uint8_t u8[] = {0, 128, 255};
  const std::string path = scratch.path("all.safetensors");
  // Neither sorted by name nor by type.
  writeSafetensors(path,
                   {{"z", DType::I64, {2}, i64},
                    {"f", DType::F32, {2, 3}, f32},
                    {"empty", DType::F32, {0, 3}, nullptr},
                    {"i", DType::I32, {2, 1}, i32},
                    {"scalar", DType::F32, {}, f32},
                    {"b", DType::BF16, {2}, bf16},
                    {"h", DType::F16, {2}, f16},
                    {"na\"me\n", DType::U8, {3}, u8}},
                   {{"epoch", "3"}});
  SafetensorsSource source(path);
  EXPECT_EQ(source.names(),
            (std::vector<std::string>{"z", "f", "empty", "i", "scalar", "b",
                                      "h", "na\"me\n"}));
  EXPECT_EQ(source.find("f")->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(readAll(source, "f"), std::vector<float>(f32, f32 + 6));
  EXPECT_EQ(readAll(source, "b"), (std::vector<float>{1, 2}));
  EXPECT_EQ(readAll(source, "h"), (std::vector<float>{1, 2}));
  EXPECT_EQ(readAll(source, "scalar"), (std::vector<float>{1.5f}));
  EXPECT_EQ(readAll(source, "empty").size(), 0u);
  int64_t read[2];
  source.readI64(*source.find("z"), 0, 2, read);
  EXPECT_EQ(read[0], INT64_MIN);
  source.readI64(*source.find("na\"me\n"), 1, 3, read);
  EXPECT_EQ(read[1], 255);
  EXPECT_EQ(std::memcmp(source.raw(*source.find("i")), i32, sizeof i32), 0);
  EXPECT_EQ(source.metadata(), (std::map<std::string, std::string>{
                                   {"epoch", "3"}, {"format", "pt"}}));
}

TEST_F(SafetensorsTest, WritesTheseBytes) {
  std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],)"
      R"("data_offsets":[0,8]},"b":{"dtype":"U8","shape":[1],)"
      R"("data_offsets":[8,9]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(readFile(writeSmall("w.safetensors")),
            makeFile(header, bytesOf(1.0f) + bytesOf(2.0f) + "\x07"));
}

TEST_F(SafetensorsTest, WriterTakesPiecesAndRounds) {
  std::vector<float> values(10'000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i) * 0.37f;
  const std::string path = scratch.path("pieces.safetensors");
  SafetensorsWriter writer(path, {{"f", DType::F32, {10'000}},
                                  {"none", DType::BF16, {0}},
                                  {"b", DType::BF16, {10'000}},
                                  {"h", DType::F16, {2, 5'000}}});
  writer.append(values.data(), 4);
  writer.append(values.data() + 1, 4 * 9'999);
  writer.appendF32(values.data(), 7'000);
  writer.appendF32(values.data() + 7'000, 3'000);
  EXPECT_EQ(errorId([&] { writer.commit(); }, "20000 bytes"), 1008);
  writer.appendF32(values.data(), 10'000);
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.commit();

  SafetensorsSource source(path);
  EXPECT_EQ(readAll(source, "f"), values);
  std::vector<float> b = readAll(source, "b"), h = readAll(source, "h");
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(b[i], bf16ToF32(f32ToBf16(values[i])));
    ASSERT_EQ(h[i], f16ToF32(f32ToF16(values[i])));
  }
}

TEST_F(SafetensorsTest, WriterRefusesNonsense) {
  using Specs = std::vector<SafetensorsWriter::Spec>;
  const std::string path = writeSmall("kept.safetensors");
  const std::string before = readFile(path);
  auto attempt = [&](Specs specs, const std::string &fragment) {
    return errorId([&] { SafetensorsWriter(path, specs); }, fragment);
  };
  EXPECT_EQ(attempt({{"a", DType::F32, {1}}, {"a", DType::F32, {1}}}, "taken"),
            1008);
  EXPECT_EQ(attempt({{"__metadata__", DType::F32, {1}}}, "taken"), 1008);
  EXPECT_EQ(attempt({{"a", DType::Q4_0, {32}}}, "Q4_0"), 1008);
  EXPECT_EQ(attempt({{"a", DType::F32, {-1}}}, "shape"), 1008);
  EXPECT_EQ(attempt({{"a", DType::F32, {1l << 62}}}, "shape"), 1008);
  EXPECT_EQ(attempt({{"\xff", DType::F32, {1}}}, "UTF-8"), 1008);
  EXPECT_EQ(
      attempt({{"a", DType::U8, {3}}, {"b", DType::F32, {1}}}, "multiple of 4"),
      1008);
  const float value = 1;
  EXPECT_EQ(
      errorId([&] {
        SafetensorsWriter(path, {{"a", DType::U8, {4}}}).appendF32(&value, 1);
      }),
      1008);
  EXPECT_EQ(
      errorId([&] {
        SafetensorsWriter(path, {{"a", DType::F32, {1}}}).append(&value, 8);
      }),
      1008);
  EXPECT_EQ(readFile(path), before);
  EXPECT_EQ(
      std::distance(std::filesystem::directory_iterator(scratch.path()), {}),
      1);
}

TEST_F(SafetensorsTest, AFullDiskLeavesTheOldFile) {
  const std::string path = writeSmall("kept.safetensors");
  const std::string before = readFile(path);
  // A limit on file size stands for a full disk: write() fails part-way.
  rlimit old;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  auto oldHandler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::vector<float> values(100'000, 1.0f);
  int id = errorId([&] {
    writeSafetensors(path, {{"a", DType::F32, {100'000}, values.data()}});
  });
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, oldHandler);
  EXPECT_EQ(id, 1301);
  EXPECT_EQ(readFile(path), before);
  EXPECT_EQ(
      std::distance(std::filesystem::directory_iterator(scratch.path()), {}),
      1);
}

TEST_F(SafetensorsTest, ReadsOutsideATensorAreRefused) {
  auto source = openSafetensors(writeSmall("s.safetensors"));
  const TensorInfo &a = *source->find("a");
  float out[4];
  int64_t integer;
  source->readF32(a, 2, 2, out);
  EXPECT_EQ(errorId([&] { source->readF32(a, 0, 3, out); }, "[0, 3)"), 1006);
  EXPECT_EQ(errorId([&] { source->readF32(a, -1, 1, out); }), 1006);
  EXPECT_EQ(errorId([&] { source->readF32(a, 2, 1, out); }), 1006);
  EXPECT_EQ(errorId([&] { source->readI64(a, 0, 1, &integer); }, "F32"), 1007);
}

TEST_F(SafetensorsTest, HeaderLengths) {
  EXPECT_EQ(openError("", "0 bytes"), 1001);
  EXPECT_EQ(openError("1234567", "7 bytes"), 1001);
  EXPECT_EQ(openError(bytesOf<uint64_t>(3) + "{}"), 1001);
  EXPECT_EQ(openError(bytesOf<uint64_t>(UINT64_MAX) + "{}"), 1001);
  EXPECT_EQ(openError(bytesOf<uint64_t>(UINT64_MAX - 7) + "{}"), 1001);
  EXPECT_EQ(openError(makeFile(std::string(100'000'001, ' ')), "limit"), 1001);
  EXPECT_EQ(openError(makeFile("")), 1201);
  EXPECT_EQ(openError(makeFile("{}")), 0);
}

TEST_F(SafetensorsTest, HostileHeaders) {
  EXPECT_EQ(
      openError(makeEntry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])")),
      0);
  EXPECT_EQ(openError(makeFile("[]")), 1002);
  EXPECT_EQ(openError(makeFile("nonsense")), 1201);
  EXPECT_EQ(openError(makeFile(R"({"t":{},"t":{}})")), 1202);
  EXPECT_EQ(openError(makeFile(R"({"t":{"shape":[[1]]}})")), 1203);
  EXPECT_EQ(openError(makeFile(R"({"t":5})")), 1205);
  EXPECT_EQ(openError(makeFile(R"({"__metadata__":{"a":1}})")), 1002);
  EXPECT_EQ(openError(makeFile(R"({"__metadata__":"a"})")), 1002);
  EXPECT_EQ(
      openError(makeEntry(R"("dtype":"F32","shape":[2])"), "data_offsets"),
      1204);
  EXPECT_EQ(
      openError(makeEntry(R"("dtype":7,"shape":[2],"data_offsets":[0,8])")),
      1205);
  EXPECT_EQ(
      openError(makeEntry(R"("dtype":"F33","shape":[2],"data_offsets":[0,8])"),
                "F33"),
      1002);

  auto withShape = [&](const std::string &shape) {
    return openError(
        makeEntry(R"("dtype":"F32","data_offsets":[0,8],"shape":)" + shape));
  };
  EXPECT_EQ(withShape("[-2]"), 1002);
  EXPECT_EQ(withShape("[2.0]"), 1002);
  EXPECT_EQ(withShape("[\"2\"]"), 1002);
  EXPECT_EQ(withShape("[99999999999999999999]"), 1002);
  EXPECT_EQ(withShape("[9223372036854775808]"), 1002);
  EXPECT_EQ(withShape("[4294967296,4294967296]"), 1002);
  EXPECT_EQ(withShape("[4611686018427387906]"), 1002); // times 4 wraps to 8
  EXPECT_EQ(withShape("[3]"), 1003);
  EXPECT_EQ(withShape("{}"), 1205);

  auto withOffsets = [&](const std::string &offsets) {
    return openError(
        makeEntry(R"("dtype":"F32","shape":[2],"data_offsets":)" + offsets));
  };
  EXPECT_EQ(withOffsets("[0]"), 1002);
  EXPECT_EQ(withOffsets("[0,8,8]"), 1002);
  EXPECT_EQ(withOffsets("[8,0]"), 1003);
  EXPECT_EQ(withOffsets("[-8,0]"), 1002);
  EXPECT_EQ(withOffsets("[1,9]"), 1003);
  EXPECT_EQ(withOffsets("[0,1e1]"), 1002);
  EXPECT_EQ(withOffsets("[18446744073709551608,0]"), 1002);
  EXPECT_EQ(withOffsets("[9223372036854775800,9223372036854775807]"), 1003);
}

TEST_F(SafetensorsTest, OverlapAndHoles) {
  auto two = [&](const char *first, const char *second) {
    return openError(makeFile(
        std::string(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)") +
            first + R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" +
            second + "}}",
        std::string(8, 'x')));
  };
  EXPECT_EQ(two("[0,4]", "[4,8]"), 0);
  EXPECT_EQ(two("[4,8]", "[0,4]"), 0);
  EXPECT_EQ(two("[0,4]", "[0,4]"), 1003);
  EXPECT_EQ(two("[0,4]", "[2,6]"), 1003);
  EXPECT_EQ(two("[1,5]", "[4,8]"), 1003);
  EXPECT_EQ(openError(makeFile("{}", "x"), "last 1 bytes"), 1003);
}

TEST_F(SafetensorsTest, UnreadableTypesOnlyFailWhenRead) {
  std::string path = scratch.write(
      "f8.safetensors",
      makeFile(R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]},)"
               R"("b":{"dtype":"F4","shape":[4],"data_offsets":[4,6]},)"
               R"("c":{"dtype":"U8","shape":[1],"data_offsets":[6,7]}})",
               "1234567"));
  auto source = openSafetensors(path);
  EXPECT_EQ(readAll(*source, "c"), (std::vector<float>{'7'}));
  EXPECT_EQ(errorId([&] { readAll(*source, "a"); }, "F8_E4M3"), 1007);
  EXPECT_EQ(
      openError(makeFile(
          R"({"b":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", "12")),
      1003);
}

TEST_F(SafetensorsTest, EveryTruncationIsRefused) {
  const std::string whole = readFile(writeSmall("s.safetensors"));
  for (size_t size = 0; size < whole.size(); ++size)
    ASSERT_NE(openError(whole.substr(0, size)), 0) << size;
}

TEST_F(SafetensorsTest, RandomChangesDoNoHarm) {
  const std::string whole = readFile(writeSmall("s.safetensors"));
  std::mt19937 random(1234);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    for (int change = 0; change <= round % 4; ++change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    readEverything(scratch.write("flipped.safetensors", bytes));
  }
}

class ShardsTest : public SafetensorsTest {
protected:
  void writeShard(const std::string &name,
                  const std::vector<std::string> &tensors) {
    std::vector<NamedTensor> named;
    for (const std::string &tensor : tensors)
      named.push_back({tensor, DType::F32, {1}, &value});
    writeSafetensors(scratch.path(name), named);
    value += 1;
  }
  int indexError(const std::string &map, const std::string &fragment = "") {
    scratch.write("model.safetensors.index.json",
                  R"({"metadata":{"total_size":12},"weight_map":)" + map + "}");
    return errorId([&] { openSafetensors(scratch.path()); }, fragment);
  }
  float value = 1;
};

TEST_F(ShardsTest, FolderWithIndex) {
  writeShard("x-1.safetensors", {"b", "a"});
  writeShard("x-2.safetensors", {"c"});
  EXPECT_EQ(indexError(R"({"a":"x-1.safetensors","b":"x-1.safetensors",)"
                       R"("c":"x-2.safetensors"})"),
            0);
  auto source = openSafetensors(scratch.path());
  EXPECT_EQ(source->names(), (std::vector<std::string>{"b", "a", "c"}));
  EXPECT_EQ(readAll(*source, "a"), (std::vector<float>{1}));
  EXPECT_EQ(readAll(*source, "c"), (std::vector<float>{2}));
  EXPECT_EQ(source->location(), scratch.path());
  // A single file wins over an index.
  writeShard("model.safetensors", {"d"});
  EXPECT_EQ(openSafetensors(scratch.path())->names(),
            (std::vector<std::string>{"d"}));
}

TEST_F(ShardsTest, BadIndexes) {
  EXPECT_EQ(errorId([&] { openSafetensors(scratch.path()); }), 1004);
  writeShard("x-1.safetensors", {"a", "b"});
  writeShard("x-2.safetensors", {"c"});
  writeShard("x-3.safetensors", {"a"});
  EXPECT_EQ(indexError(R"({"a":"x-9.safetensors"})", "x-9"), 1004);
  EXPECT_EQ(indexError(R"({"a":"x-1.safetensors","c":"x-1.safetensors"})",
                       "\"c\" is not in"),
            1004);
  EXPECT_EQ(indexError(R"({"a":"x-2.safetensors","c":"x-1.safetensors"})"),
            1004);
  EXPECT_EQ(indexError(R"({"b":"x-1.safetensors","a":"x-3.safetensors"})",
                       "in this shard and in"),
            1004);
  EXPECT_EQ(indexError(R"({"a":"x-1.safetensors","a":"x-1.safetensors"})"),
            1202);
  EXPECT_EQ(indexError(R"({"a":7})"), 1004);
  EXPECT_EQ(indexError("[]"), 1205);
  for (const char *name : {"../x-1.safetensors", "/etc/passwd", "..", ".", "",
                           "a/../x-1.safetensors", "a\\\\b", "x\\u0000y"})
    EXPECT_EQ(indexError(std::string(R"({"a":")") + name + "\"}", "shard name"),
              1004)
        << name;
  EXPECT_EQ(indexError(R"({"a":")" + std::string(5000, 'n') + "\"}"), 1004);
}

} // namespace
