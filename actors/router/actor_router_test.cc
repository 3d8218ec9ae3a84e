#include "actors/router/actor_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/router/router_test_support.h"
#include "actors/test_support/router_actions.h"

namespace paceline::actors {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

ActorId actor_on(NodeId node, std::uint32_t count) { return actor_id(node, 1, count); }
Bytes bytes(std::size_t size) { return Bytes(size, std::byte{7}); }

class ActorRouterTest : public testing::Test {
 protected:
  ActorRouterTest() { sut.on_executable("driver/1", executable("/script")); }

  static Executable executable(std::string path, std::string logs = {}) {
    Executable one;
    one.path = std::move(path);
    one.logs = std::move(logs);
    return one;
  }
  static ActorRouter::Options options() {
    ActorRouter::Options options;
    options.node = kHere;
    options.has.cpus = 2;
    return options;
  }

  CreateActor create(ActorId id, std::string owner = "driver/1", RestartRule rule = {}) {
    CreateActor message;
    message.actor = id;
    message.name = "counter";
    message.owner = std::move(owner);
    message.rule = rule;
    message.arguments = {bytes(3)};
    return message;
  }
  Call call(std::uint64_t task, ActorId to, std::string owner = "driver/1") {
    Call message;
    message.task = TaskId(task);
    message.actor = to;
    message.owner = std::move(owner);
    return message;
  }
  static Wants wants(std::uint32_t workers, std::string owner = "driver/1") {
    Wants word;
    word.workers = workers;
    word.owner = std::move(owner);
    return word;
  }
  static Wants returns(WorkerId worker, std::uint32_t workers = 0) {
    auto word = wants(workers);
    word.returned = {worker};
    return word;
  }
  static std::string peer_of(WorkerId worker) { return worker_peer(worker); }
  CallResult result(std::uint64_t id, Result<Bytes> value = Bytes{}) { return {TaskId(id), "", std::move(value)}; }

  /// Messages of type M that are sent to peers of this node, with their peers.
  template <class M>
  static std::vector<std::pair<std::string, M>> sent(const ActorRouter::Actions& actions) {
    std::vector<std::pair<std::string, M>> found;
    for (const auto& send : all<ActorRouter::Send>(actions)) {
      if (const auto* message = std::get_if<M>(&send.message)) found.emplace_back(send.peer, *message);
    }
    return found;
  }
  /// Creates an actor whose worker is up; returns the worker.
  WorkerId running_actor(ActorId id, RestartRule rule = {}) {
    const auto fork = all<ActorRouter::Fork>(sut.on_create(create(id, "driver/1", rule), kHere)).at(0);
    sut.on_worker_ready(fork.worker);
    sut.on_actor_ready({id, "driver/1", false, {}});
    return fork.worker;
  }

  /// Creates the actor, whose worker gets just these calls when it is up.
  WorkerId running_actor_with_calls(const std::vector<std::uint64_t>& calls) {
    const auto fork = all<ActorRouter::Fork>(sut.on_create(create(actor), kHere)).at(0);
    std::vector<std::uint64_t> got;
    for (const auto& [peer, call] : sent<Call>(sut.on_worker_ready(fork.worker))) got.push_back(call.task.value);
    EXPECT_EQ(got, calls);
    return fork.worker;
  }

  /// Loans of this kind that peers of this node hear of.
  static std::vector<Loan> loans(const ActorRouter::Actions& actions, Loan::Kind kind) {
    std::vector<Loan> found;
    for (auto& [peer, loan] : sent<Loan>(actions))
      if (loan.kind == kind) found.push_back(loan);
    return found;
  }
  /// A worker for tasks that is lent to driver/1.
  WorkerId lent_worker() {
    const auto fork = all<ActorRouter::Fork>(sut.on_wants(wants(1), kHere)).at(0);
    EXPECT_THAT(loans(sut.on_worker_ready(fork.worker), Loan::Kind::lent), SizeIs(1));
    return fork.worker;
  }

