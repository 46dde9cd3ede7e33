//===- TfmStructure.cpp - Architectures, functions, stacks ----------------===//

#include "dialects/Tfm/Tfm.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace fsdpq::tfm;

//===----------------------------------------------------------------------===//
// Architectures
//===----------------------------------------------------------------------===//

static bool isStringList(Attribute attribute) {
  auto list = dyn_cast<ArrayAttr>(attribute);
  return list && !list.empty() &&
         llvm::all_of(list, [](Attribute entry) { return isa<StringAttr>(entry); });
}

LogicalResult ArchitectureOp::verify() {
  Operation *op = *this;
  if (Attribute hf = op->getAttr("hf"); hf && !isStringList(hf))
    return emitOpError("needs a list of names as hf, got ") << hf;
  if (Attribute gguf = op->getAttr("gguf"); gguf && !isa<StringAttr>(gguf))
    return emitOpError("needs a name as gguf, got ") << gguf;
  for (StringRef name : {"config", "unsupported", "required"})
    if (Attribute given = op->getAttr(name); given && !isa<DictionaryAttr>(given))
      return emitOpError("needs a dictionary as ") << name << ", got " << given;
  for (NamedAttribute entry :
       op->getAttrOfType<DictionaryAttr>("unsupported")
           ? op->getAttrOfType<DictionaryAttr>("unsupported").getValue()
           : ArrayRef<NamedAttribute>())
    if (!isa<StringAttr>(entry.getValue()))
      return emitOpError("needs an expression for the unsupported '")
             << entry.getName().getValue() << "', got " << entry.getValue();
  for (NamedAttribute entry :
       op->getAttrOfType<DictionaryAttr>("required")
           ? op->getAttrOfType<DictionaryAttr>("required").getValue()
           : ArrayRef<NamedAttribute>())
    if (!isa<ArrayAttr>(entry.getValue()) ||
        cast<ArrayAttr>(entry.getValue()).size() < 2 ||
        !isa<StringAttr>(cast<ArrayAttr>(entry.getValue())[0]))
      return emitOpError("needs an expression and values for the required '")
             << entry.getName().getValue() << "', got " << entry.getValue();
  return success();
}

//===----------------------------------------------------------------------===//
// Layers and functions
//===----------------------------------------------------------------------===//

template <typename OpT>
static ParseResult parseFunction(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> arguments,
                      ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(arguments, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      OpT::getFunctionTypeAttrName(result.name), buildType,
      OpT::getArgAttrsAttrName(result.name),
      OpT::getResAttrsAttrName(result.name));
}

template <typename OpT>
static void printFunction(OpAsmPrinter &printer, OpT op) {
  function_interface_impl::printFunctionOp(
      printer, op, /*isVariadic=*/false, op.getFunctionTypeAttrName(),
      op.getArgAttrsAttrName(), op.getResAttrsAttrName());
}

/// The body gets its entry block; the caller fills it.
static void buildFunction(OpBuilder &builder, OperationState &state,
                          StringAttr symbolName, StringAttr typeName,
                          StringRef name, FunctionType type) {
  state.addAttribute(symbolName, builder.getStringAttr(name));
  state.addAttribute(typeName, TypeAttr::get(type));
  Block *entry = new Block();
  state.addRegion()->push_back(entry);
  for (Type argument : type.getInputs())
    entry->addArgument(argument, state.location);
}

#define FSDPQ_FUNCTION_OP(OP)                                                  \
  ParseResult OP::parse(OpAsmParser &parser, OperationState &result) {         \
    return parseFunction<OP>(parser, result);                                  \
  }                                                                            \
  void OP::print(OpAsmPrinter &printer) { printFunction(printer, *this); }     \
  void OP::build(OpBuilder &builder, OperationState &state, StringRef name,    \
                 FunctionType type) {                                          \
    buildFunction(builder, state, getSymNameAttrName(state.name),              \
                  getFunctionTypeAttrName(state.name), name, type);            \
  }

