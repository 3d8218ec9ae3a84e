#include "runtime/link/link_transport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/transport/sim/sim_network.h"
#include "tests/support/sanitized.h"

namespace paceline::link {
namespace {

using namespace std::chrono_literals;
using transport::Event;
using transport::Piece;
using transport::SimNetwork;

Frame bytes(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return Frame(first, first + text.size());
}
std::string text_of(const Frame& frame) { return {reinterpret_cast<const char*>(frame.data()), frame.size()}; }

/// Everything small, so that a few kilobytes meet every bound.
LinkTransport::Options small_options() {
  LinkTransport::Options options;
  options.sending.chunk_bytes = 100;
  options.sending.inline_bytes = 64;
  options.sending.window = {.bytes_min = 250, .bytes_max = 1500, .target = 8ms};
  options.receiving.head_credit = 4 * (64 + kUnitBytes);
  options.receiving.bulk_credit = 800;
  return options;
}

/// Processes on a simulated network. Each listens at "sim:NAME", and hears events in words.
class Cluster {
 public:
  explicit Cluster(std::uint64_t seed = 1, LinkTransport::Options options = small_options())
      : network(seed), options_(std::move(options)) {
    network.set_faults({.latency = 1ms});
    options_.clock = &network;
  }

  LinkTransport& start(const std::string& name) {
    Process& process = processes_[name];
    process.transport.reset();
    auto options = options_;
    options.incarnation = ++incarnations_;
    process.transport = std::make_unique<LinkTransport>(network.endpoint(name), options);
    EXPECT_TRUE(process.transport->listen("sim:" + name));
    return *process.transport;
  }
  void kill(const std::string& name) {
    network.kill(name);
    processes_.erase(name);
  }
  void freeze(const std::string& name, bool frozen) {
    processes_[name].is_frozen = frozen;
    frozen ? network.pause(name) : network.resume(name);
  }

  /// Everything that happens for so long; `on_event` (name, event) is told all of it.
  template <class OnEvent>
  void run(Duration time, OnEvent&& on_event) {
    const Instant until = network.now() + time;
    for (int idle = 0; idle < 1000;) {
      bool any = false;
      std::optional<Instant> next = until;
      for (auto& [name, process] : processes_) {
        if (process.is_frozen) continue;
        while (auto event = process.transport->poll(0ns)) {
          any = true;
          on_event(name, *event);
        }
        if (const auto due = process.transport->next_deadline()) next = std::min(*next, *due);
      }
      if (any) continue;
      if (const auto due = network.next_event()) next = std::min(*next, *due);
      idle = *next > network.now() ? 0 : idle + 1;
      if (network.now() >= until && *next >= until) return;
      network.advance(std::max(*next, network.now()));
    }
    FAIL() << "the cluster does not come to rest";
  }
  /// The same, in words.
  std::string run(Duration time) {
    std::string heard;
    run(time, [&](const std::string& name, const Event& event) {
      static constexpr const char* kNames[] = {"message", "connected", "disconnected", "refused", "contested"};
      heard += name + ": " + kNames[static_cast<int>(event.kind)] + " " + event.peer;
      if (!event.frames.empty()) heard += " " + text_of(event.frames[0]);
      if (!event.cause.empty()) heard += " (" + event.cause + ")";
      heard += "\n";
    });
    return heard;
  }

  SimNetwork network;

 private:
  struct Process {
    std::unique_ptr<LinkTransport> transport;
    bool is_frozen = false;
  };
  LinkTransport::Options options_;
  std::uint64_t incarnations_ = 0;
  std::map<std::string, Process> processes_;
};

std::vector<Frame> message(std::string_view text, std::size_t bulk = 0) {
  std::vector<Frame> frames{bytes(text)};
  if (bulk > 0) frames.emplace_back(bulk, std::byte{7});
  return frames;
}

class LinkTransportTest : public testing::Test {
 protected:
  LinkTransportTest() {
    EXPECT_TRUE(b->connect("a", "sim:a"));
    EXPECT_EQ(cluster.run(10ms), "b: connected a\na: connected b\n");
  }