  ActorRouter sut{options()};
  const ActorId actor = actor_on(kHere, 5);
};

TEST_F(ActorRouterTest, AnActorGetsAWorkerOfItsOwn) {
  const auto forks = all<ActorRouter::Fork>(sut.on_create(create(actor), kHere));
  ASSERT_THAT(forks, SizeIs(1));
  EXPECT_EQ(forks[0].executable.path, "/script");
  const auto constructed = sent<CreateActor>(sut.on_worker_ready(forks[0].worker));
  ASSERT_THAT(constructed, SizeIs(1));
  EXPECT_EQ(constructed[0].first, worker_peer(forks[0].worker));
}

TEST_F(ActorRouterTest, CallsWaitForTheWorkerAndKeepTheirOrder) {
  const auto fork = all<ActorRouter::Fork>(sut.on_create(create(actor), kHere)).at(0);
  EXPECT_THAT(sut.on_call(call(1, actor), kHere), IsEmpty());
  EXPECT_THAT(sut.on_call(call(2, actor), kHere), IsEmpty());
  const auto calls = sent<Call>(sut.on_worker_ready(fork.worker));
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(calls[0].second.task, TaskId(1));
  EXPECT_EQ(calls[1].second.task, TaskId(2));
}

// A thousand at once would keep the agent's thread from everybody else.
TEST_F(ActorRouterTest, WhatHasWaitedForAWorkerIsSentInTurns) {
  const auto fork = all<ActorRouter::Fork>(sut.on_create(create(actor), kHere)).at(0);
  std::vector<std::uint64_t> made;
  std::vector<std::uint64_t> got;
  const auto make = [&] {
    made.push_back(made.size() + 1);
    return sut.on_call(call(made.back(), actor), kHere);
  };
  const auto take = [&](const ActorRouter::Actions& actions) {
    const auto calls = sent<Call>(actions);
    for (const auto& [peer, call] : calls) got.push_back(call.task.value);
    return calls.size();
  };
  for (int i = 0; i < 300; ++i) make();
  EXPECT_FALSE(sut.next_deadline());
  EXPECT_EQ(take(sut.on_worker_ready(fork.worker)), 128U);
  EXPECT_THAT(make(), IsEmpty()) << "it may not overtake those before it";
  EXPECT_LE(sut.next_deadline(), Instant{});
  EXPECT_EQ(take(sut.tick({})), 128U);
  EXPECT_EQ(take(sut.tick({})), 45U);
  EXPECT_FALSE(sut.next_deadline());
  EXPECT_EQ(take(make()), 1U);
  EXPECT_EQ(got, made);
}

TEST_F(ActorRouterTest, WhatIsNotSentYetFailsWithItsActor) {
  const auto fork = all<ActorRouter::Fork>(sut.on_create(create(actor), kHere)).at(0);
  for (std::uint64_t i = 1; i <= 200; ++i) sut.on_call(call(i, actor), kHere);
  sut.on_worker_ready(fork.worker);
  EXPECT_THAT(sent<CallResult>(sut.on_worker_gone(fork.worker, "was killed")), SizeIs(200));
  EXPECT_THAT(sut.tick({}), IsEmpty());
  EXPECT_FALSE(sut.next_deadline());
}

// Who got the handle past the agent is quicker than the creation.
TEST_F(ActorRouterTest, CallsThatComeBeforeTheActorsCreationWaitForIt) {
  EXPECT_THAT(sut.on_call(call(1, actor, "worker/9"), kHere), IsEmpty());
  EXPECT_THAT(sut.on_call(call(2, actor, "worker/8"), kThere), IsEmpty());
  EXPECT_THAT(sut.on_call(call(3, actor, "worker/9"), kHere), IsEmpty());
  EXPECT_THAT(sent<CallResult>(sut.on_signal({TaskId(3), {}, actor, "worker/9"}, kHere)), SizeIs(1));
  const auto worker = running_actor_with_calls({1, 2});
  EXPECT_THAT(sent<CallResult>(sut.on_result(result(1), peer_of(worker))), SizeIs(1));
  const auto there = all<ActorRouter::Forward>(sut.on_result(result(2), peer_of(worker)));
  ASSERT_THAT(there, SizeIs(1));
  EXPECT_EQ(there[0].node, kThere);
  EXPECT_FALSE(sut.next_deadline());
}

TEST_F(ActorRouterTest, CallsToAnActorThatIsNeverCreatedFailAfterAWhile) {
  const Instant now{std::chrono::seconds(100)};
  sut.at(now);
  EXPECT_THAT(sut.on_call(call(1, actor), kHere), IsEmpty());
  ASSERT_TRUE(sut.next_deadline());
  EXPECT_THAT(sut.tick(*sut.next_deadline() - std::chrono::milliseconds(1)), IsEmpty());
  const auto answers = sent<CallResult>(sut.tick(*sut.next_deadline()));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].second.value.error().kind, ErrorKind::not_found);
  EXPECT_FALSE(sut.next_deadline());
}

TEST_F(ActorRouterTest, CallsToAnActorWhoseCreationIsRefusedHearWhy) {
  EXPECT_THAT(sut.on_call(call(1, actor), kHere), IsEmpty());
  const auto answers = sent<CallResult>(sut.on_create(create(actor, "nobody"), kHere));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_THAT(answers[0].second.value.error().text, HasSubstr("has not said how its workers are started"));
}

TEST_F(ActorRouterTest, CallsWhoseCallerIsGoneWaitForNothing) {
  EXPECT_THAT(sut.on_call(call(1, actor, "worker/9"), kHere), IsEmpty());
  EXPECT_THAT(sut.on_call(call(2, actor, "worker/9"), kThere), IsEmpty());
  sut.on_owner_gone("worker/9");
  EXPECT_TRUE(sut.next_deadline()) << "the other node's";
  sut.on_node_gone(kThere, "it was switched off");
  EXPECT_FALSE(sut.next_deadline());
}

TEST_F(ActorRouterTest, AnActorThatNoProcessCanHaveMadeDoesNotExist) {
  const auto answers = sent<CallResult>(sut.on_call(call(1, ActorId(5)), kHere));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].second.value.error().kind, ErrorKind::not_found);
}

TEST_F(ActorRouterTest, AResultGoesToTheCallerOnce) {
  const auto worker = peer_of(running_actor(actor));
  sut.on_call(call(1, actor, "driver/2"), kHere);
  EXPECT_THAT(sut.on_result(result(1), "worker/99"), IsEmpty()) << "it was not asked";
  const auto answers = sent<CallResult>(sut.on_result(result(1), worker));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].first, "driver/2");
  EXPECT_THAT(sut.on_result(result(1), worker), IsEmpty());
}

TEST_F(ActorRouterTest, ADeathFailsAllCallsInFlightAtOnceNamingIt) {
  const auto worker = running_actor(actor);
  sut.on_call(call(1, actor), kHere);
  sut.on_call(call(2, actor, "driver/2"), kHere);
  const auto actions = sut.on_worker_gone(worker, "killed by SIGSEGV");
  const auto answers = sent<CallResult>(actions);
  ASSERT_THAT(answers, SizeIs(2));
  for (const auto& [peer, answer] : answers) {
    EXPECT_EQ(answer.value.error().kind, ErrorKind::disconnected);
    EXPECT_THAT(answer.value.error().text, testing::AllOf(HasSubstr("'counter'"), HasSubstr("SIGSEGV")));
  }
  ASSERT_THAT(sent<ActorReady>(actions), SizeIs(1));
  EXPECT_TRUE(sent<ActorReady>(actions)[0].second.dead);
  const auto late = sent<CallResult>(sut.on_call(call(3, actor), kHere));
  ASSERT_THAT(late, SizeIs(1));
  EXPECT_THAT(late[0].second.value.error().text, HasSubstr("SIGSEGV"));
}

