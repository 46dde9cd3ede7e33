#include "compiler/Target/Plan/Serialize.h"
#include "compiler/Exec/Address.h"
#include "dialects/Fsdp/Fsdp.h"
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
  uint32_t writeSlice(StringRef name, StringRef arena, int64_t offset,
                      int64_t bytes, int64_t stride = 0) {
    Address address;
    address.name = name;
    address.arena = arena;
    address.offset = offset;
    address.bytes = bytes;
    address.stride = stride;
    return writeSlice(address);
  }
  std::unique_ptr<plan::Extent> writeExtent(kern::ExtentAttr extent);
  std::vector<std::unique_ptr<plan::InstructionT>> writeBlock(Block &block);
  std::unique_ptr<plan::InstructionT> writeInstruction(Operation &op);
  void writeKernel(kern::FuncOp kernel);
  /// What the products of a stream may work in; -1 if they get nothing.
  int32_t useWorkspace(uint16_t stream);
  void writeArena(exec::ArenaOp arena);
  void writeUnit(exec::UnitOp unit);
  uint16_t useStream(int64_t stream) {
    streams = std::max(streams, stream + 1);
    return stream;
  }
  uint32_t useEvent(int64_t event) {
    result.events = std::max<uint32_t>(result.events, event + 1);
    return event;
  }
  /// The number of a function, or -1 without a name.
  int32_t getFunction(FlatSymbolRefAttr name) {
    return name ? static_cast<int32_t>(functions[name.getValue()]) : -1;
  }
  void writePort(exec::PortOp port);
  void writeParam(exec::ParamOp param);

  exec::PlanOp plan;
  const SerializeOptions &options;
  plan::PlanT result;
  llvm::StringMap<uint32_t> arenas, scalars, kernels, functions, units;
  uint32_t level = 0;
  int64_t streams = 1;
  std::map<uint16_t, int32_t> workspaces; ///< slices, by stream
};
} // namespace

uint32_t PlanWriter::writeSlice(const Address &address) {
  auto slice = std::make_unique<plan::SliceT>();
  slice->name = address.name.str();
  // An arena that shares another one's bytes has its offsets.
  slice->arena = arenas[address.arena];
  slice->level = address.level;
  slice->offset = address.offset;
  slice->bytes = address.bytes;
  slice->stride = address.stride;
  slice->table.assign(address.table.begin(), address.table.end());
  if (!address.unit.empty()) {
    slice->unit = units[address.unit];
    slice->ordinals.assign(address.ordinals.begin(), address.ordinals.end());
  }
  result.slices.push_back(std::move(slice));
  return result.slices.size() - 1;
}

