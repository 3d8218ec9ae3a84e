#include "algorithms/cluster/name_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

namespace paceline::cluster {
namespace {

using actors::NameClaim;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr ActorId actor_on(std::int32_t node, std::uint32_t count) {
  return ActorId((static_cast<std::uint64_t>(node) << 54) | count);
}

NameClaim claim(ActorId actor, const std::string& name = "x", bool get_if_exists = false) {
  return {actor, name, "Counter", "driver/1", {true, get_if_exists, false, {}}};
}

class NameDirectoryTest : public testing::Test {
 protected:
  /// The only action, which is a T.
  template <class T>
  static T only(const NameDirectory::Actions& actions) {
    EXPECT_EQ(actions.size(), 1u);
    const auto* const one = actions.empty() ? nullptr : std::get_if<T>(&actions.front());
    EXPECT_NE(one, nullptr);
    return one ? *one : T{};
  }
  static std::string refusal(const NameDirectory::Actions& actions) {
    return only<NameDirectory::Refused>(actions).error.text;
  }
  void give(ActorId actor, const std::string& name = "x") {
    EXPECT_EQ(only<NameDirectory::Found>(sut.on_claim(1, claim(actor, name))).actor, actor);
  }

  NameDirectory sut;
  const ActorId here = actor_on(0, 1);
  const ActorId there = actor_on(1, 1);
};

TEST_F(NameDirectoryTest, ANameThatNobodyHasIsGivenAndGivenTheSameActorAgain) {
  give(here);
  give(here);
}

TEST_F(NameDirectoryTest, ANameThatSomebodyHasIsRefusedOnceItsAgentHasSaidSo) {
  give(here);
  const auto confirm = only<NameDirectory::Confirm>(sut.on_claim(2, claim(there)));
  EXPECT_EQ(confirm.actor, here);
  EXPECT_EQ(confirm.node, NodeId{0});
  EXPECT_THAT(
      refusal(sut.on_confirmed(2, true)),
      testing::AllOf(HasSubstr("actor 'x' lives already, on node 0, created by driver/1"), HasSubstr("get_actor")));
}

TEST_F(NameDirectoryTest, ANameWhoseActorHasEndedMeanwhileIsFree) {
  give(here);
  (void)sut.on_claim(2, claim(there));
  EXPECT_EQ(only<NameDirectory::Found>(sut.on_confirmed(2, false)).actor, there);
  sut.on_unclaim("x", here);  // Late.
  EXPECT_EQ(sut.names().at("x").actor, there);
}

TEST_F(NameDirectoryTest, WhoHasTheNameWillDoIfItMayExist) {
  give(here);
  (void)sut.on_claim(2, claim(there, "x", true));
  EXPECT_EQ(only<NameDirectory::Found>(sut.on_confirmed(2, true)).actor, here);
}

TEST_F(NameDirectoryTest, AnActorOfAnotherClassIsRefused) {
  give(here);
  (void)sut.on_find(2, "x", "Relay");
  EXPECT_THAT(refusal(sut.on_confirmed(2, true)), HasSubstr("actor 'x' is a Counter, and no Relay"));
  auto wanted = claim(there, "x", true);
  wanted.type = "Relay";
  (void)sut.on_claim(3, wanted);
  EXPECT_THAT(refusal(sut.on_confirmed(3, true)), HasSubstr("and no Relay"));
  (void)sut.on_find(4, "x", "");
  EXPECT_EQ(only<NameDirectory::Found>(sut.on_confirmed(4, true)).actor, here);
}

TEST_F(NameDirectoryTest, ANameThatNobodyHasIsNotFoundAndTheOthersAreNamed) {
  EXPECT_THAT(refusal(sut.on_find(1, "x", "Counter")), HasSubstr("no actor 'x' lives, nor any other"));
  give(here, "counter");
  EXPECT_THAT(refusal(sut.on_find(1, "countr", "Counter")),
              testing::AllOf(HasSubstr("did you mean 'counter'"), HasSubstr("there are 'counter'")));
}

TEST_F(NameDirectoryTest, WhoEndsHandsItsNameOver) {
  give(here);
  auto wanted = claim(there);
  wanted.rule.after = here;
  EXPECT_EQ(only<NameDirectory::Found>(sut.on_claim(2, wanted)).actor, there);
  sut.on_unclaim("x", here);
  EXPECT_EQ(sut.names().at("x").actor, there);
}

TEST_F(NameDirectoryTest, NamesOfANodeThatIsGoneAreFreeAndItIsNotWaitedFor) {
  give(here);
  (void)sut.on_claim(2, claim(there));
  EXPECT_EQ(only<NameDirectory::Again>(sut.on_node_gone(NodeId{0})).request, 2u);
  EXPECT_THAT(sut.on_confirmed(2, true), IsEmpty());
  EXPECT_THAT(sut.nodes(), IsEmpty());
  give(there);
}

TEST_F(NameDirectoryTest, ANodeTellsWhatItsActorsHaveAndHearsWhatTheyHaveLost) {
  give(there, "y");
  give(here, "x");
  EXPECT_THAT(sut.on_told(NodeId{0}, {claim(actor_on(0, 2), "y"), claim(actor_on(0, 3), "z")}),
              ElementsAre(actor_on(0, 2)));
  EXPECT_FALSE(sut.names().contains("x")) << "it does not say so any more";
  EXPECT_EQ(sut.names().at("y").actor, there);
  EXPECT_EQ(sut.names().at("z").actor, actor_on(0, 3));
}

/// Agents over ordered links to a head, all of which may end and be started anew: what each does is what the agent's
/// router and the head's shell do.
class World {
 public:
  explicit World(std::uint32_t seed) : random_(seed) {
    for (auto& node : nodes_) connect(node);
  }

