#include "algorithms/cluster/training/kept_checkpoints.h"

#include <filesystem>
#include <set>

#include "runtime/observe/observe_test_support.h"

namespace paceline::cluster {
namespace {

namespace fs = std::filesystem;

class KeptCheckpointsTest : public observe::FolderTest {
 protected:
  /// As a worker writes it: a new file in the place of the old one.
  void write(const std::string& text) const {
    std::ofstream(run.checkpoint() + ".tmp") << text;
    fs::rename(run.checkpoint() + ".tmp", run.checkpoint());
  }
  std::set<std::string> kept() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(run.checkpoints())) names.insert(entry.path().filename());
    return names;
  }

  observe::RunDirectory run = observe::RunDirectory::at(folder);
};

TEST_F(KeptCheckpointsTest, TheBestStaysWhenTheNextIsWritten) {
  KeptCheckpoints sut(folder, 1);
  write("one");
  ASSERT_TRUE(sut.keep(10, true));
  write("two");
  ASSERT_TRUE(sut.keep(20, false));
  EXPECT_EQ(text_of(run.best_checkpoint()), "one");
  EXPECT_EQ(text_of(run.checkpoint()), "two");
  write("three");
  ASSERT_TRUE(sut.keep(30, true));
  EXPECT_EQ(text_of(run.best_checkpoint()), "three");
  EXPECT_EQ(files(), 2u) << "and nothing else";
}

TEST_F(KeptCheckpointsTest, SoManyOfTheLastAreKept) {
  KeptCheckpoints sut(folder, 2);
  for (const int update : {10, 20, 30}) {
    write(std::to_string(update));
    ASSERT_TRUE(sut.keep(update, false));
  }
  EXPECT_EQ(kept(), (std::set<std::string>{"update-20.safetensors", "update-30.safetensors"}));
  EXPECT_EQ(text_of(run.checkpoints() + "/update-20.safetensors"), "20");
  EXPECT_FALSE(fs::exists(run.best_checkpoint()));
}

TEST_F(KeptCheckpointsTest, AFreshOneTakesThePlaceOfAnOlderOne) {
  KeptCheckpoints sut(folder, 2);
  const auto write_fresh = [&](Rank writer, const std::string& text) {
    std::ofstream(run.fresh_checkpoint(writer)) << text;
  };
  write("evaluated at 10");
  ASSERT_TRUE(sut.keep(10, true));
  write_fresh(Rank{1}, "saved at 15");
  EXPECT_TRUE(sut.take_fresh(Rank{1}, 15).value());
  EXPECT_EQ(text_of(run.checkpoint()), "saved at 15");
  EXPECT_EQ(text_of(run.best_checkpoint()), "evaluated at 10");
  EXPECT_EQ(kept(), (std::set<std::string>{"update-10.safetensors", "update-15.safetensors"}));
  write("evaluated at 20");
  ASSERT_TRUE(sut.keep(20, false));
  write_fresh(Rank{0}, "saved at 18");
  EXPECT_FALSE(sut.take_fresh(Rank{0}, 18).value()) << "an evaluation was faster";
  EXPECT_EQ(text_of(run.checkpoint()), "evaluated at 20");
  EXPECT_FALSE(fs::exists(run.fresh_checkpoint(Rank{0})));
  EXPECT_FALSE(sut.take_fresh(Rank{0}, 25)) << "there is none";
  EXPECT_EQ(text_of(run.checkpoint()), "evaluated at 20");
}

TEST_F(KeptCheckpointsTest, OfTwoWritersEachOnesIsTaken) {
  KeptCheckpoints sut(folder, 1);
  std::ofstream(run.fresh_checkpoint(Rank{0})) << "of 0 at 15";
  std::ofstream(run.fresh_checkpoint(Rank{1})) << "of 1 at 16";
  EXPECT_TRUE(sut.take_fresh(Rank{0}, 15).value());
  EXPECT_EQ(text_of(run.checkpoint()), "of 0 at 15");
  EXPECT_TRUE(sut.take_fresh(Rank{1}, 16).value());
  EXPECT_EQ(text_of(run.checkpoint()), "of 1 at 16");
}

TEST_F(KeptCheckpointsTest, WithoutACheckpointThereIsNothingToKeep) {
  EXPECT_TRUE(KeptCheckpoints(folder, 3).keep(10, true));
  EXPECT_TRUE(KeptCheckpoints("", 3).keep(10, true));
  EXPECT_EQ(files(), 0u);
}

TEST_F(KeptCheckpointsTest, WhatCannotBeKeptIsSaidByName) {
  write("one");
  std::ofstream(run.checkpoints()) << "a file in the folder's place";
  const auto kept = KeptCheckpoints(folder, 2).keep(10, false);
  ASSERT_FALSE(kept);
  EXPECT_NE(kept.error().text.find(run.checkpoints()), std::string::npos) << kept.error().text;
}

}  // namespace
}  // namespace paceline::cluster
