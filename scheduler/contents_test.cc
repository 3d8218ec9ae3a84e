#include "scheduler/contents.h"

#include <gtest/gtest.h>

namespace paceline::scheduler {
namespace {

TEST(ContentsTest, ASumHasTheMostOfEach) {
  Contents sut{{Rank{0}, 0, 5}, {Rank{2}, 0, 3}, {Rank{2}, 7, 9}};
  add(sut, {{Rank{0}, 0, 4}, {Rank{1}, 0, 6}, {Rank{2}, 7, 12}, {Rank{3}, 1, 2}});
  EXPECT_EQ(sut, (Contents{{Rank{0}, 0, 5}, {Rank{1}, 0, 6}, {Rank{2}, 0, 3}, {Rank{2}, 7, 12}, {Rank{3}, 1, 2}}));
  add(sut, {});
  EXPECT_EQ(sut.size(), 5U);
  Contents empty;
  add(empty, sut);
  EXPECT_EQ(empty, sut);
}

TEST(ContentsTest, TravelWhateverTheirOrder) {
  wire::Message message;
  auto list = message.root().initPartial().initContents(3);
  write({{Rank{2}, 7, 9}, {Rank{0}, 0, 5}, {Rank{0}, 0, 4}}, list);
  EXPECT_EQ(contents_of(list.asReader()), (Contents{{Rank{0}, 0, 5}, {Rank{2}, 7, 9}}));
}

}  // namespace
}  // namespace paceline::scheduler
