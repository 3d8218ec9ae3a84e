#include "scheduler/record/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/observe/observe_test_support.h"

namespace paceline::scheduler {
namespace {

using Kind = Decision::Kind;
using testing::HasSubstr;

Instant at(std::int64_t ms) { return Instant(std::chrono::milliseconds(ms)); }

/// One of each kind, with numbers at the edges.
std::vector<Decision> all_kinds() {
  return {
      {.kind = Kind::joined, .rank = Rank{3}},
      {.kind = Kind::arrived, .rank = Rank{3}, .version = Version{0}, .at = at(5), .took = Duration(1'234'567)},
      {.kind = Kind::activated, .node = NodeId{1}, .version = Version{2}, .at = at(6)},
      {.kind = Kind::counted, .version = Version{2}, .at = at(6)},
      {.kind = Kind::sealed,
       .version = Version{2},
       .group = 1,
       .at = at(7),
       .took = Duration(-1),
       .stops = 1,
       .contributions = {{Rank{0}, Version{2}, 1},
                         {Rank{2}, Version{-1}, 0},
                         {Rank{5}, std::nullopt, 0},
                         {Rank{6}, Version{3}, 65536}}},
      {.kind = Kind::partial, .node = NodeId{63}, .version = Version{2}, .group = 2147483647, .at = at(7)},
      {.kind = Kind::executed, .version = Version{2}, .group = 1, .at = Instant::max()},
      {.kind = Kind::merged, .rank = Rank{0}, .at = Instant::min()},
      {.kind = Kind::gone, .rank = Rank{6}, .at = at(9)},
      {.kind = Kind::gone_elsewhere, .rank = Rank{7}, .at = at(9)},
      {.kind = Kind::returned, .rank = Rank{6}, .at = at(9)},
      {.kind = Kind::back_elsewhere, .rank = Rank{7}, .at = at(9)},
      {.kind = Kind::node_gone, .node = NodeId{1}, .at = at(9)},
      {.kind = Kind::remade,
       .version = Version{7},
       .contributions = {{Rank{0}, std::nullopt, 0}, {Rank{2}, std::nullopt, 0}}},
      {.kind = Kind::looked, .at = at(8)},
      {.kind = Kind::alive, .rank = Rank{7}, .at = at(9)},
      {.kind = Kind::exchanged, .rank = Rank{4}, .node = NodeId{1}, .group = 7},
      {.kind = Kind::averaged, .rank = Rank{4}},
      {.kind = Kind::stepped, .rank = Rank{4}},
      {.kind = Kind::batched, .rank = Rank{4}, .version = Version{3}, .contributions = {{Rank{4}, Version{3}, 8}}},
      {.kind = Kind::passed_over, .rank = Rank{4}, .version = Version{4}},
      {.kind = Kind::frozen},
      {.kind = Kind::ends, .version = Version{INT64_MAX}},
      {.kind = Kind::ends_apart,
       .version = Version{9},
       .contributions = {{Rank{0}, Version{9}, 0}, {Rank{1}, Version{2}, 0}}},
      {.kind = Kind::counted, .version = Version{INT64_MIN}, .at = at(9)},
  };
}

class RecordFileTest : public observe::FolderTest {
 protected:
  std::string path() const { return record_path(folder, NodeId{0}); }
  void write(const std::vector<Decision>& decisions, bool finish) const {
    auto writer = RecordWriter::create(path(), R"({"updates": 3})");
    ASSERT_TRUE(writer) << writer.error().text;
    for (const auto& decision : decisions) writer->add(decision);
    if (finish) writer->finish();
  }
  std::string bytes() const {
    std::ifstream file(path(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  void put(const std::string& bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }
};

TEST_F(RecordFileTest, WhatWasWrittenIsRead) {
  write(all_kinds(), true);
  const auto record = read_record(path());
  ASSERT_TRUE(record) << record.error().text;
  EXPECT_EQ(record->head, R"({"updates": 3})");
  EXPECT_EQ(record->decisions, all_kinds());
}

TEST_F(RecordFileTest, AUsualStepTakesAFewBytes) {
  std::vector<Decision> decisions;
  constexpr int kSteps = 1000, kWorkers = 8;
  for (int t = 0; t < kSteps; ++t) {
    const auto when = [&](int i) { return Instant(std::chrono::milliseconds(t) + Duration(12'345 * i)); };
    Decision sealed{.kind = Kind::sealed, .version = Version{t}, .at = when(9), .took = Duration(1'000'000 * t)};
    for (int i = 0; i < kWorkers; ++i) {
      decisions.push_back(
          {.kind = Kind::arrived, .rank = Rank{i}, .version = Version{t}, .at = when(i), .took = Duration(987'654)});
      sealed.contributions.push_back({Rank{i}, Version{t}, 1});
    }
    decisions.push_back(sealed);
    decisions.push_back({.kind = Kind::executed, .version = Version{t}, .at = when(10)});
  }
  write(decisions, true);
  EXPECT_LE(std::filesystem::file_size(path()), 16U * kSteps * kWorkers);
}

TEST_F(RecordFileTest, WithoutItsEndItIsHalfWritten) {
  write(all_kinds(), false);
  const auto record = read_record(path());
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().kind, ErrorKind::invalid);
  EXPECT_THAT(record.error().text, HasSubstr("half written"));
}

TEST_F(RecordFileTest, CutOffAnywhereItIsHalfWritten) {
  write(all_kinds(), true);
  const std::string whole = bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(whole.substr(0, size));
    const auto record = read_record(path());
    ASSERT_FALSE(record) << size << " of " << whole.size() << " bytes";
    EXPECT_THAT(record.error().text, HasSubstr("half written")) << size;
  }
}

// Its agent was killed: what it had written by then is read, and nothing else.
TEST_F(RecordFileTest, CutOffAnywhereItIsReadAsThatOfANodeThatWasKilled) {
  write(all_kinds(), true);
  const std::string whole = bytes();
  std::size_t most = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(whole.substr(0, size));
    const auto record = read_record_of_killed(path());
    if (!record) {
      EXPECT_EQ(most, 0U) << size << " bytes: the head was there before";
      continue;
    }
    EXPECT_FALSE(record->ended) << size;
    EXPECT_GE(record->decisions.size(), most) << size;
    most = record->decisions.size();
  }
  EXPECT_EQ(most, all_kinds().size());
  put(whole);
  const auto record = read_record_of_killed(path());
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->ended);
}

TEST_F(RecordFileTest, WhatIsFlushedIsThereBeforeItsWriterEnds) {
  auto writer = RecordWriter::create(path(), "{}");
  ASSERT_TRUE(writer);
  const auto decisions = all_kinds();
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    writer->add(decisions[i]);
    writer->flush();
    const auto record = read_record_of_killed(path());
    ASSERT_TRUE(record);
    EXPECT_EQ(record->decisions.size(), i + 1);
  }
  const auto size = std::filesystem::file_size(path());
  writer->flush();
  EXPECT_EQ(std::filesystem::file_size(path()), size) << "there is nothing new";
}

TEST_F(RecordFileTest, WithAnyByteChangedOrAddedItIsRefused) {
  write(all_kinds(), true);
  const std::string whole = bytes();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      put(damaged);
      EXPECT_FALSE(read_record(path())) << "byte " << i;
    }
  }
  put(whole + "x");
  EXPECT_FALSE(read_record(path()));
}

TEST_F(RecordFileTest, NoFileIsSaid) {
  const auto record = read_record(path());
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().kind, ErrorKind::not_found);
  EXPECT_THAT(record.error().text, HasSubstr(path()));
}

}  // namespace
}  // namespace paceline::scheduler
