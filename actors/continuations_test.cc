#include "actors/continuations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

#include "actors/task_error.h"
#include "actors/then.h"

namespace paceline::actors {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

template <class T>
Future<T> future() {
  return Future<T>(std::make_shared<PendingResult>(TaskId{5}));
}
template <class T>
void arrive(const Future<T>& future, const T& value) {
  future.pending()->complete(to_bytes(value));
}
template <class T>
std::string error_of(const Future<T>& future) {
  try {
    (void)future.get(10s);
  } catch (const TaskError& error) {
    return error.what();
  }
  return "";
}

TEST(Continuations, RunOneAfterTheOtherInOrder) {
  Continuations sut;
  std::vector<int> order;
  std::promise<void> done;
  for (int i = 0; i < 100; ++i) sut.post([&order, i](bool) { order.push_back(i); });
  sut.post([&](bool) { done.set_value(); });
  done.get_future().wait();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order.at(static_cast<std::size_t>(i)), i);
  EXPECT_EQ(sut.threads(), 1u);
}

TEST(Continuations, OneThatWaitsForALaterOneKeepsItNotUp) {
  Continuations sut;
  const auto last = future<int>();
  std::promise<int> got;
  sut.post([&](bool) { got.set_value(last.get()); });
  sut.post([&](bool) { arrive(last, 3); });
  EXPECT_EQ(got.get_future().get(), 3);
}

TEST(Continuations, DeepChainsOfThoseThatWait) {
  Continuations sut;
  constexpr int kDeep = 50;
  std::vector<Future<int>> links;
  for (int i = 0; i <= kDeep; ++i) links.push_back(future<int>());
  for (std::size_t i = 0; i < kDeep; ++i) sut.post([&links, i](bool) { arrive(links[i], links[i + 1].get() + 1); });
  sut.post([&](bool) { arrive(links.back(), 0); });
  EXPECT_EQ(links.front().get(60s), kDeep);
  EXPECT_LE(sut.threads(), static_cast<std::size_t>(kDeep) + 1);
}

TEST(Continuations, ClosingWaitsForWhatRunsAndDropsTheRest) {
  Continuations sut;
  std::promise<void> began;
  std::atomic<int> ran = 0, dropped = 0;
  const auto count = [&](bool run) { ++(run ? ran : dropped); };
  sut.post([&](bool run) {
    began.set_value();
    std::this_thread::sleep_for(20ms);
    count(run);
  });
  began.get_future().wait();
  sut.post(count);
  sut.close();
  sut.post(count);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(dropped, 2);
}

TEST(Then, GivesWhatTheFunctionMakesOfTheResult) {
  const auto source = future<int>();
  const auto text = source.then([](int x) { return std::to_string(x); });
  const auto length = text.then([](const std::string& s) { return s.size(); });
  auto owned = std::make_unique<int>(4);
  const auto moved = source.then([owned = std::move(owned)](int x) { return x * *owned; });
  EXPECT_FALSE(length.ready());
  arrive(source, 123);
  EXPECT_EQ(length.get(10s), 3u);
  EXPECT_EQ(text.get(), "123");
  EXPECT_EQ(moved.get(10s), 492) << "a function that cannot be copied";
}

TEST(Then, OfNothingAndToNothing) {
  const auto source = future<void>();
  int ran = 0;
  const auto none = source.then([&ran] { ++ran; });
  static_assert(std::is_same_v<decltype(none), const Future<void>>);
  source.pending()->complete(Bytes{});
  none.get(10s);
  EXPECT_EQ(ran, 1);
}

TEST(Then, AFutureOrAResultIsFlat) {
  const auto source = future<int>(), inner = future<int>();
  const auto flat = source.then([inner](int) { return Future<int>(inner); });
  const auto fails = source.then([](int x) -> Result<int> { return fail(ErrorKind::not_found, std::to_string(x)); });
  const auto fits = source.then([](int x) -> Result<std::string> { return std::to_string(x); });
  const auto nothing = source.then([](int) -> Result<void> { return {}; });
  static_assert(std::is_same_v<decltype(flat), const Future<int>>);
  arrive(source, 1);
  EXPECT_EQ(fits.get(10s), "1");
  nothing.get(10s);
  EXPECT_FALSE(flat.ready());
  arrive(inner, 9);
  EXPECT_EQ(flat.get(10s), 9);
  try {
    (void)fails.get(10s);
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
  }
  const auto empty = source.then([](int) { return Future<int>(); });
  EXPECT_THAT(error_of(empty), HasSubstr("an empty future"));
}

TEST(Then, ErrorsPassOnAndWhatIsThrownIsOne) {
  const auto source = future<int>();
  int ran = 0;
  const auto after = source.then([&](int x) { return x + ++ran; }).then([&](int x) { return x + ++ran; });
  source.pending()->complete(fail(ErrorKind::disconnected, "its worker is gone"));
  EXPECT_EQ(error_of(after), "its worker is gone");
  EXPECT_EQ(ran, 0);
  const auto good = future<int>();
  arrive(good, 1);
  const auto throws = good.then([](int) -> int { throw std::runtime_error("no"); });
  EXPECT_EQ(error_of(throws), "std::runtime_error: no (in a function given to then())");
  const auto passes = throws.then([](int x) { return x; });
  EXPECT_EQ(error_of(passes), "std::runtime_error: no (in a function given to then())");
}

}  // namespace
}  // namespace paceline::actors
