#include "runtime/plan/CheckContext.h"
#include "runtime/plan/PlanCheck.h"

#include <limits>

namespace fsdpq::rt {

namespace {

constexpr uint32_t maxThreads = 1024;
/// Dynamic shared memory of a block: what the largest of GPUs allows.
constexpr uint32_t maxSharedBytes = 227 * 1024;
constexpr int64_t maxBlocks = std::numeric_limits<int32_t>::max();
/// Bytes that a tensor map is in units of.
constexpr int64_t mapUnit = 16;
constexpr int64_t elementBytes = 2; // bf16
constexpr int64_t maxMapBytes = int64_t(1) << 40;
constexpr uint32_t maxBoxRows = 256;
/// A row of a box is swizzled as a whole.
constexpr uint32_t maxBoxColumns = 128 / elementBytes;

void checkMap(const CheckContext &context, const plan::TensorMap &map,
              const std::string &name) {
  auto fail = [&](const std::string &message) {
    context.fail(3016, name + " " + message);
  };
  if (map.box_rows() == 0 || map.box_rows() > maxBoxRows)
    fail("has boxes of " + std::to_string(map.box_rows()) +
         " rows, expected 1 to " + std::to_string(maxBoxRows));
  if (map.box_columns() == 0 || map.box_columns() > maxBoxColumns ||
      map.box_columns() % (mapUnit / elementBytes) != 0)
    fail("has boxes of " + std::to_string(map.box_columns()) +
         " columns, expected a multiple of 8 up to " +
         std::to_string(maxBoxColumns));
  auto checkBytes = [&](int64_t elements, const char *what) {
    if (elements < 0 || elements > maxMapBytes / elementBytes ||
        elements * elementBytes % mapUnit != 0)
      fail("has the " + std::string(what) + " " + std::to_string(elements) +
           ", expected a multiple of 8");
  };
  checkBytes(map.begin(), "begin");
  checkBytes(map.pitch(), "pitch");
  if (map.columns() < 1 || map.columns() > map.pitch())
    fail("has " + std::to_string(map.columns()) + " columns in a pitch of " +
         std::to_string(map.pitch()));
}

void checkShape(CheckContext &context, const plan::LaunchShape &shape) {
  if (shape.threads() == 0 || shape.threads() > maxThreads)
    context.fail(3016, "its blocks have " + std::to_string(shape.threads()) +
                           " threads, expected 1 to " +
                           std::to_string(maxThreads));
  if (shape.shared_bytes() > maxSharedBytes)
    context.fail(3016, "its blocks have " +
                           std::to_string(shape.shared_bytes()) +
                           " bytes of shared memory, at most " +
                           std::to_string(maxSharedBytes) + " are possible");
  if (shape.items_per_block() < 1)
    context.fail(3016, "its blocks have " +
                           std::to_string(shape.items_per_block()) +
                           " work items");
  if (!shape.maps())
    return;
  context.checkAlignment(*shape.maps());
  context.spend(uint64_t(shape.maps()->size()) * sizeof(plan::TensorMap));
  if (shape.maps()->size() > maxLaunchArgs)
    context.fail(3016, "it has " + std::to_string(shape.maps()->size()) +
                           " tensor maps, at most " +
                           std::to_string(maxLaunchArgs) + " are possible");
  for (uint32_t i = 0; i < shape.maps()->size(); ++i)
    checkMap(context, *shape.maps()->Get(i), "tensor map " + std::to_string(i));
}

} // namespace

void checkKernels(CheckContext &context) {
  for (const plan::Kernel *kernel : *context.plan.kernels()) {
    context.subject = "kernel " + quoted(kernel->name());
    context.checkName(kernel->symbol()->string_view(), "its symbol");
    if (kernel->form() > plan::KernelForm::MAX)
      context.fail(3011, "form " + std::to_string(int(kernel->form())) +
                             " is unknown");
    const bool isCubin = kernel->form() == plan::KernelForm::CudaCubin;
    if (isCubin && !kernel->launch())
      context.fail(3016, "it is a cubin, and how it is started is missing");
    if (!isCubin && (kernel->launch() || kernel->resources()))
      context.fail(3016, "it is no cubin, and has a launch or resources of one");
    if (kernel->launch())
      checkShape(context, *kernel->launch());
  }
  context.subject.clear();
}

void checkLaunchShape(const CheckContext &context, const plan::Launch &launch,
                      int64_t items) {
  const plan::LaunchShape *shape =
      context.plan.kernels()->Get(launch.kernel())->launch();
  if (!shape)
    return;
  if (shape->blocks_per_processor() == 0 &&
      (items - 1) / shape->items_per_block() >= maxBlocks)
    context.fail(3016, "its " + std::to_string(items) +
                           " work items need more than " +
                           std::to_string(maxBlocks) + " blocks");
  if (!shape->maps())
    return;
  for (uint32_t i = 0; i < shape->maps()->size(); ++i) {
    const plan::TensorMap &map = *shape->maps()->Get(i);
    const std::string name = "its kernel's tensor map " + std::to_string(i);
    if (map.arg() >= launch.args()->size())
      context.fail(3016, name + " is of argument " + std::to_string(map.arg()) +
                             " of " + std::to_string(launch.args()->size()));
    const plan::Arg &arg = *launch.args()->Get(map.arg());
    if (arg.kind() != plan::ArgKind::Slice)
      context.fail(3016, name + " is of argument " + std::to_string(map.arg()) +
                             ", which is no slice");
    const plan::Slice &slice = *context.plan.slices()->Get(arg.slice());
    if (context.alignment[arg.slice()] % mapUnit != 0)
      context.fail(3016, name + " is of slice " + quoted(slice.name()) +
                             ", which is not aligned to 16 bytes");
    if (Wide(map.begin() + map.columns()) * elementBytes > Wide(slice.bytes()))
      context.fail(3016, name + " has no row in slice " + quoted(slice.name()) +
                             " of " + std::to_string(slice.bytes()) + " bytes");
  }
}

} // namespace fsdpq::rt
