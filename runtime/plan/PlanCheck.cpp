#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/Elements.h"
#include "runtime/plan/Extents.h"
#include "runtime/support/Error.h"

#include <bit>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

namespace {

/// Wide enough for offset + stride * index and rows * pitch * size.
using Wide = __int128;

constexpr uint64_t maxArenaBytes = uint64_t(1) << 48;
constexpr uint32_t maxComponents = 16;

/// How many values the index of each nesting level can take at most: [0] is
/// the function's argument (0: it takes none), [k] the k-th loop around.
using IndexCounts = std::vector<int64_t>;

std::string quoted(const flatbuffers::String *name) {
  return "'" + name->str() + "'";
}

bool isIndexed(const plan::Slice &slice) {
  return slice.stride() != 0 || (slice.table() && slice.table()->size() > 0);
}

class Checker {
public:
  Checker(const plan::Plan &plan, size_t bodyBytes, const std::string &where)
      : plan(plan), sharedBudget(bodyBytes), where(where) {}

  void check() {
    checkAllNames();
    checkScalars();
    checkArenas();
    checkSlices();
    checkKernels();
    for (uint32_t i = 0; i < plan.functions()->size(); ++i)
      checkFunction(*plan.functions()->Get(i));
    checkPorts(*plan.inputs(), "input");
    checkPorts(*plan.outputs(), "output");
    checkParameters();
  }

private:
  [[noreturn]] void fail(int id, const std::string &message) const {
    throw Error(id, ExitCode::BadInput,
                subject.empty() ? message : subject + ": " + message, where,
                "make the plan again with this version's compiler");
  }

  /// Counts bytes of vectors as they are scanned. Vectors that share storage
  /// would let a small file ask for unbounded work.
  void spend(uint64_t bytes) {
    if (bytes > sharedBudget)
      fail(3022, "tables share storage");
    sharedBudget -= bytes;
  }

  /// FlatBuffers' verifier checks the alignment of a vector's length only.
  template <typename T>
  void checkAlignment(const flatbuffers::Vector<T> &vector) const {
    if (reinterpret_cast<uintptr_t>(vector.Data()) % sizeof(T) != 0)
      fail(3022, "a table is not aligned to its entries");
  }

  //===--- Names ------------------------------------------------------------//

  void checkName(std::string_view name, const std::string &what) const {
    if (name.empty() || name.size() > 1024)
      fail(3010, what + " has a name of " + std::to_string(name.size()) +
                     " bytes, expected 1 to 1024");
    for (unsigned char c : name)
      if (c < 0x20 || c == 0x7f)
        fail(3010, what + " has a control character in its name");
  }

  template <typename Tables, typename GetName>
  void checkNames(const Tables &tables, const std::string &what, bool unique,
                  GetName getName) const {
    std::set<std::string_view> seen;
    for (uint32_t i = 0; i < tables.size(); ++i) {
      std::string_view name = getName(*tables.Get(i)).string_view();
      checkName(name, what + " " + std::to_string(i));
      if (unique && !seen.insert(name).second)
        fail(3010, "two of the plan's " + what + "s are named '" +
                       std::string(name) + "'");
    }
  }

  /// What is looked up by name must be unique; slices and kernels are not.
  void checkAllNames() const {
    auto name = [](const auto &table) -> const auto & { return *table.name(); };
    checkNames(*plan.scalars(), "scalar", true, name);
    checkNames(
        *plan.streams(), "stream", true,
        [](const auto &stream) -> const auto & { return stream; });
    checkNames(*plan.arenas(), "arena", true, name);
    checkNames(*plan.slices(), "slice", false, name);
    checkNames(*plan.kernels(), "kernel", false, name);
    checkNames(*plan.functions(), "function", true, name);
    checkNames(*plan.inputs(), "input", true, name);
    checkNames(*plan.outputs(), "output", true, name);
    checkNames(*plan.parameters(), "parameter", true, name);
    if (plan.metadata())
      checkNames(
          *plan.metadata(), "metadata key", true,
          [](const auto &entry) -> const auto & { return *entry.key(); });
  }

