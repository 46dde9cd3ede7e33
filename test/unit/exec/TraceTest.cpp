#include "runtime/observe/Trace.h"
#include "runtime/exec/Executor.h"
#include "runtime/exec/InstructionLabels.h"
#include "runtime/support/Error.h"
#include "test/unit/exec/Alone.h"
#include "test/unit/exec/RecordingDevice.h"
#include "test/unit/plan/PlanBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <thread>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

static void sleepFor(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

/// The events of a joined file with this "ph".
static std::vector<json> eventsOf(const std::string &file, const char *phase) {
  std::vector<json> result;
  const json parsed = json::parse(file);
  for (const json &event : parsed.at("traceEvents"))
    if (event.at("ph") == phase)
      result.push_back(event);
  return result;
}

TEST(Trace, EventsHaveTheirPlaceAndTime) {
  Trace trace(3);
  trace.setStreams({"compute", "gather"});
  const uint32_t kernel = trace.addLabel({"rms_norm", "llama.mlir:4:2", 0});
  const uint32_t gather = trace.addLabel({"all_gather \"w\"\n", "", 4096});
  {
    Trace::Span outer(&trace, "step");
    trace.begin(0);
    sleepFor(5);
    trace.begin(1);
    trace.end(0, kernel, Trace::Kind::Work);
    sleepFor(10);
    trace.end(1, gather, Trace::Kind::Communication);
  }
  const std::string file = joinTraces({trace.serialise()});
  const auto events = eventsOf(file, "X");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].at("name"), "rms_norm");
  EXPECT_EQ(events[0].at("args"), (json{{"location", "llama.mlir:4:2"}}));
  EXPECT_EQ(events[1].at("name"), "all_gather \"w\"\n");
  EXPECT_EQ(events[1].at("args"), (json{{"bytes", 4096}}));
  EXPECT_EQ(events[2].at("name"), "step");
  EXPECT_FALSE(events[2].contains("args"));
  for (int thread = 0; thread < 3; ++thread) {
    EXPECT_EQ(events[thread].at("pid"), 3);
    EXPECT_EQ(events[thread].at("tid"), thread);
  }
  // Microseconds; the step began first.
  const auto begin = [&](int i) { return events[i].at("ts").get<double>(); };
  const auto end = [&](int i) {
    return begin(i) + events[i].at("dur").get<double>();
  };
  EXPECT_EQ(begin(2), 0);
  EXPECT_GE(end(0) - begin(0), 5000);
  EXPECT_GE(begin(1) - begin(0), 5000);
  EXPECT_GE(end(1) - begin(1), 10000);
  EXPECT_LT(begin(1), end(0) + 0.001);
  EXPECT_GE(end(2) + 0.001, end(1));
  EXPECT_LT(end(2), 5e6);

  std::vector<std::string> names;
  for (const json &event : eventsOf(file, "M"))
    names.push_back(event.at("name").get<std::string>() + " " +
                    event.at("tid").dump() + " " +
                    event.at("args").at("name").get<std::string>());
  EXPECT_THAT(names, ElementsAre("process_name 0 rank 3",
                                 "thread_name 0 compute", "thread_name 1 gather",
                                 "thread_name 2 host"));
}

TEST(Trace, RanksShareTheirClock) {
  Trace first(0), second(1);
  { Trace::Span span(&first, "loading"); }
  sleepFor(10);
  { Trace::Span span(&second, "loading"); }
  const auto events =
      eventsOf(joinTraces({first.serialise(), second.serialise()}), "X");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].at("pid"), 0);
  EXPECT_EQ(events[0].at("ts"), 0);
  EXPECT_EQ(events[1].at("pid"), 1);
  EXPECT_GE(events[1].at("ts"), 9000);
  EXPECT_LT(events[1].at("ts"), 5e6);
}

// Comparing its clocks may take a rank long: they count between machines only.
TEST(Trace, MachinesAreComparedByTheirSystemClocks) {
  Trace trace(0);
  { Trace::Span span(&trace, "loading"); }
  const std::string piece = trace.serialise();
  constexpr int64_t late = 7'000'000; // nanoseconds
  json other = json::from_cbor(piece);
  other["rank"] = 1;
  other["to_system_clock"] = other["to_system_clock"].get<int64_t>() + late;
  const auto begins = [&](const json &second) {
    std::string bytes;
    json::to_cbor(second, bytes);
    std::vector<double> result;
    for (const json &event : eventsOf(joinTraces({piece, bytes}), "X"))
      result.push_back(event.at("ts"));
    return result;
  };
  EXPECT_THAT(begins(other), ElementsAre(0, 0));
  other["machine"] = "another";
  EXPECT_THAT(begins(other), ElementsAre(0, 7000));
  other["machine"] = "";
  EXPECT_THAT(begins(other), ElementsAre(0, 7000));
}