  Cluster cluster;
  LinkTransport* a = &cluster.start("a");
  LinkTransport* b = &cluster.start("b");
};

TEST_F(LinkTransportTest, MessagesTravelBothWays) {
  ASSERT_TRUE(a->send("b", message("to b")));
  ASSERT_TRUE(b->send("a", message("to a", 5000)));
  EXPECT_EQ(cluster.run(1s), "b: message a to b\na: message b to a\n");
}

TEST_F(LinkTransportTest, PiecesAreKeptUntilAllOfThemHasComeAndNoLonger) {
  auto bulk = std::make_shared<Frame>(2000);
  for (std::size_t i = 0; i < bulk->size(); ++i) (*bulk)[i] = static_cast<std::byte>(i % 251);
  const Frame expected = *bulk;
  const std::weak_ptr<const Frame> kept = bulk;
  ASSERT_TRUE(a->send_pieces("b", bytes("head"), {{bulk, *bulk}, {bulk, std::span(*bulk).first(20)}, {nullptr, {}}}));
  bulk.reset();
  std::vector<Frame> came;
  const auto take = [&](const std::string&, Event& event) { came = std::move(event.frames); };
  for (int i = 0; i < 3; ++i) {
    cluster.run(4ms, take);
    EXPECT_FALSE(kept.expired());
    cluster.network.cut("a", "b");
  }
  EXPECT_TRUE(came.empty()) << "the connections were cut too late";
  cluster.run(1s, take);
  EXPECT_TRUE(kept.expired());
  ASSERT_EQ(came.size(), 4u);
  EXPECT_EQ(text_of(came[0]), "head");
  EXPECT_EQ(came[1], expected);
  EXPECT_EQ(came[2], Frame(expected.begin(), expected.begin() + 20));
  EXPECT_TRUE(came[3].empty());
}

TEST(LinkBoundTest, WhatThereIsNoRoomForIsLeftAsItWas) {
  auto options = small_options();
  options.sending.waiting_bytes_max = 1000;
  Cluster cluster(1, options);
  LinkTransport& sut = cluster.start("a");
  ASSERT_TRUE(sut.connect("b", "sim:b"));
  while (sut.send("b", message("text"))) {
  }
  auto frames = message("text", 500);
  EXPECT_EQ(sut.send("b", std::move(frames)).error().kind, ErrorKind::overloaded);
  // NOLINTNEXTLINE(bugprone-use-after-move): what is refused stays the caller's.
  EXPECT_EQ(frames, message("text", 500));
  Frame head = bytes("head");
  std::vector<Piece> pieces = transport::pieces_of(std::make_shared<std::vector<Frame>>(message("bulk", 500)));
  EXPECT_EQ(sut.send_pieces("b", std::move(head), std::move(pieces)).error().kind, ErrorKind::overloaded);
  // NOLINTNEXTLINE(bugprone-use-after-move): what is refused stays the caller's.
  EXPECT_EQ(head, bytes("head"));
  // NOLINTNEXTLINE(bugprone-use-after-move): what is refused stays the caller's.
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[1].bytes.size(), 500u);
  EXPECT_EQ(sut.send_pieces("nobody", std::move(head), std::move(pieces)).error().kind, ErrorKind::disconnected);
}

TEST_F(LinkTransportTest, ALinkThatNobodyNeedsHasNoDeadline) {
  ASSERT_TRUE(a->send("b", message("one", 3000)));
  (void)cluster.run(100ms);
  EXPECT_FALSE(a->next_deadline());
  EXPECT_FALSE(b->next_deadline());
  EXPECT_FALSE(cluster.network.next_event());
}

TEST_F(LinkTransportTest, ACutConnectionGoesOn) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(a->send("b", message(std::to_string(i), 1000)));
  std::string heard;
  for (int i = 0; i < 20; ++i) {
    heard += cluster.run(3ms);
    cluster.network.cut("a", "b");
  }
  heard += cluster.run(1s);
  EXPECT_EQ(heard, "b: message a 0\nb: message a 1\nb: message a 2\nb: message a 3\nb: message a 4\n");
}

