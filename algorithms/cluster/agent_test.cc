#include "algorithms/cluster/agent.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "algorithms/cluster/head.h"
#include "algorithms/cluster/name_requests.h"
#include "algorithms/job/job_event_wire.h"
#include "runtime/base/json.h"
#include "runtime/base/steady_now.h"
#include "runtime/base/test_directory.h"
#include "runtime/base/turn_budget.h"
#include "runtime/transport/sim/sim_network.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;

/// Node 2, between a head and two other agents that are only endpoints here.
class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    for (auto* other : {&head_, &zero_, &one_}) {
      other->endpoint = network_.endpoint(other->name);
      EXPECT_TRUE(other->endpoint->listen("sim:" + other->name));
    }
    auto local = network_.endpoint("agent");
    EXPECT_TRUE(local->listen("sim:local"));
    Agent::Options options;
    options.node = NodeId{2};
    options.nodes = 3;
    options.directory = directory_.path;
    options.head_address = "sim:head";
    sut_ = std::make_unique<Agent>(options, loop_, std::move(local), network_.endpoint("agent/2"),
                                   *collective::Averager::create(1),
                                   *observe::Log::open(directory_.path / "agent.log", "agent"));
    EXPECT_TRUE(sut_->start());
    EXPECT_EQ(heard_by(head_), "hello:0 ");
    tell_nodes();
  }

  struct Other {
    std::string name;
    std::unique_ptr<transport::Transport> endpoint;
  };

  /// As words: kinds, verbs, events; progress goes by the clock.
  std::string heard_by(Other& other) {
    deliver();
    std::string heard;
    while (auto event = other.endpoint->poll(Duration::zero())) {
      if (event->kind != transport::Event::Kind::message) continue;
      const auto message = *wire::Received::parse(std::move(event->frames.front()));
      const auto envelope = message.root();
      if (envelope.isHello())
        heard += &other == &head_ ? "hello:" + std::to_string(envelope.getHello().getNewestJob()) + " " : "hello ";
      if (envelope.isOpenJob()) heard += "runs:" + std::to_string(envelope.getOpenJob().getJob()) + " ";
      if (envelope.isRequest() && wire::text(envelope.getRequest().getVerb()) != kNamesVerb)
        heard += wire::text(envelope.getRequest().getVerb()) + " ";
      if (envelope.isJobEvent()) {
        const auto body = job::to_json(envelope.getJobEvent());
        if (body["event"] != "progress") heard += body.value("event", "") + ":" + body.value("text", "") + " ";
      }
    }
    return heard;
  }

  void deliver() {
    for (int i = 0; i < 3; ++i) {
      network_.advance(network_.now() + std::chrono::milliseconds(1));
      sut_->tick(steady_now());
    }
  }

  void say(Other& from, wire::Message& message) {
    EXPECT_TRUE(from.endpoint->send("agent/2", {message.to_frame()}));
    deliver();
  }

  void tell_nodes(const std::string& address_of_one = "sim:agent/1") {
    wire::Message message;
    auto list = message.root().initNodes().initNodes(3);
    for (int node = 0; node < 3; ++node) {
      list[static_cast<unsigned>(node)].setNode(node);
      list[static_cast<unsigned>(node)].setAddress(node == 1 ? address_of_one : "sim:agent/" + std::to_string(node));
    }
    say(head_, message);
  }

  void welcome(Other& from) {
    wire::Message message;
    message.root().initWelcome();
    say(from, message);
  }

  /// A process of this node.
  std::unique_ptr<transport::Transport> driver(const std::string& name) {
    auto endpoint = network_.endpoint(name);
    EXPECT_TRUE(endpoint->connect("agent", "sim:local"));
    deliver();
    return endpoint;
  }
  static bool say_hello(transport::Transport& driver) {
    wire::Message message;
    message.root().initHello().setRole("driver");
    return driver.send("agent", {message.to_frame()}).has_value();
  }
  /// What marks the ids of whoever is welcomed, of each welcome.
  static std::vector<std::uint32_t> welcomes(transport::Transport& driver) {
    std::vector<std::uint32_t> processes;
    while (auto event = driver.poll(Duration::zero())) {
      if (event->kind != transport::Event::Kind::message) continue;
      const auto message = *wire::Received::parse(std::move(event->frames.front()));
      if (message.root().isWelcome()) processes.push_back(message.root().getWelcome().getProcess());
    }
    return processes;
  }

  void open_job(std::uint64_t job, std::int32_t driver_node = 0, const json& options = json::object()) {
    wire::Message message;
    auto body = message.root().initOpenJob();
    body.setJob(job);
    json given{{"strategy", "allreduce"}};
    given.update(options);
    body.setJson(json_text(given));
    auto driver = body.initDriver();
    driver.setNode(driver_node);
    driver.setPeer("driver/1");
    auto members = body.initMembers(2);
    for (unsigned rank = 0; rank < 2; ++rank) {
      members[rank].setRank(static_cast<std::int32_t>(rank));
      members[rank].setNode(rank == 0 ? 2 : 0);
    }
    say(head_, message);
  }

  void close_job(std::uint64_t job) {
    wire::Message message;
    message.root().initCloseJob().setJob(job);
    say(head_, message);
  }

  void stop_job(Other& from, std::uint64_t job, const std::string& reason) {
    wire::Message message;
    auto body = message.root().initStopRounds();
    body.setJob(job);
    body.setReason(reason);
    say(from, message);
  }

  test::TestDirectory directory_;
  EventLoop loop_ = *EventLoop::create();
  transport::SimNetwork network_{1};
  Other head_{"head", {}}, zero_{"agent/0", {}}, one_{"agent/1", {}};
  std::unique_ptr<Agent> sut_;
};

