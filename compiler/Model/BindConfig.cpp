//===- BindConfig.cpp - tfm-bind-config -----------------------------------===//

#include "compiler/Model/ConfigExpression.h"
#include "compiler/Model/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMBINDCONFIG
#include "compiler/Model/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;
namespace json = llvm::json;

/// Sizes above this are no model's; they would only overflow later arithmetic.
static constexpr int64_t maxSize = int64_t(1) << 24;
static constexpr int64_t maxElements = int64_t(1) << 40;

namespace {
class ConfigBinder {
public:
  ConfigBinder(tfm::ArchitectureOp architecture, const json::Object &config,
               bool gguf, int64_t tokens)
      : architecture(architecture), config(config), gguf(gguf),
        tokens(tokens), builder(architecture.getContext()) {}

  LogicalResult bind();

private:
  LogicalResult evaluateEntries();
  void reportAbsent(StringAttr entry, llvm::Error error);
  LogicalResult refuseUnsupported();
  LogicalResult checkRequired();
  LogicalResult replaceConfigAttrs();
  LogicalResult replaceTypes();
  LogicalResult joinTiedParams();
  LogicalResult assignLayers();
  FailureOr<int64_t> evaluateSize(StringRef expression);

  tfm::ArchitectureOp architecture;
  const json::Object &config;
  bool gguf;
  int64_t tokens;
  Builder builder;
  llvm::StringMap<Attribute> values; ///< null for `none`
};
} // namespace

void ConfigBinder::reportAbsent(StringAttr entry, llvm::Error error) {
  architecture.emitError("[FSDPQ-0102] the configuration gives no '")
      << entry.getValue() << "': " << llvm::toString(std::move(error));
}

LogicalResult ConfigBinder::evaluateEntries() {
  auto entries = architecture->getAttrOfType<DictionaryAttr>("config");
  if (!entries)
    return architecture.emitOpError("has no config dictionary [FSDPQ-0101]");
  bool failed = false;
  for (NamedAttribute entry : entries) {
    auto pair = dyn_cast<ArrayAttr>(entry.getValue());
    auto text = pair && pair.size() == 2
                    ? dyn_cast<StringAttr>(pair[gguf ? 1 : 0])
                    : StringAttr();
    if (!text)
      return architecture.emitOpError("config entry '")
             << entry.getName().getValue()
             << "' is not a pair of expressions [FSDPQ-0101]";
    auto value = evaluateConfig(text.getValue(), config, builder.getContext());
    if (!value) {
      reportAbsent(entry.getName(), value.takeError());
      failed = true;
      continue;
    }
    values[entry.getName().getValue()] = *value;
  }
  return failure(failed);
}

LogicalResult ConfigBinder::refuseUnsupported() {
  auto entries = architecture->getAttrOfType<DictionaryAttr>("unsupported");
  bool failed = false;
  for (NamedAttribute entry : entries ? entries : builder.getDictionaryAttr({})) {
    if (gguf)
      break; // GGUF has no such flags; the loader refuses biases it cannot place
    auto value = evaluateConfig(cast<StringAttr>(entry.getValue()).getValue(),
                                config, builder.getContext());
    if (!value) {
      reportAbsent(entry.getName(), value.takeError());
      failed = true;
      continue;
    }
    auto flag = dyn_cast_or_null<BoolAttr>(*value);
    if (flag && !flag.getValue())
      continue;
    InFlightDiagnostic diagnostic = architecture.emitError("[FSDPQ-0104] ");
    if (flag)
      diagnostic << "the checkpoint asks for '" << entry.getName().getValue()
                 << "', which @" << architecture.getSymName()
                 << " does not describe";
    else
      diagnostic << "the configuration's '" << entry.getName().getValue()
                 << "' is " << *value << ", not true or false";
    failed = true;
  }
  return failure(failed);
}

LogicalResult ConfigBinder::checkRequired() {
  auto entries = architecture->getAttrOfType<DictionaryAttr>("required");
  bool failed = false;
  for (NamedAttribute entry : entries ? entries : builder.getDictionaryAttr({})) {
    if (gguf)
      break;
    auto allowed = cast<ArrayAttr>(entry.getValue());
    auto value = evaluateConfig(cast<StringAttr>(allowed[0]).getValue(), config,
                                builder.getContext());
    if (!value) { // absent: the model family's own default
      llvm::consumeError(value.takeError());
      continue;
    }
    if (!*value || llvm::is_contained(allowed.getValue().drop_front(), *value))
      continue;
    architecture.emitError("[FSDPQ-0104] the configuration's '")
        << entry.getName().getValue() << "' is " << *value << "; @"
        << architecture.getSymName() << " describes "
        << builder.getArrayAttr(allowed.getValue().drop_front());
    failed = true;
  }
  return failure(failed);
}

