#include "tools/fsdpq-run/ranks/RunTogether.h"
#include "runtime/support/Error.h"

#include <barrier>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <new>
#include <thread>

using namespace fsdpq;
using fsdpq::run::ReportedElsewhere;
using testing::ElementsAre;

namespace {

/// Ranks that can exchange and nothing else.
class Ranks {
public:
  explicit Ranks(int64_t size)
      : size(size), texts(static_cast<size_t>(size)), barrier(size) {}

  class Rank final : public rt::Communicator {
  public:
    Rank(Ranks &ranks, int64_t number) : ranks(ranks), number(number) {}

    int64_t rank() const override { return number; }
    int64_t size() const override { return ranks.size; }
    std::unique_ptr<rt::Channel> openChannel(const std::vector<int64_t> &,
                                             rt::Device &, uint16_t,
                                             const std::string &) override {
      return nullptr;
    }
    std::vector<std::string> exchange(std::string_view mine,
                                      std::string_view) override {
      ranks.texts[static_cast<size_t>(number)] = mine;
      ranks.barrier.arrive_and_wait();
      std::vector<std::string> all = ranks.texts;
      ranks.barrier.arrive_and_wait();
      return all;
    }
    void abort(const std::string &) noexcept override {}

  private:
    Ranks &ranks;
    int64_t number;
  };

  /// What `action` of each rank came to: "done", the message, or "silent " and
  /// the exit code.
  std::vector<std::string>
  run(const std::function<void(int64_t rank)> &action) {
    std::vector<std::string> outcomes(static_cast<size_t>(size));
    std::vector<std::thread> threads;
    for (int64_t number = 0; number < size; ++number)
      threads.emplace_back([&, number] {
        outcomes[static_cast<size_t>(number)] = outcomeOf(number, action);
      });
    for (std::thread &thread : threads)
      thread.join();
    return outcomes;
  }

private:
  std::string outcomeOf(int64_t number,
                        const std::function<void(int64_t)> &action) {
    Rank rank(*this, number);
    try {
      run::runTogether(rank, "a test", [&] { action(number); });
      return "done";
    } catch (const ReportedElsewhere &failure) {
      return "silent " + std::to_string(failure.exitCode);
    } catch (const std::exception &error) {
      return error.what();
    }
  }

  int64_t size;
  std::vector<std::string> texts;
  std::barrier<> barrier;
};

[[noreturn]] void fail(const std::string &what) {
  throw rt::Error(6029, rt::ExitCode::BadInput, what);
}

} // namespace

TEST(RunTogether, AllDo) {
  std::atomic<int> calls = 0;
  EXPECT_THAT(Ranks(3).run([&](int64_t) { ++calls; }),
              ElementsAre("done", "done", "done"));
  EXPECT_EQ(calls, 3);
}

TEST(RunTogether, OneFails) {
  EXPECT_THAT(
      Ranks(3).run([](int64_t rank) {
        if (rank == 1)
          fail("no file");
      }),
      ElementsAre("silent 5", "error[FSDPQ-6029]: no file", "silent 5"));
}

TEST(RunTogether, TheSameFailureIsReportedOnce) {
  EXPECT_THAT(
      Ranks(3).run([](int64_t) { fail("no file"); }),
      ElementsAre("error[FSDPQ-6029]: no file", "silent 2", "silent 2"));
  EXPECT_THAT(
      Ranks(3).run([](int64_t rank) {
        if (rank > 0)
          fail("no file");
      }),
      ElementsAre("silent 5", "error[FSDPQ-6029]: no file", "silent 2"));
}

TEST(RunTogether, DifferentFailuresAreReportedEach) {
  EXPECT_THAT(
      Ranks(2).run([](int64_t rank) { fail("file " + std::to_string(rank)); }),
      ElementsAre("error[FSDPQ-6029]: file 0", "error[FSDPQ-6029]: file 1"));
}

TEST(RunTogether, OtherExceptions) {
  EXPECT_THAT(Ranks(2).run([](int64_t rank) {
    if (rank == 0)
      throw std::bad_alloc();
    throw std::runtime_error("odd");
  }),
              ElementsAre("std::bad_alloc", "odd"));
  EXPECT_THAT(Ranks(1).run([](int64_t) { fail("alone"); }),
              ElementsAre("error[FSDPQ-6029]: alone"));
}
