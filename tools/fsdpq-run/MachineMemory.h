//===- MachineMemory.h - What a process may use of its machine --*- C++ -*-===//
#pragma once

#include <cstdint>
#include <string>

namespace fsdpq::run {

/// Bytes of the machine's memory, or of the control group that this process is
/// in (a container, a job of SLURM), if that has less. `groups` is where
/// control groups are mounted and `membership` what says which one it is.
int64_t machineMemory(const std::string &groups = "/sys/fs/cgroup",
                      const std::string &membership = "/proc/self/cgroup");

} // namespace fsdpq::run