TEST_F(LinkTransportTest, AFrozenPeerIsNoticedWithinItsLeaseByWhoDependsOnIt) {
  a->depends_on("b", true);
  (void)cluster.run(5s);
  cluster.freeze("b", true);
  EXPECT_EQ(cluster.run(1750ms), "");
  EXPECT_EQ(cluster.run(300ms), "a: disconnected b (b has not answered for 2.0 s)\n");
  EXPECT_EQ(a->send("b", message("x")).error().kind, ErrorKind::disconnected);
}

TEST_F(LinkTransportTest, AFrozenPeerIsNoticedWithinItsLeaseByWhoHasSentItSomething) {
  cluster.freeze("b", true);
  EXPECT_EQ(cluster.run(1h), "");
  ASSERT_TRUE(a->send("b", message("are you there")));
  EXPECT_EQ(cluster.run(2001ms), "a: disconnected b (b has not answered for 2.0 s)\n");
}

TEST_F(LinkTransportTest, AFreezeOfLessThanTheLeaseCostsNothing) {
  a->depends_on("b", true);
  cluster.freeze("b", true);
  ASSERT_TRUE(a->send("b", message("first", 2000)));
  EXPECT_EQ(cluster.run(1800ms), "");
  cluster.freeze("b", false);
  EXPECT_EQ(cluster.run(10s), "b: message a first\n");
}

TEST_F(LinkTransportTest, WhoIsThawedAfterItsLeaseHearsThatTheLinkIsOver) {
  a->depends_on("b", true);
  b->depends_on("a", true);
  cluster.freeze("b", true);
  (void)cluster.run(3s);
  cluster.freeze("b", false);
  EXPECT_EQ(cluster.run(10s), "b: disconnected a (a has ended the link)\n");
}

TEST_F(LinkTransportTest, WhileOneStoodStillItselfNobodyWasSilent) {
  a->depends_on("b", true);
  (void)cluster.run(1s);
  cluster.freeze("a", true);
  (void)cluster.run(10s);
  cluster.freeze("a", false);
  EXPECT_EQ(cluster.run(10s), "");
}

TEST_F(LinkTransportTest, ADeadProcessIsNoticedAtOnceByWhoeverConnected) {
  cluster.kill("b");
  EXPECT_EQ(cluster.run(50ms), "a: disconnected b (b is gone: nobody listens at its address any more)\n");
}

TEST_F(LinkTransportTest, ANewIncarnationEndsTheLinkToTheOldOne) {
  ASSERT_TRUE(a->send("b", message("for the old one")));
  cluster.kill("b");
  b = &cluster.start("b");
  ASSERT_TRUE(b->connect("a", "sim:a"));
  EXPECT_EQ(cluster.run(50ms), "a: disconnected b (b was started anew)\na: connected b\nb: connected a\n");
  ASSERT_TRUE(a->send("b", message("for the new one")));
  EXPECT_EQ(cluster.run(1s), "b: message a for the new one\n");
}

TEST_F(LinkTransportTest, WhoConnectedToAnOldIncarnationConnectsAgain) {
  cluster.kill("a");
  a = &cluster.start("a");
  EXPECT_EQ(cluster.run(1s), "b: disconnected a (a was started anew)\n");
  ASSERT_TRUE(b->connect("a", "sim:a"));
  EXPECT_EQ(cluster.run(1s), "b: connected a\na: connected b\n");
}

TEST_F(LinkTransportTest, WhatHadArrivedComesBeforeTheEnd) {
  ASSERT_TRUE(a->send("b", message("last words", 300)));
  (void)a->poll(0ns);
  cluster.network.advance(cluster.network.now() + 20ms);
  (void)b->poll(0ns);
  cluster.run(5ms, [](const std::string&, const Event&) {});
  a->disconnect("b");
  EXPECT_EQ(cluster.run(1s), "b: disconnected a (a has ended the link)\n");
}

