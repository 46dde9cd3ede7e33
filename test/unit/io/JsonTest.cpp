#include "runtime/io/Json.h"
#include "TestFiles.h"
#include "runtime/io/JsonLines.h"

using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using nlohmann::json;

namespace {

int parseError(const std::string &text, const std::string &fragment = "") {
  return errorId([&] { parseJson(text, "here.json"); }, fragment);
}

TEST(Json, ParsesWhatTheLibraryParses) {
  const char *text = R"( {"a": [1, -2, 3.5, "x\u00e9", null, true, [], {}],
                          "b": {"c": {"d": [[{"e": 18446744073709551615}]]}}} )";
  EXPECT_EQ(parseJson(text, ""), json::parse(text));
  EXPECT_EQ(parseJson("7", ""), 7);
}

TEST(Json, SyntaxErrorsNameTheByte) {
  EXPECT_EQ(parseError("[1, 2", "byte 6"), 1201);
  EXPECT_EQ(parseError("", "here.json"), 1201);
  EXPECT_EQ(parseError("{} {}", "byte 4"), 1201);
  EXPECT_EQ(parseError("[1,]"), 1201);
  EXPECT_EQ(parseError("{\"a\":\n  tru}", "line 2"), 1201);
  EXPECT_EQ(parseError("{'a': 1}"), 1201);
  EXPECT_EQ(parseError("[01]"), 1201);
}

TEST(Json, RefusesWhatIsNotJson) {
  EXPECT_EQ(parseError("[NaN]"), 1201);
  EXPECT_EQ(parseError("[Infinity]"), 1201);
  EXPECT_EQ(parseError("[-Infinity]"), 1201);
  EXPECT_EQ(parseError("[1e999]", "1e999"), 1201);
  EXPECT_EQ(parseError("[\"\xff\"]"), 1201);
  EXPECT_EQ(parseError("[\"\xc3\"]"), 1201);
  EXPECT_EQ(parseError("[\"\xed\xa0\x80\"]"), 1201); // a lone surrogate
  EXPECT_EQ(parseError("[\"\\ud800\"]"), 1201);
}

TEST(Json, RepeatedKeysNameTheirPath) {
  EXPECT_EQ(parseError(R"({"a":1,"a":2})", "\"a\" stands twice"), 1202);
  EXPECT_EQ(parseError(R"({"x":[0,{"y":{"k":1,"k":1}}]})", "\"x[1].y.k\""),
            1202);
  EXPECT_EQ(parseError(R"({"a":1,"\u0061":2})"), 1202);
  EXPECT_EQ(parseJson(R"([{"a":1},{"a":2}])", "").size(), 2u);
}

TEST(Json, DepthIsLimited) {
  auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(parseJson(nested(512), "").size(), 1u);
  EXPECT_EQ(parseError(nested(513), "512"), 1203);
  EXPECT_EQ(parseError(std::string(1'000'000, '[')), 1203);
  EXPECT_EQ(errorId([&] { parseJson(nested(3), "", 2); }), 1203);
}

TEST(Json, LongTokensAreCutInMessages) {
  try {
    parseJson("[\"" + std::string(100'000, 'x'), "f");
    FAIL();
  } catch (const Error &error) {
    EXPECT_LT(std::strlen(error.what()), 500u);
  }
}

TEST(Json, TypedAccess) {
  const json object = parseJson(
      R"({"i":-5,"big":18446744073709551615,"f":1.5,"s":"t","b":true,"n":null,"a":[1]})",
      "");
  EXPECT_EQ(requireInt(object, "i", "c"), -5);
  EXPECT_EQ(requireNumber(object, "i", "c"), -5.0);
  EXPECT_EQ(requireNumber(object, "f", "c"), 1.5);
  EXPECT_EQ(requireString(object, "s", "c"), "t");
  EXPECT_TRUE(requireBool(object, "b", "c"));
  EXPECT_EQ(requireArray(object, "a", "c").size(), 1u);

  EXPECT_EQ(errorId([&] { requireInt(object, "x", "conf"); }, "conf"), 1204);
  EXPECT_EQ(errorId([&] { requireInt(object, "f", "c"); }, "\"f\" is 1.5"),
            1205);
  EXPECT_EQ(errorId([&] { requireInt(object, "big", "c"); }), 1205);
  EXPECT_EQ(errorId([&] { requireInt(object, "b", "c"); }), 1205);
  EXPECT_EQ(errorId([&] { requireNumber(object, "s", "c"); }), 1205);
  EXPECT_EQ(errorId([&] { requireBool(object, "i", "c"); }), 1205);
  EXPECT_EQ(errorId([&] { requireString(object, "a", "c"); }, "an array of 1"),
            1205);
  EXPECT_EQ(errorId([&] { requireObject(object, "a", "c"); }), 1205);
  EXPECT_EQ(errorId([&] { requireInt(object["a"], "i", "c"); }), 1205);

  EXPECT_EQ(optionalInt(object, "x", "c"), std::nullopt);
  EXPECT_EQ(optionalInt(object, "n", "c"), std::nullopt);
  EXPECT_EQ(optionalInt(object, "i", "c"), -5);
  EXPECT_EQ(optionalString(object, "s", "c"), "t");
  EXPECT_EQ(errorId([&] { optionalBool(object, "s", "c"); }), 1205);
}

TEST(Json, FilesAndTheirErrors) {
  ScratchFolder scratch;
  EXPECT_EQ(readJsonFile(scratch.write("a.json", "{\"k\":1}"))["k"], 1);
  EXPECT_EQ(
      errorId([&] { readJsonFile(scratch.write("b.json", "")); }, "b.json"),
      1201);
  EXPECT_EQ(errorId([&] { readJsonFile(scratch.path("none.json")); }), 1301);
}

TEST(JsonLines, CountsLines) {
  ScratchFolder scratch;
  JsonLines lines(
      scratch.write("d.jsonl", "{\"a\":1}\n\n  \r\n[2]\r\n\"three\""));
  json value;
  ASSERT_TRUE(lines.next(value));
  EXPECT_EQ(value["a"], 1);
  EXPECT_EQ(lines.line(), 1);
  ASSERT_TRUE(lines.next(value));
  EXPECT_EQ(value[0], 2);
  EXPECT_EQ(lines.line(), 4);
  ASSERT_TRUE(lines.next(value));
  EXPECT_EQ(value, "three");
  EXPECT_EQ(lines.place(), scratch.path("d.jsonl") + ":5");
  EXPECT_FALSE(lines.next(value));
}

TEST(JsonLines, ErrorsNameTheLine) {
  ScratchFolder scratch;
  json value;
  JsonLines broken(scratch.write("d.jsonl", "{}\n{\"a\":\n1}\n"));
  ASSERT_TRUE(broken.next(value));
  EXPECT_EQ(errorId([&] { broken.next(value); }, "d.jsonl:2"), 1201);
  JsonLines empty(scratch.write("e.jsonl", ""));
  EXPECT_FALSE(empty.next(value));
}

} // namespace
