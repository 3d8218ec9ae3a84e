#include "cli/list_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

using nlohmann::json;
using testing::ElementsAre;

const json kDriver = "driver/7-1";

json worker(int number, int node, const std::string& state) {
  return {{"id", std::to_string(number)},
          {"worker", number},
          {"node", node},
          {"pid", 40 + number},
          {"state", state},
          {"driver", kDriver},
          {"owner", nullptr},
          {"cpus", nullptr},
          {"on", nullptr},
          {"lent_s", nullptr},
          {"actor", nullptr},
          {"actor_name", nullptr},
          {"class", nullptr},
          {"waits_for", nullptr},
          {"waits_s", nullptr},
          {"age_s", 75.0},
          {"log", "/logs/" + std::to_string(number) + ".log"}};
}

json listed_cluster() {
  json lent = worker(1, 0, "lent");
  lent.update({{"owner", kDriver}, {"cpus", 1}, {"lent_s", 12.0}, {"running", {{{"name", "square(int)"}}}}});
  json waits = worker(2, 1, "waiting");
  waits.update(
      {{"owner", "worker/1"}, {"cpus", 0.5}, {"on", 1}, {"lent_s", 3.0}, {"waits_for", "a task"}, {"waits_s", 2.0}});
  json actor = worker(3, 1, "actor");
  actor.update({{"owner", kDriver}, {"actor", "17"}, {"actor_name", "counter"}, {"class", "Counter"}});
  return {{"nodes_expected", 3},
          {"nodes",
           {{{"node", 0},
             {"answers", true},
             {"address", "tcp://h:1"},
             {"cpus", 2},
             {"cpus_free", 1.0},
             {"memory", std::uint64_t{16} << 30},
             {"memory_free", std::uint64_t{4} << 30},
             {"workers", 1},
             {"actors", 0},
             {"starts", 2},
             {"pid", 5}},
            {{"node", 1}, {"answers", false}, {"address", "tcp://h:2"}, {"cpus", 2}, {"starts", 1}, {"pid", 6}}}},
          {"workers", {lent, waits, actor, worker(4, 0, "idle")}},
          {"tasks",
           {{{"owner", kDriver},
             {"node", 0},
             {"driver", kDriver},
             {"program", "/bin/square"},
             {"state", "waiting"},
             {"cpus", 1.0},
             {"on", nullptr},
             {"lent", 1},
             {"missing", 3},
             {"waits_s", 61.0},
             {"running", {{{"name", "square(int)"}}, {{"name", "square(int)"}}}}}}},
          {"jobs",
           {{{"job", 1},
             {"strategy", "allreduce"},
             {"update", 3},
             {"updates", 9},
             {"workers", {{{"node", 1}}}},
             {"waiting", json::object()}},
            {{"job", 2}, {"strategy", "sgp"}, {"starting", json::object()}}}},
          {"actors",
           {{{"id", "17"},
             {"name", ""},
             {"class", "Counter"},
             {"node", 1},
             {"pid", 42},
             {"state", "alive"},
             {"owner", kDriver},
             {"detached", false},
             {"calls", 3}},
            {{"id", "18"},
             {"name", "x"},
             {"class", "Counter"},
             {"node", 0},
             {"pid", -1},
             {"state", "starting"},
             {"owner", ""},
             {"detached", true},
             {"calls", 0}}}}};
}

std::vector<std::string> ids(Listed listed, const ListFilter& filter) {
  std::vector<std::string> ids;
  const auto rows = rows_of(listed, listed_cluster(), filter);
  for (const auto& row : rows.value_or(ListRows{}))
    ids.push_back(row.contains("id") ? row["id"].get<std::string>()
                                     : json_text(row[name_of(listed).substr(0, 4) == "node" ? "node" : "job"]));
  return ids;
}

std::string error(Listed listed, const ListFilter& filter) {
  const auto rows = rows_of(listed, listed_cluster(), filter);
  return rows ? "" : rows.error().text;
}

std::string table(Listed listed) { return rows_text(listed, rows_of(listed, listed_cluster(), {}).value()); }