TEST_F(LinkTransportTest, APartitionOfLessThanTheLeaseLosesNothing) {
  for (const char* text : {"0", "1", "2"}) {
    ASSERT_TRUE(a->send("b", message(text, 900)));
    (void)cluster.run(2ms);
    cluster.network.partition("a", "b");
    EXPECT_EQ(cluster.run(1500ms), "");
    cluster.network.heal("a", "b");
    EXPECT_EQ(cluster.run(1900ms), "b: message a " + std::string(text) + "\n");
  }
}

TEST_F(LinkTransportTest, APartitionBeyondTheLeaseEndsTheLinkOnBothSides) {
  a->depends_on("b", true);
  b->depends_on("a", true);
  cluster.network.partition("a", "b");
  EXPECT_EQ(cluster.run(2500ms),
            "a: disconnected b (b has not answered for 2.0 s)\nb: disconnected a (a has not answered for 2.0 s)\n");
  cluster.network.heal("a", "b");
  EXPECT_EQ(cluster.run(10s), "");
}

TEST_F(LinkTransportTest, NonsenseEndsTheLinkOfWhoSaysIt) {
  auto stranger = cluster.network.endpoint("stranger");
  ASSERT_TRUE(stranger->connect("a", "sim:a"));
  (void)cluster.run(10ms);
  ASSERT_TRUE(stranger->send("a", message("hello, I speak something else")));
  EXPECT_EQ(cluster.run(10ms), "");
  ASSERT_TRUE(a->send("b", message("still here")));
  EXPECT_EQ(cluster.run(10ms), "b: message a still here\n");
}

/// A transport that does what it is told.
class Scripted final : public transport::Transport {
 public:
  Result<std::string> listen(const std::string& address) override { return address; }
  Result<void> connect(const transport::Peer&, const std::string&) override {
    ++connected;
    return {};
  }
  void disconnect(const transport::Peer&) override {}
  Result<void> send(const transport::Peer&, std::vector<Frame>&& frames) override {
    if (room == 0) return fail(ErrorKind::overloaded, "full");
    --room;
    sent.push_back(std::move(frames));
    return {};
  }
  Result<void> send_pieces(const transport::Peer& peer, Frame&& head, std::vector<Piece>&& pieces) override {
    for (const Piece& piece : pieces) sent_from.push_back(piece.bytes.data());
    return Transport::send_pieces(peer, std::move(head), std::move(pieces));
  }
  std::optional<Event> poll(Duration) override {
    if (events.empty()) return std::nullopt;
    Event event = std::move(events.front());
    events.erase(events.begin());
    return event;
  }
  int descriptor() const override { return -1; }

  int connected = 0;
  std::size_t room = 1000;
  std::vector<std::vector<Frame>> sent;
  std::vector<const std::byte*> sent_from;  ///< Where the pieces lay.
  std::vector<Event> events;
};

class LinkShellTest : public testing::Test {
 protected:
  LinkShellTest() {
    auto owned = std::make_unique<Scripted>();
    below = owned.get();
    auto options = small_options();
    options.clock = &clock;
    sut = std::make_unique<LinkTransport>(std::move(owned), options);
    EXPECT_TRUE(sut->connect("peer", "address"));
    below->events.push_back({.kind = Event::Kind::connected, .peer = "peer", .frames = {}});
    Greeting greeting{{7, 7}, {}, false, {}, {}, {}};
    for (auto& receipt : greeting.receipts) receipt.limit = 1 << 20;
    below->events.push_back({.kind = Event::Kind::message, .peer = "peer", .frames = {encode(7, greeting)}});
    EXPECT_EQ(sut->poll(0ns)->kind, Event::Kind::connected);
  }
  struct TestClock final : Clock {
    Instant now() const override { return time; }
    Instant time{1h};
  } clock;
  Instant& now = clock.time;
  Scripted* below = nullptr;
  std::unique_ptr<LinkTransport> sut;
};

TEST_F(LinkShellTest, AConnectionThatIsRefusedWhileTheLinkLivesIsTriedAgain) {
  below->events.push_back({.kind = Event::Kind::disconnected, .peer = "peer", .frames = {}});
  EXPECT_FALSE(sut->poll(0ns));
  EXPECT_EQ(below->connected, 2);
  below->events.push_back({.kind = Event::Kind::refused, .peer = "address", .frames = {}});
  EXPECT_FALSE(sut->poll(0ns));
  now += 100ms;
  EXPECT_FALSE(sut->poll(0ns));
  EXPECT_EQ(below->connected, 3);
}

