#include "algorithms/cluster/job_directory.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace paceline::cluster {
namespace {

using namespace std::chrono_literals;

const Instant kBegun{1s};

/// "open 1 on 0", "close 1", "lost 1 on 1: why"; in order.
std::string words(const JobDirectory::Actions& actions) {
  std::string text;
  const auto say = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  for (const auto& action : actions) {
    if (const auto* open = std::get_if<JobDirectory::Open>(&action))
      say("open " + to_string(open->job) + " on " + to_string(open->node));
    if (const auto* close = std::get_if<JobDirectory::Close>(&action)) say("close " + to_string(close->job));
    if (const auto* go_on = std::get_if<JobDirectory::GoOn>(&action))
      say("go on " + to_string(go_on->job) + " on " + to_string(go_on->node) + " without " + to_string(go_on->lost) +
          (go_on->cause.empty() ? "" : ": " + go_on->cause));
    if (const auto* driven = std::get_if<JobDirectory::Driven>(&action)) {
      const auto heard = driven->heard.find(driven->node);
      say("driven " + to_string(driven->job) + " on " + to_string(driven->node) + " from " +
          std::to_string(heard == driven->heard.end() ? 0 : heard->second));
    }
    if (const auto* close = std::get_if<JobDirectory::CloseOn>(&action))
      say("close " + to_string(close->job) + " on " + to_string(close->node));
    if (const auto* lost = std::get_if<JobDirectory::Lost>(&action))
      say("lost " + to_string(lost->job) + " on " + to_string(lost->node) +
          (lost->cause.empty() ? "" : ": " + lost->cause));
  }
  return text;
}

/// Of two workers, on nodes 0 and 1, for the driver at node 0.
JobEntry entry_of(const std::string& driver = "driver/1") {
  JobEntry job;
  job.node_of = {NodeId{0}, NodeId{1}};
  job.driver.peer = driver;
  return job;
}

JobEntry running(std::uint64_t zero, std::uint64_t one) {
  JobEntry job = entry_of();
  job.incarnation_of = {{NodeId{0}, zero}, {NodeId{1}, one}};
  return job;
}

JobEntry for_driver_at_one(JobEntry job) {
  job.driver.node = NodeId{1};
  return job;
}

/// Nobody of the job's is left without node 0.
JobEntry all_at_the_first(JobEntry job) {
  job.node_of = {NodeId{0}, NodeId{0}};
  job.incarnation_of.erase(NodeId{1});
  return for_driver_at_one(std::move(job));
}

TEST(JobDirectoryTest, AJobIsOpenedOnItsNodesAndClosedOnAll) {
  JobDirectory sut(kBegun);
  EXPECT_EQ(words(sut.on_registered(NodeId{0}, 7, JobId{0})), "");
  EXPECT_EQ(words(sut.on_registered(NodeId{1}, 8, JobId{0})), "");
  JobDirectory::Actions actions;
  EXPECT_EQ(sut.add(entry_of(), actions), JobId{1});
  EXPECT_EQ(words(actions), "open 1 on 0, open 1 on 1");
  EXPECT_EQ(words(sut.close(JobId{1})), "close 1");
  EXPECT_EQ(words(sut.close(JobId{1})), "") << "it may be asked twice";
}

TEST(JobDirectoryTest, AHeadThatIsStartedAnewTakesOnWhatRunsAndGivesNoNumberTwice) {
  JobDirectory sut(kBegun);
  for (const int node : {0, 1}) {
    sut.on_runs(NodeId{node}, JobId{5}, running(7, 8));
    EXPECT_EQ(words(sut.on_registered(NodeId{node}, node == 0 ? 7 : 8, JobId{9})), "");
  }
  EXPECT_NE(sut.find(JobId{5}), nullptr);
  JobDirectory::Actions actions;
  EXPECT_EQ(sut.add(entry_of(), actions), JobId{10}) << "9 ran once";
}

TEST(JobDirectoryTest, AJobThatWasJustBeingOpenedIsOpenedOnTheOtherNodesToo) {
  JobDirectory sut(kBegun);
  sut.on_runs(NodeId{0}, JobId{5}, running(7, 8));
  EXPECT_EQ(words(sut.on_registered(NodeId{0}, 7, JobId{5})), "");
  EXPECT_EQ(words(sut.on_registered(NodeId{1}, 8, JobId{4})), "open 5 on 1");
  EXPECT_EQ(words(sut.on_registered(NodeId{1}, 8, JobId{5})), "") << "once";
}

TEST(JobDirectoryTest, AJobThatWasJustBeingClosedIsClosedOnTheOtherNodesToo) {
  JobDirectory sut(kBegun);
  EXPECT_EQ(words(sut.on_registered(NodeId{1}, 8, JobId{5})), "");
  sut.on_runs(NodeId{0}, JobId{5}, running(7, 8));
  EXPECT_EQ(words(sut.on_registered(NodeId{0}, 7, JobId{5})), "close 5");
  EXPECT_EQ(sut.find(JobId{5}), nullptr);
}

/// Messages of several agents come in between.
TEST(JobDirectoryTest, AnAgentThatSaidWhatItRunsBeforeThatWasClosedHearsOfItWhenItIsThere) {
  JobDirectory sut(kBegun);
  sut.on_runs(NodeId{0}, JobId{5}, running(7, 8));
  (void)sut.on_registered(NodeId{0}, 7, JobId{5});
  sut.on_runs(NodeId{1}, JobId{5}, running(7, 8));
  EXPECT_EQ(words(sut.close(JobId{5})), "close 5");
  EXPECT_EQ(words(sut.on_registered(NodeId{1}, 8, JobId{5})), "close 5 on 1");
  EXPECT_EQ(words(sut.on_registered(NodeId{1}, 8, JobId{5})), "") << "once";
}

const Instant kLater = kBegun + 1h;

/// On nodes 0 and 1; the driver's agent, of node 0 or of node 2, was started seven times.
JobDirectory with_a_driver_on(NodeId node) {
  JobDirectory sut(kBegun);
  for (const int each : {0, 1, 2}) (void)sut.on_registered(NodeId{each}, 7, JobId{0});
  auto job = entry_of();
  job.driver.node = node;
  job.driver.incarnation = 7;
  JobDirectory::Actions ignored;
  (void)sut.add(std::move(job), ignored);
  return sut;
}

TEST(JobDirectoryTest, AJobWhoseDriversAgentIsGoneIsClosedUnlessTheDriverComesBack) {
  for (const NodeId node : {NodeId{0}, NodeId{2}}) {
    for (const bool is_started_anew : {false, true}) {
      JobDirectory sut = with_a_driver_on(node);
      EXPECT_FALSE(sut.next_deadline());
      EXPECT_EQ(words(sut.on_gone(node, "killed")), "");
      EXPECT_LE(*sut.next_deadline(), kLater);
      EXPECT_EQ(words(sut.tick(kLater)), "");
      if (is_started_anew) {
        EXPECT_EQ(words(sut.on_registered(node, 9, JobId{0})),
                  node == NodeId{0} ? "go on 1 on 1 without 0: killed" : "");
      }
      ASSERT_EQ(sut.next_deadline(), kLater + JobDirectory::kDriverPatience);
      EXPECT_EQ(words(sut.tick(*sut.next_deadline() - 1ns)), "");
      EXPECT_EQ(words(sut.tick(*sut.next_deadline())), "close 1");
      EXPECT_FALSE(sut.next_deadline());
    }
  }
}

/// It may come back as it was; so may one of which a head that was started anew has not heard yet.
TEST(JobDirectoryTest, AJobWhoseDriversAgentIsSilentWaitsForItForLonger) {
  JobDirectory sut = with_a_driver_on(NodeId{0});
  EXPECT_EQ(words(sut.on_cut_off(NodeId{1}, NodeId{0}, JobId{1}, "silent", kLater)), "");
  EXPECT_EQ(words(sut.on_gone(NodeId{0}, "silent", true)), "");
  EXPECT_EQ(words(sut.tick(kLater)), "");
  const Instant until = kLater + JobDirectory::kSilentPatience;
  ASSERT_EQ(sut.next_deadline(), until);
  EXPECT_EQ(words(sut.tick(until - 1ns)), "");
  JobDirectory gone = sut, moved = sut;
  (void)sut.on_registered(NodeId{0}, 7, JobId{1});
  EXPECT_EQ(words(sut.tick(until)), "") << "it is back";
  EXPECT_FALSE(sut.next_deadline());
  EXPECT_EQ(words(gone.tick(until)), "");
  EXPECT_EQ(words(gone.tick(until + JobDirectory::kDriverPatience)), "close 1");
  EXPECT_EQ(words(*moved.move_driver(JobId{1}, "driver/1", NodeId{2}, {}, until - 1ns)), "driven 1 on 1 from 0");
  EXPECT_EQ(words(moved.tick(until)), "go on 1 on 1 without 0: silent") << "it has turned to another one";
}

TEST(JobDirectoryTest, AHeadThatIsStartedAnewWaitsForADriversAgentAsForASilentOne) {
  JobDirectory sut(kBegun);
  JobEntry job = running(7, 8);
  job.driver.incarnation = 7;
  sut.on_runs(NodeId{1}, JobId{1}, job);
  (void)sut.on_registered(NodeId{1}, 8, JobId{1});
  EXPECT_EQ(words(sut.tick(kLater)), "");
  EXPECT_EQ(sut.next_deadline(), kLater + JobDirectory::kSilentPatience);
}

TEST(JobDirectoryTest, ADriverComesBackThroughAnotherAgent) {
  JobDirectory sut = with_a_driver_on(NodeId{0});
  (void)sut.on_gone(NodeId{0}, "killed");
  EXPECT_EQ(words(sut.on_cut_off(NodeId{1}, NodeId{0}, JobId{1}, "killed", kLater)), "go on 1 on 1 without 0: killed")
      << "it is a node as others are then";
  const auto moved = sut.move_driver(JobId{1}, "driver/1", NodeId{2}, {{NodeId{1}, 5}}, kLater);
  ASSERT_TRUE(moved);
  EXPECT_EQ(words(*moved), "driven 1 on 1 from 5, go on 1 on 1 without 0: killed");
  EXPECT_EQ(sut.find(JobId{1})->driver, (JobDriver{NodeId{2}, "driver/1", 7, 0, 1}));
  EXPECT_EQ(words(sut.tick(kLater)), "");
  EXPECT_FALSE(sut.next_deadline());
  EXPECT_EQ(words(sut.on_driver_gone(NodeId{0}, "driver/1")), "") << "it has left that one";
  EXPECT_EQ(words(sut.on_driver_gone(NodeId{2}, "driver/1")), "close 1");
}

/// Its workers there are lost all the same.
TEST(JobDirectoryTest, ADriverComesBackThroughTheAgentThatIsStartedInPlaceOfItsOwn) {
  JobDirectory sut = with_a_driver_on(NodeId{0});
  (void)sut.on_gone(NodeId{0}, "killed");
  EXPECT_EQ(words(sut.on_registered(NodeId{0}, 9, JobId{0})), "go on 1 on 1 without 0: killed");
  EXPECT_EQ(words(*sut.move_driver(JobId{1}, "driver/1", NodeId{0}, {}, kLater)),
            "driven 1 on 1 from 0, go on 1 on 1 without 0: killed");
  (void)sut.on_gone(NodeId{1}, "silent", true);
  EXPECT_EQ(words(sut.tick(kLater)), "") << "the last one may come back";
  JobDirectory anew(kBegun);
  JobEntry job = running(7, 8);
  job.driver = {NodeId{0}, "driver/1", 9, 0, 1};
  anew.on_runs(NodeId{1}, JobId{1}, job);
  (void)anew.on_registered(NodeId{0}, 9, JobId{0});
  EXPECT_EQ(words(anew.on_registered(NodeId{1}, 8, JobId{1})), "go on 1 on 1 without 0, driven 1 on 1 from 0");
}

TEST(JobDirectoryTest, OnlyTheDriverOfAJobComesBackToIt) {
  JobDirectory sut = with_a_driver_on(NodeId{0});
  EXPECT_FALSE(sut.move_driver(JobId{1}, "driver/2", NodeId{2}, {}, kLater));
  EXPECT_FALSE(sut.move_driver(JobId{2}, "driver/1", NodeId{2}, {}, kLater));
  EXPECT_FALSE(sut.move_driver(JobId{1}, "driver/1", NodeId{3}, {}, kLater)) << "no such node is here";
  EXPECT_EQ(sut.find(JobId{1})->driver.node, NodeId{0});
}

TEST(JobDirectoryTest, ANodeThatWasAwayHearsThatTheDriverHasAnotherAgent) {
  JobDirectory sut = with_a_driver_on(NodeId{2});
  (void)sut.on_gone(NodeId{1}, "silent");
  EXPECT_EQ(words(*sut.move_driver(JobId{1}, "driver/1", NodeId{0}, {}, kLater)), "driven 1 on 0 from 0");
  sut.on_runs(NodeId{1}, JobId{1}, *sut.find(JobId{1}));
  EXPECT_EQ(words(sut.on_registered(NodeId{1}, 7, JobId{1})), "driven 1 on 1 from 0");
}

/// The head before it had told one of them.
TEST(JobDirectoryTest, AHeadThatIsStartedAnewBelievesWhoKnowsOfTheDriversLastMove) {
  for (const bool knows_first : {false, true}) {
    JobDirectory sut(kBegun);
    JobEntry before = running(7, 7);
    before.driver.incarnation = 7;
    JobEntry moved = before;
    moved.driver = {NodeId{2}, "driver/1", 7, 0, 1};
    (void)sut.on_registered(NodeId{2}, 7, JobId{0});
    for (const int node : {0, 1}) {
      sut.on_runs(NodeId{node}, JobId{1}, (node == 0) == knows_first ? moved : before);
      (void)sut.on_registered(NodeId{node}, 7, JobId{1});
    }
    EXPECT_EQ(sut.find(JobId{1})->driver, moved.driver);
  }
}

/// It may turn out to be gone, and is a node as others are then.
TEST(JobDirectoryTest, ThatTheDriversNodeIsCutOffCountsWhenItIsGone) {
  JobDirectory sut = with_a_driver_on(NodeId{0});
  EXPECT_EQ(words(sut.on_cut_off(NodeId{1}, NodeId{0}, JobId{1}, "why", kLater)), "");
  EXPECT_FALSE(sut.next_deadline());
  EXPECT_EQ(words(sut.on_gone(NodeId{0}, "killed")), "");
  EXPECT_EQ(words(sut.tick(kLater)), "go on 1 on 1 without 0: why");
}

TEST(JobDirectoryTest, WorkersOfAnAgentThatIsGoneOrAnotherOneAreLostOnce) {
  JobDirectory sut(kBegun);
  (void)sut.on_registered(NodeId{0}, 7, JobId{0});
  (void)sut.on_registered(NodeId{1}, 8, JobId{0});
  JobDirectory::Actions ignored;
  sut.add(all_at_the_first(entry_of()), ignored);
  EXPECT_EQ(words(sut.on_gone(NodeId{0}, "frozen")), "lost 1 on 0: frozen");
  EXPECT_EQ(words(sut.on_registered(NodeId{0}, 9, JobId{0})), "") << "started anew: it opens none of them";
  EXPECT_EQ(words(sut.tick(kBegun + 1h)), "");

  JobDirectory anew(kBegun);
  anew.on_runs(NodeId{1}, JobId{1}, all_at_the_first(running(7, 8)));
  (void)anew.on_registered(NodeId{1}, 8, JobId{1});
  EXPECT_EQ(words(anew.on_registered(NodeId{0}, 9, JobId{0})), "lost 1 on 0") << "while there was no head";
}

/// The driver's, which is elsewhere, hears where nobody is left who could.
TEST(JobDirectoryTest, WhereAllWorkersAreLostTheDriverHearsOfIt) {
  JobDirectory sut(kBegun);
  for (const int node : {0, 1, 2}) (void)sut.on_registered(NodeId{node}, 7, JobId{0});
  JobDirectory::Actions ignored;
  JobEntry elsewhere = entry_of();
  elsewhere.driver.node = NodeId{2};
  sut.add(elsewhere, ignored);
  EXPECT_EQ(words(sut.on_gone(NodeId{0}, "killed")), "");
  EXPECT_EQ(words(sut.on_gone(NodeId{1}, "too")), "lost 1 on 1: too");
}

JobDirectory with_a_job() {
  JobDirectory sut(kBegun);
  (void)sut.on_registered(NodeId{0}, 7, JobId{0});
  (void)sut.on_registered(NodeId{1}, 8, JobId{0});
  JobDirectory::Actions ignored;
  sut.add(entry_of(), ignored);
  return sut;
}

TEST(JobDirectoryTest, AJobGoesOnWithoutItsSecondNode) {
  JobDirectory sut = with_a_job();
  EXPECT_EQ(words(sut.on_gone(NodeId{1}, "frozen")), "") << "the first one says whether it can be reached";
  EXPECT_EQ(words(sut.on_cut_off(NodeId{0}, NodeId{1}, JobId{1}, "silent", kBegun)), "go on 1 on 0 without 1: silent");
  EXPECT_EQ(words(sut.on_cut_off(NodeId{0}, NodeId{1}, JobId{1}, "again", kBegun)), "") << "once";
  EXPECT_EQ(words(sut.on_gone(NodeId{1}, "again")), "");
  EXPECT_EQ(words(sut.tick(kBegun + 1h)), "");
  EXPECT_FALSE(sut.next_deadline());
  sut.on_runs(NodeId{1}, JobId{1}, running(7, 8));
  EXPECT_EQ(words(sut.on_registered(NodeId{1}, 8, JobId{1})), "go on 1 on 0 without 1: again, close 1 on 1")
      << "it was frozen and goes on";
  JobDirectory::Actions actions;
  sut.add(entry_of(), actions);
  EXPECT_EQ(words(actions), "open 2 on 0, open 2 on 1") << "of others it is a member as before";
}

TEST(JobDirectoryTest, WhereAllStandStillForAWhileNobodyIsLost) {
  JobDirectory sut = with_a_job();
  for (const int node : {1, 0}) EXPECT_EQ(words(sut.on_gone(NodeId{node}, "silent")), "");
  for (const int node : {0, 1}) {
    sut.on_runs(NodeId{node}, JobId{1}, running(7, 8));
    EXPECT_EQ(words(sut.on_registered(NodeId{node}, node == 0 ? 7 : 8, JobId{1})), "");
    EXPECT_EQ(words(sut.tick(kBegun + 1h)), "");
  }
}

/// Nor does the job wait for the first one's word, which may have reached it before the job was opened.
TEST(JobDirectoryTest, OneThatIsStartedAnewDoesNotOpenIt) {
  JobDirectory sut = with_a_job();
  (void)sut.on_gone(NodeId{1}, "");
  EXPECT_EQ(words(sut.on_registered(NodeId{1}, 9, JobId{0})), "go on 1 on 0 without 1");
  EXPECT_EQ(words(sut.on_cut_off(NodeId{0}, NodeId{1}, JobId{1}, "", kBegun)), "");
  EXPECT_EQ(words(sut.on_registered(NodeId{1}, 9, JobId{0})), "go on 1 on 0 without 1");
}

JobDirectory with_a_job_on_three() {
  JobDirectory sut(kBegun);
  for (const int node : {0, 1, 2}) (void)sut.on_registered(NodeId{node}, 7, JobId{0});
  JobDirectory::Actions ignored;
  JobEntry of_three = entry_of();
  of_three.node_of.push_back(NodeId{2});
  sut.add(of_three, ignored);
  return sut;
}

TEST(JobDirectoryTest, NobodyGoesOnWithoutTheDriversNode) {
  JobDirectory sut = with_a_job();
  EXPECT_EQ(words(sut.on_cut_off(NodeId{1}, NodeId{0}, JobId{1}, "", kBegun)), "");
  JobDirectory three = with_a_job_on_three();
  JobDirectory::Actions ignored;
  JobEntry elsewhere = entry_of();
  elsewhere.node_of.push_back(NodeId{2});
  elsewhere.driver.node = NodeId{2};
  three.add(elsewhere, ignored);
  EXPECT_EQ(words(three.on_cut_off(NodeId{0}, NodeId{2}, JobId{2}, "", kBegun)), "");
  EXPECT_EQ(words(three.on_cut_off(NodeId{1}, NodeId{2}, JobId{2}, "", kBegun)), "") << "the driver's says so itself";
  EXPECT_EQ(words(three.on_cut_off(NodeId{2}, NodeId{1}, JobId{2}, "", kBegun)),
            "go on 2 on 0 without 1, go on 2 on 2 without 1, close 2 on 1");
}

TEST(JobDirectoryTest, AllThatAreLeftHearWhoIsLost) {
  JobDirectory sut = with_a_job_on_three();
  EXPECT_EQ(words(sut.on_cut_off(NodeId{0}, NodeId{1}, JobId{1}, "why", kBegun)),
            "go on 1 on 0 without 1: why, go on 1 on 2 without 1: why, close 1 on 1");
  EXPECT_EQ(words(sut.on_cut_off(NodeId{2}, NodeId{1}, JobId{1}, "why", kBegun)), "") << "it is";
  EXPECT_EQ(words(sut.on_gone(NodeId{2}, "frozen")), "");
  EXPECT_EQ(words(sut.on_cut_off(NodeId{0}, NodeId{2}, JobId{1}, "too", kBegun)),
            "go on 1 on 0 without 1: why, go on 1 on 0 without 2: too");
}

/// Which of them the first one cannot reach either, if so, is known soon.
TEST(JobDirectoryTest, OfTwoThatDoNotLeadTheLaterIsLostUnlessTheFirstSaysOtherwise) {
  const Instant until = kBegun + JobDirectory::kLeaderPatience;
  for (const bool later_one_says_so : {false, true}) {
    JobDirectory sut = with_a_job_on_three();
    const NodeId from{later_one_says_so ? 2 : 1}, node{later_one_says_so ? 1 : 2};
    EXPECT_EQ(words(sut.on_cut_off(from, node, JobId{1}, "why", kBegun)), "");
    ASSERT_EQ(sut.next_deadline(), until);
    EXPECT_EQ(words(sut.tick(until - 1ns)), "");
    EXPECT_EQ(words(sut.tick(until)), "go on 1 on 0 without 2: why, go on 1 on 1 without 2: why, close 1 on 2");
    EXPECT_FALSE(sut.next_deadline());
  }
  JobDirectory sut = with_a_job_on_three();
  EXPECT_EQ(words(sut.on_cut_off(NodeId{2}, NodeId{1}, JobId{1}, "why", kBegun)), "");
  EXPECT_EQ(words(sut.on_cut_off(NodeId{0}, NodeId{1}, JobId{1}, "why", kBegun)),
            "go on 1 on 0 without 1: why, go on 1 on 2 without 1: why, close 1 on 1");
  EXPECT_EQ(words(sut.tick(until)), "");
  EXPECT_FALSE(sut.next_deadline());
}

TEST(JobDirectoryTest, OfTwoTheOneThatIsNotHereIsLostAtOnce) {
  const char* const on = "go on 1 on 0 without 1: why, go on 1 on 2 without 1: why";
  JobDirectory sut = with_a_job_on_three();
  (void)sut.on_gone(NodeId{1}, "frozen");
  EXPECT_EQ(words(sut.on_cut_off(NodeId{2}, NodeId{1}, JobId{1}, "why", kBegun)), on);
  EXPECT_EQ(words(sut.close(JobId{1})), "close 1");
  JobDirectory later = with_a_job_on_three();
  EXPECT_EQ(words(later.on_cut_off(NodeId{2}, NodeId{1}, JobId{1}, "why", kBegun)), "");
  EXPECT_EQ(words(later.on_gone(NodeId{1}, "frozen")), "");
  EXPECT_LE(*later.next_deadline(), kBegun) << "nobody's word is needed any more";
  EXPECT_EQ(words(later.tick(kBegun)), on);
}

/// The driver is at none of its nodes.
JobDirectory led_from_elsewhere() {
  JobDirectory sut(kBegun);
  for (const int node : {0, 1, 2, 3}) (void)sut.on_registered(NodeId{node}, 7, JobId{0});
  JobDirectory::Actions ignored;
  JobEntry of_three = entry_of();
  of_three.node_of.push_back(NodeId{2});
  of_three.driver.node = NodeId{3};
  sut.add(of_three, ignored);
  return sut;
}

TEST(JobDirectoryTest, TheFirstNodeIsLostAsOthersAreAndTheNextOneLeads) {
  JobDirectory sut = led_from_elsewhere();
  (void)sut.on_gone(NodeId{0}, "killed");
  EXPECT_EQ(words(sut.on_cut_off(NodeId{2}, NodeId{0}, JobId{1}, "killed", kBegun)),
            "go on 1 on 1 without 0: killed, go on 1 on 2 without 0: killed");
  EXPECT_EQ(words(sut.on_cut_off(NodeId{1}, NodeId{2}, JobId{1}, "why", kBegun)),
            "go on 1 on 1 without 0: killed, go on 1 on 1 without 2: why, close 1 on 2")
      << "its word counts";
  EXPECT_EQ(words(sut.on_cut_off(NodeId{3}, NodeId{1}, JobId{1}, "why", kBegun)), "") << "no member";
}

/// Whom the head sees.
TEST(JobDirectoryTest, TheFirstNodesWordCountsAsLongAsItIsHere) {
  JobDirectory sut = led_from_elsewhere();
  EXPECT_EQ(words(sut.on_cut_off(NodeId{2}, NodeId{0}, JobId{1}, "why", kBegun)), "");
  EXPECT_EQ(words(sut.tick(kBegun + JobDirectory::kLeaderPatience)),
            "go on 1 on 0 without 2: why, go on 1 on 1 without 2: why, close 1 on 2");
}

TEST(JobDirectoryTest, AHeadThatIsStartedAnewWaitsUntilItCanKnowWhoIsHere) {
  JobDirectory sut(kBegun);
  JobEntry job = running(7, 7);
  job.node_of.push_back(NodeId{2});
  job.incarnation_of[NodeId{2}] = 7;
  job.driver.node = NodeId{3};
  for (const int node : {3, 2, 1}) {
    if (node != 3) sut.on_runs(NodeId{node}, JobId{1}, job);
    (void)sut.on_registered(NodeId{node}, 7, JobId{1});
  }
  EXPECT_EQ(words(sut.on_cut_off(NodeId{2}, NodeId{0}, JobId{1}, "why", kBegun)), "");
  const Instant until = kBegun + JobDirectory::kRegisterPatience;
  ASSERT_EQ(sut.next_deadline(), until);
  EXPECT_EQ(words(sut.tick(until - 1ns)), "");
  EXPECT_EQ(words(sut.tick(until)), "go on 1 on 1 without 0: why, go on 1 on 2 without 0: why");
}

TEST(JobDirectoryTest, OfTwoThatCannotReachEachOtherTheFirstGoesOn) {
  JobDirectory sut = with_a_job();
  EXPECT_EQ(words(sut.on_cut_off(NodeId{1}, NodeId{0}, JobId{1}, "why", kBegun)), "") << "the other one says it, too";
  EXPECT_EQ(words(sut.on_cut_off(NodeId{0}, NodeId{1}, JobId{1}, "why", kBegun)),
            "go on 1 on 0 without 1: why, close 1 on 1");
  EXPECT_EQ(words(sut.close(JobId{1})), "close 1");
  EXPECT_EQ(words(sut.on_cut_off(NodeId{0}, NodeId{1}, JobId{1}, "why", kBegun)), "") << "of no job any more";
  JobDirectory other(kBegun);
  (void)other.on_registered(NodeId{0}, 7, JobId{0});
  (void)other.on_registered(NodeId{1}, 8, JobId{0});
  JobDirectory::Actions ignored;
  other.add(for_driver_at_one(entry_of()), ignored);
  EXPECT_EQ(words(other.on_cut_off(NodeId{0}, NodeId{5}, JobId{1}, "", kBegun)), "") << "no member";
  EXPECT_EQ(words(other.on_cut_off(NodeId{0}, NodeId{1}, JobId{1}, "why", kBegun)), "") << "the driver's";
  EXPECT_EQ(words(other.on_cut_off(NodeId{1}, NodeId{0}, JobId{1}, "why", kBegun)),
            "go on 1 on 1 without 0: why, close 1 on 0");
}

TEST(JobDirectoryTest, AHeadThatIsStartedAnewHearsWhoGoesOnWithoutWhom) {
  for (const bool lost_one_first : {false, true}) {
    JobDirectory sut(kBegun);
    JobEntry alone = running(7, 8);
    alone.without.insert(NodeId{1});
    const auto survivor = [&] {
      sut.on_runs(NodeId{0}, JobId{1}, alone);
      return words(sut.on_registered(NodeId{0}, 7, JobId{1}));
    };
    const auto lost_one = [&] {
      sut.on_runs(NodeId{1}, JobId{1}, running(7, 8));
      return words(sut.on_registered(NodeId{1}, 8, JobId{1}));
    };
    if (lost_one_first) {
      EXPECT_EQ(lost_one(), "");
      EXPECT_EQ(survivor(), "go on 1 on 0 without 1, close 1 on 1");
    } else {
      EXPECT_EQ(survivor(), "go on 1 on 0 without 1");
      EXPECT_EQ(lost_one(), "go on 1 on 0 without 1, close 1 on 1");
    }
  }
}

TEST(JobDirectoryTest, ADriverThatWasAwayHearsLaterWhyANodeWasLost) {
  JobDirectory sut(kBegun);
  const JobEntry job = all_at_the_first(running(7, 8));
  sut.on_runs(NodeId{1}, JobId{1}, job);
  (void)sut.on_registered(NodeId{1}, 8, JobId{1});
  (void)sut.on_registered(NodeId{0}, 7, JobId{0});
  EXPECT_EQ(words(sut.on_gone(NodeId{1}, "cut off")), "");
  EXPECT_EQ(words(sut.on_gone(NodeId{0}, "frozen")), "");
  sut.on_runs(NodeId{1}, JobId{1}, job);
  EXPECT_EQ(words(sut.on_registered(NodeId{1}, 8, JobId{1})), "");
  EXPECT_EQ(words(sut.tick(kBegun + 1h)), "lost 1 on 0: frozen");
}

TEST(JobDirectoryTest, ANodeWithAllWorkersThatNeverRegistersIsLostInTheEnd) {
  JobDirectory sut(kBegun);
  sut.on_runs(NodeId{1}, JobId{1}, all_at_the_first(running(7, 8)));
  (void)sut.on_registered(NodeId{1}, 8, JobId{1});
  ASSERT_EQ(sut.next_deadline(), kBegun + JobDirectory::kRegisterPatience);
  EXPECT_EQ(words(sut.tick(*sut.next_deadline() - 1ns)), "");
  EXPECT_EQ(words(sut.tick(*sut.next_deadline())), "lost 1 on 0");
  EXPECT_FALSE(sut.next_deadline());
}

TEST(JobDirectoryTest, ADriversJobsEndWithIt) {
  JobDirectory sut(kBegun);
  (void)sut.on_registered(NodeId{0}, 7, JobId{0});
  (void)sut.on_registered(NodeId{1}, 8, JobId{0});
  JobDirectory::Actions ignored;
  for (const char* driver : {"driver/1", "driver/2", "driver/1"}) sut.add(entry_of(driver), ignored);
  EXPECT_EQ(words(sut.on_driver_gone(NodeId{1}, "driver/1")), "") << "of the same name, elsewhere";
  EXPECT_EQ(words(sut.on_driver_gone(NodeId{0}, "driver/1")), "close 1, close 3");
  EXPECT_EQ(sut.jobs().size(), 1U);
}

/// Three agents; a head that ends at any moment, with any part of what it said under way. In the end all agents run the
/// same jobs, those whose drivers have not closed them.
TEST(JobDirectoryTest, WhateverAHeadLeavesHalfDoneIsCarriedThrough) {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random); };
    struct Agent {
      std::map<JobId, JobEntry> runs;
      JobId newest{0};
    };
    std::map<NodeId, Agent> agents{{NodeId{0}, {}}, {NodeId{1}, {}}, {NodeId{2}, {}}};
    std::set<JobId> open, closing;
    auto head = std::make_unique<JobDirectory>(kBegun);
    const auto carry_out = [&](const JobDirectory::Actions& actions, bool all) {
      for (const auto& action : actions) {
        if (const auto* o = std::get_if<JobDirectory::Open>(&action); o && (all || below(2) == 0)) {
          Agent& agent = agents.at(o->node);
          EXPECT_GT(o->job, agent.newest) << "seed " << seed;
          agent.newest = o->job;
          agent.runs[o->job] = *head->find(o->job);
        }
        if (const auto* c = std::get_if<JobDirectory::Close>(&action))
          for (auto& [node, agent] : agents)
            if (all || below(2) == 0) agent.runs.erase(c->job);
        EXPECT_FALSE(std::holds_alternative<JobDirectory::Lost>(action)) << "seed " << seed;
      }
    };
    const auto restart = [&] {
      head = std::make_unique<JobDirectory>(kBegun);
      for (auto& [node, agent] : agents) {
        for (const auto& [job, its] : agent.runs) head->on_runs(node, job, its);
        carry_out(head->on_registered(node, 100 + static_cast<unsigned>(node.value), agent.newest), true);
      }
      for (const JobId job : closing) carry_out(head->close(job), true);  // Asked again.
      closing.clear();
    };
    restart();
    for (int step = 0; step < 40; ++step) {
      const bool dies = below(4) == 0;
      if (below(2) == 0) {
        JobDirectory::Actions actions;
        JobEntry job = entry_of();
        job.node_of = {NodeId{static_cast<std::int32_t>(below(3))}, NodeId{static_cast<std::int32_t>(below(3))}};
        const JobId id = head->add(std::move(job), actions);
        carry_out(actions, !dies);
        open.insert(id);
      } else if (!open.empty()) {
        const JobId id = *std::next(open.begin(), below(static_cast<unsigned>(open.size())));
        open.erase(id);
        if (dies) closing.insert(id);
        carry_out(head->close(id), !dies);
      }
      if (dies) restart();
      for (auto it = open.begin(); it != open.end();)  // Opened nowhere: its driver, which has no answer, asks anew.
        it = head->find(*it) ? std::next(it) : open.erase(it);
    }
    for (const auto& [job, its] : head->jobs()) {
      EXPECT_TRUE(open.contains(job)) << "seed " << seed;
      for (const auto& [node, incarnation] : its.incarnation_of)
        EXPECT_TRUE(agents.at(node).runs.contains(job)) << "seed " << seed;
    }
    for (const auto& [node, agent] : agents)
      for (const auto& [job, its] : agent.runs) EXPECT_TRUE(open.contains(job)) << "seed " << seed;
  }
}

