#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/router/actor_router.h"
#include "actors/router/router_test_support.h"
#include "actors/test_support/router_actions.h"

namespace paceline::actors {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kDriver = "driver/1";

class ActorNamesTest : public testing::Test {
 protected:
  ActorNamesTest() {
    Executable executable;
    executable.path = "/script";
    sut.on_executable(kDriver, executable);
  }

  static CreateActor create(ActorId id, NameRule rule = {true, false, false, {}}, std::string owner = kDriver) {
    CreateActor message;
    message.actor = id;
    message.name = "x";
    message.type = "Counter";
    message.owner = std::move(owner);
    message.naming = rule;
    return message;
  }
  static Call call(std::uint64_t task, ActorId to, bool kill = false) {
    Call message;
    message.task = TaskId(task);
    message.actor = to;
    message.owner = "driver/2";
    message.kill = kill;
    return message;
  }
  template <class M>
  static std::vector<M> sent(const ActorRouter::Actions& actions, const std::string& peer) {
    std::vector<M> found;
    for (const auto& send : all<ActorRouter::Send>(actions))
      if (const auto* message = std::get_if<M>(&send.message); message && send.peer == peer) found.push_back(*message);
    return found;
  }
  /// An actor that has its name, and whose worker is up; returns the worker.
  WorkerId named(ActorId id, NameRule rule = {true, false, false, {}}) {
    EXPECT_THAT(all<ActorRouter::Claim>(sut.on_create(create(id, rule), kHere)), SizeIs(1));
    const auto forks = all<ActorRouter::Fork>(sut.on_claimed(id, "x", id));
    EXPECT_THAT(forks, SizeIs(1));
    sut.on_worker_ready(forks.at(0).worker);
    return forks.at(0).worker;
  }
  static std::vector<ActorRouter::Unclaim> unclaims(const ActorRouter::Actions& actions) {
    return all<ActorRouter::Unclaim>(actions);
  }