TEST_F(LinkShellTest, AFirstConnectionThatIsRefusedIsTriedAgainAndWhatWasSentWaits) {
  ASSERT_TRUE(sut->connect("other", "elsewhere"));
  ASSERT_TRUE(sut->send("other", message("early")));
  for (int i = 0; i < 10; ++i) {
    const int before = below->connected;
    below->events.push_back({.kind = Event::Kind::refused, .peer = "elsewhere", .frames = {}});
    const auto event = sut->poll(0ns);
    EXPECT_EQ(event.has_value(), i == 0) << "it is told once";
    now += i == 0 ? 50ms : 1s;
    EXPECT_FALSE(sut->poll(0ns));
    EXPECT_EQ(below->connected, before + 1);
  }
  below->events.push_back({.kind = Event::Kind::connected, .peer = "other", .frames = {}});
  Greeting greeting{{8, 8}, {}, false, {}, {}, {}};
  for (auto& receipt : greeting.receipts) receipt.limit = 1 << 20;
  below->events.push_back({.kind = Event::Kind::message, .peer = "other", .frames = {encode(8, greeting)}});
  below->sent.clear();
  EXPECT_EQ(sut->poll(0ns)->kind, Event::Kind::connected);
  EXPECT_EQ(text_of(below->sent.back().back()), "early");
}

TEST_F(LinkShellTest, WhoSentBeforeThePeerGreetedHearsOfTheEnd) {
  for (const bool sends : {false, true}) {
    below->events.push_back({.kind = Event::Kind::connected, .peer = "other", .frames = {}});
    EXPECT_FALSE(sut->poll(0ns));
    if (sends) {
      ASSERT_TRUE(sut->send("other", message("lost")));
    }
    below->events.push_back({.kind = Event::Kind::disconnected, .peer = "other", .frames = {}});
    EXPECT_FALSE(sut->poll(0ns));
    std::optional<Event> end;
    for (int i = 0; i < 40 && !end; ++i) {
      now += 100ms;
      end = sut->poll(0ns);
    }
    ASSERT_EQ(end.has_value(), sends);
    if (sends) {
      EXPECT_EQ(end->kind, Event::Kind::disconnected);
    }
    EXPECT_EQ(sut->link("other"), nullptr);
  }
}

TEST_F(LinkShellTest, WhatTheTransportBelowHasNoRoomForGoesLaterAndInOrder) {
  below->sent.clear();
  below->room = 2;
  for (const char* text : {"0", "1", "2", "3"}) ASSERT_TRUE(sut->send("peer", message(text)));
  EXPECT_LE(*sut->next_deadline(), now + 1ms);
  below->room = 1000;
  EXPECT_FALSE(sut->poll(0ns));
  std::string order;
  for (const auto& frames : below->sent) order += text_of(frames.back());
  EXPECT_EQ(order, "0123");
}

TEST_F(LinkShellTest, PiecesGoToTheTransportBelowFromWhereTheyLie) {
  const auto bulk = std::make_shared<const Frame>(350);
  ASSERT_TRUE(sut->send_pieces("peer", bytes("head"), {{bulk, *bulk}, {bulk, std::span(*bulk).first(20)}}));
  const std::byte* const at = bulk->data();
  ASSERT_EQ(below->sent_from.size(), 4u);
  below->sent_from.erase(below->sent_from.begin());  // The head's.
  EXPECT_EQ(below->sent_from, (std::vector<const std::byte*>{at, at, at + 100})) << "what the window takes";
}

TEST_F(LinkShellTest, ReadingStopsSoThatOthersHaveTheirTurn) {
  for (int i = 0; i < 100; ++i)
    below->events.push_back({.kind = Event::Kind::message, .peer = "peer", .frames = {encode(7, State{})}});
  EXPECT_FALSE(sut->poll(0ns));
  EXPECT_FALSE(below->events.empty());
  EXPECT_LE(*sut->next_deadline(), now) << "but it asks for its next turn";
}

