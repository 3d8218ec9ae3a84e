#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/router/actor_router.h"
#include "actors/router/router_test_support.h"
#include "actors/test_support/router_actions.h"

namespace paceline::actors {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

constexpr NodeId kBefore{1};  ///< Where the driver was,
constexpr NodeId kNow{2};     ///< and is.
constexpr JobId kJob{5};

/// An actor of this node that works for a job, and what became of its driver's agent.
class DriverMovesTest : public testing::Test {
 protected:
  static ActorRouter::Options options(NodeId node) {
    ActorRouter::Options options;
    options.node = node;
    return options;
  }
  static Executable executable() {
    Executable one;
    one.path = "/script";
    return one;
  }
  CreateActor create(JobId job) const {
    CreateActor message;
    message.actor = actor;
    message.owner = "driver/1";
    message.job = job;
    message.executable = executable();
    return message;
  }
  Call call(bool again, std::string owner = "driver/1") const {
    Call message;
    message.task = TaskId(7);
    message.actor = actor;
    message.owner = std::move(owner);
    message.again = again;
    return message;
  }
  /// What is told to a driver of another node: "node 2: ok", "node 2: not_found".
  static std::vector<std::string> told(const ActorRouter::Actions& actions) {
    std::vector<std::string> words;
    for (const auto& forward : all<ActorRouter::Forward>(actions))
      if (const auto* result = std::get_if<CallResult>(&forward.message))
        words.push_back("node " + to_string(forward.node) + ": " +
                        (result->value ? "ok" : std::string(to_string(result->value.error().kind))));
    return words;
  }
  void begin(JobId job = kJob) {
    worker = all<ActorRouter::Fork>(sut.on_create(create(job), kBefore)).at(0).worker;
    (void)sut.on_worker_ready(worker);
    (void)sut.on_actor_ready({actor, "driver/1", false, {}});
    (void)sut.on_call(call(false), kBefore);
  }
  ActorRouter::Actions finish() { return sut.on_result({TaskId(7), "", Bytes{}}, worker_peer(worker)); }

