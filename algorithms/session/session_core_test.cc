#include "algorithms/session/session_core.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/base/job_leg.h"

namespace paceline::session {
namespace {

using namespace std::chrono_literals;
using memory::Window;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kElements = 2;
constexpr auto kAlways = std::int64_t{1} << 40;

struct TestClock final : Clock {
  Instant now() const override { return at; }
  Instant at{};
};

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text);
  return *std::move(result);
}

std::string report_of(const wire::Report::Reader& report) {
  if (report.isPlan()) return "plan";
  if (report.isStop()) return "stop";
  if (report.isLeft()) return "left";
  if (report.isEvaluated()) return "evaluated";
  return report.isSaved() ? "saved" : "another report";
}

JobTerms abandoning(std::int32_t bodies) {
  JobTerms terms{.bodies = bodies, .abandons = true};
  terms.payloads.gradients_until = kAlways;
  return terms;
}

/// A worker's core and, on the other side of its window and control page, its agent.
class SessionCoreTest : public testing::Test {
 protected:
  /// Windows of rounds of models, as they are without a strategy's wishes.
  void open(JobTerms terms, std::int32_t rank = 0) {
    terms.workers = std::max(terms.workers, 2);
    open_as_it_is(terms, rank);
  }
  void open_as_it_is(JobTerms terms, std::int32_t rank = 0) {
    terms.updates = 100;
    terms.buffers = 4;
    const Window::Layout layout{kElements, memory::Dtype::f64, terms.buffers};
    window.emplace(must(Window::create(layout)));
    control.emplace(must(memory::ControlPage::create()));
    const auto page = must(control->read_only_fd());
    core.emplace(SessionCore::Share{7, rank, kElements}, terms, must(Window::map(window->fd().duplicate(), layout)),
                 must(memory::ControlPage::map(page)),
                 SessionCore::Outbox{[this](wire::Message& message) { note(message); }, [] { return std::uint64_t{1}; },
                                     [this](std::int64_t update, store::SharedObject::Pieces state) {
                                       said.push_back("replica " + std::to_string(update) + " of " +
                                                      std::to_string(state.size()));
                                     },
                                     [](const char*, Instant, Instant, std::int64_t) {}},
                 clock);
  }
  void note(wire::Message& message) {
    const auto envelope = message.root().asReader();
    if (envelope.isArrive()) {
      const auto arrive = envelope.getArrive();
      said.push_back("arrive " + std::to_string(arrive.getIteration()) +
                     (arrive.getBodies() >= 0 ? " with " + std::to_string(arrive.getBodies()) : ""));
    }
    if (envelope.isReport()) said.push_back(report_of(envelope.getReport()));
    if (envelope.isReplicaWanted()) said.push_back("wants " + std::to_string(envelope.getReplicaWanted().getUpdate()));
  }
  std::vector<std::string> heard() { return std::exchange(said, {}); }

  SessionCore::Next next() { return core->next(lease); }
  /// Polls more often than anything happens: that changes nothing.
  template <class Poll>
  void expect_waits(const Poll& poll) {
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(poll());
    said.clear();
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(poll());
    EXPECT_THAT(said, IsEmpty());
  }
  void begin() {
    ASSERT_EQ(next(), PACELINE_CAPTURE);
    ASSERT_TRUE(core->capture({}));
    ASSERT_EQ(next(), PACELINE_BODY);
    said.clear();
  }
  SessionCore::Outcome step_model(double loss) { return core->step_model({loss, 8, 0.1}); }
  SessionCore::Outcome step_gradients(double value) {
    double gradients[] = {value, 2 * value};
    const paceline_span piece{gradients, kElements};
    return core->step_gradients({&piece, 1}, {value, 8, 0.1});
  }
  std::vector<double> numbers(paceline_span span) {
    const auto* const at = static_cast<const double*>(span.data);
    return at == nullptr ? std::vector<double>{} : std::vector<double>(at, at + span.elements);
  }
  /// The agent averages what is published: `value` everywhere. `members`: of an average of all.
  void average(double value, std::int64_t iteration, std::int32_t members = 0) {
    ASSERT_TRUE(window->seal());
    const auto result = window->begin_result();
    ASSERT_TRUE(result);
    const auto data = window->data(*result);
    for (std::size_t i = 0; i < kElements; ++i) std::memcpy(data.data() + i * sizeof value, &value, sizeof value);
    window->tag(*result).iteration = iteration;
    window->tag(*result).members = members;
    window->unseal(Window::Unseal::recycle);
  }
  void answer(memory::WorkerVerdict verdict) { control->set_verdict(verdict); }

