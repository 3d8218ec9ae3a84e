#include "cli/get_view.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

json cluster() {
  const json counter = {{"id", "17"},          {"name", "counter"},
                        {"class", "Counter"},  {"node", 1},
                        {"pid", 42},           {"state", "alive"},
                        {"owner", "driver/1"}, {"detached", false},
                        {"calls", 3},          {"queued", 1},
                        {"restarts", 2},       {"restarts_max", 5},
                        {"age_s", 75.0},       {"log", "/logs/counter.log"}};
  json other = counter;
  other.update({{"id", "18"}, {"name", ""}, {"pid", -1}, {"detached", true}, {"owner", ""}, {"restarts_max", -1}});
  return {{"actors", {counter, other}},
          {"workers",
           {{{"actor", "17"}, {"worker", 3}, {"state", "frozen"}, {"waits_for", "a task"}, {"waits_s", 2.0}},
            {{"actor", nullptr}}}}};
}

TEST(GetViewTest, AllThatIsKnownOfAnActorIsShown) {
  EXPECT_EQ(actor_text(actor_found(cluster(), "counter").value()),
            "actor      17\n"
            "─────────  ─────────────────\n"
            "name       counter\n"
            "class      Counter\n"
            "node       1\n"
            "worker     3\n"
            "pid        42\n"
            "state      alive, frozen\n"
            "for        1:15\n"
            "owner      driver/1\n"
            "restarts   2 of 5\n"
            "calls      3\n"
            "queued     1\n"
            "waits for  a task, for 2.0 s\n"
            "log        /logs/counter.log\n");
  const auto other = actor_text(actor_found(cluster(), "18").value());
  EXPECT_NE(other.find("owner     detached\n"), std::string::npos) << other;
  EXPECT_NE(other.find("restarts  2 of any number\n"), std::string::npos) << other;
  EXPECT_EQ(other.find("pid"), std::string::npos) << other;
  EXPECT_EQ(actor_found(cluster(), "counter").value()["worker"], 3);
}

TEST(GetViewTest, OneThatDoesNotLiveIsAnErrorThatNamesThose) {
  EXPECT_EQ(actor_found(cluster(), "countr").error().text,
            "no actor 'countr' lives; did you mean 'counter'?: there are 'counter'; `paceline list actors` shows all");
  EXPECT_EQ(actor_found(json(), "x").error().text,
            "no actor 'x' lives, nor any other with a name; `paceline list actors` shows all");
  const auto nameless = actor_found(cluster(), "");
  ASSERT_FALSE(nameless) << "an actor without a name has none";
  EXPECT_EQ(nameless.error().kind, ErrorKind::not_found);
}

TEST(GetViewTest, OfSeveralOfOneNameOneIsMeantByItsIdOnly) {
  json two = cluster();
  two["actors"][1].update({{"name", "counter"}, {"node", 0}});
  EXPECT_EQ(actor_found(two, "counter").error().kind, ErrorKind::invalid);
  EXPECT_EQ(actor_found(two, "counter").error().text,
            "2 actors are called 'counter': give the id of one, of 17 (node 1, of driver/1), 18 (node 0, detached)");
  EXPECT_EQ(actor_found(two, "18").value()["id"], "18");
  for (int id = 19; id < 40; ++id) {
    two["actors"].push_back(two["actors"][0]);
    two["actors"].back()["id"] = std::to_string(id);
  }
  EXPECT_NE(actor_found(two, "counter").error().text.find(", and 13 more"), std::string::npos);
}

}  // namespace
}  // namespace paceline::cli