TEST_F(AgentTest, TheHeadIsToldOnceAllAgentsOfALowerNumberKnowThisOne) {
  EXPECT_EQ(heard_by(zero_), "hello ");
  EXPECT_EQ(heard_by(one_), "hello ");
  welcome(zero_);
  welcome(zero_);
  EXPECT_EQ(heard_by(head_), "");
  welcome(one_);
  EXPECT_EQ(heard_by(head_), "linked ");
  welcome(one_);
  EXPECT_EQ(heard_by(head_), "");
}

TEST_F(AgentTest, AnAgentThatWasStartedAnewIsConnectedToAnew) {
  welcome(zero_);
  welcome(one_);
  EXPECT_EQ(heard_by(head_), "linked ");
  network_.kill("agent/1");
  one_.endpoint = network_.endpoint("agent/1");
  EXPECT_TRUE(one_.endpoint->listen("sim:anew"));
  tell_nodes("sim:anew");
  EXPECT_EQ(heard_by(head_), "");
  EXPECT_EQ(heard_by(one_), "hello ");
  welcome(one_);
  EXPECT_EQ(heard_by(head_), "linked ");
}

TEST_F(AgentTest, AnAgentThatWasCutOffIsConnectedToAgainAndToldNothingUntilItAnswers) {
  welcome(zero_);
  welcome(one_);
  open_job(1, 1);
  EXPECT_EQ(heard_by(head_), "linked ");
  EXPECT_EQ(heard_by(one_), "hello ");
  network_.cut("agent/1", "agent/2");
  deliver();
  stop_job(zero_, 1, "meanwhile");
  EXPECT_EQ(heard_by(one_), "hello ");
  welcome(one_);
  EXPECT_EQ(heard_by(head_), "linked ");
  close_job(1);
  EXPECT_EQ(heard_by(one_), "stopping:meanwhile closed: ") << "the driver's part of it follows";
}