  TestClock clock;
  std::optional<Window> window;
  std::optional<memory::ControlPage> control;
  std::optional<SessionCore> core;
  std::vector<std::string> said;
  paceline_lease lease{};
};

TEST_F(SessionCoreTest, AModelIsPublishedAndItsAverageComesBack) {
  open({});
  begin();
  expect_waits([&] { return step_model(1).has_value(); });
  EXPECT_EQ(window->progress().state.load(), static_cast<std::uint32_t>(State::wait));
  average(5, 0, 3);
  window->deliver();
  clock.at += 30ms;
  answer({.own = 0, .next = 1, .next_round = 1, .averaged = true});
  EXPECT_EQ(core->members(), 0);
  EXPECT_EQ(step_model(1), PACELINE_MOVED);
  EXPECT_EQ(core->members(), 3);
  EXPECT_THAT(numbers(core->model()), ElementsAre(5, 5));
  EXPECT_EQ(core->averagings(), 1u);
  EXPECT_EQ(window->progress().wait_ns.load(), std::chrono::nanoseconds(30ms).count());
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(lease.update, 1);
}

TEST_F(SessionCoreTest, BetweenRoundsNothingIsSaid) {
  open({.next_round = 2});
  begin();
  EXPECT_EQ(step_model(1), PACELINE_GO_ON);
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(step_model(2), PACELINE_GO_ON);
  EXPECT_THAT(heard(), IsEmpty());
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(step_model(3), std::nullopt);
  EXPECT_THAT(heard(), ElementsAre("arrive 2"));
}

TEST_F(SessionCoreTest, WhoPublishesWithoutARoundGoesOnFromTheSameNumbers) {
  open({.publishes_every = true});
  begin();
  auto* const model = static_cast<double*>(core->model().data);
  model[0] = 3;
  model[1] = 4;
  EXPECT_EQ(step_model(1), std::nullopt);
  answer({.own = 0, .next = 1, .next_round = 1});
  EXPECT_EQ(step_model(1), PACELINE_GO_ON);
  EXPECT_NE(core->model().data, model) << "that one is published";
  EXPECT_THAT(numbers(core->model()), ElementsAre(3, 4));
}

TEST_F(SessionCoreTest, APublicationBringsAllSamplesSinceTheLastAverage) {
  open({.publishes_every = true, .weighs_by_samples = true});
  begin();
  for (const std::int64_t t : {0, 1, 2}) {
    EXPECT_EQ(step_model(1), std::nullopt);
    EXPECT_EQ(window->tag(*window->published()).samples, t == 2 ? 8 : 8 * (t + 1));
    answer({.own = t, .next = t + 1, .next_round = t + 1, .averaged = t == 1});
    EXPECT_EQ(step_model(1), t == 1 ? PACELINE_MOVED : PACELINE_GO_ON);
  }
}

TEST_F(SessionCoreTest, AGradientThatNoRoundTookGoesWithTheNextOne) {
  JobTerms terms{.accumulates = true};
  terms.payloads.gradients_until = kAlways;
  open(terms);
  begin();
  EXPECT_EQ(step_gradients(1), std::nullopt);
  const auto others = window->begin_result();  // The round had fired without it.
  ASSERT_TRUE(others);
  window->deliver();
  answer({.own = 0, .next = 1, .next_round = 1, .fresh = false, .averaged = true});
  EXPECT_EQ(step_gradients(1), PACELINE_APPLY);
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(step_gradients(10), std::nullopt);
  EXPECT_THAT(numbers({window->data(*window->published()).data(), kElements}), ElementsAre(11, 22));
  EXPECT_EQ(window->tag(*window->published()).samples, 16);
}

