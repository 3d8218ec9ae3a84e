#include "actors/router/waiting_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::actors::router {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Three workers for tasks, each of which runs the task of its number.
class WaitingWorkersTest : public testing::Test {
 protected:
  WaitingWorkersTest() {
    for (const char* name : {"one", "two", "three"}) workers.push_back(local.start({}, ActorId{}, name));
    here.actions.clear();
  }
  /// Who has a result at that.
  std::vector<std::string> told_when_waits(std::size_t worker, std::uint64_t task) {
    sut.on_waits(workers.at(worker - 1), Awaited{TaskId(task), {}, TaskId(worker)});
    std::vector<std::string> told;
    for (const auto& action : std::exchange(here.actions, {})) {
      const auto& send = std::get<Send>(action);
      text = std::get<CallResult>(send.message).value.error().text;
      told.push_back(send.peer);
    }
    return told;
  }

  Here here;
  LocalWorkers local{here};
  ActorCalls calls{here, local};
  std::vector<WorkerId> workers;
  std::string text;
  WaitingWorkers sut{here, local, calls};
};

TEST_F(WaitingWorkersTest, ACircleOfThreeIsNamedFromWhoCloses) {
  EXPECT_THAT(told_when_waits(1, 2), IsEmpty());
  EXPECT_THAT(told_when_waits(2, 3), IsEmpty());
  EXPECT_THAT(told_when_waits(3, 1), SizeIs(3));
  EXPECT_THAT(text, HasSubstr("three waits for one waits for two waits for three"));
}

TEST_F(WaitingWorkersTest, WhoWaitsForACircleIsNotOfIt) {
  EXPECT_THAT(told_when_waits(1, 2), IsEmpty());
  EXPECT_THAT(told_when_waits(2, 1), SizeIs(2));
  EXPECT_THAT(told_when_waits(3, 1), IsEmpty()) << "nor does looking for it go on for ever";
}

TEST_F(WaitingWorkersTest, WhoIsGoneClosesNoCircle) {
  EXPECT_THAT(told_when_waits(1, 2), IsEmpty());
  EXPECT_THAT(told_when_waits(2, 3), IsEmpty());
  sut.on_worker_gone(workers.at(1));
  EXPECT_THAT(told_when_waits(3, 1), IsEmpty());
}

TEST_F(WaitingWorkersTest, WhoGoesOnClosesNoCircle) {
  EXPECT_THAT(told_when_waits(1, 2), IsEmpty());
  sut.on_waits(workers.at(0), std::nullopt);
  EXPECT_THAT(told_when_waits(2, 1), IsEmpty());
}

}  // namespace
}  // namespace paceline::actors::router