FSDPQ_FUNCTION_OP(LayerOp)
FSDPQ_FUNCTION_OP(FuncOp)
#undef FSDPQ_FUNCTION_OP

LogicalResult ReturnOp::verify() {
  auto function = cast<FunctionOpInterface>((*this)->getParentOp());
  if (getOperandTypes() != function.getResultTypes())
    return emitOpError("returns ")
           << getOperandTypes() << " where @" << function.getName()
           << " declares " << function.getResultTypes();
  return success();
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

LogicalResult ParamOp::verify() {
  if (getInit() && *getInit() != "zeros" && *getInit() != "kaiming_uniform")
    return emitOpError("has init \"")
           << *getInit() << "\"; known are zeros and kaiming_uniform";
  if (!getInit() && !getHf() && !getGguf())
    return emitOpError("@") << getSymName()
                            << " needs a checkpoint name (hf, gguf) or an init";
  for (std::optional<StringRef> name : {getHf(), getGguf()})
    if (name && name->contains("{layer}") != getPerLayer())
      return emitOpError("@")
             << getSymName() << ": a name holds {layer} exactly when the "
             << "parameter is per_layer; \"" << *name << "\" does not fit";
  return success();
}

/// The shape of the parameters named, joined along the first dimension, must be
/// that of `type`. Symbolic sizes are compared once they are bound.
static LogicalResult verifyJoined(Operation *op, ArrayAttr params,
                                  RankedTensorType type,
                                  SymbolTableCollection &tables) {
  if (params.empty())
    return op->emitOpError("names no parameter");
  int64_t rows = 0;
  for (auto symbol : params.getAsRange<SymbolRefAttr>()) {
    Operation *target = tables.lookupNearestSymbolFrom(op, symbol);
    auto param = dyn_cast_or_null<ParamOp>(target);
    if (!param) {
      // After fsdp-form-units gradients and updates name units.
      if (target && !isa<FunctionOpInterface>(target))
        return success();
      return op->emitOpError("names ") << symbol << ", which is no parameter";
    }
    RankedTensorType part = param.getTensorType();
    if (part.getRank() != type.getRank())
      return op->emitOpError("gives ") << symbol << " rank " << type.getRank()
                                       << ", it has " << part.getRank();
    if (!part.hasStaticShape() || !type.hasStaticShape())
      return success();
    if (part.getShape().drop_front() != type.getShape().drop_front())
      return op->emitOpError("joins ")
             << symbol << " of type " << part << " into " << type;
    rows += part.getDimSize(0);
  }
  if (rows != type.getDimSize(0))
    return op->emitOpError("has ")
           << type.getDimSize(0) << " rows, its parameters have " << rows;
  return success();
}

LogicalResult UseOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyJoined(*this, getParams(),
                      cast<RankedTensorType>(getResult().getType()), tables);
}

LogicalResult AccumulateOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyJoined(*this, getParams(),
                      cast<RankedTensorType>(getGradient().getType()), tables);
}

static LogicalResult verifyNamed(Operation *op, ArrayAttr params,
                                 SymbolTableCollection &tables) {
  for (auto symbol : params.getAsRange<SymbolRefAttr>())
    if (!tables.lookupNearestSymbolFrom(op, symbol))
      return op->emitOpError("names ") << symbol << ", which does not exist";
  return success();
}

LogicalResult GradNormOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyNamed(*this, getParams(), tables);
}

LogicalResult
OptimizerUpdateOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyNamed(*this, getParams(), tables);
}

LogicalResult OptimizerUpdateOp::verify() {
  ArrayRef<StringLiteral> needed;
  static constexpr StringLiteral adam[] = {"beta1", "beta2", "epsilon",
                                           "weight_decay"};
  static constexpr StringLiteral adadelta[] = {"rho", "epsilon"};
  if (getRule() == "adamw" || getRule() == "adam")
    needed = adam;
  else if (getRule() == "adadelta")
    needed = adadelta;
  else if (getRule() != "sgd")
    return emitOpError("has rule \"")
           << getRule() << "\"; known are adamw, adam, sgd, adadelta";
  for (StringRef name : needed)
    if (!getOptions().getAs<FloatAttr>(name))
      return emitOpError("needs the number \"") << name << "\" in its options";
  return success();
}