/// Of two workers on nodes 0 and 1 and none on the driver's, 2; node 1 was lost and has another agent.
class ANodeIsBackTest : public testing::Test {
 protected:
  ANodeIsBackTest() {
    for (const int node : {0, 1, 2}) (void)sut_.on_registered(NodeId{node}, 7, JobId{0});
    JobEntry entry = entry_of();
    entry.driver.node = NodeId{2};
    JobDirectory::Actions actions;
    (void)sut_.add(std::move(entry), actions);
    (void)sut_.on_gone(NodeId{1}, "why");
    (void)sut_.on_cut_off(NodeId{0}, kLost, kJob, "why", kBegun);
  }
  void come_back() { (void)sut_.on_registered(kLost, 8, JobId{0}); }

  static constexpr NodeId kLost{1};
  static constexpr JobId kJob{1};
  JobDirectory sut_{kBegun};
};

TEST_F(ANodeIsBackTest, ItOpensTheNextLegOfTheJobBeforeTheOthersHearOfIt) {
  EXPECT_FALSE(sut_.may_come_back(kJob, kLost, 3, kBegun)) << "its agent is not there";
  come_back();
  ASSERT_TRUE(sut_.may_come_back(kJob, kLost, 3, kBegun));
  EXPECT_EQ(words(sut_.take_back(kJob, kLost, kBegun)), "open 1 on 1, open 1 on 0");
  const JobEntry& entry = *sut_.find(kJob);
  EXPECT_TRUE(entry.without.empty());
  EXPECT_EQ(entry.leg, 1);
  EXPECT_EQ(entry.back_in.at(kLost), 1);
  EXPECT_EQ(entry.incarnation_of.at(kLost), 8u);
  EXPECT_FALSE(sut_.may_come_back(kJob, kLost, 3, kBegun)) << "it is there";
}