LogicalResult ConfigBinder::replaceConfigAttrs() {
  WalkResult result = architecture.walk([&](Operation *op) {
    for (NamedAttribute attribute : llvm::to_vector(op->getAttrs())) {
      auto reference = dyn_cast<tfm::ConfigAttr>(attribute.getValue());
      if (!reference)
        continue;
      auto found = values.find(reference.getName().getValue());
      if (found == values.end()) {
        op->emitOpError("refers to the configuration's '")
            << reference.getName().getValue()
            << "', which the architecture does not define [FSDPQ-0103]";
        return WalkResult::interrupt();
      }
      if (Attribute value = found->second)
        op->setAttr(attribute.getName(), value);
      else
        op->removeAttr(attribute.getName());
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

FailureOr<int64_t> ConfigBinder::evaluateSize(StringRef expression) {
  int64_t product = 1;
  SmallVector<StringRef> factors;
  expression.split(factors, '*');
  for (StringRef factor : factors) {
    factor = factor.trim();
    int64_t size;
    if (factor.getAsInteger(10, size)) {
      auto found = values.find(factor);
      auto value = found == values.end()
                       ? IntegerAttr()
                       : dyn_cast_or_null<IntegerAttr>(found->second);
      if (!value) {
        InFlightDiagnostic diagnostic =
            architecture.emitError("[FSDPQ-0103] the size '") << factor << "' is ";
        if (found != values.end() && found->second)
          diagnostic << found->second << ", not a whole number";
        else
          diagnostic << "not in the configuration";
        return diagnostic;
      }
      size = value.getInt();
    }
    if (size <= 0 || size > maxSize || product > maxSize / size)
      return architecture.emitError("[FSDPQ-0105] the size '")
             << expression << "' is out of range: factor '" << factor << "' is "
             << size;
    product *= size;
  }
  return product;
}

LogicalResult ConfigBinder::replaceTypes() {
  bool failed = false;
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](RankedTensorType type) -> std::optional<std::pair<Type, WalkResult>> {
        if (!isa_and_nonnull<tfm::DimsAttr>(type.getEncoding()))
          return std::nullopt;
        SmallVector<int64_t> shape;
        SmallVector<StringRef> names;
        for (int64_t dim = 0; dim < type.getRank(); ++dim) {
          StringRef name = tfm::getDimName(type, dim);
          if (name.empty() || tfm::isRuntimeDim(name)) {
            shape.push_back(type.isDynamicDim(dim) ? tokens
                                                   : type.getDimSize(dim));
            names.push_back(name);
            continue;
          }
          FailureOr<int64_t> size = evaluateSize(name);
          failed |= mlir::failed(size);
          shape.push_back(succeeded(size) ? *size : 1);
          names.push_back("");
        }
        int64_t elements = 1;
        for (int64_t size : shape) {
          if (elements > maxElements / std::max<int64_t>(size, 1)) {
            architecture.emitError("[FSDPQ-0105] the configuration's sizes make a "
                                   "tensor of more than ")
                << maxElements << " elements";
            failed = true;
            return std::pair(Type(type), WalkResult::interrupt());
          }
          elements *= size;
        }
        return std::pair(Type(tfm::getNamedType(type.getContext(), shape, names,
                                                type.getElementType())),
                         WalkResult::skip());
      });
  replacer.recursivelyReplaceElementsIn(architecture, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  return failure(failed);
}

LogicalResult ConfigBinder::joinTiedParams() {
  for (auto param :
       llvm::make_early_inc_range(architecture.getBody().getOps<tfm::ParamOp>())) {
    auto tied = dyn_cast_or_null<BoolAttr>(param.getTiedAttr());
    if (param.getTiedAttr() && !tied)
      return param.emitError("[FSDPQ-0113] whether @")
             << param.getSymName() << " is tied is " << param.getTiedAttr()
             << ", not true or false";
    FlatSymbolRefAttr target = param.getTiedToAttr();
    param.removeTiedAttr();
    param.removeTiedToAttr();
    if (!tied || !tied.getValue() || !target)
      continue;
    // Only fails when a use cannot be renamed, which symbol arrays always can.
    (void)SymbolTable::replaceAllSymbolUses(param, target.getAttr(), architecture);
    param.erase();
  }
  return success();
}

LogicalResult ConfigBinder::assignLayers() {
  WalkResult result = architecture.walk([&](tfm::StackOp stack) {
    SmallVector<int32_t> layers;
    if (Attribute map = stack.getMapAttr();
        map && (!isa<ArrayAttr>(map) || cast<ArrayAttr>(map).empty())) {
      stack.emitError("[FSDPQ-0106] the configuration's layer types are ")
          << map << ", not a list of names";
      return WalkResult::interrupt();
    }
    if (auto map = dyn_cast_or_null<ArrayAttr>(stack.getMapAttr())) {
      ArrayAttr types = stack.getTypesAttr();
      for (Attribute type : map) {
        auto found = types ? llvm::find(types, type) : nullptr;
        if (!types || found == types.end() ||
            found - types.begin() >= (int64_t)stack.getKinds().size()) {
          stack.emitError("[FSDPQ-0106] the configuration has a layer of type ")
              << type << ", for which the stack has no kind";
          return WalkResult::interrupt();
        }
        layers.push_back(found - types.begin());
      }
    }
    if (Attribute depth = stack.getDepthAttr(); depth && !isa<IntegerAttr>(depth)) {
      stack.emitError("[FSDPQ-0106] the configuration's number of layers is ")
          << depth << ", not a whole number";
      return WalkResult::interrupt();
    }
    if (auto depth = dyn_cast_or_null<IntegerAttr>(stack.getDepthAttr())) {
      if (depth.getInt() < 1 || depth.getInt() > 4096) {
        stack.emitError("[FSDPQ-0105] the configuration has ")
            << depth.getInt() << " layers; 1 to 4096 are possible";
        return WalkResult::interrupt();
      }
      if (layers.empty())
        layers.assign(depth.getInt(), 0);
      if (depth.getInt() != (int64_t)layers.size()) {
        stack.emitError("[FSDPQ-0106] the configuration names ")
            << layers.size() << " layer types for " << depth.getInt()
            << " layers";
        return WalkResult::interrupt();
      }
    }
    if (layers.empty()) {
      stack.emitError("[FSDPQ-0106] the configuration does not say how many "
                      "layers the stack has");
      return WalkResult::interrupt();
    }
    stack.setLayers(layers);
    stack.removeDepthAttr();
    stack.removeMapAttr();
    stack.removeTypesAttr();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult ConfigBinder::bind() {
  if (failed(evaluateEntries()) || failed(refuseUnsupported()) ||
      failed(checkRequired()) ||
      failed(replaceConfigAttrs()) || failed(replaceTypes()) ||
      failed(assignLayers()) || failed(joinTiedParams()))
    return failure();
  SmallVector<NamedAttribute> bound;
  for (auto &entry : values)
    if (isa_and_nonnull<IntegerAttr, FloatAttr>(entry.second))
      bound.push_back(builder.getNamedAttr(entry.first(), entry.second));
  architecture->setAttr("config", builder.getDictionaryAttr(bound));
  architecture->removeAttr("unsupported");
  architecture->removeAttr("required");
  return success();
}

namespace {
struct BindConfigPass : fsdpq::impl::TfmBindConfigBase<BindConfigPass> {
  using TfmBindConfigBase::TfmBindConfigBase;

  void runOnOperation() override {
    if (tokens < 128 || tokens % 128 != 0 || tokens > (int64_t(1) << 28)) {
      getOperation().emitError("[FSDPQ-0107] tokens = ")
          << tokens.getValue() << ": a positive multiple of 128 is needed";
      return signalPassFailure();
    }
    std::string text = configText;
    if (text.empty()) {
      auto buffer = llvm::MemoryBuffer::getFile(config, /*IsText=*/true);
      if (!buffer) {
        getOperation().emitError("[FSDPQ-0108] cannot read the configuration '")
            << config << "': " << buffer.getError().message();
        return signalPassFailure();
      }
      text = (*buffer)->getBuffer().str();
    }
    auto parsed = json::parse(text);
    if (!parsed) {
      getOperation().emitError("[FSDPQ-0108] the configuration is no JSON: ")
          << llvm::toString(parsed.takeError());
      return signalPassFailure();
    }
    const json::Object *object = parsed->getAsObject();
    if (!object) {
      getOperation().emitError(
          "[FSDPQ-0108] the configuration is not a JSON object");
      return signalPassFailure();
    }
    tfm::ArchitectureOp architecture = selectArchitecture(*object);
    if (!architecture ||
        failed(ConfigBinder(architecture, *object, gguf, tokens).bind()))
      return signalPassFailure();
  }

private:
  /// The architecture that serves the configuration; the others are erased.
  tfm::ArchitectureOp selectArchitecture(const json::Object &object) {
    SmallVector<std::string> wanted;
    if (gguf) {
      if (auto name = object.getString("general.architecture"))
        wanted.push_back(name->str());
    } else if (const json::Array *names = object.getArray("architectures")) {
      for (const json::Value &name : *names)
        if (auto string = name.getAsString())
          wanted.push_back(string->str());
    }
    SmallVector<std::string> known;
    tfm::ArchitectureOp chosen;
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      SmallVector<StringRef> serves;
      if (gguf) {
        if (auto name = architecture->getAttrOfType<StringAttr>("gguf"))
          serves.push_back(name.getValue());
      } else if (auto names = architecture->getAttrOfType<ArrayAttr>("hf")) {
        for (auto name : names.getAsRange<StringAttr>())
          serves.push_back(name.getValue());
      }
      for (StringRef name : serves) {
        known.push_back(name.str());
        if (llvm::is_contained(wanted, name) && !chosen)
          chosen = architecture;
      }
    }
    if (!chosen) {
      getOperation().emitError("[FSDPQ-0109] unknown architecture '")
          << llvm::join(wanted, ", ") << "'; known: " << llvm::join(known, ", ");
      return {};
    }
    for (auto architecture : llvm::make_early_inc_range(
             getOperation().getOps<tfm::ArchitectureOp>()))
      if (architecture != chosen)
        architecture.erase();
    return chosen;
  }
};
} // namespace
