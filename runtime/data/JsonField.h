//===- JsonField.h - A JSON value that knows where it stands ----*- C++ -*-===//
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

/// A view of a value inside a document, with the file's name and the path to
/// the value for messages. The document must outlive it. Accessors throw Error
/// 2001 naming both when the value has another type or range.
class JsonField {
public:
  JsonField(const nlohmann::json &document, std::string file);

  const nlohmann::json &json() const { return *value; }
  bool isNull() const { return value->is_null(); }

  /// A member that must be there.
  JsonField at(const std::string &key) const;
  /// A member that may be missing or null.
  std::optional<JsonField> find(const std::string &key) const;
  std::vector<JsonField> elements() const;

  std::string string() const;
  bool boolean() const;
  /// An integer of [least, most].
  int64_t integer(int64_t least, int64_t most) const;
  /// A string of one code point.
  char32_t character() const;

  bool boolean(const std::string &key, bool otherwise) const;

  /// Refuses the value with Error `id`.
  [[noreturn]] void fail(int id, const std::string &what,
                         const std::string &hint = "") const;
  /// Error 2002: the component `name` of the kind `kind` is not implemented.
  [[noreturn]] void failUnsupported(const std::string &kind,
                                    const std::string &name) const;

private:
  JsonField(const nlohmann::json &value, std::string file, std::string path);
  void expectObject() const;

  const nlohmann::json *value;
  std::string file, path;
};

/// Reads and parses a whole file. Throws Error 2001 when it is not JSON.
nlohmann::json readJsonDocument(const std::string &path);

} // namespace fsdpq::rt
