//===- MetaspaceOptions.h - Spaces written as a visible mark ----*- C++ -*-===//
#pragma once

#include "runtime/data/JsonField.h"

namespace fsdpq::rt {

/// The options of "Metaspace", which is both a pre-tokenizer and a decoder.
struct MetaspaceOptions {
  enum class Prepend { Never, First, Always };

  char32_t replacement;
  Prepend prepend;
  bool split;
};

inline MetaspaceOptions parseMetaspaceOptions(const JsonField &field) {
  MetaspaceOptions options{field.at("replacement").character(),
                           MetaspaceOptions::Prepend::Always,
                           field.boolean("split", true)};
  if (std::optional<JsonField> scheme = field.find("prepend_scheme")) {
    std::string name = scheme->string();
    if (name == "never")
      options.prepend = MetaspaceOptions::Prepend::Never;
    else if (name == "first")
      options.prepend = MetaspaceOptions::Prepend::First;
    else if (name != "always")
      scheme->failUnsupported("prepend scheme", name);
  }
  // The older spelling; where both stand they must agree.
  if (!field.boolean("add_prefix_space", true)) {
    if (field.find("prepend_scheme") &&
        options.prepend != MetaspaceOptions::Prepend::Never)
      field.fail(2001, "add_prefix_space contradicts prepend_scheme");
    options.prepend = MetaspaceOptions::Prepend::Never;
  }
  return options;
}

} // namespace fsdpq::rt
