#include "algorithms/topology/graph_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "runtime/base/test_directory.h"

namespace paceline::algorithms {
namespace {

using Lists = std::vector<std::vector<std::int32_t>>;

TEST(GraphFileTest, ReadsEdgesCommentsAndEmptyLines) {
  const auto graph = parse_graph("# A path.\n\n0 1\n  2\t1 # and back\r\n   \n2 3", "g", 4);
  ASSERT_TRUE(graph) << graph.error().text;
  EXPECT_EQ(graph->nodes, 4);
  EXPECT_EQ(graph->edges, (std::vector<Edge>{{0, 1}, {2, 1}, {2, 3}}));
}

TEST(GraphFileTest, ReadsDigraphsWithBothDirectionsOfAnEdge) {
  const auto graph = parse_digraph("0 2\n0 1\n1 2\n2 3\n3 0\n1 0\n", "g", 4);
  ASSERT_TRUE(graph) << graph.error().text;
  EXPECT_EQ(graph->out, (Lists{{1, 2}, {0, 2}, {3}, {0}}));
}

TEST(GraphFileTest, OneWorkerNeedsNoEdge) {
  EXPECT_TRUE(parse_graph("", "g", 1)->edges.empty());
  EXPECT_EQ(parse_digraph("# Nothing.\n", "g", 1)->out, Lists(1));
}

struct Bad {
  std::string text;
  std::int32_t workers;
  std::string error;
};

TEST(GraphFileTest, WhatIsWrongIsNamedWithItsLineAndTheMend) {
  const std::vector<Bad> cases{
      {"0 1\n1 two\n", 3, "g, line 2: 'two' is not a number: write a rank, 0 to 2"},
      {"0 1.5\n", 3, "g, line 1: '1.5' is not a number: write a rank, 0 to 2"},
      {"0 1\x01\x1b[2J\n", 3, "g, line 1: '1??[2J' is not a number: write a rank, 0 to 2"},
      {"#\n\n0\n", 3, "g, line 3: '0' is no edge: write 'i j', two ranks"},
      {"0 1 2\n", 3, "g, line 1: '0 1 2' is no edge: write 'i j', two ranks"},
      {std::string(60, 'x'), 3, "g, line 1: '" + std::string(40, 'x') + "...' is no edge: write 'i j', two ranks"},
      {"0 3\n", 3, "g, line 1: there is no rank 3 among 3 workers: ranks are 0 to 2, or use more workers"},
      {"0 -1\n", 3, "g, line 1: there is no rank -1 among 3 workers: ranks are 0 to 2, or use more workers"},
      {"99999999999999999999 0\n", 3,
       "g, line 1: there is no rank 99999999999999999999 among 3 workers: ranks are 0 to 2, or use more workers"},
      {"0 1\n", 1, "g, line 1: there is no rank 1 among 1 worker: ranks are 0 to 0, or use more workers"},
      {"0 1\n2 2\n", 3, "g, line 2: edge 2 2 leads from a rank to itself: remove it, everybody keeps a share anyway"},
      {"0 1\n1 2\n0 1\n", 3,
       "g, line 3: edge 0 1 is given twice, first in line 1: remove one; edges here have no direction, 'i j' is 'j i'"},
      {"0 1\n\n1 0\n", 3,
       "g, line 3: edge 1 0 is given twice, first in line 1: remove one; edges here have no direction, 'i j' is 'j i'"},
      {"0 1\n3 2\n", 4, "g: not connected, from 0 no path leads to 2, 3: add an edge between the parts"},
      {"0 1\n", 4, "g: names 2 of the 4 workers, in no edge is 2, 3: add edges, or use fewer workers"},
      {"", 20,
       "g: names 0 of the 20 workers, in no edge is 0, 1, 2, 3, 4, 5, 6, 7 and 12 more: add edges, or use fewer "
       "workers"}};
  for (const auto& [text, workers, error] : cases) {
    const auto graph = parse_graph(text, "g", workers);
    ASSERT_FALSE(graph) << text;
    EXPECT_EQ(graph.error().text, error);
    EXPECT_EQ(graph.error().kind, ErrorKind::invalid);
  }
}

TEST(GraphFileTest, WhatIsWrongInADigraphIsNamedToo) {
  const std::vector<Bad> cases{
      {"0 1 # only\n2\n", 3, "g, line 2: '2' is no edge: write 'from to', two ranks"},
      {"0 1\n1 2\n0 1\n", 3, "g, line 3: edge 0 1 is given twice, first in line 1: remove one"},
      {"0 1\n1 0\n2 1\n", 3,
       "g: not strongly connected, from 0 no path leads to 2: add an edge, so that what one worker sends comes to all"},
      {"0 1\n1 2\n2 1\n", 3,
       "g: not strongly connected, no path leads to 0 from 1, 2: add an edge, so that what one worker sends comes to "
       "all"},
      {"0 1\n1 0\n", 3, "g: names 2 of the 3 workers, in no edge is 2: add edges, or use fewer workers"}};
  for (const auto& [text, workers, error] : cases) {
    const auto graph = parse_digraph(text, "g", workers);
    ASSERT_FALSE(graph) << text;
    EXPECT_EQ(graph.error().text, error);
  }
}

TEST(GraphFileTest, MoreEdgesThanAreReadAreRefused) {
  std::string text;
  for (int i = 0; i < 1500; ++i)
    for (int j = 0; j < i && text.size() < kGraphBytesMax; ++j)
      text += std::to_string(i) + " " + std::to_string(j) + "\n";
  EXPECT_EQ(parse_graph(text, "g", 1500).error().text, "g, line 1048577: more than 1048576 edges: use a sparser graph");
}

class GraphFileOnDiskTest : public testing::Test {
 protected:
  test::TestDirectory directory;
  std::filesystem::path folder = directory.path, file = folder / "graph.txt";
};

TEST_F(GraphFileOnDiskTest, IsRead) {
  std::ofstream(file) << "0 1\n1 2\n2 0\n";
  EXPECT_EQ(read_graph(file, 3)->edges.size(), 3u);
  EXPECT_EQ(read_digraph(file, 3)->out, (Lists{{1}, {2}, {0}}));
  EXPECT_EQ(read_graph(file, 2).error().text,
            file.string() + ", line 2: there is no rank 2 among 2 workers: ranks are 0 to 1, or use more workers");
}

TEST_F(GraphFileOnDiskTest, ThatIsNotThereOrNoFileIsNamed) {
  const auto missing = read_graph(file, 3);
  EXPECT_EQ(missing.error().text, file.string() + ": there is no such file: name one with an edge 'i j' a line");
  EXPECT_EQ(missing.error().kind, ErrorKind::not_found);
  EXPECT_EQ(read_digraph(folder, 3).error().text,
            folder.string() + ": not a file that can be read: name one with an edge 'i j' a line");
}

TEST_F(GraphFileOnDiskTest, ThatIsHugeIsRefusedBeforeItIsRead) {
  std::ofstream(file) << "0 1\n";
  std::filesystem::resize_file(file, std::uintmax_t{1} << 30);  // A hole: it takes no room.
  EXPECT_EQ(read_graph(file, 2).error().text,
            file.string() + ": bigger than 16 MiB, the most that is read: use a sparser graph");
}

}  // namespace
}  // namespace paceline::algorithms
