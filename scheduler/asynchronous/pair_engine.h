#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"

namespace paceline::scheduler {

/// Decides, on one agent, in which order the models of its workers meet others where a worker that has done a step
/// averages with one partner, both models at once, and then adds its step (AD-PSGD). Sans-I/O and deterministic.
///
/// The agent keeps a model for each of its workers, and a lock for each model. A meeting takes the locks of both
/// models, that of the lower rank first, so that no circle of meetings can wait for each other. Between agents the
/// lower model travels to the higher one's agent and the mean comes back; it stays locked in between:
///
///   initiator low    lock low -- offer --> lock high, average <--
///                    step <------ mean ---- unlock high
///   initiator high   ----------- ask ----> lock low
///                    lock high <- offer --
///                    average -- mean -----> unlock low
///                    step, unlock high
///
/// A partner that is gone is not met (`decline`): the worker adds its step to its own model. One that has not begun yet
/// is waited for. Nobody waits for a worker that computes. Messages of one agent arrive in the order in which it sent
/// them.
class PairEngine {
 public:
  struct Options {
    NodeId self;
    std::vector<NodeId> node_of;  ///< Rank -> node; size P.
  };

  struct Meeting {
    Rank initiator;  ///< Has one meeting at a time.
    std::optional<Rank> partner = {};
    bool operator==(const Meeting&) const = default;
    Rank low() const { return partner ? std::min(initiator, *partner) : initiator; }
    Rank high() const { return partner ? std::max(initiator, *partner) : initiator; }
  };
  enum class Phase { ask, offer, mean, decline };

  // Actions, in the order in which the shell must carry them out ------------------------------------------------------
  struct Send {
    NodeId to;
    Phase phase;  ///< offer: with the lower rank's model, mean: with what on_averaged's Average made of it.
    Meeting meeting;
  };
  /// Both models become their mean; the lower one is the local worker's or has come with the offer. Then on_averaged.
  struct Average {
    Meeting meeting;
  };
  /// The initiator's step is added to its model, which it gets. Then on_stepped.
  struct Step {
    Rank initiator;
  };
  using Action = std::variant<Send, Average, Step>;
  using Actions = std::vector<Action>;

  explicit PairEngine(Options options);

  /// The model of a local worker is there; of one that had ended and is_free(): a new one.
  Actions on_begun(Rank rank);
  /// A local worker has done a step and would meet `partner` (nullopt: nobody).
  Actions on_arrival(Rank initiator, std::optional<Rank> partner);
  /// A message about a meeting from the other agent of it. Those that make no sense here are ignored.
  Actions on_message(Phase phase, const Meeting& meeting);
  Actions on_averaged(const Meeting& meeting);
  Actions on_stepped(Rank initiator);
  /// The local worker has ended. What it has begun is finished without it.
  Actions on_gone(Rank rank);
  /// Another agent is lost. Who was to meet one of its workers adds its step to its own model; what was lent to it
  /// comes back as it was.
  Actions on_node_gone(NodeId node);

  /// The local worker, which has ended, has no meeting under way, nor has its model.
  bool is_free(Rank rank) const;
  /// No local model is lent, or waits for one that is.
  bool idle() const;
  /// Local workers that have not begun and are waited for.
  std::vector<Rank> awaited() const;
  /// Equal for those that will answer alike. For tests that walk states.
  std::string fingerprint() const;

 private:
  struct Model {
    bool begun = false;
    bool gone = false;
    std::optional<Meeting> holder;
    std::deque<Meeting> queue;
  };

  bool is_local(Rank rank) const { return node(rank) == options_.self; }
  NodeId node(Rank rank) const { return options_.node_of[static_cast<std::size_t>(rank.value)]; }
  bool is_known(const Meeting& meeting) const;
  void take(Rank rank, const Meeting& meeting);
  void grant(Rank rank);
  void granted(Rank rank, const Meeting& meeting);
  void release(Rank rank, const Meeting& meeting);
  void begin(const Meeting& meeting);
  void without_partner(const Meeting& meeting);
  bool is_lost(Rank rank) const { return lost_.contains(node(rank)); }
  bool is_with_lost(const Meeting& meeting) const {
    return is_lost(meeting.initiator) || (meeting.partner && is_lost(*meeting.partner));
  }
  void send(NodeId to, Phase phase, const Meeting& meeting) { out_.push_back(Send{to, phase, meeting}); }
  Actions flush() { return std::exchange(out_, {}); }

  Options options_;
  std::map<Rank, Model> models_;  ///< Of local workers.
  std::set<NodeId> lost_;
  std::map<Rank, Meeting> awaits_;  ///< Local initiators that have asked or offered, and not been answered.
  Actions out_;
};

}  // namespace paceline::scheduler