TEST_F(ActorRouterTest, AnActorThatMayBeRestartedIsConstructedAgainInAnotherProcess) {
  const auto worker = running_actor(actor, {.restarts = 1});
  const auto actions = sut.on_worker_gone(worker, "killed by SIGSEGV");
  EXPECT_THAT(sent<ActorReady>(actions), IsEmpty()) << "it is not dead";
  const auto forks = all<ActorRouter::Fork>(actions);
  ASSERT_THAT(forks, SizeIs(1));
  EXPECT_EQ(forks[0].executable.path, "/script");
  EXPECT_NE(forks[0].worker, worker);
  const auto constructed = sent<CreateActor>(sut.on_worker_ready(forks[0].worker));
  ASSERT_THAT(constructed, SizeIs(1));
  EXPECT_EQ(constructed[0].second.arguments, std::vector<Bytes>{bytes(3)});
  EXPECT_EQ(sut.workers().at(0).restarts, 1);
}

TEST_F(ActorRouterTest, SoManyRestartsAreWithinSomeTime) {
  using std::chrono::minutes;
  const RestartRule rule{.restarts = 2, .within = minutes(60)};
  auto worker = running_actor(actor, rule);
  Instant now{minutes(100)};
  const auto dies = [&](Duration later) {
    sut.at(now += later);
    EXPECT_TRUE(sut.will_restart(worker));
    worker = all<ActorRouter::Fork>(sut.on_worker_gone(worker, "killed")).at(0).worker;
    (void)sut.on_worker_ready(worker);
    (void)sut.on_actor_ready(ActorReady{actor, {}, false, {}});
  };
  dies(minutes(0));
  dies(minutes(40));
  sut.at(now += minutes(10));
  EXPECT_FALSE(sut.will_restart(worker));
  dies(minutes(11));  // The first one is more than an hour ago.
  sut.at(now += minutes(1));
  EXPECT_THAT(all<ActorRouter::Fork>(sut.on_worker_gone(worker, "killed")), IsEmpty());
}

TEST_F(ActorRouterTest, AWorkerThatIsReplacedIsKilledAndItsActorStartedAgain) {
  const auto worker = running_actor(actor, {.restarts = 1});
  EXPECT_THAT(all<ActorRouter::Kill>(sut.replace_worker(worker, "silent")), SizeIs(1));
  EXPECT_TRUE(sut.will_restart(worker));
  EXPECT_THAT(all<ActorRouter::Fork>(sut.on_worker_gone(worker, "silent")), SizeIs(1));
}

TEST_F(ActorRouterTest, ARestartFailsWhatTheDeadProcessHadAndKeepsTheRest) {
  const auto worker = running_actor(actor, {.restarts = 1});
  sut.on_call(call(1, actor), kHere);
  sut.on_owner_gone(peer_of(worker));  // Its connection ends first.
  EXPECT_THAT(sut.on_call(call(2, actor), kHere), IsEmpty());
  const auto actions = sut.on_worker_gone(worker, "killed by SIGSEGV");
  const auto answers = sent<CallResult>(actions);
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].second.task, TaskId(1));
  EXPECT_EQ(answers[0].second.value.error().kind, ErrorKind::disconnected);
  EXPECT_THAT(answers[0].second.value.error().text, testing::AllOf(HasSubstr("unknown"), HasSubstr("SIGSEGV")));
  sut.on_call(call(3, actor), kHere);
  const auto calls = sent<Call>(sut.on_worker_ready(all<ActorRouter::Fork>(actions).at(0).worker));
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(calls[0].second.task, TaskId(2));
  EXPECT_EQ(calls[1].second.task, TaskId(3));
}

TEST_F(ActorRouterTest, CallsAreSentAgainBeforeLaterOnesAsOftenAsTheRuleSays) {
  auto worker = running_actor(actor, {.restarts = -1, .call_retries = 1});
  auto first = call(1, actor);
  first.arguments = {bytes(7)};
  sut.on_call(first, kHere);
  auto actions = sut.on_worker_gone(worker, "killed");
  EXPECT_THAT(sent<CallResult>(actions), IsEmpty());
  sut.on_call(call(2, actor), kHere);
  worker = all<ActorRouter::Fork>(actions).at(0).worker;
  const auto calls = sent<Call>(sut.on_worker_ready(worker));
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(calls[0].second.task, TaskId(1));
  EXPECT_EQ(calls[0].second.arguments, first.arguments);
  EXPECT_EQ(calls[1].second.task, TaskId(2));
  const auto failed = sent<CallResult>(sut.on_worker_gone(worker, "killed"));
  ASSERT_THAT(failed, SizeIs(1)) << "call 2 may be sent again";
  EXPECT_EQ(failed[0].second.task, TaskId(1));
}

TEST_F(ActorRouterTest, OnceItsRestartsAreUsedUpAnActorIsDead) {
  auto worker = running_actor(actor, {.restarts = 1});
  worker = all<ActorRouter::Fork>(sut.on_worker_gone(worker, "killed")).at(0).worker;
  sut.on_call(call(1, actor), kHere);
  const auto actions = sut.on_worker_gone(worker, "killed by SIGKILL");
  ASSERT_THAT(sent<ActorReady>(actions), SizeIs(1));
  ASSERT_THAT(sent<CallResult>(actions), SizeIs(1)) << "also what waited";
  EXPECT_THAT(sent<CallResult>(actions)[0].second.value.error().text, HasSubstr("is dead, restarted once: "));
}

TEST_F(ActorRouterTest, AnActorThatNeverComesThroughItsConstructorIsNotStartedForEver) {
  auto actions = sut.on_create(create(actor, "driver/1", {.restarts = -1}), kHere);
  int forks = 0;
  while (!all<ActorRouter::Fork>(actions).empty()) {
    ASSERT_LT(++forks, 100);
    actions = sut.on_worker_gone(all<ActorRouter::Fork>(actions)[0].worker, "killed by SIGSEGV");
  }
  EXPECT_EQ(forks, 6);
  EXPECT_THAT(sent<ActorReady>(actions).at(0).second.error.text, HasSubstr("without coming through its constructor"));
}

TEST_F(ActorRouterTest, AConstructorThatThrowsAtARestartEndsTheActor) {
  const auto worker = running_actor(actor, {.restarts = -1});
  sut.on_worker_ready(all<ActorRouter::Fork>(sut.on_worker_gone(worker, "killed")).at(0).worker);
  const auto actions = sut.on_actor_ready({actor, "driver/1", false, {ErrorKind::invalid, "boom"}});
  EXPECT_THAT(all<ActorRouter::Kill>(actions), SizeIs(1));
  EXPECT_EQ(sent<ActorReady>(actions).at(0).second.error.text, "boom, when it was started again (once)");
}

