#include "runtime/link/link_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "tests/support/sanitized.h"

namespace paceline::link {
namespace {

using namespace std::chrono_literals;
using transport::Piece;

/// Two ends and a path between them that carries `rate` bytes a second each way and takes `latency`, as a queue in
/// front of a wire does.
class Path {
 public:
  Path(double rate, Duration latency, LinkCore::Options options = {}) : rate_(rate), latency_(latency) {
    for (int i = 0; i < 2; ++i) {
      options.self = {static_cast<std::uint64_t>(i) + 1, 1};
      options.peer = i == 0 ? "right" : "left";
      ends_.push_back({LinkCore(options), {}, {}, {}});
    }
    for (End& end : ends_) end.core.on_connected(now);
    run(2 * latency + 1ms);
  }

  void run(Duration time) {
    const Instant until = now + time;
    while (true) {
      for (std::size_t i = 0; i < 2; ++i) serve(i);
      Instant next = until;
      for (const End& end : ends_) {
        if (!end.coming.empty()) next = std::min(next, end.coming.front().at);
        if (const auto due = end.core.next_deadline()) next = std::min(next, *due);
      }
      now = std::max(now, next);
      if (now >= until) return;
    }
  }

  LinkCore& left() { return ends_[0].core; }
  LinkCore& right() { return ends_[1].core; }
  const std::vector<std::vector<Frame>>& at_right() const { return ends_[1].taken; }
  /// The connection ends; what is under way is lost.
  void reconnect() {
    for (End& end : ends_) {
      end.core.on_lost(now);
      end.coming.clear();
      end.wire_free = now;
    }
    for (End& end : ends_) end.core.on_connected(now);
  }

  Instant now{1h};
  std::vector<const std::byte*> chunks_sent;  ///< Where the chunks lay that left the left end.

 private:
  struct Flight {
    Instant at;
    Packet packet;
  };
  struct End {
    LinkCore core;
    std::deque<Flight> coming;
    std::vector<std::vector<Frame>> taken;
    Instant wire_free;  ///< When what it has sent has left it.
  };

  void serve(std::size_t i) {
    End& end = ends_[i];
    while (!end.coming.empty() && end.coming.front().at <= now) {
      const auto packet = std::move(end.coming.front().packet);
      end.coming.pop_front();
      end.core.on_received(packet.word, packet.pieces, now);
      while (auto frames = end.core.take(now)) end.taken.push_back(*std::move(frames));
    }
    end.core.on_drained();
    if (const auto due = end.core.next_deadline(); due && *due <= now) end.core.tick(now);
    while (auto packet = end.core.next(now)) {
      std::size_t bytes = packet->word.size();
      for (const Piece& piece : packet->pieces) bytes += piece.bytes.size();
      if (i == 0 && std::holds_alternative<Chunk>(decode(packet->word)->said))
        chunks_sent.push_back(packet->pieces[0].bytes.data());
      end.wire_free = std::max(end.wire_free, now) + from_seconds(static_cast<double>(bytes) / rate_);
      ends_[1 - i].coming.push_back({end.wire_free + latency_, *std::move(packet)});
    }
  }

