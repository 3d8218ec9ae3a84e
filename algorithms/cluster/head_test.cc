#include "algorithms/cluster/head.h"

#include <gtest/gtest.h>

#include <string>

#include "actors/process_ids.h"
#include "actors/protocol_wire.h"
#include "algorithms/cluster/name_requests.h"
#include "runtime/base/json.h"
#include "runtime/transport/sim/sim_network.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;

/// Between two agents that are only endpoints here.
class HeadTest : public testing::Test {
 protected:
  HeadTest() {
    EXPECT_TRUE(transport_->listen("sim:head"));
    for (auto* agent : {&zero_, &one_}) EXPECT_TRUE((*agent)->connect("head", "sim:head"));
    sut_ = std::make_unique<Head>(Head::Options{"cluster", 2, kStart, store_}, std::move(transport_));
  }

  void say(transport::Transport& from, wire::Message& message) {
    EXPECT_TRUE(from.send("head", {message.to_frame()}));
    network_.advance(network_.now() + std::chrono::milliseconds(1));
    sut_->poll(kStart);
  }

  void hello(transport::Transport& from) {
    wire::Message message;
    message.root().initHello().setRole("agent");
    say(from, message);
  }

  void request(transport::Transport& from, const std::string& verb, const std::string& body_json = "{}",
               std::uint64_t id = 0) {
    wire::Message message;
    auto body = message.root().initRequest();
    body.setId(id);
    body.setVerb(verb);
    body.setJson(body_json);
    say(from, message);
  }

  template <class Take>
  void for_each_told(transport::Transport& to, Take take) {
    network_.advance(network_.now() + std::chrono::milliseconds(1));
    while (auto event = to.poll(Duration::zero()))
      if (event->kind == transport::Event::Kind::message)
        take(wire::Received::parse(std::move(event->frames.front()))->root());
  }

  /// What this endpoint was last answered: JSON, or the text of the failure.
  std::string answered(transport::Transport& to) {
    std::string text;
    for_each_told(to, [&](const wire::Envelope::Reader& envelope) {
      if (!envelope.isReply()) return;
      const auto reply = envelope.getReply();
      text = wire::text(reply.getOk() ? reply.getJson() : reply.getError().getText());
    });
    return text;
  }

  /// What this endpoint was told, but for nodes and jobs to open; in words.
  std::string heard(transport::Transport& to) {
    std::string words;
    for_each_told(to, [&](const wire::Envelope::Reader& envelope) {
      if (envelope.isReply()) words += "reply ";
      if (envelope.isCloseJob()) words += "close " + std::to_string(envelope.getCloseJob().getJob()) + " ";
      if (envelope.isNodeGone())
        words += "without " + std::to_string(envelope.getNodeGone().getNode()) + ": " +
                 wire::text(envelope.getNodeGone().getCause()) + " ";
      if (envelope.isJobEvent()) words += "failed: " + wire::text(envelope.getJobEvent().getFailed().getText()) + " ";
    });
    return words;
  }

  void linked(transport::Transport& from, int epoch) {
    request(from, kLinkedVerb, "{\"epoch\": " + std::to_string(epoch) + "}");
  }

  void all_are_there() {
    hello(*zero_);
    hello(*one_);
    linked(*one_, 2);
  }

  /// Killed, and started again.
  void next_head() {
    network_.kill("head");
    sut_.reset();
    transport_ = network_.endpoint("head");
    EXPECT_TRUE(transport_->listen("sim:head"));
    for (auto* agent : {&zero_, &one_}) {
      (*agent)->disconnect("head");
      EXPECT_TRUE((*agent)->connect("head", "sim:head"));
    }
    sut_ = std::make_unique<Head>(Head::Options{"cluster", 2, kStart, store_}, std::move(transport_));
  }
  /// An agent tells it that it runs this job of both.
  void runs(transport::Transport& from, std::uint64_t job) {
    wire::Message message;
    auto body = message.root().initOpenJob();
    body.setJob(job);
    body.setJson("{}");
    auto members = body.initMembers(2);
    for (unsigned rank = 0; rank < 2; ++rank) {
      members[rank].setRank(static_cast<std::int32_t>(rank));
      members[rank].setNode(static_cast<std::int32_t>(rank));
    }
    body.initDriver().setPeer("driver/1");
    say(from, message);
  }
  std::string state_of_job(std::uint64_t job) {
    const ClusterState state(store_);
    for (const auto& row : state.jobs_over())
      if (row.at("job") == job) return row.at("state");
    return state.newest().value >= job ? "running" : "none";
  }

