#include "actors/function_ref.h"

#include "actors/serialise.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace paceline::actors {
namespace {

using testing::HasSubstr;

int twice(int x) { return 2 * x; }

/// Exit status and output of a program.
std::pair<int, std::string> run(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string output;
  std::array<char, 256> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) output += part.data();
  const int status = pclose(pipe);
  return {status, output};
}

TEST(FunctionRef, ResolvesToTheFunctionThatItNames) {
  const auto name = name_of(&twice);
  ASSERT_TRUE(name) << name.error().text;
  EXPECT_EQ(name->build, *executable_build());
  EXPECT_EQ(*resolve(*name), reinterpret_cast<void*>(&twice));
}

TEST(FunctionRef, KnowsWhatWasLoadedSinceAndWhatIsGone) {
  ASSERT_TRUE(name_of(&twice)) << "who asks has read what is loaded";
  void* const library = dlopen("libBrokenLocale.so.1", RTLD_NOW);  // Of the C library; nobody else wants it.
  ASSERT_NE(library, nullptr) << dlerror();
  void* const function = dlsym(library, "__ctype_get_mb_cur_max");
  const auto name = name_of(function);
  ASSERT_TRUE(name) << name.error().text;
  EXPECT_NE(name->build, *executable_build());
  EXPECT_EQ(*resolve(*name), function);
  dlclose(library);
  const auto gone = resolve(*name);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, ErrorKind::not_found);
}

TEST(FunctionRef, NamesFunctionsOfSharedLibrariesByTheirOwnBuild) {
  const auto name = name_of(reinterpret_cast<const void*>(&popen));
  ASSERT_TRUE(name) << name.error().text;
  EXPECT_EQ(*resolve(*name), reinterpret_cast<void*>(&popen));
}

TEST(FunctionRef, RefusesAnUnknownBuildNamingIt) {
  const auto resolved = resolve({"0123abcd", 64});
  ASSERT_FALSE(resolved);
  EXPECT_EQ(resolved.error().kind, ErrorKind::not_found);
  EXPECT_THAT(resolved.error().text, HasSubstr("0123abcd"));
}

TEST(FunctionRef, RefusesAnOffsetThatIsNoCode) {
  auto name = *name_of(&twice);
  for (std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    name.offset = offset;
    const auto resolved = resolve(name);
    ASSERT_FALSE(resolved) << offset;
    EXPECT_EQ(resolved.error().kind, ErrorKind::invalid);
  }
}

TEST(FunctionRef, RefusesToNameData) {
  static int data = 1;
  EXPECT_EQ(name_of(static_cast<const void*>(&data)).error().kind, ErrorKind::invalid);
  const auto on_heap = std::make_unique<int>(2);
  EXPECT_EQ(name_of(static_cast<const void*>(on_heap.get())).error().kind, ErrorKind::invalid);
}

TEST(FunctionRef, RefusesAVtableSlotOutOfRange) {
  MemberRef ref;
  ref.is_virtual = true;
  ref.slot = std::uint64_t{1} << 40;
  EXPECT_FALSE(resolve_member(ref));
  ref.slot = 3;
  EXPECT_FALSE(resolve_member(ref));
}

TEST(FunctionRef, RefusesANullMethod) {
  struct Thing {
    int method() { return 0; }
  };
  int (Thing::*null)() = nullptr;
  EXPECT_FALSE(name_of(null));
}

TEST(FunctionRef, HoldsInAnotherProcessWithoutOptimisation) {
  const auto [status, output] = run(PACELINE_FUNCTION_REF_O0);
  EXPECT_EQ(status, 0) << output;
}

TEST(FunctionRef, HoldsInAnotherProcessWithOptimisation) {
  const auto [status, output] = run(PACELINE_FUNCTION_REF_O2);
  EXPECT_EQ(status, 0) << output;
}

TEST(FunctionRef, HoldsWhereAddressesDiffer) {
  const auto [checked, layout] = run("cat /proc/sys/kernel/randomize_va_space");
  if (checked != 0 || layout.starts_with("0")) GTEST_SKIP() << "this system does not randomise addresses";
  const auto [status, output] = run(PACELINE_FUNCTION_REF_O2);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(output, HasSubstr("other addresses"));
}

TEST(FunctionRef, IsRefusedByAnotherBuild) {
  std::string thunk = "x";
  for (auto byte : to_bytes(*name_of(&twice))) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", std::to_integer<unsigned>(byte));
    thunk += digits.data();
  }
  const auto [status, output] = run(std::string(PACELINE_FUNCTION_REF_O2) + " check 0 " + thunk + " x x 0 0");
  EXPECT_NE(status, 0);
  EXPECT_THAT(output, HasSubstr("start both from the same executable"));
}

}  // namespace
}  // namespace paceline::actors