TEST_F(SessionCoreTest, WhoWaitsWhenTheJobIsStoppedLeaves) {
  open({});
  begin();
  EXPECT_EQ(step_model(1), std::nullopt);
  control->words().stop.store(1);
  EXPECT_EQ(step_model(1), PACELINE_OVER);
  EXPECT_EQ(next(), PACELINE_END);
}

TEST_F(SessionCoreTest, WhoWaitsWhenItsAgentIsGoneIsLost) {
  open({});
  begin();
  EXPECT_EQ(step_model(1), std::nullopt);
  core->on_agent_gone();
  EXPECT_EQ(step_model(1), PACELINE_OVER);
  EXPECT_EQ(next(), PACELINE_LOST);
}

TEST_F(SessionCoreTest, OthersStartFromAReplica) {
  open({}, 1);
  expect_waits([&] { return next().has_value(); });
  EXPECT_TRUE(core->awaits_replica());
  auto object = must(store::SharedObject::create(8));
  auto filled = must(store::SharedObject::fill(object.fd().duplicate(), 8));
  ASSERT_TRUE(filled.seal());
  core->on_replica(3, must(store::SharedObject::map(object.fd().duplicate(), 8)));
  EXPECT_EQ(next(), PACELINE_RESTORE);
  EXPECT_EQ(core->replica().elements, 8u);
  EXPECT_TRUE(core->restored());
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(lease.update, 3);
}

TEST_F(SessionCoreTest, WhereThereIsNoReplicaItGoesOnFromItsOwn) {
  open({}, 1);
  EXPECT_EQ(next(), std::nullopt);
  EXPECT_THAT(heard(), ElementsAre("wants 0"));
  core->on_go_on(4);
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(lease.update, 4);
}

TEST_F(SessionCoreTest, WhoseAgentIsGoneBeforeAReplicaCameIsLost) {
  open({}, 1);
  EXPECT_EQ(next(), std::nullopt);
  core->on_agent_gone();
  EXPECT_EQ(next(), PACELINE_LOST);
}

TEST_F(SessionCoreTest, WhileOthersEvaluateItIsHeldAndGivesReplicas) {
  open({.next_round = 50});
  begin();
  EXPECT_EQ(step_model(1), PACELINE_GO_ON);
  control->words().hold.store(0);
  expect_waits([&] { return next().has_value(); });
  control->words().capture_wanted.fetch_add(1);
  EXPECT_EQ(next(), PACELINE_CAPTURE);
  EXPECT_TRUE(core->capture({}));
  EXPECT_THAT(heard(), ElementsAre("replica 1 of 0"));
  expect_waits([&] { return next().has_value(); });
  control->words().evaluate.store(0);
  EXPECT_EQ(next(), PACELINE_EVALUATE);
  core->evaluated(0.5);
  EXPECT_THAT(heard(), ElementsAre("evaluated"));
  expect_waits([&] { return next().has_value(); });
  control->words().hold.store(-1);
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(window->progress().wait_ns.load(), 0) << "no part of training";
}

TEST_F(SessionCoreTest, AReplicaOfALaterUpdateIsGivenBeforeThatIsBegun) {
  open({.next_round = 50});
  begin();
  control->words().capture_from.store(2);
  control->words().capture_wanted.fetch_add(1);
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(step_model(1), PACELINE_GO_ON);
  EXPECT_EQ(next(), PACELINE_BODY) << "it is at update 1";
  EXPECT_EQ(step_model(1), PACELINE_GO_ON);
  EXPECT_EQ(next(), PACELINE_CAPTURE);
  EXPECT_TRUE(core->capture({}));
  EXPECT_THAT(heard(), ElementsAre("replica 2 of 0"));
  EXPECT_EQ(next(), PACELINE_BODY);
}

