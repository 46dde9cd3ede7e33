#include "compiler/Target/Plan/Serialize.h"
#include "compiler/Exec/Address.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/plan_generated.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace fsdpq;

namespace {
class PlanWriter {
public:
  PlanWriter(exec::PlanOp plan, const SerializeOptions &options)
      : plan(plan), options(options) {}

  plan::PlanT write();

private:
  uint32_t writeSlice(const Address &address);
  uint32_t writeSlice(Value slice) { return writeSlice(getAddress(slice)); }
  std::unique_ptr<plan::Extent> writeExtent(kern::ExtentAttr extent);
  std::vector<std::unique_ptr<plan::InstructionT>> writeBlock(Block &block);
  std::unique_ptr<plan::InstructionT> writeInstruction(Operation &op);
  void writeKernel(kern::FuncOp kernel);
  void writePort(exec::PortOp port);
  void writeParam(exec::ParamOp param);

  exec::PlanOp plan;
  const SerializeOptions &options;
  plan::PlanT result;
  llvm::StringMap<uint32_t> arenas, scalars, kernels, functions;
  uint32_t level = 0;
};
} // namespace

uint32_t PlanWriter::writeSlice(const Address &address) {
  auto slice = std::make_unique<plan::SliceT>();
  slice->name = address.name.str();
  slice->arena = arenas[address.arena];
  slice->level = address.level;
  slice->offset = address.offset;
  slice->bytes = address.bytes;
  slice->stride = address.stride;
  slice->table.assign(address.table.begin(), address.table.end());
  result.slices.push_back(std::move(slice));
  return result.slices.size() - 1;
}

std::unique_ptr<plan::Extent> PlanWriter::writeExtent(kern::ExtentAttr extent) {
  bool hasScalar = !extent.getScalar().empty();
  return std::make_unique<plan::Extent>(
      hasScalar ? static_cast<int32_t>(scalars[extent.getScalar()]) : -1, level,
      hasScalar ? extent.getMul() : 0, extent.getDiv(), extent.getIndexMul(),
      extent.getAdd(), extent.getCap());
}

static plan::DType getDType(Type type) {
  if (type.isF64())
    return plan::DType::F64;
  return type.isBF16() ? plan::DType::BF16 : plan::DType::F32;
}

/// The model operation an instruction came from, as file:line:column.
static std::string getLocation(Location loc) {
  if (auto place = loc->findInstanceOf<FileLineColLoc>())
    return (place.getFilename().getValue() + ":" + Twine(place.getLine()) + ":" +
            Twine(place.getColumn()))
        .str();
  return "";
}