/// What the checker knows of a message from its first frame: "sender link class number".
struct Label {
  std::string sender;
  int link = 0;  ///< Of the sender to this receiver: how often it has connected.
  int of = 0;
  int number = 0;
  auto operator<=>(const Label&) const = default;
  std::string text() const {
    return std::to_string(of) + " " + sender + " " + std::to_string(link) + " " + std::to_string(number);
  }
};

/// Random lives of three processes: messages of all sizes, connections cut, partitions, freezes, deaths. Each message
/// arrives once, whole and in the order of its class, as long as its link lives; nothing comes of a later one before.
class RandomLife {
 public:
  explicit RandomLife(std::uint64_t seed) : random_(seed), cluster_(seed, options()) {
    cluster_.network.set_faults({.latency = Duration(below(3'000'000)),
                                 .jitter = Duration(below(3'000'000)),
                                 .drop = one_of(3) ? 0.01 : 0,
                                 .duplicate = one_of(2) ? 0.05 : 0});
    for (const auto& name : names_) start(name);
  }

  void live() {
    for (int i = 0; i < 150; ++i) {
      act();
      run(Duration(below(20'000'000)));
    }
    for (const auto& name : names_) cluster_.freeze(name, false);
    for (const auto& [x, y] : pairs()) cluster_.network.heal(x, y);
    cluster_.network.set_faults({.latency = 1ms});
    run(20s);
    check_all_came();
  }
  std::size_t came() const { return came_; }
  std::size_t ended() const { return ended_; }

 private:
  struct Conversation {
    int link = 0;
    bool is_up = false;
    std::array<int, kClasses> sent{};
    std::map<int, std::array<int, kClasses>> came;  ///< At the other side: how many, by the sender's link.
  };

  static LinkTransport::Options options() {
    auto options = small_options();
    options.class_of = [](std::span<const std::byte> head) { return Class(static_cast<std::uint8_t>(head[0]) - '0'); };
    return options;
  }
  std::size_t below(std::size_t n) { return random_() % n; }
  bool one_of(std::size_t n) { return below(n) == 0; }
  std::vector<std::pair<std::string, std::string>> pairs() const {
    return {{names_[0], names_[1]}, {names_[0], names_[2]}, {names_[1], names_[2]}};
  }

  /// Of two, the one with the later name connects; a process that was killed has another name in labels.
  void start(const std::string& name) {
    transports_[name] = &cluster_.start(name);
    lives_[name] = name + "'" + std::to_string(++started_);
    for (const auto& other : names_)
      if (other < name) connect(name, other);
  }
  void connect(const std::string& from, const std::string& to) {
    if (transports_[from]->link(to)) return;
    ASSERT_TRUE(transports_[from]->connect(to, "sim:" + to));
  }