TEST_F(ActorRouterTest, AnActorThatHasAskedForItsEndIsNotStartedAgainHoweverItsProcessEnds) {
  const auto worker = running_actor(actor, {.restarts = -1});
  sut.on_call(call(1, actor), kHere);
  sut.on_leaving(worker);
  const auto actions = sut.on_worker_gone(worker, "killed by SIGABRT");
  EXPECT_THAT(all<ActorRouter::Fork>(actions), IsEmpty());
  ASSERT_THAT(sent<CallResult>(actions), SizeIs(1));
  EXPECT_THAT(sent<CallResult>(actions)[0].second.value.error().text,
              testing::AllOf(HasSubstr("has called paceline::exit()"), HasSubstr("killed by SIGABRT")));
  EXPECT_THAT(sent<ActorReady>(actions), SizeIs(1));
}

TEST_F(ActorRouterTest, WhoReleasesAnActorThatIsStartedAgainEndsIt) {
  const auto worker = running_actor(actor, {.restarts = -1});
  const auto next = all<ActorRouter::Fork>(sut.on_worker_gone(worker, "killed")).at(0).worker;
  const auto kills = all<ActorRouter::Kill>(sut.on_owner_gone("driver/1"));
  ASSERT_THAT(kills, SizeIs(1));
  EXPECT_EQ(kills[0].worker, next);
  EXPECT_THAT(all<ActorRouter::Fork>(sut.on_worker_gone(next, "killed by SIGKILL")), IsEmpty());
}

TEST_F(ActorRouterTest, WhoCallsAnActorWhoseOwnerDiesIsToldSo) {
  (void)running_actor(actor, {.restarts = -1});
  auto others = call(1, actor);
  others.owner = "driver/2";
  (void)sut.on_call(others, kHere);
  const auto actions = sut.on_owner_gone("driver/1");
  const auto error = sent<CallResult>(actions).at(0).second.value.error();
  EXPECT_EQ(error.text, "actor 'counter' has ended: owner died: driver/1");
  EXPECT_EQ(error.kind, ErrorKind::disconnected);
}

TEST_F(ActorRouterTest, WhoseWorkerSomebodyEndsIsNotStartedAgain) {
  const auto worker = running_actor(actor, {.restarts = -1, .call_retries = -1});
  (void)sut.on_call(call(1, actor), kHere);
  const auto actions = sut.end_worker(worker, "left behind");
  EXPECT_EQ(sent<CallResult>(actions).at(0).second.value.error().text, "actor 'counter' has ended: left behind");
  EXPECT_TRUE(sent<ActorReady>(actions).at(0).second.dead);
  ASSERT_THAT(all<ActorRouter::Kill>(actions), SizeIs(1));
  EXPECT_EQ(all<ActorRouter::Kill>(actions)[0].worker, worker);
  EXPECT_EQ(all<ActorRouter::Kill>(actions)[0].why, "left behind");
  EXPECT_THAT(sut.end_worker(worker, "again"), IsEmpty());
  EXPECT_THAT(all<ActorRouter::Fork>(sut.on_worker_gone(worker, "left behind")), IsEmpty());
}

TEST_F(ActorRouterTest, WhoHasTasksWithAWorkerThatSomebodyEndsHearsWhy) {
  const auto worker = lent_worker();
  EXPECT_EQ(all<ActorRouter::Kill>(sut.end_worker(worker, "enough")).at(0).why, "enough");
  const auto gone = loans(sut.on_worker_gone(worker, "enough"), Loan::Kind::gone);
  ASSERT_THAT(gone, SizeIs(1));
  EXPECT_THAT(gone[0].error.text, HasSubstr("enough"));
}

TEST_F(ActorRouterTest, WhatIsKeptOfAnActorIsForgottenWhenItIsNotStartedAgainAnyMore) {
  const auto worker = running_actor(actor, {.restarts = 1});
  EXPECT_EQ(sut.restartable_of(worker), actor);
  const auto actions = sut.on_worker_gone(worker, "killed");
  EXPECT_THAT(all<ActorRouter::Forget>(actions), IsEmpty());
  EXPECT_EQ(sut.restartable_of(worker), ActorId{});
  const auto next = all<ActorRouter::Fork>(actions).at(0).worker;
  EXPECT_EQ(sut.restartable_of(next), actor);
  const auto forgotten = all<ActorRouter::Forget>(sut.on_worker_gone(next, "killed"));
  ASSERT_THAT(forgotten, SizeIs(1));
  EXPECT_EQ(forgotten[0].actor, actor);
  EXPECT_EQ(sut.restartable_of(next), ActorId{});
}

TEST_F(ActorRouterTest, NothingIsKeptOfAnActorThatIsNotStartedAgain) {
  const auto worker = running_actor(actor);
  EXPECT_EQ(sut.restartable_of(worker), ActorId{});
  EXPECT_THAT(all<ActorRouter::Forget>(sut.on_worker_gone(worker, "killed")), IsEmpty());
}

TEST_F(ActorRouterTest, AFailedConstructorFailsTheCallsAndEndsTheWorker) {
  const auto worker = running_actor(actor);
  sut.on_call(call(1, actor), kHere);
  const auto actions = sut.on_actor_ready({actor, "driver/1", false, {ErrorKind::invalid, "boom"}});
  ASSERT_THAT(sent<CallResult>(actions), SizeIs(1));
  EXPECT_EQ(sent<CallResult>(actions)[0].second.value.error().text, "boom");
  ASSERT_THAT(all<ActorRouter::Kill>(actions), SizeIs(1));
  EXPECT_EQ(all<ActorRouter::Kill>(actions)[0].worker, worker);
}

TEST_F(ActorRouterTest, OnlyItsOwnerReleasesAnActor) {
  running_actor(actor);
  EXPECT_THAT(sut.on_release("driver/2", {{actor}}, kHere), IsEmpty());
  EXPECT_THAT(all<ActorRouter::Kill>(sut.on_release("driver/1", {{actor}}, kHere)), SizeIs(1));
}

