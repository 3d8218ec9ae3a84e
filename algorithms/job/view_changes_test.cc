#include "algorithms/job/view_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "runtime/base/json.h"
#include "runtime/observe/observe_test_support.h"

namespace paceline::job {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ViewTraceTest : public observe::FolderTest {
 protected:
  std::string written() const { return text_of(folder + "/changes.trace"); }
};

TEST(ViewChanges, AreWhoCameAndWentAndHowTheJobGoesOn) {
  for (const char* const kind : {"left", "returned", "scale", "drain", "changed", "node_lost", "node_joined"})
    EXPECT_TRUE(is_view_change({{"event", kind}})) << kind;
  for (const char* const kind : {"progress", "evaluated", "room", "closed", "result"})
    EXPECT_FALSE(is_view_change({{"event", kind}})) << kind;
  EXPECT_FALSE(is_view_change({{"event", "left"}, {"ended", true}})) << "the job was over";
  EXPECT_FALSE(is_view_change(json::object()));
}

TEST(ViewChanges, SomeSayHowLongTheyTook) {
  EXPECT_EQ(seconds_of_view_change({{"event", "returned"}, {"after_s", 0.25}}), 0.25);
  EXPECT_EQ(seconds_of_view_change({{"event", "left"}}), std::nullopt);
  EXPECT_EQ(seconds_of_view_change({{"event", "returned"}, {"after_s", "soon"}}), std::nullopt);
}

TEST_F(ViewTraceTest, ATrackTellsThemWithWhatTheyTook) {
  ViewTrace trace(folder);
  const Instant now = Instant{} + std::chrono::seconds(3);
  EXPECT_TRUE(trace.on_event({{"event", "returned"}, {"worker", 2}, {"update", 7}, {"after_s", 0.5}}, now));
  { ViewTrace(std::move(trace)); }
  EXPECT_THAT(written(), HasSubstr(R"("name":"returned")"));
  EXPECT_THAT(written(), HasSubstr(R"("ts":2500000)"));
  EXPECT_THAT(written(), HasSubstr(R"("dur":500000)"));
  EXPECT_THAT(written(), HasSubstr(R"("worker":2)"));
}

TEST_F(ViewTraceTest, ARunWithoutAnyHasNone) {
  ViewTrace trace(folder);
  EXPECT_TRUE(trace.on_event({{"event", "progress"}}, Instant{}));
  EXPECT_FALSE(std::filesystem::exists(folder + "/changes.trace"));
}

TEST(ViewTraceOfARunThatIsGone, SaysSoOnce) {
  ViewTrace trace("/nowhere/at/all");
  const auto refused = trace.on_event({{"event", "left"}}, Instant{});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("/nowhere/at/all"));
  EXPECT_TRUE(trace.on_event({{"event", "left"}}, Instant{}));
}

}  // namespace
}  // namespace paceline::job