TEST(Trace, StreamsOutliveAnExecutorWithFewer) {
  Trace trace(0);
  trace.setStreams({"compute", "gather"});
  const uint32_t label = trace.addLabel({"all_gather w", "", 8});
  trace.begin(1);
  trace.end(1, label, Trace::Kind::Communication);
  trace.setStreams({"main"});
  ASSERT_EQ(trace.times().size(), 2u);
  EXPECT_EQ(trace.times()[0].stream, "main");
  EXPECT_EQ(trace.times()[1].stream, "gather");
  EXPECT_GT(trace.times()[1].communication, 0);
  EXPECT_EQ(eventsOf(joinTraces({trace.serialise()}), "X").size(), 1u);
}

TEST(Trace, TimesAreSummedPerFunctionAndStream) {
  Trace trace(0, 3); // sums count what is dropped, too
  trace.setStreams({"compute", "gather"});
  const uint32_t unused = trace.addLabel({"gemm", "", 0, "load"});
  const uint32_t kernel = trace.addLabel({"norm", "", 0, "step"});
  const uint32_t wait = trace.addLabel({"wait", "", 0, "step"});
  const uint32_t gather = trace.addLabel({"all_gather w", "", 8, "step"});
  const uint32_t optimizer = trace.addLabel({"adamw", "", 0, "finish"});
  EXPECT_EQ(unused, 0u);
  const auto spend = [&](uint16_t stream, uint32_t label, Trace::Kind kind,
                         int milliseconds) {
    trace.begin(stream);
    sleepFor(milliseconds);
    trace.end(stream, label, kind);
  };
  for (int i = 0; i < 2; ++i) {
    spend(0, kernel, Trace::Kind::Work, 4);
    spend(1, gather, Trace::Kind::Communication, 8);
    spend(0, wait, Trace::Kind::Wait, 2);
  }
  spend(0, optimizer, Trace::Kind::Work, 6);
  const auto functions = trace.functionTimes();
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].function, "step");
  EXPECT_EQ(functions[1].function, "finish");
  const auto &step = functions[0].streams, &finish = functions[1].streams;
  ASSERT_EQ(step.size(), 2u);
  ASSERT_EQ(finish.size(), 2u);
  EXPECT_EQ(step[0].stream, "compute");
  EXPECT_GE(step[0].work, 0.008);
  EXPECT_GE(step[0].waiting, 0.004);
  EXPECT_EQ(step[0].communication, 0);
  EXPECT_GE(step[1].communication, 0.016);
  EXPECT_EQ(step[1].work + step[1].waiting, 0);
  EXPECT_GE(finish[0].work, 0.006);
  EXPECT_EQ(finish[1].busy() + finish[1].waiting, 0);
  EXPECT_DOUBLE_EQ(trace.times()[0].work, step[0].work + finish[0].work);
  EXPECT_DOUBLE_EQ(trace.times()[0].waiting, step[0].waiting);
  EXPECT_DOUBLE_EQ(trace.times()[1].communication, step[1].communication);
}

TEST(Trace, ShortWaitsAreCountedButNotShown) {
  Trace trace(0);
  trace.setStreams({"compute"});
  const uint32_t wait = trace.addLabel({"wait", "", 0});
  for (int i = 0; i < 100; ++i) {
    trace.begin(0);
    trace.end(0, wait, Trace::Kind::Wait);
  }
  trace.begin(0);
  sleepFor(4);
  trace.end(0, wait, Trace::Kind::Wait);
  const auto events = eventsOf(joinTraces({trace.serialise()}), "X");
  ASSERT_FALSE(events.empty());
  EXPECT_LT(events.size(), 50u); // the machine may pause us in some
  double shown = 0;
  for (const json &event : events) {
    EXPECT_EQ(event.at("name"), "wait");
    EXPECT_GE(event.at("dur"), 20);
    shown += event.at("dur").get<double>() / 1e6;
  }
  const Trace::StreamTimes times = trace.times().at(0);
  EXPECT_GT(times.waiting, shown);
  EXPECT_GE(shown, 0.004);
  EXPECT_EQ(times.busy(), 0);
}

