#include "actors/causes.h"

#include <gmock/gmock.h>

#include "actors/thrown.h"

namespace paceline::actors {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

using testing::StartsWith;

const Place kFarther{1, "worker 3", "/logs/3.log"};
const Place kElsewhere{0, "worker 4", ""};

Error thrown_there() { return leaving({ErrorKind::invalid, "std::out_of_range: no"}, "take(int)", kFarther, ""); }

TEST(CausesTest, WhatIsThrownIsToldWithItsPlace) {
  const TaskError error(thrown_there());
  EXPECT_STREQ(error.what(), "std::out_of_range: no (worker 3 on node 1, log /logs/3.log)");
  EXPECT_EQ(error.kind(), ErrorKind::invalid);
  EXPECT_EQ(error.node(), 1);
  EXPECT_EQ(error.worker(), "worker 3");
  EXPECT_EQ(error.log(), "/logs/3.log");
  EXPECT_EQ(error.cause(), "std::out_of_range: no");
  ASSERT_EQ(error.causes().size(), 1u);
  EXPECT_EQ(error.causes()[0].what, "take(int)");
  EXPECT_EQ(error.causes_left_out(), 0u);
}

TEST(CausesTest, AnErrorOfThisProcessHasNoPlace) {
  const TaskError error({ErrorKind::timed_out, "it is not there"});
  EXPECT_EQ(error.kind(), ErrorKind::timed_out);
  EXPECT_EQ(error.node(), -1);
  EXPECT_EQ(error.worker(), "");
  EXPECT_EQ(error.log(), "");
  EXPECT_EQ(error.cause(), "it is not there");
  EXPECT_EQ(error.causes().size(), 1u);
}

TEST(CausesTest, WhatDidNotRunNamesTheFirstCauseHoweverLongTheChain) {
  auto error = stopped_by(thrown_there(), "second(int)", {0}, "argument 1 failed");
  EXPECT_EQ(error.text, "argument 1 failed: std::out_of_range: no (worker 3 on node 1, log /logs/3.log)");
  for (int i = 0; i < 1000; ++i) error = stopped_by(error, "next(int)", {0}, "argument 1 failed");
  EXPECT_EQ(error.text,
            "argument 1 failed, the last of 1001 that failed after the first cause: std::out_of_range: no (worker 3 on "
            "node 1, "
            "log /logs/3.log)");
  const TaskError last(error);
  EXPECT_EQ(last.causes().size(), kLinksMax);
  EXPECT_EQ(last.causes().size() + last.causes_left_out(), 1002u);
  EXPECT_EQ(last.worker(), "worker 3");
  EXPECT_EQ(last.cause(), "std::out_of_range: no");
  EXPECT_EQ(last.causes().front().what, "next(int)");
  EXPECT_EQ(last.causes().front().text, "argument 1 failed");
  EXPECT_EQ(last.causes()[last.causes().size() - 2].what, "second(int)");
}

TEST(CausesTest, WhatIsLetOutHasBeenPassedOn) {
  auto error = leaving(thrown_there(), "wait()", kElsewhere, "actor 'a', ");
  EXPECT_EQ(error.text,
            "std::out_of_range: no (worker 3 on node 1, log /logs/3.log) (passed on by actor 'a', worker 4 on node 0)");
  EXPECT_EQ(error.causes->links.size(), 2u);
  EXPECT_EQ(error.causes->links[0].what, "wait()");
  EXPECT_EQ(error.causes->links[0].worker, "worker 4");
  error = leaving(error, "wait()", kFarther, "");
  EXPECT_THAT(error.text, StartsWith("std::out_of_range: no (worker 3 on node 1, log /logs/3.log) (passed on 2 times"));
}

TEST(CausesTest, WhatStandsBeforeItIsNoPartOfTheCause) {
  const auto here = prefixed({ErrorKind::invalid, "int"}, "index 5: ");
  const TaskError error(leaving(here, "f(int)", kFarther, ""));
  EXPECT_THAT(error.what(), StartsWith("index 5: int (worker 3"));
  EXPECT_EQ(error.cause(), "int");
  EXPECT_EQ(error.node(), 1);
  const TaskError outer(prefixed(thrown_there(), "element 2: "));
  EXPECT_THAT(outer.what(), StartsWith("element 2: std::out_of_range"));
  EXPECT_EQ(outer.cause(), "std::out_of_range: no");
}

TEST(CausesTest, ATaskErrorThatIsCaughtGoesOnAsItIs) {
  try {
    throw TaskError(thrown_there());
  } catch (...) {
    const auto error = error_thrown();
    EXPECT_EQ(error.text, thrown_there().text);
    EXPECT_EQ(error.causes->links.size(), 1u);
  }
}

TEST(CausesTest, WhatIsThrownAroundATaskErrorNamesIt) {
  try {
    try {
      throw TaskError(thrown_there());
    } catch (...) {
      std::throw_with_nested(std::runtime_error("no start"));
    }
  } catch (...) {
    const TaskError error(leaving(error_thrown(), "start()", kElsewhere, ""));
    EXPECT_THAT(error.what(), HasSubstr("no start: std::out_of_range: no (worker 3"));
    EXPECT_THAT(error.what(), EndsWith(" (worker 4 on node 0)"));
    ASSERT_EQ(error.causes().size(), 2u);
    EXPECT_EQ(error.causes()[0].what, "start()");
    EXPECT_THAT(error.causes()[0].text, HasSubstr("no start"));
    EXPECT_EQ(error.worker(), "worker 3");
  }
}

TEST(CausesTest, TextsAreBounded) {
  try {
    throw std::runtime_error(std::string(std::size_t{10} << 20, '\xff'));
  } catch (...) {
    auto error = leaving(error_thrown(), std::string(100'000, 'f'), kFarther, "");
    EXPECT_THAT(error.text, EndsWith("... (worker 3 on node 1, log /logs/3.log)"));
    for (int i = 0; i < 20; ++i) {
      error = i % 2 == 0 ? leaving(error, std::string(100'000, 'g'), {1, "worker 5", std::string(4000, '/')}, "")
                         : stopped_by(error, std::string(100'000, 'h'), {0}, "argument 1 failed");
      std::size_t bytes = error.text.size() + error.causes->first.size();
      for (const auto& link : error.causes->links)
        bytes += link.what.size() + link.worker.size() + link.log.size() + link.text.size();
      EXPECT_LE(bytes, kCausesBytesMax);
    }
    EXPECT_EQ(error.causes->links.size() + error.causes->left_out, 21u);
    EXPECT_THAT(error.causes->links.back().text, StartsWith("std::runtime_error: \xef\xbf\xbd"));
  }
}

}  // namespace
}  // namespace paceline::actors