  //===--- Scalars, slices, kernels -----------------------------------------//

  void checkScalars() {
    for (const plan::Scalar *scalar : *plan.scalars()) {
      subject = "scalar " + quoted(scalar->name());
      if (scalar->kind() > plan::ScalarKind::MAX)
        fail(3011,
             "kind " + std::to_string(int(scalar->kind())) + " is unknown");
      if (scalar->max() < 0)
        fail(3015, "its maximum is " + std::to_string(scalar->max()) +
                       ", below zero");
    }
    subject.clear();
  }

  void checkArenas() const {
    for (const plan::Arena *arena : *plan.arenas())
      if (arena->bytes() > maxArenaBytes)
        fail(3012, "arena " + quoted(arena->name()) + " has " +
                       std::to_string(arena->bytes()) +
                       " bytes, more than an address space");
  }

  /// Every slice at index 0 and, if it has a table, at each entry. Strides are
  /// checked where a use tells the range of the index.
  void checkSlices() {
    for (uint32_t i = 0; i < plan.slices()->size(); ++i) {
      const plan::Slice &slice = *plan.slices()->Get(i);
      subject = sliceText(i);
      if (slice.arena() >= plan.arenas()->size())
        fail(3011, "it names arena " + std::to_string(slice.arena()) + " of " +
                       std::to_string(plan.arenas()->size()));
      const bool hasTable = slice.table() && slice.table()->size() > 0;
      if (hasTable && slice.stride() != 0)
        fail(3012, "it has both a table and a stride");
      uint64_t shifts = slice.offset() | uint64_t(slice.stride());
      if (hasTable) {
        checkAlignment(*slice.table());
        spend(uint64_t(slice.table()->size()) * sizeof(uint64_t));
        for (uint32_t entry = 0; entry < slice.table()->size(); ++entry) {
          checkInArena(slice, slice.table()->Get(entry), entry);
          shifts |= slice.table()->Get(entry);
        }
      } else {
        checkInArena(slice, 0, 0);
      }
      alignment.push_back(1 << std::countr_zero(shifts | 256));
    }
    subject.clear();
  }

  void checkInArena(const plan::Slice &slice, Wide shift, int64_t index) const {
    const plan::Arena &arena = *plan.arenas()->Get(slice.arena());
    const Wide begin = Wide(slice.offset()) + shift;
    if (begin < 0 || begin + slice.bytes() > arena.bytes())
      fail(3012, "slice " + quoted(slice.name()) + " (" +
                     std::to_string(slice.bytes()) + " bytes) leaves arena " +
                     quoted(arena.name()) + " of " +
                     std::to_string(arena.bytes()) + " bytes at index " +
                     std::to_string(index));
  }

  void checkKernels() {
    for (const plan::Kernel *kernel : *plan.kernels()) {
      subject = "kernel " + quoted(kernel->name());
      checkName(kernel->symbol()->string_view(), "its symbol");
      if (kernel->form() > plan::KernelForm::MAX)
        fail(3011,
             "form " + std::to_string(int(kernel->form())) + " is unknown");
    }
    subject.clear();
  }

  std::string sliceText(uint32_t index) const {
    return "slice " + std::to_string(index) + " " +
           quoted(plan.slices()->Get(index)->name());
  }

  //===--- Uses of slices and extents ---------------------------------------//

  /// The number of values of the index at `level`, which must exist here.
  int64_t indexCount(uint32_t level, const IndexCounts &counts,
                     const std::string &user) const {
    if (level == 0 && (counts.empty() || counts[0] == 0))
      fail(3013, user + " uses an index argument, which is not there");
    if (level >= counts.size())
      fail(3013, user + " uses the index of loop " + std::to_string(level) +
                     ", but only " + std::to_string(counts.size() - 1) +
                     " are around it");
    return counts[level];
  }

