//===- LibrarySearch.h - Where NVIDIA's libraries may be --------*- C++ -*-===//
#pragma once

#include "runtime/device/cuda/SharedLibrary.h"

#include <functional>
#include <string>
#include <vector>

namespace fsdpq::rt {

/// What a search depends on; tests make up their own.
struct SearchPlaces {
  /// The value of an environment variable, "" if it is not set.
  std::function<std::string(const char *)> variable;
  /// Where toolkits are installed.
  std::string toolkit;
  /// The loader's own places (ld.so.conf, LD_LIBRARY_PATH) are looked in too.
  bool asksLoader = true;

  /// Of this process.
  static SearchPlaces own();
};

/// What a library is called and how a user comes by it.
struct LibraryNames {
  const char *title;                 ///< "NVRTC"
  const char *stem;                  ///< "libnvrtc.so"
  std::vector<const char *> sonames; ///< newest first
  const char *remedy;
};
const LibraryNames &namesOf(CudaLibrary which);

/// A file to try, or a name that the loader may know.
struct Candidate {
  std::string name;
  bool isFile;
};

/// All that may be tried, best first. `folders` gets the places that were looked
/// in, whether they exist or not.
std::vector<Candidate> candidatesFor(CudaLibrary which,
                                     const SearchPlaces &places,
                                     std::vector<std::string> &folders);

} // namespace fsdpq::rt
