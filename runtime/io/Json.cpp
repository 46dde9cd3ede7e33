#include "runtime/io/Json.h"
#include "runtime/support/Error.h"
#include "runtime/support/MappedFile.h"

#include <limits>
#include <vector>

namespace fsdpq::rt {

using nlohmann::json;

namespace {

/// Cuts long text in the middle: its end often says what was expected.
std::string abbreviate(const std::string &text) {
  constexpr size_t head = 120, tail = 80;
  if (text.size() <= head + tail)
    return text;
  return text.substr(0, head) + " ... " + text.substr(text.size() - tail);
}

/// Builds the tree from the library's parse events. The library's own builder
/// keeps the last of repeated keys and has no depth limit.
class TreeBuilder {
public:
  TreeBuilder(const std::string &where, size_t maxDepth)
      : where(where), maxDepth(maxDepth) {}

  json take() { return std::move(root); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(json::number_integer_t value) { return add(value); }
  bool number_unsigned(json::number_unsigned_t value) { return add(value); }
  bool number_float(json::number_float_t value, const std::string &) {
    return add(value);
  }
  bool string(std::string &value) { return add(std::move(value)); }
  bool binary(json::binary_t &) { return false; } // not in JSON text

  bool start_object(size_t) { return open(json::object()); }
  bool start_array(size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string &name) {
    Level &level = levels.back();
    auto [entry, isNew] = level.container->get_ref<json::object_t &>().emplace(
        std::move(name), nullptr);
    level.key = &entry->first;
    level.slot = &entry->second;
    if (!isNew)
      throw Error(1202, ExitCode::BadInput,
                  "key \"" + abbreviate(keyPath()) + "\" stands twice", where,
                  "remove one of the two");
    return true;
  }

  bool parse_error(size_t position, const std::string &,
                   const nlohmann::detail::exception &error) {
    // Drop the library's own "[json.exception.<kind>.<number>] ".
    std::string text = error.what();
    if (size_t prefix = text.find("] "); prefix != std::string::npos)
      text.erase(0, prefix + 2);
    throw Error(1201, ExitCode::BadInput,
                "invalid JSON at byte " + std::to_string(position) + ": " +
                    abbreviate(text),
                where, "correct the file or fetch it again");
  }

private:
  /// A container that is still open. In an object, `key` and `slot` are those
  /// of the member being read.
  struct Level {
    json *container;
    const std::string *key = nullptr;
    json *slot = nullptr;
  };

  template <typename T>
  json *place(T &&value) {
    if (levels.empty()) {
      root = std::forward<T>(value);
      return &root;
    }
    Level &level = levels.back();
    if (level.container->is_array()) {
      auto &elements = level.container->get_ref<json::array_t &>();
      return &elements.emplace_back(std::forward<T>(value));
    }
    *level.slot = std::forward<T>(value);
    return level.slot;
  }

  template <typename T>
  bool add(T &&value) {
    place(std::forward<T>(value));
    return true;
  }

  bool open(json container) {
    json *placed = place(std::move(container));
    levels.push_back({placed});
    if (levels.size() > maxDepth)
      throw Error(1203, ExitCode::BadInput,
                  "values are nested more than " + std::to_string(maxDepth) +
                      " levels deep at \"" + abbreviate(keyPath()) + "\"",
                  where);
    return true;
  }

  bool close() {
    levels.pop_back();
    return true;
  }

  std::string keyPath() const {
    std::string path;
    for (const Level &level : levels) {
      if (level.key)
        path += (path.empty() ? "" : ".") + *level.key;
      else if (level.container->is_array() && !level.container->empty())
        path += "[" + std::to_string(level.container->size() - 1) + "]";
    }
    return path;
  }

  const std::string &where;
  size_t maxDepth;
  json root;
  std::vector<Level> levels;
};

[[noreturn]] void throwWrongType(const json &value, const std::string &key,
                                 const char *expected,
                                 const std::string &where) {
  throw Error(1205, ExitCode::BadInput,
              "\"" + key + "\" is " + describeJson(value) + ", expected " +
                  expected,
              where);
}

const json &requireKey(const json &object, const std::string &key,
                       const std::string &where) {
  if (object.is_object())
    if (auto entry = object.find(key); entry != object.end())
      return *entry;
  if (!object.is_object())
    throw Error(1205, ExitCode::BadInput,
                describeJson(object) + " stands where an object with \"" + key +
                    "\" is expected",
                where);
  throw Error(1204, ExitCode::BadInput, "\"" + key + "\" is missing", where,
              "add it");
}

int64_t toInt(const json &value, const std::string &key,
              const std::string &where) {
  constexpr uint64_t limit = std::numeric_limits<int64_t>::max();
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > limit))
    throwWrongType(value, key, "an integer of at most 64 bits", where);
  return value.get<int64_t>();
}

double toNumber(const json &value, const std::string &key,
                const std::string &where) {
  if (!value.is_number())
    throwWrongType(value, key, "a number", where);
  return value.get<double>();
}

bool toBool(const json &value, const std::string &key,
            const std::string &where) {
  if (!value.is_boolean())
    throwWrongType(value, key, "true or false", where);
  return value.get<bool>();
}

const std::string &toString(const json &value, const std::string &key,
                            const std::string &where) {
  if (!value.is_string())
    throwWrongType(value, key, "a string", where);
  return value.get_ref<const std::string &>();
}

} // namespace