  /// A slice used as `role`: it exists, its index does, and it stays in its
  /// arena for all values of it.
  const plan::Slice &checkSliceUse(uint32_t number, const std::string &role,
                                   const IndexCounts &counts) const {
    if (number >= plan.slices()->size())
      fail(3011, role + " names slice " + std::to_string(number) + " of " +
                     std::to_string(plan.slices()->size()));
    const plan::Slice &slice = *plan.slices()->Get(number);
    if (!isIndexed(slice))
      return slice;
    const int64_t count = indexCount(slice.level(), counts,
                                     role + " (" + sliceText(number) + ")");
    const uint32_t entries = slice.table() ? slice.table()->size() : 0;
    if (entries == 0)
      checkInArena(slice,
                   Wide(slice.stride()) * std::max<int64_t>(count - 1, 0),
                   count - 1);
    else if (entries < count)
      fail(3012, role + " (" + sliceText(number) + ") has a table of " +
                     std::to_string(entries) + " for an index that takes " +
                     std::to_string(count) + " values");
    return slice;
  }

  /// The bounds of an extent used as `role`.
  ExtentRange checkExtent(const plan::Extent &extent, const std::string &role,
                          const IndexCounts &counts) const {
    if (extent.scalar() < -1 ||
        extent.scalar() >= int64_t(plan.scalars()->size()))
      fail(3011, role + " names scalar " + std::to_string(extent.scalar()) +
                     " of " + std::to_string(plan.scalars()->size()));
    if (extent.scalar() >= 0 &&
        plan.scalars()->Get(extent.scalar())->kind() != plan::ScalarKind::I64)
      fail(3015, role + " reads the floating-point scalar " +
                     quoted(plan.scalars()->Get(extent.scalar())->name()));
    if (extent.div() <= 0)
      fail(3015, role + " is divided by " + std::to_string(extent.div()));
    if (extent.cap() < 0)
      fail(3015, role + " is capped at " + std::to_string(extent.cap()));
    int64_t indices = 1;
    if (extent.index_mul() != 0)
      indices = indexCount(extent.level(), counts, role);
    std::optional<ExtentRange> range =
        rangeOf(extent, scalarMax(plan, extent), indices);
    if (!range)
      fail(3015, role + " overflows 64 bits");
    return *range;
  }

  /// The greatest value of an extent that counts something.
  int64_t checkCount(const plan::Extent &extent, const std::string &role,
                     const IndexCounts &counts) const {
    ExtentRange range = checkExtent(extent, role, counts);
    if (range.lowestAtCapacity < 0)
      fail(3015, role + " is " + std::to_string(range.lowestAtCapacity) +
                     " at full capacity");
    return range.upper;
  }

  //===--- Functions --------------------------------------------------------//

  void checkFunction(const plan::Function &function) {
    subject = "function " + quoted(function.name());
    if (function.index_count() < 0)
      fail(3019,
           "it takes " + std::to_string(function.index_count()) + " indices");
    IndexCounts counts{function.index_count()};
    uint32_t number = 0;
    checkBody(*function.body(), function, counts, number);
    subject.clear();
  }

  using Body = flatbuffers::Vector<flatbuffers::Offset<plan::Instruction>>;

  /// Instructions are numbered in text order, a loop before its body.
  void checkBody(const Body &body, const plan::Function &function,
                 IndexCounts &counts, uint32_t &number) {
    for (const plan::Instruction *instruction : body) {
      subject = "function " + quoted(function.name()) + ", instruction " +
                std::to_string(number++) + " (" + opText(*instruction) + ")";
      if (instruction->stream() >= plan.streams()->size())
        fail(3011, "it names stream " + std::to_string(instruction->stream()) +
                       " of " + std::to_string(plan.streams()->size()));
      switch (instruction->op_type()) {
      case plan::Op::Launch:
        checkLaunch(*instruction->op_as_Launch(), counts);
        continue;
      case plan::Op::Gemm:
        checkGemm(*instruction->op_as_Gemm(), counts);
        continue;
      case plan::Op::Copy:
        checkCopy(*instruction->op_as_Copy(), counts);
        continue;
      case plan::Op::Fill:
        checkFill(*instruction->op_as_Fill(), counts);
        continue;
      case plan::Op::Loop: {
        const plan::Loop &loop = *instruction->op_as_Loop();
        if (counts.size() > maxLoopDepth)
          fail(3019, "more than " + std::to_string(maxLoopDepth) +
                         " loops inside each other");
        counts.push_back(checkCount(*loop.count(), "its count", counts));
        checkBody(*loop.body(), function, counts, number);
        counts.pop_back();
        continue;
      }
      case plan::Op::NONE:
        break;
      }
      fail(3011, "opcode " + std::to_string(int(instruction->op_type())) +
                     " is unknown");
    }
  }

