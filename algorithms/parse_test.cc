#include "algorithms/parse.h"

#include <gtest/gtest.h>

namespace paceline::algorithms {
namespace {

using namespace std::chrono_literals;
using Pieces = std::vector<std::string>;

std::string parse_error(std::string_view text) {
  const auto call = parse_call(text);
  return call ? "no error" : call.error().text;
}

std::string split_error(std::string_view text) {
  const auto pieces = split_strategies(text);
  return pieces ? "no error" : pieces.error().text;
}

TEST(ParseCallTest, ReadsNamesKeysAndNestedCalls) {
  const auto call = parse_call(" nonblocking( d-psgd(peers=2) , batches = 8 ) ");
  ASSERT_TRUE(call) << call.error().text;
  EXPECT_EQ(call->name, "nonblocking");
  ASSERT_EQ(call->arguments.size(), 2u);
  EXPECT_EQ(call->arguments[0].key, "");
  EXPECT_EQ(call->arguments[0].value.name, "d-psgd");
  EXPECT_EQ(call->arguments[0].value.arguments.at(0).key, "peers");
  EXPECT_EQ(call->arguments[1].key, "batches");
  EXPECT_EQ(call->arguments[1].value.name, "8");
}

TEST(ParseCallTest, EmptyParenthesesAreNoArguments) {
  EXPECT_TRUE(parse_call("allreduce")->arguments.empty());
  EXPECT_TRUE(parse_call("allreduce()")->arguments.empty());
}

TEST(ParseCallTest, SyntaxErrorsSayWhatIsMissingAndWhere) {
  EXPECT_EQ(
      parse_error("wagma(group=2"),
      "strategy 'wagma(group=2': a ')' is missing at the end; strategies are written like wagma(group=2,sync=10)");
  EXPECT_NE(parse_error("wagma(group=)").find("a name or value is missing at character 13"), std::string::npos);
  EXPECT_NE(parse_error("wagma(=2)").find("the parameter's name is missing at character 7"), std::string::npos);
  EXPECT_NE(parse_error("wagma(a=1,)").find("a name or value is missing at character 11"), std::string::npos);
  EXPECT_NE(parse_error("wagma(a=1 b=2)").find("',' or ')' is missing at character 11"), std::string::npos);
  EXPECT_NE(parse_error("wagma)").find("unexpected ')' at character 6"), std::string::npos);
  EXPECT_NE(parse_error("a(b(c(d(e(f)))))").find("more than 4 nested"), std::string::npos);
  EXPECT_NE(parse_error(std::string(1001, 'a')).find("longer than 1000"), std::string::npos);
}

TEST(SplitStrategiesTest, CommasInsideParenthesesDoNotSplit) {
  EXPECT_EQ(*split_strategies("allreduce,nonblocking,wagma,wagma(late=skip)"),
            (Pieces{"allreduce", "nonblocking", "wagma", "wagma(late=skip)"}));
  EXPECT_EQ(*split_strategies(" wagma(group=2,sync=5) , nonblocking(allreduce(),batches=4)"),
            (Pieces{"wagma(group=2,sync=5)", "nonblocking(allreduce(),batches=4)"}));
  EXPECT_EQ(*split_strategies("allreduce"), Pieces{"allreduce"});
}

TEST(SplitStrategiesTest, EmptyEntriesAndLooseParenthesesAreRefused) {
  EXPECT_EQ(split_error("allreduce,,wagma"),
            "list of strategies 'allreduce,,wagma': entry 2 is empty; write e.g. 'allreduce,wagma(late=skip)'");
  EXPECT_NE(split_error("").find("entry 1 is empty"), std::string::npos);
  EXPECT_NE(split_error("allreduce, ").find("entry 2 is empty"), std::string::npos);
  EXPECT_NE(split_error("wagma(a=1,b").find("a ')' is missing"), std::string::npos);
  EXPECT_NE(split_error("wagma),b").find("a '(' is missing"), std::string::npos);
}

TEST(ReadValueTest, DurationsHaveUnits) {
  EXPECT_EQ(read_duration("2s"), Duration(2s));
  EXPECT_EQ(read_duration("500ms"), Duration(500ms));
  EXPECT_EQ(read_duration("1.5min"), Duration(90s));
  EXPECT_EQ(read_duration("20us"), Duration(20us));
  EXPECT_EQ(read_duration("3ns"), Duration(3ns));
  EXPECT_EQ(read_duration("1h"), Duration(1h));
  for (const auto* word : {"2", "s", "-1s", "2 s", "2ss", "infs", "nans", "1e300s", "2x", ""})
    EXPECT_EQ(read_duration(word), std::nullopt) << word;
}

TEST(ReadValueTest, NumbersAreWholeWordsAndFinite) {
  EXPECT_EQ(read_integer("12"), 12);
  EXPECT_EQ(read_integer("-3"), -3);
  for (const auto* word : {"", "1.5", "12a", "0x10", "99999999999999999999"})
    EXPECT_EQ(read_integer(word), std::nullopt) << word;
  EXPECT_EQ(read_real("1e-3"), 1e-3);
  for (const auto* word : {"", "inf", "nan", "1e999", "1,5"}) EXPECT_EQ(read_real(word), std::nullopt) << word;
  EXPECT_EQ(read_factor("1.5x"), 1.5);
  EXPECT_EQ(read_factor("1.5"), std::nullopt);
}

}  // namespace
}  // namespace paceline::algorithms
