#include "runtime/plan/CheckContext.h"
#include "runtime/plan/Elements.h"
#include "runtime/plan/InstructionText.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/PlanCheck.h"

namespace fsdpq::rt {

namespace {

using Body = flatbuffers::Vector<flatbuffers::Offset<plan::Instruction>>;

/// One function while it is checked.
class FunctionChecker {
public:
  FunctionChecker(CheckContext &context, const plan::Function &function)
      : context(context), plan(context.plan), function(function) {}

  void check() {
    context.subject = "function " + quoted(function.name());
    if (function.index_count() < 0)
      fail(3019,
           "it takes " + std::to_string(function.index_count()) + " indices");
    counts = {function.index_count()};
    checkBody(*function.body());
    context.subject.clear();
  }

private:
  [[noreturn]] void fail(int id, const std::string &message) const {
    context.fail(id, message);
  }

  /// Instructions are numbered in text order, a loop before its body.
  void checkBody(const Body &body) {
    for (const plan::Instruction *instruction : body) {
      context.subject = "function " + quoted(function.name()) +
                        ", instruction " + std::to_string(number++) + " (" +
                        instructionText(plan, *instruction) + ")";
      if (instruction->stream() >= plan.streams()->size())
        fail(3011, "it names stream " + std::to_string(instruction->stream()) +
                       " of " + std::to_string(plan.streams()->size()));
      checkOp(*instruction);
    }
  }

  void checkOp(const plan::Instruction &instruction) {
    switch (instruction.op_type()) {
    case plan::Op::Launch:
      return checkLaunch(*instruction.op_as_Launch());
    case plan::Op::Gemm:
      return checkGemm(*instruction.op_as_Gemm());
    case plan::Op::Copy:
      return checkCopy(*instruction.op_as_Copy());
    case plan::Op::Fill:
      return checkFill(*instruction.op_as_Fill());
    case plan::Op::Loop:
      return checkLoop(*instruction.op_as_Loop());
    case plan::Op::AllGather:
      return checkAllGather(*instruction.op_as_AllGather());
    case plan::Op::ReduceScatter:
      return checkReduceScatter(*instruction.op_as_ReduceScatter());
    case plan::Op::AllReduce:
      return checkAllReduce(*instruction.op_as_AllReduce());
    case plan::Op::Record:
      return checkEvent(instruction.op_as_Record()->event());
    case plan::Op::Wait:
      return checkEvent(instruction.op_as_Wait()->event());
    case plan::Op::NONE:
      break;
    }
    fail(3011, "opcode " + std::to_string(int(instruction.op_type())) +
                   " is unknown");
  }

  //===--- Computing --------------------------------------------------------//

