#include "actors/protocol_wire.h"

#include <gmock/gmock.h>

#include <cstring>

namespace paceline::actors {
namespace {

using testing::HasSubstr;

Bytes bytes_of(const std::string& text) {
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// Encodes, and reads what arrived with `read(envelope, frames)`.
template <class Message, class Read>
auto sent(Message message, const Read& read) {
  auto frames = encode(std::move(message));
  auto received = wire::Received::parse(frames.front());
  if (!received) throw std::runtime_error(received.error().text);
  return read(received->root(), frames);
}

const Executable kExecutable{"/bin/job", {"--a", "b c"}, {"X=1"}, "/work", "abc123", "/logs"};

TEST(ProtocolWireTest, ACallArrivesAsItWasSent) {
  const Call call{TaskId{7},    actor_id(NodeId{3}, 1, 9), {"abc123", 64}, {bytes_of("x"), TaskId{5}},
                  "driver/1-2", {.cpus = 2, .retries = 1}};
  const auto got = sent(call, [](auto envelope, auto&) {
    EXPECT_TRUE(envelope.isCall());
    return decode(envelope.getCall());
  });
  ASSERT_TRUE(got);
  EXPECT_EQ(got->task, call.task);
  EXPECT_EQ(got->actor, call.actor);
  EXPECT_EQ(got->function, call.function);
  EXPECT_EQ(got->arguments, call.arguments);
  EXPECT_EQ(got->owner, call.owner);
  EXPECT_EQ(got->resources.cpus, 2);
  EXPECT_EQ(got->resources.retries, 1);
}

TEST(ProtocolWireTest, ACallWithoutAnActorIsATask) {
  const Call task{TaskId{7}, ActorId{0}, {"abc123", 64}, {}, "driver/1-2"};
  EXPECT_TRUE(sent(task, [](auto envelope, auto&) { return envelope.isSubmitTask(); }));
}

TEST(ProtocolWireTest, AnActorsCreationAndItsDeathArriveAsTheyWereSent) {
  const CreateActor create{
      actor_id(NodeId{1}, 1, 4), {"abc123", 64}, {bytes_of("start")}, "counter", "driver/1-2", kExecutable};
  const auto created = sent(create, [](auto envelope, auto&) { return decode(envelope.getCreateActor()); });
  ASSERT_TRUE(created);
  EXPECT_EQ(created->actor, create.actor);
  EXPECT_EQ(created->arguments, create.arguments);
  EXPECT_EQ(created->name, "counter");
  EXPECT_EQ(created->executable, kExecutable);

  const ActorReady dead{create.actor, "driver/1-2", true, {ErrorKind::disconnected, "killed by SIGKILL"}};
  const auto told = sent(dead, [](auto envelope, auto&) { return decode(envelope.getActorReady()); });
  ASSERT_TRUE(told);
  EXPECT_TRUE(told->dead);
  EXPECT_EQ(told->error.kind, ErrorKind::disconnected);
  EXPECT_EQ(told->error.text, "killed by SIGKILL");
}

TEST(ProtocolWireTest, HowWorkersAreStartedArrivesAsItWasSent) {
  EXPECT_EQ(sent(kExecutable, [](auto envelope, auto&) { return decode(envelope.getExecutable()); }), kExecutable);
}

TEST(ProtocolWireTest, AResultTravelsInsideWhileItIsSmallElseBesideTheEnvelope) {
  for (const std::size_t size : {std::size_t{0}, kInlineResultMax, kInlineResultMax + 1}) {
    const CallResult result{TaskId{7}, "driver/1-2", Bytes(size, std::byte{42})};
    const auto got = sent(result, [size](auto envelope, auto& frames) {
      EXPECT_EQ(frames.size(), size > kInlineResultMax ? 2u : 1u);
      return decode(envelope.getCallResult(), frames);
    });
    ASSERT_TRUE(got && got->value);
    EXPECT_EQ(*got->value, *result.value);
  }
}

TEST(ProtocolWireTest, AnErrorKeepsItsKindAndText) {
  const CallResult result{TaskId{7}, "driver/1-2", fail(ErrorKind::timed_out, "too late")};
  const auto got = sent(result, [](auto envelope, auto& frames) { return decode(envelope.getCallResult(), frames); });
  ASSERT_TRUE(got);
  ASSERT_FALSE(got->value);
  EXPECT_EQ(got->value.error().kind, ErrorKind::timed_out);
  EXPECT_EQ(got->value.error().text, "too late");
}

TEST(ProtocolWireTest, TooManyArgumentsAreRefused) {
  Call call{TaskId{7}, ActorId{1}, {"abc123", 64}, {}, "driver/1-2", {}};
  call.arguments.assign(kArgumentsMax + 1, TaskId{1});
  const auto got = sent(call, [](auto envelope, auto&) { return decode(envelope.getCall()); });
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().text, HasSubstr("at most 1024"));
}

TEST(ProtocolWireTest, AReleaseIsJson) {
  const auto release = release_from_json(to_json({{ActorId{1}}, {TaskId{2}, TaskId{3}}}));
  ASSERT_TRUE(release);
  EXPECT_EQ(release->actors, std::vector{ActorId{1}});
  EXPECT_EQ(release->tasks, (std::vector{TaskId{2}, TaskId{3}}));
  for (const char* damaged : {"", "{", "[]", R"({"actors": []})", R"({"actors": ["x"], "tasks": []})"})
    EXPECT_FALSE(release_from_json(damaged)) << damaged;
}

}  // namespace
}  // namespace paceline::actors