TEST(ListViewTest, NodesThatAreSilentOrMissingAreListedToo) {
  EXPECT_EQ(table(Listed::nodes),
            "node  state    address    cpus  free  memory   free  workers  actors  starts  pid\n"
            "────  ───────  ─────────  ────  ────  ──────  ─────  ───────  ──────  ──────  ───\n"
            "   0  alive    tcp://h:1     2     1  16 GiB  4 GiB        1       0       2    5\n"
            "   1  silent   tcp://h:2     2     -       -      -        -       -       1    6\n"
            "   2  missing  -             -     -       -      -        -       -       -    -\n");
  EXPECT_THAT(silent_nodes(Listed::workers, listed_cluster(), {}), ElementsAre("1", "2"));
  EXPECT_THAT(silent_nodes(Listed::workers, listed_cluster(), {.node = 0}), ElementsAre());
}

TEST(ListViewTest, ADrainedNodeIsCalledSo) {
  auto cluster = listed_cluster();
  for (auto& node : cluster["nodes"]) node["drained"] = true;
  const auto rows = rows_of(Listed::nodes, cluster, {}).value();
  EXPECT_EQ(rows[0]["state"], "drained");
  EXPECT_EQ(rows[1]["state"], "silent");
}

TEST(ListViewTest, AWorkerSaysWhomItIsLentToWhichActorItIsAndWhatItWaitsFor) {
  EXPECT_EQ(table(Listed::workers),
            "worker  node  pid  state    owner       for                 since  runs    waits for      log\n"
            "──────  ────  ───  ───────  ──────────  ──────────────────  ─────  ──────  ─────────────  ───────────\n"
            "     1     0   41  lent     driver/7-1  1 cpu               12 s   square  -              /logs/1.log\n"
            "     2     1   42  waiting  worker/1    0.5 cpus on node 1  3.0 s  -       a task, 2.0 s  /logs/2.log\n"
            "     3     1   43  actor    driver/7-1  Counter counter     1:15   -       -              /logs/3.log\n"
            "     4     0   44  idle     -           -                   1:15   -       -              /logs/4.log\n");
}

TEST(ListViewTest, TasksSayHowManyWorkersAreMissing) {
  EXPECT_EQ(table(Listed::tasks),
            "owner       node  program      state    cpus  memory  on  lent  missing  waits  runs\n"
            "──────────  ────  ───────────  ───────  ────  ──────  ──  ────  ───────  ─────  ────────\n"
            "driver/7-1     0  /bin/square  waiting     1       -   -     1        3  1:01   2 square\n");
}

TEST(ListViewTest, JobsThatAreOverSayWhatCameOfThem) {
  auto status = listed_cluster();
  status["jobs_over"] = {
      {{"job", 0},
       {"state", "ended"},
       {"strategy", "wagma"},
       {"updates", 120},
       {"nodes", {0, 1}},
       {"took_s", 65.0},
       {"metric", "accuracy"},
       {"value", 0.885},
       {"ended", "2026-01-01T00:00:00Z"},
       {"script", "a.cpp"}},
      {{"job", 2},
       {"state", "failed"},
       {"strategy", "sgp"},
       {"updates", 7},
       {"nodes", {0}},
       {"took_s", 5.0},
       {"failure", "node 1 was lost, with its workers (its process ended): go on from the last checkpoint"},
       {"ended", "2026-01-01T00:00:00Z"}}};
  EXPECT_EQ(rows_text(Listed::jobs, rows_of(Listed::jobs, status, {}).value()),
            "job  state    strategy   update  updates  workers  time   result                                          "
            "                 script\n"
            "───  ───────  ─────────  ──────  ───────  ───────  ─────  "
            "───────────────────────────────────────────────────────────────  ──────\n"
            "  0  ended    wagma         120        -        2  1:05   accuracy 88.5 %                                 "
            "                 a.cpp\n"
            "  2  failed   sgp             7        -        1  5.0 s  node 1 was lost, with its workers (its process "
            "ended): go on...  -\n"
            "  1  waiting  allreduce       3        9        1  -      -                                               "
            "                 -\n");
  EXPECT_EQ(rows_of(Listed::jobs, status, {.state = "ended"})->size(), 1U);
  EXPECT_EQ(rows_of(Listed::jobs, status, {.node = 0})->size(), 2U);
}