  void checkLaunch(const plan::Launch &launch) const {
    if (launch.kernel() >= plan.kernels()->size())
      fail(3011, "it names kernel " + std::to_string(launch.kernel()) + " of " +
                     std::to_string(plan.kernels()->size()));
    const int64_t items = context.checkCount(*launch.grid(), "its grid", counts);
    if (launch.args()->size() > maxLaunchArgs)
      fail(3016, "it has " + std::to_string(launch.args()->size()) +
                     " arguments, at most " + std::to_string(maxLaunchArgs) +
                     " are possible");
    if (launch.writes_from() > launch.args()->size())
      fail(3016, "it writes from argument " +
                     std::to_string(launch.writes_from()) + " on of " +
                     std::to_string(launch.args()->size()));
    // Also refuses what is not a number.
    if (!(launch.flops() >= 0 && launch.flops() <= 1e30))
      fail(3016, "it computes " + std::to_string(launch.flops()) +
                     " operations, expected 0 to 1e30");
    for (uint32_t i = 0; i < launch.args()->size(); ++i) {
      const plan::Arg &arg = *launch.args()->Get(i);
      const std::string role = "argument " + std::to_string(i);
      switch (arg.kind()) {
      case plan::ArgKind::Slice:
        context.checkSliceUse(arg.slice(), role, counts);
        continue;
      case plan::ArgKind::Extent:
        if (!arg.extent())
          fail(3016, role + " is an extent, which is missing");
        context.checkExtent(*arg.extent(), role, counts);
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
    checkLaunchShape(context, launch, items);
  }

  /// Bytes of an element.
  template <typename Type>
  int64_t checkType(Type type) const {
    const int64_t size = elementBytes(type);
    if (size == 0)
      fail(3011, "element type " + std::to_string(int(type)) + " is unknown");
    return size;
  }

  void checkGemm(const plan::Gemm &gemm) const {
    const int64_t size = checkType(gemm.dtype());
    const int64_t resultSize = checkType(gemm.out_dtype());
    if (gemm.out_dtype() != gemm.dtype() &&
        !(gemm.dtype() == plan::DType::BF16 &&
          gemm.out_dtype() == plan::DType::F32))
      fail(3017, std::string("it makes elements of ") +
                     plan::EnumNameDType(gemm.out_dtype()) +
                     " from products of " + plan::EnumNameDType(gemm.dtype()));
    const int64_t m = context.checkCount(*gemm.m(), "m", counts);
    const int64_t n = context.checkCount(*gemm.n(), "n", counts);
    const int64_t k = context.checkCount(*gemm.k(), "k", counts);
    auto checkOperand = [&](const char *name, uint32_t slice, int64_t rows,
                            int64_t columns, int64_t pitch, int64_t width) {
      context.checkSliceUse(slice, name, counts);
      checkMatrix(slice, name, rows, columns, pitch, width);
    };
    checkOperand("a", gemm.a(), gemm.trans_a() ? k : m, gemm.trans_a() ? m : k,
                 gemm.lda(), size);
    checkOperand("b", gemm.b(), gemm.trans_b() ? n : k, gemm.trans_b() ? k : n,
                 gemm.ldb(), size);
    checkOperand("c", gemm.c(), m, n, gemm.ldc(), resultSize);
    if (gemm.workspace() < -1)
      fail(3011, "its workspace names slice " +
                     std::to_string(gemm.workspace()));
    // The executor takes its address once.
    if (gemm.workspace() >= 0 &&
        isIndexed(context.checkSliceUse(static_cast<uint32_t>(gemm.workspace()),
                                        "its workspace", counts)))
      fail(3017, "its workspace depends on an index");
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
    if (context.alignment[number] % size != 0)
      fail(3017, "operand " + name + ", slice " + quoted(slice.name()) +
                     ", is not aligned to its elements");
  }

  void checkBytes(uint32_t slice, const std::string &role, Wide bytes,
                  int id) const {
    const plan::Slice &used = context.checkSliceUse(slice, role, counts);
    if (bytes > Wide(used.bytes()))
      fail(id, role + " is slice " + quoted(used.name()) + " of " +
                   std::to_string(used.bytes()) + " bytes, too small for " +
                   std::to_string(static_cast<uint64_t>(bytes)));
  }

  void checkCopy(const plan::Copy &copy) const {
    const int64_t bytes = context.checkCount(*copy.bytes(), "its size", counts);
    checkBytes(copy.src(), "the source", bytes, 3018);
    checkBytes(copy.dst(), "the destination", bytes, 3018);
  }

  void checkFill(const plan::Fill &fill) const {
    checkBytes(fill.dst(), "the destination",
               context.checkCount(*fill.bytes(), "its size", counts), 3018);
  }

  //===--- Order ------------------------------------------------------------//

  void checkLoop(const plan::Loop &loop) {
    if (counts.size() > maxLoopDepth)
      fail(3019, "more than " + std::to_string(maxLoopDepth) +
                     " loops inside each other");
    counts.push_back(context.checkCount(*loop.count(), "its count", counts));
    const plan::Extent &count = *loop.count();
    const bool depends = count.scalar() >= 0 && count.mul() != 0;
    scalarLoops += depends;
    checkBody(*loop.body());
    scalarLoops -= depends;
    counts.pop_back();
  }

  /// Ranks have scalars of their own: what pairs ranks or streams must not be
  /// under them.
  void checkFixedCount() const {
    if (scalarLoops > 0)
      fail(3025, "it is in a loop whose count depends on a scalar");
  }

  void checkEvent(uint32_t event) const {
    if (event >= plan.events())
      fail(3011, "it names event " + std::to_string(event) + " of " +
                     std::to_string(plan.events()));
    checkFixedCount();
  }

  //===--- Collectives ------------------------------------------------------//

  /// Returns the number of ranks.
  uint32_t checkGroup(plan::Group group) const {
    checkFixedCount();
    if (group > plan::Group::MAX)
      fail(3011, "group " + std::to_string(int(group)) + " is unknown");
    return groupSize(group, *plan.mesh());
  }

  void checkPositive(int64_t number, const std::string &what) const {
    if (number <= 0)
      fail(3024, "it has " + std::to_string(number) + " " + what);
  }


  void checkBuffer(uint32_t slice, const std::string &role, Wide elements,
                   int64_t size) const {
    checkBytes(slice, role, elements * size, 3024);
    if (context.alignment[slice] % size != 0)
      fail(3024, role + ", slice " + quoted(plan.slices()->Get(slice)->name()) +
                     ", is not aligned to its elements");
  }

  void checkAllGather(const plan::AllGather &gather) const {
    const uint32_t ranks = checkGroup(gather.group());
    checkPositive(gather.bytes(), "bytes");
    checkBuffer(gather.src(), "the source", gather.bytes(), 1);
    checkBuffer(gather.dst(), "the destination", Wide(gather.bytes()) * ranks,
                1);
  }

  void checkReduceScatter(const plan::ReduceScatter &scatter) const {
    const uint32_t ranks = checkGroup(scatter.group());
    const int64_t size = checkType(scatter.type());
    checkPositive(scatter.elements(), "elements");
    if (scatter.ranges() == 0 || ranks % scatter.ranges() != 0)
      fail(3024, "its " + std::to_string(scatter.ranges()) +
                     " ranges do not divide the " + std::to_string(ranks) +
                     " ranks of group " + groupName(scatter.group()));
    checkBuffer(scatter.src(), "the source",
                Wide(scatter.elements()) * scatter.ranges(), size);
    checkBuffer(scatter.dst(), "the destination", scatter.elements(), size);
  }

  void checkAllReduce(const plan::AllReduce &reduce) const {
    checkGroup(reduce.group());
    const int64_t size = checkType(reduce.type());
    checkPositive(reduce.elements(), "elements");
    checkBuffer(reduce.data(), "its data", reduce.elements(), size);
  }

  CheckContext &context;
  const plan::Plan &plan;
  const plan::Function &function;
  IndexCounts counts;
  uint32_t number = 0;
  /// Loops around, whose counts depend on scalars.
  unsigned scalarLoops = 0;
};

} // namespace

void checkFunctions(CheckContext &context) {
  for (const plan::Function *function : *context.plan.functions())
    FunctionChecker(context, *function).check();
}

} // namespace fsdpq::rt