  std::string opText(const plan::Instruction &instruction) const {
    switch (instruction.op_type()) {
    case plan::Op::Launch: {
      uint32_t kernel = instruction.op_as_Launch()->kernel();
      return kernel < plan.kernels()->size()
                 ? "launch " + plan.kernels()->Get(kernel)->name()->str()
                 : "launch";
    }
    case plan::Op::Gemm:
      return "gemm";
    case plan::Op::Copy:
      return "copy";
    case plan::Op::Fill:
      return "fill";
    case plan::Op::Loop:
      return "loop";
    case plan::Op::NONE:
      break;
    }
    return "unknown";
  }

  void checkLaunch(const plan::Launch &launch,
                   const IndexCounts &counts) const {
    if (launch.kernel() >= plan.kernels()->size())
      fail(3011, "it names kernel " + std::to_string(launch.kernel()) + " of " +
                     std::to_string(plan.kernels()->size()));
    checkCount(*launch.grid(), "its grid", counts);
    if (launch.args()->size() > maxLaunchArgs)
      fail(3016, "it has " + std::to_string(launch.args()->size()) +
                     " arguments, at most " + std::to_string(maxLaunchArgs) +
                     " are possible");
    for (uint32_t i = 0; i < launch.args()->size(); ++i) {
      const plan::Arg &arg = *launch.args()->Get(i);
      const std::string role = "argument " + std::to_string(i);
      switch (arg.kind()) {
      case plan::ArgKind::Slice:
        checkSliceUse(arg.slice(), role, counts);
        continue;
      case plan::ArgKind::Extent:
        if (!arg.extent())
          fail(3016, role + " is an extent, which is missing");
        checkExtent(*arg.extent(), role, counts);
        continue;
      case plan::ArgKind::Scalar:
        if (arg.scalar() >= plan.scalars()->size())
          fail(3011, role + " names scalar " + std::to_string(arg.scalar()) +
                         " of " + std::to_string(plan.scalars()->size()));
        if (plan.scalars()->Get(arg.scalar())->kind() != plan::ScalarKind::F64)
          fail(3016, role + " passes the integer scalar " +
                         quoted(plan.scalars()->Get(arg.scalar())->name()) +
                         " as a floating-point one");
        continue;
      case plan::ArgKind::Constant:
        continue;
      }
      fail(3011,
           role + " has the unknown kind " + std::to_string(int(arg.kind())));
    }
  }

  void checkGemm(const plan::Gemm &gemm, const IndexCounts &counts) const {
    const int64_t size = elementBytes(gemm.dtype());
    if (size == 0)
      fail(3011,
           "element type " + std::to_string(int(gemm.dtype())) + " is unknown");
    const int64_t m = checkCount(*gemm.m(), "m", counts);
    const int64_t n = checkCount(*gemm.n(), "n", counts);
    const int64_t k = checkCount(*gemm.k(), "k", counts);
    auto checkOperand = [&](const char *name, uint32_t slice, int64_t rows,
                            int64_t columns, int64_t pitch) {
      checkSliceUse(slice, name, counts);
      checkMatrix(slice, name, rows, columns, pitch, size);
    };
    checkOperand("a", gemm.a(), gemm.trans_a() ? k : m, gemm.trans_a() ? m : k,
                 gemm.lda());
    checkOperand("b", gemm.b(), gemm.trans_b() ? n : k, gemm.trans_b() ? k : n,
                 gemm.ldb());
    checkOperand("c", gemm.c(), m, n, gemm.ldc());
  }

