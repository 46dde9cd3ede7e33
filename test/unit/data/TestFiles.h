//===- TestFiles.h - Files for the tests of runtime/data --------*- C++ -*-===//
#pragma once

#include "runtime/data/Tokenizer.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>

namespace fsdpq::rt::test {

inline std::string readFile(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// A folder that goes away with the object.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "fsdpq-data-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::string write(const std::string &name, const std::string &bytes) const {
    std::string path = (path_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

private:
  std::filesystem::path path_;
};

inline std::string inputPath(const std::string &name) {
  return std::string(FSDPQ_TEST_INPUTS) + "/data/" + name;
}

inline std::unique_ptr<Tokenizer> loadInput(const std::string &name) {
  return loadTokenizerJson(inputPath(name) + "/tokenizer.json");
}

inline std::unique_ptr<Tokenizer>
makeTokenizer(const nlohmann::json &document) {
  TemporaryFolder folder;
  return loadTokenizerJson(folder.write("tokenizer.json", document.dump()));
}

/// The Error that `action` throws must have the id and name `part`.
template <typename Action>
void expectError(int id, const std::string &part, Action action) {
  try {
    action();
    ADD_FAILURE() << "no error; expected FSDPQ-" << id << " with '" << part
                  << "'";
  } catch (const Error &error) {
    EXPECT_EQ(error.id(), id) << error.what();
    EXPECT_EQ(error.exitCode(), ExitCode::BadInput);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << "expected '" << part << "' in: " << error.what();
  }
}

} // namespace fsdpq::rt::test
