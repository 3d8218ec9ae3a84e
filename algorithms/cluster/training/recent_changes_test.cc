#include "algorithms/cluster/training/recent_changes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace paceline::cluster {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class RecentChangesTest : public testing::Test {
 protected:
  template <class Write>
  void tell(const Write& write, int at_s) {
    wire::Message message;
    auto event = message.root().initJobEvent();
    event.setJob(7);
    write(event);
    sut.on_event(message.root().asReader().getJobEvent(), Instant{} + seconds(at_s));
  }
  void leaves(int worker, int at_s, bool ended = false) {
    tell(
        [&](auto event) {
          auto left = event.initLeft();
          left.setWorker(worker);
          left.setEnded(ended);
          left.setText("killed");
        },
        at_s);
  }

  RecentChanges sut;
};

TEST_F(RecentChangesTest, WhoCameAndWentIsKeptWithHowLongAgo) {
  leaves(2, 1);
  tell([](auto event) { event.initWarning().setText("no change"); }, 2);
  tell(
      [](auto event) {
        auto back = event.initReturned();
        back.setWorker(2);
        back.setUpdate(30);
      },
      3);
  leaves(1, 4, true);
  const json list = sut.list(Instant{} + seconds(5));
  ASSERT_EQ(list.size(), 2u) << list;
  EXPECT_EQ(list[0]["event"], "left");
  EXPECT_EQ(list[0]["text"], "killed");
  EXPECT_EQ(list[0]["ago_s"], 4);
  EXPECT_FALSE(list[0].contains("job"));
  EXPECT_EQ(list[1]["event"], "returned");
  EXPECT_EQ(list[1]["update"], 30);
}

TEST_F(RecentChangesTest, TheLastOnesAreKept) {
  for (int i = 0; i < 25; ++i) leaves(i, i);
  const json list = sut.list(Instant{} + seconds(25));
  ASSERT_EQ(list.size(), RecentChanges::kChangesMax);
  EXPECT_EQ(list[0]["worker"], 15);
}

TEST(RecentChangesOfTwoNodes, AreInOrderAndWhatBothTellStandsOnce) {
  const json left{{"event", "left"}, {"worker", 1}, {"ago_s", 9.0}};
  const json again{{"event", "left"}, {"worker", 1}, {"ago_s", 2.0}};
  const json lost{{"event", "node_lost"}, {"node", 2}, {"ago_s", 5.0}};
  json lost_too = lost;
  lost_too["ago_s"] = 4.9;
  json changed{{"event", "changed"}, {"update", 4}, {"node", 0}, {"ago_s", 1.0}};
  json changed_too = changed;
  changed_too["node"] = 1;
  EXPECT_EQ(RecentChanges::of_both(json{left, again, changed}, json{lost, changed_too}),
            (json{left, lost, again, changed}))
      << "twice on one node is twice";
  EXPECT_EQ(RecentChanges::of_both(json{lost}, json{lost_too}), json{lost});
  EXPECT_EQ(RecentChanges::of_both(json{1, nullptr}, 7), json::array());
}

}  // namespace
}  // namespace paceline::cluster
