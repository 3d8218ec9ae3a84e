#include "cli/status_waits.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

json tasks(const std::string& owner, int lent, int missing) {
  return {{"owner", owner}, {"program", "/home/u/square"}, {"cpus", 1},      {"on", nullptr},
          {"lent", lent},   {"missing", missing},          {"waits_s", 12.0}};
}

json held_by(const std::string& owner, int workers) {
  return {{"owner", owner}, {"workers", workers}, {"cpus", workers}, {"since_s", 31.0}};
}

TEST(StatusWaitsTest, WhoWaitsForCpusIsShownWithWhoHoldsThem) {
  const json status = {
      {"nodes",
       {{{"node", 0}, {"answers", true}, {"cpus", 2}, {"cpus_free", 0}, {"held", {held_by("driver/2", 2)}}},
        {{"node", 1},
         {"answers", true},
         {"cpus", 2},
         {"cpus_free", 0},
         {"held", {held_by("driver/1", 1), held_by("driver/2", 1)}}},
        {{"node", 2}, {"answers", false}, {"cpus", 2}}}},
      {"tasks", {tasks("driver/2", 3, 1), tasks("driver/1", 0, 4), tasks("driver/3", 1, 0)}}};
  EXPECT_EQ(
      waits_text(status),
      "tasks of driver/1 (square) wait for 1 cpu each, for 12 s: no worker is lent, up to 4 more would be of use\n"
      "  node 0: 0 of 2 cpus are free; driver/2 holds 2 cpus with 2 workers, for 31 s\n"
      "  node 1: 0 of 2 cpus are free; driver/1 itself holds 1 cpu with 1 worker, for 31 s; driver/2 holds 1 cpu with "
      "1 worker, for 31 s\n"
      "  node 2 does not answer\n"
      "tasks of driver/2 (square) wait for 1 cpu each, for 12 s: 3 workers are lent, up to 1 more would be of use\n"
      "  node 0: 0 of 2 cpus are free; driver/2 itself holds 2 cpus with 2 workers, for 31 s\n"
      "  node 1: 0 of 2 cpus are free; driver/1 holds 1 cpu with 1 worker, for 31 s; driver/2 itself holds 1 cpu with "
      "1 worker, for 31 s\n"
      "  node 2 does not answer\n");
}

TEST(StatusWaitsTest, TasksForOneNodeWaitForThatOneOnly) {
  json pinned = tasks("driver/1", 0, 1);
  pinned["on"] = 1;
  pinned["cpus"] = 2;
  const json node = {{"node", 1}, {"answers", true}, {"cpus", 2}, {"cpus_free", 0.5}, {"held", json::array()}};
  EXPECT_EQ(
      waits_text({{"nodes", {{{"node", 0}}, node}}, {"tasks", {pinned}}}),
      "tasks of driver/1 (square) wait for 2 cpus each on node 1, for 12 s: no worker is lent, up to 1 more would be "
      "of use\n"
      "  node 1: 0.5 of 2 cpus are free\n");
}

TEST(StatusWaitsTest, WhoWaitsForMemoryIsShownHowMuchIsFree) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  json big = tasks("driver/1", 0, 1);
  big["memory"] = 2 * kGiB;
  json hold = held_by("driver/2", 1);
  hold["memory"] = 3 * kGiB;
  const json node = {{"node", 0},          {"answers", true},     {"cpus", 2},     {"cpus_free", 1},
                     {"memory", 4 * kGiB}, {"memory_free", kGiB}, {"held", {hold}}};
  const json small = {{"node", 1}, {"answers", true}, {"cpus", 2}, {"cpus_free", 2}, {"memory", kGiB}};
  EXPECT_EQ(
      waits_text({{"nodes", {node, small}}, {"tasks", {big}}}),
      "tasks of driver/1 (square) wait for 1 cpu and 2 GiB of memory each, for 12 s: no worker is lent, up to 1 more "
      "would be of use\n"
      "  node 0: 1 of 2 cpus are free, 1 GiB of 4 GiB of memory; driver/2 holds 1 cpu and 3 GiB of memory with 1 "
      "worker, for 31 s\n"
      "  node 1 has only 1 GiB of memory\n");
}

TEST(StatusWaitsTest, CallsThatWaitSayForWhom) {
  const json of_actor = {
      {"worker", 3},    {"node", 0}, {"actor", "17"}, {"actor_name", "parent"}, {"waits_for", "actor 'counter'"},
      {"waits_s", 12.0}};
  const json of_tasks = {{"worker", 4},           {"node", 1},     {"actor", nullptr}, {"owner", "driver/1"},
                         {"waits_for", "a task"}, {"waits_s", 2.0}};
  EXPECT_EQ(waits_text({{"workers", {of_actor, of_tasks, {{"worker", 5}}}}}),
            "worker 3 on node 0 (actor 'parent') waits for actor 'counter', for 12 s\n"
            "worker 4 on node 1 (tasks of driver/1) waits for a task, for 2.0 s\n");
}

TEST(StatusWaitsTest, WhatIsTooMuchToReadIsCounted) {
  json all = json::array();
  for (int i = 0; i < 20; ++i) all.push_back(tasks("driver/1", 0, 1));
  const auto text = waits_text({{"tasks", all}});
  EXPECT_NE(text.find("\nand 4 more that wait: "), std::string::npos) << text;
}

TEST(StatusWaitsTest, WhereNothingWaitsNothingIsSaid) {
  EXPECT_EQ(waits_text({{"tasks", {tasks("driver/1", 2, 0)}}, {"workers", json::array()}}), "");
  for (const json& odd : {json(), json(7), json{{"tasks", {1, nullptr}}, {"workers", "x"}}})
    EXPECT_EQ(waits_text(odd), "");
}

}  // namespace
}  // namespace paceline::cli
