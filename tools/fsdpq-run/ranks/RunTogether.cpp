#include "tools/fsdpq-run/ranks/RunTogether.h"

#include "runtime/support/Error.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <vector>

namespace fsdpq::run {

using rt::ExitCode;

namespace {

struct Failure {
  std::exception_ptr exception;
  std::string text; ///< "": none
  int exitCode = 0;
};

Failure failureOf(const std::function<void()> &action) {
  try {
    action();
    return {};
  } catch (const rt::Error &error) {
    return {std::current_exception(), error.what(),
            static_cast<int>(error.exitCode())};
  } catch (const std::bad_alloc &) {
    return {std::current_exception(), "out of memory",
            static_cast<int>(ExitCode::DoesNotFit)};
  } catch (const std::exception &error) {
    return {std::current_exception(), error.what(),
            static_cast<int>(ExitCode::RunFailure)};
  }
}

} // namespace

void runTogether(rt::Communicator &communicator, std::string_view what,
                 const std::function<void()> &action) {
  const Failure mine = failureOf(action);
  const std::vector<std::string> texts = communicator.exchange(mine.text, what);
  if (std::all_of(texts.begin(), texts.end(),
                  [](const std::string &text) { return text.empty(); }))
    return;
  if (!mine.exception)
    throw ReportedElsewhere{static_cast<int>(ExitCode::PeerFailure)};
  const auto first = std::find(texts.begin(), texts.end(), mine.text);
  if (first - texts.begin() != communicator.rank())
    throw ReportedElsewhere{mine.exitCode};
  std::rethrow_exception(mine.exception);
}

} // namespace fsdpq::run
