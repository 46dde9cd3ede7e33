//===- KernDialect.cpp - Kernel functions ---------------------------------===//

#include "dialects/Kern/Kern.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fsdpq::kern;

#include "dialects/Kern/KernDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Kern/KernAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Kern/KernOps.cpp.inc"

void KernDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Kern/KernAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Kern/KernOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t vector, int64_t tileRows,
                                   int64_t tileVectors) {
  if (vector != 0 && vector != 4 && vector != 8 && vector != 16)
    return emitError() << "vector must be 4, 8 or 16, got " << vector;
  if (tileRows == 0 && tileVectors == 0)
    return success();
  if (tileRows < 1 || tileRows > 16 || tileVectors < 1 || tileVectors > 4)
    return emitError()
           << "register_tile must be within [1, 1] and [16, 4], got ["
           << tileRows << ", " << tileVectors << "]";
  return success();
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  SMLoc begin = parser.getCurrentLocation();
  int64_t vector = 0, tileRows = 0, tileVectors = 0;
  llvm::SmallDenseSet<StringRef> seen;
  auto parseEntry = [&]() -> ParseResult {
    StringRef key;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return failure();
    if (!seen.insert(key).second)
      return parser.emitError(loc, "schedule key '")
             << key << "' is given twice";
    if (key == "vector")
      return parser.parseInteger(vector);
    if (key == "register_tile")
      return failure(parser.parseLSquare() || parser.parseInteger(tileRows) ||
                     parser.parseComma() || parser.parseInteger(tileVectors) ||
                     parser.parseRSquare());
    return parser.emitError(loc, "unknown schedule key '")
           << key << "'; known keys are vector, register_tile";
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseEntry))
    return {};
  return parser.getChecked<ScheduleAttr>(begin, parser.getContext(), vector,
                                         tileRows, tileVectors);
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << "<";
  StringRef separator;
  if (getVector()) {
    printer << "vector = " << getVector();
    separator = ", ";
  }
  if (getTileRows())
    printer << separator << "register_tile = [" << getTileRows() << ", "
            << getTileVectors() << "]";
  printer << ">";
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

LogicalResult
EmissionAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                     StringRef family, int64_t threads, int64_t group,
                     int64_t teams, int64_t shared, int64_t blocks) {
  if (family.empty())
    return emitError() << "emission family is empty";
  if (threads < 1 || threads > 1024)
    return emitError() << "threads must be 1 to 1024, got " << threads;
  if (group < 1 || teams < 1 || group > threads || teams > threads ||
      threads % (group * teams) != 0)
    return emitError() << "a block of " << threads
                       << " threads does not consist of whole items of "
                       << teams << " teams of " << group << " threads";
  if (shared < 0 || blocks < 0)
    return emitError() << "shared and blocks must not be negative, got "
                       << shared << " and " << blocks;
  return success();
}

LogicalResult KernDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() != "kern.family")
    return op->emitError("unknown attribute '")
           << attribute.getName() << "' of the kern dialect";
  auto dictionary = dyn_cast<DictionaryAttr>(attribute.getValue());
  if (!isa<FuncOp>(op) || !dictionary ||
      !dictionary.getAs<StringAttr>("kind"))
    return op->emitError("kern.family belongs to a kern.func and is a "
                         "dictionary with a string 'kind', not ")
           << attribute.getValue();
  return success();
}

//===----------------------------------------------------------------------===//
// FuncOp
//===----------------------------------------------------------------------===//

void FuncOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                   TypeRange arguments, ScheduleAttr schedule) {
  auto &properties = state.getOrAddProperties<Properties>();
  properties.sym_name = builder.getStringAttr(name);
  properties.schedule = schedule;
  Region *region = state.addRegion();
  Block &block = region->emplaceBlock();
  for (Type type : arguments)
    block.addArgument(type, state.location);
  block.addArgument(builder.getIndexType(), state.location);
  ensureTerminator(*region, builder, state.location);
}

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  OpAsmParser::Argument item;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(),
                             result.attributes) ||
      parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.parseKeyword("grid") || parser.parseLParen() ||
      parser.parseArgument(item) || parser.parseRParen() ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  item.type = parser.getBuilder().getIndexType();
  arguments.push_back(item);
  Region *region = result.addRegion();
  if (parser.parseRegion(*region, arguments))
    return failure();
  ensureTerminator(*region, parser.getBuilder(), result.location);
  return success();
}

void FuncOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(getArguments(), printer, [&](BlockArgument argument) {
    printer.printRegionArgument(argument);
  });
  printer << ") grid(";
  printer.printOperand(getItem());
  printer << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {SymbolTable::getSymbolAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/false);
}

