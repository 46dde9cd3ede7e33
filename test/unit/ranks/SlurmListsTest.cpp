#include "tools/fsdpq-run/ranks/SlurmLists.h"
#include "test/unit/io/TestFiles.h"

#include <gmock/gmock.h>

using namespace fsdpq::run;
using fsdpq::rt::test::errorId;
using testing::ElementsAre;
using testing::SizeIs;

static std::vector<std::string> hosts(std::string_view list) {
  return expandHostList(list, "NODES");
}

TEST(SlurmLists, Hosts) {
  EXPECT_THAT(hosts("node7"), ElementsAre("node7"));
  EXPECT_THAT(hosts("n[01-03,7],m1"),
              ElementsAre("n01", "n02", "n03", "n7", "m1"));
  EXPECT_THAT(hosts("n[9-11]"), ElementsAre("n9", "n10", "n11"));
  EXPECT_THAT(hosts("n[098-101]-ib"),
              ElementsAre("n098-ib", "n099-ib", "n100-ib", "n101-ib"));
  EXPECT_THAT(hosts("rack[0-1]n[1-2]"),
              ElementsAre("rack0n1", "rack0n2", "rack1n1", "rack1n2"));
  EXPECT_THAT(hosts("a-b.example,c"), ElementsAre("a-b.example", "c"));
  EXPECT_THAT(hosts("n[0-65535]"), SizeIs(65536));
}

TEST(SlurmLists, HostsThatAreErrors) {
  for (const char *list :
       {"", ",", "a,", "n[", "n]", "n[1", "n[]", "n[1-]", "n[-2]", "n[2-1]",
        "n[a-b]", "n[1,]", "n[1-2]]", "n[0-65536]", "n[0-99][0-999]",
        "n[0-40000],m[0-40000]", "n[1-99999999999999999999]", "n[+1]",
        "n[1[2]]"})
    EXPECT_EQ(errorId([&] { hosts(list); }, "NODES is"), 6051) << list;
}

TEST(SlurmLists, Counts) {
  auto counts = [](std::string_view list) {
    return expandCounts(list, "TASKS");
  };
  EXPECT_THAT(counts("4"), ElementsAre(4));
  EXPECT_THAT(counts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(counts("1,2"), ElementsAre(1, 2));
  EXPECT_THAT(counts("8(x65536)"), SizeIs(65536));
  for (const char *list : {"", "0", "-1", "2(x0)", "2(x", "2(x)", "2(3)",
                           "2(x3)1", "1,", "2(x65537)", "1,2(x65536)", "x"})
    EXPECT_EQ(errorId([&] { counts(list); }, "TASKS is"), 6051) << list;
}
