#include "actors/router/actor_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::actors {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr NodeId kHere{0};
constexpr NodeId kThere{1};

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
    options.cpus = 2;
    options.tasks.kept_bytes_max = 1000;
    options.tasks.argument_bytes_max = 900;
    return options;
  }

  CreateActor create(ActorId id, std::string owner = "driver/1") {
    CreateActor message;
    message.actor = id;
    message.name = "counter";
    message.owner = std::move(owner);
    return message;
  }
  Call call(std::uint64_t task, ActorId to, std::string owner = "driver/1") {
    Call message;
    message.task = TaskId(task);
    message.actor = to;
    message.owner = std::move(owner);
    return message;
  }
  Call task(std::uint64_t id, std::vector<Argument> arguments = {}, int retries = 0) {
    auto message = call(id, ActorId{});
    message.arguments = std::move(arguments);
    message.resources.retries = retries;
    return message;
  }
  static std::string peer_of(WorkerId worker) { return ActorRouter::worker_peer(worker); }
  CallResult result(std::uint64_t id, Result<Bytes> value = Bytes{}) { return {TaskId(id), "", std::move(value)}; }

  /// The actions of type T.
  template <class T>
  static std::vector<T> all(const ActorRouter::Actions& actions) {
    std::vector<T> found;
    for (const auto& action : actions) {
      if (const auto* one = std::get_if<T>(&action)) found.push_back(*one);
    }
    return found;
  }
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
  WorkerId running_actor(ActorId id) {
    const auto fork = all<ActorRouter::Fork>(sut.on_create(create(id), kHere)).at(0);
    sut.on_worker_ready(fork.worker);
    return fork.worker;
  }

  scheduler::TaskGraph graph{{}};
  ActorRouter sut{options(), graph};
  const ActorId actor = actor_on(kHere, 5);
};

TEST_F(ActorRouterTest, AnActorGetsAWorkerOfItsOwn) {
  const auto forks = all<ActorRouter::Fork>(sut.on_create(create(actor), kHere));
  ASSERT_THAT(forks, SizeIs(1));
  EXPECT_EQ(forks[0].executable.path, "/script");
  const auto constructed = sent<CreateActor>(sut.on_worker_ready(forks[0].worker));
  ASSERT_THAT(constructed, SizeIs(1));
  EXPECT_EQ(constructed[0].first, ActorRouter::worker_peer(forks[0].worker));
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
  EXPECT_THAT(sut.on_release("driver/2", {{actor}, {}}), IsEmpty());
  EXPECT_THAT(all<ActorRouter::Kill>(sut.on_release("driver/1", {{actor}, {}})), SizeIs(1));
}

TEST_F(ActorRouterTest, ADriverTakesItsActorsAndTheirsWithIt) {
  const auto first = running_actor(actor);
  const auto second =
      all<ActorRouter::Fork>(sut.on_create(create(actor_on(kHere, 6), ActorRouter::worker_peer(first)), kHere)).at(0);
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

TEST_F(ActorRouterTest, TasksShareWorkersUpToTheCpus) {
  ActorRouter::Actions actions;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    for (auto& action : sut.on_call(task(id), kHere)) actions.push_back(action);
  }
  const auto forks = all<ActorRouter::Fork>(actions);
  ASSERT_THAT(forks, SizeIs(2));
  EXPECT_THAT(sent<Call>(sut.on_worker_ready(forks[0].worker)), SizeIs(1));
  EXPECT_THAT(sent<Call>(sut.on_worker_ready(forks[1].worker)), SizeIs(1));
  const auto third = sut.on_result(result(1), peer_of(forks[0].worker));
  EXPECT_THAT(all<ActorRouter::Fork>(third), IsEmpty());
  ASSERT_THAT(sent<Call>(third), SizeIs(1));
  EXPECT_EQ(sent<Call>(third)[0].first, ActorRouter::worker_peer(forks[0].worker));
}

