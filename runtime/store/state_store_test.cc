#include "runtime/store/state_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>

#include "runtime/base/test_directory.h"
#include "runtime/store/sqlite_store.h"

namespace paceline::store {
namespace {

using Texts = StateStore::Texts;

class SqliteStoreTest : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return directory_.path / "state.db"; }

  test::TestDirectory directory_;
};

void expect_contract(StateStore& sut) {
  EXPECT_EQ(sut.read("").value(), Texts{});
  ASSERT_TRUE(sut.write({{"job/1", "one"}, {"job/2", "two"}, {"node/1", "here"}}));
  EXPECT_EQ(sut.read("job/").value(), (Texts{{"job/1", "one"}, {"job/2", "two"}}));
  ASSERT_TRUE(sut.write({{"job/1", ""}, {"job/2", "2"}, {"job/9", ""}}));
  EXPECT_EQ(sut.read("").value(), (Texts{{"job/2", "2"}, {"node/1", "here"}}));
  EXPECT_EQ(sut.read("%").value(), Texts{}) << "a prefix is no pattern";
}

TEST(MemoryStoreTest, HoldsTextsByKey) {
  MemoryStore sut;
  expect_contract(sut);
}

TEST(MemoryStoreTest, AFullOneTakesNothing) {
  MemoryStore sut;
  sut.fill(true);
  EXPECT_FALSE(sut.write({{"a", "b"}}));
  sut.fill(false);
  EXPECT_EQ(sut.read("").value(), Texts{});
}

TEST_F(SqliteStoreTest, HoldsTextsByKey) {
  SqliteStore sut(file());
  expect_contract(sut);
}

TEST_F(SqliteStoreTest, TheFileIsMadeWithTheFirstText) {
  SqliteStore sut(file());
  EXPECT_TRUE(sut.read(""));
  EXPECT_FALSE(std::filesystem::exists(file()));
  ASSERT_TRUE(sut.write({{"a", "b"}}));
  ASSERT_TRUE(std::filesystem::exists(file()));
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(file()).permissions(), perms::owner_read | perms::owner_write);
}

TEST_F(SqliteStoreTest, TextsWithAnyBytesComeBack) {
  const std::string any("a\0b\xff'; DROP TABLE state; --", 27);
  ASSERT_TRUE(SqliteStore(file()).write({{"a", any}}));
  EXPECT_EQ(SqliteStore(file()).read("a").value(), (Texts{{"a", any}}));
}

/// Killed at any moment, all of a write is there, or nothing.
TEST_F(SqliteStoreTest, WhatWasWrittenOutlivesAKill) {
  constexpr int kTimes = 20;
  std::size_t last = 0;
  for (int i = 0; i < kTimes; ++i) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      SqliteStore sut(file());
      for (std::size_t n = last + 1;; ++n) {
        const auto number = std::to_string(n);
        if (!sut.write({{"one", number}, {"other", number}}) || ::write(ends[1], &n, sizeof n) != sizeof n) ::_exit(1);
      }
    }
    ::close(ends[1]);
    std::size_t written = 0;
    for (int k = 0; k < 5 + i; ++k) ASSERT_EQ(::read(ends[0], &written, sizeof written), sizeof written);
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(ends[0]);
    const auto found = SqliteStore(file()).read("").value();
    EXPECT_EQ(found.at("one"), found.at("other"));
    last = std::stoul(found.at("one"));
    EXPECT_GE(last, written);
  }
}

TEST_F(SqliteStoreTest, ADamagedFileIsPutAside) {
  std::ofstream(file()) << std::string(8192, 'x');
  SqliteStore sut(file());
  EXPECT_EQ(sut.read("").value(), Texts{});
  EXPECT_NE(sut.damage(), "");
  EXPECT_TRUE(std::filesystem::exists(file().string() + ".damaged"));
  ASSERT_TRUE(sut.write({{"a", "b"}}));
  EXPECT_EQ(SqliteStore(file()).read("").value(), (Texts{{"a", "b"}}));
}

TEST_F(SqliteStoreTest, SoIsOneThatIsDamagedInItsMiddle) {
  {
    SqliteStore sut(file());
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(sut.write({{"key" + std::to_string(i), std::string(1000, 'a')}}));
  }
  {
    std::fstream damage(file(), std::ios::in | std::ios::out | std::ios::binary);
    damage.seekp(4096);
    damage << std::string(60'000, '\xee');
  }
  SqliteStore sut(file());
  const auto read = sut.read("");
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_NE(sut.damage(), "");
  EXPECT_TRUE(sut.write({{"a", "b"}}));
}

TEST_F(SqliteStoreTest, WithoutRoomNothingIsHalfWritten) {
  SqliteStore sut(file());
  ASSERT_TRUE(sut.write({{"a", "before"}}));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{16 << 10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const auto written = sut.write({{"a", "after"}, {"b", std::string(1 << 20, 'b')}});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().text.find("state.db"), std::string::npos) << written.error().text;
  EXPECT_EQ(sut.read("").value(), (Texts{{"a", "before"}}));
  EXPECT_TRUE(sut.write({{"a", "after"}}));
}

TEST_F(SqliteStoreTest, AFolderThatIsNotThereIsAnError) {
  SqliteStore sut(directory_.path / "none" / "state.db");
  EXPECT_TRUE(sut.read(""));
  EXPECT_FALSE(sut.write({{"a", "b"}}));
}

}  // namespace
}  // namespace paceline::store