TEST_F(AgentTest, AHeadThatIsStartedAnewHearsWhatRunsAndIsAskedAgain) {
  welcome(zero_);
  welcome(one_);
  open_job(1);
  open_job(2);
  close_job(1);
  auto driver = network_.endpoint("driver/7");
  EXPECT_TRUE(driver->connect("agent", "sim:local"));
  wire::Message question;
  auto request = question.root().initRequest();
  request.setId(3);
  request.setVerb("status");
  EXPECT_TRUE(driver->send("agent", {question.to_frame()}));
  EXPECT_EQ(heard_by(head_), "linked status ");
  network_.kill("head");
  deliver();
  EXPECT_TRUE(sut_->headless());
  stop_job(zero_, 2, "goes on without it");
  EXPECT_EQ(heard_by(zero_).substr(0, 6), "hello ");
  head_.endpoint = network_.endpoint("head");
  EXPECT_TRUE(head_.endpoint->listen("sim:head"));
  EXPECT_EQ(heard_by(head_), "runs:2 hello:2 status ");
  tell_nodes();
  EXPECT_FALSE(sut_->headless());
  EXPECT_EQ(heard_by(head_), "linked ");
  open_job(2);  // It is open already.
  EXPECT_EQ(heard_by(zero_), "");
}

/// The one before it may have waited for another agent's word of the two.
TEST_F(AgentTest, AHeadThatIsStartedAnewHearsAgainWhoCannotBeReached) {
  welcome(zero_);
  welcome(one_);
  open_job(1);
  EXPECT_EQ(heard_by(head_), "linked ");
  network_.cut("agent/0", "agent/2");
  EXPECT_EQ(heard_by(head_), "cut_off ");
  wire::Message answered;
  auto body = answered.root().initReply();
  body.setId(1);
  body.setTo(HeadRequests::kSelf);
  body.setOk(true);
  body.setJson("{}");
  say(head_, answered);
  network_.kill("head");
  deliver();
  head_.endpoint = network_.endpoint("head");
  EXPECT_TRUE(head_.endpoint->listen("sim:head"));
  EXPECT_EQ(heard_by(head_), "runs:1 hello:1 cut_off ");
}

TEST_F(AgentTest, AHeadIsToldOfNamesFirstAndWhatHasOneNoMoreGivesItBack) {
  const auto told = [&] {
    std::string words;
    deliver();
    while (auto event = head_.endpoint->poll(Duration::zero())) {
      if (event->kind != transport::Event::Kind::message) continue;
      const auto message = *wire::Received::parse(std::move(event->frames.front()));
      const auto envelope = message.root();
      if (envelope.isHello()) words += "hello ";
      if (envelope.isRequest()) words += wire::text(envelope.getRequest().getVerb()) + " ";
      if (envelope.isReply()) words += wire::text(envelope.getReply().getJson()) + " ";
    }
    return words;
  };
  wire::Message granted;  // To an actor that nobody owns any more.
  auto body = granted.root().initReply();
  body.setId(1);
  body.setTo(HeadRequests::kSelf);
  body.setOk(true);
  body.setJson(R"({"asked": 7, "actor": 7, "name": "x"})");
  say(head_, granted);
  EXPECT_EQ(told(), "unclaim ");
  wire::Message question;
  auto request = question.root().initRequest();
  request.setVerb(kHasNameVerb);
  request.setJson(R"({"actor": 7})");
  say(head_, question);
  EXPECT_EQ(told(), R"({"has":false} )");
  network_.kill("head");
  deliver();
  head_.endpoint = network_.endpoint("head");
  EXPECT_TRUE(head_.endpoint->listen("sim:head"));
  EXPECT_EQ(told(), "names hello ");
}

TEST_F(AgentTest, EachProcessIsGivenWhatMarksItsIds) {
  std::set<std::uint32_t> seen{0};
  for (const char* name : {"driver/1", "driver/2", "worker/3"}) {
    const auto endpoint = driver(name);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(say_hello(*endpoint));
    deliver();
    const auto processes = welcomes(*endpoint);
    ASSERT_EQ(processes.size(), 2u);
    EXPECT_EQ(processes[0], processes[1]);
    EXPECT_TRUE(seen.insert(processes[0]).second) << name;
  }
}

