#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/mixing/mix_engine.h"
#include "scheduler/own_pace_service.h"

namespace paceline::scheduler {

/// Shell of the mix engine on one agent, for one job. Workers publish their model after every local step; the agent
/// keeps what they contribute in memory of its own until all that take from it have mixed, sends it to the agents of
/// neighbours, and writes what was mixed into the worker's window.
///
///   adapt then combine  contribution: the model after the step; result: sum of W_ij c_j
///   combine then adapt  contribution: the model before the step, at its start; result: sum of W_ij c_j + (after -
///   before) push-sum            the agent holds numerator x and weight w, the worker trains z = x / w; a step adds
///   after - z to x overlap             what a worker does not give away of x and w it keeps; shares of an exchange may
///   come so many
///                       steps after its start, and the worker goes on without them until then
class MixService : public OwnPaceService {
 public:
  struct Options {
    JobOptions job;
    std::shared_ptr<const MixPlan> plan;
    bool combine_then_adapt = false;
    bool push_sum = false;
    std::int32_t overlap = 0;  ///< With push-sum and combine_then_adapt. 0: none.
    bool stands_in = false;    ///< Models are kept, so that a worker can be stood in for. Without push-sum.
  };

  MixService(Options options, TaskGraph& graph, collective::Averager& averager, SendToNode send);
  ~MixService() override;

  void on_arrival(Rank rank, Version t, Duration compute, Instant now) override;
  std::optional<Waiting> waiting() const override;

 protected:
  void step(const Decision& d) override;
  void look(Instant now) override;
  std::optional<Instant> core_deadline() const override;
  void on_strategy_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                           Instant now) override;
  void leave(Rank rank, Instant now) override;
  /// A worker of another agent.
  virtual void on_gone_elsewhere(Rank, Instant) {}
  /// The worker's model takes part in v as it is; let_go() follows, without a result in its window.
  void stand_in(Rank rank, Version v, Instant now);
  /// The model that the worker, which waits, has after `own` goes to its window, and it is told.
  void hand_over(Rank rank, Version own, Instant now);

 private:
  /// What a worker contributed to a version; shared with the averagings that read it.
  struct Contribution {
    std::shared_ptr<Bytes> data;
    double weight = 1;
  };
  // What other agents tell about their workers.
  struct Given {
    Version version;
    Contribution contribution;
  };
  struct Gone {
    Version contributed, mixed;  ///< The last ones.
  };
  struct Term {
    Contribution contribution;
    double weight;
    bool own;
  };
  using Terms = std::vector<Term>;
  struct Worker {
    Version t;                   ///< Iteration under way.
    Version exchange;            ///< Its next one, or the one that is outstanding.
    bool outstanding = false;    ///< Overlap.
    Version sent_at;             ///< Overlap: the iteration at whose start the outstanding one began.
    Bytes x;                     ///< Push-sum: numerator; overlap: without what was given away.
    double weight = 1;           ///< Push-sum's.
    Bytes total;                 ///< Overlap: start and all changes; what is under way belongs to nobody's x.
    memory::Buffer published{};  ///< Sealed until the result is delivered.
    Version contributed;         ///< Last versions that it contributed to and mixed.
    Version mixed;
    Instant since{};  ///< When it began to compute, or to wait.
    bool waits = false;
    std::shared_ptr<Bytes> model;  ///< Where models are kept: as its last mixing left it.
    bool stood_in_for = false;     ///< In the mixing under way, or the last one: its window has no result of it.
    Instant complained{};
  };

  ModelPart model_of(Rank rank) override;
  void on_last(Rank rank, Instant now) override;

  void arrived(Rank rank, Version t, Duration compute, Instant now);
  void exchange(NodeId from, Rank rank, std::variant<Given, Gone> message, Instant now);
  void take(Rank rank, const Given& given, Instant now);
  void take(Rank rank, const Gone& gone, Instant now);
  void on_start(Rank rank, Instant now);
  bool overlaps() const { return options_.overlap > 0; }
  /// An averaging for a worker that may be gone when its turn comes.
  void add_for(Rank rank, std::function<collective::Reduction(Member&, Worker&)> prepare,
               std::function<void(Member&, Worker&, Instant)> finish);
  void begin_exchange(Rank rank);
  std::shared_ptr<Bytes> spare_bytes();
  double kept_share(Rank rank, Version v) const;
  void contribute(Rank rank, Version v, Contribution contribution, Instant now);
  void add_step(Rank rank);
  void want(Rank rank, Instant now);
  void act(MixEngine::Actions actions, Instant now);
  void carry_out(const MixEngine::Send& send);
  void carry_out(const MixEngine::Mix& mix);
  void carry_out(const MixEngine::Release& release);
  std::shared_ptr<Terms> terms_of(const MixEngine::Mix& mix) const;
  void mix_alike(const MixEngine::Mix& mix);
  void end_mix(Rank rank, Version v, Member& member, Worker& w, Instant now);
  void go_on_without(Rank rank);
  void deliver(Rank rank, Member& member, Worker& w, Instant now);
  void on_awaited(Rank rank, Version v, Instant now);

  Options options_;
  MixEngine engine_;
  std::map<Rank, Worker> workers_;
  std::map<std::pair<Rank, Version>, Contribution> held_;
  /// Not told yet, by the kind of message.
  std::map<std::tuple<NodeId, Rank, std::int32_t>, std::deque<std::variant<Given, Gone>>> exchanged_;
  std::deque<std::pair<MixEngine::Action, Instant>> pending_actions_;
  bool acting_ = false;
  std::vector<std::shared_ptr<Bytes>> pool_;  ///< As many as were ever held at once.
};

}  // namespace paceline::scheduler
