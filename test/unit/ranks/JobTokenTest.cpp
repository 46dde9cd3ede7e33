#include "tools/fsdpq-run/ranks/JobToken.h"
#include "test/unit/io/TestFiles.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <sys/stat.h>

using namespace fsdpq::run;
using fsdpq::rt::test::errorId;
using fsdpq::rt::test::ScratchFolder;

static Environment withToken(const char *token) {
  return [token](const std::string &name) -> std::optional<std::string> {
    if (name == "FSDPQ_JOB_TOKEN" && token)
      return token;
    return std::nullopt;
  };
}

TEST(JobToken, FromTheEnvironment) {
  EXPECT_EQ(readJobToken("", withToken(nullptr)), "");
  EXPECT_EQ(readJobToken("", withToken("0123456789abcdef")),
            "0123456789abcdef");
  EXPECT_EQ(errorId([] { readJobToken("", withToken("0123456789abcde")); },
                    "15 characters"),
            6052);
  EXPECT_EQ(errorId([] { readJobToken("", withToken("0123456789 abcdef")); },
                    "printable"),
            6052);
  // A message that anybody may read does not hold it.
  try {
    readJobToken("", withToken("secret"));
    FAIL();
  } catch (const fsdpq::rt::Error &error) {
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("secret")));
    EXPECT_THAT(error.what(), testing::HasSubstr("openssl rand"));
  }
}

TEST(JobToken, FromAFile) {
  ScratchFolder folder;
  const std::string file = folder.write("token", "0123456789abcdef\n");
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  EXPECT_EQ(readJobToken(file, withToken(nullptr)), "0123456789abcdef");
  EXPECT_EQ(readJobToken(file, withToken("0123456789abcdef")),
            "0123456789abcdef");
  EXPECT_EQ(
      errorId([&] { readJobToken(file, withToken("another_0123456789")); },
              "another token"),
      6052);
  ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
  EXPECT_EQ(
      errorId([&] { readJobToken(file, withToken(nullptr)); }, "chmod 600"),
      6052);
  EXPECT_EQ(
      errorId([&] { readJobToken(folder.path("none"), withToken(nullptr)); }),
      1301);
  EXPECT_EQ(errorId([&] { readJobToken(folder.path(), withToken(nullptr)); },
                    "name a file"),
            6052);
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(errorId([&] { readJobToken(pipe, withToken(nullptr)); }), 6052);
  const std::string large = folder.write("large", std::string(5000, 'x'));
  ASSERT_EQ(::chmod(large.c_str(), 0600), 0);
  EXPECT_EQ(errorId([&] { readJobToken(large, withToken(nullptr)); }), 6052);
}

TEST(JobToken, NewOnesDiffer) {
  const std::string token = newJobToken();
  EXPECT_EQ(token.size(), 32u);
  EXPECT_NE(token, newJobToken());
  EXPECT_EQ(readJobToken("", withToken(token.c_str())), token);
}