  static constexpr Instant kStart{std::chrono::seconds(1)};
  std::shared_ptr<store::MemoryStore> store_ = std::make_shared<store::MemoryStore>();
  transport::SimNetwork network_{1};
  std::unique_ptr<transport::Transport> zero_ = network_.endpoint("agent/0");
  std::unique_ptr<transport::Transport> one_ = network_.endpoint("agent/1");
  std::unique_ptr<transport::Transport> transport_ = network_.endpoint("head");
  std::unique_ptr<Head> sut_;
};

TEST_F(HeadTest, IsReadyOnceAllNodesAreThereAndReachEachOther) {
  hello(*zero_);
  EXPECT_FALSE(sut_->ready());
  hello(*one_);
  EXPECT_FALSE(sut_->ready()) << "node 1 may not have reached node 0 yet";
  linked(*one_, 2);
  EXPECT_TRUE(sut_->ready());
  hello(*zero_);
  linked(*one_, 2);
  EXPECT_FALSE(sut_->ready()) << "node 0 was started anew: node 1 is not connected to that one";
  linked(*one_, 3);
  EXPECT_TRUE(sut_->ready());
}

TEST_F(HeadTest, AJobWaitsUntilThen) {
  hello(*zero_);
  hello(*one_);
  request(*zero_, "submit", R"({"workers": 2})");
  EXPECT_EQ(answered(*zero_), "");
  linked(*one_, 2);
  EXPECT_EQ(answered(*zero_), R"({"batches":1,"cluster_nodes":2,"job":1,"nodes":[0,1],"strategy":"allreduce"})");
}

TEST_F(HeadTest, AJobOfWhoseAgentIsGoneMeanwhileIsNotOpened) {
  hello(*zero_);
  hello(*one_);
  request(*zero_, "submit", R"({"workers": 2})");
  network_.kill("agent/0");
  network_.advance(network_.now() + std::chrono::milliseconds(1));
  sut_->poll(kStart);
  zero_ = network_.endpoint("agent/0");
  EXPECT_TRUE(zero_->connect("head", "sim:head"));
  network_.advance(network_.now() + std::chrono::milliseconds(1));
  hello(*zero_);
  linked(*one_, 4);
  ASSERT_TRUE(sut_->ready());
  EXPECT_EQ(answered(*zero_), "");
  request(*zero_, "submit", R"({"workers": 2})");
  EXPECT_NE(answered(*zero_).find(R"("job":1)"), std::string::npos) << "the first one that there is";
}

TEST_F(HeadTest, ButNotForEver) {
  hello(*zero_);
  request(*zero_, "submit", R"({"workers": 2})");
  sut_->tick(kStart + std::chrono::seconds(4));
  EXPECT_EQ(answered(*zero_), "");
  ASSERT_EQ(sut_->next_deadline(), kStart + std::chrono::seconds(5));
  sut_->tick(*sut_->next_deadline());
  EXPECT_NE(answered(*zero_).find("1 of its 2 nodes"), std::string::npos);
}

TEST_F(HeadTest, TheSameRequestOfTheSameAskerIsTheSameJob) {
  all_are_there();
  const std::string first = R"({"batches":1,"cluster_nodes":2,"job":1,"nodes":[0,1],"strategy":"allreduce"})";
  for (int i = 0; i < 2; ++i) {
    request(*zero_, "submit", R"({"workers": 2})", 5);
    EXPECT_EQ(answered(*zero_), first);
  }
  request(*zero_, "submit", R"({"workers": 2})", 6);
  EXPECT_NE(answered(*zero_), first);
}