  void checkMatrix(uint32_t number, const std::string &name, int64_t rows,
                   int64_t columns, int64_t pitch, int64_t size) const {
    const plan::Slice &slice = *plan.slices()->Get(number);
    if (pitch < std::max<int64_t>(columns, 1))
      fail(3017, "operand " + name + " has the row pitch " +
                     std::to_string(pitch) + " for " + std::to_string(columns) +
                     " columns");
    const bool empty = rows <= 0 || columns <= 0;
    if (!empty && Wide(rows - 1) * pitch + columns > Wide(slice.bytes()) / size)
      fail(3017, "operand " + name + " of " + std::to_string(rows) + " rows, " +
                     std::to_string(columns) + " columns, pitch " +
                     std::to_string(pitch) + " does not fit slice " +
                     quoted(slice.name()) + " of " +
                     std::to_string(slice.bytes()) + " bytes");
    if (alignment[number] % size != 0)
      fail(3017, "operand " + name + ", slice " + quoted(slice.name()) +
                     ", is not aligned to its elements");
  }

  void checkBytes(const plan::Slice &slice, const std::string &role,
                  int64_t bytes) const {
    if (bytes > 0 && uint64_t(bytes) > slice.bytes())
      fail(3018, role + " is slice " + quoted(slice.name()) + " of " +
                     std::to_string(slice.bytes()) + " bytes, too small for " +
                     std::to_string(bytes));
  }

  void checkCopy(const plan::Copy &copy, const IndexCounts &counts) const {
    const int64_t bytes = checkCount(*copy.bytes(), "its size", counts);
    checkBytes(checkSliceUse(copy.src(), "the source", counts), "the source",
               bytes);
    checkBytes(checkSliceUse(copy.dst(), "the destination", counts),
               "the destination", bytes);
  }

  void checkFill(const plan::Fill &fill, const IndexCounts &counts) const {
    const int64_t bytes = checkCount(*fill.bytes(), "its size", counts);
    checkBytes(checkSliceUse(fill.dst(), "the destination", counts),
               "the destination", bytes);
  }

  //===--- Ports and parameters ---------------------------------------------//

  /// `count` elements of type `dtype` lie in `slice`.
  void checkElements(const plan::Slice &slice, const flatbuffers::String &dtype,
                     Wide count, int id) const {
    std::optional<int64_t> size = elementBytes(dtype.string_view());
    if (!size)
      fail(3011, "element type " + quoted(&dtype) + " is unknown");
    if (count > Wide(slice.bytes()) / *size)
      fail(id, "its elements do not fit slice " + quoted(slice.name()) +
                   " of " + std::to_string(slice.bytes()) + " bytes");
  }

  template <typename Ports>
  void checkPorts(const Ports &ports, const std::string &what) {
    const IndexCounts noIndex{0};
    for (const plan::Port *port : ports) {
      subject = what + " " + quoted(port->name());
      const plan::Slice &slice = checkSliceUse(port->slice(), "it", noIndex);
      if (port->dtype()->string_view() == "u8")
        fail(3011, "element type 'u8' is not one of a port");
      checkElements(slice, *port->dtype(),
                    checkCount(*port->extent(), "its size", noIndex), 3021);
    }
    subject.clear();
  }

  void checkParameters() {
    const bool hasStaging = plan.staging() != -1;
    if (hasStaging)
      checkSliceUse(toIndex(plan.staging()), "the staging buffer", {0});
    for (const plan::Parameter *parameter : *plan.parameters()) {
      subject = "parameter " + quoted(parameter->name());
      checkParameter(*parameter, hasStaging);
    }
    subject.clear();
  }

  /// Negative numbers become invalid ones, so that one test finds both.
  static uint32_t toIndex(int32_t number) {
    return number < 0 ? std::numeric_limits<uint32_t>::max() : uint32_t(number);
  }