TEST_F(ANodeIsBackTest, SoOftenAnHourAtMost) {
  Instant now = kBegun;
  for (const int times : {1, 2, 3}) {
    come_back();
    EXPECT_EQ(sut_.may_come_back(kJob, kLost, 2, now), times < 3) << times;
    (void)sut_.take_back(kJob, kLost, now);
    (void)sut_.on_gone(kLost, "why");
    (void)sut_.on_cut_off(NodeId{0}, kLost, kJob, "why", now);
    now += 10min;
  }
  come_back();
  EXPECT_FALSE(sut_.may_come_back(kJob, kLost, 2, kBegun + 59min));
  EXPECT_TRUE(sut_.may_come_back(kJob, kLost, 2, kBegun + 75min));
}

TEST_F(ANodeIsBackTest, OneThatWasHereAllTheWhileAndIsLostToTheOthersOnlyDoesNot) {
  come_back();
  (void)sut_.take_back(kJob, kLost, kBegun);
  EXPECT_NE(words(sut_.on_cut_off(NodeId{0}, kLost, kJob, "no link", kBegun)), "");
  EXPECT_FALSE(sut_.may_come_back(kJob, kLost, 3, kBegun)) << "it would be lost again";
  (void)sut_.on_registered(kLost, 8, JobId{0});
  EXPECT_TRUE(sut_.may_come_back(kJob, kLost, 3, kBegun)) << "it was away meanwhile";
}

