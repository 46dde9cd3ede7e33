#include "tools/fsdpq-run/ranks/JobToken.h"

#include "runtime/support/Error.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fsdpq::run {

using rt::Error;
using rt::ExitCode;

namespace {

constexpr size_t minLength = 16, maxLength = 1024;

[[noreturn]] void fail(std::string what, std::string where, std::string hint) {
  throw Error(6052, ExitCode::BadInput, std::move(what), std::move(where),
              std::move(hint));
}

const char makeOne[] = "make one with: openssl rand -hex 32";

/// The values of tokens are in no message.
void check(const std::string &token, const std::string &where) {
  if (token.size() < minLength || token.size() > maxLength)
    fail("the job token has " + std::to_string(token.size()) +
             " characters; it must have " + std::to_string(minLength) + " to " +
             std::to_string(maxLength),
         where, makeOne);
  if (!std::all_of(token.begin(), token.end(),
                   [](char c) { return c > ' ' && c <= '~'; }))
    fail("the job token holds a character that is no printable ASCII", where,
         makeOne);
}

std::string readTokenFile(const std::string &path) {
  // O_NONBLOCK: a pipe that nobody writes to must not hold the run up.
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    throw rt::systemError("opening the job token's file", path,
                          ExitCode::BadInput);
  struct stat status;
  const bool isFile =
      ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  std::string text(maxLength + 2, '\0');
  const ssize_t bytes =
      isFile ? ::read(descriptor, text.data(), text.size()) : -1;
  ::close(descriptor);
  if (bytes < 0)
    fail("the job token's file cannot be read", path, "name a file");
  if (status.st_mode & (S_IRWXG | S_IRWXO))
    fail("other users may read or write the job token's file", path,
         "chmod 600 " + path);
  text.resize(static_cast<size_t>(bytes));
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  check(text, path);
  return text;
}

} // namespace

std::string readJobToken(const std::string &file,
                         const Environment &environment) {
  const std::optional<std::string> given = environment(tokenVariable);
  if (given)
    check(*given, std::string("$") + tokenVariable);
  if (file.empty())
    return given.value_or("");
  const std::string token = readTokenFile(file);
  if (given && *given != token)
    fail(std::string("--job_token_file holds another token than $") +
             tokenVariable,
         file, "use one of them");
  return token;
}

void failWithoutToken() {
  fail("ranks on several hosts need a job token, and there is none", "",
       "set FSDPQ_JOB_TOKEN on all hosts, or give --job_token_file; " +
           std::string(makeOne));
}

std::string newJobToken() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    throw rt::systemError("asking for random bytes", "");
  std::string token;
  for (unsigned char byte : bytes) {
    constexpr char digits[] = "0123456789abcdef";
    token += digits[byte >> 4];
    token += digits[byte & 15];
  }
  return token;
}

} // namespace fsdpq::run
