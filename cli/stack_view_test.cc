#include "cli/stack_view.h"

#include <gmock/gmock.h>

#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json worker(int number, int node, const char* actor) {
  return {{"id", std::to_string((std::int64_t{node} << 32) + number)},
          {"worker", number},
          {"node", node},
          {"pid", 40 + number},
          {"state", "lent"},
          {"actor_name", actor == nullptr ? json() : json(actor)},
          {"running", {{{"name", "square(int)"}}}}};
}

json stack_cluster() {
  json unborn = worker(4, 0, nullptr);
  unborn["pid"] = -1;
  return {
      {"nodes_expected", 3},
      {"nodes", {{{"node", 0}, {"machine", "here"}}, {{"node", 1}, {"machine", "here"}}, {{"node", 2}}}},
      {"workers", {worker(1, 0, nullptr), worker(2, 0, "counter"), worker(1, 1, ""), worker(3, 2, nullptr), unborn}}};
}

std::string id_of(const std::string& wanted, std::optional<std::int64_t> node = {}) {
  const auto found = worker_found(stack_cluster(), wanted, node, "here");
  return found ? (*found)["id"].get<std::string>() : found.error().text;
}

TEST(StackViewTest, AWorkerIsFoundByNumberIdOrName) {
  EXPECT_EQ(id_of("2"), "2");
  EXPECT_EQ(id_of("counter"), "2");
  EXPECT_EQ(id_of("1", 0), "1");
  EXPECT_EQ(id_of("1", 1), "4294967297");
  EXPECT_EQ(id_of("4294967297"), "4294967297");
}

TEST(StackViewTest, OneThatIsNotThereIsAnErrorThatSaysWhatIs) {
  EXPECT_EQ(id_of("1"), "'1' may be worker 1 on node 0, worker 1 on node 1: say which by its number and --node");
  EXPECT_EQ(id_of("countr", 0),
            "no worker 'countr' runs; did you mean 'counter'?: there are worker 1 on node 0, worker 2 on node 0 (actor "
            "'counter'), worker 4 on node 0; `paceline list workers` shows all");
  EXPECT_THAT(id_of(""), HasSubstr("no worker '' runs: there are worker 1 on node 0"));
  EXPECT_THAT(id_of("2", 7), HasSubstr("there is no node 7"));
  EXPECT_EQ(id_of("4"), "worker 4 on node 0 has no process yet: try again in a moment");
  EXPECT_EQ(id_of("3"), "worker 3 on node 2 runs on another machine, or in another container: run this there");
  const auto nobody = worker_found(json::object(), "1", {}, "here");
  EXPECT_EQ(nobody.error().text, "no worker '1' runs, nor any other; `paceline list workers` shows all");
  EXPECT_EQ(worker_found(stack_cluster(), "9", {}, "here").error().kind, ErrorKind::not_found);
}

TEST(StackViewTest, FramesAreShownWithWhatIsKnownOfThem) {
  const std::vector<ThreadStack> stacks = {
      {42, "main", {{0x7f00, "square(int)", "/bin/script", "/src/script.cc", 7}, {0x10, "poll", "/lib/libc.so.6"}}},
      {43, "", {{0xff, ""}}, "no frame"}};
  EXPECT_EQ(stack_text(worker(2, 0, "counter"), stacks),
            "worker 2 on node 0 (actor 'counter'), process 42, runs square\n"
            "\n"
            "thread 42 main\n"
            "  #0   0x000000007f00  square(int)  at /src/script.cc:7\n"
            "  #1   0x000000000010  poll  in libc.so.6\n"
            "\n"
            "thread 43\n"
            "  #0   0x0000000000ff  ?\n"
            "  (not all: no frame)\n");
  const auto shown = stack_json(worker(2, 0, "counter"), stacks);
  EXPECT_EQ(shown["pid"], 42);
  EXPECT_EQ(shown["threads"][0]["frames"][0], (json{{"address", "0x000000007f00"},
                                                    {"function", "square(int)"},
                                                    {"object", "/bin/script"},
                                                    {"file", "/src/script.cc"},
                                                    {"line", 7},
                                                    {"inlined", false}}));
  EXPECT_EQ(shown["threads"][0]["frames"][1]["line"], json());
  EXPECT_EQ(shown["threads"][1]["cut"], "no frame");
}

}  // namespace
}  // namespace paceline::cli