TEST_F(ANodeIsBackTest, OneThatIsNewGetsPlacesBeforeTheOthersHearOfIt) {
  (void)sut_.on_registered(NodeId{3}, 9, JobId{0});
  EXPECT_EQ(words(sut_.move_places(kJob, {{1, NodeId{3}}})), "open 1 on 3, open 1 on 0");
  const JobEntry& entry = *sut_.find(kJob);
  EXPECT_EQ(entry.node_of, (std::vector{NodeId{0}, NodeId{3}}));
  EXPECT_EQ(entry.leg, 1);
  EXPECT_EQ(entry.back_in, (std::map<NodeId, std::int32_t>{{NodeId{3}, 1}}));
  EXPECT_TRUE(entry.without.empty()) << "node 1 has no place there any more";
  come_back();
  EXPECT_FALSE(sut_.may_come_back(kJob, kLost, 3, kBegun));
  sut_.on_runs(kLost, kJob, entry_of());
  EXPECT_EQ(words(sut_.on_registered(kLost, 7, kJob)), "close 1 on 1");
  JobDirectory next(kBegun);  // A head that hears of the move later than the node that has no place any more.
  JobEntry before = entry;
  before.node_of = {NodeId{0}, kLost};
  before.incarnation_of = {{NodeId{0}, 7}, {kLost, 7}};
  before.back_in.clear();
  before.leg = 0;
  next.on_runs(kLost, kJob, before);
  EXPECT_EQ(words(next.on_registered(kLost, 7, kJob)), "");
  next.on_runs(NodeId{0}, kJob, entry);
  EXPECT_EQ(words(next.on_registered(NodeId{0}, 7, kJob)), "close 1 on 1");
  EXPECT_EQ(words(sut_.on_gone(NodeId{3}, "why")), "");
  EXPECT_EQ(words(sut_.on_cut_off(NodeId{0}, NodeId{3}, kJob, "why", kBegun)), "go on 1 on 0 without 3: why");
}