TEST_F(ActorRouterTest, ATaskRunsWhenItsArgumentIsThere) {
  const auto fork = all<ActorRouter::Fork>(sut.on_call(task(1), kHere)).at(0);
  EXPECT_THAT(sut.on_call(task(2, {TaskId(1)}), kHere), IsEmpty());
  sut.on_worker_ready(fork.worker);
  const auto next = sent<Call>(sut.on_result(result(1, bytes(3)), peer_of(fork.worker)));
  ASSERT_THAT(next, SizeIs(1));
  EXPECT_EQ(std::get<Bytes>(next[0].second.arguments.at(0)), bytes(3));
}

TEST_F(ActorRouterTest, AFailedTaskFailsWhatHangsOnIt) {
  const auto fork = all<ActorRouter::Fork>(sut.on_call(task(1), kHere)).at(0);
  sut.on_call(task(2, {TaskId(1)}), kHere);
  sut.on_call(task(3, {TaskId(2)}), kHere);
  sut.on_worker_ready(fork.worker);
  const auto answers =
      sent<CallResult>(sut.on_result(result(1, fail(ErrorKind::invalid, "boom")), peer_of(fork.worker)));
  ASSERT_THAT(answers, SizeIs(3));
  for (const auto& [peer, answer] : answers) EXPECT_THAT(answer.value.error().text, HasSubstr("boom"));
}

TEST_F(ActorRouterTest, ADeadWorkersTaskIsRetriedAsOftenAsItSays) {
  auto fork = all<ActorRouter::Fork>(sut.on_call(task(1, {}, 1), kHere)).at(0);
  sut.on_worker_ready(fork.worker);
  const auto again = all<ActorRouter::Fork>(sut.on_worker_gone(fork.worker, "killed by SIGKILL"));
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_THAT(sent<Call>(sut.on_worker_ready(again[0].worker)), SizeIs(1));
  const auto answers = sent<CallResult>(sut.on_worker_gone(again[0].worker, "killed by SIGKILL"));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_THAT(answers[0].second.value.error().text, HasSubstr("killed by SIGKILL"));
}

TEST_F(ActorRouterTest, WhatADeadWorkerAnsweredCountsWhereItsTaskHasNotBegunAgain) {
  const auto fork = all<ActorRouter::Fork>(sut.on_call(task(1, {}, 1), kHere)).at(0);
  sut.on_call(task(2, {TaskId(1)}), kHere);
  sut.on_worker_ready(fork.worker);
  const auto again = all<ActorRouter::Fork>(sut.on_worker_gone(fork.worker, "killed by SIGKILL"));
  const auto answers = sent<CallResult>(sut.on_result(result(1, bytes(3)), peer_of(fork.worker)));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_TRUE(answers[0].second.value.has_value());
  const auto next = sent<Call>(sut.on_worker_ready(again[0].worker));
  ASSERT_THAT(next, SizeIs(1));
  EXPECT_EQ(next[0].second.task, TaskId(2));
}

TEST_F(ActorRouterTest, OfATaskThatRunsAgainOnlyItsNewWorkersAnswerCounts) {
  const auto fork = all<ActorRouter::Fork>(sut.on_call(task(1, {}, 1), kHere)).at(0);
  sut.on_worker_ready(fork.worker);
  const auto again = all<ActorRouter::Fork>(sut.on_worker_gone(fork.worker, "killed by SIGKILL"));
  sut.on_worker_ready(again[0].worker);
  EXPECT_THAT(sut.on_result(result(1), peer_of(fork.worker)), IsEmpty());
  EXPECT_THAT(sent<CallResult>(sut.on_result(result(1), peer_of(again[0].worker))), SizeIs(1));
}

