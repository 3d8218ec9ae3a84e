#include "actors/durable/undo_log.h"

#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <random>
#include <vector>

namespace paceline::actors {
namespace {

constexpr std::size_t kBlock = UndoLog::kBlock;
constexpr std::size_t kBytes = 5 * kBlock + 100;

class UndoLogTest : public testing::Test {
 protected:
  ~UndoLogTest() override { ::operator delete (memory_, std::align_val_t{kBlock}); }
  UndoLog open() { return {memory_, kBytes, there}; }
  static void write(UndoLog& log, std::size_t offset, std::size_t size, int value, std::uint64_t version) {
    ASSERT_TRUE(log.save(offset, size, version));
    std::memset(log.data().data() + offset, value, size);
  }
  std::vector<std::byte> contents() {
    const auto data = open().data();
    return {data.begin(), data.end()};
  }

  std::byte* memory_ = [] {
    const std::size_t size = UndoLog::memory_for(kBytes);
    auto* const memory = static_cast<std::byte*>(::operator new (size, std::align_val_t{kBlock}));
    std::memset(memory, 0, size);
    return memory;
  }();
};

TEST_F(UndoLogTest, WhatIsChangedStaysOnceTheVersionIsOver) {
  auto log = open();
  write(log, 10, 20, 7, 1);
  auto next = open();
  next.roll_back(2);
  EXPECT_EQ(next.data()[10], std::byte{7});
  EXPECT_EQ(next.data()[30], std::byte{0});
}

TEST_F(UndoLogTest, WhatIsChangedIsPutBackWhileTheVersionLasts) {
  auto log = open();
  write(log, 0, kBytes, 1, 1);
  const auto before = contents();
  write(log, kBlock - 1, 2, 2, 2);
  write(log, 10, 1, 3, 2);
  write(log, 5 * kBlock, 100, 4, 2);
  open().roll_back(2);
  EXPECT_EQ(contents(), before);
}

TEST_F(UndoLogTest, APieceIsSavedOnceAVersion) {
  auto log = open();
  write(log, 0, 1, 1, 1);
  write(log, 0, 1, 2, 1);
  open().roll_back(1);
  EXPECT_EQ(contents()[0], std::byte{0});
}

TEST_F(UndoLogTest, PuttingBackMayBeDoneAgain) {
  auto log = open();
  write(log, 0, 1, 1, 1);
  open().roll_back(1);
  auto next = open();
  next.roll_back(1);
  write(next, 0, 1, 5, 1);
  open().roll_back(1);
  EXPECT_EQ(contents()[0], std::byte{0});
}

TEST_F(UndoLogTest, WhatCannotBeReservedIsNotSaved) {
  UndoLog log(memory_, kBytes,
              [](std::size_t, std::size_t) -> Result<void> { return fail(ErrorKind::infeasible, ""); });
  EXPECT_EQ(log.save(0, 1, 1).error().kind, ErrorKind::infeasible);
}

TEST_F(UndoLogTest, RandomChangesAndDeathsLeaveWhatWasPublishedLast) {
  std::mt19937 random(1);
  auto log = open();
  std::uint64_t version = 1;
  auto published = contents();
  for (int i = 0; i < 20000; ++i) {
    const std::size_t offset = random() % kBytes;
    const std::size_t size = random() % std::min<std::size_t>(kBytes - offset, 3 * kBlock);
    switch (random() % 4) {
      case 0:
        ++version;
        published = contents();
        break;
      case 1:  // In the middle of a change.
        write(log, offset, size / 2, static_cast<int>(random()), version);
        ASSERT_TRUE(log.save(offset, size, version));
        log = open();
        log.roll_back(version);
        ASSERT_EQ(contents(), published);
        break;
      default: write(log, offset, size, static_cast<int>(random()), version);
    }
  }
}

}  // namespace
}  // namespace paceline::actors
