#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace fsdpq::rt;
namespace fs = std::filesystem;

namespace {

class AtomicFiles : public testing::Test {
protected:
  AtomicFiles() : folder(testing::TempDir() + "fsdpq-atomic-files") {
    fs::remove_all(folder);
    fs::create_directory(folder);
  }
  std::string place(const std::string &name) const { return folder + "/" + name; }
  static std::string read(const std::string &path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static int refusal(const std::string &path) {
    try {
      writeFileAtomically(path, "new");
    } catch (const Error &error) {
      return error.id();
    }
    return 0;
  }

  std::string folder;
};

} // namespace

TEST_F(AtomicFiles, ReplaceFiles) {
  writeFileAtomically(place("a"), "old");
  writeFileAtomically(place("a"), "new");
  EXPECT_EQ(read(place("a")), "new");
}

TEST_F(AtomicFiles, ReplaceWhatALinkNames) {
  writeFileAtomically(place("a"), "old");
  fs::create_symlink(place("a"), place("link"));
  writeFileAtomically(place("link"), "new");
  EXPECT_EQ(read(place("a")), "new");
  EXPECT_TRUE(fs::is_symlink(place("link")));
}

TEST_F(AtomicFiles, ReplaceNothingElse) {
  fs::create_directory(place("folder"));
  EXPECT_EQ(refusal(place("folder")), 1304);
  EXPECT_EQ(refusal("/dev/null"), 1304);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}