/// It hears of the leg, since it ends the one before with the others; then its part is over.
TEST_F(ANodeIsBackTest, OneWithoutAPlaceLeavesWhenItHasSaidSo) {
  come_back();
  (void)sut_.take_back(kJob, kLost, kBegun);
  const std::map<std::int32_t, NodeId> moves{{0, kLost}};
  EXPECT_EQ(words(sut_.move_places(kJob, moves)), "open 1 on 0, open 1 on 1");
  JobEntry entry = *sut_.find(kJob);
  entry.given = {{"strategy", "allreduce"}};
  EXPECT_FALSE(entry.has_place(NodeId{0}));
  EXPECT_TRUE(entry.incarnation_of.contains(NodeId{0}));
  wire::Message message;
  write_job(message.root().initOpenJob(), kJob, entry, kBegun);
  const auto read = read_job(message.root().asReader().getOpenJob(), kBegun);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->incarnation_of, entry.incarnation_of);
  EXPECT_EQ(read->node_of, entry.node_of);

  JobDirectory lost = sut_;  // Before it has: the others may wait for it in the leg before.
  EXPECT_EQ(words(lost.on_gone(NodeId{0}, "why")), "");
  EXPECT_EQ(words(lost.on_cut_off(kLost, NodeId{0}, kJob, "why", kBegun)), "go on 1 on 1 without 0: why");

  JobDirectory next(kBegun);  // A head that is started anew meanwhile, and after it.
  next.on_runs(kLost, kJob, *read);
  EXPECT_EQ(words(next.on_registered(kLost, 8, kJob)), "");
  JobDirectory later = next;
  next.on_runs(NodeId{0}, kJob, *read);
  EXPECT_EQ(words(next.on_registered(NodeId{0}, 7, kJob)), "") << "it may not have ended that leg";
  EXPECT_EQ(words(later.on_registered(NodeId{0}, 7, kJob)), "");
  EXPECT_FALSE(later.find(kJob)->incarnation_of.contains(NodeId{0}));

  sut_.on_left(kLost, kJob);
  EXPECT_TRUE(sut_.find(kJob)->incarnation_of.contains(kLost)) << "it has places";
  sut_.on_left(NodeId{0}, kJob);
  EXPECT_FALSE(sut_.find(kJob)->incarnation_of.contains(NodeId{0}));
  EXPECT_EQ(words(sut_.on_gone(NodeId{0}, "why")), "") << "nobody misses it";
  EXPECT_EQ(words(sut_.on_registered(NodeId{0}, 7, kJob)), "");
}