TEST_F(AgentTest, AFloodHasItsShareOfATurnAndTheNextOneBeginsAtOnce) {
  constexpr std::size_t kFlood = 3 * TurnBudget::kMessages;
  const auto endpoint = driver("driver/1");
  for (std::size_t i = 0; i < kFlood; ++i) ASSERT_TRUE(say_hello(*endpoint));
  network_.advance(network_.now() + std::chrono::milliseconds(1));
  sut_->tick(steady_now());
  const auto due = sut_->next_deadline();
  ASSERT_TRUE(due);
  EXPECT_LE(*due, steady_now());
  network_.advance(network_.now() + std::chrono::milliseconds(1));
  std::size_t answered = welcomes(*endpoint).size();
  EXPECT_GT(answered, 0u);
  EXPECT_LE(answered, TurnBudget::kMessages);
  for (int turn = 0; turn < 10'000 && answered < kFlood; ++turn) {
    deliver();
    answered += welcomes(*endpoint).size();
  }
  EXPECT_EQ(answered, kFlood);
}

TEST_F(AgentTest, AMessageOfAnotherAgentMayComeBeforeTheHeadsWordOfItsJob) {
  stop_job(zero_, 1, "early");
  EXPECT_EQ(heard_by(zero_), "hello ");
  open_job(1);
  EXPECT_EQ(heard_by(zero_), "stopping:early ");
}

/// It may not know yet that the others go on without it.
TEST_F(AgentTest, TheWordOfANodeThatTheJobHasLostDoesNotCount) {
  welcome(zero_);
  welcome(one_);
  open_job(1, 1);
  heard_by(one_);
  wire::Message gone;
  auto body = gone.root().initNodeGone();
  body.setJob(1);
  body.setNode(0);
  say(head_, gone);
  EXPECT_EQ(heard_by(one_),
            "left:worker 1 is gone: node 0 is lost; the others go on without it node_lost:node 0 is lost ")
      << "this node leads now";
  stop_job(zero_, 1, "of the lost");
  EXPECT_EQ(heard_by(one_), "");
  stop_job(one_, 1, "of another");
  EXPECT_EQ(heard_by(one_), "stopping:of another ");
}

TEST_F(AgentTest, ADriverHearsOfAJobThatCannotBeOpened) {
  open_job(1, 0, {{"strategy", "nosuch"}});
  EXPECT_NE(heard_by(zero_).find("failed:"), std::string::npos);
  open_job(2, 0, {{"seed", "one"}});
  EXPECT_EQ(heard_by(zero_), "failed:option seed = one: give a whole number from 0 ");
}

TEST_F(AgentTest, AMessageThatCannotBeReadIsAnsweredWhereSomebodyWaits) {
  const auto call = [&](std::uint64_t task) {
    wire::Message message;
    auto body = message.root().initCall();
    body.setTask(task);
    body.setOwner("driver/9");
    body.initArguments(100'000);
    say(zero_, message);
  };
  call(7);
  deliver();
  bool answered = false;
  while (auto event = zero_.endpoint->poll(Duration::zero())) {
    if (event->kind != transport::Event::Kind::message) continue;
    const auto message = *wire::Received::parse(std::move(event->frames.front()));
    if (!message.root().isCallResult()) continue;
    const auto result = message.root().getCallResult();
    answered = result.getTask() == 7 && !result.getOk() && wire::text(result.getOwner()) == "driver/9";
  }
  EXPECT_TRUE(answered);
}

TEST_F(AgentTest, AMessageOfAJobThatIsOverChangesNothing) {
  open_job(1);
  close_job(1);
  EXPECT_EQ(heard_by(zero_), "hello closed: ") << "no reason of its own";
  stop_job(zero_, 1, "late");
  open_job(2);
  EXPECT_EQ(heard_by(zero_), "");
}

}  // namespace
}  // namespace paceline::cluster