TEST_F(ActorRouterTest, ADriverTakesItsActorsAndTheirsWithIt) {
  const auto first = running_actor(actor);
  const auto second =
      all<ActorRouter::Fork>(sut.on_create(create(actor_on(kHere, 6), worker_peer(first)), kHere)).at(0);
  EXPECT_EQ(second.root, "driver/1");
  EXPECT_THAT(all<ActorRouter::Kill>(sut.on_owner_gone("driver/1")), SizeIs(1));
  const auto then = all<ActorRouter::Kill>(sut.on_worker_gone(first, "killed by SIGKILL"));
  ASSERT_THAT(then, SizeIs(1));
  EXPECT_EQ(then[0].worker, second.worker);
}

TEST_F(ActorRouterTest, CallsGoToTheActorsNodeAndTheAnswerComesBack) {
  const auto remote = actor_on(kThere, 9);
  const auto created = all<ActorRouter::Forward>(sut.on_create(create(remote), kHere));
  ASSERT_THAT(created, SizeIs(1));
  EXPECT_EQ(created[0].node, kThere);
  EXPECT_THAT(all<ActorRouter::Forward>(sut.on_call(call(1, remote), kHere)), SizeIs(1));
  EXPECT_THAT(sent<CallResult>(sut.on_result(result(1), "agent/1")), SizeIs(1));
}

TEST_F(ActorRouterTest, AnsweringACallOfAnotherNodeGoesBackThere) {
  const auto worker = peer_of(running_actor(actor));
  sut.on_call(call(1, actor, "worker/99"), kThere);
  const auto answers = all<ActorRouter::Forward>(sut.on_result(result(1), worker));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].node, kThere);
}

TEST_F(ActorRouterTest, TheLossOfANodeFailsTheCallsToIt) {
  const auto remote = actor_on(kThere, 9);
  sut.on_create(create(remote), kHere);
  sut.on_call(call(1, remote), kHere);
  EXPECT_TRUE(sut.owns_actors_on(kThere));
  EXPECT_FALSE(sut.owns_actors_on(kHere));
  const auto actions = sut.on_node_gone(kThere, "no heartbeat for 5 s");
  EXPECT_FALSE(sut.owns_actors_on(kThere));
  ASSERT_THAT(sent<CallResult>(actions), SizeIs(1));
  EXPECT_THAT(sent<CallResult>(actions)[0].second.value.error().text, HasSubstr("node 1 is gone"));
  EXPECT_THAT(sent<ActorReady>(actions), SizeIs(1));
}

TEST_F(ActorRouterTest, WorkersAreLentUpToTheCpus) {
  const auto forks = all<ActorRouter::Fork>(sut.on_wants(wants(3), kHere));
  ASSERT_THAT(forks, SizeIs(2));
  for (const auto& fork : forks) {
    const auto lent = loans(sut.on_worker_ready(fork.worker), Loan::Kind::lent);
    ASSERT_THAT(lent, SizeIs(1));
    EXPECT_EQ(lent[0].worker, fork.worker);
    EXPECT_EQ(lent[0].owner, "driver/1");
  }
}

TEST_F(ActorRouterTest, TasksForALentWorkerComeThroughHere) {
  const auto worker = lent_worker();
  const auto pushed = sent<PushTask>(sut.on_push({worker, TaskId(1), "driver/1", {}}, kHere));
  ASSERT_THAT(pushed, SizeIs(1));
  EXPECT_EQ(pushed[0].first, peer_of(worker));
  EXPECT_THAT(sut.on_push({worker, TaskId(1), "driver/2", {}}, kHere), IsEmpty()) << "it is not lent to that one";
  auto answer = result(1, bytes(3));
  answer.owner = "driver/1";
  EXPECT_THAT(sent<CallResult>(sut.on_result(answer, peer_of(worker))), SizeIs(1));
  answer.owner = "driver/2";
  EXPECT_THAT(sut.on_result(answer, peer_of(worker)), IsEmpty());
}

TEST_F(ActorRouterTest, ADeadWorkersBorrowerHearsHowItEnded) {
  const auto worker = lent_worker();
  const auto gone = loans(sut.on_worker_gone(worker, "killed by SIGKILL"), Loan::Kind::gone);
  ASSERT_THAT(gone, SizeIs(1));
  EXPECT_EQ(gone[0].worker, worker);
  EXPECT_THAT(gone[0].error.text, HasSubstr("killed by SIGKILL"));
}

TEST_F(ActorRouterTest, AReturnedWorkerIsLentAgain) {
  const auto worker = lent_worker();
  EXPECT_THAT(sut.on_wants(returns(worker), kHere), IsEmpty());
  const auto again = loans(sut.on_wants(wants(1), kHere), Loan::Kind::lent);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].worker, worker);
}

TEST_F(ActorRouterTest, ABrokenWorkerEndsAndNobodyElsesDoes) {
  const auto worker = lent_worker();
  auto word = wants(0, "driver/2");
  word.broken = {worker};
  EXPECT_THAT(all<ActorRouter::Kill>(sut.on_wants(word, kHere)), IsEmpty());
  word.owner = "driver/1";
  EXPECT_THAT(all<ActorRouter::Kill>(sut.on_wants(word, kHere)), SizeIs(1));
}

TEST_F(ActorRouterTest, ATaskThatWaitsGivesItsCpusBack) {
  const auto forks = all<ActorRouter::Fork>(sut.on_wants(wants(3), kHere));
  ASSERT_THAT(forks, SizeIs(2));
  for (const auto& fork : forks) sut.on_worker_ready(fork.worker);
  const auto more = all<ActorRouter::Fork>(sut.on_waits(forks[0].worker, Awaited{TaskId(3), {}, TaskId(1)}));
  ASSERT_THAT(more, SizeIs(1)) << "a cpu is free, and the worker that waits is none for others";
  EXPECT_THAT(loans(sut.on_worker_ready(more[0].worker), Loan::Kind::lent), SizeIs(1));
  EXPECT_THAT(sut.on_wants(wants(4), kHere), IsEmpty()) << "the cpu is in use again";
  EXPECT_THAT(sut.on_waits(forks[0].worker, std::nullopt), IsEmpty()) << "it goes on: more than there are";
  EXPECT_THAT(sut.on_wants(returns(more[0].worker, 3), kHere), IsEmpty()) << "none is free yet";
  EXPECT_THAT(loans(sut.on_wants(returns(forks[1].worker, 3), kHere), Loan::Kind::lent), SizeIs(1));
}

