#include "runtime/train/FirstRank.h"

#include "runtime/support/Error.h"

#include <string>

namespace fsdpq::rt {

void FirstRank::run(const std::function<void()> &action) {
  if (communicator.rank() != 0 || failure)
    return;
  try {
    action();
  } catch (...) {
    failure = std::current_exception();
  }
}

/// The exit code as a digit, then the text; "" without a failure.
static std::string describe(const std::exception_ptr &failure) {
  if (!failure)
    return "";
  const auto text = [](ExitCode code, const std::string &what) {
    return std::to_string(static_cast<int>(code)) + what;
  };
  try {
    std::rethrow_exception(failure);
  } catch (const Error &error) {
    return text(error.exitCode(), error.what());
  } catch (const std::exception &error) {
    return text(ExitCode::RunFailure, error.what());
  } catch (...) {
    return text(ExitCode::RunFailure, "an unknown failure");
  }
}

void FirstRank::finish() {
  const std::string outcome =
      communicator.exchange(describe(failure), "what rank 0 did for all")
          .front();
  if (failure)
    std::rethrow_exception(failure);
  if (!outcome.empty())
    throw Error(5040, static_cast<ExitCode>(outcome[0] - '0'),
                "rank 0 failed: " + outcome.substr(1));
}

} // namespace fsdpq::rt