TEST_F(HeadTest, JobsGetNoWorkersOnDrainedNodes) {
  all_are_there();
  request(*zero_, "submit", R"({"workers": 2})");
  request(*zero_, "drain", R"({"node": 1})");
  EXPECT_EQ(answered(*zero_), R"({"jobs":[1],"node":1})");
  request(*zero_, "drain", R"({"node": 1})");
  EXPECT_EQ(answered(*zero_), R"({"jobs":[1],"node":1})") << "nothing more happens";
  request(*zero_, "submit", R"({"workers": 2})", 6);
  EXPECT_EQ(answered(*zero_), R"({"batches":1,"cluster_nodes":2,"job":2,"nodes":[0,0],"strategy":"allreduce"})");
  request(*zero_, "scale", R"({"job": 1, "workers": 2})");
  EXPECT_NE(answered(*zero_).find("job 1 has from 1 to 1"), std::string::npos);
  request(*zero_, "drain", R"({"worker": 0})");
  EXPECT_EQ(answered(*zero_), "2 jobs run here: say which with --job");
  request(*zero_, "drain", R"({"node": 0})");
  request(*zero_, "scale", R"({"job": 1, "workers": 1})");
  EXPECT_EQ(answered(*zero_), "all nodes of job 1 are drained");
  request(*zero_, "submit", R"({"workers": 2})", 7);
  EXPECT_NE(answered(*zero_).find("all nodes are drained"), std::string::npos);
}

/// All of its jobs have to be able to go on without its workers.
TEST_F(HeadTest, ANodeIsNotDrainedForSomeOfItsJobs) {
  all_are_there();
  request(*zero_, "submit", R"({"workers": 2})");
  request(*zero_, "submit", R"({"workers": 2, "strategy": "noloco"})", 6);
  request(*zero_, "drain", R"({"node": 1})");
  EXPECT_NE(answered(*zero_).find("no worker can leave job 2 under noloco"), std::string::npos);
  request(*zero_, "submit", R"({"workers": 1})", 7);
  request(*zero_, "drain", R"({"worker": 0, "job": 3})");
  EXPECT_EQ(answered(*zero_), "job 3 has one worker: it cannot go on without");
  request(*zero_, "submit", R"({"workers": 2})", 8);
  EXPECT_NE(answered(*zero_).find(R"("nodes":[0,1])"), std::string::npos);
  request(*zero_, "drain", R"({"node": 1, "whatever_stays": true})");
  EXPECT_EQ(answered(*zero_), R"({"jobs":[1,4],"node":1})") << "an agent that ends";
}

TEST_F(HeadTest, WhatAJobGoesOnWithIsWhatWasAskedFor) {
  all_are_there();
  request(*zero_, "submit", R"-({"workers": 2, "strategy": "local-sgd(period=4)"})-");
  (void)answered(*zero_);
  const auto set = [&](const std::string& what) {
    request(*zero_, "set", R"({"job": 1, )" + what + "}");
    return answered(*zero_);
  };
  const auto other = set(R"("parameters": {"period": "8"})");
  EXPECT_NE(other.find(R"-("before":"local-sgd(period=4)")-"), std::string::npos) << other;
  EXPECT_NE(other.find(R"-("text":"local-sgd(period=8)")-"), std::string::npos) << other;
  EXPECT_NE(set(R"("lr_factor": 0.5)").find("local-sgd(period=8), learning rates times 0.5"), std::string::npos);
  EXPECT_EQ(set(R"-("strategy": "local-sgd(period=8)")-"),
            "the strategy of job 1 cannot be changed: it is local-sgd(period=8), learning rates times 0.5 already");
  EXPECT_NE(set(R"("strategy": "allreduce", "lr_factor": 1)").find(R"("text":"allreduce")"), std::string::npos);
  EXPECT_NE(set(R"("parameters": {"period": "8"})").find("unknown parameter 'period'"), std::string::npos);
  for (const char* factor : {"0", "-1", "1e7", "null", R"("2")"})
    EXPECT_NE(set(R"("lr_factor": )" + std::string(factor)).find("give a number above 0, at most 1000000"),
              std::string::npos)
        << factor;
}

TEST_F(HeadTest, AJobThatIsNotElasticKeepsItsWorkers) {
  all_are_there();
  request(*zero_, "submit", R"({"workers": 2, "elastic": false})");
  EXPECT_NE(answered(*zero_).find(R"("job":1)"), std::string::npos);
  request(*zero_, "scale", R"({"job": 1, "workers": 2})");
  EXPECT_EQ(answered(*zero_),
            "job 1 keeps its 2 workers: its script says elastic = false, or it was started with --elastic no");
  request(*zero_, "drain", R"({"worker": 0})");
  EXPECT_NE(answered(*zero_).find("no worker can leave job 1: its script says elastic = false"), std::string::npos);
  request(*zero_, "drain", R"({"node": 1})");
  EXPECT_NE(answered(*zero_).find("no worker can leave job 1"), std::string::npos);
}