std::unique_ptr<plan::InstructionT>
PlanWriter::writeInstruction(Operation &op) {
  auto instruction = std::make_unique<plan::InstructionT>();
  instruction->location = getLocation(op.getLoc());
  auto addSlice = [&](plan::LaunchT &launch, Value slice) {
    auto arg = std::make_unique<plan::ArgT>();
    arg->kind = plan::ArgKind::Slice;
    arg->slice = writeSlice(slice);
    launch.args.push_back(std::move(arg));
  };
  if (auto launch = dyn_cast<exec::LaunchOp>(op)) {
    plan::LaunchT table;
    table.kernel = kernels[launch.getKernel()];
    for (Value slice : launch.getReads())
      addSlice(table, slice);
    for (Value slice : launch.getWrites())
      addSlice(table, slice);
    for (auto extent : launch.getExtents().getAsRange<kern::ExtentAttr>()) {
      auto arg = std::make_unique<plan::ArgT>();
      arg->kind = plan::ArgKind::Extent;
      arg->extent = writeExtent(extent);
      table.args.push_back(std::move(arg));
    }
    for (auto name : launch.getScalars().getAsRange<StringAttr>()) {
      auto arg = std::make_unique<plan::ArgT>();
      arg->kind = plan::ArgKind::Scalar;
      arg->scalar = scalars[name.getValue()];
      table.args.push_back(std::move(arg));
    }
    table.grid = writeExtent(launch.getGrid());
    instruction->stream = launch.getStream();
    instruction->op.Set(std::move(table));
  } else if (auto gemm = dyn_cast<exec::GemmOp>(op)) {
    plan::GemmT table;
    table.dtype = getDType(gemm.getType());
    table.trans_a = gemm.getTransA();
    table.trans_b = gemm.getTransB();
    table.m = writeExtent(gemm.getM());
    table.n = writeExtent(gemm.getN());
    table.k = writeExtent(gemm.getK());
    table.alpha = gemm.getAlpha().convertToDouble();
    table.beta = gemm.getBeta().convertToDouble();
    table.a = writeSlice(gemm.getA());
    table.b = writeSlice(gemm.getB());
    table.c = writeSlice(gemm.getC());
    table.lda = gemm.getLda();
    table.ldb = gemm.getLdb();
    table.ldc = gemm.getLdc();
    instruction->stream = gemm.getStream();
    instruction->op.Set(std::move(table));
  } else if (auto copy = dyn_cast<exec::CopyOp>(op)) {
    plan::CopyT table;
    table.src = writeSlice(copy.getSource());
    table.dst = writeSlice(copy.getDest());
    table.bytes = writeExtent(copy.getBytes());
    instruction->stream = copy.getStream();
    instruction->op.Set(std::move(table));
  } else if (auto fill = dyn_cast<exec::FillOp>(op)) {
    plan::FillT table;
    table.dst = writeSlice(fill.getDest());
    table.bytes = writeExtent(fill.getBytes());
    instruction->stream = fill.getStream();
    instruction->op.Set(std::move(table));
  } else if (auto loop = dyn_cast<exec::LoopOp>(op)) {
    plan::LoopT table;
    table.count = writeExtent(loop.getCount());
    ++level;
    table.body = writeBlock(loop.getBody().front());
    --level;
    instruction->op.Set(std::move(table));
  } else {
    return nullptr; // slices are written with what uses them
  }
  return instruction;
}

std::vector<std::unique_ptr<plan::InstructionT>>
PlanWriter::writeBlock(Block &block) {
  std::vector<std::unique_ptr<plan::InstructionT>> instructions;
  for (Operation &op : block)
    if (auto instruction = writeInstruction(op))
      instructions.push_back(std::move(instruction));
  return instructions;
}

void PlanWriter::writeKernel(kern::FuncOp kernel) {
  auto table = std::make_unique<plan::KernelT>();
  table->name = table->symbol = kernel.getSymName().str();
  auto compiled = options.kernels.find(table->name);
  if (compiled != options.kernels.end()) {
    table->hash = compiled->second.hash;
    table->text = compiled->second.text;
    table->code = compiled->second.code;
  }
  kernels[kernel.getSymName()] = result.kernels.size();
  result.kernels.push_back(std::move(table));
}

void PlanWriter::writePort(exec::PortOp port) {
  auto table = std::make_unique<plan::PortT>();
  table->name = port.getName().str();
  table->dtype = port.getType().isInteger(32) ? "i32" : "f32";
  table->extent = writeExtent(port.getExtent());
  table->slice = writeSlice({port.getName(), port.getArena(),
                             (int64_t)port.getOffset(),
                             port.getExtent().getCap() * 4});
  (port.getInput() ? result.inputs : result.outputs).push_back(std::move(table));
}

