// Streams themselves: what DeviceConformance cannot ask of every device.
#include "runtime/device/cpu/Streams.h"
#include "runtime/support/Error.h"

#include <atomic>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq::rt;
using namespace std::chrono_literals;

namespace {

/// Keeps a stream busy until it is opened.
class Gate {
public:
  std::function<void()> task() {
    return [this] {
      reached.set_value();
      opened.get_future().wait();
    };
  }
  void awaitReached() { reached.get_future().wait(); }
  void open() { opened.set_value(); }

private:
  std::promise<void> reached, opened;
};

void failWith(int id) { throw Error(id, ExitCode::RunFailure, "a test"); }

template <typename Action>
int errorId(const Action &action) {
  try {
    action();
  } catch (const Error &error) {
    return error.id();
  }
  return 0;
}

const StreamDelays none;

} // namespace

TEST(Streams, TheFirstIsTheCallingThread) {
  Streams streams(2, 0, none);
  std::thread::id first, second, third;
  streams.run([&] { first = std::this_thread::get_id(); }, 0);
  EXPECT_EQ(first, std::this_thread::get_id());
  streams.run([&] { second = std::this_thread::get_id(); }, 1);
  streams.run([&] { third = std::this_thread::get_id(); }, 1);
  streams.synchronize();
  EXPECT_NE(second, first);
  EXPECT_EQ(second, third);
}

// The first record, of a stream that is late, is what the wait meant; the second
// one, of another stream, comes first.
TEST(Streams, RecordsOfOneEventOnTwoStreamsAreToldApart) {
  Gate gate;
  std::atomic<bool> done = false, seen = false;
  std::promise<void> second;
  Streams streams(4, 1, none);
  streams.run(gate.task(), 1);
  streams.run([&] { done = true; }, 1);
  streams.record(0, 1);
  streams.wait(0, 3);
  streams.run([&] { seen = done.load(); }, 3);
  streams.record(0, 2);
  streams.run([&] { second.set_value(); }, 2);
  second.get_future().wait();
  std::this_thread::sleep_for(20ms); // for stream 3 to go wrong
  gate.open();
  streams.synchronize();
  EXPECT_TRUE(seen);
}

TEST(Streams, AWaitOnTheOwnRecordPasses) {
  Streams streams(2, 2, none);
  int reached = 0;
  for (uint16_t stream : {0, 1}) {
    streams.record(stream, stream);
    streams.wait(stream, stream);
    streams.run([&] { ++reached; }, stream);
  }
  streams.synchronize();
  EXPECT_EQ(reached, 2);
}

TEST(Streams, DelaysChangeNoOrder) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    Streams streams(3, 2, {seed, 400us});
    std::vector<int> order; // never touched by two streams at once
    for (int round = 0; round < 12; ++round) {
      streams.run([&, round] { order.push_back(2 * round); }, 1);
      streams.record(0, 1);
      streams.wait(0, 2);
      streams.run([&, round] { order.push_back(2 * round + 1); }, 2);
      streams.record(1, 2);
      streams.wait(1, 1);
    }
    streams.synchronize();
    ASSERT_EQ(order.size(), 24u);
    for (int i = 0; i < 24; ++i)
      EXPECT_EQ(order[static_cast<size_t>(i)], i);
  }
}

// Stream 1 waits for somebody who must hear of stream 2's failure first.
TEST(Streams, AFailureIsThrownBeforeOtherStreamsEnd) {
  Gate gate;
  std::atomic<bool> ended = false;
  Streams streams(3, 0, none);
  streams.run(
      [&, task = gate.task()] {
        task();
        ended = true;
      },
      1);
  gate.awaitReached();
  streams.run([] { failWith(4098); }, 2);
  EXPECT_EQ(errorId([&] { streams.synchronize(); }), 4098);
  EXPECT_FALSE(ended);

  // Now that it is known, the end of all is waited for.
  auto later = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(20ms);
    gate.open();
  });
  EXPECT_EQ(errorId([&] { streams.synchronize(); }), 4098);
  EXPECT_TRUE(ended);
}

TEST(Streams, TheFirstFailureIsTheOneThatIsThrown) {
  Streams streams(2, 1, none);
  streams.run([] { failWith(4098); }, 1);
  while (errorId([&] { streams.check(); }) == 0)
    std::this_thread::yield();
  EXPECT_EQ(errorId([&] { streams.run([] { failWith(4099); }, 0); }), 4098);
  EXPECT_EQ(errorId([&] { streams.record(0, 0); }), 4098);

  // A task of the first stream during which another one fails.
  Streams others(2, 0, none);
  EXPECT_EQ(errorId([&] {
              others.run(
                  [&] {
                    std::promise<void> failing;
                    others.run(
                        [&] {
                          failing.set_value();
                          failWith(4098);
                        },
                        1);
                    failing.get_future().wait();
                    while (errorId([&] { others.check(); }) == 0)
                      std::this_thread::yield();
                    failWith(4099);
                  },
                  0);
            }),
            4098);
}

TEST(Streams, AFailureDropsWhatHasNotStarted) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Gate gate;
    std::atomic<int> later = 0;
    Streams streams(3, 0, {seed, 50us});
    streams.run(gate.task(), 1);
    streams.run([&] { ++later; }, 1);
    gate.awaitReached();
    streams.run([] { failWith(4098); }, 2);
    EXPECT_EQ(errorId([&] { streams.synchronize(); }), 4098);
    gate.open();
    EXPECT_EQ(errorId([&] { streams.synchronize(); }), 4098);
    EXPECT_EQ(later, 0);
  }
}

TEST(Streams, EndWithWaitsThatNothingWillEnd) {
  Gate gate;
  std::atomic<bool> later = false;
  std::jthread opener;
  {
    Streams streams(4, 1, none);
    streams.run(gate.task(), 1);
    streams.record(0, 1);
    for (uint16_t stream : {2, 3}) {
      streams.wait(0, stream);
      streams.run([&] { later = true; }, stream);
    }
    gate.awaitReached();
    opener = std::jthread([&] {
      std::this_thread::sleep_for(20ms);
      gate.open();
    });
  }
  EXPECT_FALSE(later);
}

TEST(Streams, EndRightAfterAFailure) {
  for (int i = 0; i < 50; ++i) {
    Streams streams(3, 1, {static_cast<uint64_t>(i), 30us});
    streams.record(0, 2);
    streams.wait(0, 1);
    streams.run([] { failWith(4098); }, 2);
    errorId([&] { streams.run([] {}, 1); }); // it may be known already
  }
}
