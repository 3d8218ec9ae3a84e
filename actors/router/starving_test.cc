#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "actors/router/actor_router.h"
#include "actors/router/router_test_support.h"

namespace paceline::actors {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Instant kBegin{100s};

/// The agent of a node with two cpus, at times that the test says.
class StarvingTest : public testing::Test {
 protected:
  StarvingTest() {
    for (const char* driver : {"driver/1", "driver/2"}) {
      Executable executable;
      executable.path = "/script";
      executable.driver = driver;
      sut.on_executable(driver, executable);
    }
    sut.at(kBegin);
  }
  static ActorRouter::Options options() {
    ActorRouter::Options options;
    options.node = kHere;
    options.has.cpus = 2;
    return options;
  }
  /// Workers that this starts are ready at once.
  void want(const std::string& driver, std::uint32_t workers, Shape shape = {}) {
    Wants word;
    word.owner = driver;
    word.workers = workers;
    word.shape = shape;
    carry_out(sut.on_wants(word, kHere));
  }
  void give_back(const std::string& driver, std::uint32_t still_wanted = 0) {
    Wants word;
    word.owner = driver;
    word.workers = still_wanted;
    for (const auto& [worker, owner] : lent)
      if (owner == driver) word.returned.push_back(worker);
    std::erase_if(lent, [&](const auto& entry) { return entry.second == driver; });
    carry_out(sut.on_wants(word, kHere));
  }
  void carry_out(const ActorRouter::Actions& actions) {
    for (const auto& action : actions) {
      if (const auto* fork = std::get_if<ActorRouter::Fork>(&action); fork && starts)
        carry_out(sut.on_worker_ready(fork->worker));
      const auto* const send = std::get_if<ActorRouter::Send>(&action);
      if (const auto* const loan = send ? std::get_if<Loan>(&send->message) : nullptr;
          loan && loan->kind == Loan::Kind::lent)
        lent.emplace(loan->worker, loan->owner);
    }
  }
  /// What is said to drivers until then, by who is woken when it wants to be.
  std::vector<std::string> said_until(Instant now) {
    std::vector<std::string> said;
    while (sut.next_deadline() && *sut.next_deadline() <= now) {
      const Instant at = *sut.next_deadline();
      sut.at(at);
      for (const auto& action : sut.tick(at)) {
        const auto& warn = std::get<ActorRouter::Warn>(action);
        EXPECT_EQ(warn.node, kHere);
        said.push_back(warn.driver + ": " + warn.text);
      }
      if (sut.next_deadline() == at) ADD_FAILURE() << "it would be woken again and again";
    }
    sut.at(now);
    return said;
  }

  bool starts = true;
  std::map<WorkerId, std::string> lent;
  ActorRouter sut{options()};
};

TEST_F(StarvingTest, WhoGetsNothingForTenSecondsIsToldOnceWhoHoldsTheCpus) {
  want("driver/1", 2);
  EXPECT_EQ(sut.next_deadline(), std::nullopt) << "nobody waits, nobody is woken";
  sut.at(kBegin + 20s);
  want("driver/2", 4);
  EXPECT_THAT(said_until(kBegin + 29s), IsEmpty());
  EXPECT_THAT(
      said_until(kBegin + 30s),
      ElementsAre("driver/2: tasks of driver/2 that need 1 cpu have had no worker for 10 s: the cpus of node 0 are "
                  "held by driver/1 (2 cpus, for 30 s); they begin when there is room: `paceline status` says who "
                  "holds what, and a cluster of more nodes (--nodes) has more of all"));
  want("driver/2", 8);
  EXPECT_THAT(said_until(kBegin + 1h), IsEmpty()) << "it knows";
  EXPECT_EQ(sut.next_deadline(), std::nullopt);
}

TEST_F(StarvingTest, WhoHasSomeOrGetsSomeIsNotTold) {
  want("driver/1", 8);
  EXPECT_THAT(said_until(kBegin + 1h), IsEmpty()) << "its tasks run, two at a time";
  want("driver/2", 1);
  EXPECT_THAT(said_until(kBegin + 1h + 9s), IsEmpty());
  give_back("driver/1");
  EXPECT_THAT(said_until(kBegin + 2h), IsEmpty());
}

TEST_F(StarvingTest, WhoHasAskedAnewWaitsAnew) {
  want("driver/1", 2);
  want("driver/2", 1);
  EXPECT_THAT(said_until(kBegin + 9s), IsEmpty());
  want("driver/2", 0);
  EXPECT_EQ(sut.next_deadline(), std::nullopt);
  sut.at(kBegin + 15s);
  want("driver/2", 1);
  EXPECT_THAT(said_until(kBegin + 24s), IsEmpty());
  EXPECT_THAT(said_until(kBegin + 25s), testing::SizeIs(1));
}

TEST_F(StarvingTest, ItIsToldWhereItHoldsThemItself) {
  want("driver/1", 2);
  want("driver/1", 1, Shape{2, NodeId{-1}});
  EXPECT_THAT(said_until(kBegin + 10s), ElementsAre(HasSubstr("held by itself (2 cpus, for 10 s); ")));
}

TEST_F(StarvingTest, ItIsToldWhereItsWorkersDoNotStart) {
  starts = false;
  want("driver/1", 1);
  EXPECT_THAT(said_until(kBegin + 10s), ElementsAre(HasSubstr("still being started")));
}

TEST_F(StarvingTest, OtherNodesAreNamed) {
  sut.on_node(kThere, Capacity{4, 0x1p40});
  want("driver/1", 2);
  want("driver/2", 1);
  want("driver/2", 1, Shape{1, kThere});
  want("driver/2", 1, Shape{3, NodeId{-1}});
  EXPECT_THAT(said_until(kBegin + 10s),
              testing::UnorderedElementsAre(
                  HasSubstr(" are held by driver/1 (2 cpus, for 10 s), and no other node has lent any; "),
                  HasSubstr(" on node 1 have had no worker for 10 s: node 1 has lent none, what it has is held; "),
                  HasSubstr("need 3 cpus have had no worker for 10 s: node 0 has only 2 cpus, and no other")));
}

TEST_F(StarvingTest, OwnersOfOtherNodesAreToldByTheirOwnAgents) {
  want("driver/1", 2);
  Wants word;
  word.owner = "driver/9";
  word.root = "driver/9";
  word.workers = 2;
  word.executable.path = "/script";
  (void)sut.on_wants(word, kThere);
  EXPECT_EQ(sut.next_deadline(), std::nullopt);
}

}  // namespace
}  // namespace paceline::actors