void PlanWriter::writeParam(exec::ParamOp param) {
  auto table = std::make_unique<plan::ParameterT>();
  auto type = cast<RankedTensorType>(param.getType());
  table->name = param.getSymName().str();
  table->hf = param.getHf().value_or("").str();
  table->gguf = param.getGguf().value_or("").str();
  table->gguf_rope_heads = param.getGgufRopeHeads().value_or(0);
  if (auto layers = param.getLayersAttr())
    table->layers.assign(layers.asArrayRef().begin(), layers.asArrayRef().end());
  table->shape.assign(type.getShape().begin(), type.getShape().end());
  llvm::raw_string_ostream(table->scheme) << type.getElementType();
  int64_t stride = param.getStride();
  for (auto part : param.getParts().getAsRange<DictionaryAttr>()) {
    auto component = std::make_unique<plan::ComponentT>();
    StringRef name = part.getAs<StringAttr>("name").getValue();
    component->name = name.str();
    component->dtype = part.getAs<StringAttr>("type").getValue().str();
    component->elements = part.getAs<IntegerAttr>("elements").getInt();
    component->slice = writeSlice(
        {param.getSymName(), param.getArena(),
         part.getAs<IntegerAttr>("offset").getInt(),
         (int64_t)component->elements * (component->dtype == "u8" ? 1 : 4),
         stride});
    table->components.push_back(std::move(component));
  }
  table->trainable = param.getTrainable();
  table->init = llvm::StringSwitch<plan::Init>(param.getInit().value_or(""))
                    .Case("zeros", plan::Init::Zeros)
                    .Case("kaiming_uniform", plan::Init::KaimingUniform)
                    .Default(plan::Init::Checkpoint);
  table->fan_in = type.getRank() > 1 ? type.getDimSize(1) : 0;
  table->load_function =
      param.getLoad() ? static_cast<int32_t>(functions[*param.getLoad()]) : -1;
  table->gradient = -1;
  if (param.getGradient())
    table->gradient =
        writeSlice({param.getSymName(), exec::gradientArena,
                    (int64_t)*param.getGradient(), type.getNumElements() * 4,
                    stride});
  result.parameters.push_back(std::move(table));
}

plan::PlanT PlanWriter::write() {
  result.compiler = "fsdpq";
  result.target = options.target;
  for (const auto &[key, value] : options.metadata) {
    auto entry = std::make_unique<plan::KeyValueT>();
    entry->key = key;
    entry->value = value;
    result.metadata.push_back(std::move(entry));
  }
  result.streams = {"compute"};
  result.staging = -1;
  for (auto scalar : plan.getBody().getOps<exec::ScalarOp>()) {
    auto table = std::make_unique<plan::ScalarT>();
    table->name = scalar.getSymName().str();
    table->kind = scalar.getMax() ? plan::ScalarKind::I64 : plan::ScalarKind::F64;
    table->max = scalar.getMax().value_or(0);
    scalars[scalar.getSymName()] = result.scalars.size();
    result.scalars.push_back(std::move(table));
  }
  for (auto arena : plan.getBody().getOps<exec::ArenaOp>()) {
    auto table = std::make_unique<plan::ArenaT>();
    table->name = arena.getSymName().str();
    table->bytes = arena.getBytes().value_or(0);
    arenas[arena.getSymName()] = result.arenas.size();
    result.arenas.push_back(std::move(table));
    if (arena.getSymName() == exec::stagingArena)
      result.staging = writeSlice({exec::stagingArena, exec::stagingArena, 0,
                                   (int64_t)*arena.getBytes()});
  }
  for (auto kernel : plan.getBody().getOps<kern::FuncOp>())
    writeKernel(kernel);
  for (auto function : plan.getBody().getOps<exec::FuncOp>()) {
    auto table = std::make_unique<plan::FunctionT>();
    table->name = function.getSymName().str();
    table->index_count = function.getIndexCount();
    table->body = writeBlock(function.getBody().front());
    functions[function.getSymName()] = result.functions.size();
    result.functions.push_back(std::move(table));
  }
  for (auto port : plan.getBody().getOps<exec::PortOp>())
    writePort(port);
  for (auto param : plan.getBody().getOps<exec::ParamOp>())
    writeParam(param);
  return std::move(result);
}

std::vector<uint8_t> fsdpq::serializePlan(exec::PlanOp plan,
                                          const SerializeOptions &options) {
  return rt::encodePlan(PlanWriter(plan, options).write());
}
