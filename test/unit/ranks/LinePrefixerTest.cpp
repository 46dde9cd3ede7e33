#include "tools/fsdpq-run/ranks/LinePrefixer.h"

#include <gtest/gtest.h>

using fsdpq::run::LinePrefixer;

TEST(LinePrefixer, LinesInPieces) {
  LinePrefixer prefixer("[1] ");
  EXPECT_EQ(prefixer.add("fir"), "");
  EXPECT_EQ(prefixer.add("st\nsecond\n\nth"), "[1] first\n[1] second\n[1] \n");
  EXPECT_EQ(prefixer.add("ird"), "");
  EXPECT_EQ(prefixer.finish(), "[1] third\n");
  EXPECT_EQ(prefixer.finish(), "");
}

TEST(LinePrefixer, LongLinesAreBroken) {
  constexpr size_t limit = 65536;
  LinePrefixer prefixer("> ");
  EXPECT_EQ(prefixer.add(std::string(limit, 'a')), "");
  EXPECT_EQ(prefixer.add("b"), "> " + std::string(limit, 'a') + "\n");
  EXPECT_EQ(prefixer.add("c\n"), "> bc\n");
  EXPECT_EQ(prefixer.add(std::string(2 * limit + 1, 'd') + "\ne\n"),
            "> " + std::string(limit, 'd') + "\n> " + std::string(limit, 'd') +
                "\n> d\n> e\n");
}