TEST(ListViewTest, JobsHaveStates) {
  EXPECT_THAT(ids(Listed::jobs, {.state = "waiting"}), ElementsAre("1"));
  EXPECT_THAT(ids(Listed::jobs, {.state = "starting"}), ElementsAre("2"));
  EXPECT_THAT(ids(Listed::jobs, {.node = 1}), ElementsAre("1"));
}

TEST(ListViewTest, ActorsAreShownWithTheirOwners) {
  EXPECT_EQ(table(Listed::actors),
            "id  name  class    node  pid  state     owner       calls\n"
            "──  ────  ───────  ────  ───  ────────  ──────────  ─────\n"
            "17  -     Counter     1   42  alive     driver/7-1      3\n"
            "18  x     Counter     0    -  starting  detached        0\n");
  const auto rows = rows_of(Listed::actors, listed_cluster(), {});
  EXPECT_EQ(rows_json(*rows),
            json_text(listed_cluster()["actors"][0]) + "\n" + json_text(listed_cluster()["actors"][1]) + "\n");
  EXPECT_EQ(rows_text(Listed::actors, {}), "no actor lives\n");
}

TEST(ListViewTest, FiltersChooseByNodeOwnerAndState) {
  EXPECT_THAT(ids(Listed::workers, {.node = 1}), ElementsAre("2", "3"));
  EXPECT_THAT(ids(Listed::workers, {.owner = "worker/1"}), ElementsAre("2"));
  EXPECT_THAT(ids(Listed::workers, {.owner = "driver/7"}), ElementsAre("1", "2", "3", "4")) << "on its behalf";
  EXPECT_THAT(ids(Listed::workers, {.node = 1, .owner = "driver/7-1", .state = "actor"}), ElementsAre("3"));
  EXPECT_THAT(ids(Listed::actors, {.owner = "detached"}), ElementsAre("18"));
  EXPECT_THAT(ids(Listed::nodes, {.state = "missing"}), ElementsAre("2"));
}

TEST(ListViewTest, AFilterThatFitsNothingSaysWhatThereIs) {
  EXPECT_EQ(error(Listed::workers, {.node = 3}), "there is no node 3: this cluster has nodes 0 to 2");
  EXPECT_EQ(error(Listed::workers, {.owner = "driver/8"}),
            "driver/8 has no workers: those who have are driver/7-1, worker/1");
  EXPECT_EQ(error(Listed::actors, {.state = "dead"}),
            "actors are never 'dead': their states are starting, constructing, alive");
  EXPECT_EQ(error(Listed::nodes, {.owner = "driver/7"}), "nodes have no owners: leave out --owner");
  EXPECT_EQ(listed_by("worker").error().text,
            "there is no list of worker; did you mean workers?: try `paceline list` with one of nodes, workers, tasks, "
            "jobs, actors");
  EXPECT_EQ(rows_of(Listed::tasks, json{{"nodes_expected", 1}}, {.owner = "x"}).error().text,
            "nobody has tasks, x neither");
}

TEST(ListViewTest, AnAnswerOfAnotherShapeIsNoReasonToDie) {
  for (const json& odd :
       {json(), json(7), json{{"nodes", {nullptr, 1}}, {"workers", {1, "x"}}, {"tasks", 3}, {"jobs", {nullptr}}},
        json{{"nodes_expected", 1e300}, {"actors", {{{"detached", 3}, {"owner", 7}}}}},
        json{{"workers", {{{"owner", {1}}, {"cpus", "x"}, {"lent_s", 1e300}}}}}}) {
    for (const Listed listed : {Listed::nodes, Listed::workers, Listed::tasks, Listed::jobs, Listed::actors}) {
      const auto rows = rows_of(listed, odd, {});
      ASSERT_TRUE(rows);
      EXPECT_FALSE(rows_text(listed, *rows).empty());
    }
  }
}

}  // namespace
}  // namespace paceline::cli
