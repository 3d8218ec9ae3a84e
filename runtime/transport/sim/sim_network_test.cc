#include "runtime/transport/sim/sim_network.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/transport/transport_test_support.h"

namespace paceline::transport {
namespace {

using namespace std::chrono_literals;
using test::describe;
using test::message;

std::vector<std::string> drain(Transport& transport) {
  std::vector<std::string> events;
  while (auto event = transport.poll(1h)) events.push_back(describe(*event));
  return events;
}

using Events = std::vector<std::string>;

class SimNetworkTest : public testing::Test {
 protected:
  SimNetwork sut{1, 8};
  std::unique_ptr<Transport> a = sut.endpoint("a");
  std::unique_ptr<Transport> b = sut.endpoint("b");

  void step(Duration by = 0ns) { sut.advance(sut.now() + by); }
  /// b dials a; both have seen it.
  void join() {
    ASSERT_TRUE(a->listen("sim:a"));
    ASSERT_TRUE(b->connect("a", "sim:a"));
    step(1s);
    ASSERT_EQ(drain(*a), Events{"connected b"});
    ASSERT_EQ(drain(*b), Events{"connected a"});
  }
};

TEST_F(SimNetworkTest, DialWaitsForTheListenerAndMessagesForTheDial) {
  ASSERT_TRUE(b->connect("boss", "sim:a"));
  ASSERT_TRUE(b->send("boss", message("early")));
  step(1s);
  EXPECT_TRUE(drain(*b).empty());
  EXPECT_EQ(a->listen("sim:a").value(), "sim:a");
  step();
  EXPECT_EQ(drain(*a), (Events{"connected b", "message b early"}));
  EXPECT_EQ(drain(*b), Events{"connected boss"});
}

TEST_F(SimNetworkTest, MessageTakesTheLatencyAndNoLonger) {
  join();
  sut.set_faults({.latency = 5ms});
  const Instant start = sut.now();
  ASSERT_TRUE(a->send("b", message("x")));
  EXPECT_EQ(sut.next_event(), start + 5ms);
  sut.advance(start + 5ms - 1ns);
  EXPECT_TRUE(drain(*b).empty());
  sut.advance(start + 5ms);
  EXPECT_EQ(drain(*b), Events{"message a x"});
  EXPECT_EQ(sut.next_event(), std::nullopt);
}

TEST_F(SimNetworkTest, JitterKeepsTheOrder) {
  join();
  sut.set_faults({.latency = 1ms, .jitter = 50ms});
  Events expected;
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(a->send("b", message(std::to_string(i))));
    expected.push_back("message a " + std::to_string(i));
  }
  step(1s);
  EXPECT_EQ(drain(*b), expected);
}

TEST_F(SimNetworkTest, DropLosesThatShareAndReorderingSwapsSome) {
  SimNetwork network(7);
  auto from = network.endpoint("from");
  auto to = network.endpoint("to");
  ASSERT_TRUE(to->listen("sim:to"));
  ASSERT_TRUE(from->connect("to", "sim:to"));
  network.advance(network.now() + 1s);
  (void)drain(*to);
  network.set_faults("from", "to", {.drop = 0.25, .duplicate = 0.1, .reorder = 0.3});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(from->send("to", message(std::string(1, static_cast<char>(i)))));
    network.advance(network.now() + 100us);
  }
  network.advance(network.now() + 1s);
  const auto counts = network.counts();
  EXPECT_NEAR(static_cast<double>(counts.lost), 250, 50);
  EXPECT_NEAR(static_cast<double>(counts.delivered), 750 * 1.1, 60);
  int swapped = 0;
  std::optional<Event> last;
  while (auto event = to->poll(0ns)) {
    if (last && static_cast<signed char>(event->frames[0][0]) - static_cast<signed char>(last->frames[0][0]) < 0)
      ++swapped;
    last = std::move(event);
  }
  EXPECT_GT(swapped, 20);
}

TEST_F(SimNetworkTest, PartitionLosesMessagesBothWaysAndTellsNobody) {
  join();
  sut.partition("b", "a");
  ASSERT_TRUE(a->send("b", message("1")));
  ASSERT_TRUE(b->send("a", message("2")));
  step(1s);
  EXPECT_TRUE(drain(*a).empty());
  EXPECT_TRUE(drain(*b).empty());
  sut.heal("a", "b");
  ASSERT_TRUE(a->send("b", message("3")));
  step(1s);
  EXPECT_EQ(drain(*b), Events{"message a 3"});
  EXPECT_EQ(sut.counts().lost, 2u);
}

TEST_F(SimNetworkTest, DeathBehindAPartitionIsHeardOfWhenItHeals) {
  join();
  sut.partition("a", "b");
  sut.kill("a");
  step(1s);
  EXPECT_TRUE(drain(*b).empty());
  sut.heal("a", "b");
  step();
  EXPECT_EQ(drain(*b), Events{"disconnected a"});
}

