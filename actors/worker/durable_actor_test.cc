#include "actors/worker/durable_actor.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <memory>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "actors/coroutine.h"
#include "actors/durable.h"
#include "actors/worker/executor.h"

namespace paceline::worker {
namespace {

using testing::HasSubstr;

const ActorId kDurable{5};

class Counter {
 public:
  int add(int k) {
    count_.write() += k;
    if (k < 0) throw std::runtime_error("only up");
    return *count_;
  }
  int too_large(int k) {
    count_.write() += k;
    rest_.write().resize(std::size_t{61} << 20);
    return *count_;
  }
  int late(int) { return *durable<int>(); }
#ifdef PACELINE_HAS_COROUTINES
  Async<int> later(int k) { co_return add(k); }
#endif

 private:
  durable<int> count_;
  durable<Bytes> rest_;
};

/// Processes of one actor, one after another.
class DurableActorTest : public testing::Test {
 protected:
  /// The next one: the actor as its constructor leaves it.
  std::string start(actors::Concurrency concurrency = {}, int restarts = 1) {
    StateKeeper keeper;
    keeper.find = [this]() -> Result<process::Fd> {
      return kept_ ? process::BorrowedFd(kept_).duplicate() : process::Fd();
    };
    keeper.keep = [this](process::BorrowedFd fd) -> Result<void> {
      kept_ = fd.duplicate();
      return {};
    };
    sut_ = std::make_unique<Executor>([] { return actors::Place{}; }, std::move(keeper));
    actors::CreateActor create;
    create.actor = kDurable;
    create.rule = {restarts, -1};
    create.concurrency = std::move(concurrency);
    create.function = *actors::name_of(&actors::run_constructor<Counter, std::tuple<>>);
    return sut_->construct(std::move(create)).error.text;
  }
  template <class Method>
  Result<int> call(Method method, int argument, std::uint64_t number, int resent = 0) {
    actors::Call call{actors::task_id(7, number),
                      kDurable,
                      *actors::name_of(&actors::run_method<Counter, Method, std::tuple<int>>),
                      {},
                      "driver"};
    auto name = *actors::name_of(method);
    name.function.build.clear();
    call.arguments = {actors::to_bytes(name), actors::to_bytes(argument)};
    call.number = number;
    call.resent = resent;
    const auto answer = sut_->call(std::move(call));
    if (!answer->value) return tl::unexpected(answer->value.error());
    return actors::from_bytes<int>(*answer->value, "the result");
  }

  process::Fd kept_;
  std::unique_ptr<Executor> sut_;
};

TEST_F(DurableActorTest, ACallThatWasOverIsAnsweredAndOneThatWasNotIsDone) {
  ASSERT_EQ(start(), "");
  EXPECT_EQ(call(&Counter::add, 3, 1), 3);
  EXPECT_EQ(call(&Counter::add, 4, 2), 7);
  ASSERT_EQ(start(), "");
  EXPECT_EQ(call(&Counter::add, 4, 2, 1), 7);
  EXPECT_EQ(call(&Counter::add, 5, 3, 1), 12);
  EXPECT_EQ(call(&Counter::add, 1, 4), 13);
}

TEST_F(DurableActorTest, WhatACallHasThrownIsItsAnswer) {
  ASSERT_EQ(start(), "");
  EXPECT_FALSE(call(&Counter::add, -1, 1));
  ASSERT_EQ(start(), "");
  const auto again = call(&Counter::add, -1, 1, 1);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().text, HasSubstr("only up"));
  EXPECT_EQ(call(&Counter::add, 0, 2), -1);
}

TEST_F(DurableActorTest, WhatCannotBeKeptIsUndone) {
  ASSERT_EQ(start(), "");
  const auto refused = call(&Counter::too_large, 5, 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("is undone: a durable value takes 61 MiB"));
  EXPECT_EQ(call(&Counter::add, 1, 2), 1);
  ASSERT_EQ(start(), "");
  EXPECT_THAT(call(&Counter::too_large, 5, 1, 1).error().text, HasSubstr("is undone")) << "it is not done again";
}

TEST_F(DurableActorTest, OnlyCallsThatRunOneAtATimeMayChangeIt) {
  EXPECT_THAT(start({.threads = 2}), HasSubstr("runs several calls at a time"));
  EXPECT_EQ(start({.threads = 2}, 0), "") << "nothing is kept of one that is not started again";
#ifdef PACELINE_HAS_COROUTINES
  ASSERT_EQ(start(), "");
  EXPECT_THAT(call(&Counter::later, 1, 1).error().text, HasSubstr("a coroutine method of an actor with durable state"));
#endif
}

TEST_F(DurableActorTest, ItIsMadeInTheConstructor) {
  ASSERT_EQ(start(), "");
  EXPECT_THAT(call(&Counter::late, 1, 1).error().text, HasSubstr("not in its methods"));
}

}  // namespace
}  // namespace paceline::worker