  void checkParameter(const plan::Parameter &parameter, bool hasStaging) {
    const int64_t layers = parameter.layers() ? parameter.layers()->size() : 0;
    const IndexCounts ordinals{std::max<int64_t>(layers, 1)};
    checkLayers(parameter);
    const Wide elements = checkShape(parameter);

    if (parameter.components()->size() == 0 ||
        parameter.components()->size() > maxComponents)
      fail(3020, "it has " + std::to_string(parameter.components()->size()) +
                     " components, expected 1 to " +
                     std::to_string(maxComponents));
    checkNames(
        *parameter.components(), "component", true,
        [](const auto &c) -> const auto & { return *c.name(); });
    for (const plan::Component *component : *parameter.components()) {
      const std::string role = "component " + quoted(component->name());
      checkElements(checkSliceUse(component->slice(), role, ordinals),
                    *component->dtype(), component->elements(), 3020);
    }
    if (parameter.gradient() != -1)
      checkSliceUse(toIndex(parameter.gradient()), "its gradient", ordinals);

    switch (parameter.init()) {
    case plan::Init::Checkpoint:
      if (!hasStaging)
        fail(3020, "it comes from a checkpoint, but the plan has no staging "
                   "buffer");
      if (elements * 4 > Wide(plan.slices()->Get(plan.staging())->bytes()))
        fail(3020,
             "it does not fit the staging buffer of " +
                 std::to_string(plan.slices()->Get(plan.staging())->bytes()) +
                 " bytes");
      checkLoadFunction(parameter, layers);
      return;
    case plan::Init::Zeros:
      return;
    case plan::Init::KaimingUniform:
      if (parameter.fan_in() <= 0)
        fail(3020, "its fan-in is " + std::to_string(parameter.fan_in()));
      return;
    }
    fail(3011, "initialisation " + std::to_string(int(parameter.init())) +
                   " is unknown");
  }

  void checkLayers(const plan::Parameter &parameter) {
    if (!parameter.layers())
      return;
    spend(uint64_t(parameter.layers()->size()) * sizeof(int32_t));
    std::set<int32_t> seen;
    for (int32_t layer : *parameter.layers())
      if (layer < 0 || !seen.insert(layer).second)
        fail(3020, "layer " + std::to_string(layer) +
                       (layer < 0 ? " is negative" : " stands twice"));
  }

  /// Returns the number of elements, at most 2^62.
  Wide checkShape(const plan::Parameter &parameter) const {
    const auto &shape = *parameter.shape();
    if (shape.size() == 0 || shape.size() > 8)
      fail(3020,
           "its rank is " + std::to_string(shape.size()) + ", expected 1 to 8");
    checkAlignment(shape);
    Wide elements = 1;
    for (int64_t dimension : shape) {
      if (dimension <= 0)
        fail(3020, "a dimension is " + std::to_string(dimension));
      elements *= dimension;
      if (elements > (Wide(1) << 62))
        fail(3020, "its shape overflows");
    }
    const int64_t heads = parameter.gguf_rope_heads();
    if (heads < 0 || (heads > 0 && shape.Get(0) % heads != 0))
      fail(3020, std::to_string(heads) + " heads do not divide its " +
                     std::to_string(shape.Get(0)) + " rows");
    return elements;
  }

  void checkLoadFunction(const plan::Parameter &parameter,
                         int64_t layers) const {
    const uint32_t number = toIndex(parameter.load_function());
    if (number >= plan.functions()->size())
      fail(3011, "it names load function " +
                     std::to_string(parameter.load_function()) + " of " +
                     std::to_string(plan.functions()->size()));
    const plan::Function &function = *plan.functions()->Get(number);
    if (function.index_count() < layers)
      fail(3020, "its load function " + quoted(function.name()) + " takes " +
                     std::to_string(function.index_count()) +
                     " indices for its " + std::to_string(layers) + " layers");
  }

  const plan::Plan &plan;
  uint64_t sharedBudget;
  const std::string &where;
  /// Per slice: the power of two (at most 256, an arena's alignment) that all
  /// its addresses are multiples of.
  std::vector<int64_t> alignment;
  /// What is being checked, for messages.
  std::string subject;
};

} // namespace

void checkPlan(const plan::Plan &plan, size_t bodyBytes,
               const std::string &where) {
  Checker(plan, bodyBytes, where).check();
}

} // namespace fsdpq::rt