  void live(int steps) {
    for (now_ = 1; now_ <= steps; ++now_) {
      step();
      expect_one_of_a_name();
    }
    drain();
    std::map<std::string, ActorId> living;
    for (const auto& node : nodes_)
      for (const auto& [actor, name] : node.living) living[name] = actor;
    EXPECT_EQ(living.size(), head_.names().size());
    for (const auto& [name, actor] : living)
      EXPECT_TRUE(head_.names().contains(name) && head_.names().at(name).actor == actor) << name;
    for (const auto& node : nodes_) EXPECT_TRUE(node.asked.empty()) << "a claim without an answer";
  }
  int created() const { return created_; }

 private:
  struct Word {
    enum class Kind { claim, unclaim, names, confirmed, found, refused, confirm } kind;
    std::uint64_t request = 0;
    NameClaim claim{};
    std::vector<NameClaim> names{};
    bool has = false;
  };
  struct Node {
    std::map<ActorId, std::string> living;
    std::map<ActorId, NameClaim> claiming;
    std::map<std::uint64_t, NameClaim> asked;  ///< Of the head, without an answer.
    std::deque<Word> to_head, from_head;
    bool told = false;  ///< The head has heard its names.
  };

  std::uint32_t below(std::uint32_t bound) {
    return std::uniform_int_distribution<std::uint32_t>(0, bound - 1)(random_);
  }

  void step() {
    const auto number = below(static_cast<std::uint32_t>(nodes_.size()));
    auto& node = nodes_[number];
    switch (below(40)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: {
        const auto actor = actor_on(static_cast<std::int32_t>(number), next_++);
        const auto wanted = claim(actor, std::string(1, static_cast<char>('a' + below(3))), below(2) == 0);
        node.claiming[actor] = wanted;
        asked_at_[actor] = now_;
        node.asked[next_] = wanted;
        node.to_head.push_back({Word::Kind::claim, next_++, wanted});
        return;
      }
      case 5:  // Its owner is gone.
        if (!node.claiming.empty()) node.claiming.erase(node.claiming.begin());
        return;
      case 6:
      case 7:
      case 8:
      case 9:
        if (!node.living.empty())
          die(node, std::next(node.living.begin(), below(static_cast<std::uint32_t>(node.living.size()))));
        return;
      case 10: return below(4) == 0 ? lose_head() : void();
      case 11: return below(4) == 0 ? lose_node(node, number) : void();
      default: below(2) == 0 ? at_head(number) : at_node(node);
    }
  }

  void die(Node& node, std::map<ActorId, std::string>::iterator actor) {
    node.to_head.push_back({Word::Kind::unclaim, 0, claim(actor->first, actor->second)});
    died_at_[actor->first] = now_;
    node.living.erase(actor);
  }

  void connect(Node& node) {
    node.to_head.clear();
    node.from_head.clear();
    node.told = false;
    Word names{Word::Kind::names};
    for (const auto& [actor, name] : node.living) names.names.push_back(claim(actor, name));
    node.to_head.push_back(names);
    for (const auto& [request, wanted] : node.asked) node.to_head.push_back({Word::Kind::claim, request, wanted});
  }

  void lose_head() {
    head_ = {};
    waiting_.clear();
    asker_of_.clear();
    for (auto& node : nodes_) connect(node);
  }