TEST_F(HeadTest, WhatADriverWasToldIsClosedIsSoForTheNextHead) {
  all_are_there();
  request(*zero_, "submit", R"({"workers": 2})");
  request(*zero_, "close", R"({"job": 1, "outcome": {"state": "ended", "updates": 9}})");
  EXPECT_EQ(state_of_job(1), "ended") << "before it is answered";
  EXPECT_EQ(heard(*one_), "close 1 ");
  next_head();
  runs(*one_, 1);  // It has not heard of the end.
  hello(*one_);
  EXPECT_EQ(heard(*one_), "close 1 ");
  hello(*zero_);
  linked(*one_, 2);
  request(*zero_, "submit", R"({"workers": 2})", 7);
  EXPECT_NE(answered(*zero_).find(R"("job":2)"), std::string::npos) << "no number twice";
}

TEST_F(HeadTest, AJobOfNodesThatTheNextHeadDoesNotHearOfYetIsNotLost) {
  all_are_there();
  request(*zero_, "submit", R"({"workers": 2})");
  sut_->tick(kStart);
  EXPECT_EQ(state_of_job(1), "running");
  (void)heard(*one_);
  next_head();
  sut_->tick(kStart + std::chrono::minutes(1));
  EXPECT_EQ(state_of_job(1), "running");
  for (auto* agent : {zero_.get(), one_.get()}) {
    runs(*agent, 1);
    hello(*agent);
  }
  linked(*one_, 2);
  sut_->tick(kStart + std::chrono::minutes(1));
  EXPECT_EQ(state_of_job(1), "running");
  EXPECT_EQ(heard(*one_), "");
}

TEST_F(HeadTest, AJobThatNobodyRunsWasLost) {
  all_are_there();
  request(*zero_, "submit", R"({"workers": 2})");
  sut_->tick(kStart);
  next_head();
  all_are_there();
  sut_->tick(kStart);
  EXPECT_EQ(state_of_job(1), "failed");
  request(*zero_, "submit", R"({"workers": 2})", 7);
  EXPECT_NE(answered(*zero_).find(R"("job":2)"), std::string::npos) << "no number twice";
}

TEST_F(HeadTest, WhatIsWrongWithARequestIsItsAnswer) {
  all_are_there();
  request(*zero_, "submit", R"({"workers": 2000000000})");
  EXPECT_EQ(answered(*zero_), "option workers = 2000000000: give a number from 1 to 4096");
  request(*zero_, "submit", "{}");
  EXPECT_EQ(answered(*zero_), "a job needs at least one worker: submit says nothing of it");
  request(*zero_, "submit", R"({"workers": "two"})");
  EXPECT_NE(answered(*zero_).find("workers = two"), std::string::npos);
  request(*zero_, "close", R"({"job": "first"})");
  EXPECT_NE(answered(*zero_).find("type must be number, but is string"), std::string::npos);
  request(*zero_, "stop", R"({"job": [1]})");
  EXPECT_NE(answered(*zero_).find("type must be number, but is array"), std::string::npos);
  request(*zero_, "\xff");
  EXPECT_NE(answered(*zero_).find("knows no request"), std::string::npos);
}

TEST_F(HeadTest, OfTwoAgentsThatCannotReachEachOtherTheDriversGoesOnWithTheirJob) {
  all_are_there();
  for (const int driver : {0, 1}) {
    request(driver == 0 ? *zero_ : *one_, "submit", json{{"workers", 4}, {"strategy", "ad-psgd"}}.dump());
    (void)heard(*zero_);
    (void)heard(*one_);
    for (auto* from : {one_.get(), zero_.get()})
      request(*from, kCutOffVerb,
              json{{"node", from == one_.get() ? 0 : 1}, {"jobs", {driver + 1}}, {"cause", "silent"}}.dump());
    EXPECT_EQ(heard(*zero_), driver == 0 ? "without 1: silent reply " : "close 2 reply ");
    EXPECT_EQ(heard(*one_), driver == 0 ? "reply close 1 " : "without 0: silent reply ");
  }
  request(*one_, kCutOffVerb, R"({"node": 0, "jobs": ["first"]})");
  request(*one_, kCutOffVerb, R"({"node": 0, "jobs": {"a": 1}})");
}

