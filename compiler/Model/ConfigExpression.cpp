#include "compiler/Model/ConfigExpression.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
namespace json = llvm::json;

static llvm::Error fail(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// `a.b` as a key, and failing that as key `b` of the object under `a`. A JSON
/// null counts as absent: that is how configurations write "not set".
static const json::Value *lookup(const json::Object &object, StringRef key) {
  const json::Value *value = object.get(key);
  if (!value) {
    auto [head, tail] = key.split('.');
    const json::Object *inner = tail.empty() ? nullptr : object.getObject(head);
    value = inner ? lookup(*inner, tail) : nullptr;
  }
  return value && value->getAsNull() ? nullptr : value;
}

/// JSON as an attribute; null members of objects are left out.
static Attribute toAttribute(const json::Value &value, Builder &builder) {
  if (auto boolean = value.getAsBoolean())
    return builder.getBoolAttr(*boolean);
  if (value.kind() == json::Value::Number) {
    if (auto integer = value.getAsInteger())
      return builder.getI64IntegerAttr(*integer);
    return builder.getF64FloatAttr(*value.getAsNumber());
  }
  if (auto string = value.getAsString())
    return builder.getStringAttr(*string);
  if (const json::Array *array = value.getAsArray()) {
    SmallVector<Attribute> elements;
    for (const json::Value &element : *array)
    {
      // A null in a list is kept as unit, which no use of a list accepts.
      Attribute attribute = toAttribute(element, builder);
      elements.push_back(attribute ? attribute : builder.getUnitAttr());
    }
    return builder.getArrayAttr(elements);
  }
  if (const json::Object *object = value.getAsObject()) {
    SmallVector<NamedAttribute> members;
    for (const auto &[key, member] : *object)
      if (Attribute attribute = toAttribute(member, builder))
        members.push_back(builder.getNamedAttr(key.str(), attribute));
    return builder.getDictionaryAttr(members);
  }
  return {};
}

static const json::Array *findTensor(const json::Object &config,
                                     StringRef name) {
  const json::Object *tensors = config.getObject("tensors");
  return tensors ? tensors->getArray(name) : nullptr;
}

/// `text` is `function(argument)`.
static std::optional<StringRef> matchCall(StringRef text, StringRef function) {
  if (text.consume_front(function) && text.consume_front("(") &&
      text.consume_back(")"))
    return text.trim();
  return std::nullopt;
}

static std::optional<Attribute> parseLiteral(StringRef text, Builder &builder) {
  int64_t integer;
  double number;
  if (text == "none")
    return Attribute();
  if (text == "true" || text == "false")
    return builder.getBoolAttr(text == "true");
  if (!text.getAsInteger(10, integer))
    return builder.getI64IntegerAttr(integer);
  if (!text.getAsDouble(number))
    return builder.getF64FloatAttr(number);
  return std::nullopt;
}

llvm::Expected<Attribute>
fsdpq::evaluateConfig(StringRef expression, const json::Object &config,
                      MLIRContext *context) {
  Builder builder(context);
  SmallVector<StringRef> alternatives;
  expression.split(alternatives, '|');
  for (StringRef text : alternatives) {
    text = text.trim();
    if (std::optional<Attribute> literal = parseLiteral(text, builder))
      return *literal;
    if (auto tensor = matchCall(text, "absent"))
      return builder.getBoolAttr(!findTensor(config, *tensor));
    if (auto prefix = matchCall(text, "prefix")) {
      SmallVector<NamedAttribute> members;
      for (const auto &[key, member] : config) {
        StringRef rest = key;
        if (!rest.consume_front(*prefix) || !rest.consume_front("."))
          continue;
        if (Attribute attribute = toAttribute(member, builder))
          members.push_back(builder.getNamedAttr(rest, attribute));
      }
      if (members.empty())
        continue;
      return builder.getDictionaryAttr(members);
    }
    if (auto tensor = matchCall(text, "rows")) {
      const json::Array *shape = findTensor(config, *tensor);
      if (!shape || shape->empty())
        continue;
      return toAttribute(shape->front(), builder);
    }
    if (text.contains(" / ")) {
      auto [numerator, denominator] = text.split(" / ");
      const json::Value *a = lookup(config, numerator.trim());
      const json::Value *b = lookup(config, denominator.trim());
      if (!a || !b)
        continue;
      std::optional<int64_t> x = a->getAsInteger(), y = b->getAsInteger();
      if (!x || !y || *x < 0 || *y <= 0 || *x % *y != 0)
        return fail("'" + text + "' is not a whole number");
      return builder.getI64IntegerAttr(*x / *y);
    }
    if (const json::Value *value = lookup(config, text))
      return toAttribute(*value, builder);
  }
  return fail("nothing under '" + expression + "'");
}
