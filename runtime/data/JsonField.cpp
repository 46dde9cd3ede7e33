#include "runtime/data/JsonField.h"

#include "runtime/data/Utf8.h"
#include "runtime/support/Error.h"
#include "runtime/support/MappedFile.h"

namespace fsdpq::rt {

JsonField::JsonField(const nlohmann::json &document, std::string file)
    : JsonField(document, std::move(file), "") {}

JsonField::JsonField(const nlohmann::json &value, std::string file,
                     std::string path)
    : value(&value), file(std::move(file)), path(std::move(path)) {}

JsonField JsonField::at(const std::string &key) const {
  expectObject();
  auto member = value->find(key);
  if (member == value->end())
    fail(2001, "missing field '" + key + "'");
  return JsonField(*member, file, path.empty() ? key : path + "." + key);
}

std::optional<JsonField> JsonField::find(const std::string &key) const {
  expectObject();
  auto member = value->find(key);
  if (member == value->end() || member->is_null())
    return std::nullopt;
  return at(key);
}

std::vector<JsonField> JsonField::elements() const {
  if (!value->is_array())
    fail(2001, std::string("expected an array, found ") + value->type_name());
  std::vector<JsonField> result;
  result.reserve(value->size());
  for (size_t index = 0; index < value->size(); ++index)
    result.push_back(JsonField((*value)[index], file,
                               path + "[" + std::to_string(index) + "]"));
  return result;
}

std::string JsonField::string() const {
  if (!value->is_string())
    fail(2001, std::string("expected a string, found ") + value->type_name());
  return value->get<std::string>();
}

bool JsonField::boolean() const {
  if (!value->is_boolean())
    fail(2001,
         std::string("expected true or false, found ") + value->type_name());
  return value->get<bool>();
}

int64_t JsonField::integer(int64_t least, int64_t most) const {
  if (!value->is_number_integer())
    fail(2001, std::string("expected an integer, found ") + value->type_name());
  // An unsigned value beyond int64 would wrap around in get<int64_t>().
  bool tooLarge = value->is_number_unsigned() &&
                  value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (tooLarge || value->get<int64_t>() < least || value->get<int64_t>() > most)
    fail(2001, "the value " + value->dump() + " is outside " +
                   std::to_string(least) + " to " + std::to_string(most));
  return value->get<int64_t>();
}

char32_t JsonField::character() const {
  std::string text = string();
  size_t offset = 0;
  char32_t result = text.empty() ? 0 : nextCodePoint(text, offset);
  if (text.empty() || offset != text.size())
    fail(2001, "expected one character, found '" + text + "'");
  return result;
}

bool JsonField::boolean(const std::string &key, bool otherwise) const {
  std::optional<JsonField> member = find(key);
  return member ? member->boolean() : otherwise;
}

void JsonField::fail(int id, const std::string &what,
                     const std::string &hint) const {
  throw Error(id, ExitCode::BadInput, what,
              path.empty() ? file : file + ": " + path, hint);
}

void JsonField::failUnsupported(const std::string &kind,
                                const std::string &name) const {
  fail(2002, "the " + kind + " '" + name + "' is not implemented",
       "convert the data to token ids with the library that made this "
       "tokenizer and give it in the pre-tokenised form");
}

void JsonField::expectObject() const {
  if (!value->is_object())
    fail(2001, std::string("expected an object, found ") + value->type_name());
}

nlohmann::json readJsonDocument(const std::string &path) {
  MappedFile file(path);
  try {
    return nlohmann::json::parse(file.data(), file.data() + file.size());
  } catch (const nlohmann::json::exception &error) {
    throw Error(2001, ExitCode::BadInput,
                std::string("not a JSON document: ") + error.what(), path,
                "the file may be cut off or a Git LFS pointer; fetch it again");
  }
}

} // namespace fsdpq::rt
