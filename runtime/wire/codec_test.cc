#include "runtime/wire/codec.h"

#include <cstring>
#include <random>
#include <set>
#include <string>

#include <capnp/dynamic.h>
#include <gtest/gtest.h>

namespace paceline::wire {
namespace {

/// Reads every field of whatever kind the envelope is.
struct ReadAll {
  std::size_t seen = 0;

  void value(const capnp::DynamicValue::Reader& value) {
    switch (value.getType()) {
      case capnp::DynamicValue::TEXT:
        for (const char c : view(value.as<capnp::Text>())) seen += static_cast<unsigned char>(c);
        break;
      case capnp::DynamicValue::DATA:
        for (const auto byte : value.as<capnp::Data>()) seen += byte;
        break;
      case capnp::DynamicValue::LIST:
        for (const auto& each : value.as<capnp::DynamicList>()) this->value(each);
        break;
      case capnp::DynamicValue::STRUCT: fields(value.as<capnp::DynamicStruct>()); break;
      default: ++seen;
    }
  }
  void fields(const capnp::DynamicStruct::Reader& object) {
    for (const auto field : object.getSchema().getNonUnionFields()) value(object.get(field));
    KJ_IF_MAYBE (which, object.which()) value(object.get(*which));
  }
  void operator()(Envelope::Reader root) { fields(root); }
};

Received parsed(Message& message) {
  auto received = Received::parse(message.to_frame());
  EXPECT_TRUE(received) << received.error().text;
  return std::move(received).value();
}

Frame frame_of(std::initializer_list<std::uint64_t> words) {
  Frame frame(words.size() * sizeof(std::uint64_t));
  std::memcpy(frame.data(), std::data(words), frame.size());
  return frame;
}

/// A call with a bit of everything: nested structs, lists of unions, texts, data.
void fill_call(Message& message) {
  auto call = message.root().initCall();
  call.setTask(7);
  call.setActor(8);
  call.setOwner("driver/1");
  call.initFunction().setBuild("b1");
  call.getFunction().setOffset(0x1234);
  auto arguments = call.initArguments(2);
  const std::string bytes(300, 'x');
  arguments.set(0, kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
  arguments.set(1, kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), 1));
}

TEST(Codec, CallComesBackAsItWas) {
  Message message;
  fill_call(message);
  const auto received = parsed(message);
  const auto result = received.visit([](Envelope::Reader root) {
    ASSERT_EQ(root.which(), Envelope::CALL);
    const auto call = root.getCall();
    EXPECT_EQ(call.getTask(), 7u);
    EXPECT_EQ(view(call.getOwner()), "driver/1");
    EXPECT_EQ(call.getFunction().getOffset(), 0x1234u);
    ASSERT_EQ(call.getArguments().size(), 2u);
    EXPECT_EQ(call.getArguments()[0].size(), 300u);
    EXPECT_EQ(call.getArguments()[1].size(), 1u);
  });
  EXPECT_TRUE(result);
}

TEST(Codec, EveryKindComesBackAsThatKind) {
  const auto schema = capnp::Schema::from<Envelope>();
  ASSERT_EQ(schema.getUnionFields().size(), 48u);
  for (auto field : schema.getUnionFields()) {
    Message message;
    capnp::DynamicStruct::Builder(message.root()).init(field);
    const auto received = parsed(message);
    EXPECT_EQ(static_cast<std::uint16_t>(received.root().which()), field.getProto().getDiscriminantValue());
    EXPECT_TRUE(received.visit(ReadAll{})) << field.getProto().getName().cStr();
  }
}

TEST(Codec, EveryMessageOfAJobSaysWhichOne) {
  // What the head alone sends, what is the router's or only passes, and what nobody sends.
  const std::set<std::string> others{"openJob",  "closeJob", "createActor", "jobDriven",
                                     "jobEvent", "jobTerms", "replica"};
  for (const auto field : capnp::Schema::from<Envelope>().getUnionFields()) {
    Message message;
    const std::string name = field.getProto().getName().cStr();
    auto body = capnp::DynamicStruct::Builder(message.root()).init(field).as<capnp::DynamicStruct>();
    const bool has_job = body.getSchema().findFieldByName("job") != nullptr;
    if (has_job) body.set("job", std::uint64_t{7});
    EXPECT_EQ(job_of(message.root().asReader()),
              has_job && !others.contains(name) ? std::optional(JobId{7}) : std::nullopt)
        << name;
  }
}

TEST(Codec, NumbersOfTheHotPathComeBack) {
  Message message;
  auto partial = message.root().initPartial();
  partial.setVersion(-1);
  partial.setLossSum(-0.5);
  partial.setSamples(std::int64_t{1} << 40);
  const auto received = parsed(message);
  EXPECT_EQ(received.root().getPartial().getVersion(), -1);
  EXPECT_EQ(received.root().getPartial().getLossSum(), -0.5);
  EXPECT_EQ(received.root().getPartial().getSamples(), std::int64_t{1} << 40);
}

TEST(Codec, MessageIsReusableAndForgetsWhatItHeld) {
  Message message;
  fill_call(message);
  const auto first = message.to_frame();
  EXPECT_EQ(first.size(), message.size_bytes());
  message.clear();
  message.root().initArrive().setRank(3);
  const auto second = parsed(message);
  EXPECT_EQ(second.root().which(), Envelope::ARRIVE);
  EXPECT_EQ(second.root().getArrive().getRank(), 3);
  EXPECT_EQ(second.root().getArrive().getIteration(), 0);
  message.clear();
  fill_call(message);
  EXPECT_EQ(message.to_frame(), first);
}

TEST(Codec, ReceivedStaysReadableWhenItIsMoved) {
  Message message;
  message.root().initReport().initMetric().setName("loss");
  auto received = parsed(message);
  const Received moved = std::move(received);
  EXPECT_EQ(view(moved.root().getReport().getMetric().getName()), "loss");
}

TEST(Codec, PeerOfAnotherVersionIsRefusedByName) {
  Message message;
  message.root().initHello();
  message.root().setVersion(2);
  const auto received = Received::parse(message.to_frame());
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().kind, ErrorKind::invalid);
  EXPECT_EQ(received.error().text, "peer speaks Paceline protocol 2, this is 1: install the same version on both");
}