int32_t PlanWriter::useWorkspace(uint16_t stream) {
  if (options.gemmWorkspace == 0)
    return -1;
  auto [place, isNew] = workspaces.try_emplace(stream);
  if (!isNew)
    return place->second;
  constexpr StringRef name = "workspace";
  if (arenas.try_emplace(name, result.arenas.size()).second) {
    result.arenas.push_back(std::make_unique<plan::ArenaT>());
    result.arenas.back()->name = name.str();
  }
  plan::ArenaT &arena = *result.arenas[arenas[name]];
  place->second =
      writeSlice(name, name, arena.bytes, (int64_t)options.gemmWorkspace);
  arena.bytes += options.gemmWorkspace;
  return place->second;
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

static plan::CommType getCommType(Type type) {
  if (type.isF64())
    return plan::CommType::F64;
  return type.isInteger(8) ? plan::CommType::U8 : plan::CommType::F32;
}

static plan::Group getGroup(StringRef name) {
  return llvm::StringSwitch<plan::Group>(name)
      .Case(exec::shardGroup, plan::Group::Shard)
      .Case(exec::replicaGroup, plan::Group::Replica)
      .Default(plan::Group::World);
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
    table.writes_from = table.args.size();
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
    table.flops = launch.getFlops() ? launch.getFlops()->convertToDouble() : 0;
    instruction->stream = useStream(launch.getStream());
    instruction->op.Set(std::move(table));
  } else if (auto gemm = dyn_cast<exec::GemmOp>(op)) {
    plan::GemmT table;
    table.dtype = getDType(gemm.getType());
    table.out_dtype = getDType(gemm.getResultType());
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
    table.workspace = useWorkspace(gemm.getStream());
    instruction->stream = useStream(gemm.getStream());
    instruction->op.Set(std::move(table));
  } else if (auto copy = dyn_cast<exec::CopyOp>(op)) {
    plan::CopyT table;
    table.src = writeSlice(copy.getSource());
    table.dst = writeSlice(copy.getDest());
    table.bytes = writeExtent(copy.getBytes());
    instruction->stream = useStream(copy.getStream());
    instruction->op.Set(std::move(table));
  } else if (auto fill = dyn_cast<exec::FillOp>(op)) {
    plan::FillT table;
    table.dst = writeSlice(fill.getDest());
    table.bytes = writeExtent(fill.getBytes());
    instruction->stream = useStream(fill.getStream());
    instruction->op.Set(std::move(table));
  } else if (auto gather = dyn_cast<exec::AllGatherOp>(op)) {
    plan::AllGatherT table;
    table.group = getGroup(gather.getGroup());
    table.src = writeSlice(gather.getSource());
    table.dst = writeSlice(gather.getDest());
    table.bytes = gather.getBytes();
    instruction->stream = useStream(gather.getStream());
    instruction->op.Set(std::move(table));
  } else if (auto reduce = dyn_cast<exec::ReduceScatterOp>(op)) {
    plan::ReduceScatterT table;
    table.group = getGroup(reduce.getGroup());
    table.type = getCommType(reduce.getType());
    table.src = writeSlice(reduce.getSource());
    table.dst = writeSlice(reduce.getDest());
    table.elements = reduce.getElements();
    table.ranges = reduce.getRanges();
    table.accumulate = reduce.getAccumulate();
    instruction->stream = useStream(reduce.getStream());
    instruction->op.Set(std::move(table));
  } else if (auto sum = dyn_cast<exec::AllReduceOp>(op)) {
    plan::AllReduceT table;
    table.group = getGroup(sum.getGroup());
    table.type = getCommType(sum.getType());
    table.data = writeSlice(sum.getData());
    table.elements = sum.getElements();
    instruction->stream = useStream(sum.getStream());
    instruction->op.Set(std::move(table));
  } else if (auto record = dyn_cast<exec::RecordOp>(op)) {
    plan::RecordT table;
    table.event = useEvent(record.getEvent());
    instruction->stream = useStream(record.getStream());
    instruction->op.Set(std::move(table));
  } else if (auto wait = dyn_cast<exec::WaitOp>(op)) {
    plan::WaitT table;
    table.event = useEvent(wait.getEvent());
    instruction->stream = useStream(wait.getStream());
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

static std::unique_ptr<plan::LaunchShapeT>
writeLaunchShape(const cuda::LaunchShape &launch) {
  auto table = std::make_unique<plan::LaunchShapeT>();
  table->threads = launch.threads;
  table->shared_bytes = launch.sharedBytes;
  table->items_per_block = launch.itemsPerBlock;
  table->blocks_per_processor = launch.blocksPerProcessor;
  for (const cuda::TensorMap &map : launch.maps)
    table->maps.emplace_back(map.argument, map.boxColumns, map.boxRows,
                             map.begin, map.columns, map.pitch);
  return table;
}

void PlanWriter::writeKernel(kern::FuncOp kernel) {
  auto table = std::make_unique<plan::KernelT>();
  table->name = table->symbol = kernel.getSymName().str();
  auto compiled = options.kernels.find(table->name);
  if (compiled != options.kernels.end()) {
    const PlanKernel &code = compiled->second;
    table->symbol = code.symbol;
    table->hash = code.hash;
    table->text = code.text;
    table->code = code.code;
    if (code.launch) {
      table->form = plan::KernelForm::CudaCubin;
      table->launch = writeLaunchShape(*code.launch);
      if (!code.code.empty())
        table->resources = std::make_unique<plan::KernelResources>(
            code.resources.registers, code.resources.spillBytes,
            code.resources.staticSharedBytes);
    }
  }
  kernels[kernel.getSymName()] = result.kernels.size();
  result.kernels.push_back(std::move(table));
}

void PlanWriter::writePort(exec::PortOp port) {
  auto table = std::make_unique<plan::PortT>();
  table->name = port.getName().str();
  table->dtype = port.getType().isInteger(32) ? "i32" : "f32";
  table->extent = writeExtent(port.getExtent());
  table->slice = writeSlice(port.getName(), port.getArena(),
                            (int64_t)port.getOffset(),
                            port.getExtent().getCap() * 4);
  (port.getInput() ? result.inputs : result.outputs).push_back(std::move(table));
}

void PlanWriter::writeParam(exec::ParamOp param) {
  auto table = std::make_unique<plan::ParameterT>();
  auto type = cast<RankedTensorType>(param.getType());
  table->name = param.getSymName().str();
  table->hf = param.getHf().value_or("").str();
  table->gguf = param.getGguf().value_or("").str();
  table->gguf_rope_heads = param.getGgufRopeHeads().value_or(0);
  table->unit = units[param.getUnit()];
  table->shape.assign(type.getShape().begin(), type.getShape().end());
  llvm::raw_string_ostream(table->scheme) << type.getElementType();
  for (auto part : param.getParts().getAsRange<DictionaryAttr>()) {
    auto component = std::make_unique<plan::ComponentT>();
    component->name = part.getAs<StringAttr>("name").getValue().str();
    component->dtype = part.getAs<StringAttr>("type").getValue().str();
    component->offset = part.getAs<IntegerAttr>("offset").getInt();
    component->elements = part.getAs<IntegerAttr>("elements").getInt();
    table->components.push_back(std::move(component));
  }
  table->trainable = param.getTrainable();
  table->init = llvm::StringSwitch<plan::Init>(param.getInit().value_or(""))
                    .Case("zeros", plan::Init::Zeros)
                    .Case("kaiming_uniform", plan::Init::KaimingUniform)
                    .Default(plan::Init::Checkpoint);
  table->fan_in = type.getRank() > 1 ? type.getDimSize(1) : 0;
  if (DictionaryAttr functions = param.getLoaderAttr()) {
    auto get = [&](StringRef step) {
      return getFunction(functions.getAs<FlatSymbolRefAttr>(step));
    };
    table->loader = std::make_unique<plan::LoaderT>();
    table->loader->pieces = param.getPieces();
    table->loader->piece_function = get("piece");
    table->loader->mean_function = get("mean");
    table->loader->scales_function = get("scales");
    table->loader->offset_function = get("offset");
  }
  result.parameters.push_back(std::move(table));
}

void PlanWriter::writeArena(exec::ArenaOp arena) {
  if (auto shared = arena.getShares()) {
    arenas[arena.getSymName()] = arenas[*shared];
  } else {
    auto table = std::make_unique<plan::ArenaT>();
    table->name = arena.getSymName().str();
    table->bytes = arena.getBytes().value_or(0);
    if (auto contents = arena.getContents())
      for (NamedAttribute entry : *contents) {
        auto content = std::make_unique<plan::ContentT>();
        content->name = entry.getName().str();
        content->bytes = cast<IntegerAttr>(entry.getValue()).getInt();
        table->contents.push_back(std::move(content));
      }
    llvm::stable_sort(table->contents, [](const auto &a, const auto &b) {
      return a->bytes > b->bytes;
    });
    arenas[arena.getSymName()] = result.arenas.size();
    result.arenas.push_back(std::move(table));
  }
}

void PlanWriter::writeUnit(exec::UnitOp unit) {
  auto table = std::make_unique<plan::UnitT>();
  table->name = unit.getSymName().str();
  table->bytes = unit.getBytes();
  if (auto layers = unit.getLayersAttr())
    table->layers.assign(layers.asArrayRef().begin(), layers.asArrayRef().end());
  int64_t bytes = (int64_t)unit.getBytes() / result.mesh->shards();
  int64_t stride = table->layers.empty() ? 0 : bytes;
  table->range = writeSlice(unit.getSymName(), unit.getArena(),
                            (int64_t)unit.getOffset(), bytes, stride);
  if (unit.getGradient())
    table->gradient = writeSlice(unit.getSymName(), exec::gradientArena,
                                 (int64_t)*unit.getGradient(), bytes, stride);
  table->begin_function = getFunction(unit.getBeginAttr());
  table->store_function = getFunction(unit.getStoreAttr());
  result.units.push_back(std::move(table));
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
  result.staging = -1;
  fsdp::MeshOp mesh = fsdp::MeshOp::of(plan);
  result.mesh = mesh ? std::make_unique<plan::Mesh>(mesh.getRanks(),
                                                    mesh.getNumShards(),
                                                    mesh.getDeterministic())
                     : std::make_unique<plan::Mesh>(1, 1, false);
  for (auto unit : plan.getBody().getOps<exec::UnitOp>()) {
    uint32_t number = units.size();
    units[unit.getSymName()] = number;
  }
  for (auto scalar : plan.getBody().getOps<exec::ScalarOp>()) {
    auto table = std::make_unique<plan::ScalarT>();
    table->name = scalar.getSymName().str();
    table->kind = scalar.getMax() ? plan::ScalarKind::I64 : plan::ScalarKind::F64;
    table->max = scalar.getMax().value_or(0);
    scalars[scalar.getSymName()] = result.scalars.size();
    result.scalars.push_back(std::move(table));
  }
  for (auto arena : plan.getBody().getOps<exec::ArenaOp>())
    writeArena(arena);
  int64_t staged = 0; // the largest piece
  for (auto param : plan.getBody().getOps<exec::ParamOp>())
    if (param.getPieces() > 0)
      staged = std::max<int64_t>(
          staged, cast<RankedTensorType>(param.getType()).getNumElements() /
                      (int64_t)param.getPieces() * 4);
  if (staged > 0)
    result.staging =
        writeSlice(exec::stagingArena, exec::stagingArena, 0, staged);
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
  for (auto unit : plan.getBody().getOps<exec::UnitOp>())
    writeUnit(unit);
  for (auto param : plan.getBody().getOps<exec::ParamOp>())
    writeParam(param);
  static constexpr const char *streamNames[] = {"compute", "gather", "reduce"};
  result.streams.assign(streamNames, streamNames + streams);
  return std::move(result);
}

std::vector<uint8_t> fsdpq::serializePlan(exec::PlanOp plan,
                                          const SerializeOptions &options) {
  return rt::encodePlan(PlanWriter(plan, options).write());
}