TEST_F(ActorRouterTest, NobodyAnswersATaskThatHasNotBegun) {
  sut.on_call(task(1), kHere);
  EXPECT_THAT(sut.on_result(result(1), "worker/1"), IsEmpty());
  EXPECT_THAT(sut.on_result(result(1), "driver/1"), IsEmpty());
}

TEST_F(ActorRouterTest, ATaskThatWaitsGivesItsCpusBack) {
  std::vector<WorkerId> workers;
  for (std::uint64_t id = 1; id <= 2; ++id)
    for (const auto& fork : all<ActorRouter::Fork>(sut.on_call(task(id), kHere))) workers.push_back(fork.worker);
  ASSERT_THAT(workers, SizeIs(2));
  for (const WorkerId worker : workers) sut.on_worker_ready(worker);
  EXPECT_THAT(sut.on_call(task(3), kHere), IsEmpty()) << "both cpus are in use";
  const auto forks = all<ActorRouter::Fork>(sut.on_waits(workers[0], Awaited{TaskId(3), {}}));
  ASSERT_THAT(forks, SizeIs(1)) << "a cpu is free, and the worker that waits is none for others";
  const auto begun = sent<Call>(sut.on_worker_ready(forks[0].worker));
  ASSERT_THAT(begun, SizeIs(1));
  EXPECT_EQ(begun[0].second.task, TaskId(3));
  EXPECT_THAT(sut.on_call(task(4), kHere), IsEmpty()) << "the cpu is in use again";
  EXPECT_THAT(sent<Call>(sut.on_waits(workers[0], std::nullopt)), IsEmpty()) << "it goes on: more than there are";
  EXPECT_THAT(sent<Call>(sut.on_result(result(3), peer_of(forks[0].worker))), IsEmpty()) << "none is free yet";
  EXPECT_THAT(sent<Call>(sut.on_result(result(2), peer_of(workers[1]))), SizeIs(1));
}

TEST_F(ActorRouterTest, TheDeathOfOneThatWaitsFreesNothingTwice) {
  const auto first = all<ActorRouter::Fork>(sut.on_call(task(1), kHere)).at(0).worker;
  sut.on_worker_ready(first);
  sut.on_waits(first, Awaited{TaskId{}, {}});
  sut.on_waits(first, Awaited{TaskId{}, {}});  // Again: it is known.
  sut.on_worker_gone(first, "killed");
  auto wide = task(2);
  wide.resources.cpus = 2;
  const auto forks = all<ActorRouter::Fork>(sut.on_call(wide, kHere));
  ASSERT_FALSE(forks.empty());
  EXPECT_THAT(sent<Call>(sut.on_worker_ready(forks[0].worker)), SizeIs(1));
  EXPECT_THAT(sut.on_call(task(3), kHere), IsEmpty());
  EXPECT_THAT(sent<Call>(sut.on_call(task(4), kHere)), IsEmpty()) << "both cpus are in use, not one of three";
}

TEST_F(ActorRouterTest, CallsThatWaitInACircleFailNamingIt) {
  const ActorId other = actor_on(kHere, 6);
  const auto one = running_actor(actor), two = running_actor(other);
  sut.on_call(call(1, actor), kHere);                // The driver's.
  sut.on_call(call(2, other, peer_of(one)), kHere);  // The first calls the second,
  sut.on_call(call(3, actor, peer_of(two)), kHere);  // which calls the first.
  EXPECT_THAT(sut.on_waits(one, Awaited{TaskId(2), {}}), IsEmpty());
  const auto answers = sent<CallResult>(sut.on_waits(two, Awaited{TaskId(3), {}}));
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
  EXPECT_THAT(sut.on_waits(worker, Awaited{TaskId{}, {}}), IsEmpty()) << "it waits with a timeout";
  EXPECT_THAT(sent<CallResult>(sut.on_waits(worker, Awaited{TaskId(1), {}})), SizeIs(1));
}