TEST_F(ActorRouterTest, TheDeathOfOneThatWaitsFreesNothingTwice) {
  const auto first = lent_worker();
  sut.on_waits(first, Awaited{});
  sut.on_waits(first, Awaited{});  // Again: it is known.
  sut.on_worker_gone(first, "killed");
  EXPECT_THAT(all<ActorRouter::Fork>(sut.on_wants(wants(9), kHere)), SizeIs(1)) << "one was started at the death";
}

TEST_F(ActorRouterTest, TasksThatWaitForEachOtherAreACircle) {
  const auto forks = all<ActorRouter::Fork>(sut.on_wants(wants(2), kHere));
  for (const auto& fork : forks) sut.on_worker_ready(fork.worker);
  const auto one = forks.at(0).worker, two = forks.at(1).worker;
  EXPECT_THAT(sent<CallResult>(sut.on_waits(one, Awaited{TaskId(8), {}, TaskId(7)})), IsEmpty());
  const auto answers = sent<CallResult>(sut.on_waits(two, Awaited{TaskId(7), {}, TaskId(8)}));
  ASSERT_THAT(answers, SizeIs(2));
  for (const auto& [peer, answer] : answers)
    EXPECT_THAT(answer.value.error().text, HasSubstr("wait for each other for ever"));
}

TEST_F(ActorRouterTest, CallsThatWaitInACircleFailNamingIt) {
  const ActorId other = actor_on(kHere, 6);
  const auto one = running_actor(actor), two = running_actor(other);
  sut.on_call(call(1, actor), kHere);                // The driver's.
  sut.on_call(call(2, other, peer_of(one)), kHere);  // The first calls the second,
  sut.on_call(call(3, actor, peer_of(two)), kHere);  // which calls the first.
  EXPECT_THAT(sut.on_waits(one, Awaited{TaskId(2), {}, {}}), IsEmpty());
  const auto answers = sent<CallResult>(sut.on_waits(two, Awaited{TaskId(3), {}, {}}));
  ASSERT_THAT(answers, SizeIs(2));
  for (const auto& [peer, answer] : answers) {
    EXPECT_THAT(answer.value.error().text, HasSubstr("waits for actor 'counter' waits for actor 'counter'"));
    EXPECT_THAT(peer, testing::AnyOf(peer_of(one), peer_of(two)));
  }
  EXPECT_THAT(sut.on_result(result(3), peer_of(one)), IsEmpty()) << "it was answered";
  EXPECT_THAT(sent<CallResult>(sut.on_result(result(1), peer_of(one))), SizeIs(1)) << "the driver's call goes on";
}

TEST_F(ActorRouterTest, WhoWaitsForItselfIsACircle) {
  const auto worker = running_actor(actor);
  sut.on_call(call(1, actor, peer_of(worker)), kHere);
  EXPECT_THAT(sut.on_waits(worker, Awaited{}), IsEmpty()) << "it waits with a timeout";
  EXPECT_THAT(sent<CallResult>(sut.on_waits(worker, Awaited{TaskId(1), {}, {}})), SizeIs(1));
}

TEST_F(ActorRouterTest, ACircleOfCallsThatWentPastTheAgentIsFoundAsWell) {
  const ActorId other = actor_on(kHere, 6);
  const auto one = running_actor(actor), two = running_actor(other);
  EXPECT_THAT(sut.on_waits(one, Awaited{TaskId(2), other, {}}), IsEmpty());
  const auto answers = sent<CallResult>(sut.on_waits(two, Awaited{TaskId(3), actor, {}}));
  ASSERT_THAT(answers, SizeIs(2));
  for (const auto& [peer, answer] : answers) {
    EXPECT_THAT(answer.value.error().text, HasSubstr("waits for actor 'counter' waits for actor 'counter'"));
    EXPECT_EQ(peer, answer.task == TaskId(2) ? peer_of(one) : peer_of(two)) << "whoever waits hears it";
  }
}

TEST_F(ActorRouterTest, WhatWorkersWaitForIsSeen) {
  constexpr Instant kBegin{std::chrono::seconds(100)};
  sut.at(kBegin);
  const auto worker = running_actor(actor);
  const auto view = [&] { return sut.workers().at(0); };
  EXPECT_FALSE(view().waits);
  EXPECT_EQ(view().started, kBegin);
  sut.at(kBegin + std::chrono::seconds(3));
  sut.on_call(call(1, actor_on(NodeId{1}, 7), peer_of(worker)), kHere);
  for (const auto& [awaited, what] :
       {std::pair{Awaited{TaskId(1), {}, {}}, "actor " + to_string(actor_on(NodeId{1}, 7))},
        {Awaited{TaskId(9), actor, {}}, "actor 'counter'"},
        {Awaited{TaskId(8), {}, {}}, "a task"},
        {Awaited{}, "a result, with a deadline"}}) {
    sut.on_waits(worker, awaited);
    ASSERT_TRUE(view().waits);
    EXPECT_EQ(sut.describe_awaited(*view().waits), what);
    EXPECT_EQ(view().waits_since, kBegin + std::chrono::seconds(3));
    sut.on_waits(worker, std::nullopt);
  }
  EXPECT_FALSE(view().waits);
}

TEST_F(ActorRouterTest, WhereCallsCanGoPastTheAgent) {
  EXPECT_FALSE(sut.line_to(actor)) << "there is no such actor";
  const auto worker = running_actor(actor);
  EXPECT_EQ(sut.line_to(actor)->worker, worker);
  EXPECT_EQ(sut.line_to(actor_on(NodeId{3}, 1))->worker, WorkerId{}) << "elsewhere: by its agent";
  sut.on_worker_gone(worker, "killed by SIGKILL");
  EXPECT_THAT(sut.line_to(actor).error().text, HasSubstr("killed by SIGKILL"));
}