TEST_F(HeadTest, ANameIsGivenOnceAllNodesAreThereAndToAnotherOnlyIfItsAgentHasItNoMore) {
  const auto answer = [&](transport::Transport& agent, bool has) {
    std::uint64_t id = 0;
    for_each_told(agent, [&](const wire::Envelope::Reader& envelope) {
      if (envelope.isRequest() && wire::text(envelope.getRequest().getVerb()) == kHasNameVerb)
        id = envelope.getRequest().getId();
    });
    wire::Message message;
    auto body = message.root().initReply();
    body.setId(id);
    body.setOk(true);
    body.setJson(has ? R"({"has": true})" : R"({"has": false})");
    say(agent, message);
  };
  const auto first = actors::actor_id(NodeId{0}, 1, 1).value;
  const auto second = actors::actor_id(NodeId{1}, 1, 1).value;
  hello(*zero_);
  request(*zero_, kClaimVerb, json_text(json{{"name", "x"}, {"actor", first}}));
  hello(*one_);
  EXPECT_EQ(answered(*zero_), "");
  linked(*one_, 2);
  EXPECT_EQ(answered(*zero_), json_text(json{{"actor", first}, {"asked", first}, {"name", "x"}}));

  request(*one_, kClaimVerb, json_text(json{{"name", "x"}, {"actor", second}}));
  EXPECT_EQ(answered(*one_), "");
  answer(*zero_, true);
  EXPECT_NE(answered(*one_).find("actor 'x' lives already"), std::string::npos);
  request(*one_, kClaimVerb, json_text(json{{"name", "x"}, {"actor", second}}));
  answer(*zero_, false);
  EXPECT_EQ(answered(*one_), json_text(json{{"actor", second}, {"asked", second}, {"name", "x"}}));

  request(*one_, kUnclaimVerb, json_text(json{{"name", "x"}, {"actor", second}}));
  request(*zero_, actors::kFindVerb, R"({"name": "x"})");
  EXPECT_NE(answered(*zero_).find("no actor 'x' lives"), std::string::npos);
  request(*zero_, kClaimVerb, R"({"name": 7})");
  EXPECT_NE(answered(*zero_).find("type must be string, but is number"), std::string::npos);
}

TEST_F(HeadTest, AnAgentsStatusOfAnotherShapeIsTheAskersError) {
  hello(*zero_);
  hello(*one_);
  request(*zero_, "status");
  for (auto* agent : {&zero_, &one_}) {
    wire::Message message;
    auto body = message.root().initReply();
    body.setId(1);
    body.setOk(true);
    body.setJson(R"({"workers": 1, "jobs": [{"job": "one"}]})");
    say(**agent, message);
  }
  EXPECT_NE(answered(*zero_).find("type must be number, but is string"), std::string::npos);
}

TEST_F(HeadTest, WhatAgentsAreAskedForIsListedAndActorsAwaitedHaveTheirNames) {
  hello(*zero_);
  hello(*one_);
  request(*zero_, kNamesVerb, R"({"names": [{"actor": 17, "name": "counter", "claims": true}]})");
  request(*zero_, "status", R"({"workers": "waiting", "tasks": "all"})");
  wire::Message message;
  auto body = message.root().initReply();
  body.setOk(true);
  body.setJson(R"({"workers": 2, "cpus_free": 0.5, "actors_alive": 3, "held": [{"owner": "driver/1"}],
                   "tasks": [{"owner": "driver/1"}],
                   "worker_list": [{"id": "1", "awaited": "17"}, {"id": "2", "awaited": null, "waits_for": "a task"}, 3]})");
  body.setId(1);
  for (auto* agent : {&zero_, &one_}) say(**agent, message);
  const auto status = parse_json(answered(*zero_));
  ASSERT_TRUE(status.is_object());
  EXPECT_EQ(status["nodes_expected"], 2);
  EXPECT_EQ(status["tasks"].size(), 2u);
  EXPECT_EQ(status["workers"].size(), 6u);
  EXPECT_EQ(status["workers"][0]["waits_for"], "actor 'counter'");
  EXPECT_EQ(status["workers"][1]["waits_for"], "a task");
  EXPECT_FALSE(status.contains("actors"));
  EXPECT_EQ(status["nodes"][0]["cpus_free"], 0.5);
  EXPECT_EQ(status["nodes"][0]["actors"], 3);
  EXPECT_EQ(status["nodes"][0]["held"][0]["owner"], "driver/1");
}

}  // namespace
}  // namespace paceline::cluster
