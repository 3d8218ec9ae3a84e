#include "runtime/base/demangled.h"

#include <gtest/gtest.h>

#include <typeinfo>
#include <vector>

namespace paceline {
namespace {

struct Counter {};

TEST(DemangledTest, ATypeIsNamedAsItIsWritten) {
  EXPECT_EQ(demangled(typeid(int).name()), "int");
  EXPECT_EQ(demangled(typeid(Counter).name()), "paceline::(anonymous namespace)::Counter");
}

TEST(DemangledTest, WhatIsNoNameOfATypeComesBack) {
  EXPECT_EQ(demangled(""), "");
  EXPECT_EQ(demangled("no type"), "no type");
}

}  // namespace
}  // namespace paceline
