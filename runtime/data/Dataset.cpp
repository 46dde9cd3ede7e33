#include "runtime/data/Dataset.h"

#include "runtime/data/JsonRecords.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <limits>

namespace fsdpq::rt {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(int id, const std::string &what,
                         const RecordPlace &place,
                         const std::string &hint = "") {
  throw Error(id, ExitCode::BadInput, what, place.text(), hint);
}

const char *formatName(DataFormat format) {
  return format == DataFormat::Alpaca ? "alpaca" : "pre-tokenised";
}

std::string listKeys(const Json &record) {
  std::string keys;
  for (const auto &[key, value] : record.items())
    keys += (keys.empty() ? "" : ", ") + key;
  return keys.empty() ? "none" : keys;
}

DataFormat detectFormat(const Json &record, const RecordPlace &place) {
  bool alpaca = record.contains("instruction") && record.contains("output");
  bool pretokenised = record.contains("input_ids");
  if (alpaca == pretokenised)
    refuse(2102,
           alpaca ? "the record has the keys of two forms, alpaca and "
                    "pre-tokenised"
                  : "no known form has the record's keys: " + listKeys(record),
           place,
           "known forms: alpaca (instruction, input, output) and pre-tokenised "
           "(input_ids, labels)");
  return alpaca ? DataFormat::Alpaca : DataFormat::Pretokenised;
}

/// Makes rows of one form from records.
class RowBuilder {
public:
  RowBuilder(DataFormat format, const Tokenizer *tokenizer,
             const DatasetOptions &options)
      : format(format), tokenizer(tokenizer), options(options) {}

  Row build(const Json &record, const RecordPlace &place) const {
    return format == DataFormat::Alpaca ? buildAlpaca(record, place)
                                        : buildPretokenised(record, place);
  }

private:
  const Json &require(const Json &record, const char *key,
                      const RecordPlace &place) const {
    auto found = record.find(key);
    if (found == record.end())
      refuse(2102,
             std::string("the key '") + key +
                 "' is missing; found: " + listKeys(record),
             place,
             std::string("the first record makes this file ") +
                 formatName(format) + "; all records must have one form");
    return *found;
  }

  std::string requireString(const Json &record, const char *key,
                            const RecordPlace &place) const {
    const Json &value = require(record, key, place);
    if (!value.is_string())
      refuse(2103,
             std::string("'") + key + "' must be a string, found " +
                 value.type_name(),
             place);
    return value.get<std::string>();
  }

  Row buildAlpaca(const Json &record, const RecordPlace &place) const {
    if (!tokenizer || !tokenizer->eosId())
      refuse(2105,
             tokenizer ? "the tokenizer names no end-of-sequence token"
                       : "the records are text, but there is no tokenizer",
             place,
             tokenizer ? "set eos_token in tokenizer_config.json"
                       : "give a model with a tokenizer, or pre-tokenised "
                         "records (input_ids, labels)");
    std::string instruction = requireString(record, "instruction", place);
    std::string output = requireString(record, "output", place);
    std::string input;
    if (auto found = record.find("input");
        found != record.end() && !found->is_null())
      input = requireString(record, "input", place);

    std::string prompt = alpacaPrompt(instruction, input);
    size_t promptLength = tokenizer->encode(prompt, true).size();
    Row row;
    row.ids = tokenizer->encode(prompt + output, true);
    row.ids.push_back(*tokenizer->eosId());
    row.labels = row.ids;
    // Merges across the border may make the prompt alone the longer one.
    std::fill_n(row.labels.begin(), std::min(promptLength, row.ids.size()),
                kIgnoredLabel);
    return row;
  }

