#include "scheduler/rounds/round_coordinator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>

#include "scheduler/shell/averaging_service.h"
#include "scheduler/shell/averaging_service_test_support.h"
#include "tests/support/rounds/test_plan.h"

// The shell with windows and without sockets: models that weigh their samples, and an outer model that doubles each
// mean.

namespace paceline::scheduler {
namespace {

constexpr std::int64_t kPeriod = 2;

/// Fires with the first arrival; models, all, every kPeriod.
std::unique_ptr<RoundPlan> plan() {
  auto answers = test::local_sgd(kPeriod, Lateness::skips);
  answers.round = [given = answers.round](Version v) {
    Round round = given(v);
    round.trigger = Trigger::quorum;
    round.quorum = 1;
    return round;
  };
  return std::make_unique<test::TestPlan>(answers);
}

void doubled(memory::Dtype, std::span<std::byte> model, std::span<std::byte>, std::span<std::byte> mean) {
  auto* const next = reinterpret_cast<double*>(mean.data());
  next[0] *= 2;
  std::memcpy(model.data(), next, sizeof(double));
}

class RoundCoordinatorTest : public ::testing::Test {
 protected:
  struct Node {
    TaskGraph graph{{}};
    std::shared_ptr<AveragingService> service;
  };

  /// Rank -> node.
  void make(std::vector<std::int32_t> node_of) {
    const std::size_t nodes = static_cast<std::size_t>(node_of.back()) + 1;
    for (std::size_t n = 0; n < nodes; ++n) {
      RoundCoordinator::Options options;
      JobOptions job;
      for (const auto of : node_of) job.node_of.push_back(NodeId{of});
      job.self = NodeId{static_cast<std::int32_t>(n)};
      job.last = Version{9};
      job.evaluates = evaluate_every_ > 0;
      job.evaluate_every = evaluate_every_;
      options.weighing.by_samples = true;
      options.outer_step = doubled;
      options.outer_elements = 1;
      const auto send = [this, from = job.self](NodeId to, wire::Message& message, auto bulk) {
        auto body = std::make_shared<wire::Message>(message.root().asReader());
        network_.push_back([this, from, to, body, sum = bulk.empty() ? Piece{} : bulk[0]] {
          at(to).on_message(from, body->root().asReader(), {sum.bytes.begin(), sum.bytes.end()}, now);
        });
      };
      auto& node = nodes_.emplace_back(std::make_unique<Node>());
      const auto make = [&](Workplace& work) { return std::make_unique<RoundCoordinator>(work, options, plan()); };
      node->service = std::make_shared<AveragingService>(job, make, node->graph, *averager_, send);
    }
    node_of_ = std::move(node_of);
  }

  AveragingService& at(NodeId node) { return *nodes_.at(static_cast<std::size_t>(node.value))->service; }
  AveragingService& of(int rank) { return at(NodeId{node_of_.at(static_cast<std::size_t>(rank))}); }

  void join(int rank) {
    auto window = memory::Window::create({.elements = 1, .dtype = memory::Dtype::f64, .buffers = 5});
    auto control = memory::ControlPage::create();
    ASSERT_TRUE(window && control);
    ASSERT_TRUE(of(rank).join(Rank{rank}, std::move(*window), std::move(*control)));
  }
  void publish(int rank, std::int64_t t, double model, std::int64_t samples) {
    auto& window = *of(rank).window(Rank{rank});
    const auto buffer = window.writing();
    ASSERT_TRUE(buffer);
    std::memcpy(window.data(*buffer).data(), &model, sizeof model);
    window.tag(*buffer) = {.iteration = t, .bodies = 1, .samples = samples};
    ASSERT_TRUE(window.publish(true));
    of(rank).on_arrival(Rank{rank}, Version{t}, std::chrono::seconds(1), now);
  }
  void start(int rank) { publish(rank, -1, 0, 0); }
  void deliver_all() {
    for (; !network_.empty(); network_.pop_front()) network_.front()();
  }

  double model(int rank) {
    auto& window = *of(rank).window(Rank{rank});
    double value = 0;
    std::memcpy(&value, window.data(*window.writing()).data(), sizeof value);
    return value;
  }
  memory::WorkerVerdict verdict(int rank) { return of(rank).control(Rank{rank})->verdict(0)->verdict; }
  std::string failure(int rank) {
    for (const auto& event : of(rank).take_events())
      if (const auto* failed = std::get_if<AveragingService::Failed>(&event)) return failed->text;
    return {};
  }

  std::int64_t hold(int rank) { return of(rank).control(Rank{rank})->words().hold.load(); }

