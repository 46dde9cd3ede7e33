//===- AdapterConfig.h - adapter_config.json --------------------*- C++ -*-===//
//
// The description of a LoRA adapter in the form of the PEFT library (the fields
// of peft.LoraConfig, https://huggingface.co/docs/peft/package_reference/lora).
//
// Errors (exit code BadInput): 5010 no such adapter, or a field is wrong, 5011
// a kind of adapter that is not supported; 12xx JSON.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fsdpq::rt {

struct AdapterConfig {
  int64_t rank = 0;
  double alpha = 0;
  double dropout = 0;
  /// Last parts of module names ("q_proj"), or one "all-linear".
  std::vector<std::string> targets;
  /// Scale by alpha / sqrt(rank) instead of alpha / rank.
  bool useRslora = false;
  /// "" if not recorded.
  std::string baseModel;

  /// What the adapter's contribution is multiplied with.
  double scale() const;
};

inline constexpr const char *adapterConfigFile = "adapter_config.json";
inline constexpr const char *adapterWeightsFile = "adapter_model.safetensors";

/// Reads the configuration in `folder`. Everything that would change the
/// adapter's meaning and that we do not compute (DoRA, patterns of ranks,
/// trained biases, ...) is refused; other fields are passed over.
AdapterConfig readAdapterConfig(const std::string &folder);

/// The text that PEFT reads with LoraConfig.from_pretrained.
std::string adapterConfigText(const AdapterConfig &config);

} // namespace fsdpq::rt
