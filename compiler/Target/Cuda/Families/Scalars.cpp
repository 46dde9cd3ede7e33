//===- Scalars.cpp - Scalar operations as CUDA expressions ----------------===//

#include "compiler/Target/Cuda/Families/Scalars.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

StringRef cuda::getTypeName(Type type) {
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (type.isBF16())
    return "u16";
  if (type.isIndex() || type.isInteger(64))
    return "i64";
  if (type.isInteger(32))
    return "int";
  if (type.isInteger(8))
    return "i8";
  if (type.isInteger(1))
    return "bool";
  return "";
}

int64_t cuda::getBytes(Type element) {
  if (element.isIndex())
    return 8;
  return std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8);
}

std::string cuda::getLiteral(Type type, const APFloat &value) {
  APInt bits = value.bitcastToAPInt();
  if (type.isBF16())
    return ("u16(" + Twine(bits.getZExtValue()) + ")").str();
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (!value.isFinite()) { // a constant, as tables need it
    if (type.isF32())
      stream << "__builtin_bit_cast(float, " << bits.getZExtValue() << "u)";
    else
      stream << "__builtin_bit_cast(double, " << bits.getZExtValue() << "ull)";
    return text;
  }
  // Digits that give the same bits back.
  if (type.isF32())
    stream << llvm::format("%.9g", (double)value.convertToFloat());
  else
    stream << llvm::format("%.17g", value.convertToDouble());
  if (StringRef(text).find_first_of(".e") == StringRef::npos)
    text += ".0";
  if (type.isF32())
    text += "f";
  return text[0] == '-' ? "(" + text + ")" : text;
}

static std::string getLiteral(Type type, const APInt &value) {
  if (type.isInteger(1))
    return value.isZero() ? "false" : "true";
  int64_t number = value.getSExtValue();
  std::string text = std::to_string(number);
  // The smallest numbers have no literal of their own: -2147483648 is a minus.
  if (number == INT64_MIN)
    return "(-9223372036854775807ll - 1)";
  if (!type.isInteger(8) && !type.isInteger(32) && !llvm::isInt<32>(number))
    text += "ll";
  if (type.isInteger(32) && number == INT32_MIN)
    return "(-2147483647 - 1)";
  if (type.isInteger(8))
    return "i8(" + text + ")";
  return number < 0 ? "(" + text + ")" : text;
}

std::string cuda::getLiteral(TypedAttr value) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return getLiteral(number.getType(), number.getValue());
  auto number = cast<IntegerAttr>(value);
  return ::getLiteral(number.getType(), number.getValue());
}

std::string Names::get(Value value) const {
  for (const Names *scope = this; scope; scope = scope->outer)
    if (auto found = scope->own.find(value); found != scope->own.end())
      return found->second;
  if (auto constant = value.getDefiningOp<arith::ConstantOp>();
      constant && isa<FloatAttr, IntegerAttr>(constant.getValue()))
    return getLiteral(constant.getValue());
  return "";
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

std::string Tables::get(DenseElementsAttr entries) {
  auto [place, isNew] = shared.insert({entries, ""});
  if (isNew)
    place->second = "table" + std::to_string(shared.size() - 1);
  return place->second;
}

std::string Tables::getGlobal(DenseElementsAttr entries) {
  auto [place, isNew] = global.insert({entries, ""});
  if (isNew)
    place->second = "constant" + std::to_string(global.size() - 1);
  return place->second;
}

int64_t Tables::getSharedBytes() const {
  int64_t bytes = 0;
  for (auto &[attribute, name] : shared) {
    auto entries = cast<DenseElementsAttr>(attribute);
    bytes += entries.getNumElements() * getBytes(entries.getElementType());
  }
  return bytes;
}

static void printArray(raw_ostream &os, DenseElementsAttr entries,
                       const Twine &name) {
  Type type = entries.getElementType();
  os << "__device__ const " << getTypeName(type) << " " << name << "["
     << entries.getNumElements() << "] = {";
  for (auto [index, entry] : llvm::enumerate(entries.getValues<TypedAttr>()))
    os << (index == 0 ? "" : ",") << (index % 8 == 0 ? "\n  " : " ")
       << cuda::getLiteral(entry);
  os << "};\n";
}

std::string Tables::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto &[entries, name] : global) {
    os << "\n";
    printArray(os, cast<DenseElementsAttr>(entries), name);
  }
  for (auto &[attribute, name] : shared) {
    auto entries = cast<DenseElementsAttr>(attribute);
    os << "\n";
    printArray(os, entries, name + "_entries");
    os << "__shared__ " << getTypeName(entries.getElementType()) << " " << name
       << "[" << entries.getNumElements() << "];\n";
  }
  return text;
}

