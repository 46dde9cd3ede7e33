//===- Json.h - Strict JSON ------------------------------------*- C++ -*-===//
//
// Stricter than the library's own parser: a repeated key, nesting beyond a
// limit, NaN, Infinity, numbers beyond f64, invalid UTF-8 and text after the
// value are errors. Memory use is linear in the text.
//
// Errors (exit code BadInput): 1201 syntax (with the byte position), 1202
// repeated key, 1203 nested too deeply, 1204 key missing, 1205 wrong type or
// out of range. `where` names the text in every message: a path, path:line, or
// path and the keys that lead to the object.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fsdpq::rt {

constexpr size_t defaultJsonDepth = 512;

nlohmann::json parseJson(std::string_view text, const std::string &where,
                         size_t maxDepth = defaultJsonDepth);

/// Also throws 1301 or 1302 when the file cannot be read.
nlohmann::json readJsonFile(const std::string &path,
                            size_t maxDepth = defaultJsonDepth);

/// The value of a key that must be there and have the type. An integer must
/// fit int64_t and be written without fraction or exponent; a number may be
/// either kind.
int64_t requireInt(const nlohmann::json &object, const std::string &key,
                   const std::string &where);
double requireNumber(const nlohmann::json &object, const std::string &key,
                     const std::string &where);
bool requireBool(const nlohmann::json &object, const std::string &key,
                 const std::string &where);
const std::string &requireString(const nlohmann::json &object,
                                 const std::string &key,
                                 const std::string &where);
const nlohmann::json &requireArray(const nlohmann::json &object,
                                   const std::string &key,
                                   const std::string &where);
const nlohmann::json &requireObject(const nlohmann::json &object,
                                    const std::string &key,
                                    const std::string &where);

/// The value of a key, or null if the key is absent or its value is `null`
/// (configurations write both for "not set"). `object` must be an object.
const nlohmann::json *findKey(const nlohmann::json &object,
                              const std::string &key, const std::string &where);

/// As above, nothing if not set; a wrong type is still an error.
std::optional<int64_t> optionalInt(const nlohmann::json &object,
                                   const std::string &key,
                                   const std::string &where);
std::optional<double> optionalNumber(const nlohmann::json &object,
                                     const std::string &key,
                                     const std::string &where);
std::optional<bool> optionalBool(const nlohmann::json &object,
                                 const std::string &key,
                                 const std::string &where);
std::optional<std::string> optionalString(const nlohmann::json &object,
                                          const std::string &key,
                                          const std::string &where);

/// The value as short text for a message; never throws, whatever it holds.
std::string describeJson(const nlohmann::json &value);

} // namespace fsdpq::rt
