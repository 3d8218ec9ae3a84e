#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "algorithms/cluster/agent.h"
#include "algorithms/cluster/head.h"
#include "runtime/base/steady_now.h"
#include "runtime/base/test_directory.h"
#include "runtime/transport/sim/sim_network.h"
#include "runtime/wire/any_message_test_support.h"

namespace paceline::cluster {
namespace {

/// Node 0 with the head; a second agent, a driver, a worker and its session are endpoints that say anything.
class Node {
 public:
  Node() {
    auto head = network_.endpoint("head");
    auto peers = network_.endpoint("agent/0");
    auto local = network_.endpoint("agent");
    EXPECT_TRUE(head->listen("sim:head"));
    EXPECT_TRUE(local->listen("sim:local"));
    EXPECT_TRUE(peers->listen("sim:agent/0"));
    head_ = std::make_unique<Head>(Head::Options{"cluster", 2, steady_now()}, std::move(head));
    Agent::Options options;
    options.node = NodeId{0};
    options.nodes = 2;
    options.directory = directory_.path;
    options.head_address = "sim:head";
    agent_ =
        std::make_unique<Agent>(options, loop_, std::move(local), std::move(peers), *collective::Averager::create(1),
                                *observe::Log::open(directory_.path / "agent.log", "agent"));
    EXPECT_TRUE(agent_->start());
    join("driver/1", "agent", "sim:local", kOfPeers);
    join("worker/1", "agent", "sim:local", kOfPeers);
    join("session/1", "agent", "sim:local", kOfSessions);
    join("session/2", "agent", "sim:local", kOfSessions);
    join("agent/1", "agent/0", "sim:agent/0", kOfAgents);
    EXPECT_TRUE(others_.back().endpoint->connect("head", "sim:head"));
    for (const char* const to : {"agent/0", "head"}) {
      wire::Message hello;
      hello.root().initHello().setRole("agent");
      say(others_.back(), to, hello.to_frame());
    }
    wire::Message linked;
    linked.root().initRequest().setVerb(kLinkedVerb);
    linked.root().getRequest().setJson(R"({"epoch": 2})");
    say(others_.back(), "head", linked.to_frame());
    EXPECT_TRUE(head_->ready());
  }

  void hear(wire::AnyMessage& messages) {
    Other& from = others_[messages.below(others_.size())];
    const bool to_head = from.name == "agent/1" && messages.one_of(3);
    say(from, to_head ? "head" : from.to, messages.frame(to_head ? kToHead : from.says));
    agent_->tick(steady_now() + std::chrono::seconds(messages.one_of(10) ? 60 : 0));
    (void)loop_.run_once(Duration::zero());
  }

  /// Its driver asks for the cluster's state.
  bool answers() {
    constexpr std::uint64_t kId = 77'777;
    wire::Message message;
    auto request = message.root().initRequest();
    request.setId(kId);
    request.setVerb("status");
    request.setJson("{}");
    auto& driver = others_.front();
    drain();
    EXPECT_TRUE(driver.endpoint->send(driver.to, {message.to_frame()}));
    deliver();
    head_->tick(steady_now() + std::chrono::seconds(1));
    deliver();
    while (auto event = driver.endpoint->poll(Duration::zero())) {
      if (event->kind != transport::Event::Kind::message) continue;
      const auto answer = *wire::Received::parse(std::move(event->frames.front()));
      if (answer.root().isReply() && answer.root().getReply().getId() == kId) return answer.root().getReply().getOk();
    }
    return false;
  }

 private:
  using Kind = wire::Envelope;
  using Kinds = std::vector<Kind::Which>;
  inline static const Kinds kOfPeers{Kind::HELLO,       Kind::REQUEST,    Kind::CREATE_ACTOR, Kind::CALL,
                                     Kind::CALL_RESULT, Kind::PUSH_TASK,  Kind::ACTOR_READY,  Kind::ALIVE,
                                     Kind::WAITS,       Kind::EXECUTABLE, Kind::WANTS,        Kind::OUTPUT_WANTED};
  inline static const Kinds kOfSessions{Kind::OPEN_SHARE,     Kind::ARRIVE,      Kind::ARRIVE,     Kind::REPORT,
                                        Kind::REPLICA_WANTED, Kind::OPEN_OBJECT, Kind::SEAL_OBJECT};
  inline static const Kinds kToHead{Kind::HELLO, Kind::OPEN_JOB, Kind::REQUEST, Kind::REQUEST, Kind::REPLY};
  inline static const Kinds kOfAgents{Kind::OPEN_JOB,       Kind::ACTIVATE,      Kind::PARTIAL,      Kind::RELEASED,
                                      Kind::REPLICA_WANTED, Kind::REPLICA_NONE,  Kind::REPLICA_DATA, Kind::SETTLED,
                                      Kind::SHARE,          Kind::GONE,          Kind::AWAITED,      Kind::ENDING,
                                      Kind::EXCHANGE,       Kind::BATCH,         Kind::STOP_ROUNDS,  Kind::NODES,
                                      Kind::NODE_GONE,      Kind::WANTS,         Kind::LOAN,         Kind::PUSH_TASK,
                                      Kind::OUTPUT,         Kind::OUTPUT_WANTED, Kind::FLUSHED};

  struct Other {
    std::string name;
    std::string to;
    Kinds says;
    std::unique_ptr<transport::Transport> endpoint;
  };

  void join(const std::string& name, const std::string& to, const std::string& address, const Kinds& says) {
    others_.push_back({name, to, says, network_.endpoint(name)});
    EXPECT_TRUE(others_.back().endpoint->listen("sim:" + name));
    EXPECT_TRUE(others_.back().endpoint->connect(to, address));
  }

  void say(Other& from, const std::string& to, transport::Frame frame) {
    std::vector<transport::Frame> frames;
    frames.push_back(std::move(frame));
    if (bulk_++ % 3 == 0) frames.emplace_back(bulk_ % 100);
    (void)from.endpoint->send(to, std::move(frames));
    deliver();
    drain();
  }

  void drain() {
    for (auto& other : others_)
      while (other.endpoint->poll(Duration::zero())) {
      }
  }

  void deliver() {
    for (int i = 0; i < 4; ++i) {
      network_.advance(network_.now() + std::chrono::milliseconds(1));
      head_->poll(steady_now());
      agent_->tick(steady_now());
    }
  }

  test::TestDirectory directory_;
  EventLoop loop_ = *EventLoop::create();
  transport::SimNetwork network_{1};
  std::vector<Other> others_;
  std::unique_ptr<Head> head_;
  std::unique_ptr<Agent> agent_;
  std::size_t bulk_ = 0;
};

TEST(AnyInputTest, NothingThatAnybodySaysEndsAgentOrHead) {
  constexpr std::uint64_t kSeeds = 200;
  constexpr int kMessages = 400;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    wire::AnyMessage messages(seed);
    Node sut;
    for (int i = 0; i < kMessages; ++i) sut.hear(messages);
    ASSERT_TRUE(sut.answers());
  }
}

}  // namespace
}  // namespace paceline::cluster