static LogicalResult verifyArgument(FuncOp func, BlockArgument argument) {
  Type type = argument.getType();
  if (type.isInteger(64) || type.isF64())
    return success();
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref)
    return func.emitOpError("argument #")
           << argument.getArgNumber() << " is a memref, i64 or f64, not "
           << type;
  Type element = memref.getElementType();
  if (!element.isF32() && !element.isF64() && !element.isBF16() &&
      !element.isInteger(32) && !element.isInteger(8) && !element.isInteger(64))
    return func.emitOpError("argument #")
           << argument.getArgNumber()
           << " has elements of f32, f64, bf16, i32, i8 or i64, not "
           << element;
  if (memref.getRank() == 0 || !memref.getLayout().isIdentity() ||
      memref.getMemorySpace())
    return func.emitOpError("argument #")
           << argument.getArgNumber()
           << " is a row-major memref of one dimension or more in the default "
              "memory space, not "
           << memref;
  if (llvm::any_of(memref.getShape().drop_front(), ShapedType::isDynamic))
    return func.emitOpError("argument #")
           << argument.getArgNumber()
           << " may be dynamic in its leading dimension only: " << memref;
  return success();
}

LogicalResult FuncOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() == 0 ||
      !block.getArguments().back().getType().isIndex())
    return emitOpError("needs the item index, of type index, as the last "
                       "argument of its block");
  for (BlockArgument argument : getArguments())
    if (failed(verifyArgument(*this, argument)))
      return failure();
  return success();
}

LogicalResult FuncOp::verifyRegions() {
  for (BlockArgument argument : getArguments()) {
    if (!isa<MemRefType>(argument.getType()))
      continue;
    for (Operation *user : argument.getUsers()) {
      StringRef name = user->getName().getStringRef();
      if (!isa<LoadOp, StoreOp>(user) && name != "memref.load" &&
          name != "memref.store")
        return user->emitOpError("uses memref argument #")
               << argument.getArgNumber() << " of kernel @" << getSymName()
               << "; only kern.load, kern.store, memref.load and memref.store "
                  "may";
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

static LogicalResult verifyTile(Operation *op, Type tileType, Type memrefType,
                                OperandRange indices) {
  auto tile = cast<RankedTensorType>(tileType);
  auto memref = cast<MemRefType>(memrefType);
  if (tile.getElementType() != memref.getElementType())
    return op->emitOpError("tile and memref differ in element type: ")
           << tile.getElementType() << " against " << memref.getElementType();
  if (int64_t(indices.size()) != memref.getRank())
    return op->emitOpError("needs an index for each of the ")
           << memref.getRank() << " dimensions of the memref, got "
           << indices.size();
  if (tile.getRank() == 0 || tile.getRank() > memref.getRank())
    return op->emitOpError("a tile of ")
           << memref << " has 1 to " << memref.getRank() << " dimensions, not "
           << tile.getRank();
  int64_t leading = memref.getRank() - tile.getRank();
  for (int64_t dim = 0; dim < memref.getRank(); ++dim) {
    if (memref.isDynamicDim(dim))
      continue;
    int64_t size = dim < leading ? 1 : tile.getDimSize(dim - leading);
    int64_t offset = 0;
    if (APInt constant; matchPattern(indices[dim], m_ConstantInt(&constant)))
      offset = constant.getSExtValue();
    if (offset < 0 || size > memref.getDimSize(dim) - offset)
      return op->emitOpError("reaches out of dimension ")
             << dim << " of the memref: " << size << " elements from " << offset
             << " on, of " << memref.getDimSize(dim);
  }
  return success();
}

LogicalResult LoadOp::verify() {
  return verifyTile(*this, getTile().getType(), getSource().getType(),
                    getIndices());
}

LogicalResult StoreOp::verify() {
  return verifyTile(*this, getTile().getType(), getDest().getType(),
                    getIndices());
}

//===----------------------------------------------------------------------===//
// LookupOp
//===----------------------------------------------------------------------===//

LogicalResult LookupOp::verify() {
  ShapedType table = getTable().getShapedType();
  if (!isa<DenseElementsAttr>(getTable()))
    return emitOpError("table is a dense attribute");
  if (table.getRank() != 1 || table.getNumElements() > 256 ||
      !llvm::isPowerOf2_64(table.getNumElements()))
    return emitOpError("table has one dimension of a power of two of entries, "
                       "at most 256, not ")
           << table;
  if (table.getElementType() != getElementTypeOrSelf(getResult().getType()))
    return emitOpError("table and result differ in element type: ")
           << table.getElementType() << " against "
           << getElementTypeOrSelf(getResult().getType());
  auto index = dyn_cast<VectorType>(getIndex().getType());
  auto result = dyn_cast<VectorType>(getResult().getType());
  if (bool(index) != bool(result) ||
      (index && index.getShape() != result.getShape()))
    return emitOpError("index and result differ in shape: ")
           << getIndex().getType() << " against " << getResult().getType();
  APInt constant;
  if (matchPattern(getIndex(), m_ConstantInt(&constant)) &&
      constant.uge(table.getNumElements()))
    return emitOpError("constant index ")
           << constant.getSExtValue() << " is outside of the table's "
           << table.getNumElements() << " entries";
  return success();
}
