#include "runtime/observe/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime/observe/format.h"
#include "runtime/observe/table.h"
#include "runtime/observe/text_width.h"

namespace paceline::observe {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

RunView two_workers() {
  return {.strategy = "wagma(group=2)",
          .update = 120,
          .updates = 5625,
          .epoch = 1,
          .epochs = 3,
          .samples_per_s = 11'540,
          .loss = 0.43215,
          .metric = "accuracy 88.1 %",
          .elapsed = 12'300ms,
          .eta = 187s,
          .workers = {
              {.rank = Rank(0), .node = NodeId(0), .step = 120, .samples_per_s = 5770, .state = "compute"},
              {.rank = Rank(1), .node = NodeId(1), .step = 118, .samples_per_s = 1443.4, .state = "frozen", .lag = 2}}};
}

TEST(RenderTest, BlockHasAHeadlineAndARowAWorker) {
  EXPECT_THAT(
      render(two_workers(), 200, false),
      ElementsAre(
          "wagma(group=2)  update 120/5625  epoch 1/3  11.5 k samples/s  loss 0.4321  accuracy 88.1 %  12 s, 3:07 left",
          "  worker 0   node 0   step 120         5770 samples/s  compute",
          "  worker 1   node 1   step 118         1443 samples/s  frozen     2 behind"));
}

TEST(RenderTest, WhatTheJobLogsHasALineOfItsOwn) {
  RunView view = two_workers();
  view.logged = {{"entropy", 0.123456}, {"return", -21}};
  EXPECT_EQ(render(view, 200, false)[1], "  entropy 0.1235  return -21");
}

TEST(RenderTest, OfManyLoggedNamesThoseWithRoomAreShownAndTheOthersCounted) {
  RunView view = two_workers();
  for (int i = 0; i < 11; ++i) view.logged.emplace_back("value" + std::to_string(i), i);
  EXPECT_EQ(render(view, 200, false)[1],
            "  value0 0  value1 1  value2 2  value3 3  value4 4  value5 5  value6 6  value7 7  and 3 more");
  EXPECT_EQ(render(view, 44, false)[1], "  value0 0  value1 1  value2 2  and 8 more");
  EXPECT_EQ(render(view, 43, false)[1], "  value0 0  value1 1  value2 2  and 8 more");
  EXPECT_EQ(render(view, 41, false)[1], "  value0 0  value1 1  and 9 more");
}

TEST(RenderTest, ALineForALogHasWhatTheJobLogs) {
  RunView view = two_workers();
  view.logged = {{"entropy", 0.123456}};
  EXPECT_NE(render_line(view).find("3:07 left  entropy 0.1235  worker 1 frozen"), std::string::npos)
      << render_line(view);
}

TEST(RenderTest, WhatIsNotKnownIsLeftOut) {
  EXPECT_THAT(render({.strategy = "allreduce", .update = 3}, 200, false),
              ElementsAre("allreduce  update 3  0 samples/s  0.0 s"));
}

TEST(RenderTest, EveryLineFitsTheWidthWithAndWithoutColor) {
  for (std::size_t width = 0; width < 120; ++width)
    for (const bool color : {false, true})
      for (const std::string& line : render(two_workers(), width, color)) EXPECT_LE(text_width(line), width);
}

TEST(RenderTest, ColorChangesNoColumnAndIsAlwaysReset) {
  const auto plain = render(two_workers(), 120, false), colored = render(two_workers(), 120, true);
  EXPECT_NE(plain, colored);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(text_width(plain[i]), text_width(colored[i])) << plain[i];
  EXPECT_NE(colored[2].find("\x1b[31mfrozen"), std::string::npos);
  EXPECT_NE(colored[2].find("\x1b[0m"), std::string::npos);
}

TEST(RenderTest, OfManyWorkersTheTroubledOnesAreShown) {
  RunView view = two_workers();
  view.workers.clear();
  for (int i = 0; i < 100; ++i)
    view.workers.push_back({.rank = Rank(i), .state = i == 90 ? "dead" : "compute", .lag = i == 50 ? 7 : 0});
  const auto lines = render(view, 200, false);
  ASSERT_EQ(lines.size(), 1 + kWorkerRowsMax + 1);
  EXPECT_EQ(lines.back(), "  ... and 84 more");
  EXPECT_NE(lines[15].find("worker 50"), std::string::npos);
  EXPECT_NE(lines[16].find("worker 90"), std::string::npos);
  EXPECT_TRUE(render_line(view).ends_with("  worker 90 dead")) << render_line(view);
}

TEST(RenderTest, DurationsAreShort) {
  EXPECT_EQ(duration_text(0s), "0.0 s");
  EXPECT_EQ(duration_text(9'949ms), "9.9 s");
  EXPECT_EQ(duration_text(59'600ms), "1:00");
  EXPECT_EQ(duration_text(3'723s), "1:02:03");
}

class LiveBlockTest : public testing::Test {
 protected:
  void SetUp() override {
    const winsize size{.ws_row = 24, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(::openpty(&screen, &terminal, nullptr, nullptr, &size), 0);
    ::setenv("NO_COLOR", "1", 1);
  }
  void TearDown() override {
    ::close(screen);
    ::close(terminal);
    ::unsetenv("NO_COLOR");
  }
  /// What the terminal got since the last call, line ends as "\n". A terminal passes bytes on in order but not at once:
  /// read up to a mark.
  std::string shown() {
    const std::string mark = "\x01";
    EXPECT_EQ(::write(terminal, mark.data(), mark.size()), 1);
    std::string text;
    while (!text.ends_with(mark)) {
      char part[256];
      pollfd waiting{screen, POLLIN, 0};
      const ssize_t got = ::poll(&waiting, 1, 60'000) > 0 ? ::read(screen, part, sizeof part) : 0;
      if (got <= 0) return "nothing arrived at the terminal";
      text.append(part, static_cast<std::size_t>(got));
    }
    text.pop_back();
    std::erase(text, '\r');
    return text;
  }
  int screen = -1, terminal = -1;
};

TEST_F(LiveBlockTest, RedrawsInPlaceAtMostTenTimesASecondWithinTheWidth) {
  LiveBlock sut(terminal);
  RunView view{.strategy = "allreduce with a name that does not fit", .update = 1};
  sut.show(view, Instant(0s));
  EXPECT_EQ(shown(), "allreduce with a name that does not fit\n");
  view.strategy = "a";
  sut.show(view, Instant(99ms));
  EXPECT_EQ(shown(), "");
  sut.show(view, Instant(100ms));
  EXPECT_EQ(shown(), "\x1b[1A\x1b[Ja  update 1  0 samples/s  0.0 s\n");
}

TEST_F(LiveBlockTest, PrintedLinesStandAboveTheBlockAndTheLastBlockStays) {
  LiveBlock sut(terminal);
  const RunView view{.strategy = "a", .update = 1};
  sut.show(view, Instant(0s));
  (void)shown();
  sut.print("worker 3: hello");
  EXPECT_EQ(shown(), "\x1b[1A\x1b[Jworker 3: hello\na  update 1  0 samples/s  0.0 s\n");
  sut.finish(view);
  (void)shown();
  sut.print("done");
  EXPECT_EQ(shown(), "done\n");
}

TEST_F(LiveBlockTest, TerminalIsRecognised) {
  ::setenv("TERM", "xterm", 1);
  EXPECT_TRUE(is_live_terminal(terminal));
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(is_live_terminal(terminal));
}

TEST_F(LiveBlockTest, PlainLinesComeAtTheirPace) {
  PlainLines sut(terminal, 5s);
  const RunView view{.strategy = "a", .update = 1};
  sut.show(view, Instant(0s));
  sut.show(view, Instant(4'999ms));
  EXPECT_EQ(shown(), "a  update 1  0 samples/s  0.0 s\n");
  sut.show(view, Instant(5s));
  EXPECT_EQ(shown(), "a  update 1  0 samples/s  0.0 s\n");
}

TEST(TextWidthTest, CountsColumnsNotBytes) {
  EXPECT_EQ(text_width("τ=4"), 3u);
  EXPECT_EQ(text_width("e\u0301"), 1u);
  EXPECT_EQ(text_width("漢字"), 4u);
  EXPECT_EQ(text_width("\x1b[31mred\x1b[0m"), 3u);
  EXPECT_EQ(text_width("\xff\xc3"), 2u);
  EXPECT_EQ(truncate("ττττ", 2), "ττ");
  EXPECT_EQ(truncate("漢字", 3), "漢");
}

TEST(TableTest, NumbersAreAlignedRightAndTextLeft) {
  Table sut({"strategy", "time to 88 %", "τ"});
  sut.add({"allreduce", "41.2 s", "1"});
  sut.add({"wagma(τ=4)", "-", "10"});
  EXPECT_EQ(sut.text(),
            "strategy    time to 88 %   τ\n"
            "──────────  ────────────  ──\n"
            "allreduce         41.2 s   1\n"
            "wagma(τ=4)             -  10\n");
}

TEST(FormatTest, TextOfAnyLengthIsWhole) {
  EXPECT_EQ(format("%d of %s", 3, "four"), "3 of four");
  EXPECT_EQ(format("%s|", std::string(1000, 'x').c_str()), std::string(1000, 'x') + "|");
  EXPECT_EQ(format("%s", ""), "");
}

TEST(FormatTest, AMomentIsToldInUtc) {
  EXPECT_EQ(utc_text(std::chrono::system_clock::from_time_t(1'000'000'000)), "2001-09-09T01:46:40Z");
}

}  // namespace
}  // namespace paceline::observe
