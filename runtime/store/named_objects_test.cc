#include "runtime/store/named_objects.h"

#include <gtest/gtest.h>

#include <utility>

namespace paceline::store {
namespace {

constexpr std::uint64_t kSize = 5000;

TEST(NamedObjectsTest, TheFirstFillsItAndTheOthersGetItWhenItIsSealed) {
  NamedObjects sut;
  const auto first = sut.open({WorkerId{1}, 10}, "images", kSize);
  ASSERT_TRUE(first && *first);
  EXPECT_TRUE((*first)->fill);
  auto filler = SharedObject::fill((*first)->object.duplicate(), kSize);
  ASSERT_TRUE(filler) << filler.error().text;
  for (std::uint64_t i = 2; i < 4; ++i) {
    const auto waits = sut.open({WorkerId{i}, 10 * i}, "images", kSize);
    EXPECT_TRUE(waits && !*waits);
  }
  EXPECT_TRUE(sut.on_sealed("images").empty()) << "who only says so";
  ASSERT_TRUE(filler->seal());
  const auto given = sut.on_sealed("images");
  ASSERT_EQ(given.size(), 2u);
  EXPECT_EQ(given[1].to.worker, WorkerId{3});
  EXPECT_EQ(given[1].to.request, 30u);
  EXPECT_FALSE(given[1].fill);
  EXPECT_TRUE(SharedObject::map(given[1].object.duplicate(), kSize));
  EXPECT_TRUE(sut.on_sealed("images").empty());
  const auto late = sut.open({WorkerId{4}, 40}, "images", kSize);
  ASSERT_TRUE(late && *late);
  EXPECT_FALSE((*late)->fill);
}

TEST(NamedObjectsTest, SizesThatItCannotHaveAreRefused) {
  NamedObjects sut;
  for (const std::uint64_t size : {std::uint64_t{0}, NamedObjects::kBytesMax + 1})
    EXPECT_EQ(sut.open({WorkerId{1}}, "images", size).error().kind, ErrorKind::invalid);
  ASSERT_TRUE(sut.open({WorkerId{1}}, "images", kSize));
  EXPECT_EQ(sut.open({WorkerId{2}}, "images", kSize + 1).error().kind, ErrorKind::invalid);
  EXPECT_TRUE(sut.on_sealed("labels").empty());
}

}  // namespace
}  // namespace paceline::store