TEST_F(SimNetworkTest, KilledEndpointIsDeafAndDumbAndItsPeersHearOfIt) {
  join();
  ASSERT_TRUE(b->send("a", message("lost")));
  ASSERT_TRUE(a->send("b", message("last")));
  sut.kill("a");
  step();
  EXPECT_TRUE(drain(*a).empty());
  EXPECT_EQ(a->send("b", message("x")).error().kind, ErrorKind::disconnected);
  EXPECT_EQ(drain(*b), (Events{"message a last", "disconnected a"}));
  EXPECT_EQ(b->send("a", message("x")).error().kind, ErrorKind::disconnected);
}

TEST_F(SimNetworkTest, KilledNameMayComeBackAndTheOldObjectStaysDead) {
  join();
  sut.kill("a");
  step();
  (void)drain(*b);
  auto heir = sut.endpoint("a");
  ASSERT_TRUE(heir->listen("sim:a"));
  ASSERT_TRUE(b->connect("a", "sim:a"));
  step();
  EXPECT_EQ(drain(*heir), Events{"connected b"});
  EXPECT_TRUE(drain(*a).empty());
  EXPECT_FALSE(a->send("b", message("ghost")));
  a.reset();  // And its end does not end the heir.
  EXPECT_TRUE(heir->send("b", message("x")));
}

TEST_F(SimNetworkTest, PausedEndpointHearsEverythingLater) {
  join();
  sut.pause("b");
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(a->send("b", message(std::to_string(i))));
  EXPECT_EQ(a->send("b", message("x")).error().kind, ErrorKind::overloaded);
  step(1h);
  EXPECT_TRUE(drain(*b).empty());
  EXPECT_EQ(a->send("b", message("x")).error().kind, ErrorKind::overloaded);
  sut.resume("b");
  EXPECT_EQ(drain(*b).size(), 8u);
  EXPECT_TRUE(a->send("b", message("x")));
}

TEST_F(SimNetworkTest, DisconnectIsHeardByTheOtherSideOnly) {
  join();
  b->disconnect("a");
  step();
  EXPECT_TRUE(drain(*b).empty());
  EXPECT_EQ(drain(*a), Events{"disconnected b"});
  EXPECT_EQ(a->send("b", message("x")).error().kind, ErrorKind::disconnected);
}

TEST_F(SimNetworkTest, AddressInUseAndSecondConnectionAreInvalid) {
  join();
  EXPECT_EQ(b->listen("sim:a").error().kind, ErrorKind::invalid);
  EXPECT_EQ(b->connect("a", "sim:a").error().kind, ErrorKind::invalid);
  const auto first = b->listen("sim:*").value();
  EXPECT_NE(b->listen("sim:*").value(), first);
}

/// Twenty endpoints that forward what they get, under every fault; all that anybody saw, with the time.
std::string history(std::uint64_t seed) {
  SimNetwork network(seed);
  network.set_faults({.latency = 1ms, .jitter = 3ms, .drop = 0.02, .duplicate = 0.05, .reorder = 0.1});
  std::vector<std::unique_ptr<Transport>> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(network.endpoint(std::to_string(i)));
    EXPECT_TRUE(all.back()->listen("sim:" + std::to_string(i)));
    for (int j = 0; j < i; ++j) EXPECT_TRUE(all.back()->connect(std::to_string(j), "sim:" + std::to_string(j)));
  }
  std::string text;
  for (int events = 0; events < 3000; ++events) {
    const auto next = network.next_event();
    if (!next) break;
    network.advance(*next);
    for (std::size_t i = 0; i < all.size(); ++i) {
      while (auto event = all[i]->poll(0ns)) {
        text += std::to_string(network.now().time_since_epoch().count()) + " " + std::to_string(i) + " " +
                describe(*event) + "\n";
        if (event->kind == Event::Kind::message || event->kind == Event::Kind::connected) {
          (void)all[i]->send(std::to_string((i * 7 + static_cast<std::size_t>(events)) % 20),
                             message(std::to_string(events)));
        }
      }
    }
    if (events == 500) network.kill("3");
    if (events == 700) network.partition("4", "5");
    if (events == 900) network.pause("6");
    if (events == 1500) network.heal("4", "5"), network.resume("6");
  }
  return text;
}

TEST(SimNetworkSeed, SameSeedGivesTheSameRunAndAnotherSeedAnother) {
  const std::string first = history(42);
  EXPECT_GT(first.size(), 20'000u);
  EXPECT_EQ(first, history(42));
  EXPECT_NE(first, history(43));
}

}  // namespace
}  // namespace paceline::transport
