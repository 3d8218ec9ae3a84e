#include "actors/output_printer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>

#include "runtime/base/steady_now.h"

namespace paceline::actors {
namespace {

using namespace std::chrono_literals;

Output output(const std::string& lines, bool all = false) {
  Output message;
  message.node = NodeId{3};
  message.bytes = static_cast<std::uint32_t>(lines.size());
  message.parts.push_back({"A pid=1", "a.log", 0, lines});
  message.all = all;
  return message;
}

class OutputPrinterTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe2(ends_, O_CLOEXEC), 0); }
  void TearDown() override {
    for (const int end : ends_)
      if (end >= 0) ::close(end);
  }
  void close_reader() { ::close(std::exchange(ends_[0], -1)); }
  std::string read_some() const {
    std::string text(1 << 16, '\0');
    text.resize(static_cast<std::size_t>(::read(ends_[0], text.data(), text.size())));
    return text;
  }
  std::unique_ptr<OutputPrinter> printer() {
    return std::make_unique<OutputPrinter>(ends_[1], [shown = shown_](NodeId node, std::uint32_t bytes) {
      EXPECT_EQ(node, NodeId{3});
      *shown += bytes;
    });
  }

  int ends_[2] = {-1, -1};
  std::shared_ptr<std::atomic<std::uint32_t>> shown_ = std::make_shared<std::atomic<std::uint32_t>>(0);
};

TEST_F(OutputPrinterTest, PrintsInOrderAndSaysHowMuch) {
  const auto sut = printer();
  sut->show(output("one\n"));
  sut->show(output("two\n", true));
  EXPECT_TRUE(sut->wait_for_all(60s));
  EXPECT_EQ(*shown_, 8u);
  EXPECT_EQ(read_some(), "(A pid=1) one\n(A pid=1) two\n");
}

TEST_F(OutputPrinterTest, WhereNobodyReadsNobodyWaitsLongerThanHeSays) {
  auto sut = printer();
  sut->show(output(std::string(1 << 20, '\n'), true));
  sut->show(output("more\n"));
  EXPECT_FALSE(sut->wait_for_all(10ms));
  sut.reset();
  close_reader();  // Its thread ends.
}

TEST_F(OutputPrinterTest, AnEndWithoutReaderIsNoEndOfTheProcess) {
  close_reader();
  const auto sut = printer();
  sut->show(output("one\n"));
  sut->show(output("two\n", true));
  EXPECT_TRUE(sut->wait_for_all(60s));
  EXPECT_EQ(*shown_, 8u) << "more may come: it is dropped";
}

TEST_F(OutputPrinterTest, WhatWasNotAskedForIsNotWaitedFor) {
  const auto sut = printer();
  EXPECT_FALSE(sut->wait_for_all(0s));
}

TEST_F(OutputPrinterTest, WhatWasAskedForOnceIsNoAnswerTheNextTime) {
  const auto sut = printer();
  sut->show(output("one\n", true));
  ASSERT_TRUE(sut->wait_for_all(60s));
  sut->expect_all();
  EXPECT_FALSE(sut->wait_for_all(0s));
  sut->show(output("two\n", true));
  EXPECT_TRUE(sut->wait_for_all(60s));
}

TEST_F(OutputPrinterTest, WhileItIsDivertedSomebodyElseShowsItAndSaysHowMuch) {
  const auto sut = printer();
  EXPECT_FALSE(sut->take(0s)) << "it is not";
  sut->divert(true);
  EXPECT_FALSE(sut->take(0s));
  sut->show(output("one\n"));
  sut->show(output("two\n", true));
  const auto first = sut->take(60s);
  ASSERT_TRUE(first);
  EXPECT_EQ(*first, output("one\n"));
  EXPECT_EQ(*shown_, 0u) << "it is not shown yet";
  sut->on_taken_shown(*first);
  EXPECT_EQ(*shown_, 4u);
  const auto last = sut->take(60s);
  ASSERT_TRUE(last);
  EXPECT_FALSE(sut->wait_for_all(0s));
  sut->on_taken_shown(*last);
  EXPECT_TRUE(sut->wait_for_all(0s));
  EXPECT_FALSE(sut->take(0s));
}

TEST_F(OutputPrinterTest, WhatNobodyHasTakenIsWrittenAfterwards) {
  const auto sut = printer();
  sut->show(output("before\n", true));
  ASSERT_TRUE(sut->wait_for_all(60s));
  sut->divert(true);
  sut->show(output("taken\n"));
  sut->show(output("left\n"));
  ASSERT_TRUE(sut->take(60s));
  sut->expect_all();
  sut->divert(false);
  sut->show(output("after\n", true));
  EXPECT_TRUE(sut->wait_for_all(60s));
  EXPECT_FALSE(sut->take(0s));
  EXPECT_EQ(read_some(), "(A pid=1) before\n(A pid=1) left\n(A pid=1) after\n");
}

}  // namespace
}  // namespace paceline::actors
