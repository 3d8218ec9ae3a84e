#include "runtime/collective/averager.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <cstring>
#include <latch>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace paceline::collective {
namespace {

using memory::Dtype;
using Floats = std::vector<float>;

std::unique_ptr<Averager> make(int threads) {
  auto averager = Averager::create(threads);
  EXPECT_TRUE(averager) << averager.error().text;
  return std::move(*averager);
}

Floats random_floats(std::size_t elements, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats out(elements);
  for (auto& value : out) value = normal(random);
  return out;
}

/// Owns what these tests reduce, and outlive.
const auto kStack = std::make_shared<int>();

/// All ids that arrive until there are `count`; fewer if nothing comes for 20 s.
std::vector<Averager::Id> wait_for(Averager& averager, std::size_t count) {
  std::vector<Averager::Id> ids;
  while (ids.size() < count) {
    pollfd readable{averager.descriptor(), POLLIN, 0};
    if (::poll(&readable, 1, 20'000) != 1) break;
    for (const auto id : averager.completed()) ids.push_back(id);
  }
  return ids;
}

bool is_readable(const Averager& averager) {
  pollfd readable{averager.descriptor(), POLLIN, 0};
  return ::poll(&readable, 1, 0) == 1;
}

TEST(AveragerTest, TheBitsDoNotDependOnTheNumberOfThreads) {
  constexpr std::size_t kElements = 1'000'003;  // Many chunks and an odd rest.
  std::vector<Floats> inputs;
  for (unsigned k = 0; k < 5; ++k) inputs.push_back(random_floats(kElements, k));
  Reduction reduction{.inputs = {}, .outputs = {}, .elements = kElements, .dtype = Dtype::f32};
  for (const auto& input : inputs) reduction.inputs.push_back(input.data());
  Floats reference(kElements);
  reduction.outputs = {{reference.data(), 0.2}};
  Averager::run_inline(reduction);
  for (const int threads : {1, 2, 3, 8}) {
    auto sut = make(threads);
    ASSERT_EQ(sut->threads(), threads);
    Floats mean(kElements), sum(kElements);
    reduction.outputs = {{mean.data(), 0.2}, {sum.data(), 1.0}};
    ASSERT_TRUE(sut->submit(7, reduction, kStack));
    ASSERT_EQ(wait_for(*sut, 1), std::vector<Averager::Id>{7});
    EXPECT_EQ(std::memcmp(mean.data(), reference.data(), kElements * sizeof(float)), 0) << threads;
    EXPECT_EQ(sum[kElements - 1],
              inputs[0].back() + inputs[1].back() + inputs[2].back() + inputs[3].back() + inputs[4].back());
  }
}

TEST(AveragerTest, ReductionsRunInTheOrderOfTheirSubmissionEachOnTheResultsOfTheLast) {
  constexpr std::size_t kElements = 300'000;
  constexpr int kJobs = 50;
  auto sut = make(3);
  Floats a(kElements, 1.0f);
  const Floats one(kElements, 1.0f);
  for (int j = 0; j < kJobs; ++j)
    ASSERT_TRUE(sut->submit(
        static_cast<Averager::Id>(j),
        {.inputs = {a.data(), one.data()}, .outputs = {{a.data(), 1.0}}, .elements = kElements, .dtype = Dtype::f32},
        kStack));
  const auto ids = wait_for(*sut, kJobs);
  std::vector<Averager::Id> in_order(kJobs);
  std::iota(in_order.begin(), in_order.end(), 0);
  EXPECT_EQ(ids, in_order);
  EXPECT_EQ(a, Floats(kElements, 1.0f + kJobs));
}

TEST(AveragerTest, AllMembersInPlaceGetTheMean) {
  constexpr std::size_t kElements = 200'001;
  auto sut = make(2);
  std::vector<Floats> windows{Floats(kElements, 1.0f), Floats(kElements, 2.0f), Floats(kElements, 6.0f)};
  Reduction reduction{.inputs = {}, .outputs = {}, .elements = kElements, .dtype = Dtype::f32};
  for (auto& w : windows) {
    reduction.inputs.push_back(w.data());
    reduction.outputs.push_back({w.data(), 1.0 / 3});
  }
  ASSERT_TRUE(sut->submit(1, reduction, kStack));
  ASSERT_EQ(wait_for(*sut, 1).size(), 1u);
  for (const auto& w : windows) EXPECT_EQ(w, Floats(kElements, 3.0f));
}

// Large enough to be written past the caches.
TEST(AveragerTest, AResultLargerThanTheCachesIsTheSame) {
  constexpr std::size_t kElements = 20'000'001;
  auto sut = make(2);
  const Floats a(kElements, 3.0f), b(kElements, 5.0f);
  Floats out(kElements);
  ASSERT_TRUE(sut->submit(
      1, {.inputs = {a.data(), b.data()}, .outputs = {{out.data(), 0.5}}, .elements = kElements, .dtype = Dtype::f32},
      kStack));
  ASSERT_EQ(wait_for(*sut, 1).size(), 1u);
  EXPECT_EQ(out, Floats(kElements, 4.0f));
}

TEST(AveragerTest, AReductionOfNothingCompletes) {
  auto sut = make(2);
  float in = 1, out = 2;
  ASSERT_TRUE(sut->submit(3, {.inputs = {&in}, .outputs = {{&out, 1.0}}, .elements = 0, .dtype = Dtype::f32}, kStack));
  EXPECT_EQ(wait_for(*sut, 1), std::vector<Averager::Id>{3});
  EXPECT_EQ(out, 2.0f);
}

TEST(AveragerTest, TheDescriptorIsReadableExactlyWhileSomethingIsCompleted) {
  auto sut = make(1);
  EXPECT_FALSE(is_readable(*sut));
  EXPECT_TRUE(sut->completed().empty());
  float in = 1, out = 0;
  ASSERT_TRUE(sut->submit(1, {.inputs = {&in}, .outputs = {{&out, 1.0}}, .elements = 1, .dtype = Dtype::f32}, kStack));
  pollfd readable{sut->descriptor(), POLLIN, 0};
  ASSERT_EQ(::poll(&readable, 1, 20'000), 1);
  EXPECT_EQ(sut->completed().size(), 1u);
  EXPECT_FALSE(is_readable(*sut));
}

TEST(AveragerTest, WhatCannotBeDoneIsRefused) {
  auto sut = make(1);
  float in = 1, out = 0;
  EXPECT_EQ(sut->submit(1, {.inputs = {&in}, .outputs = {}, .elements = 1, .dtype = Dtype::f32}, kStack).error().kind,
            ErrorKind::invalid);
  EXPECT_EQ(sut->submit(1, {.inputs = {nullptr}, .outputs = {{&out, 1.0}}, .elements = 1, .dtype = Dtype::f32}, kStack)
                .error()
                .kind,
            ErrorKind::invalid);
  EXPECT_EQ(sut->submit(1, {.inputs = {&in}, .outputs = {{nullptr, 1.0}}, .elements = 1, .dtype = Dtype::f32}, kStack)
                .error()
                .kind,
            ErrorKind::invalid);
  EXPECT_FALSE(Averager::create(-1));
  EXPECT_FALSE(Averager::create(65));
}

TEST(AveragerTest, MemoryIsKeptUntilItsReductionIsDoneAndLetGoByTheOwnersThread) {
  constexpr std::size_t kElements = 1 << 20;
  std::thread::id let_go_by;
  std::shared_ptr<Floats> memory(new Floats(kElements, 2.0f), [&](Floats* floats) {
    let_go_by = std::this_thread::get_id();
    delete floats;
  });
  const std::weak_ptr<Floats> seen = memory;
  std::latch begun(1), may_go_on(1);
  std::once_flag once;
  Reduction reduction{
      .inputs = {memory->data()}, .outputs = {{memory->data(), 0.5}}, .elements = kElements, .dtype = Dtype::f32};
  reduction.then = [&](std::uint64_t, std::uint64_t) {
    std::call_once(once, [&] { begun.count_down(); });
    may_go_on.wait();
  };
  auto sut = make(2);
  ASSERT_TRUE(sut->submit(1, std::move(reduction), std::exchange(memory, nullptr)));
  begun.wait();
  EXPECT_FALSE(seen.expired());
  may_go_on.count_down();
  EXPECT_EQ(wait_for(*sut, 1).size(), 1u);
  EXPECT_TRUE(seen.expired());
  EXPECT_EQ(let_go_by, std::this_thread::get_id());
}

TEST(AveragerTest, MemoryOfWhatIsDroppedGoesWithThePool) {
  auto memory = std::make_shared<Floats>(1 << 20, 2.0f);
  const std::weak_ptr<Floats> seen = memory;
  auto sut = make(1);
  for (Averager::Id i = 0; i < 20; ++i)
    ASSERT_TRUE(
        sut->submit(i, {.inputs = {memory->data()}, .outputs = {{memory->data(), 0.5}}, .elements = 1 << 20}, memory));
  memory.reset();
  sut.reset();
  EXPECT_TRUE(seen.expired());
}

TEST(AveragerTest, WhatIsSubmittedAndNotTakenIsBounded) {
  float in = 1, out = 0;
  auto sut = make(1);
  const Reduction tiny{.inputs = {&in}, .outputs = {{&out, 1.0}}, .elements = 1, .dtype = Dtype::f32};
  for (std::size_t i = 0; i < Averager::kQueueMax; ++i) ASSERT_TRUE(sut->submit(i, tiny, kStack));
  const auto refused = sut->submit(0, tiny, kStack);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::overloaded);
  EXPECT_EQ(wait_for(*sut, Averager::kQueueMax).size(), Averager::kQueueMax);
  EXPECT_TRUE(sut->submit(0, tiny, kStack));
  EXPECT_EQ(wait_for(*sut, 1).size(), 1u);
}

TEST(AveragerTest, DestructionWithWorkLeftEndsSoon) {
  constexpr std::size_t kElements = 1 << 18;
  Floats a(kElements, 1.0f), b(kElements, 1.0f);
  auto sut = make(2);
  for (int j = 0; j < 100; ++j)
    ASSERT_TRUE(sut->submit(
        0, {.inputs = {a.data(), b.data()}, .outputs = {{a.data(), 0.5}}, .elements = kElements, .dtype = Dtype::f32},
        kStack));
  sut.reset();
  EXPECT_EQ(a[kElements - 1], 1.0f);
}

TEST(AveragerTest, SmallIsWhatCostsLessThanWakingAThread) {
  const auto of = [](std::uint64_t elements) {
    return Reduction{.inputs = {}, .outputs = {}, .elements = elements, .dtype = Dtype::f32};
  };
  EXPECT_TRUE(Averager::is_small(of(1024)));
  EXPECT_FALSE(Averager::is_small(of(Averager::kInlineBytes / 4)));
}

TEST(AveragerTest, IdleThreadsUseNoProcessorTime) {
  auto sut = make(4);
  float in = 1, out = 0;
  ASSERT_TRUE(sut->submit(1, {.inputs = {&in}, .outputs = {{&out, 1.0}}, .elements = 1, .dtype = Dtype::f32}, kStack));
  ASSERT_EQ(wait_for(*sut, 1).size(), 1u);
  const auto cpu_us = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000L + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
  };
  const long before = cpu_us();
  ::poll(nullptr, 0, 200);  // Real time has to pass for this one.
  EXPECT_LT(cpu_us() - before, 20'000) << "of 800,000 that spinning threads would use";
}

}  // namespace
}  // namespace paceline::collective