TEST_F(ActorRouterTest, ACircleOfCallsThatWentPastTheAgentIsFoundAsWell) {
  const ActorId other = actor_on(kHere, 6);
  const auto one = running_actor(actor), two = running_actor(other);
  EXPECT_THAT(sut.on_waits(one, Awaited{TaskId(2), other}), IsEmpty());
  const auto answers = sent<CallResult>(sut.on_waits(two, Awaited{TaskId(3), actor}));
  ASSERT_THAT(answers, SizeIs(2));
  for (const auto& [peer, answer] : answers) {
    EXPECT_THAT(answer.value.error().text, HasSubstr("waits for actor 'counter' waits for actor 'counter'"));
    EXPECT_EQ(peer, answer.task == TaskId(2) ? peer_of(one) : peer_of(two)) << "whoever waits hears it";
  }
}

TEST_F(ActorRouterTest, WhereCallsCanGoPastTheAgent) {
  EXPECT_FALSE(sut.line_to(actor)) << "there is no such actor";
  const auto worker = running_actor(actor);
  EXPECT_EQ(sut.line_to(actor), worker);
  EXPECT_EQ(sut.line_to(actor_on(NodeId{3}, 1)), WorkerId{}) << "elsewhere: by its agent";
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

TEST_F(ActorRouterTest, WhoWaitsForOneThatRunsWaits) {
  const ActorId other = actor_on(kHere, 6);
  const auto one = running_actor(actor);
  running_actor(other);
  sut.on_call(call(1, other, peer_of(one)), kHere);
  EXPECT_THAT(sut.on_waits(one, Awaited{TaskId(1), {}}), IsEmpty());
  EXPECT_THAT(sut.on_waits(one, Awaited{TaskId(77), {}}), IsEmpty()) << "a result that is unknown here";
}

TEST_F(ActorRouterTest, AWorkerThatCannotStartFailsTheTasks) {
  const auto fork = all<ActorRouter::Fork>(sut.on_call(task(1), kHere)).at(0);
  const auto actions = sut.on_worker_gone(fork.worker, "exit status 127");
  ASSERT_THAT(sent<CallResult>(actions), SizeIs(1));
  EXPECT_THAT(sent<CallResult>(actions)[0].second.value.error().text, HasSubstr("exit status 127"));
  EXPECT_THAT(all<ActorRouter::Fork>(actions), IsEmpty());
}

TEST_F(ActorRouterTest, ResultsAreKeptUpToABoundAndUntilReleased) {
  const auto fork = all<ActorRouter::Fork>(sut.on_call(task(1), kHere)).at(0);
  sut.on_worker_ready(fork.worker);
  EXPECT_THAT(sent<CallResult>(sut.on_result(result(1, bytes(900)), peer_of(fork.worker))), SizeIs(1));
  sut.on_call(task(2), kHere);
  EXPECT_THAT(sent<CallResult>(sut.on_result(result(2, bytes(900)), peer_of(fork.worker))),
              SizeIs(1));  // Not kept, but delivered.
  const auto refused = sent<CallResult>(sut.on_call(task(3, {TaskId(2)}), kHere));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_EQ(refused[0].second.value.error().kind, ErrorKind::overloaded);
  sut.on_release("driver/1", {{}, {TaskId(1), TaskId(2)}});
  sut.on_call(task(4), kHere);
  sut.on_result(result(4, bytes(900)), peer_of(fork.worker));
  EXPECT_THAT(sent<Call>(sut.on_call(task(5, {TaskId(4)}), kHere)), SizeIs(1));
}

TEST_F(ActorRouterTest, AResultThatIsTooLargeForAnArgumentFailsWhatNamesItNotItsWorker) {
  const auto worker = all<ActorRouter::Fork>(sut.on_call(task(1), kHere)).at(0).worker;
  sut.on_worker_ready(worker);
  sut.on_call(task(2, {TaskId(1)}), kHere);
  const auto answers = sent<CallResult>(sut.on_result(result(1, bytes(950)), peer_of(worker)));
  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_TRUE(answers[0].second.value) << "its owner gets it";
  EXPECT_THAT(answers[1].second.value.error().text, HasSubstr("950 bytes"));
}

TEST_F(ActorRouterTest, ATaskThatNeedsMoreThanTheNodeHasIsInfeasible) {
  auto big = task(1);
  big.resources.cpus = 3;
  const auto answers = sent<CallResult>(sut.on_call(std::move(big), kHere));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].second.value.error().kind, ErrorKind::infeasible);
}