TEST_F(SessionCoreTest, WhoComesBackBeginsWithTheStateOfAnotherAlsoAsRankZero) {
  open({.shows_start = true, .returns = true});
  EXPECT_EQ(next(), std::nullopt);
  EXPECT_THAT(heard(), ElementsAre("wants 0"));
  core->on_replica(7, must(store::SharedObject::sealed_copy({})));
  EXPECT_EQ(next(), PACELINE_RESTORE);
  EXPECT_TRUE(core->restored()) << "the agent has seen a start before";
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(lease.update, 7);
}

TEST_F(SessionCoreTest, WhereThereAreNoRoundsWhoComesBackShowsWhatItBeginsWith) {
  open({.own_pace = true, .shows_start = true, .returns = true});
  EXPECT_EQ(next(), std::nullopt);
  EXPECT_THAT(heard(), ElementsAre("wants 0"));
  core->on_replica(7, must(store::SharedObject::sealed_copy({})));
  EXPECT_EQ(next(), PACELINE_RESTORE);
  EXPECT_FALSE(core->restored());
  EXPECT_THAT(heard(), ElementsAre("arrive 6"));
  expect_waits([&] { return core->restored(); });
  answer({.own = 8, .next = 9, .next_round = 9});
  EXPECT_TRUE(core->restored());
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(lease.update, 9) << "as the agent says";
}

TEST_F(SessionCoreTest, WhoComesBackTooLateAsksForTheModelOfTheEnd) {
  open({.own_pace = true, .shows_start = true, .returns = true});
  EXPECT_EQ(next(), std::nullopt);
  core->on_replica(7, must(store::SharedObject::sealed_copy({})));
  EXPECT_EQ(next(), PACELINE_RESTORE);
  EXPECT_FALSE(core->restored());
  (void)heard();
  answer({.own = 6, .next = 7, .next_round = 7, .fresh = false, .end = true});
  EXPECT_TRUE(core->restored());
  EXPECT_EQ(next(), std::nullopt);
  EXPECT_THAT(heard(), ElementsAre("wants 7"));
}

TEST_F(SessionCoreTest, WhereTheJobEndsForALegOnlyItGoesOnInTheNext) {
  open({.next_round = 50});
  begin();
  EXPECT_EQ(step_model(1), PACELINE_GO_ON);
  control->words().last.store(0);
  control->words().hold.store(0);
  expect_waits([&] { return next().has_value(); });
  control->words().next_leg.store(1);
  expect_waits([&] { return next().has_value(); });
  control->words().hold.store(-1);
  EXPECT_EQ(next(), PACELINE_NEXT_LEG);
  EXPECT_NE(window->progress().state.load(), static_cast<std::uint32_t>(State::ended));
}

TEST_F(SessionCoreTest, OfALegThatIsOverNothingIsWaitedFor) {
  open({}, 1);
  EXPECT_EQ(next(), std::nullopt) << "for a replica";
  control->words().next_leg.store(1);
  EXPECT_EQ(next(), PACELINE_NEXT_LEG);
  open({.own_pace = true, .shows_start = true});
  ASSERT_EQ(next(), PACELINE_CAPTURE);
  EXPECT_FALSE(core->capture({})) << "that its start is seen";
  control->words().next_leg.store(1);
  EXPECT_TRUE(core->capture({}));
  EXPECT_EQ(next(), PACELINE_NEXT_LEG);
  open({});
  begin();
  EXPECT_EQ(step_model(1), std::nullopt) << "for a verdict";
  control->words().next_leg.store(1);
  EXPECT_EQ(step_model(1), PACELINE_OVER);
  EXPECT_EQ(next(), PACELINE_NEXT_LEG);
}

TEST_F(SessionCoreTest, InALaterLegAllBeginWithWhatTheyHave) {
  for (const std::int32_t rank : {0, 1}) {
    open({.first_update = 7, .publishes_every = true, .job = in_leg(JobId{7}, 2).value, .goes_on = true}, rank);
    EXPECT_EQ(core->info().leg, 2);
    EXPECT_EQ(next(), PACELINE_BODY) << "neither gives a state nor wants one";
    EXPECT_EQ(lease.update, 7);
    ASSERT_TRUE(window->published());
    EXPECT_EQ(window->tag(*window->published()).iteration, 6);
    EXPECT_THAT(heard(), IsEmpty());
  }
}

