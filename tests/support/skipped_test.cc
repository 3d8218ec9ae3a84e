#include <gtest/gtest.h>

// What skips_test.py runs.

TEST(Machine, LacksSomething) { GTEST_SKIP() << "no anvil"; }
TEST(Machine, HasTheRest) {}
