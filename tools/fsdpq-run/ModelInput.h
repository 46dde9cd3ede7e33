//===- ModelInput.h - The model that a run works on -------------*- C++ -*-===//
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/data/Tokenizer.h"
#include "runtime/io/ModelFolder.h"
#include "tools/fsdpq-run/options/Settings.h"

#include <memory>
#include <string>
#include <vector>

namespace fsdpq::run {

struct ModelInput {
  rt::ModelFiles files; ///< tensors: null if only the configuration is needed
  /// For the compiler: config.json; of a GGUF file its metadata without the
  /// tokenizer's, with "tensors": {name: shape} and, if the file has this
  /// tensor, "rope_freqs.weight": [values].
  std::string configText;
  /// Rows of the embedding; 0 if the configuration does not say.
  int64_t vocabulary = 0;
};

/// Opens configuration and weights.
ModelInput openModelInput(const Settings &settings);

/// Opens what `plan` needs: of a folder or a name in the cache only config.json,
/// which may also be named itself; a GGUF file.
ModelInput openModelConfig(const Settings &settings);

/// The model's tokenizer: tokenizer.json in its folder (Error 6030 if there is
/// none) or the GGUF file's own.
std::unique_ptr<rt::Tokenizer> loadTokenizer(const rt::ModelFiles &files);

/// The ids that end an answer: those that the tokenizer, config.json and
/// generation_config.json name.
std::vector<int32_t> stopIds(const rt::ModelFiles &files,
                             const rt::Tokenizer &tokenizer);

/// Reads the run's records. Says their number and form, how many are cut and
/// how many teach nothing. Pre-tokenised records need no tokenizer.
rt::Dataset loadRecords(const Settings &settings, const ModelInput &model);

} // namespace fsdpq::run