  ActorRouter sut{[] {
    ActorRouter::Options options;
    options.node = kHere;
    options.has.cpus = 2;
    return options;
  }()};
  const ActorId actor = actor_id(kHere, 1, 5);
  const ActorId other = actor_id(kThere, 1, 6);
  static constexpr NameRule kDetachedRule{true, false, true, {}};
};

TEST_F(ActorNamesTest, AnActorBeginsWhenItHasItsNameAndItsOwnerHearsOfThat) {
  const auto claims = all<ActorRouter::Claim>(sut.on_create(create(actor), kHere));
  ASSERT_THAT(claims, SizeIs(1));
  EXPECT_EQ(claims[0].claim.name, "x");
  EXPECT_EQ(claims[0].claim.type, "Counter");
  EXPECT_THAT(sut.workers(), IsEmpty());
  const auto actions = sut.on_claimed(actor, "x", actor);
  EXPECT_THAT(all<ActorRouter::Fork>(actions), SizeIs(1));
  ASSERT_THAT(sent<ActorReady>(actions, kDriver), SizeIs(1));
  EXPECT_EQ(sent<ActorReady>(actions, kDriver)[0].named, actor);
  ASSERT_THAT(sut.names(), SizeIs(1));
  EXPECT_EQ(sut.names()[0].actor, actor);
}

TEST_F(ActorNamesTest, WhereAnotherHasTheNameTheOwnerHearsOfItAndNothingBegins) {
  (void)sut.on_create(create(actor), kHere);
  const auto actions = sut.on_claimed(actor, "x", other);
  EXPECT_THAT(all<ActorRouter::Fork>(actions), IsEmpty());
  EXPECT_EQ(sent<ActorReady>(actions, kDriver).at(0).named, other);
  EXPECT_THAT(sut.names(), IsEmpty());
  EXPECT_THAT(sut.on_claimed(actor, "x", actor), SizeIs(1)) << "given back";
}

TEST_F(ActorNamesTest, ARefusedClaimIsTheActorsEnd) {
  (void)sut.on_create(create(actor), kHere);
  const auto told = sent<ActorReady>(sut.on_claim_refused(actor, {ErrorKind::invalid, "taken"}), kDriver);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_TRUE(told[0].dead);
  EXPECT_EQ(told[0].error.text, "taken");
}

TEST_F(ActorNamesTest, ANameThatIsGrantedToWhomNobodyOwnsAnyMoreIsGivenBack) {
  (void)sut.on_create(create(actor), kHere);
  EXPECT_THAT(sut.on_owner_gone(kDriver), IsEmpty());
  const auto actions = sut.on_claimed(actor, "x", actor);
  EXPECT_THAT(all<ActorRouter::Fork>(actions), IsEmpty());
  ASSERT_THAT(unclaims(actions), SizeIs(1));
  EXPECT_EQ(unclaims(actions)[0].name, "x");
}

TEST_F(ActorNamesTest, AClaimOfANodeThatIsGoneIsGivenBack) {
  auto from_there = create(actor);
  from_there.executable.path = "/script";
  (void)sut.on_create(from_there, kThere);
  (void)sut.on_node_gone(kThere, "killed");
  EXPECT_THAT(unclaims(sut.on_claimed(actor, "x", actor)), SizeIs(1));
}

TEST_F(ActorNamesTest, AnAnswerThatComesTwiceTakesNoNameAway) {
  named(actor);
  EXPECT_THAT(sut.on_claimed(actor, "x", actor), IsEmpty());
}

TEST_F(ActorNamesTest, AnyEndGivesTheNameBack) {
  const auto worker = named(actor);
  EXPECT_THAT(unclaims(sut.on_worker_gone(worker, "killed")), SizeIs(1));
  const auto second = actor_id(kHere, 1, 7);
  named(second);
  EXPECT_THAT(unclaims(sut.on_release(kDriver, Release{{second}}, kHere)), SizeIs(1));
  const auto third = actor_id(kHere, 1, 8);
  named(third);
  EXPECT_THAT(unclaims(sut.on_actor_ready({third, kDriver, false, {ErrorKind::invalid, "threw"}, {}})), SizeIs(1));
  EXPECT_THAT(sut.names(), IsEmpty());
}

TEST_F(ActorNamesTest, AKillEndsTheActorAndTheKillerHearsFirst) {
  const auto worker = named(actor);
  (void)sut.on_call(call(1, actor), kHere);
  const auto actions = sut.on_call(call(2, actor, true), kHere);
  const auto answers = sent<CallResult>(actions, "driver/2");
  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_EQ(answers[0].task, TaskId(2));
  EXPECT_TRUE(answers[0].value);
  EXPECT_THAT(answers[1].value.error().text, HasSubstr("actor 'x' has ended: driver/2 has killed it"));
  EXPECT_EQ(all<ActorRouter::Kill>(actions).at(0).worker, worker);
  EXPECT_EQ(all<ActorRouter::Kill>(actions).at(0).why, "driver/2 has killed it") << "for a job whose worker it is";
  EXPECT_TRUE(sent<ActorReady>(actions, kDriver).at(0).dead);
  EXPECT_THAT(unclaims(actions), SizeIs(1));
  EXPECT_THAT(sent<CallResult>(sut.on_call(call(3, actor, true), kHere), "driver/2").at(0).value.error().text,
              HasSubstr("has killed it"));
}

TEST_F(ActorNamesTest, AnActorWhoseWorkerIsBeingForkedIsKilledToo) {
  (void)sut.on_create(create(actor), kHere);
  const auto worker = all<ActorRouter::Fork>(sut.on_claimed(actor, "x", actor)).at(0).worker;
  EXPECT_EQ(all<ActorRouter::Kill>(sut.on_call(call(2, actor, true), kHere)).at(0).worker, worker);
  EXPECT_THAT(sut.on_worker_ready(worker), IsEmpty());
}

TEST_F(ActorNamesTest, ADetachedActorOutlivesItsOwnerAndIsItsOwnRoot) {
  const auto worker = named(actor, kDetachedRule);
  EXPECT_THAT(all<ActorRouter::Kill>(sut.on_owner_gone(kDriver)), IsEmpty());
  ASSERT_THAT(sut.workers(), SizeIs(1));
  EXPECT_EQ(sut.workers()[0].root, kDetached + to_string(actor));
  const auto actions = sut.on_worker_gone(worker, "killed");
  EXPECT_THAT(unclaims(actions), SizeIs(1));
  EXPECT_THAT(all<ActorRouter::Send>(actions), IsEmpty()) << "nobody owns it";
}

TEST_F(ActorNamesTest, WhatADetachedActorOwnsLivesAndEndsWithIt) {
  const auto worker = named(actor, kDetachedRule);
  sut.on_executable(worker_peer(worker), Executable{"/script", {}, {}, "", "", ""});
  const auto nested = actor_id(kHere, 2, 1);
  const auto fork = all<ActorRouter::Fork>(sut.on_create(create(nested, {}, worker_peer(worker)), kHere)).at(0);
  Wants wants;
  wants.workers = 1;
  wants.owner = worker_peer(worker);
  const auto for_tasks = all<ActorRouter::Fork>(sut.on_wants(wants, kHere)).at(0);
  EXPECT_EQ(fork.root, kDetached + to_string(actor));
  EXPECT_THAT(all<ActorRouter::Kill>(sut.on_owner_gone(kDriver)), IsEmpty());
  std::vector<WorkerId> killed;
  for (const auto& kill : all<ActorRouter::Kill>(sut.on_worker_gone(worker, "killed"))) killed.push_back(kill.worker);
  EXPECT_THAT(killed, testing::UnorderedElementsAre(fork.worker, for_tasks.worker));
}

TEST_F(ActorNamesTest, ADetachedActorOfAnotherNodesOwnerOutlivesThatNode) {
  auto from_there = create(actor, kDetachedRule);
  from_there.executable.path = "/script";
  (void)sut.on_create(from_there, kThere);
  (void)sut.on_claimed(actor, "x", actor);
  (void)sut.on_node_gone(kThere, "killed");
  EXPECT_THAT(sut.names(), SizeIs(1));
}

TEST_F(ActorNamesTest, OfAnActorElsewhereOnlyItsOwnersNodeIsTold) {
  (void)sut.on_create(create(other), kHere);
  EXPECT_TRUE(sut.owns_actors_on(kThere));
  EXPECT_EQ(sent<ActorReady>(sut.on_actor_ready({other, kDriver, false, {}, other}), kDriver).at(0).named, other);
  EXPECT_TRUE(sut.owns_actors_on(kThere));
  const auto second = actor_id(kThere, 1, 7);
  (void)sut.on_release(kDriver, Release{{other}}, kHere);
  (void)sut.on_create(create(second, {true, true, false, {}}), kHere);
  (void)sut.on_actor_ready({second, kDriver, false, {}, actor});
  EXPECT_FALSE(sut.owns_actors_on(kThere)) << "another one had the name";
}

TEST_F(ActorNamesTest, ANameThatItsOwnerHasJustLetGoElsewhereIsNoHindrance) {
  (void)sut.on_create(create(other), kHere);
  (void)sut.on_release(kDriver, Release{{other}}, kHere);
  EXPECT_EQ(all<ActorRouter::Claim>(sut.on_create(create(actor), kHere)).at(0).claim.rule.after, other);
  (void)sut.on_claimed(actor, "x", actor);
  (void)sut.on_release(kDriver, Release{{actor}}, kHere);
  EXPECT_EQ(all<ActorRouter::Claim>(sut.on_create(create(actor_id(kHere, 1, 9)), kHere)).at(0).claim.rule.after,
            ActorId{});
}

TEST_F(ActorNamesTest, WhoHasLostItsNameEnds) {
  const auto worker = named(actor);
  const auto actions = sut.on_name_lost(actor);
  EXPECT_EQ(all<ActorRouter::Kill>(actions).at(0).worker, worker);
  EXPECT_THAT(sent<ActorReady>(actions, kDriver).at(0).error.text, HasSubstr("another actor has got its name"));
}

}  // namespace
}  // namespace paceline::actors