  double rate_;
  Duration latency_;
  std::vector<End> ends_;
};

std::vector<Piece> pieces(std::vector<Frame> frames) {
  return transport::pieces_of(std::make_shared<const std::vector<Frame>>(std::move(frames)));
}
std::vector<Piece> bulky(std::size_t bytes) { return pieces({Frame(10, std::byte{1}), Frame(bytes, std::byte{2})}); }

TEST(LinkCoreTest, BulkFillsThePathAndLeavesHeartbeatsTheirWay) {
  LinkCore::Options options;
  options.heartbeat_every = 10ms;
  for (const auto& [rate, latency] : {std::pair(125e6, Duration(100us)), std::pair(125e6, Duration(20ms)),
                                      std::pair(1.25e9, Duration(100us)), std::pair(1.25e9, Duration(2ms))}) {
    Path path(rate, latency, options);
    const Duration wire = rate > 1e9 ? 200ms : 1s;
    const auto bytes = static_cast<std::size_t>(rate * seconds(wire));
    ASSERT_TRUE(path.left().send(Class::requests, bulky(bytes), path.now));
    const Instant begin = path.now;
    Duration worst{};
    while (path.at_right().empty() && path.now < begin + 10s) {
      path.run(1ms);
      worst = std::max(worst, path.left().round_trip().value_or(0s));
    }
    EXPECT_GT(worst, 0s);
    EXPECT_LE(worst, 2 * latency + 20ms) << rate << " B/s, " << seconds(latency) << " s";
    EXPECT_LE(path.now - begin, wire * 5 / 4 + 4 * latency) << rate << " B/s, " << seconds(latency) << " s";
  }
}

TEST(LinkCoreTest, HigherClassesDoNotWaitForLowerOnes) {
  Path path(1e6, 1ms);
  ASSERT_TRUE(path.left().send(Class::requests, bulky(400'000), path.now));
  ASSERT_TRUE(path.left().send(Class::answers, bulky(300'000), path.now));
  ASSERT_TRUE(path.left().send(Class::control, pieces({Frame(3)}), path.now));
  path.run(10s);
  ASSERT_EQ(path.at_right().size(), 3u);
  EXPECT_EQ(path.at_right()[0][0].size(), 3u);
  EXPECT_EQ(path.at_right()[1][1].size(), 300'000u);
}

TEST(LinkCoreTest, WhatGoesAgainIsSentFromWhereItLay) {
  Path path(1e6, 1ms);
  auto message = bulky(1'000'000);
  const std::byte* const bytes = message[1].bytes.data();
  const std::weak_ptr<const void> kept = message[1].keeper;
  ASSERT_TRUE(path.left().send(Class::requests, std::move(message), path.now));
  path.run(300ms);
  path.reconnect();
  path.run(10s);
  ASSERT_EQ(path.at_right().size(), 1u);
  std::size_t again = 0;
  for (const std::byte* chunk : path.chunks_sent) {
    EXPECT_TRUE(chunk >= bytes && chunk < bytes + 1'000'000);
    again += static_cast<std::size_t>(std::count(path.chunks_sent.begin(), path.chunks_sent.end(), chunk)) - 1;
  }
  EXPECT_GT(again, 0u);
  EXPECT_TRUE(path.left().outbox().empty() && kept.expired()) << "what has been acknowledged is kept";
}

TEST(LinkCoreTest, ASenderHearsWhenTooMuchWaits) {
  LinkCore::Options options;
  options.sending.waiting_bytes_max = 10'000;
  Path path(1e3, 1ms, options);
  std::size_t sent = 0;
  auto result = path.left().send(Class::answers, pieces({Frame(1000)}), path.now);
  for (; result && sent < 100; ++sent) result = path.left().send(Class::answers, pieces({Frame(1000)}), path.now);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::overloaded);
  EXPECT_LE(sent, 10u);
  EXPECT_TRUE(path.left().send(Class::control, pieces({Frame(1000)}), path.now)) << "another class has room of its own";
}

TEST(LinkCoreTest, NoMoreComesThanTheReceiverGaveCreditFor) {
  LinkCore::Options options;
  options.receiving.head_credit = 600'000;
  Path path(1e9, 100us, options);
  LinkCore silent(options);  // Greets, and then takes nothing.
  LinkCore::Options own;
  own.self = {9, 9};
  own.peer = "silent";
  LinkCore sut(own);
  sut.on_connected(path.now);
  Greeting greeting{{7, 7}, {}, false, {}, {}, {}};
  for (std::size_t lane = 0; lane < kLanes; ++lane) greeting.receipts[lane].limit = lane < kClasses ? 5000 : 600'000;
  sut.on_received(encode(7, greeting), {}, path.now);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(sut.send(Class::requests, bulky(200'000), path.now));
  std::size_t heads = 0, bulk = 0;
  while (auto packet = sut.next(path.now)) {
    const auto word = *decode(packet->word);
    if (std::holds_alternative<Head>(word.said)) heads += kUnitBytes + packet->pieces[0].bytes.size();
    if (std::holds_alternative<Chunk>(word.said)) bulk += packet->pieces[0].bytes.size();
  }
  EXPECT_GT(heads, 4000u);
  EXPECT_LE(heads, 5000u);
  EXPECT_GT(bulk, 300'000u);
  EXPECT_LE(bulk, 600'000u);
}

TEST(LinkCoreTest, BulkGoesBehindItsMessage) {
  LinkCore sut({.self = {1, 1}, .peer = "peer", .address = {}});
  sut.on_connected(Instant{1h});
  Greeting greeting{{7, 7}, {}, false, {}, {}, {}};
  greeting.receipts[bulk_lane(Class::requests)].limit = 1'000'000;  // None for messages.
  sut.on_received(encode(7, greeting), {}, Instant{1h});
  ASSERT_TRUE(sut.send(Class::requests, bulky(500'000), Instant{1h}));
  while (auto packet = sut.next(Instant{1h})) EXPECT_FALSE(std::holds_alternative<Chunk>(decode(packet->word)->said));
}

TEST(DelayWindowTest, ShrinksToWhatThePathCarries) {
  DelayWindow sut({.bytes_min = 1000, .bytes_max = 1'000'000, .target = 8ms});
  Instant now{};
  for (int i = 0; i < 100; ++i) sut.on_acked(sut.bytes(), 1ms, true, now += 1ms);
  EXPECT_EQ(sut.bytes(), 1'000'000u);
  sut.on_acked(100, 20ms, true, now += 20ms);
  EXPECT_EQ(sut.bytes(), 500'000u);
  sut.on_acked(100, 20ms, true, now += 5ms);
  EXPECT_EQ(sut.bytes(), 500'000u) << "of the same queue";
  sut.on_acked(100, 6ms, true, now += 20ms);
  EXPECT_EQ(sut.bytes(), 500'000u) << "a queue of half the target to the target is as it should be";
  sut.on_acked(100'000, 2ms, false, now);
  EXPECT_EQ(sut.bytes(), 500'000u) << "nothing waited for room";
}

class LinkCoreInputTest : public testing::Test {
 protected:
  LinkCoreInputTest() {
    sut.on_connected(now);
    (void)sut.next(now);
    sut.on_received(encode(7, Greeting{{7, 7}, {}, false, {}, {}, {}}), {}, now);
    EXPECT_TRUE(sut.is_open());
  }
  void say(const Said& said, std::vector<Frame> frames = {}) {
    std::vector<Piece> pieces;
    for (const Frame& frame : frames) pieces.push_back({nullptr, frame});
    sut.on_received(encode(7, said), pieces, now);
  }
  std::string cause() const { return sut.over() ? sut.over()->text : "none"; }

  static LinkCore::Options options() {
    LinkCore::Options options;
    options.self = {1, 1};
    options.peer = "peer";
    options.receiving.message_bytes_max = 1'000'000;
    return options;
  }
  Instant now{1h};
  LinkCore sut{options()};
};

TEST_F(LinkCoreInputTest, AMessageBeyondTheBoundEndsTheLink) {
  say(Head{Class::requests, 0, {{600'000, false}, {600'000, false}}});
  EXPECT_EQ(cause(), "peer broke the rules of a link: a message of more than 1000000 bytes");
}

TEST_F(LinkCoreInputTest, FramesThatAreNotAsAnnouncedEndTheLink) {
  say(Head{Class::requests, 0, {{5, true}}}, {Frame(4)});
  EXPECT_EQ(cause(), "peer broke the rules of a link: a message whose frames are not as it says");
}

TEST_F(LinkCoreInputTest, MoreBulkThanAnnouncedEndsTheLink) {
  say(Head{Class::requests, 0, {{4, true}, {5, false}}}, {Frame(4)});
  say(Chunk{Class::requests, 0}, {Frame(6)});
  EXPECT_EQ(cause(), "peer broke the rules of a link: a chunk that is no part of what was announced");
}

TEST_F(LinkCoreInputTest, MoreThanTheCreditEndsTheLink) {
  for (std::uint64_t i = 0; i < 20'000 && !sut.over(); ++i)
    say(Head{Class::requests, i, {{1000, true}, {1, false}}}, {Frame(1000)});  // None is ever whole.
  EXPECT_EQ(cause(), "peer broke the rules of a link: more than its credit");
}

TEST_F(LinkCoreInputTest, AReceiptForWhatWasNotSentEndsTheLink) {
  State state;
  state.receipts[2].units = 1;
  say(state);
  EXPECT_EQ(cause(), "peer broke the rules of a link: a receipt for what was never sent");
}

TEST_F(LinkCoreInputTest, AGapAsksForAnotherConnection) {
  say(Head{Class::requests, 1, {{4, true}}}, {Frame(4)});
  EXPECT_TRUE(sut.wants_new_connection());
  EXPECT_FALSE(sut.over());
}

TEST_F(LinkCoreInputTest, TimeInWhichThisEndStoodStillIsNoSilence) {
  sut.depends_on(true, now);
  sut.tick(now + 200ms);
  sut.tick(now + 60s);
  EXPECT_FALSE(sut.over());
  for (Instant at = now + 60s; at < now + 62s && !sut.over(); at += 200ms) sut.tick(at);
  EXPECT_EQ(cause(), "peer has not answered for 2.0 s");
}

TEST_F(LinkCoreInputTest, AProcessThatRunsIsBusyForAMinuteAtMost) {
  sut.depends_on(true, now);
  const Instant begin = now;
  while (!sut.over() && now < begin + 2min) {
    sut.tick(now = *sut.next_deadline());
    if (sut.wants_pulse()) sut.on_pulse(now);
    EXPECT_FALSE(sut.wants_new_connection() && now < begin + 1min);
  }
  EXPECT_GE(now, begin + 1min);
  EXPECT_LE(now, begin + 1min + 2500ms);
  EXPECT_EQ(cause(), "peer has stood still for 60.0 s");
}

TEST_F(LinkCoreInputTest, AGreetingIsSaidAgainUntilItIsAnswered) {
  sut.on_lost(now);
  sut.on_connected(now);
  for (int i = 1; i <= 3; ++i) {
    const auto packet = sut.next(now);
    ASSERT_TRUE(packet && std::holds_alternative<Greeting>(decode(packet->word)->said)) << i;
    EXPECT_FALSE(sut.next(now));
    sut.tick(now += 200ms);
  }
}

TEST_F(LinkCoreInputTest, WhoseNameIsContestedIsAskedAndLosesASilentConnection) {
  EXPECT_FALSE(sut.next_deadline());
  sut.on_contested(now);
  ASSERT_TRUE(std::get<State>(decode(sut.next(now)->word)->said).asks);
  for (Instant at = now; at <= now + 400ms; at += 50ms) sut.tick(at);
  EXPECT_TRUE(sut.wants_new_connection());
}

TEST_F(LinkCoreInputTest, WhoseNameIsContestedKeepsAConnectionThatAnswers) {
  sut.on_contested(now);
  for (const Instant until = now + 3s; now <= until; now += 50ms) {
    sut.tick(now);
    while (auto packet = sut.next(now)) {
      const Word word = *decode(packet->word);
      const auto* asked = std::get_if<State>(&word.said);
      if (asked && asked->asks) say(State{});
    }
  }
  EXPECT_FALSE(sut.wants_new_connection());
  EXPECT_FALSE(sut.next_deadline());
}

TEST_F(LinkCoreInputTest, WhatComesTwiceCountsOnce) {
  for (int i = 0; i < 3; ++i) say(Head{Class::requests, 0, {{4, true}}}, {Frame(4)});
  EXPECT_TRUE(sut.take(now));
  EXPECT_FALSE(sut.take(now));
}

TEST_F(LinkCoreInputTest, NoInputEndsTheProcess) {
  for (std::uint64_t seed = 0; seed < (kSanitized ? 4'000 : 20'000); ++seed) {
    std::mt19937_64 random(seed);
    const auto number = [&]() -> std::uint64_t {
      constexpr std::uint64_t kNumbers[] = {0, 0, 1, 1, 2, 3, 4, 100, 999'999, UINT64_MAX, UINT64_MAX / 2, 1u << 31};
      return kNumbers[random() % std::size(kNumbers)];
    };
    LinkCore core(options());
    core.on_connected(now);
    core.on_received(encode(7, Greeting{{7, 7}, {}, false, {}, {}, {}}), {}, now);
    for (int i = 0; i < 12; ++i) {
      const Class of{static_cast<std::uint8_t>(random() % kClasses)};
      Said said;
      std::vector<Frame> frames;
      for (std::size_t k = random() % 3; k > 0; --k) frames.emplace_back(number() % 10);
      if (const auto kind = random() % 5; kind == 0) {
        State state{.asks = random() % 2 == 0, .stamp = number(), .echo = number()};
        for (auto& receipt : state.receipts) receipt = {random() % 3 == 0 ? number() : 0, number()};
        said = state;
      } else if (kind == 1) {
        Head head{of, random() % 4, {}};
        for (const Frame& frame : frames) head.frames.push_back({frame.size(), random() % 4 > 0});
        if (random() % 3 == 0) head.frames.push_back({number(), random() % 2 == 0});
        said = head;
      } else if (kind == 2) {
        said = Chunk{of, random() % 4};
      } else if (kind == 3) {
        said = Greeting{{number(), number()}, {number(), number()}, false, {}, {}, {}};
      }
      auto word = encode(7, said);
      if (random() % 4 == 0) word[random() % word.size()] ^= std::byte{static_cast<unsigned char>(random())};
      if (random() % 10 == 0) word.resize(random() % word.size());
      std::vector<Piece> pieces;
      for (const Frame& frame : frames) pieces.push_back({nullptr, frame});
      core.on_received(word, pieces, now);
      (void)core.send(of, bulky(number() % 1000), now);
      while (core.next(now)) {
      }
      while (core.take(now)) {
      }
      core.tick(now);
    }
  }
}

}  // namespace
}  // namespace paceline::link