TEST(Trace, EventsBeyondTheLimitAreCounted) {
  Trace trace(0, 10);
  trace.setStreams({"compute"});
  const uint32_t label = trace.addLabel({"gemm", "", 0});
  for (int i = 0; i < 12; ++i) {
    trace.begin(0);
    if (i == 11)
      sleepFor(3);
    trace.end(0, label, Trace::Kind::Work);
  }
  EXPECT_EQ(trace.dropped(), 2u);
  EXPECT_GE(trace.times().at(0).work, 0.003); // of all
  const std::string file = joinTraces({trace.serialise()});
  EXPECT_EQ(eventsOf(file, "X").size(), 10u);
  EXPECT_THAT(file, HasSubstr("2 events dropped"));
}

TEST(Trace, WithoutEventsTheFileIsWhole) {
  Trace trace(0);
  EXPECT_EQ(eventsOf(joinTraces({trace.serialise()}), "X").size(), 0u);
  EXPECT_EQ(json::parse(joinTraces({})).at("traceEvents").size(), 0u);
  Trace::Span span(nullptr, "nobody traces");
}

TEST(Trace, NamesOfAnyBytesGiveValidFiles) {
  Trace trace(0);
  { Trace::Span span(&trace, "\xff\x01\\\""); }
  EXPECT_EQ(eventsOf(joinTraces({trace.serialise()}), "X").size(), 1u);
}

TEST(Trace, BrokenPiecesAreNamed) {
  Trace trace(0);
  { Trace::Span span(&trace, "step"); }
  const std::string good = trace.serialise();
  json wrongLabel = json::from_cbor(good);
  wrongLabel["events"][1] = 7;
  std::string changed;
  json::to_cbor(wrongLabel, changed);
  for (const std::string &broken :
       {std::string(), std::string("x"), good.substr(0, good.size() / 2),
        changed})
    try {
      joinTraces({good, broken});
      FAIL() << "joined";
    } catch (const Error &error) {
      EXPECT_EQ(error.id(), 5060);
      EXPECT_THAT(error.what(), HasSubstr("rank 1"));
    }
}

TEST(Trace, InstructionsAreNamed) {
  const auto plan = shardedPlan().load();
  std::vector<std::string> texts;
  for (const Trace::Label &label : instructionLabels(
           plan->plan(), *plan->plan().functions()->Get(0))) {
    EXPECT_EQ(label.function, "micro_step");
    texts.push_back(label.name + "|" + label.location + "|" +
                    std::to_string(label.bytes));
  }
  EXPECT_THAT(texts,
              ElementsAre("record||0", "wait||0", "all_gather adapters||256",
                          "all_gather layers|layer 0|512", "record||0",
                          "loop||0", "wait||0", "record||0", "wait||0",
                          "all_gather layers|layer i + 1|512", "record||0",
                          "layer|layer i|0", "wait||0", "layer||0",
                          "backward||0", "record||0", "wait||0",
                          "reduce_scatter adapters||256", "record||0", "wait||0"));
}

TEST(Trace, BracketsInstructionsOnTheirStreams) {
  PlanBuilder b;
  const uint16_t gather = b.stream("gather");
  const uint32_t event = b.event();
  const uint32_t slice = b.slice("x", b.arena("step", 64), 0, 64);
  b.function("f",
             body(on(gather, loop(constant(2), body(on(gather, fill(slice, 1,
                                                                    constant(8)))))),
                  on(gather, record(event)), wait(event)));
  RecordingDevice device;
  Executor executor(b.load(), device, alone());
  Trace trace(0);
  executor.setTrace(&trace);
  executor.run(executor.function("f"));
  const std::string call = "host call stream ";
  EXPECT_THAT(device.log,
              ElementsAre(call + "1", "fill 0+0 1 8", call + "1", call + "1",
                          "fill 0+0 1 8", call + "1", "record 0 stream 1",
                          call + "0", "wait 0 stream 0", call + "0"));
  const auto events = eventsOf(joinTraces({trace.serialise()}), "X");
  int fills = 0;
  for (const json &shown : events)
    fills += shown.at("name") == "fill x" && shown.at("tid") == 1;
  EXPECT_EQ(fills, 2);

  device.log.clear();
  executor.setTrace(nullptr);
  executor.run(executor.function("f"));
  EXPECT_THAT(device.log,
              ElementsAre("fill 0+0 1 8", "fill 0+0 1 8", "record 0 stream 1",
                          "wait 0 stream 0"));
}