json parseJson(std::string_view text, const std::string &where,
               size_t maxDepth) {
  TreeBuilder builder(where, maxDepth);
  json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

json readJsonFile(const std::string &path, size_t maxDepth) {
  MappedFile file(path);
  const char *text = reinterpret_cast<const char *>(file.data());
  return parseJson(std::string_view(text, file.size()), path, maxDepth);
}

int64_t requireInt(const json &object, const std::string &key,
                   const std::string &where) {
  return toInt(requireKey(object, key, where), key, where);
}

double requireNumber(const json &object, const std::string &key,
                     const std::string &where) {
  return toNumber(requireKey(object, key, where), key, where);
}

bool requireBool(const json &object, const std::string &key,
                 const std::string &where) {
  return toBool(requireKey(object, key, where), key, where);
}

const std::string &requireString(const json &object, const std::string &key,
                                 const std::string &where) {
  return toString(requireKey(object, key, where), key, where);
}

const json &requireArray(const json &object, const std::string &key,
                         const std::string &where) {
  const json &value = requireKey(object, key, where);
  if (!value.is_array())
    throwWrongType(value, key, "an array", where);
  return value;
}

const json &requireObject(const json &object, const std::string &key,
                          const std::string &where) {
  const json &value = requireKey(object, key, where);
  if (!value.is_object())
    throwWrongType(value, key, "an object", where);
  return value;
}

const json *findKey(const json &object, const std::string &key,
                    const std::string &where) {
  if (object.is_object() && !object.contains(key))
    return nullptr;
  const json &value = requireKey(object, key, where);
  return value.is_null() ? nullptr : &value;
}

std::optional<int64_t> optionalInt(const json &object, const std::string &key,
                                   const std::string &where) {
  const json *value = findKey(object, key, where);
  return value ? std::optional(toInt(*value, key, where)) : std::nullopt;
}

std::optional<double> optionalNumber(const json &object, const std::string &key,
                                     const std::string &where) {
  const json *value = findKey(object, key, where);
  return value ? std::optional(toNumber(*value, key, where)) : std::nullopt;
}

std::optional<bool> optionalBool(const json &object, const std::string &key,
                                 const std::string &where) {
  const json *value = findKey(object, key, where);
  return value ? std::optional(toBool(*value, key, where)) : std::nullopt;
}

std::optional<std::string> optionalString(const json &object,
                                          const std::string &key,
                                          const std::string &where) {
  const json *value = findKey(object, key, where);
  return value ? std::optional(toString(*value, key, where)) : std::nullopt;
}

std::string describeJson(const json &value) {
  if (value.is_array() || value.is_object())
    return std::string(value.is_array() ? "an array" : "an object") + " of " +
           std::to_string(value.size());
  return abbreviate(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

} // namespace fsdpq::rt