TEST_F(ActorRouterTest, WorkersForTasksEndWithTheirDriver) {
  const auto fork = all<ActorRouter::Fork>(sut.on_call(task(1), kHere)).at(0);
  sut.on_worker_ready(fork.worker);
  const auto actions = sut.on_owner_gone("driver/1");
  ASSERT_THAT(all<ActorRouter::Kill>(actions), SizeIs(1));
  sut.on_worker_gone(fork.worker, "killed by SIGKILL");
  EXPECT_THAT(sut.workers(), IsEmpty());
  sut.on_executable("driver/1", executable("/script"));
  EXPECT_THAT(all<ActorRouter::Fork>(sut.on_call(task(2), kHere)), SizeIs(1));  // cpus are free again.
}

TEST_F(ActorRouterTest, WorkersAreStartedAsTheirOwnerSaidLast) {
  sut.on_executable("driver/1", executable("/script", "/first"));
  EXPECT_EQ(all<ActorRouter::Fork>(sut.on_create(create(actor_on(kHere, 1)), kHere)).at(0).executable.logs, "/first");
  sut.on_executable("driver/1", executable("/script", "/second"));
  EXPECT_EQ(all<ActorRouter::Fork>(sut.on_create(create(actor_on(kHere, 2)), kHere)).at(0).executable.logs, "/second");
  EXPECT_EQ(all<ActorRouter::Fork>(sut.on_call(task(1), kHere)).at(0).executable.logs, "/second");
}

TEST_F(ActorRouterTest, AWorkersOwnSettingsHoldForItsActorsAndTheDriversForTasks) {
  const auto parent = running_actor(actor_on(kHere, 1));
  const auto peer = ActorRouter::worker_peer(parent);
  sut.on_executable(peer, executable("/moved"));
  EXPECT_EQ(all<ActorRouter::Fork>(sut.on_create(create(actor_on(kHere, 2), peer), kHere)).at(0).executable.path,
            "/moved");
  auto of_worker = task(1);
  of_worker.owner = peer;
  EXPECT_EQ(all<ActorRouter::Fork>(sut.on_call(of_worker, kHere)).at(0).executable.path, "/script");
}

TEST_F(ActorRouterTest, AnotherNodeIsToldHowTheOwnersWorkersAreStarted) {
  const auto forward = all<ActorRouter::Forward>(sut.on_create(create(actor_on(kThere, 1)), kHere)).at(0);
  const auto& told = std::get<CreateActor>(forward.message);
  EXPECT_EQ(told.executable.path, "/script");
  ActorRouter there{[] {
                      auto settings = options();
                      settings.node = kThere;
                      return settings;
                    }(),
                    graph};
  EXPECT_EQ(all<ActorRouter::Fork>(there.on_create(told, kHere)).at(0).executable.path, "/script");
}

TEST_F(ActorRouterTest, WhoHasNotSaidHowItsWorkersAreStartedGetsNone) {
  const auto refused = sent<ActorReady>(sut.on_create(create(actor_on(kHere, 1), "driver/3"), kHere));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_TRUE(refused[0].second.dead);
  auto asked = task(1);
  asked.owner = "driver/3";
  const auto answers = sent<CallResult>(sut.on_call(asked, kHere));
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].second.value.error().kind, ErrorKind::invalid);
}

}  // namespace
}  // namespace paceline::actors