TEST_F(SessionCoreTest, AModelThatIsNotTheOneToStartFromIsNotPublished) {
  open({.publishes_every = true, .returns = true});
  EXPECT_EQ(next(), std::nullopt);
  EXPECT_TRUE(core->placed());
  EXPECT_FALSE(window->published());
  core->on_replica(7, must(store::SharedObject::sealed_copy({})));
  EXPECT_EQ(next(), PACELINE_RESTORE);
  EXPECT_TRUE(core->placed());  // In the window, where it is loaded.
  EXPECT_FALSE(window->published());
  EXPECT_TRUE(core->restored());
  ASSERT_TRUE(window->published());
  EXPECT_EQ(window->tag(*window->published()).iteration, 6);
}

TEST_F(SessionCoreTest, OneThatIsAskedToLeaveDoesBeforeItsNextUpdate) {
  open({});
  begin();
  control->words().leave = 1;
  EXPECT_EQ(step_model(1), std::nullopt) << "its last one counts";
  EXPECT_THAT(heard(), ElementsAre("arrive 0"));
  average(5, 0);
  window->deliver();
  answer({.own = 0, .next = 1, .next_round = 1, .averaged = true});
  EXPECT_EQ(step_model(1), PACELINE_MOVED);
  EXPECT_EQ(next(), PACELINE_END);
  EXPECT_EQ(next(), PACELINE_END);
  EXPECT_THAT(heard(), ElementsAre("left"));
  EXPECT_TRUE(core->has_left());
}

/// What it has done since the last average would be lost.
TEST_F(SessionCoreTest, OneThatIsAskedToLeaveBetweenTwoAveragesDoesAfterTheNext) {
  open({.next_round = 1});
  begin();
  EXPECT_EQ(step_model(1), PACELINE_GO_ON);
  control->words().leave = 1;
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(step_model(1), std::nullopt);
  average(5, 1);
  window->deliver();
  answer({.own = 1, .next = 2, .next_round = 3, .averaged = true});
  EXPECT_EQ(step_model(1), PACELINE_MOVED);
  EXPECT_EQ(next(), PACELINE_END);
}

TEST_F(SessionCoreTest, OneThatIsAskedToLeaveFinishesItsBatch) {
  open(abandoning(3));
  begin();
  EXPECT_EQ(step_gradients(1), PACELINE_GO_ON);
  control->words().leave = 1;
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(lease.body, 1);
}

TEST_F(SessionCoreTest, AStartThatTheAgentWantsToSeeIsWaitedFor) {
  open({.shows_start = true});
  EXPECT_EQ(next(), PACELINE_CAPTURE);
  EXPECT_FALSE(core->capture({}));
  EXPECT_THAT(heard(), ElementsAre("replica 0 of 0", "arrive -1"));
  expect_waits([&] { return core->capture({}); });
  answer({.own = -1, .next = 0, .next_round = 0});
  EXPECT_TRUE(core->capture({}));
  EXPECT_EQ(next(), PACELINE_BODY);
}

TEST_F(SessionCoreTest, AnUpdateThatAnotherEndsCountsWhatIsFinished) {
  open(abandoning(3));
  begin();
  EXPECT_EQ(step_gradients(1), PACELINE_GO_ON);
  EXPECT_FALSE(core->is_cut_short());
  control->words().abandoned.store(0);
  EXPECT_TRUE(core->is_cut_short());
  expect_waits([&] { return step_gradients(10).has_value(); });
  EXPECT_EQ(window->tag(*window->published()).bodies, 1) << "what was in flight is dropped";
  average(4, 0);
  window->retain();
  control->words().executed.store(0);
  EXPECT_EQ(step_gradients(10), PACELINE_APPLY);
  EXPECT_THAT(numbers(core->result()), ElementsAre(4, 4));
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(lease.update, 1);
}

