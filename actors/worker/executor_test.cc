#include "actors/worker/executor.h"

#include <gmock/gmock.h>

#include <stdexcept>

#include "actors/coroutine.h"
#include "actors/future.h"

namespace paceline::worker {
namespace {

using testing::EndsWith;

class Counted {
 public:
  int add(int k) {
    if (k < 0) throw std::invalid_argument("only up");
    return n_ += k;
  }
  int pass(int depth) {
    if (depth == 0)
      throw TaskError(actors::began({ErrorKind::disconnected, "it is dead"}, {7, "worker 9"}, "far()", "killed"));
    return pass(depth - 1);
  }
#ifdef PACELINE_HAS_COROUTINES
  Async<int> later(int k) {
    co_await sleep_for(std::chrono::milliseconds(1));
    co_return add(k);
  }
#endif

 private:
  int n_ = 0;
};

int bad(int) { throw std::string("\xff\xfe no text"); }

const ActorId kExecuted{5};

class ExecutorTest : public testing::Test {
 protected:
  template <class Method>
  actors::Call call_of(Method method, int argument) {
    using Encoded = std::tuple<int>;
    actors::Call call{
        TaskId{1}, kExecuted, *actors::name_of(&actors::run_method<Counted, Method, Encoded>), {}, "driver"};
    auto name = *actors::name_of(method);
    name.function.build.clear();
    call.arguments = {actors::to_bytes(name), actors::to_bytes(argument)};
    return call;
  }
  void construct() {
    actors::CreateActor create;
    create.actor = kExecuted;
    create.name = "c";
    create.function = *actors::name_of(&actors::run_constructor<Counted, std::tuple<>>);
    EXPECT_EQ(sut.construct(create).error.text, "");
  }

  Executor sut{[] { return actors::Place{2, "worker 3", "/log"}; }};
};

TEST_F(ExecutorTest, WhatAMethodThrowsNamesItAndItsPlace) {
  construct();
  EXPECT_TRUE(sut.call(call_of(&Counted::add, 3))->value.has_value());
  const auto answer = sut.call(call_of(&Counted::add, -3));
  ASSERT_FALSE(answer->value);
  const TaskError error(answer->value.error());
  EXPECT_STREQ(error.what(), "std::invalid_argument: only up (actor 'c', worker 3 on node 2, log /log)");
  EXPECT_EQ(error.cause(), "std::invalid_argument: only up");
  EXPECT_EQ(error.node(), 2);
  EXPECT_EQ(error.worker(), "worker 3");
  EXPECT_EQ(error.log(), "/log");
  ASSERT_EQ(error.causes().size(), 1u);
  EXPECT_EQ(error.causes()[0].what, "paceline::worker::Counted::add(int) of actor 'c'");
}

TEST_F(ExecutorTest, ATaskErrorThatAMethodLetsOutIsPassedOn) {
  construct();
  const TaskError error(sut.call(call_of(&Counted::pass, 2))->value.error());
  EXPECT_EQ(error.kind(), ErrorKind::disconnected);
  EXPECT_STREQ(error.what(), "it is dead (passed on by actor 'c', worker 3 on node 2, log /log)");
  EXPECT_EQ(error.worker(), "worker 9");
  EXPECT_EQ(error.cause(), "killed");
  ASSERT_EQ(error.causes().size(), 2u);
  EXPECT_EQ(error.causes()[0].what, "paceline::worker::Counted::pass(int) of actor 'c'");
  EXPECT_EQ(error.causes()[0].worker, "worker 3");
}

TEST_F(ExecutorTest, WhatIsThrownMayHoldAnyBytes) {
  actors::Call call{
      TaskId{1}, {}, *actors::name_of(&actors::run_function<int (*)(int), std::tuple<int>>), {}, "driver"};
  call.arguments = {actors::to_bytes(*actors::name_of(bad)), actors::to_bytes(1)};
  const TaskError error(sut.call(call)->value.error());
  EXPECT_EQ(error.cause(), "std::string: \xef\xbf\xbd\xef\xbf\xbd no text");
  EXPECT_EQ(error.causes()[0].what, "paceline::worker::bad(int)");
}

struct Ends {
  ~Ends() { ++ended; }
  static inline int ended = 0;
};

TEST_F(ExecutorTest, AnActorThatEndsIsDestroyedAndSaysWhy) {
  actors::CreateActor create;
  create.actor = kExecuted;
  create.function = *actors::name_of(&actors::run_constructor<Ends, std::tuple<>>);
  EXPECT_EQ(sut.construct(create).error.text, "");
  const auto gone = sut.end();
  EXPECT_EQ(Ends::ended, 1);
  EXPECT_TRUE(gone.dead);
  EXPECT_EQ(gone.actor, kExecuted);
  EXPECT_EQ(gone.error.kind, ErrorKind::disconnected);
  EXPECT_EQ(TaskError(gone.error).worker(), "worker 3");
  EXPECT_EQ(sut.call(call_of(&Counted::add, 1))->value.error().kind, ErrorKind::not_found);
}

#ifdef PACELINE_HAS_COROUTINES
class Later final : public actors::Resumer {
 public:
  std::function<void()> later(std::function<void()> go_on) override { return go_on; }
  void after(Duration, std::function<void()> go_on) override { kept.push_back(std::move(go_on)); }
  std::vector<std::function<void()>> kept;
};

TEST_F(ExecutorTest, ACoroutineThatGoesOnAndThrowsIsNamed) {
  Later later;
  actors::set_resumer(&later);
  construct();
  EXPECT_FALSE(sut.call(call_of(&Counted::later, -1)).has_value());
  ASSERT_EQ(later.kept.size(), 1u);
  const auto answers = sut.resume(later.kept[0]);
  actors::set_resumer(nullptr);
  ASSERT_EQ(answers.size(), 1u);
  const TaskError error(answers[0].value.error());
  EXPECT_EQ(error.causes()[0].what, "paceline::worker::Counted::later(int) of actor 'c'");
  EXPECT_THAT(error.what(), EndsWith("(actor 'c', worker 3 on node 2, log /log)"));
}
#endif

}  // namespace
}  // namespace paceline::worker