void Tables::fill(Text &text) const {
  for (auto &[attribute, name] : shared) {
    auto entries = cast<DenseElementsAttr>(attribute);
    text.line("for (int i = threadIdx.x; i < " +
              Twine(entries.getNumElements()) + "; i += blockDim.x)");
    text.line("  " + name + "[i] = " + name + "_entries[i];");
  }
  text.line("__syncthreads();");
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

static std::string call(StringRef function, ArrayRef<std::string> arguments) {
  return (function + "(" + llvm::join(arguments, ", ") + ")").str();
}

static std::string infix(const Twine &a, StringRef symbol, const Twine &b) {
  return (a + " " + symbol + " " + b).str();
}

static bool allowsContraction(Operation *op) {
  auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr();
  return flags &&
         bitEnumContainsAll(flags.getValue(), arith::FastMathFlags::contract);
}

/// The CUDA function of a math op on floats; empty if there is none.
static StringRef getFunction(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case<math::ExpOp>([](auto) { return "exp"; })
      .Case<math::Exp2Op>([](auto) { return "exp2"; })
      .Case<math::ExpM1Op>([](auto) { return "expm1"; })
      .Case<math::LogOp>([](auto) { return "log"; })
      .Case<math::Log2Op>([](auto) { return "log2"; })
      .Case<math::Log10Op>([](auto) { return "log10"; })
      .Case<math::Log1pOp>([](auto) { return "log1p"; })
      .Case<math::SqrtOp>([](auto) { return "sqrt"; })
      .Case<math::RsqrtOp>([](auto) { return "rsqrt"; })
      .Case<math::SinOp>([](auto) { return "sin"; })
      .Case<math::CosOp>([](auto) { return "cos"; })
      .Case<math::TanhOp>([](auto) { return "tanh"; })
      .Case<math::ErfOp>([](auto) { return "erf"; })
      .Case<math::AbsFOp>([](auto) { return "fabs"; })
      .Case<math::FloorOp>([](auto) { return "floor"; })
      .Case<math::CeilOp>([](auto) { return "ceil"; })
      .Case<math::RoundEvenOp>([](auto) { return "rint"; })
      .Case<math::PowFOp>([](auto) { return "pow"; })
      .Case<math::FmaOp>([](auto) { return "fma"; })
      .Case<arith::RemFOp>([](auto) { return "fmod"; })
      .Case<arith::MaxNumFOp>([](auto) { return "fmax"; })
      .Case<arith::MinNumFOp>([](auto) { return "fmin"; })
      .Default([](auto) { return ""; });
}

/// An f32 or f64 result of f32 or f64 operands.
std::optional<std::string>
Scalars::getFloat(Operation *op, ArrayRef<std::string> v, Type type) {
  bool isF32 = type.isF32();
  auto rounded = [&](StringRef name, StringRef symbol) {
    if (allowsContraction(op))
      return infix(v[0], symbol, v[1]);
    return call(((isF32 ? "__f" : "__d") + name + "_rn").str(), v);
  };
  if (isa<arith::AddFOp>(op))
    return rounded("add", "+");
  if (isa<arith::SubFOp>(op))
    return rounded("sub", "-");
  if (isa<arith::MulFOp>(op))
    return rounded("mul", "*");
  if (isa<arith::DivFOp>(op))
    return infix(v[0], "/", v[1]);
  if (isa<arith::NegFOp>(op))
    return "-" + v[0];
  if (isa<arith::MaximumFOp, arith::MinimumFOp>(op)) {
    helpers.use(Helper::Maximum);
    return call(isa<arith::MaximumFOp>(op) ? "maximum" : "minimum", v);
  }
  StringRef function = getFunction(op);
  if (function.empty())
    return std::nullopt;
  return call((function + (isF32 ? "f" : "")).str(), v);
}

static std::string getComparison(arith::CmpFPredicate predicate, StringRef a,
                                 StringRef b) {
  using P = arith::CmpFPredicate;
  std::string ordered = (a + " == " + a + " && " + b + " == " + b).str();
  auto is = [&](StringRef symbol) { return infix(a, symbol, b); };
  // A negated comparison is true for NaN.
  auto isNot = [&](StringRef symbol) {
    return "!(" + infix(a, symbol, b) + ")";
  };
  switch (predicate) {
  case P::AlwaysFalse:
    return "false";
  case P::AlwaysTrue:
    return "true";
  case P::OEQ:
    return is("==");
  case P::OGT:
    return is(">");
  case P::OGE:
    return is(">=");
  case P::OLT:
    return is("<");
  case P::OLE:
    return is("<=");
  case P::ONE:
    return is("<") + " || " + is(">");
  case P::UEQ:
    return "!(" + is("<") + " || " + is(">") + ")";
  case P::UGT:
    return isNot("<=");
  case P::UGE:
    return isNot("<");
  case P::ULT:
    return isNot(">=");
  case P::ULE:
    return isNot(">");
  case P::UNE:
    return is("!=");
  case P::ORD:
    return ordered;
  case P::UNO:
    return "!(" + ordered + ")";
  }
  llvm_unreachable("a predicate without an expression");
}

/// The unsigned type of the width of `type`.
static StringRef getUnsigned(Type type) {
  if (type.isInteger(8))
    return "u8";
  return type.isInteger(32) ? "u32" : "u64";
}

static std::string getComparison(arith::CmpIPredicate predicate, StringRef a,
                                 StringRef b, Type type) {
  using P = arith::CmpIPredicate;
  auto plain = [&](StringRef symbol) { return infix(a, symbol, b); };
  auto asUnsigned = [&](StringRef symbol) {
    if (type.isInteger(1))
      return plain(symbol);
    StringRef to = getUnsigned(type);
    return infix(to + "(" + a + ")", symbol, to + "(" + b + ")");
  };
  switch (predicate) {
  case P::eq:
    return plain("==");
  case P::ne:
    return plain("!=");
  case P::slt:
    return plain("<");
  case P::sle:
    return plain("<=");
  case P::sgt:
    return plain(">");
  case P::sge:
    return plain(">=");
  case P::ult:
    return asUnsigned("<");
  case P::ule:
    return asUnsigned("<=");
  case P::ugt:
    return asUnsigned(">");
  case P::uge:
    return asUnsigned(">=");
  }
  llvm_unreachable("a predicate without an expression");
}

std::optional<std::string>
Scalars::getInteger(Operation *op, ArrayRef<std::string> v, Type type) {
  StringRef name = getTypeName(type), bits = getUnsigned(type);
  bool isBool = type.isInteger(1);
  auto asUnsigned = [&](StringRef symbol) {
    return (name + "(" +
            infix(bits + "(" + v[0] + ")", symbol, bits + "(" + v[1] + ")") +
            ")")
        .str();
  };
  // Addresses do not overflow; other numbers may, and wrap.
  auto wrapping = [&](StringRef symbol) {
    return type.isIndex() ? infix(v[0], symbol, v[1]) : asUnsigned(symbol);
  };
  auto select = [&](StringRef symbol, bool isUnsigned) {
    std::string isFirst = isUnsigned ? infix(bits + "(" + v[0] + ")", symbol,
                                             bits + "(" + v[1] + ")")
                                     : infix(v[0], symbol, v[1]);
    return isFirst + " ? " + v[0] + " : " + v[1];
  };
  if (isa<arith::AndIOp>(op))
    return isBool ? infix(v[0], "&&", v[1]) : asUnsigned("&");
  if (isa<arith::OrIOp>(op))
    return isBool ? infix(v[0], "||", v[1]) : asUnsigned("|");
  if (isa<arith::XOrIOp>(op))
    return isBool ? infix(v[0], "!=", v[1]) : asUnsigned("^");
  if (isBool)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return wrapping("+");
  if (isa<arith::SubIOp>(op))
    return wrapping("-");
  if (isa<arith::MulIOp>(op))
    return wrapping("*");
  if (isa<arith::DivUIOp>(op))
    return asUnsigned("/");
  if (isa<arith::RemUIOp>(op))
    return asUnsigned("%");
  if (isa<arith::DivSIOp>(op))
    return (name + "(" + infix(v[0], "/", v[1]) + ")").str();
  if (isa<arith::RemSIOp>(op))
    return (name + "(" + infix(v[0], "%", v[1]) + ")").str();
  if (isa<arith::ShLIOp>(op))
    return asUnsigned("<<");
  if (isa<arith::ShRUIOp>(op))
    return asUnsigned(">>");
  if (isa<arith::ShRSIOp>(op))
    return (name + "(" + infix(v[0], ">>", v[1]) + ")").str();
  if (isa<arith::MaxSIOp>(op))
    return select(">", false);
  if (isa<arith::MinSIOp>(op))
    return select("<", false);
  if (isa<arith::MaxUIOp>(op))
    return select(">", true);
  if (isa<arith::MinUIOp>(op))
    return select("<", true);
  return std::nullopt;
}

std::optional<std::string> Scalars::getConversion(Operation *op, StringRef v) {
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  StringRef name = getTypeName(to);
  auto cast = [&](const Twine &value) {
    return (name + "(" + value + ")").str();
  };
  // bf16 is converted by way of f32; rounding twice happens from f64 only,
  // where it makes no difference but to ties that f32 invents.
  auto fromFloat = [&](const Twine &value) -> std::string {
    if (!to.isBF16())
      return cast(value);
    helpers.use(Helper::Bf16);
    return ("bf16_of(" + value + ")").str();
  };
  auto toFloat = [&]() -> std::string {
    if (!from.isBF16())
      return v.str();
    helpers.use(Helper::FloatBf16);
    return ("f32_of(" + v + ")").str();
  };
  if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
    if (from.isBF16() && to.isF32())
      return toFloat();
    if (from.isF64() && to.isBF16())
      return fromFloat("float(" + v + ")");
    return fromFloat(toFloat());
  }
  if (isa<arith::SIToFPOp>(op))
    return fromFloat(to.isBF16() ? "float(" + v + ")" : v);
  if (isa<arith::UIToFPOp>(op)) {
    std::string bits =
        from.isInteger(1) ? v.str() : (getUnsigned(from) + "(" + v + ")").str();
    return fromFloat(to.isBF16() ? "float(" + bits + ")" : bits);
  }
  if (isa<arith::FPToSIOp>(op))
    return cast(toFloat());
  if (isa<arith::FPToUIOp>(op))
    return cast(getUnsigned(to) + "(" + toFloat() + ")");
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op))
    return from.isInteger(1) ? "-" + cast(v) : cast(v);
  if (isa<arith::ExtUIOp, arith::IndexCastUIOp>(op)) {
    if (from.isInteger(1) || getBytes(from) >= getBytes(to))
      return cast(v);
    return cast(getUnsigned(from) + "(" + v + ")");
  }
  if (isa<arith::TruncIOp>(op)) {
    if (to.isInteger(1))
      return ("(" + v + " & 1) != 0").str();
    return cast(v);
  }
  if (isa<arith::BitcastOp>(op)) {
    if (from.isF32() && to.isInteger(32))
      return ("int(__float_as_uint(" + v + "))").str();
    if (from.isInteger(32) && to.isF32())
      return ("__uint_as_float(u32(" + v + "))").str();
    if (from.isF64() && to.isInteger(64))
      return ("__double_as_longlong(" + v + ")").str();
    if (from.isInteger(64) && to.isF64())
      return ("__longlong_as_double(" + v + ")").str();
  }
  return std::nullopt;
}

