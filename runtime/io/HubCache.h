//===- HubCache.h - The local cache of the Hugging Face Hub -----*- C++ -*-===//
//
// Layout (huggingface_hub): <cache>/models--ORG--NAME/refs/REVISION holds the
// commit that a branch or tag stood for at the last download;
// .../snapshots/COMMIT holds the files, as links. Nothing is ever downloaded.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <optional>
#include <string>

namespace fsdpq::rt {

/// The cache's folder: $HF_HUB_CACHE, else $HUGGINGFACE_HUB_CACHE, else
/// $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
/// ~/.cache/huggingface/hub. An empty variable counts as unset; a leading ~/ in
/// one stands for $HOME.
std::string hubCacheFolder();

/// Whether `name` can be a repository of the Hub: "org/name" or "name".
bool isHubName(const std::string &name);

/// The snapshot folder of a model in the cache, or nothing. `name` satisfies
/// isHubName; `revision` is a branch, tag or full commit.
std::optional<std::string> findInHubCache(const std::string &name,
                                          const std::string &revision);

} // namespace fsdpq::rt
