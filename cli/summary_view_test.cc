#include "cli/summary_view.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

TEST(SummaryViewTest, WhatThereIsIsCountedByState) {
  const json status = {{"nodes_expected", 3},
                       {"nodes",
                        {{{"node", 0}, {"answers", true}, {"cpus", 2}, {"cpus_free", 0.5}},
                         {{"node", 1}, {"answers", true}, {"cpus", 2}, {"cpus_free", 2}}}},
                       {"workers", {{{"state", "lent"}}, {{"state", "lent"}}, {{"state", "idle"}}}},
                       {"actors",
                        {{{"class", "Counter"}, {"state", "alive"}},
                         {{"class", "Counter"}, {"state", "starting"}},
                         {{"class", "Store"}, {"state", "alive"}}}},
                       {"tasks", {{{"lent", 2}, {"missing", 0}}, {{"lent", 0}, {"missing", 4}}}},
                       {"jobs", {{{"job", 1}, {"update", 3}}}}};
  EXPECT_EQ(summary_text(summary_of(status)),
            "nodes    2 alive, 1 missing; 2.5 of 4 cpus are free\n"
            "workers  1 idle, 2 lent\n"
            "actors   2 alive, 1 starting\n"
            "         Counter: 1 alive, 1 starting\n"
            "         Store: 1 alive\n"
            "tasks    2 workers lent for 2 kinds of tasks, up to 4 more would be of use; without any: 1\n"
            "jobs     1 running\n");
  EXPECT_EQ(summary_of(status)["tasks"]["waiting"], 1);
  EXPECT_EQ(summary_of(status)["actors_by_class"]["Counter"]["starting"], 1);
}

TEST(SummaryViewTest, WhereThereIsNothingZeroesAreShown) {
  for (const json& odd :
       {json(), json(7), json{{"nodes", {1, nullptr}}, {"workers", "x"}, {"tasks", {3}}, {"actors", {nullptr}}}}) {
    const auto text = summary_text(summary_of(odd));
    EXPECT_NE(text.find("workers  0\n"), std::string::npos) << text;
    EXPECT_NE(text.find("jobs     0\n"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace paceline::cli
