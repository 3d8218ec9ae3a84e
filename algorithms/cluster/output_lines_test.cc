#include "algorithms/cluster/output_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace paceline::cluster {
namespace {

/// All parts as they would be shown.
std::string shown(OutputLines& sut) {
  std::string text;
  for (const auto& part : sut.take_parts()) {
    if (part.left_out > 0) text += "<" + std::to_string(part.left_out) + ">";
    text += part.lines;
  }
  return text;
}

/// A log that grows, and is read in pieces.
struct Log {
  explicit Log(OutputLines::Options options = {}) : sut(0, options) {}
  void print(const std::string& more, bool hurry = false) {
    text += more;
    sut.on_size(static_cast<std::int64_t>(text.size()), hurry);
  }
  void read(std::size_t bytes_max = 1 << 20) {
    sut.take(std::string_view(text).substr(static_cast<std::size_t>(sut.position()), bytes_max));
  }
  std::string text;
  OutputLines sut;
};

constexpr OutputLines::Options kSmall{.line_bytes_max = 8, .behind_max = 100, .at_end_max = 20, .shown_after = 10};

TEST(OutputLinesTest, GivesWholeLinesOnly) {
  Log log;
  log.print("one\ntw");
  log.read();
  EXPECT_EQ(shown(log.sut), "one\n");
  log.print("o\n\nthree");
  log.read();
  EXPECT_EQ(shown(log.sut), "two\n\n");
  EXPECT_EQ(log.sut.unread(), 0);
  EXPECT_EQ(shown(log.sut), "");
}

TEST(OutputLinesTest, BeginsWhereTheWorkerBegan) {
  OutputLines sut(100);
  sut.on_size(104);
  EXPECT_EQ(sut.position(), 100);
  sut.take("one\n");
  EXPECT_EQ(shown(sut), "one\n");
}

TEST(OutputLinesTest, WhatABegunLineHasIsALineAtTheEnd) {
  Log log;
  log.print("half a li");
  log.read();
  log.sut.end_line();
  log.sut.end_line();
  EXPECT_EQ(shown(log.sut), "half a li\n");
}

TEST(OutputLinesTest, CutsALongLineAndSaysHowMuchIsMissing) {
  Log log(kSmall);
  log.print("12345678\n123456789012\nx\n");
  log.read(5);
  log.read();
  EXPECT_EQ(shown(log.sut), "12345678\n1234567 ... (5 more bytes)\nx\n");
}

TEST(OutputLinesTest, CutsNoCharacterInTwo) {
  Log log(kSmall);
  log.print("123456\xe2\x82\xac...\n");
  log.read();
  EXPECT_EQ(shown(log.sut), "123456 ... (6 more bytes)\n");
}

TEST(OutputLinesTest, ALineEndOfTwoBytesIsOne) {
  Log log;
  log.print("one\r\n");
  log.read();
  EXPECT_EQ(shown(log.sut), "one\n");
}

TEST(OutputLinesTest, LeavesOutWhatIsTooFarBehindAndCountsIt) {
  Log log(kSmall);
  for (int i = 100; i < 200; ++i) log.print(std::to_string(i) + "\n");  // 4 bytes each.
  EXPECT_TRUE(log.sut.leaves_out());
  log.read(33);  // In the middle of a line.
  EXPECT_EQ(shown(log.sut), "");
  log.read();
  EXPECT_EQ(shown(log.sut), "<98>198\n199\n");
  EXPECT_FALSE(log.sut.leaves_out());
}

TEST(OutputLinesTest, LinesBeforeThoseLeftOutStayBeforeThem) {
  Log log(kSmall);
  log.print("a\nb");
  log.read();
  log.print(std::string(200, '\n'));
  log.read();
  EXPECT_EQ(shown(log.sut), "a\n<190>\n\n\n\n\n\n\n\n\n\n") << "the line that had begun is one of those left out";
}

TEST(OutputLinesTest, LeavesOutSoonerWhereSomebodyWaits) {
  for (const bool hurry : {false, true}) {
    Log log(kSmall);
    log.print(std::string(50, '\n'), hurry);
    log.read();
    EXPECT_EQ(shown(log.sut), hurry ? "<40>" + std::string(10, '\n') : std::string(50, '\n'));
  }
}

TEST(OutputLinesTest, AnEndlessLineIsLeftOutAsOne) {
  Log log(kSmall);
  log.print(std::string(1000, 'x'));
  log.read();
  log.sut.end_line();
  EXPECT_EQ(shown(log.sut), "<1>");
}

TEST(OutputLinesTest, GoesOnWithALogThatWasCutOff) {
  Log log;
  log.print("one\ntwo\n");
  log.read();
  log.text = "";
  log.print("");
  log.print("three\n");
  log.read();
  EXPECT_EQ(shown(log.sut), "one\ntwo\nthree\n");
}

TEST(OutputLinesTest, EachLineIsShownOrCountedHoweverTheLogGrowsAndIsRead) {
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (int run = 0; run < 300; ++run) {
    Log log({.line_bytes_max = 8,
             .behind_max = 30 + static_cast<std::int64_t>(below(100)),
             .at_end_max = 20,
             .shown_after = 1 + static_cast<std::int64_t>(below(20))});
    std::uint64_t printed = 0, counted = 0;
    const auto count = [&] {
      for (const auto& part : log.sut.take_parts())
        counted += part.left_out + static_cast<std::uint64_t>(std::count(part.lines.begin(), part.lines.end(), '\n'));
    };
    for (int step = 0; step < 50; ++step) {
      const auto lines = below(12);
      std::string text;
      for (std::size_t i = 0; i < lines; ++i) text += std::string(below(12), 'x') + "\n";
      printed += lines;
      log.print(text, below(4) == 0);
      for (auto reads = below(3); reads > 0 && log.sut.unread() > 0; --reads) log.read(1 + below(60));
      if (below(2) == 0) count();
    }
    while (log.sut.unread() > 0) log.read(7);
    log.sut.end_line();
    count();
    ASSERT_EQ(counted, printed) << "run " << run;
  }
}

}  // namespace
}  // namespace paceline::cluster
