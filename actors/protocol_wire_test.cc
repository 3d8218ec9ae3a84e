#include "actors/protocol_wire.h"

#include <gmock/gmock.h>

#include <cstring>

#include "actors/causes.h"

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

const Executable kExecutable{"/bin/job", {"--a", "b c"}, {"X=1"},      "/work",  "abc123",
                             "/logs",    true,           "driver/1-2", NodeId{3}};

TEST(ProtocolWireTest, ACallArrivesAsItWasSent) {
  const Call call{TaskId{7}, actor_id(NodeId{3}, 1, 9), {"abc123", 64}, {bytes_of("x"), bytes_of("y")}, "driver/1-2"};
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
}

TEST(ProtocolWireTest, ACallHasTheNumberThatItIsGivenAlsoWhenItIsSentAgain) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{1} << 20}) {
    const Call call{TaskId{7}, actor_id(NodeId{3}, 1, 9), {"abc123", 64}, {Bytes(size)}, "driver/1-2"};
    auto frame = encode(call).front();
    set_number(frame, 0x123456789abcdef0);
    for (const auto& as_sent : {frame, resent(frame, 2).front()}) {
      auto received = wire::Received::parse(as_sent);
      ASSERT_TRUE(received);
      const auto got = decode(received->root().getCall());
      ASSERT_TRUE(got);
      EXPECT_EQ(got->number, 0x123456789abcdef0);
      EXPECT_EQ(got->task, call.task);
      EXPECT_EQ(got->arguments, call.arguments);
    }
  }
}

TEST(ProtocolWireTest, HowManyCallsRunAtATimeArrivesAsItWasSent) {
  CreateActor create;
  create.actor = actor_id(NodeId{3}, 1, 9);
  const auto arrived = [&] {
    return sent(create, [](auto envelope, auto&) { return decode(envelope.getCreateActor()); });
  };
  ASSERT_TRUE(arrived());
  EXPECT_TRUE(arrived()->concurrency.is_one_at_a_time());
  create.concurrency = {4, {{"io", 2}, {"other", 1}}};
  ASSERT_TRUE(arrived());
  EXPECT_EQ(arrived()->concurrency, create.concurrency);
  create.concurrency.groups[0].threads = -1;  // Whatever comes.
  ASSERT_FALSE(arrived());
  EXPECT_THAT(arrived().error().text, HasSubstr("at most 1024"));
  Call call;
  call.actor = create.actor;
  call.group = "io";
  const auto called = sent(call, [](auto envelope, auto&) { return decode(envelope.getCall()); });
  ASSERT_TRUE(called);
  EXPECT_EQ(called->group, "io");
}

TEST(ProtocolWireTest, WhatANameIsToAnActorArrivesAsItWasSent) {
  CreateActor create;
  create.actor = actor_id(NodeId{3}, 1, 9);
  create.name = "x";
  create.type = "Counter";
  create.naming = {true, true, true, actor_id(NodeId{1}, 2, 3)};
  const auto created = sent(create, [](auto envelope, auto&) { return decode(envelope.getCreateActor()); });
  ASSERT_TRUE(created);
  EXPECT_EQ(created->name, "x");
  EXPECT_EQ(created->type, "Counter");
  EXPECT_EQ(created->naming, create.naming);
  const auto ready = sent(ActorReady{create.actor, "driver/1", false, {}, create.naming.after},
                          [](auto envelope, auto&) { return decode(envelope.getActorReady()); });
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->named, create.naming.after);
  Call kill;
  kill.actor = create.actor;
  kill.kill = true;
  const auto killed = sent(kill, [](auto envelope, auto&) { return decode(envelope.getCall()); });
  ASSERT_TRUE(killed);
  EXPECT_TRUE(killed->kill);
}

CallResult failed_with(Error error) { return {TaskId{7}, "driver/1-2", tl::unexpected(std::move(error))}; }
const auto kResult = [](auto envelope, auto& frames) { return decode(envelope.getCallResult(), frames); };

