#include "runtime/transport/backlog.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/transport/sim/sim_network.h"
#include "runtime/transport/transport_test_support.h"

namespace paceline::transport {
namespace {

using namespace std::chrono_literals;
using test::message;

/// Between two endpoints whose queues hold four messages.
class BacklogTest : public testing::Test {
 protected:
  BacklogTest() {
    EXPECT_TRUE(to->listen("sim:to"));
    EXPECT_TRUE(from->connect("to", "sim:to"));
    deliver();
    while (to->poll(0ns)) {
    }
  }
  void deliver() { network.advance(network.now() + 1ms); }
  /// What the peer reads, at most so many.
  std::string read(std::size_t count) {
    deliver();
    std::string all;
    for (std::size_t i = 0; i < count; ++i) {
      const auto event = to->poll(0ns);
      if (!event || event->kind != Event::Kind::message) break;
      all += std::string(reinterpret_cast<const char*>(event->frames[0].data()), event->frames[0].size()) + " ";
    }
    return all;
  }

  SimNetwork network{1, 4};
  std::unique_ptr<Transport> from = network.endpoint("from");
  std::unique_ptr<Transport> to = network.endpoint("to");
  Backlog sut{*from, 10};
};

TEST_F(BacklogTest, KeepsInOrderWhatThereIsNoRoomFor) {
  for (const char* word : {"a", "b", "c", "d", "e", "f", "g"}) EXPECT_TRUE(sut.send("to", message(word)));
  EXPECT_FALSE(sut.empty());
  EXPECT_EQ(read(2), "a b ");
  EXPECT_TRUE(sut.send("to", message("h")));  // There is room, but not before e, f and g.
  sut.flush();
  EXPECT_EQ(read(4), "c d e f ");
  sut.flush();
  EXPECT_EQ(read(4), "g h ");
  EXPECT_TRUE(sut.empty());
}

TEST_F(BacklogTest, SaysWhenAPeerDoesNotRead) {
  for (int i = 0; i < 14; ++i) EXPECT_TRUE(sut.send("to", message("x"))) << i;  // Four in the queue, ten bytes behind.
  const auto sent = sut.send("to", message("x"));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().kind, ErrorKind::overloaded);
}

TEST_F(BacklogTest, OneMessageMayBeLargerThanTheBound) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(sut.send("to", message("x")));
  const std::string large(1000, 'y');
  EXPECT_TRUE(sut.send("to", message(large)));
  EXPECT_FALSE(sut.send("to", message("z")));
  EXPECT_EQ(read(4), "x x x x ");
  sut.flush();
  EXPECT_EQ(read(1), large + " ");
}

TEST_F(BacklogTest, APeerThatIsGoneIsForgotten) {
  EXPECT_EQ(sut.send("nobody", message("x")).error().kind, ErrorKind::disconnected);
  EXPECT_TRUE(sut.empty());
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(sut.send("to", message("x")));
  network.kill("to");
  deliver();
  sut.flush();
  EXPECT_TRUE(sut.empty());
}

}  // namespace
}  // namespace paceline::transport
