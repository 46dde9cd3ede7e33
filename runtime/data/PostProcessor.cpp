#include "runtime/data/PostProcessor.h"

#include "runtime/data/ComponentDepth.h"

namespace fsdpq::rt {

PostProcessor PostProcessor::parse(const JsonField &field) {
  PostProcessor result;
  if (!field.isNull())
    result.parseInto(field, 0);
  // A second template would have to say which of the first one's parts it
  // wraps; the reference has no answer either.
  if (result.templates.size() > 1)
    field.fail(2002, "more than one TemplateProcessing is not implemented");
  return result;
}

void PostProcessor::parseInto(const JsonField &field, int depth) {
  checkComponentDepth(field, depth);
  std::string type = field.at("type").string();
  if (type == "Sequence")
    for (const JsonField &part : field.at("processors").elements())
      parseInto(part, depth + 1);
  else if (type == "TemplateProcessing")
    templates.push_back(parseTemplate(field));
  else if (type != "ByteLevel")
    field.failUnsupported("post-processor", type);
}

PostProcessor::Template PostProcessor::parseTemplate(const JsonField &field) {
  Template result;
  JsonField specials = field.at("special_tokens");
  for (const JsonField &piece : field.at("single").elements()) {
    if (std::optional<JsonField> sequence = piece.find("Sequence")) {
      JsonField id = sequence->at("id");
      if (id.string() != "A")
        id.fail(2001, "a template for one text can only hold sequence 'A', "
                      "found '" +
                          id.string() + "'");
      result.push_back({true, {}});
      continue;
    }
    std::string name = piece.at("SpecialToken").at("id").string();
    Item item{false, {}};
    for (const JsonField &id : specials.at(name).at("ids").elements())
      item.ids.push_back(static_cast<int32_t>(id.integer(0, INT32_MAX)));
    result.push_back(std::move(item));
  }
  return result;
}

std::vector<int32_t> PostProcessor::apply(std::vector<int32_t> ids,
                                          bool addSpecialTokens) const {
  for (const Template &items : templates) {
    std::vector<int32_t> result;
    for (const Item &item : items) {
      if (item.isText)
        result.insert(result.end(), ids.begin(), ids.end());
      else if (addSpecialTokens)
        result.insert(result.end(), item.ids.begin(), item.ids.end());
    }
    ids = std::move(result);
  }
  return ids;
}

std::vector<int32_t> PostProcessor::specialIds() const {
  std::vector<int32_t> result;
  for (const Template &items : templates)
    for (const Item &item : items)
      result.insert(result.end(), item.ids.begin(), item.ids.end());
  return result;
}

} // namespace fsdpq::rt
