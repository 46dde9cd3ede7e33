//===- Architecture.cpp - GPUs that kernels are made for ------------------===//

#include "compiler/Target/Cuda/Architecture.h"

#include <algorithm>
#include <array>
#include <charconv>

using namespace fsdpq::cuda;

namespace {
struct Known {
  int capability;
  unsigned sharedKiB; ///< that a block may ask for
  char suffix;        ///< of the name; 0: none
};
} // namespace

/// CUDA C++ programming guide, "Technical specifications per compute capability".
static constexpr std::array<Known, 8> known = {{{80, 163, 0},
                                                {86, 99, 0},
                                                {87, 163, 0},
                                                {89, 99, 0},
                                                {90, 227, 'a'},
                                                {100, 227, 'a'},
                                                {103, 227, 'a'},
                                                {120, 99, 'a'}}};

static constexpr std::string_view prefix = "sm_";

static std::string nameOf(const Known &known) {
  std::string name = std::string(prefix) + std::to_string(known.capability);
  if (known.suffix)
    name += known.suffix;
  return name;
}

std::optional<Architecture> Architecture::parse(std::string_view name) {
  if (!name.starts_with(prefix))
    return std::nullopt;
  name.remove_prefix(prefix.size());
  int capability = 0;
  auto [rest, error] =
      std::from_chars(name.data(), name.data() + name.size(), capability);
  if (error != std::errc())
    return std::nullopt;
  std::string_view suffix = name.substr(rest - name.data());
  auto found = std::find_if(known.begin(), known.end(), [&](const Known &entry) {
    return entry.capability == capability &&
           (suffix.empty() || suffix == std::string_view(&entry.suffix, 1));
  });
  if (found == known.end())
    return std::nullopt;
  return Architecture{nameOf(*found), capability};
}

std::string Architecture::knownNames() {
  std::string names;
  for (const Known &entry : known)
    names += (names.empty() ? "" : ", ") + nameOf(entry);
  return names;
}

unsigned Architecture::maxSharedBytes() const {
  for (const Known &entry : known)
    if (entry.capability == capability)
      return entry.sharedKiB * 1024;
  return 48 * 1024;
}