  void act() {
    const std::string x = names_[below(3)];
    const std::string y = names_[below(3)];
    switch (below(24)) {
      case 0: return cluster_.network.cut(x, y);
      case 1: return x == y ? void() : cluster_.network.partition(x, y);
      case 2:
      case 3:
        for (const auto& [p, q] : pairs()) cluster_.network.heal(p, q);
        return;
      case 4: return cluster_.freeze(x, true);
      case 5:
      case 6:
        for (const auto& name : names_) cluster_.freeze(name, false);
        return;
      case 7:
        if (!one_of(3)) return;
        cluster_.kill(x);
        for (auto& [key, conversation] : conversations_)
          if (key.first == lives_[x]) conversation.is_up = false;
        return start(x);
      case 8: return run(Duration(below(3'000'000'000)));
      default:
        for (std::size_t i = below(6); x != y && i > 0; --i) send(x, y);
    }
  }

  void send(const std::string& from, const std::string& to) {
    Conversation& conversation = conversations_[{lives_[from], to}];
    if (!conversation.is_up) return;
    const auto of = below(kClasses);
    Label label{lives_[from], conversation.link, static_cast<int>(of), conversation.sent[of]};
    LinkTransport& by = *transports_[from];
    const bool in_pieces = label.number % 2 == 1;
    if (in_pieces ? by.send_pieces(to, bytes(label.text()), bulk_of(label)) : by.send(to, frames_of(label)))
      ++conversation.sent[of];
  }
  static std::vector<Piece> bulk_of(const Label& label) {
    std::vector<Piece> pieces;
    auto frames = frames_of(label);
    for (Frame& frame : frames) {
      const auto kept = std::make_shared<const Frame>(std::move(frame));
      pieces.push_back({kept, *kept});
    }
    pieces.erase(pieces.begin());
    return pieces;
  }
  /// Follow from the label, so that the receiver can check them.
  static std::vector<Frame> frames_of(const Label& label) {
    std::vector<Frame> frames{bytes(label.text())};
    std::mt19937_64 random(std::hash<std::string>()(label.text()));
    for (std::size_t i = random() % 4; i > 0; --i) {
      const std::size_t size = random() % 3 == 0 ? random() % 4000 : random() % 120;
      frames.emplace_back(size, std::byte{static_cast<unsigned char>(random())});
    }
    return frames;
  }

  void run(Duration time) {
    cluster_.run(time, [this](const std::string& name, const Event& event) { on(name, event); });
  }

  void on(const std::string& name, const Event& event) {
    Conversation& conversation = conversations_[{lives_[name], event.peer}];
    if (event.kind == Event::Kind::connected) {
      EXPECT_FALSE(conversation.is_up) << name << " was connected to " << event.peer << " already";
      conversation.is_up = true;
      ++conversation.link;
      conversation.sent = {};
    } else if (event.kind == Event::Kind::disconnected) {
      ++ended_;
      EXPECT_TRUE(conversation.is_up || event.peer < name) << name << " hears twice of the end of " << event.peer;
      EXPECT_EQ(event.cause.find("rules"), std::string::npos) << event.cause;
      conversation.is_up = false;
      if (event.peer < name) connect(name, event.peer);
    } else if (event.kind == Event::Kind::message) {
      on_message(name, event);
    }
  }

  void on_message(const std::string& name, const Event& event) {
    ++came_;
    Label label;
    std::istringstream words(text_of(event.frames[0]));
    words >> label.of >> label.sender >> label.link >> label.number;
    Conversation& of_sender = conversations_[{label.sender, name}];
    auto& came = of_sender.came[label.link][static_cast<std::size_t>(label.of)];
    EXPECT_EQ(label.number, came) << label.text() << " at " << name << ": lost, doubled or out of order";
    ++came;
    int& last = last_link_[{lives_[name], label.sender}];
    EXPECT_GE(label.link, last) << label.text() << " of a link that is over";
    last = label.link;
    EXPECT_EQ(event.frames, frames_of(label)) << label.text();
  }

  void check_all_came() {
    for (const auto& [key, conversation] : conversations_) {
      if (!conversation.is_up) continue;
      const auto came = conversation.came.find(conversation.link);
      const auto what = came == conversation.came.end() ? std::array<int, kClasses>{} : came->second;
      EXPECT_EQ(what, conversation.sent) << key.first << " to " << key.second;
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> names_{"a", "b", "c"};
  Cluster cluster_;
  std::map<std::string, LinkTransport*> transports_;
  std::map<std::string, std::string> lives_;
  std::map<std::pair<std::string, std::string>, Conversation> conversations_;  ///< By life and peer.
  std::map<std::pair<std::string, std::string>, int> last_link_;
  int started_ = 0;
  std::size_t came_ = 0;
  std::size_t ended_ = 0;
};

TEST(LinkRandomLifeTest, EachMessageComesOnceInOrderOrTheSenderHears) {
  std::size_t came = 0, ended = 0;
  constexpr std::uint64_t kRuns = kSanitized ? 30 : 300;
  for (std::uint64_t seed = 1; seed <= kRuns && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomLife life(seed);
    life.live();
    came += life.came();
    ended += life.ended();
  }
  EXPECT_GT(came, 33 * kRuns);
  EXPECT_GT(ended, 5 * kRuns / 3);
}

}  // namespace
}  // namespace paceline::link
