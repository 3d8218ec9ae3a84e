#include "actors/shown_output.h"

#include <gtest/gtest.h>

namespace paceline::actors {
namespace {

TEST(ShownOutputTest, EachLineBeginsWithWhoHasPrintedIt) {
  EXPECT_EQ(shown({"Counter pid=17", "c.log", 0, "one\n\ntwo\n"}, false),
            "(Counter pid=17) one\n(Counter pid=17) \n(Counter pid=17) two\n");
}

TEST(ShownOutputTest, OnlyWhoIsInColour) {
  EXPECT_EQ(shown({"tasks pid=17", "c.log", 0, "one\n"}, true), "\x1b[36m(tasks pid=17)\x1b[0m one\n");
}

TEST(ShownOutputTest, WhatWasLeftOutIsCountedAndTheLogIsNamed) {
  EXPECT_EQ(shown({"A pid=1", "runs/x/logs/a.log", 1234567, "last\n"}, false),
            "(A pid=1) ... 1,234,567 lines left out, which stand in runs/x/logs/a.log\n(A pid=1) last\n");
  EXPECT_EQ(shown({"A pid=1", "a.log", 1, ""}, false), "(A pid=1) ... 1 line left out, which stands in a.log\n");
  EXPECT_EQ(shown({"A pid=1", "a.log", 123, ""}, false), "(A pid=1) ... 123 lines left out, which stand in a.log\n");
}

TEST(ShownOutputTest, BytesAreAsTheyWere) {
  EXPECT_EQ(shown({"A pid=1", "a.log", 0, std::string("\xff\x00\x1b[1m\r\n", 8)}, false),
            std::string("(A pid=1) \xff\x00\x1b[1m\r\n", 18));
}

}  // namespace
}  // namespace paceline::actors
