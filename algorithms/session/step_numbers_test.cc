#include "algorithms/session/step_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace paceline::session {
namespace {

using algorithms::Outer;
using testing::ElementsAre;

using Numbers = std::array<double, 3>;

std::span<std::byte> bytes(Numbers& numbers) { return std::as_writable_bytes(std::span(numbers)); }
Numbers numbers(std::span<const std::byte> bytes, std::size_t at = 0) {
  Numbers numbers{};
  std::memcpy(numbers.data(), bytes.data() + at * sizeof(double), std::min(sizeof numbers, bytes.size()));
  return numbers;
}

StepNumbers of(const Outer& outer = {}, std::uint64_t outer_elements = 3) {
  return {outer, {3, memory::Dtype::f64, 2}, outer_elements};
}

TEST(StepNumbersTest, PiecesAreAddedToABaseOrStandForThemselves) {
  const auto sut = of();
  Numbers first{1, 2, 3}, second{10, 20, 30}, into{};
  const std::array whole{paceline_span{first.data(), 1}, paceline_span{first.data() + 1, 2}};
  ASSERT_TRUE(sut.add(whole, bytes(into).data(), nullptr));
  EXPECT_THAT(into, ElementsAre(1, 2, 3));
  ASSERT_TRUE(sut.add(whole, bytes(into).data(), bytes(second).data()));
  EXPECT_THAT(into, ElementsAre(11, 22, 33));
  const std::array without_gradient{paceline_span{nullptr, 2}, paceline_span{first.data(), 1}};
  ASSERT_TRUE(sut.add(without_gradient, bytes(into).data(), bytes(second).data()));
  EXPECT_THAT(into, ElementsAre(10, 20, 31));
  sut.scale(bytes(into).data(), 0.5);
  EXPECT_THAT(into, ElementsAre(5, 10, 15.5));
}

TEST(StepNumbersTest, PiecesThatAreNotOneModelAreRefused) {
  const auto sut = of();
  Numbers numbers{1, 2, 3}, into{};
  EXPECT_FALSE(sut.add(std::array{paceline_span{numbers.data(), 2}}, bytes(into).data(), nullptr));
  EXPECT_FALSE(sut.add(std::array{paceline_span{numbers.data(), 2}, paceline_span{numbers.data(), 2}},
                       bytes(into).data(), nullptr));
}

TEST(StepNumbersTest, TheOuterStepIsMadeWithTheFirstElements) {
  auto sut = of({.kind = Outer::Kind::diloco, .momentum = 0, .rate = 0.5}, 2);
  Numbers start{4, 8, 1}, mean{2, 4, 7};
  sut.begin_first_block(bytes(start));
  EXPECT_EQ(sut.outer_state().size(), 4 * sizeof(double)) << "of two numbers, and their momentum";
  sut.begin_next_block(bytes(mean), 1, false);
  EXPECT_THAT(mean, ElementsAre(3, 6, 7)) << "half of the way";
  sut.begin_first_block(bytes(start));
  EXPECT_THAT(numbers(sut.outer_state()), ElementsAre(3, 6, 2)) << "begun already; what the block did is its momentum";
}

TEST(StepNumbersTest, TheLastBlockEndsWithTheJobsModel) {
  const Outer carried_on{.kind = Outer::Kind::bmuf, .momentum = 0.5, .nesterov = true};
  for (const bool is_last : {false, true}) {
    auto sut = of(carried_on);
    Numbers start{0, 0, 0}, mean{2, 2, 2};
    sut.begin_first_block(bytes(start));
    sut.begin_next_block(bytes(mean), 1, is_last);
    EXPECT_EQ(mean[0], is_last ? 2 : 3) << "not where another block would start";
  }
}

TEST(StepNumbersTest, AnOuterStateIsTakenIfItIsOne) {
  std::array<std::byte, 6 * sizeof(double)> state{};
  EXPECT_FALSE(of().set_outer_state(state)) << "there is no outer step";
  auto sut = of({.kind = Outer::Kind::slowmo});
  EXPECT_FALSE(sut.set_outer_state(std::span(state).first(8)));
  EXPECT_TRUE(sut.set_outer_state(state));
  EXPECT_EQ(sut.outer_state().size(), state.size());
}

TEST(StepNumbersTest, AStepApartComesOnTopOfTheAverage) {
  auto sut = of();
  Numbers model{1, 1, 1};
  sut.begin_step_apart(bytes(model));
  model = {2, 3, 4};
  sut.take_step_apart(bytes(model));
  EXPECT_THAT(model, ElementsAre(1, 1, 1));
  Numbers average{10, 10, 10}, sum{7, 7, 7};
  sut.put_step_together(bytes(average), 1);
  EXPECT_THAT(average, ElementsAre(11, 12, 13));
  sut.put_step_together(bytes(sum), 3);
  EXPECT_THAT(sum, ElementsAre(3, 4, 5)) << "(7 + 1) / 4, and the step";
}

}  // namespace
}  // namespace paceline::session
