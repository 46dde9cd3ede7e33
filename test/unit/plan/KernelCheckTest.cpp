// How cubins are started: what could be wrong in it is refused.
#include "runtime/support/Error.h"
#include "test/unit/plan/PlanBuilder.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;

namespace {

/// A change of the sample, with what each part of it is called.
struct Damage {
  const char *name;
  const char *message;
  std::function<void(plan::PlanT &plan, plan::KernelT &norm,
                     plan::LaunchShapeT &shape)>
      apply;
};

void PrintTo(const Damage &damage, std::ostream *out) { *out << damage.name; }

class KernelCheck : public testing::TestWithParam<Damage> {};

#define DAMAGE(name, message, change)                                          \
  Damage {                                                                     \
#name, message,                                                            \
        [](plan::PlanT &p, plan::KernelT &norm, plan::LaunchShapeT &shape) {   \
          change;                                                              \
        }                                                                      \
  }

/// Puts a tensor map in the place of the sample's.
void setMap(plan::LaunchShapeT &shape, uint32_t argument, uint32_t columns,
            uint32_t rows, int64_t begin, int64_t width, int64_t pitch) {
  shape.maps = {plan::TensorMap(argument, columns, rows, begin, width, pitch)};
}

plan::LaunchT &launchOfNorm(plan::PlanT &plan) {
  return *plan.functions[1]
              ->body[1]
              ->op.AsLoop()
              ->body[0]
              ->op.AsLoop()
              ->body[1]
              ->op.AsLaunch();
}

const Damage damages[] = {
    DAMAGE(NoLaunch, "kernel 'rms_norm': it is a cubin, and how it is started",
           norm.launch = nullptr),
    DAMAGE(LaunchOfAnObject, "it is no cubin, and has a launch",
           norm.form = plan::KernelForm::CpuObject),
    DAMAGE(ResourcesOfAnObject, "it is no cubin, and has a launch or resources",
           norm.form = plan::KernelForm::CpuObject;
           norm.launch = nullptr),
    DAMAGE(NoThreads, "its blocks have 0 threads, expected 1 to 1024",
           shape.threads = 0),
    DAMAGE(ManyThreads, "its blocks have 1025 threads", shape.threads = 1025),
    DAMAGE(SharedBytes, "its blocks have 232449 bytes of shared memory",
           shape.shared_bytes = 232449),
    DAMAGE(NoItems, "its blocks have 0 work items", shape.items_per_block = 0),
    DAMAGE(NegativeItems, "its blocks have -1 work items",
           shape.items_per_block = -1),
    DAMAGE(ManyMaps, "it has 129 tensor maps",
           shape.maps.resize(129, shape.maps[0])),
    DAMAGE(MapArgument, "its kernel's tensor map 0 is of argument 4 of 4",
           setMap(shape, 4, 64, 128, 0, 64, 64)),
    DAMAGE(MapOfAnExtent, "is of argument 1, which is no slice",
           setMap(shape, 1, 64, 128, 0, 64, 64)),
    DAMAGE(NoBoxRows, "tensor map 0 has boxes of 0 rows, expected 1 to 256",
           setMap(shape, 0, 64, 0, 0, 64, 64)),
    DAMAGE(BoxRows, "has boxes of 257 rows",
           setMap(shape, 0, 64, 257, 0, 64, 64)),
    DAMAGE(NoBoxColumns, "has boxes of 0 columns, expected a multiple of 8",
           setMap(shape, 0, 0, 128, 0, 64, 64)),
    DAMAGE(BoxColumns, "has boxes of 72 columns",
           setMap(shape, 0, 72, 128, 0, 64, 64)),
    DAMAGE(OddBoxColumns, "has boxes of 12 columns",
           setMap(shape, 0, 12, 128, 0, 64, 64)),
    DAMAGE(Begin, "has the begin 4, expected a multiple of 8",
           setMap(shape, 0, 64, 128, 4, 64, 64)),
    DAMAGE(NegativeBegin, "has the begin -8",
           setMap(shape, 0, 64, 128, -8, 64, 64)),
    DAMAGE(HugeBegin, "has the begin 9223372036854775800",
           setMap(shape, 0, 64, 128, INT64_MAX - 7, 64, 64)),
    DAMAGE(Pitch, "has the pitch 68", setMap(shape, 0, 64, 128, 0, 64, 68)),
    DAMAGE(HugePitch, "has the pitch 4611686018427387904",
           setMap(shape, 0, 64, 128, 0, 64, int64_t(1) << 62)),
    DAMAGE(NoColumns, "has 0 columns in a pitch of 64",
           setMap(shape, 0, 64, 128, 0, 0, 64)),
    DAMAGE(Columns, "has 65 columns in a pitch of 64",
           setMap(shape, 0, 64, 128, 0, 65, 64)),
    DAMAGE(MapSlice, "has no row in slice 'y' of 1024 bytes",
           setMap(shape, 0, 64, 128, 456, 64, 512)),
    DAMAGE(MapAligned, "slice 'y', which is not aligned to 16 bytes",
           p.slices[4]->offset += 8),
    DAMAGE(Blocks, "its 17179869184 work items need more than 2147483647 blocks",
           shape.blocks_per_processor = 0;
           launchOfNorm(p).grid = own(constant(int64_t(1) << 34))),
};

} // namespace

TEST(KernelCheckSample, IsSound) {
  const auto loaded = cudaPlan().load();
  const plan::LaunchShape &shape = *loaded->plan().kernels()->Get(1)->launch();
  EXPECT_EQ(shape.threads(), 128u);
  EXPECT_EQ(shape.maps()->Get(0)->pitch(), 80);
}

// 2^34 items are fine where the number of blocks has a bound.
TEST(KernelCheckSample, ManyItemsForFewBlocks) {
  PlanBuilder b = cudaPlan();
  launchOfNorm(b.plan).grid = own(constant(int64_t(1) << 34));
  EXPECT_NO_THROW(b.load());
}

TEST_P(KernelCheck, IsRefused) {
  PlanBuilder b = cudaPlan();
  plan::KernelT &norm = *b.plan.kernels[1];
  GetParam().apply(b.plan, norm, *norm.launch);
  try {
    b.load();
    FAIL() << "accepted";
  } catch (const Error &error) {
    EXPECT_EQ(error.id(), 3016) << error.what();
    EXPECT_EQ(error.exitCode(), ExitCode::BadInput);
    EXPECT_THAT(error.what(), testing::HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(Damage, KernelCheck, testing::ValuesIn(damages),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
