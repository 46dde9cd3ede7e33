#include "runtime/plan/PlanText.h"
#include "runtime/plan/Extents.h"
#include "runtime/plan/Mesh.h"

#include <charconv>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fsdpq::rt {

namespace {

/// The shortest digits that read back as the same number.
template <typename Number>
std::string digits(Number number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

/// Free text (metadata, locations) may hold anything; lines must stay lines.
std::string escaped(const flatbuffers::String *text) {
  std::string result;
  for (char c : text ? text->string_view() : std::string_view())
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return result;
}

/// What the printer calls each thing: its name, with its number if shared.
template <typename Tables>
std::vector<std::string> labels(const Tables &tables) {
  std::unordered_map<std::string_view, unsigned> uses;
  for (const auto *table : tables)
    ++uses[table->name()->string_view()];
  std::vector<std::string> result;
  for (uint32_t i = 0; i < tables.size(); ++i) {
    std::string_view name = tables.Get(i)->name()->string_view();
    result.emplace_back(name);
    if (uses[name] > 1)
      result.back() += "#" + std::to_string(i);
  }
  return result;
}

/// An index table: in full when short or irregular; "[a, b, .. z] (n entries)"
/// when evenly spaced; "[a, b] repeated (n entries)" when of a short period.
template <typename Number>
std::string tableText(const flatbuffers::Vector<Number> &table) {
  const uint32_t size = table.size();
  auto list = [&](uint32_t count) {
    std::string text;
    for (uint32_t i = 0; i < count; ++i)
      text += (i ? ", " : "") + std::to_string(table.Get(i));
    return text;
  };
  const std::string entries = " (" + std::to_string(size) + " entries)";
  auto everywhere = [&](uint32_t from, auto holds) {
    for (uint32_t i = from; i < size; ++i)
      if (!holds(i))
        return false;
    return true;
  };
  if (size > 4 && everywhere(2, [&](uint32_t i) {
        // Differences wrap alike in both directions.
        return table.Get(i) - table.Get(i - 1) == table.Get(1) - table.Get(0);
      }))
    return "[" + list(2) + ", .. " + std::to_string(table.Get(size - 1)) + "]" +
           entries;
  for (uint32_t period = 1; period <= 8 && 2 * period < size; ++period)
    if (everywhere(period, [&](uint32_t i) {
          return table.Get(i) == table.Get(i - period);
        }))
      return "[" + list(period) + "] repeated" + entries;
  return "[" + list(size) + "]";
}

class Printer {
public:
  explicit Printer(const LoadedPlan &loaded)
      : loaded(loaded), plan(loaded.plan()), slices(labels(*plan.slices())),
        kernels(labels(*plan.kernels())) {}

  std::string print() {
    out += "plan version " + std::to_string(planVersion) + " hash " +
           loaded.hash() + "\n";
    out += "compiler " + escaped(plan.compiler()) + "\n";
    out += "target " + escaped(plan.target()) + "\n";
    if (plan.metadata())
      for (const plan::KeyValue *entry : *plan.metadata())
        out += "metadata " + entry->key()->str() + " = " +
               escaped(entry->value()) + "\n";
    const plan::Mesh &mesh = *plan.mesh();
    out += "mesh " + std::to_string(mesh.ranks()) + " ranks, " +
           std::to_string(mesh.shards()) + " shards" +
           (mesh.deterministic() ? ", deterministic\n" : "\n");
    for (const plan::Scalar *scalar : *plan.scalars())
      out += "scalar " + scalar->name()->str() + " : " +
             (scalar->kind() == plan::ScalarKind::I64
                  ? "i64 max " + std::to_string(scalar->max())
                  : "f64") +
             "\n";
    for (const flatbuffers::String *stream : *plan.streams())
      out += "stream " + stream->str() + "\n";
    if (plan.events() > 0)
      out += "events " + std::to_string(plan.events()) + "\n";
    for (const plan::Arena *arena : *plan.arenas())
      printArena(*arena);
    for (uint32_t i = 0; i < plan.slices()->size(); ++i)
      printSlice(i);
    for (uint32_t i = 0; i < plan.kernels()->size(); ++i)
      printKernel(i);
    printPorts(*plan.inputs(), "input ");
    printPorts(*plan.outputs(), "output ");
    if (plan.staging() >= 0)
      out += "staging " + slices[plan.staging()] + "\n";
    for (const plan::Unit *unit : *plan.units())
      printUnit(*unit);
    for (const plan::Parameter *parameter : *plan.parameters())
      printParameter(*parameter);
    for (const plan::Function *function : *plan.functions())
      printFunction(*function);
    return std::move(out);
  }

private:
  void printArena(const plan::Arena &arena) {
    out += "arena " + arena.name()->str() + " : " +
           std::to_string(arena.bytes()) + " bytes\n";
    if (arena.contents())
      for (const plan::Content *content : *arena.contents())
        out += "  content " + content->name()->str() + " : " +
               std::to_string(content->bytes()) + " bytes\n";
  }

  void printSlice(uint32_t number) {
    const plan::Slice &slice = *plan.slices()->Get(number);
    out += "slice " + slices[number] + " : " +
           plan.arenas()->Get(slice.arena())->name()->str() + " + " +
           std::to_string(slice.offset()) + ", " +
           std::to_string(slice.bytes()) + " bytes";
    const std::string index = "i" + std::to_string(slice.level());
    if (slice.table() && slice.table()->size() > 0)
      out += ", at " + tableText(*slice.table()) + "[" + index + "]";
    else if (slice.stride() != 0)
      out += ", at " + index + " * " + std::to_string(slice.stride());
    if (slice.unit() >= 0)
      out += ", holds " + plan.units()->Get(slice.unit())->name()->str() + " " +
             (slice.ordinals()->size() == 1
                  ? std::to_string(slice.ordinals()->Get(0))
                  : tableText(*slice.ordinals()) + "[" + index + "]");
    out += "\n";
  }

  void printKernel(uint32_t number) {
    const plan::Kernel &kernel = *plan.kernels()->Get(number);
    out += "kernel " + kernels[number] + " : " +
           plan::EnumNameKernelForm(kernel.form()) + " symbol " +
           kernel.symbol()->str() + ", " +
           std::to_string(kernel.code() ? kernel.code()->size() : 0) +
           " bytes, hash " + escaped(kernel.hash()) + "\n";
    if (const plan::LaunchShape *launch = kernel.launch())
      printLaunchShape(*launch);
    if (const plan::KernelResources *resources = kernel.resources())
      out += "  resources " + std::to_string(resources->registers()) +
             " registers, " + std::to_string(resources->spill_bytes()) +
             " bytes spilled, " +
             std::to_string(resources->static_shared_bytes()) +
             " bytes of static shared memory\n";
  }

  void printLaunchShape(const plan::LaunchShape &launch) {
    out += "  blocks of " + std::to_string(launch.threads()) + " threads, " +
           std::to_string(launch.shared_bytes()) +
           " bytes of shared memory, " +
           std::to_string(launch.items_per_block()) + " work items";
    if (launch.blocks_per_processor() > 0)
      out += ", at most " + std::to_string(launch.blocks_per_processor()) +
             " a multiprocessor";
    out += "\n";
    if (launch.maps())
      for (const plan::TensorMap *map : *launch.maps())
        out += "  map of argument " + std::to_string(map->arg()) + " + " +
               std::to_string(map->begin()) + " : " +
               std::to_string(map->columns()) + " columns, pitch " +
               std::to_string(map->pitch()) + ", boxes " +
               std::to_string(map->box_rows()) + "x" +
               std::to_string(map->box_columns()) + "\n";
  }

  template <typename Ports>
  void printPorts(const Ports &ports, const std::string &what) {
    for (const plan::Port *port : ports)
      out += what + port->name()->str() + " : " + escaped(port->dtype()) + "[" +
             extentText(*port->extent(), {0}) + "] in " +
             slices[port->slice()] + "\n";
  }

  std::string function(int64_t number) const {
    return plan.functions()->Get(static_cast<uint32_t>(number))->name()->str();
  }

  void printUnit(const plan::Unit &unit) {
    out += "unit " + unit.name()->str() + " : " + std::to_string(unit.bytes()) +
           " bytes in " + slices[unit.range()];
    if (unit.layers() && unit.layers()->size() > 0) {
      out += " layers(";
      for (uint32_t i = 0; i < unit.layers()->size(); ++i)
        out += (i ? ", " : "") + std::to_string(unit.layers()->Get(i));
      out += ")";
    }
    if (unit.gradient() >= 0)
      out += " gradient " + slices[unit.gradient()];
    if (unit.begin_function() >= 0)
      out += " begin " + function(unit.begin_function()) + " store " +
             function(unit.store_function());
    out += "\n";
  }

  void printParameter(const plan::Parameter &parameter) {
    out += "parameter " + parameter.name()->str() + " : <";
    for (int64_t dimension : *parameter.shape())
      out += std::to_string(dimension) + "x";
    out += escaped(parameter.scheme()) + "> in " +
           plan.units()->Get(parameter.unit())->name()->str();
    if (parameter.trainable())
      out += " trainable";
    if (parameter.init() == plan::Init::Zeros)
      out += " zeros";
    if (parameter.init() == plan::Init::KaimingUniform)
      out += " kaiming_uniform(" + std::to_string(parameter.fan_in()) + ")";
    if (const plan::Loader *loader = parameter.loader()) {
      out += " load " + std::to_string(loader->pieces()) + " pieces " +
             function(loader->piece_function());
      if (loader->mean_function() >= 0)
        out += " mean " + function(loader->mean_function()) + " scales " +
               function(loader->scales_function()) + " offset " +
               function(loader->offset_function());
    }
    if (parameter.hf())
      out += " hf \"" + escaped(parameter.hf()) + "\"";
    if (parameter.gguf())
      out += " gguf \"" + escaped(parameter.gguf()) + "\"";
    if (parameter.gguf_rope_heads() > 0)
      out += " rope_heads " + std::to_string(parameter.gguf_rope_heads());
    out += "\n";
    for (const plan::Component *component : *parameter.components())
      out += "  component " + component->name()->str() + " : " +
             escaped(component->dtype()) + "[" +
             std::to_string(component->elements()) + "] at " +
             std::to_string(component->offset()) + "\n";
  }

  //===--- Functions --------------------------------------------------------//

  /// How many values each level's index takes, as in PlanCheck.
  using IndexCounts = std::vector<int64_t>;
  using Body = flatbuffers::Vector<flatbuffers::Offset<plan::Instruction>>;

  void printFunction(const plan::Function &function) {
    out += "function " + function.name()->str() + "(";
    if (function.index_count() > 0)
      out += "i0 < " + std::to_string(function.index_count());
    out += ") {\n";
    IndexCounts counts{function.index_count()};
    uint32_t number = 0;
    printBody(*function.body(), counts, number);
    out += "}\n";
  }

  void printBody(const Body &body, IndexCounts &counts, uint32_t &number) {
    const std::string indent(2 * counts.size(), ' ');
    for (const plan::Instruction *instruction : body) {
      out += indent;
      if (instruction->op_type() == plan::Op::Loop) {
        const plan::Loop &loop = *instruction->op_as_Loop();
        out += "loop i" + std::to_string(counts.size()) + " < " +
               extentText(*loop.count(), counts) + " {";
        endLine(*instruction, number);
        counts.push_back(upper(*loop.count(), counts));
        printBody(*loop.body(), counts, number);
        counts.pop_back();
        out += indent + "}\n";
        continue;
      }
      printOp(*instruction, counts);
      endLine(*instruction, number);
    }
  }

  void endLine(const plan::Instruction &instruction, uint32_t &number) {
    const bool isLoop = instruction.op_type() == plan::Op::Loop;
    if (plan.streams()->size() > 1 && !isLoop)
      out += " on " + plan.streams()->Get(instruction.stream())->str();
    out += "  // " + std::to_string(number++);
    if (instruction.location() && instruction.location()->size() > 0)
      out += ": " + escaped(instruction.location());
    out += "\n";
  }

  void printOp(const plan::Instruction &instruction,
               const IndexCounts &counts) {
    if (const plan::Launch *launch = instruction.op_as_Launch()) {
      out += "launch " + kernels[launch->kernel()] + " grid(" +
             extentText(*launch->grid(), counts) + ") args(";
      for (uint32_t i = 0; i < launch->args()->size(); ++i)
        out += (i ? ", " : "") + argText(*launch->args()->Get(i), counts);
      out += ") writes_from " + std::to_string(launch->writes_from());
      if (launch->flops() > 0)
        out += " flops(" + digits(launch->flops()) + ")";
    } else if (const plan::Gemm *gemm = instruction.op_as_Gemm()) {
      printGemm(*gemm, counts);
    } else if (const plan::Copy *copy = instruction.op_as_Copy()) {
      out += "copy " + sliceUse(copy->dst()) + " = " + sliceUse(copy->src()) +
             ", " + extentText(*copy->bytes(), counts) + " bytes";
    } else if (const plan::Fill *fill = instruction.op_as_Fill()) {
      out += "fill " + sliceUse(fill->dst()) + " = " +
             std::to_string(fill->value()) + ", " +
             extentText(*fill->bytes(), counts) + " bytes";
    } else if (const plan::AllGather *gather = instruction.op_as_AllGather()) {
      out += "all_gather " + std::string(groupName(gather->group())) + " " +
             sliceUse(gather->src()) + " -> " + sliceUse(gather->dst()) + ", " +
             std::to_string(gather->bytes()) + " bytes";
    } else if (const plan::ReduceScatter *scatter =
                   instruction.op_as_ReduceScatter()) {
      out += "reduce_scatter " + std::string(groupName(scatter->group())) +
             " " + commType(scatter->type()) + " " + sliceUse(scatter->src()) +
             " -> " + sliceUse(scatter->dst()) + ", " +
             std::to_string(scatter->ranges()) + " ranges of " +
             std::to_string(scatter->elements()) +
             (scatter->accumulate() ? ", accumulate" : "");
    } else if (const plan::AllReduce *reduce = instruction.op_as_AllReduce()) {
      out += "all_reduce " + std::string(groupName(reduce->group())) + " " +
             commType(reduce->type()) + " " + sliceUse(reduce->data()) + ", " +
             std::to_string(reduce->elements()) + " elements";
    } else if (const plan::Record *record = instruction.op_as_Record()) {
      out += "record e" + std::to_string(record->event());
    } else if (const plan::Wait *wait = instruction.op_as_Wait()) {
      out += "wait e" + std::to_string(wait->event());
    }
  }

  static std::string commType(plan::CommType type) {
    static constexpr const char *names[] = {"u8", "f32", "f64"};
    return names[static_cast<int>(type)];
  }

  void printGemm(const plan::Gemm &gemm, const IndexCounts &counts) {
    static constexpr const char *types[] = {"f32", "f64", "bf16"};
    auto operand = [&](uint32_t slice, bool transposed, int64_t pitch) {
      return sliceUse(slice) + (transposed ? "'" : "") + "(pitch " +
             std::to_string(pitch) + ")";
    };
    const std::string c = operand(gemm.c(), false, gemm.ldc());
    out += "gemm " + std::string(types[static_cast<int>(gemm.dtype())]) +
           (gemm.out_dtype() == gemm.dtype()
                ? ""
                : std::string(" to ") +
                      types[static_cast<int>(gemm.out_dtype())]) +
           " " +
           c + " = " + digits(gemm.alpha()) + " * " +
           operand(gemm.a(), gemm.trans_a(), gemm.lda()) + " * " +
           operand(gemm.b(), gemm.trans_b(), gemm.ldb()) + " + " +
           digits(gemm.beta()) + " * c, m(" + extentText(*gemm.m(), counts) +
           ") n(" + extentText(*gemm.n(), counts) + ") k(" +
           extentText(*gemm.k(), counts) + ")";
    if (gemm.workspace() >= 0)
      out += " workspace " + sliceUse(static_cast<uint32_t>(gemm.workspace()));
  }

  std::string argText(const plan::Arg &arg, const IndexCounts &counts) const {
    switch (arg.kind()) {
    case plan::ArgKind::Slice:
      return sliceUse(arg.slice());
    case plan::ArgKind::Extent:
      return extentText(*arg.extent(), counts);
    case plan::ArgKind::Scalar:
      return "%" + plan.scalars()->Get(arg.scalar())->name()->str();
    case plan::ArgKind::Constant:
      break;
    }
    return "const " + digits(arg.constant());
  }

  std::string sliceUse(uint32_t number) const {
    const plan::Slice &slice = *plan.slices()->Get(number);
    return slices[number] +
           (isIndexed(slice) ? "[i" + std::to_string(slice.level()) + "]" : "");
  }

  //===--- Extents ----------------------------------------------------------//

  ExtentRange range(const plan::Extent &extent,
                    const IndexCounts &counts) const {
    const int64_t indices =
        extent.index_mul() == 0 ? 1 : counts[extent.level()];
    return *rangeOf(extent, scalarMax(plan, extent), indices);
  }

  int64_t upper(const plan::Extent &extent, const IndexCounts &counts) const {
    return range(extent, counts).upper;
  }

  std::string extentText(const plan::Extent &extent,
                         const IndexCounts &counts) const {
    std::string text;
    auto add = [&](bool negative, const std::string &term) {
      if (text.empty())
        text = (negative ? "-" : "") + term;
      else
        text += (negative ? " - " : " + ") + term;
    };
    auto magnitude = [](int64_t value) {
      return std::to_string(value < 0 ? -static_cast<uint64_t>(value)
                                      : static_cast<uint64_t>(value));
    };
    if (extent.scalar() >= 0 && extent.mul() != 0) {
      std::string term = plan.scalars()->Get(extent.scalar())->name()->str();
      if (extent.mul() != 1)
        term += "*" + std::to_string(extent.mul());
      if (extent.div() != 1)
        term += "/" + std::to_string(extent.div());
      add(false, term);
    }
    if (extent.index_mul() != 0) {
      const std::string index = "i" + std::to_string(extent.level());
      const bool one = extent.index_mul() == 1 || extent.index_mul() == -1;
      add(extent.index_mul() < 0,
          one ? index : magnitude(extent.index_mul()) + "*" + index);
    }
    if (extent.add() != 0 || text.empty())
      add(extent.add() < 0, magnitude(extent.add()));
    const ExtentRange bounds = range(extent, counts);
    if (bounds.upperWithoutCap <= extent.cap())
      return text;
    return "min(" + std::to_string(extent.cap()) + ", " + text + ")";
  }

  const LoadedPlan &loaded;
  const plan::Plan &plan;
  const std::vector<std::string> slices, kernels;
  std::string out;
};

} // namespace

std::string planText(const LoadedPlan &plan) { return Printer(plan).print(); }

} // namespace fsdpq::rt
