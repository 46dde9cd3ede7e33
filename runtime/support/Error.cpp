#include "runtime/support/Error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace fsdpq::rt {

Error::Error(int id, ExitCode code, std::string what, std::string where,
             std::string hint)
    : id_(id), code_(code) {
  char label[32];
  std::snprintf(label, sizeof label, "error[FSDPQ-%04d]: ", id);
  text = label + what;
  if (!where.empty())
    text += "\n  --> " + where;
  if (!hint.empty())
    text += "\n  hint: " + hint;
}

Error systemError(const std::string &action, const std::string &path,
                  ExitCode exitCode) {
  int code = errno;
  std::string hint;
  if (code == ENOSPC)
    hint = "free some space or choose another folder; the previous file is "
           "untouched";
  else if (code == EACCES)
    hint = "check the permissions of the file and its folder";
  else if (code == ENOENT)
    hint = "check the path";
  return Error(1301, exitCode,
               action + " failed: " + std::strerror(code), path, hint);
}

} // namespace fsdpq::rt