TEST(ProtocolWireTest, WhatLedToAnErrorArrivesAsItWas) {
  auto error = leaving({ErrorKind::disconnected, "no"}, "first(int)", {3, "worker 9", "/logs/\xff.log"}, "");
  for (int i = 0; i < 30; ++i) error = stopped_by(error, "next(int)", {0}, "argument 1 failed");
  const auto got = sent(failed_with(error), kResult);
  ASSERT_TRUE(got);
  ASSERT_FALSE(got->value);
  EXPECT_EQ(got->value.error().kind, ErrorKind::disconnected);
  EXPECT_EQ(got->value.error().text, error.text);
  const TaskError before(error), after(got->value.error());
  ASSERT_EQ(after.causes().size(), before.causes().size());
  EXPECT_EQ(after.causes_left_out(), before.causes_left_out());
  EXPECT_EQ(got->value.error().causes->first, error.causes->first);
  EXPECT_EQ(after.kind(), ErrorKind::disconnected);
  EXPECT_EQ(after.node(), 3);
  EXPECT_EQ(after.worker(), "worker 9");
  EXPECT_EQ(after.log(), "/logs/\xff.log");  // A path is as it is.
  EXPECT_EQ(after.cause(), "no");
  EXPECT_EQ(after.causes().front().what, "next(int)");
}

TEST(ProtocolWireTest, AnErrorWithoutCausesArrivesWithoutThem) {
  const auto got = sent(failed_with({ErrorKind::timed_out, "late"}), kResult);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->value.error().text, "late");
  EXPECT_EQ(got->value.error().causes, nullptr);
}