  Instant now{};
  std::int64_t evaluate_every_ = 0;
  std::unique_ptr<collective::Averager> averager_ = std::move(*collective::Averager::create(1));
  std::vector<std::int32_t> node_of_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::deque<std::function<void()>> network_;
};

TEST_F(RoundCoordinatorTest, ModelsWeighTheirSamplesAndNoneCountsTwice) {
  make({0, 0});
  for (const int rank : {0, 1}) {
    join(rank);
    start(rank);
  }
  publish(1, 0, 8, 1);
  publish(0, 0, 1, 2);
  publish(0, 1, 2, 3);
  EXPECT_EQ(model(0), 2 * (3 * 2 + 1 * 8) / 4.0);
  publish(0, 2, 3, 1);
  publish(0, 3, 5, 2);  // The other one has done nothing since.
  EXPECT_EQ(model(0), 2 * 5);
}

/// The word that an evaluation is over may come before what a slow node has given for the round.
TEST_F(RoundCoordinatorTest, ARoundWhoseEvaluationIsOverHoldsNobody) {
  evaluate_every_ = 2;
  make({0, 1});
  for (const int rank : {0, 1}) {
    join(rank);
    start(rank);
  }
  for (const int t : {0, 1}) publish(0, t, t, 1);
  at(NodeId{1}).release(Version{1});
  deliver_all();
  EXPECT_EQ(hold(0), 1);
  EXPECT_EQ(hold(1), -1);
  at(NodeId{0}).release(Version{1});
  EXPECT_EQ(hold(0), -1);
  for (const int t : {2, 3}) publish(0, t, t, 1);
  deliver_all();
  EXPECT_EQ(hold(1), 3) << "the next one does";
}

TEST_F(RoundCoordinatorTest, WhoHasMissedTwoRoundsTakesTheNewestOuterModel) {
  make({0, 1});
  for (const int rank : {0, 1}) {
    join(rank);
    start(rank);
  }
  for (const int t : {0, 1, 2, 3}) {
    publish(0, t, t, 1);
    deliver_all();
  }
  EXPECT_EQ(model(0), 6);
  publish(1, 0, 100, 1);
  EXPECT_EQ(model(1), 6);
  const auto& window = *of(1).window(Rank{1});
  EXPECT_EQ(window.tag(*window.writing()).members, 2);
  EXPECT_FALSE(verdict(1).fresh);
  EXPECT_EQ(verdict(1).next, 4);
}

TEST_F(RoundCoordinatorTest, ANodeOnWhichNobodyHasBegunEndsItsFirstRoundOnceSomebodyHas) {
  make({0, 1});
  join(0);
  start(0);
  for (const int t : {0, 1}) publish(0, t, 4, t + 1);
  join(1);
  deliver_all();
  EXPECT_EQ(at(NodeId{0}).done(), Version{1});
  EXPECT_EQ(at(NodeId{1}).done(), Version{-1});
  start(1);
  EXPECT_EQ(verdict(1).next, 0);
  EXPECT_EQ(at(NodeId{1}).done(), Version{1});
  publish(1, 0, 100, 1);
  EXPECT_EQ(model(1), 8);
}

TEST_F(RoundCoordinatorTest, ANodeOnWhichNobodyIsLeftIsInNobodysWay) {
  make({0, 1});
  join(0);
  start(0);
  join(1);
  for (const int t : {0, 1}) publish(0, t, 4, t + 1);
  deliver_all();
  EXPECT_EQ(at(NodeId{1}).done(), Version{-1});
  of(1).on_gone(Rank{1}, now);
  EXPECT_EQ(at(NodeId{1}).done(), Version{1});
}

TEST_F(RoundCoordinatorTest, PartialSumsThatWeighNothingOrAreOfAnotherModelFailTheJob) {
  struct Partial {
    std::int32_t contributions;
    std::int64_t samples;
    std::size_t bytes;
    const char* said;
  };
  for (const auto& [contributions, samples, bytes, said] :
       {Partial{1, 0, 8, "weighs nothing"}, Partial{1, -3, 8, "weighs nothing"}, Partial{-1, 3, 8, "weighs nothing"},
        Partial{1, 3, 16, "node 1 sent a partial sum of 16 bytes, expected 8"}}) {
    nodes_.clear();
    make({0, 1});
    join(0);
    start(0);
    wire::Message message;
    auto body = message.root().initPartial();
    body.setVersion(1);
    body.setContributions(contributions);
    body.setSamples(samples);
    at(NodeId{0}).on_message(NodeId{1}, message.root().asReader(), std::vector<std::byte>(bytes), now);
    EXPECT_NE(failure(0).find(said), std::string::npos) << said;
    EXPECT_EQ(at(NodeId{0}).done(), Version{-1});
  }
}

TEST_F(RoundCoordinatorTest, APartialSumThatCameBeforeTheModelWasKnownIsCheckedWhenItIs) {
  make({0, 1});
  wire::Message message;
  auto body = message.root().initPartial();
  body.setVersion(1);
  body.setContributions(1);
  body.setSamples(3);
  at(NodeId{0}).on_message(NodeId{1}, message.root().asReader(), std::vector<std::byte>(4), now);
  join(0);
  start(0);
  EXPECT_NE(failure(0).find("4 bytes, expected 8"), std::string::npos);
}

/// Of three places one is vacant, or its worker has left.
class GradientsOfThoseThatAreThere : public ServiceTest {
 protected:
  void SetUp() override {
    auto answers = test::allreduce();
    answers.round = [given = answers.round](Version v) {
      Round round = given(v);
      round.payload = Payload::gradients;
      return round;
    };
    auto job = two_workers();
    job.node_of.push_back(NodeId{0});
    job.evaluates = false;
    RoundCoordinator::Options options;
    options.weighing.divisor = Weighing::Divisor::members;
    const auto make = [&](Workplace& work) {
      return std::make_unique<RoundCoordinator>(work, options, std::make_unique<test::TestPlan>(answers));
    };
    service_ = std::make_shared<AveragingService>(job, make, graph_, *averager_, nowhere());
  }
  double mean_of_two() {
    publish(0, 0, 3);
    publish(1, 0, 5);
    end_averagings();
    return numbers(0, *window(0).writing())[0];
  }
};

TEST_F(GradientsOfThoseThatAreThere, AVacantPlaceIsNoWorkerThatGaveNothing) {
  join(0);
  join(1);
  service_->on_gone(Rank{2}, now);
  EXPECT_EQ(mean_of_two(), 4);
  for (const int rank : {0, 1}) EXPECT_EQ(window(rank).tag(*window(rank).writing()).members, 2) << rank;
}

TEST_F(GradientsOfThoseThatAreThere, NorIsOneThatHasLeft) {
  for (const int rank : {0, 1, 2}) join(rank);
  service_->on_gone(Rank{2}, now);
  EXPECT_EQ(mean_of_two(), 4);
}

TEST_F(GradientsOfThoseThatAreThere, AndWhoTakesAPlaceIsThereWhenItIsAdmitted) {
  join(0);
  join(1);
  service_->on_gone(Rank{2}, now);
  auto new_window = memory::Window::create({.elements = kElements, .dtype = memory::Dtype::f64, .buffers = 4});
  auto control = memory::ControlPage::create();
  ASSERT_TRUE(new_window && control);
  ASSERT_TRUE(service_->take_place(Rank{2}, std::move(*new_window), std::move(*control)));
  service_->on_arrival(Rank{2}, Version{0}, std::chrono::seconds(1), now);  // It may not.
  EXPECT_EQ(mean_of_two(), 4);
  service_->on_return(Rank{2}, now);
  (void)executed();
  auto other_size = memory::Window::create({.elements = kElements + 1, .dtype = memory::Dtype::f64, .buffers = 4});
  ASSERT_TRUE(other_size);
  const auto refused = service_->take_place(Rank{2}, std::move(*other_size), std::move(*memory::ControlPage::create()));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("every worker must build the same model"), std::string::npos);
}

/// Gradients of who is there and of models of all in turn, as under eager-sgd.
class GradientsAndModelsInTurn : public ServiceTest {
 protected:
  void SetUp() override {
    test::TestPlan::Answers answers;
    answers.round = [](Version v) {
      Round round{Round::Kind::sync, Trigger::first_arrived, Lateness::accumulates, {}};
      round.payload = Payload::gradients;
      return v.value % 2 == 0 ? round : Round{Round::Kind::sync, Trigger::all_arrived, Lateness::waits, {}};
    };
    auto job = two_workers();
    job.evaluates = false;
    RoundCoordinator::Options options;
    options.weighing.divisor = Weighing::Divisor::members;
    const auto make = [&](Workplace& work) {
      return std::make_unique<RoundCoordinator>(work, options, std::make_unique<test::TestPlan>(answers));
    };
    begin(std::make_shared<AveragingService>(job, make, graph_, *averager_, nowhere()));
  }
};

TEST_F(GradientsAndModelsInTurn, AModelThatCameBackTooLateIsNoGradient) {
  service_->on_gone(Rank{1}, now);
  publish(0, 0, 3);
  end_averagings();
  begin_return(1);
  publish(0, 1, 5);
  end_averagings();
  publish(1, 1, 7);  // All that were there have averaged their models.
  const auto passed_by = verdict(1);
  ASSERT_TRUE(passed_by && !passed_by->averaged);
  ASSERT_TRUE(window(1).writing()) << "it goes on with its own";
  EXPECT_EQ(numbers(1, *window(1).writing())[0], 7);
  publish(0, 2, 2);
  end_averagings();
  EXPECT_EQ(numbers(0, *window(0).writing())[0], 1) << "a gradient of the two";
  EXPECT_TRUE(window(1).writing());
}

}  // namespace
}  // namespace paceline::scheduler
