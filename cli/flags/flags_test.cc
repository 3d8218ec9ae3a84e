#include "cli/flags/flags.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

struct Values {
  bool json = false;
  std::int32_t lines = 20;
  std::string run;
  std::vector<std::string> slow;
  std::optional<std::int64_t> workers;
  std::optional<double> epochs;
};

/// The exit status of `program WORDS...`, or -1: it goes on.
int parse(Values& values, std::vector<const char*> words) {
  words.insert(words.begin(), "program");
  CommandLine line("program", "for a test");
  Flags flags = line.flags();
  flags.add("run", &values.run);
  const Flag json = flags.add("--json", &values.json);
  flags.add("--lines,-n", &values.lines).between(1, 100);
  flags.add("--slow", &values.slow).repeated();
  flags.add("--workers", &values.workers).needs(json);
  flags.add("--epochs", &values.epochs).excludes(json);
  return line.parse(static_cast<int>(words.size()), words.data()).value_or(-1);
}

TEST(FlagsTest, ValuesReachTheirTargets) {
  Values values;
  EXPECT_EQ(parse(values, {"runs/a", "--json", "-n", "7", "--slow", "1:2x", "--slow", "3:4x", "--workers", "4"}), -1);
  EXPECT_EQ(values.run, "runs/a");
  EXPECT_TRUE(values.json);
  EXPECT_EQ(values.lines, 7);
  EXPECT_EQ(values.slow, (std::vector<std::string>{"1:2x", "3:4x"}));
  EXPECT_EQ(values.workers, 4);
  EXPECT_FALSE(values.epochs);
}

TEST(FlagsTest, WhatIsWrongIsAUsageError) {
  Values values;
  EXPECT_EQ(parse(values, {"--no-such-flag"}), 2);
  EXPECT_EQ(parse(values, {"--lines", "101"}), 2);
  EXPECT_EQ(parse(values, {"--lines", "many"}), 2);
  EXPECT_EQ(parse(values, {"--workers", "4"}), 2);
  EXPECT_EQ(parse(values, {"--json", "--epochs", "1"}), 2);
}

TEST(FlagsTest, WhatFollowsTwoDashesIsLeftAsItIs) {
  CommandLine line("program", "for a test");
  std::string script;
  std::vector<std::string> more, rest;
  Flags run = line.flags().command("run", "");
  run.add("script", &script);
  run.add("more", &more);
  run.rest(&rest);
  const std::vector<const char*> words = {"program", "run", "x.cpp", "a", "--", "--lines", "b", "--"};
  EXPECT_FALSE(line.parse(static_cast<int>(words.size()), words.data()));
  EXPECT_EQ(script, "x.cpp");
  EXPECT_EQ(more, std::vector<std::string>{"a"});
  EXPECT_EQ(rest, (std::vector<std::string>{"--lines", "b", "--"}));
}

TEST(FlagsTest, HelpIsNoError) {
  Values values;
  EXPECT_EQ(parse(values, {"--help"}), 0);
}

/// What is said of a wrong command line.
std::string said(std::vector<const char*> words) {
  testing::internal::CaptureStderr();
  words.insert(words.begin(), "program");
  CommandLine line("program", "for a test");
  line.version("program 1.2");
  std::int64_t workers = 0;
  line.flags().command("run", "").add("--workers,-w", &workers);
  line.flags().command("status", "");
  line.flags().command("start", "").hidden();
  EXPECT_NE(line.parse(static_cast<int>(words.size()), words.data()), std::nullopt);
  return testing::internal::GetCapturedStderr();
}

TEST(FlagsTest, WhatWasMeantIsOffered) {
  EXPECT_EQ(said({"rum"}), "program: there is no command rum; did you mean run?: see `program --help`\n");
  EXPECT_EQ(said({"statos"}), "program: there is no command statos; did you mean status?: see `program --help`\n");
  EXPECT_EQ(said({"train"}), "program: there is no command train: see `program --help`\n");
  EXPECT_EQ(said({"run", "--wokers=3"}),
            "program: there is no flag --wokers; did you mean --workers?: see `program run --help`\n");
  EXPECT_EQ(said({"run", "--quick"}), "program: there is no flag --quick: see `program run --help`\n");
  EXPECT_EQ(said({"run", "-x"}), "program: there is no flag -x: see `program run --help`\n");
}

TEST(FlagsTest, TheVersionIsNoError) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(said({"--version"}), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "program 1.2\n");
}

TEST(FlagsTest, WhereThereAreCommandsOneHasToBeNamed) {
  CommandLine line("program", "for a test");
  line.flags().command("up", "");
  line.flags().command("down", "");
  const char* words[] = {"program", "down"};
  EXPECT_EQ(line.parse(1, words), 2);
  EXPECT_EQ(line.parse(2, words), std::nullopt);
  EXPECT_EQ(line.command(), "down");
}

}  // namespace
}  // namespace paceline::cli