/// The head had told the others only, and ended.
TEST_F(ANodeIsBackTest, OneThatHasNotHeardThatItComesBackIsLostOnceMore) {
  come_back();
  (void)sut_.take_back(kJob, kLost, kBegun);
  JobDirectory next(kBegun);
  next.on_runs(NodeId{0}, kJob, *sut_.find(kJob));
  (void)next.on_registered(NodeId{0}, 7, kJob);
  EXPECT_EQ(words(next.on_registered(kLost, 8, JobId{2})), "go on 1 on 0 without 1");
  EXPECT_TRUE(next.may_come_back(kJob, kLost, 3, kBegun));
  (void)next.take_back(kJob, kLost, kBegun);
  (void)next.on_gone(kLost, "the head could not reach it");
  next.on_runs(kLost, kJob, entry_of());  // From before it was lost first.
  EXPECT_EQ(words(next.on_registered(kLost, 8, JobId{2})),
            "go on 1 on 0 without 1: the head could not reach it, close 1 on 1");
}

/// The head had told one of the next leg only, and ended.
TEST_F(ANodeIsBackTest, AHeadThatIsStartedAnewTellsThoseOfTheNewestLegThatDoNotKnowIt) {
  come_back();
  const JobEntry before = *sut_.find(kJob);
  (void)sut_.take_back(kJob, kLost, kBegun);
  JobDirectory next(kBegun);
  next.on_runs(NodeId{0}, kJob, before);
  EXPECT_EQ(words(next.on_registered(NodeId{0}, 7, kJob)), "go on 1 on 0 without 1");
  next.on_runs(kLost, kJob, *sut_.find(kJob));
  EXPECT_EQ(words(next.on_registered(kLost, 8, kJob)), "open 1 on 0");
  EXPECT_TRUE(next.find(kJob)->without.empty());
  next.on_runs(NodeId{0}, kJob, before);
  EXPECT_TRUE(next.find(kJob)->without.empty()) << "what is said of an older leg";
}

}  // namespace
}  // namespace paceline::cluster
