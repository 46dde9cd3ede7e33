#include "runtime/io/HubCache.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace fsdpq::rt {

namespace fs = std::filesystem;

namespace {

std::optional<fs::path> folderVariable(const char *name) {
  const char *value = std::getenv(name);
  if (!value || !*value)
    return std::nullopt;
  const std::string text = value;
  const char *home = std::getenv("HOME");
  if (home && (text == "~" || text.starts_with("~/")))
    return fs::path(home + text.substr(1));
  return text;
}

/// One component of a repository's or revision's name: cannot leave its folder.
bool isPlainComponent(const std::string &text) {
  auto isAllowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  };
  return !text.empty() && text.front() != '.' && text.front() != '-' &&
         text.find("..") == std::string::npos &&
         std::all_of(text.begin(), text.end(), isAllowed);
}

/// A branch or tag may contain slashes ("refs/pr/3").
bool isRevision(const std::string &text) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('/', begin), text.size());
    if (!isPlainComponent(text.substr(begin, end - begin)))
      return false;
    begin = end + 1;
  }
  return true;
}

} // namespace

std::string hubCacheFolder() {
  for (const char *variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (auto folder = folderVariable(variable))
      return folder->string();
  if (auto home = folderVariable("HF_HOME"))
    return (*home / "hub").string();
  fs::path cache = folderVariable("HOME").value_or("/") / ".cache";
  return (folderVariable("XDG_CACHE_HOME").value_or(cache) / "huggingface" /
          "hub")
      .string();
}

bool isHubName(const std::string &name) {
  // The Hub forbids "--", which stands for "/" in the cache.
  if (name.find("--") != std::string::npos)
    return false;
  const size_t slash = name.find('/');
  if (slash == std::string::npos)
    return isPlainComponent(name);
  return isPlainComponent(name.substr(0, slash)) &&
         isPlainComponent(name.substr(slash + 1));
}

std::optional<std::string> findInHubCache(const std::string &name,
                                          const std::string &revision) {
  if (!isHubName(name) || !isRevision(revision))
    return std::nullopt;
  std::string folder = "models--" + name;
  if (size_t slash = folder.find('/'); slash != std::string::npos)
    folder.replace(slash, 1, "--");
  const fs::path repository = fs::path(hubCacheFolder()) / folder;

  std::string commit = revision;
  std::ifstream reference(repository / "refs" / revision);
  if (std::string word; reference >> word)
    commit = word;
  if (!isPlainComponent(commit))
    return std::nullopt;
  const fs::path snapshot = repository / "snapshots" / commit;
  std::error_code ignored;
  if (!fs::is_directory(snapshot, ignored))
    return std::nullopt;
  return snapshot.string();
}

} // namespace fsdpq::rt
