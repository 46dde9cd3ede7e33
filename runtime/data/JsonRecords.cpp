#include "runtime/data/JsonRecords.h"

#include "runtime/support/Error.h"
#include "runtime/support/MappedFile.h"

#include <cassert>
#include <string_view>
#include <unordered_set>

namespace fsdpq::rt {
namespace {

using Json = nlohmann::json;

constexpr const char *kFormHint =
    "a data file is a JSON array of objects, or holds one JSON object a line";

[[noreturn]] void refuse(const std::string &what, const RecordPlace &place) {
  throw Error(2101, ExitCode::BadInput, what, place.text(), kFormHint);
}

/// Follows the parser through objects and refuses a key that comes twice.
class DuplicateKeyCheck {
public:
  explicit DuplicateKeyCheck(const RecordPlace &place) : place(place) {}

  void see(Json::parse_event_t event, const Json &parsed) {
    if (event == Json::parse_event_t::object_start) {
      open.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      open.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const auto &key = parsed.get_ref<const std::string &>();
      if (!open.back().insert(key).second)
        refuse("the key '" + key + "' stands twice in one object", place);
    }
  }

private:
  const RecordPlace &place;
  std::vector<std::unordered_set<std::string>> open;
};

using RecordHandler = std::function<void(const Json &, const RecordPlace &)>;

void readArray(std::string_view text, RecordPlace place,
               const RecordHandler &handle) {
  DuplicateKeyCheck duplicates(place);
  // Each record is handed over as it ends and then dropped from the array.
  auto onEvent = [&](int depth, Json::parse_event_t event, Json &parsed) {
    using Event = Json::parse_event_t;
    bool begins = event == Event::object_start || event == Event::array_start ||
                  event == Event::value;
    if (depth == 1 && begins) {
      ++place.record;
      if (event != Event::object_start)
        refuse("a record is not an object", place);
    }
    duplicates.see(event, parsed);
    if (depth != 1 || event != Event::object_end)
      return true;
    handle(parsed, place);
    return false;
  };
  try {
    [[maybe_unused]] Json left = Json::parse(text.begin(), text.end(), onEvent);
    assert(left.empty() && "every record was handed over");
  } catch (const Json::exception &error) {
    refuse(std::string("the file is not valid JSON: ") + error.what(), place);
  }
}

void readLine(std::string_view line, const RecordPlace &place,
              const RecordHandler &handle) {
  DuplicateKeyCheck duplicates(place);
  auto onEvent = [&](int, Json::parse_event_t event, Json &parsed) {
    duplicates.see(event, parsed);
    return true;
  };
  Json record;
  try {
    record = Json::parse(line.begin(), line.end(), onEvent);
  } catch (const Json::exception &error) {
    refuse(std::string("the line is not valid JSON: ") + error.what(), place);
  }
  if (!record.is_object())
    refuse(std::string("a record is not an object but ") + record.type_name(),
           place);
  handle(record, place);
}

bool isBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

} // namespace

std::string RecordPlace::text() const {
  std::string result = file;
  if (line > 0)
    result += ":" + std::to_string(line);
  if (record > 0)
    result += ": record " + std::to_string(record);
  return result;
}

void forEachRecord(const std::string &path, const RecordHandler &handle) {
  MappedFile file(path);
  std::string_view text(reinterpret_cast<const char *>(file.data()),
                        file.size());
  if (text.starts_with("\xEF\xBB\xBF")) // a byte order mark
    text.remove_prefix(3);
  RecordPlace place{path, 0, 0};
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos)
    return;
  if (text[first] == '[') {
    readArray(text, place, handle);
    return;
  }
  while (!text.empty()) {
    ++place.line;
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (isBlank(line))
      continue;
    ++place.record;
    readLine(line, place, handle);
  }
}

} // namespace fsdpq::rt
