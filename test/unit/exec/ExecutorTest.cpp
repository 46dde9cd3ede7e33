// What the executor tells a device: addresses, extents, order.
#include "runtime/exec/Executor.h"
#include "runtime/support/Error.h"
#include "test/unit/exec/Alone.h"
#include "test/unit/exec/RecordingDevice.h"
#include "test/unit/plan/PlanBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;
using testing::ElementsAre;
using testing::HasSubstr;

template <typename Action>
static std::string errorOf(int id, Action action) {
  try {
    action();
  } catch (const Error &error) {
    EXPECT_EQ(error.id(), id) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(Executor, LoopsIndexTablesAndStrides) {
  PlanBuilder b;
  uint32_t arena = b.arena("step", 4096);
  uint32_t strided = b.slice("strided", arena, 1024, 64, 1, 128);
  uint32_t backwards = b.slice("backwards", arena, 512, 64, 1, -64);
  uint32_t table = b.slice("table", arena, 2048, 8, 2, 0, {0, 640, 16});
  uint32_t fixed = b.slice("fixed", arena, 8, 8, 5); // its level has no use
  uint32_t kernel = b.kernel("k");
  b.function(
      "f",
      body(loop(constant(2),
                body(loop(constant(3),
                          body(launch(kernel, constant(5), sliceArg(strided),
                                      sliceArg(backwards), sliceArg(table),
                                      sliceArg(fixed))))))));
  RecordingDevice device;
  Executor executor(b.load(), device, alone());
  executor.run(executor.function("f"));
  EXPECT_THAT(device.log,
              ElementsAre("k grid 5 stream 0: 0+1024 0+512 0+2048 0+8",
                          "k grid 5 stream 0: 0+1024 0+512 0+2688 0+8",
                          "k grid 5 stream 0: 0+1024 0+512 0+2064 0+8",
                          "k grid 5 stream 0: 0+1152 0+448 0+2048 0+8",
                          "k grid 5 stream 0: 0+1152 0+448 0+2688 0+8",
                          "k grid 5 stream 0: 0+1152 0+448 0+2064 0+8"));
}

TEST(Executor, ExtentsFollowScalarsAndIndices) {
  PlanBuilder b;
  uint32_t rows = b.scalarI64("rows", 1300), rate = b.scalarF64("lr");
  uint32_t kernel = b.kernel("k");
  plan::Extent chunk(static_cast<int32_t>(rows), 1, 1, 1, -512, 0, 512);
  b.function("f", body(loop(ofScalar(rows, 1, 512, 1),
                            body(launch(kernel, chunk, extentArg(chunk),
                                        extentArg(ofScalar(rows, 9, 32)),
                                        extentArg(ofIndex(1, 512)),
                                        extentArg(constant(7)), scalarArg(rate),
                                        constantArg(0.5))))));
  RecordingDevice device;
  Executor executor(b.load(), device, alone());
  executor.setScalar(executor.scalar("rows"), 1300);
  executor.setScalar(executor.scalar("lr"), 0.25);
  executor.run(executor.function("f"));
  EXPECT_THAT(
      device.log,
      ElementsAre("k grid 512 stream 0: 512 365 0 7 0.250000 0.500000",
                  "k grid 512 stream 0: 512 365 512 7 0.250000 0.500000",
                  "k grid 276 stream 0: 276 365 1024 7 0.250000 0.500000"));

  device.log.clear();
  executor.setScalar(executor.scalar("rows"), 512);
  executor.run(executor.function("f"));
  EXPECT_THAT(device.log,
              ElementsAre("k grid 512 stream 0: 512 144 0 7 0.250000 0.500000",
                          "k grid 0 stream 0: 0 144 512 7 0.250000 0.500000"));
}

TEST(Executor, FunctionsTakeAnIndex) {
  PlanBuilder b;
  uint32_t arena = b.arena("base", 512);
  uint32_t slice = b.slice("w", arena, 0, 64, 0, 128);
  b.function("load", body(fill(slice, 3, ofIndex(0, 4, 4))), 4);
  b.function("plain", body(fill(slice, 3, constant(4))), 1);
  RecordingDevice device;
  Executor executor(b.load(), device, alone());
  FunctionId load = executor.function("load");
  executor.run(load, 3);
  executor.run(load, 1);
  EXPECT_THAT(device.log, ElementsAre("fill 0+384 3 16", "fill 0+128 3 8"));
  EXPECT_THAT(errorOf(4104, [&] { executor.run(load, 4); }),
              HasSubstr("'load' has no index 4: it takes 4"));
  EXPECT_THAT(errorOf(4104, [&] { executor.run(load, -1); }),
              HasSubstr("no index -1"));
}

TEST(Executor, WholeSamplePlan) {
  PlanBuilder b = samplePlan();
  RecordingDevice device;
  Executor executor(b.load(), device, alone());
  executor.setScalar(executor.scalar("tokens"), 30);
  executor.run(executor.function("micro_step"));
  const std::string scaling = " alpha 1.000000 beta 0.000000: ";
  EXPECT_THAT(
      device.log,
      ElementsAre("fill 1+1024 7 480",
                  "gemm 30 4 4" + scaling + "1+1024/4 1+5120'/4 1+2048/4",
                  "rms_norm grid 24 stream 1: 1+2048 24 0.000000 0.250000",
                  "gemm 30 4 4" + scaling + "1+1024/4 1+5184'/4 1+2048/4",
                  "rms_norm grid 24 stream 1: 1+2048 24 0.000000 0.250000",
                  "gemm 30 4 4" + scaling + "1+1024/4 1+5120'/4 1+3072/4",
                  "rms_norm grid 6 stream 1: 1+3072 6 0.000000 0.250000",
                  "gemm 30 4 4" + scaling + "1+1024/4 1+5184'/4 1+3072/4",
                  "rms_norm grid 6 stream 1: 1+3072 6 0.000000 0.250000",
                  "copy 1+6144 0+1024 16"));
}

TEST(Executor, FreesItsArenas) {
  RecordingDevice device;
  Executor(samplePlan().load(), device, alone());
  EXPECT_EQ(device.freed, 2u);
}

TEST(Executor, NamesThatThePlanLacks) {
  RecordingDevice device;
  Executor executor(samplePlan().load(), device, alone());
  EXPECT_THAT(errorOf(4101, [&] { executor.function("eval"); }),
              HasSubstr("no function 'eval'"));
  EXPECT_THAT(errorOf(4101, [&] { executor.scalar("seed"); }),
              HasSubstr("no scalar 'seed'"));
  EXPECT_THAT(errorOf(4101, [&] { executor.input("loss"); }),
              HasSubstr("no input 'loss'"));
  EXPECT_THAT(errorOf(4101, [&] { executor.output("ids"); }),
              HasSubstr("no output 'ids'"));
}

TEST(Executor, ScalarsAreBounded) {
  RecordingDevice device;
  Executor executor(samplePlan().load(), device, alone());
  ScalarId tokens = executor.scalar("tokens"), rate = executor.scalar("lr");
  executor.setScalar(tokens, 0);
  executor.setScalar(tokens, 64u);
  EXPECT_THAT(errorOf(4102, [&] { executor.setScalar(tokens, 65); }),
              HasSubstr("'tokens' cannot be 65: the plan allows 0 to 64"));
  EXPECT_THAT(errorOf(4102, [&] { executor.setScalar(tokens, -1); }),
              HasSubstr("cannot be -1"));
  EXPECT_THAT(errorOf(4102, [&] { executor.setScalar(tokens, 1.0); }),
              HasSubstr("is I64, not F64"));
  EXPECT_THAT(errorOf(4102, [&] { executor.setScalar(rate, 1); }),
              HasSubstr("is F64, not I64"));
}

TEST(Executor, PortsAreBounded) {
  RecordingDevice device;
  Executor executor(samplePlan().load(), device, alone());
  std::vector<int32_t> ids(65);
  InputId input = executor.input("ids");
  executor.writeInput(input, ids.data(), 64 * 4);
  executor.writeInput(input, ids.data(), 4);
  EXPECT_THAT(device.log, ElementsAre("upload 1+1024 256", "upload 1+1024 4"));
  EXPECT_THAT(
      errorOf(4103, [&] { executor.writeInput(input, ids.data(), 260); }),
      HasSubstr("260 bytes for 'ids', which holds 64 i32"));
  EXPECT_THAT(errorOf(4103, [&] { executor.writeInput(input, ids.data(), 6); }),
              HasSubstr("6 bytes"));
  float loss[2];
  executor.readOutput(executor.output("loss"), loss, 4);
  errorOf(4103, [&] { executor.readOutput(executor.output("loss"), loss, 8); });
}

TEST(Executor, SlicesAreBounded) {
  RecordingDevice device;
  Executor executor(samplePlan().load(), device, alone());
  // Slices of the sample: 0 w.codes (stride 128), 1 w.absmax (table of 3),
  // 2 staging (no index).
  uint8_t bytes[128] = {};
  executor.writeSlice(0, 2, bytes, 100, 28);
  executor.readSlice(1, 2, bytes, 16);
  EXPECT_THAT(device.log, ElementsAre("upload 0+284 100", "download 0+768 16"));
  errorOf(4103, [&] { executor.writeSlice(0, 0, bytes, 100, 29); });
  errorOf(4103, [&] { executor.writeSlice(0, 0, bytes, 1, SIZE_MAX); });
  errorOf(4104, [&] { executor.writeSlice(0, 32, bytes, 1); });
  errorOf(4104, [&] { executor.writeSlice(0, INT64_MAX, bytes, 1); });
  errorOf(4104, [&] { executor.writeSlice(0, -1, bytes, 1); });
  errorOf(4104, [&] { executor.readSlice(1, 3, bytes, 1); });
  errorOf(4104, [&] { executor.readSlice(2, 1, bytes, 1); });
  const uint32_t count = executor.plan().plan().slices()->size();
  errorOf(4104, [&] { executor.readSlice(count, 0, bytes, 1); });
}

TEST(Executor, RefusesKernelsWithoutCode) {
  PlanBuilder b = samplePlan();
  b.plan.kernels.front()->code.clear();
  RecordingDevice device;
  EXPECT_THAT(errorOf(4020, [&] { Executor executor(b.load(), device, alone()); }),
              HasSubstr("no code for kernel '" + b.plan.kernels.front()->name));
}

TEST(Executor, PreparesStreamsAndEvents) {
  PlanBuilder b;
  b.stream("gather");
  b.stream("reduce");
  for (int i = 0; i < 5; ++i)
    b.event();
  RecordingDevice device;
  Executor executor(b.load(), device, alone());
  EXPECT_EQ(device.streams, 3);
  EXPECT_EQ(device.events, 5u);
}

TEST(Executor, RecordsAndWaitsAreGivenInOrder) {
  PlanBuilder b;
  const uint16_t gather = b.stream("gather");
  b.event();
  const uint32_t event = b.event();
  const uint32_t slice = b.slice("x", b.arena("step", 64), 0, 64);
  b.function("f", body(record(event), on(gather, wait(event)),
                       on(gather, fill(slice, 1, constant(8))),
                       on(gather, record(event)), wait(event)));
  RecordingDevice device;
  Executor executor(b.load(), device, alone());
  executor.run(executor.function("f"));
  EXPECT_THAT(device.log,
              ElementsAre("record 1 stream 0", "wait 1 stream 1", "fill 0+0 1 8",
                          "record 1 stream 1", "wait 1 stream 0"));
}

TEST(Executor, RefusesPlansForOtherNumbersOfRanks) {
  PlanBuilder b;
  b.mesh(4, 2);
  RecordingDevice device;
  const std::string message =
      errorOf(4105, [&] { Executor executor(b.load(), device, alone()); });
  EXPECT_THAT(message, HasSubstr("made for 4 ranks; the run has 1"));
  EXPECT_THAT(message, HasSubstr("hint: "));
}