TEST(ProtocolWireTest, MoreCausesThanThereMayBeAreReadWithinTheBounds) {
  Causes causes{std::vector<Cause>(100'000)};
  for (Cause& link : causes.links) link.text = "\xff";
  causes.links.front().what = "outermost";
  causes.links.back() = {ErrorKind::invalid,       "innermost", 1, "worker 2", std::string(100'000, '/'),
                         std::string(100'000, 'x')};
  Error error{ErrorKind::invalid, std::string(100'000, 't')};
  error.causes = std::make_shared<const Causes>(std::move(causes));
  const auto got = sent(failed_with(error), kResult);
  ASSERT_TRUE(got);
  const TaskError read(got->value.error());
  EXPECT_EQ(read.causes().size(), kLinksMax);
  EXPECT_EQ(read.causes().size() + read.causes_left_out(), 100'000u);
  EXPECT_EQ(read.causes().front().what, "outermost");
  EXPECT_EQ(read.causes().front().text, "\xef\xbf\xbd");
  EXPECT_EQ(read.causes().back().what, "innermost");
  EXPECT_EQ(read.log(), "");
  EXPECT_EQ(read.cause().size(), kThrownMax);
  EXPECT_LT(std::string(read.what()).size(), kCausesBytesMax);
}

TEST(ProtocolWireTest, AResultThatIsThereTravelsWithoutRoomForErrors) {
  const auto frames = encode(CallResult{TaskId{7}, "driver/1-2", bytes_of("x")});
  EXPECT_LE(frames.front().size(), 136u);
}

TEST(ProtocolWireTest, ATaskTravelsToALentWorkerAsItIs) {
  const auto got = sent(PushTask{WorkerId{3}, TaskId{7}, "driver/1-2", bytes_of("a call")},
                        [](auto envelope, auto& frames) { return decode(envelope.getPushTask(), frames); });
  ASSERT_TRUE(got);
  EXPECT_EQ(got->worker, WorkerId{3});
  EXPECT_EQ(got->task, TaskId{7});
  EXPECT_EQ(got->owner, "driver/1-2");
  EXPECT_EQ(got->call, bytes_of("a call"));
  wire::Message without;
  without.root().initPushTask();
  std::vector<transport::Frame> frames(1);
  EXPECT_FALSE(decode(without.root().getPushTask().asReader(), frames));
}

TEST(ProtocolWireTest, WhatIsWantedAndWhatIsLentArriveAsTheyWereSent) {
  Wants wants{{2.5, NodeId{1}}, 9,   {WorkerId{3}, WorkerId{4}}, {WorkerId{5}}, "driver/1-2", "driver/1",
              kExecutable,      true};
  const auto wanted = sent(wants, [](auto envelope, auto&) { return decode(envelope.getWants()); });
  EXPECT_EQ(wanted.shape, wants.shape);
  EXPECT_EQ(wanted.workers, 9u);
  EXPECT_EQ(wanted.returned, wants.returned);
  EXPECT_EQ(wanted.broken, wants.broken);
  EXPECT_EQ(wanted.owner, wants.owner);
  EXPECT_EQ(wanted.root, wants.root);
  EXPECT_EQ(wanted.executable, kExecutable);
  EXPECT_TRUE(wanted.gone);

  Loan loan{Loan::Kind::gone, "driver/1-2", {0, NodeId{-1}}, WorkerId{3}, 2, {ErrorKind::disconnected, "killed"}};
  const auto lent = sent(loan, [](auto envelope, auto&) { return decode(envelope.getLoan()); });
  ASSERT_TRUE(lent);
  EXPECT_EQ(lent->kind, loan.kind);
  EXPECT_EQ(lent->owner, loan.owner);
  EXPECT_EQ(lent->shape, loan.shape);
  EXPECT_EQ(lent->worker, loan.worker);
  EXPECT_EQ(lent->count, 2u);
  EXPECT_EQ(lent->error.text, "killed");

  const Signal signal{TaskId{5}, WorkerId{6}, ActorId{7}, "driver/1-2", Signal::Kind::taken, 77, true};
  const auto arrived = sent(signal, [](auto envelope, auto&) { return decode(envelope.getSignal()).value(); });
  EXPECT_EQ(arrived.task, signal.task);
  EXPECT_EQ(arrived.worker, signal.worker);
  EXPECT_EQ(arrived.actor, signal.actor);
  EXPECT_EQ(arrived.owner, signal.owner);
  EXPECT_EQ(arrived.kind, Signal::Kind::taken);
  EXPECT_EQ(arrived.taken, 77u);
  EXPECT_TRUE(arrived.is_wish);
}

TEST(ProtocolWireTest, AnActorsCreationAndItsDeathArriveAsTheyWereSent) {
  const CreateActor create{actor_id(NodeId{1}, 1, 4),
                           {"abc123", 64},
                           {bytes_of("start")},
                           "counter",
                           "driver/1-2",
                           kExecutable,
                           {},
                           "Counter"};
  const auto created = sent(create, [](auto envelope, auto&) { return decode(envelope.getCreateActor()); });
  ASSERT_TRUE(created);
  EXPECT_EQ(created->actor, create.actor);
  EXPECT_EQ(created->arguments, create.arguments);
  EXPECT_EQ(created->name, "counter");
  EXPECT_EQ(created->type, "Counter");
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
  Call call{TaskId{7}, ActorId{1}, {"abc123", 64}, {}, "driver/1-2"};
  call.arguments.assign(kArgumentsMax + 1, Bytes{});
  const auto got = sent(call, [](auto envelope, auto&) { return decode(envelope.getCall()); });
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().text, HasSubstr("at most 1024"));
}

TEST(ProtocolWireTest, AReleaseIsJson) {
  const auto release = release_from_json(to_json({{ActorId{1}}}));
  ASSERT_TRUE(release);
  EXPECT_EQ(release->actors, std::vector{ActorId{1}});
  EXPECT_FALSE(release->owner_died);
  EXPECT_TRUE(release_from_json(to_json({{ActorId{1}}, true}))->owner_died);
  for (const char* damaged : {"", "{", "[]", "{}", R"({"actors": ["x"]})"})
    EXPECT_FALSE(release_from_json(damaged)) << damaged;
}

}  // namespace
}  // namespace paceline::actors