TEST_F(ActorRouterTest, TheResultOfACallThatWentPastTheAgentIsPassedOn) {
  const auto worker = running_actor(actor);
  auto late = result(9);
  late.owner = "driver/1";
  late.by_line = true;
  const auto sent_on = sent<CallResult>(sut.on_result(std::move(late), peer_of(worker)));
  ASSERT_THAT(sent_on, SizeIs(1));
  EXPECT_EQ(sent_on[0].first, "driver/1");
}

TEST_F(ActorRouterTest, ACancelledTaskIsItsWorkersBusiness) {
  const auto worker = lent_worker();
  const auto words = sent<Signal>(sut.on_signal({TaskId(3), worker, {}, "driver/1", Signal::Kind::end}, kHere));
  ASSERT_THAT(words, SizeIs(1));
  EXPECT_EQ(words[0].first, peer_of(worker));
  EXPECT_EQ(words[0].second.kind, Signal::Kind::end);
  EXPECT_THAT(sut.on_signal({TaskId(3), worker, {}, "driver/2", Signal::Kind::end}, kHere), IsEmpty())
      << "not whom it is lent to";
  const auto there = worker_id(kThere, 1);
  EXPECT_THAT(all<ActorRouter::Forward>(sut.on_signal({TaskId(3), there, {}, "driver/1"}, kHere)), SizeIs(1));
  EXPECT_THAT(sut.on_signal({TaskId(3), there, {}, "driver/1"}, kThere), IsEmpty()) << "it came the wrong way";
}

TEST_F(ActorRouterTest, ValuesOfAStreamPassAndItsCallGoesOn) {
  const auto worker = running_actor(actor);
  sut.on_call(call(1, actor), kHere);
  auto value = result(1);
  for (value.item = 1; value.item <= 2; ++value.item)
    EXPECT_THAT(sent<CallResult>(sut.on_result(value, worker_peer(worker))), SizeIs(1));
  EXPECT_THAT(sut.on_result(value, worker_peer(WorkerId(99))), IsEmpty()) << "not who was asked";
  Signal taken{TaskId(1), {}, actor, "driver/1", Signal::Kind::taken, 2};
  const auto words = sent<Signal>(sut.on_signal(taken, kHere));
  ASSERT_THAT(words, SizeIs(1));
  EXPECT_EQ(words[0].first, worker_peer(worker));
  EXPECT_EQ(words[0].second.taken, 2u);
  EXPECT_THAT(sent<CallResult>(sut.on_result(result(1), worker_peer(worker))), SizeIs(1));
  EXPECT_THAT(sut.on_result(result(1), worker_peer(worker)), IsEmpty()) << "it is over";
}

TEST_F(ActorRouterTest, AWordOfWhatWasTakenEndsNothingThatWaits) {
  const auto fork = all<ActorRouter::Fork>(sut.on_create(create(actor), kHere)).at(0);
  sut.on_call(call(1, actor), kHere);
  EXPECT_THAT(sut.on_signal({TaskId(1), {}, actor, "driver/1", Signal::Kind::taken, 2}, kHere), IsEmpty());
  EXPECT_THAT(sent<Call>(sut.on_worker_ready(fork.worker)), SizeIs(1));
}

TEST_F(ActorRouterTest, ACallThatIsCancelledBeforeItsActorIsThereEndsHere) {
  const auto worker = all<ActorRouter::Fork>(sut.on_create(create(actor), kHere)).at(0).worker;
  sut.on_call(call(1, actor), kHere);
  sut.on_call(call(2, actor), kHere);
  const auto answers = sent<CallResult>(sut.on_signal({TaskId(1), {}, actor, "driver/1"}, kHere));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].second.value.error().kind, ErrorKind::cancelled);
  const auto calls = sent<Call>(sut.on_worker_ready(worker));
  ASSERT_THAT(calls, SizeIs(1));
  EXPECT_EQ(calls[0].second.task, TaskId(2));
  const auto words = sent<Signal>(sut.on_signal({TaskId(2), {}, actor, "driver/1"}, kHere));
  ASSERT_THAT(words, SizeIs(1));
  EXPECT_EQ(words[0].first, peer_of(worker));
  sut.on_worker_gone(worker, "killed");
  EXPECT_THAT(sut.on_signal({TaskId(2), {}, actor, "driver/1"}, kHere), IsEmpty());
}

TEST_F(ActorRouterTest, WhoWaitsForOneThatRunsWaits) {
  const ActorId other = actor_on(kHere, 6);
  const auto one = running_actor(actor);
  running_actor(other);
  sut.on_call(call(1, other, peer_of(one)), kHere);
  EXPECT_THAT(sut.on_waits(one, Awaited{TaskId(1), {}, {}}), IsEmpty());
  EXPECT_THAT(sut.on_waits(one, Awaited{TaskId(77), {}, {}}), IsEmpty()) << "a result that is unknown here";
}

TEST_F(ActorRouterTest, AWorkerThatCannotStartFailsTheTasks) {
  const auto fork = all<ActorRouter::Fork>(sut.on_wants(wants(1), kHere)).at(0);
  const auto actions = sut.on_worker_gone(fork.worker, "exit status 127");
  const auto refused = loans(actions, Loan::Kind::refused);
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_THAT(refused[0].error.text, HasSubstr("exit status 127"));
  EXPECT_THAT(all<ActorRouter::Fork>(actions), IsEmpty());
}

TEST_F(ActorRouterTest, ATaskThatNeedsMoreThanTheNodeHasIsInfeasible) {
  auto big = wants(1);
  big.shape.cpus = 3;
  const auto refused = loans(sut.on_wants(big, kHere), Loan::Kind::refused);
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_EQ(refused[0].error.kind, ErrorKind::infeasible);
  EXPECT_EQ(refused[0].shape, big.shape);
}