std::optional<std::string> Scalars::getExpression(Operation *op,
                                                  const Names &names) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0)
    return std::nullopt;
  Type type = op->getResult(0).getType();
  if (getTypeName(type).empty())
    return std::nullopt;
  SmallVector<std::string> v;
  for (Value operand : op->getOperands()) {
    v.push_back(names.get(operand));
    if (v.back().empty())
      return std::nullopt;
  }

  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return getLiteral(constant.getValue());
  if (auto lookup = dyn_cast<kern::LookupOp>(op)) {
    auto table = cast<DenseElementsAttr>(lookup.getTable());
    return tables.get(table) + "[" + v[0] + " & " +
           std::to_string(table.getNumElements() - 1) + "]";
  }
  if (isa<arith::SelectOp>(op))
    return v[0] + " ? " + v[1] + " : " + v[2];
  if (isa<CastOpInterface>(op))
    return getConversion(op, v[0]);
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return getComparison(compare.getPredicate(), v[0], v[1],
                         compare.getLhs().getType());

  // Arithmetic on bf16 is that of f32 with one rounding.
  bool isBf16 = llvm::any_of(op->getOperandTypes(),
                             [](Type operand) { return operand.isBF16(); });
  if (isBf16) {
    helpers.use(Helper::FloatBf16);
    for (std::string &operand : v)
      operand = "f32_of(" + operand + ")";
  }
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return getComparison(compare.getPredicate(), v[0], v[1]);
  if (!isa<FloatType>(type))
    return getInteger(op, v, type);
  auto result =
      getFloat(op, v, isBf16 ? Float32Type::get(op->getContext()) : type);
  if (result && isBf16) {
    helpers.use(Helper::Bf16);
    return "bf16_of(" + *result + ")";
  }
  return result;
}