//===----------------------------------------------------------------------===//
// Stacks and loops
//===----------------------------------------------------------------------===//

/// Every kind must be a layer of the given leading argument types (further
/// residual arguments may stand between them and the shared ones).
static LogicalResult verifyKinds(Operation *op, ArrayAttr kinds,
                                 std::optional<ArrayRef<int32_t>> layers,
                                 Type carried, TypeRange shared,
                                 bool residualArguments,
                                 SymbolTableCollection &tables) {
  if (kinds.empty())
    return op->emitOpError("has no kinds");
  for (auto symbol : kinds.getAsRange<SymbolRefAttr>()) {
    auto layer = dyn_cast_or_null<LayerOp>(
        tables.lookupNearestSymbolFrom(op, symbol));
    if (!layer)
      return op->emitOpError("names ") << symbol << ", which is no layer";
    ArrayRef<Type> arguments = layer.getArgumentTypes();
    bool fits = residualArguments ? arguments.size() > shared.size()
                                  : arguments.size() == shared.size() + 1;
    if (!fits || arguments.front() != carried ||
        TypeRange(arguments.take_back(shared.size())) != shared) {
      InFlightDiagnostic diagnostic =
          op->emitOpError("passes ")
          << carried << " and " << shared << " to " << symbol;
      diagnostic.attachNote(layer.getLoc())
          << symbol << " takes " << TypeRange(arguments);
      return diagnostic;
    }
    if (layer.getResultTypes().empty() ||
        layer.getResultTypes().front() != carried)
      return op->emitOpError("needs ")
             << symbol << " to return " << carried << " first";
  }
  if (layers)
    for (int32_t kind : *layers)
      if (kind < 0 || kind >= static_cast<int64_t>(kinds.size()))
        return op->emitOpError("has a layer of kind ")
               << kind << " but " << kinds.size() << " kinds";
  return success();
}

LogicalResult StackOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (!getLayers() && !getDepth() && !getMap())
    return emitOpError("needs its layers, a depth or a map");
  if (getX().getType() != getY().getType())
    return emitOpError("turns ")
           << getX().getType() << " into " << getY().getType();
  return verifyKinds(*this, getKinds(), getLayers(), getX().getType(),
                     getShared().getTypes(), /*residualArguments=*/false,
                     tables);
}

LogicalResult StackGradOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyKinds(*this, getKinds(), getLayers(), getDy().getType(),
                     getShared().getTypes(), /*residualArguments=*/true,
                     tables);
}

LogicalResult ChunkLoopOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (getChunk() <= 0)
    return emitOpError("has chunks of ") << getChunk() << " rows";
  auto body = dyn_cast_or_null<FuncOp>(
      tables.lookupNearestSymbolFrom(*this, getBodyAttr()));
  if (!body)
    return emitOpError("names ") << getBodyAttr() << ", which is no function";
  if (body.getArgumentTypes().size() != getNumOperands() ||
      body.getResultTypes().size() != getNumResults())
    return emitOpError("has ")
           << getNumOperands() << " operands and " << getNumResults()
           << " results, " << getBodyAttr() << " has "
           << body.getArgumentTypes().size() << " and "
           << body.getResultTypes().size();
  for (auto [sliced, argument] :
       llvm::zip(getSliced(), body.getArgumentTypes())) {
    auto type = cast<RankedTensorType>(argument);
    if (type.getDimSize(0) != static_cast<int64_t>(getChunk()))
      return emitOpError("gives chunks of ")
             << getChunk() << " rows to an argument of type " << type;
  }
  return success();
}
