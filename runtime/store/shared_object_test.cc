#include "runtime/store/shared_object.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace paceline::store {
namespace {

class SharedObjectTest : public testing::Test {
 protected:
  void SetUp() override {
    auto created = SharedObject::create(kSize);
    ASSERT_TRUE(created) << created.error().text;
    owner.emplace(std::move(*created));
  }
  static constexpr std::uint64_t kSize = 10'001;
  std::optional<SharedObject> owner;
};

TEST_F(SharedObjectTest, WhatIsFilledAndSealedIsReadByOthers) {
  auto filler = SharedObject::fill(owner->fd().duplicate(), kSize);
  ASSERT_TRUE(filler) << filler.error().text;
  ASSERT_EQ(filler->writable().size(), kSize);
  std::memset(filler->writable().data(), 9, kSize);
  const auto* address = filler->data().data();
  EXPECT_FALSE(SharedObject::is_sealed(owner->fd()));
  ASSERT_TRUE(filler->seal());
  EXPECT_TRUE(SharedObject::is_sealed(owner->fd()));
  EXPECT_TRUE(filler->writable().empty());
  EXPECT_EQ(filler->data().data(), address);
  EXPECT_EQ(filler->data()[kSize - 1], std::byte{9});

  const auto reader = SharedObject::map(owner->fd().duplicate(), kSize);
  ASSERT_TRUE(reader) << reader.error().text;
  EXPECT_EQ(reader->data()[kSize - 1], std::byte{9});
}

TEST_F(SharedObjectTest, PiecesLieOneBehindTheOtherInACopyOfThem) {
  const std::string head = "head", body(100'000, 'b'), none;
  const std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(head)), std::as_bytes(std::span(none)),
                                                       std::as_bytes(std::span(body))};
  const auto object = SharedObject::sealed_copy_of(pieces);
  ASSERT_TRUE(object) << object.error().text;
  EXPECT_TRUE(SharedObject::is_sealed(object->fd()));
  const auto data = object->data();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(data.data()), data.size()), head + body);
  const auto empty = SharedObject::sealed_copy_of({});
  ASSERT_TRUE(empty) << empty.error().text;
  EXPECT_EQ(empty->size(), 1u);
}

TEST_F(SharedObjectTest, ASealedOneCannotBeWrittenByAnybody) {
  auto filler = SharedObject::fill(owner->fd().duplicate(), kSize);
  ASSERT_TRUE(filler && filler->seal());
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, owner->fd().get(), 0), MAP_FAILED);
  EXPECT_LT(::pwrite(owner->fd().get(), "x", 1, 0), 0);
  EXPECT_FALSE(SharedObject::fill(owner->fd().duplicate(), kSize));
  EXPECT_FALSE(filler->seal()) << "only once";
}

TEST_F(SharedObjectTest, OneThatIsNotSealedIsNotRead) {
  const auto early = SharedObject::map(owner->fd().duplicate(), kSize);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().kind, ErrorKind::invalid);
}

TEST_F(SharedObjectTest, TheSealIsRefusedWhileSomebodyElseStillWrites) {
  auto one = SharedObject::fill(owner->fd().duplicate(), kSize);
  auto other = SharedObject::fill(owner->fd().duplicate(), kSize);
  ASSERT_TRUE(one && other);
  const auto refused = one->seal();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
  one->writable()[0] = std::byte{1};  // As before the attempt.
  { const SharedObject gone = std::move(*other); }
  EXPECT_TRUE(one->seal());
  EXPECT_EQ(one->data()[0], std::byte{1});
}

TEST_F(SharedObjectTest, WhoWritesForAMomentDoesNotPreventTheSeal) {
  auto one = SharedObject::fill(owner->fd().duplicate(), kSize);
  auto other = SharedObject::fill(owner->fd().duplicate(), kSize);
  ASSERT_TRUE(one && other);
  std::thread passing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const SharedObject gone = std::move(*other);
  });
  EXPECT_TRUE(one->seal());
  passing.join();
}

TEST_F(SharedObjectTest, AWrongSizeIsRefused) {
  EXPECT_FALSE(SharedObject::fill(owner->fd().duplicate(), kSize + 1));
  EXPECT_FALSE(SharedObject::fill({}, kSize));
  EXPECT_FALSE(SharedObject::create(0));
  const auto huge = SharedObject::create(1ull << 45);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().kind, ErrorKind::infeasible);
}

}  // namespace
}  // namespace paceline::store