  void lose_node(Node& node, std::uint32_t number) {
    for (const auto& [actor, name] : node.living) died_at_[actor] = now_;
    node = {};
    connect(node);
    act(head_.on_node_gone(NodeId{static_cast<std::int32_t>(number)}));
  }

  bool all_told() const {
    return std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.told; });
  }

  void at_head(std::uint32_t number) {
    auto& node = nodes_[number];
    if (node.to_head.empty()) return;
    auto word = std::move(node.to_head.front());
    node.to_head.pop_front();
    switch (word.kind) {
      case Word::Kind::claim: waiting_.push_back({number, word}); break;
      case Word::Kind::unclaim: head_.on_unclaim(word.claim.name, word.claim.actor); break;
      case Word::Kind::names:
        EXPECT_THAT(head_.on_told(NodeId{static_cast<std::int32_t>(number)}, word.names), IsEmpty());
        node.told = true;
        break;
      default: act(head_.on_confirmed(word.request, word.has));
    }
    while (all_told() && !waiting_.empty()) {
      auto next = std::move(waiting_.front());
      waiting_.pop_front();
      asker_of_[++requests_] = next;
      act(head_.on_claim(requests_, next.second.claim));
    }
  }

  void act(const NameDirectory::Actions& actions) {
    for (const auto& action : actions) {
      if (const auto* confirm = std::get_if<NameDirectory::Confirm>(&action)) {
        nodes_[static_cast<std::size_t>(confirm->node.value)].from_head.push_back(
            {Word::Kind::confirm, confirm->request, claim(confirm->actor)});
        continue;
      }
      const auto request = std::visit([](const auto& a) { return a.request; }, action);
      auto asker = asker_of_.extract(request);
      ASSERT_TRUE(asker) << "answered twice";
      auto [number, word] = std::move(asker.mapped());
      if (std::holds_alternative<NameDirectory::Again>(action)) {
        waiting_.push_back({number, word});
        continue;
      }
      const auto* found = std::get_if<NameDirectory::Found>(&action);
      if (found && found->actor != word.claim.actor && died_at_.contains(found->actor)) {
        EXPECT_GE(died_at_[found->actor], asked_at_[word.claim.actor]) << "it was dead before anybody asked";
      }
      word.kind = found ? Word::Kind::found : Word::Kind::refused;
      word.claim.rule.after = found ? found->actor : ActorId{};
      nodes_[number].from_head.push_back(std::move(word));
    }
  }

  void at_node(Node& node) {
    if (node.from_head.empty()) return;
    const auto word = std::move(node.from_head.front());
    node.from_head.pop_front();
    const auto actor = word.claim.actor;
    if (word.kind == Word::Kind::confirm) {
      Word answer{Word::Kind::confirmed, word.request};
      answer.has = node.living.contains(actor);
      return node.to_head.push_back(answer);
    }
    node.asked.erase(word.request);
    const bool pending = node.claiming.erase(actor) > 0;
    if (word.kind != Word::Kind::found || word.claim.rule.after != actor) return;
    if (pending) {
      node.living[actor] = word.claim.name;
      ++created_;
    } else if (!node.living.contains(actor)) {
      node.to_head.push_back({Word::Kind::unclaim, 0, word.claim});
    }
  }

  void drain() {
    for (bool more = true; more;) {
      more = false;
      for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
        more = more || !nodes_[number].to_head.empty() || !nodes_[number].from_head.empty();
        at_head(number);
        at_node(nodes_[number]);
      }
    }
    EXPECT_TRUE(waiting_.empty());
  }

  void expect_one_of_a_name() const {
    std::set<std::string> names;
    for (const auto& node : nodes_)
      for (const auto& [actor, name] : node.living) ASSERT_TRUE(names.insert(name).second) << name << " lives twice";
  }

  std::mt19937 random_;
  NameDirectory head_;
  std::vector<Node> nodes_ = std::vector<Node>(3);
  std::deque<std::pair<std::uint32_t, Word>> waiting_;
  std::map<std::uint64_t, std::pair<std::uint32_t, Word>> asker_of_;
  std::map<ActorId, int> asked_at_, died_at_;
  int now_ = 0;
  std::uint64_t requests_ = 0;
  std::uint32_t next_ = 1;
  int created_ = 0;
};

TEST(NameDirectoryLivesTest, OfANameOneActorLivesWhoeverEndsAndInTheEndTheHeadKnowsWhich) {
  int created = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    World world(seed);
    world.live(600);
    created += world.created();
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(created, 1000);
}

}  // namespace
}  // namespace paceline::cluster