TEST_F(ActorRouterTest, WorkersForTasksEndWithTheirDriver) {
  const auto worker = lent_worker();
  ASSERT_THAT(all<ActorRouter::Kill>(sut.on_owner_gone("driver/1")), SizeIs(1));
  sut.on_worker_gone(worker, "killed by SIGKILL");
  EXPECT_THAT(sut.workers(), IsEmpty());
  sut.on_executable("driver/1", executable("/script"));
  EXPECT_THAT(all<ActorRouter::Fork>(sut.on_wants(wants(2), kHere)), SizeIs(2)) << "cpus are free again";
}

TEST_F(ActorRouterTest, WhatAFullNodeLacksIsAskedOfTheOthersAndComesThroughHere) {
  sut.on_node(kThere, Capacity{2, 0x1p40});
  const auto forwards = all<ActorRouter::Forward>(sut.on_wants(wants(8), kHere));
  EXPECT_THAT(forwards, IsEmpty()) << "its own come first";
  std::vector<ActorRouter::Forward> asked;
  for (const auto& view : sut.workers())
    for (const auto& forward : all<ActorRouter::Forward>(sut.on_worker_ready(view.worker))) asked.push_back(forward);
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_EQ(asked[0].node, kThere);
  const auto& word = std::get<Wants>(asked[0].message);
  EXPECT_EQ(word.workers, 2u);
  EXPECT_EQ(word.executable.path, "/script");
  // What the other node makes of it.
  auto settings = options();
  settings.node = kThere;
  ActorRouter there{settings};
  const auto fork = all<ActorRouter::Fork>(there.on_wants(word, kHere)).at(0);
  const auto lent = all<ActorRouter::Forward>(there.on_worker_ready(fork.worker)).at(0);
  EXPECT_EQ(lent.node, kHere);
  const auto heard = loans(sut.on_loan(std::get<Loan>(lent.message)), Loan::Kind::lent);
  ASSERT_THAT(heard, SizeIs(1));
  EXPECT_EQ(heard[0].owner, "driver/1");
  // Its owner gives it back, dies, or the node does.
  EXPECT_THAT(all<ActorRouter::Forward>(sut.on_wants(returns(fork.worker, 8), kHere)), SizeIs(2))
      << "returned, and asked for again";
  sut.on_loan(std::get<Loan>(lent.message));
  EXPECT_THAT(loans(sut.on_node_gone(kThere, "killed"), Loan::Kind::gone), SizeIs(1));
  const auto gone = all<ActorRouter::Forward>(sut.on_owner_gone("driver/1"));
  ASSERT_THAT(gone, SizeIs(1));
  EXPECT_THAT(all<ActorRouter::Kill>(there.on_wants(std::get<Wants>(gone[0].message), kHere)), SizeIs(2));
}

TEST_F(ActorRouterTest, WorkersAreStartedAsTheirOwnerSaidLast) {
  sut.on_executable("driver/1", executable("/script", "/first"));
  EXPECT_EQ(all<ActorRouter::Fork>(sut.on_create(create(actor_on(kHere, 1)), kHere)).at(0).executable.logs, "/first");
  sut.on_executable("driver/1", executable("/script", "/second"));
  EXPECT_EQ(all<ActorRouter::Fork>(sut.on_create(create(actor_on(kHere, 2)), kHere)).at(0).executable.logs, "/second");
  EXPECT_EQ(all<ActorRouter::Fork>(sut.on_wants(wants(1), kHere)).at(0).executable.logs, "/second");
}

TEST_F(ActorRouterTest, AWorkersOwnSettingsHoldForItsActorsAndTheDriversForTasks) {
  const auto parent = running_actor(actor_on(kHere, 1));
  const auto peer = worker_peer(parent);
  sut.on_executable(peer, executable("/moved"));
  EXPECT_EQ(all<ActorRouter::Fork>(sut.on_create(create(actor_on(kHere, 2), peer), kHere)).at(0).executable.path,
            "/moved");
  EXPECT_EQ(all<ActorRouter::Fork>(sut.on_wants(wants(1, peer), kHere)).at(0).executable.path, "/script");
}

TEST_F(ActorRouterTest, WhatWorkersStartPrintsWhereTheyDo) {
  auto shown = executable("/script", "/logs");
  shown.driver = "whoever";
  sut.on_executable("driver/1", shown);
  const auto fork = all<ActorRouter::Fork>(sut.on_create(create(actor_on(kHere, 1)), kHere)).at(0);
  EXPECT_EQ(fork.executable.driver, "driver/1") << "nobody speaks for others";
  EXPECT_EQ(fork.executable.driver_node, kHere);
  const auto peer = worker_peer(fork.worker);
  sut.on_executable(peer, executable("/script"));
  const auto nested = all<ActorRouter::Fork>(sut.on_create(create(actor_on(kHere, 2), peer), kHere)).at(0);
  EXPECT_EQ(nested.executable.logs, "/logs");
  EXPECT_EQ(nested.executable.driver, "driver/1");
  EXPECT_EQ(nested.executable.driver_node, kHere);
}

TEST_F(ActorRouterTest, AnotherNodeIsToldHowTheOwnersWorkersAreStarted) {
  const auto forward = all<ActorRouter::Forward>(sut.on_create(create(actor_on(kThere, 1)), kHere)).at(0);
  const auto& told = std::get<CreateActor>(forward.message);
  EXPECT_EQ(told.executable.path, "/script");
  ActorRouter there{[] {
    auto settings = options();
    settings.node = kThere;
    return settings;
  }()};
  EXPECT_EQ(all<ActorRouter::Fork>(there.on_create(told, kHere)).at(0).executable.path, "/script");
}

TEST_F(ActorRouterTest, WhoHasNotSaidHowItsWorkersAreStartedGetsNone) {
  const auto refused = sent<ActorReady>(sut.on_create(create(actor_on(kHere, 1), "driver/3"), kHere));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_TRUE(refused[0].second.dead);
  const auto none = loans(sut.on_wants(wants(1, "driver/3"), kHere), Loan::Kind::refused);
  ASSERT_THAT(none, SizeIs(1));
  EXPECT_EQ(none[0].error.kind, ErrorKind::invalid);
}

}  // namespace
}  // namespace paceline::actors