TEST(Codec, EveryTruncationIsAnErrorAndNoCrash) {
  Message message;
  fill_call(message);
  const Frame whole = message.to_frame();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    auto received = Received::parse(Frame(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    ASSERT_FALSE(received) << size;
    ASSERT_EQ(received.error().kind, ErrorKind::invalid);
  }
}

TEST(Codec, BytesBehindTheEndAreAnError) {
  Message message;
  fill_call(message);
  Frame frame = message.to_frame();
  frame.resize(frame.size() + 8);
  EXPECT_FALSE(Received::parse(std::move(frame)));
}

TEST(Codec, RandomBytesAreAnErrorAndNoCrash) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    Frame frame(8 * (random() % 64));
    for (auto& byte : frame) byte = static_cast<std::byte>(random());
    auto received = Received::parse(std::move(frame));
    if (received) (void)received->visit(ReadAll{});  // As good as impossible, and harmless.
  }
}

TEST(Codec, FlippedBitsNeverEscapeFromAVisit) {
  int damaged = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    Message message;
    fill_call(message);
    Frame frame = message.to_frame();
    for (int i = 0; i < 4; ++i) {  // Behind segment table and version, where parse() looks.
      frame[24 + random() % (frame.size() - 24)] ^= static_cast<std::byte>(1 << random() % 8);
    }
    auto received = Received::parse(std::move(frame));
    if (!received) continue;
    const auto result = received->visit(ReadAll{});
    if (result) continue;
    ++damaged;
    EXPECT_EQ(result.error().kind, ErrorKind::invalid);
    EXPECT_NE(result.error().text.find("damaged"), std::string::npos);
  }
  EXPECT_GT(damaged, 50);
}

TEST(Codec, EnvelopeBeyondTheLimitIsAnErrorBeforeItIsRead) {
  auto received = Received::parse(Frame(kMaxEnvelopeBytes + 8));
  ASSERT_FALSE(received);
  EXPECT_NE(received.error().text.find("limit"), std::string::npos);
}

TEST(Codec, ListThatClaimsHalfABillionElementsIsAnError) {
  const std::uint64_t kind = static_cast<std::uint64_t>(Envelope::NODES) << 32;
  const Frame frame = frame_of({
      0x0000'0006'0000'0000,                 // one segment of six words
      0x0001'0001'0000'0000,                 // root: one data word, one pointer
      kind | kProtocolVersion,               //
      0x0001'0001'0000'0000,                 // Nodes: epoch, one pointer
      0,                                     // epoch
      0x0000'0007'0000'0001,                 // list of structs that takes no words …
      (std::uint64_t{(1u << 29) - 1}) << 2,  // … with 2^29 - 1 empty elements
  });
  auto received = Received::parse(frame);
  ASSERT_TRUE(received) << received.error().text;
  ReadAll reader;
  const auto result = received->visit([&](Envelope::Reader root) { reader(root); });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::invalid);
}

TEST(Codec, StructThatContainsItselfIsAnError) {
  const std::uint64_t kind = static_cast<std::uint64_t>(Envelope::NODES) << 32;
  const Frame frame = frame_of({
      0x0000'0003'0000'0000,    // one segment of three words
      0x0001'0001'0000'0000,    // root
      kind | kProtocolVersion,  //
      0x0001'0001'ffff'fff8,    // its pointer: to the root's own data, two words back
  });
  auto received = Received::parse(frame);
  ASSERT_TRUE(received) << received.error().text;
  EXPECT_FALSE(received->visit([](Envelope::Reader root) { (void)root.totalSize(); }));
}

TEST(Codec, HandlersOwnErrorIsTheResult) {
  Message message;
  message.root().initHello();
  const auto received = parsed(message);
  const Result<void> result =
      received.visit([](Envelope::Reader) -> Result<void> { return fail(ErrorKind::stale, "old"); });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::stale);
}

}  // namespace
}  // namespace paceline::wire