  const ActorId actor = actor_id(kHere, 1, 5);
  WorkerId worker;
  ActorRouter sut{options(kHere)};
};

TEST_F(DriverMovesTest, WhatWorksForAJobThatGoesOnOutlivesItsDriversNode) {
  begin();
  EXPECT_THAT(sut.on_node_gone(kBefore, "killed", {kJob}), IsEmpty());
  EXPECT_THAT(sut.on_job_closed(JobId{4}), IsEmpty());
  EXPECT_THAT(all<ActorRouter::Kill>(sut.on_job_closed(kJob)), SizeIs(1));
}

TEST_F(DriverMovesTest, ItWaitsForItsDriverForAWhile) {
  begin();
  sut.at(Instant{100s});
  (void)sut.on_node_gone(kBefore, "killed", {kJob});
  ASSERT_EQ(sut.next_deadline(), Instant{110s});
  EXPECT_THAT(sut.tick(Instant{110s} - 1ns), IsEmpty());
  EXPECT_THAT(all<ActorRouter::Kill>(sut.tick(Instant{110s})), SizeIs(1));
  EXPECT_FALSE(sut.next_deadline());
}

TEST_F(DriverMovesTest, WhatWorksForNoneEndsWithIt) {
  begin(JobId{});
  EXPECT_THAT(all<ActorRouter::Kill>(sut.on_node_gone(kBefore, "killed", {kJob})), SizeIs(1));
}

TEST_F(DriverMovesTest, WhatWorksForAJobThatIsOverEndsWithIt) {
  begin();
  EXPECT_THAT(all<ActorRouter::Kill>(sut.on_node_gone(kBefore, "killed", {JobId{4}})), SizeIs(1));
}

TEST_F(DriverMovesTest, WithItsDriverThereItsHandlesAndNotItsJobEndIt) {
  begin();
  EXPECT_THAT(sut.on_job_closed(kJob), IsEmpty());
  EXPECT_THAT(all<ActorRouter::Kill>(sut.on_release("driver/1", {{actor}}, kBefore)), SizeIs(1));
}

TEST_F(DriverMovesTest, TheResultGoesWhereTheDriverIs) {
  begin();
  EXPECT_THAT(sut.on_call_again(call(true), kNow, {kJob}), IsEmpty());
  EXPECT_THAT(sut.on_node_gone(kBefore, "killed", {kJob}), IsEmpty());
  EXPECT_THAT(told(finish()), testing::ElementsAre("node 2: ok"));
}

TEST_F(DriverMovesTest, TheResultGoesThereAlsoAfterTheLossOfItsNodeWasHeardOf) {
  begin();
  (void)sut.on_node_gone(kBefore, "killed", {kJob});
  EXPECT_THAT(sut.on_call_again(call(true), kNow, {kJob}), IsEmpty());
  EXPECT_THAT(told(finish()), testing::ElementsAre("node 2: ok"));
}

TEST_F(DriverMovesTest, AResultThatWasOnItsWayIsSentAgain) {
  begin();
  EXPECT_THAT(told(finish()), testing::ElementsAre("node 1: ok"));
  (void)sut.on_node_gone(kBefore, "killed", {kJob});
  EXPECT_THAT(told(sut.on_call_again(call(true), kNow, {kJob})), testing::ElementsAre("node 2: ok"));
}

TEST_F(DriverMovesTest, AWorkerThatHasEndedMeanwhileIsToldOf) {
  begin();
  (void)sut.on_node_gone(kBefore, "killed", {kJob});
  (void)sut.on_worker_gone(worker, "killed by SIGKILL");
  EXPECT_THAT(told(sut.on_call_again(call(true), kNow, {kJob})), testing::ElementsAre("node 2: disconnected"));
}

TEST_F(DriverMovesTest, ACallThatNeverCameIsNotMade) {
  worker = all<ActorRouter::Fork>(sut.on_create(create(kJob), kBefore)).at(0).worker;
  EXPECT_THAT(told(sut.on_call_again(call(true), kNow, {kJob})), testing::ElementsAre("node 2: disconnected"));
  EXPECT_THAT(all<ActorRouter::Send>(sut.on_worker_ready(worker)), SizeIs(1)) << "its construction only";
}

TEST_F(DriverMovesTest, WhoComesBackAfterTheJobIsOverEndsWhatIsLeftOfIt) {
  begin();
  const auto actions = sut.on_call_again(call(true), kNow, {});
  EXPECT_THAT(all<ActorRouter::Kill>(actions), SizeIs(1));
  EXPECT_THAT(told(actions), testing::Contains("node 2: cancelled"));
}

TEST_F(DriverMovesTest, WhatItsWorkersStartPrintsWhereTheDriverIs) {
  auto shown = create(kJob);
  shown.executable.driver = "driver/1";
  shown.executable.driver_node = kBefore;
  worker = all<ActorRouter::Fork>(sut.on_create(shown, kBefore)).at(0).worker;
  sut.on_executable(worker_peer(worker), executable());
  sut.on_driver_moved("driver/1", kNow);
  CreateActor nested;
  nested.actor = actor_id(kHere, 2, 1);
  nested.owner = worker_peer(worker);
  EXPECT_EQ(all<ActorRouter::Fork>(sut.on_create(nested, kHere)).at(0).executable.driver_node, kNow);
}

TEST_F(DriverMovesTest, NobodyElseTakesItOver) {
  begin();
  EXPECT_THAT(told(sut.on_call_again(call(true, "driver/2"), kNow, {kJob})), testing::ElementsAre("node 2: invalid"));
  EXPECT_THAT(told(finish()), testing::ElementsAre("node 1: ok"));
}

/// Whatever the agent before still says.
TEST_F(DriverMovesTest, OnlyTheNewAgentSpeaksForTheDriver) {
  begin();
  (void)sut.on_call_again(call(true), kNow, {kJob});
  EXPECT_THAT(sut.on_release("driver/1", {{actor}, true}, kBefore), IsEmpty());
  EXPECT_THAT(all<ActorRouter::Kill>(sut.on_release("driver/1", {{actor}, true}, kNow)), SizeIs(1));
}

/// Of the agent that the driver has now.
TEST_F(DriverMovesTest, TheNewAgentTellsTheDriverOfItsWorkers) {
  ActorRouter agent{options(kNow)};
  agent.on_executable("driver/1", executable());
  EXPECT_THAT(all<ActorRouter::Forward>(agent.on_call_again(call(true), kNow, {kJob})), SizeIs(1));
  EXPECT_TRUE(agent.owns_actors_on(kHere));
  const auto lost = all<ActorRouter::Send>(agent.on_node_gone(kHere, "killed"));
  ASSERT_THAT(lost, testing::Not(IsEmpty()));
  EXPECT_EQ(lost.front().peer, "driver/1");
  EXPECT_THAT(all<ActorRouter::Forward>(agent.on_call_again(call(true), kNow, {kJob})), SizeIs(1));
  EXPECT_THAT(all<ActorRouter::Forward>(agent.on_owner_gone("driver/1")), SizeIs(1)) << "they are to end";
}

}  // namespace
}  // namespace paceline::actors
