#include "tools/fsdpq-run/MachineMemory.h"
#include "test/unit/io/TestFiles.h"

#include <gtest/gtest.h>
#include <unistd.h>

using fsdpq::rt::test::ScratchFolder;
using fsdpq::run::machineMemory;

TEST(MachineMemory, LeastOfTheGroups) {
  const int64_t all =
      static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  ScratchFolder folder;
  const std::string none = folder.path("none");
  EXPECT_EQ(machineMemory(folder.path(), none), all);

  const std::string membership =
      folder.write("membership", "3:cpu:/other\n0::/job/step\n");
  EXPECT_EQ(machineMemory(folder.path(), membership), all);
  folder.write("job/step/memory.max", "max\n");
  EXPECT_EQ(machineMemory(folder.path(), membership), all);
  folder.write("job/memory.max", "1048576\n");
  EXPECT_EQ(machineMemory(folder.path(), membership), 1048576);
  folder.write("job/step/memory.max", "4096\n");
  EXPECT_EQ(machineMemory(folder.path(), membership), 4096);
  folder.write("job/step/memory.max", "9000000000000000000\n");
  folder.write("job/memory.max", "9000000000000000000\n");
  EXPECT_EQ(machineMemory(folder.path(), membership), all);

  EXPECT_EQ(machineMemory(folder.path(), folder.write("root", "0::/\n")), all);
  EXPECT_GT(machineMemory(), 0);
  EXPECT_LE(machineMemory(), all);
}