TEST_F(SessionCoreTest, WhoMissesAnUpdateWantsAReplica) {
  open(abandoning(1));
  begin();
  EXPECT_EQ(step_gradients(1), std::nullopt);
  average(4, 1);
  window->retain();
  control->words().executed.store(1);
  EXPECT_EQ(step_gradients(1), PACELINE_DROPPED);
  said.clear();
  EXPECT_EQ(next(), std::nullopt);
  EXPECT_THAT(heard(), ElementsAre("wants 0"));
}

TEST_F(SessionCoreTest, ItsOwnBatchIsScaledByItsAgent) {
  JobTerms terms{.bodies = 2, .abandons = true, .shows_start = true};
  terms.payloads = {.gradients_until = kAlways, .models_every = 1};
  open(terms);
  EXPECT_EQ(next(), PACELINE_CAPTURE);
  EXPECT_FALSE(core->capture({}));
  answer({.own = -1, .next = 0});
  EXPECT_TRUE(core->capture({}));
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(step_gradients(1), PACELINE_GO_ON);
  said.clear();
  EXPECT_EQ(step_gradients(3), std::nullopt);
  EXPECT_THAT(heard(), ElementsAre("arrive 0 with 2"));
  answer({.own = 0, .next = 0, .scale = 0.5});
  EXPECT_EQ(step_gradients(3), PACELINE_APPLY);
  EXPECT_THAT(numbers(core->result()), ElementsAre(2, 4));
}

TEST_F(SessionCoreTest, ABatchThatWasOverBeforeItBeganIsNotDone) {
  JobTerms terms{.bodies = 2, .abandons = true, .shows_start = true};
  terms.payloads = {.gradients_until = kAlways, .models_every = 1};
  open(terms);
  EXPECT_EQ(next(), PACELINE_CAPTURE);
  EXPECT_FALSE(core->capture({}));
  answer({.own = -1, .next = 0});
  EXPECT_TRUE(core->capture({}));
  control->words().abandoned.store(0);
  expect_waits([&] { return next().has_value(); });
  answer({.own = 0, .next = 1, .averaged = true});
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(lease.update, 1);
}

TEST_F(SessionCoreTest, InAReplayItPublishesWhenItsTurnHasCome) {
  open({});
  begin();
  control->words().may_publish.store(INT64_MIN);
  expect_waits([&] { return step_model(1).has_value(); });
  EXPECT_EQ(window->tag(*window->published()).iteration, -1) << "its start";
  control->words().may_publish.store(INT64_MAX);
  EXPECT_EQ(step_model(1), std::nullopt);
  EXPECT_EQ(window->tag(*window->published()).iteration, 0);
}

TEST_F(SessionCoreTest, AloneItWaitsForItsAgentOnlyWhereItMayEnd) {
  JobTerms terms;
  terms.payloads.gradients_until = kAlways;
  open_as_it_is(terms);
  core->plan(0, 3, -1);
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_EQ(step_gradients(1), PACELINE_APPLY);
  EXPECT_THAT(numbers(core->result()), IsEmpty()) << "the caller's own";
  EXPECT_EQ(next(), PACELINE_BODY);
  core->stop_job("enough");
  EXPECT_EQ(step_gradients(1), std::nullopt);
  EXPECT_THAT(heard(), ElementsAre("plan", "arrive 0", "stop", "arrive 1"));
  answer({.own = 1, .next = 2});
  EXPECT_EQ(step_gradients(1), PACELINE_APPLY);
}

TEST_F(SessionCoreTest, WhenItsTimeIsUpItAsksForTheEndOnce) {
  open({.next_round = 50, .time_limit = 10ms});
  core->plan(0, 100, -1);
  begin();
  clock.at += 10ms;
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_THAT(heard(), ElementsAre("stop"));
  EXPECT_EQ(next(), PACELINE_BODY);
  EXPECT_THAT(heard(), IsEmpty());
}

}  // namespace
}  // namespace paceline::session
