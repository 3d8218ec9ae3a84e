#include "runtime/base/background.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace paceline {
namespace {

class BackgroundTest : public ::testing::Test {
 protected:
  void take_until(const std::vector<std::string>& list, std::size_t size) {
    for (pollfd ready{sut->descriptor(), POLLIN, 0}; list.size() < size && ::poll(&ready, 1, 10'000) > 0;)
      sut->take_done();
  }

  std::unique_ptr<Background> sut = *Background::create();
};

TEST_F(BackgroundTest, WorksInOrderBesideTheOwnerOnWhoseThreadTheRestFollows) {
  std::latch may_go_on(1);
  std::vector<std::string> followed;
  std::thread::id worked_on;
  for (const char* name : {"first", "second"})
    sut->run(
        [&]() -> Result<void> {
          may_go_on.wait();
          worked_on = std::this_thread::get_id();
          return {};
        },
        [&, name, owner = std::this_thread::get_id()](const Result<void>& done) {
          EXPECT_TRUE(done);
          EXPECT_EQ(std::this_thread::get_id(), owner);
          followed.emplace_back(name);
        });
  sut->take_done();
  EXPECT_TRUE(followed.empty());
  may_go_on.count_down();
  take_until(followed, 2);
  EXPECT_EQ(followed, (std::vector<std::string>{"first", "second"}));
  EXPECT_NE(worked_on, std::this_thread::get_id());
}

TEST_F(BackgroundTest, WhatFailsAndWhatIsThrownIsTold) {
  std::vector<std::string> told;
  const auto tell = [&](const Result<void>& done) { told.push_back(done.error().text); };
  sut->run([]() -> Result<void> { return fail(ErrorKind::infeasible, "no room"); }, tell);
  sut->run([]() -> Result<void> { throw std::runtime_error("boom"); }, tell);
  take_until(told, 2);
  EXPECT_EQ(told, (std::vector<std::string>{"no room", "boom"}));
}

TEST_F(BackgroundTest, WhatWorkHoldsIsGivenBackBesideTheOwner) {
  std::thread::id given_back_on;
  std::vector<std::string> followed;
  std::shared_ptr<int> held(new int(1), [&](int* number) {
    given_back_on = std::this_thread::get_id();
    delete number;
  });
  sut->run([held = std::move(held)]() -> Result<void> { return {}; },
           [&](const Result<void>&) { followed.emplace_back("done"); });
  take_until(followed, 1);
  EXPECT_NE(given_back_on, std::thread::id());
  EXPECT_NE(given_back_on, std::this_thread::get_id());
}

TEST_F(BackgroundTest, DestructionWaitsForWhatRunsAndNothingFollows) {
  std::latch begun(1), may_go_on(1);
  bool finished = false;
  sut->run(
      [&]() -> Result<void> {
        begun.count_down();
        may_go_on.wait();
        finished = true;
        return {};
      },
      [](const Result<void>&) { FAIL() << "its owner is gone"; });
  begun.wait();
  std::thread let_go([&] { may_go_on.count_down(); });
  sut.reset();
  let_go.join();
  EXPECT_TRUE(finished);
}

}  // namespace
}  // namespace paceline