  std::vector<int32_t> readIds(const Json &record, const char *key,
                               bool ignoredToo,
                               const RecordPlace &place) const {
    const Json &values = require(record, key, place);
    if (!values.is_array())
      refuse(2103,
             std::string("'") + key + "' must be an array of integers, found " +
                 values.type_name(),
             place);
    int64_t size = options.vocabularySize;
    if (size == 0)
      size = tokenizer ? tokenizer->vocabularySize()
                       : std::numeric_limits<int32_t>::max();
    std::vector<int32_t> ids;
    ids.reserve(values.size());
    for (const Json &value : values) {
      bool isId = value.is_number_unsigned() &&
                  value.get<uint64_t>() < static_cast<uint64_t>(size);
      bool isIgnored =
          ignoredToo && value.is_number_integer() && value == kIgnoredLabel;
      if (!isId && !isIgnored)
        refuse(2103,
               std::string("'") + key + "' holds " + value.dump() +
                   " at position " + std::to_string(ids.size()) +
                   "; it must be an integer from 0 to " +
                   std::to_string(size - 1) + (ignoredToo ? ", or -100" : ""),
               place, "were the ids made with this model's tokenizer?");
      ids.push_back(value.get<int32_t>());
    }
    return ids;
  }

  Row buildPretokenised(const Json &record, const RecordPlace &place) const {
    Row row;
    row.ids = readIds(record, "input_ids", false, place);
    if (row.ids.empty())
      refuse(2103, "'input_ids' is empty", place);
    row.labels = record.contains("labels")
                     ? readIds(record, "labels", true, place)
                     : row.ids;
    if (row.labels.size() != row.ids.size())
      refuse(2103,
             "'labels' has " + std::to_string(row.labels.size()) +
                 " values for " + std::to_string(row.ids.size()) +
                 " 'input_ids'",
             place);
    auto mask = record.find("attention_mask");
    if (mask != record.end() && *mask != Json(Json::array_t(row.ids.size(), 1)))
      refuse(2103,
             "'attention_mask' is not " + std::to_string(row.ids.size()) +
                 " ones",
             place,
             "rows are stored without padding; leave the padded tokens out");
    return row;
  }

  DataFormat format;
  const Tokenizer *tokenizer;
  const DatasetOptions &options;
};

bool hasLabel(const Row &row) {
  return std::any_of(row.labels.begin() + 1, row.labels.end(),
                     [](int32_t label) { return label != kIgnoredLabel; });
}

} // namespace

std::string alpacaPrompt(std::string_view instruction, std::string_view input) {
  std::string prompt = "Below is an instruction that describes a task";
  if (!input.empty())
    prompt += ", paired with an input that provides further context";
  prompt += ". Write a response that appropriately completes the request.\n\n"
            "### Instruction:\n";
  prompt += instruction;
  if (!input.empty()) {
    prompt += "\n\n### Input:\n";
    prompt += input;
  }
  prompt += "\n\n### Response:";
  return prompt;
}

Dataset loadDataset(const std::string &path, const Tokenizer *tokenizer,
                    const DatasetOptions &options) {
  if (options.contextLength < 1)
    throw Error(2103, ExitCode::BadInput,
                "the context length must be at least 1, not " +
                    std::to_string(options.contextLength));
  Dataset dataset;
  std::optional<RowBuilder> builder;
  auto limit = static_cast<size_t>(options.contextLength);
  forEachRecord(path, [&](const Json &record, const RecordPlace &place) {
    if (!builder) {
      dataset.format =
          options.format ? *options.format : detectFormat(record, place);
      builder.emplace(dataset.format, tokenizer, options);
    }
    Row row = builder->build(record, place);
    if (row.ids.size() > limit) {
      row.ids.resize(limit);
      row.labels.resize(limit);
      ++dataset.truncatedRows;
    }
    if (!hasLabel(row))
      ++dataset.rowsWithoutLabels;
    dataset.rows.push_back(std::move(row));
  });
  if (dataset.rows.empty())
    throw Error(2104, ExitCode::BadInput, "the data set has no records", path);
  dataset.description = std::string(formatName(dataset.format)) + ", " +
                        std::to_string(dataset.rows.size()) +
                        (dataset.rows.size() == 1 ? " record" : " records");
  return dataset;
}

} // namespace fsdpq::rt
