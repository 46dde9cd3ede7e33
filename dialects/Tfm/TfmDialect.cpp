#include "dialects/Tfm/Tfm.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fsdpq::tfm;

#include "dialects/Tfm/TfmDialect.cpp.inc"
#include "dialects/Tfm/TfmInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Tfm/TfmAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Tfm/TfmTypes.cpp.inc"

namespace {
/// Prints `#dims`, `#dims1` ... instead of spelling encodings out in every type.
struct TfmAsmInterface : public OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    auto dims = dyn_cast<DimsAttr>(attribute);
    if (!dims)
      return AliasResult::NoAlias;
    os << "dims";
    for (StringAttr name : dims.getNames()) {
      os << '_';
      for (char c : name.getValue())
        os << (llvm::isAlnum(c) ? c : '_');
    }
    return AliasResult::FinalAlias;
  }
};
} // namespace

void TfmDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Tfm/TfmAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Tfm/TfmTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tfm/TfmOps.cpp.inc"
      >();
  addInterfaces<TfmAsmInterface>();
}

LogicalResult
DropoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, FloatAttr rate,
                    int64_t site) {
  const double value = rate.getValueAsDouble();
  if (!(value >= 0 && value < 1))
    return emitError() << "drops at a rate of " << value
                       << ", not 0 or more and less than 1";
  if (site < 0 || site > lastSite)
    return emitError() << "has site " << site << ", not 0 to " << lastSite;
  return success();
}

LogicalResult
DimsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                         function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != getNames().size())
    return emitError() << "names " << getNames().size() << " sizes of a rank "
                       << shape.size() << " tensor";
  for (auto [size, name] : llvm::zip(shape, getNames()))
    if (ShapedType::isDynamic(size) && name.getValue().empty())
      return emitError() << "a dynamic size needs a name";
  return success();
}

StringRef fsdpq::tfm::getDimName(RankedTensorType type, int64_t dim) {
  if (auto dims = dyn_cast_or_null<DimsAttr>(type.getEncoding()))
    return dims.getNames()[dim].getValue();
  return "";
}

RankedTensorType fsdpq::tfm::getNamedType(MLIRContext *context,
                                          ArrayRef<int64_t> shape,
                                          ArrayRef<StringRef> names,
                                          Type elementType) {
  if (llvm::all_of(names, [](StringRef name) { return name.empty(); }))
    return RankedTensorType::get(shape, elementType);
  SmallVector<StringAttr> attributes;
  for (StringRef name : names)
    attributes.push_back(StringAttr::get(context, name));
  return RankedTensorType::get(shape, elementType,
                               DimsAttr::get(context, attributes));
}

int64_t fsdpq::tfm::getBoundInt(Attribute attribute) {
  return cast<IntegerAttr>(attribute).getInt();
}

double fsdpq::tfm::getBoundFloat(Attribute attribute) {
  if (auto integer = dyn_cast<IntegerAttr>(attribute)) // JSON's 10000 for 1e4
    return static_cast<double>(integer.getInt());
  return cast<FloatAttr>(attribute).getValueAsDouble();
}
