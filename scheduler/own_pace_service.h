#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/shell/averaging_service.h"
#include "scheduler/rounds/running_median.h"
#include "scheduler/views/agreement.h"

namespace paceline::scheduler {

/// Base of the shells of strategies whose workers are at versions of their own. There are no rounds of all, so what
/// these give to other strategies has ways of its own here:
///
///   evaluation  the mean of the models that the workers had after version v, in the `latest` buffer of one worker of
///               node 0, which evaluates it between two iterations; the others go on, and training is not changed
///   end         a worker that has done the last version is held until the mean of all last models is there
///   stop        node 0 asks all nodes how far their workers have begun (these begin nothing further until the answer)
///               and makes the highest of these versions the last one: of all workers, where they wait for each other,
///               else each ends with the iteration that it has begun. In the same way it is agreed on after which
///               version those that are left have a graph of their own, where the strategy wants that
///   death       told to all nodes by the worker's own
///
/// Each worker publishes the model that it starts from as the iteration before the first one, and then one an
/// iteration, or at those iterations only that the strategy names; each time it waits for its verdict.
class OwnPaceService : public AveragingService {
 public:
  void on_alive(Rank rank, Instant now) final { alive_[rank] = now; }
  void on_gone(Rank rank, Instant now) final;
  void release(Version v) override;
  void stop_soon(Instant now) override;
  bool evaluations_hold() const override { return false; }

  Version done() const override;
  Version last() const override { return last_; }
  Duration median_step() const override { return steps_.get(); }

 protected:
  using Bytes = std::vector<std::byte>;
  /// A worker's part in the mean of all models: it is the sum of `data` over the sum of `weight`.
  struct ModelPart {
    const void* data = nullptr;
    double weight = 1;
  };

  OwnPaceService(JobOptions options, TaskGraph& graph, collective::Averager& averager, SendToNode send);

  /// As the worker's last finished iteration left it. Asked while it waits for the verdict that finish() gives.
  virtual ModelPart model_of(Rank) { return {}; }
  /// Whether the mean of all models after v is of what each worker had when it had done v (`model_of`); else the
  /// strategy says when it is due, and what this node's part of it is (`give_part`).
  virtual bool parts_are_by_version() const { return true; }
  /// The next iteration after v at which the strategy wants workers to publish. Evaluations, and the end, come besides.
  virtual Version next_publication(Version v) const { return v.next(); }
  /// Whether what was published after v is changed: else the worker goes on with the same numbers.
  virtual bool averages(Version) const { return true; }
  /// Whether, in a job that ends early, each worker ends with the iteration that it has begun. Else all do the same
  /// last one, so that one that is behind has to come there first.
  virtual bool ends_apart() const { return false; }
  /// The job ends early, and where its workers end is known (`last_of`).
  virtual void on_ends_apart() {}
  void on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                       Instant now) final;
  void pass_on(NodeId lost, NodeId to) override;
  /// On node 0: with all agents, while nobody begins anything new.
  void agree_on(Agreement::On what);
  /// Of all nodes: who has not left, as far as it is known here.
  virtual std::vector<Rank> left() const { return {}; }
  /// The highest version that somebody here may contribute to before anybody begins an iteration after `frozen`.
  virtual Version last_given(Version frozen) const { return frozen; }
  /// Nothing after `last` has been begun by anybody: from there on these workers have a graph of their own.
  virtual void on_remade(Version /*last*/, const std::vector<Rank>& /*members*/, Instant) {}
  /// That, while a graph is agreed on.
  const std::optional<Version>& given_until() const { return given_until_; }
  /// Messages of the strategy itself.
  virtual void on_strategy_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                   Instant now) = 0;
  /// What is common to all strategies; each calls it for what it does not know.
  void step(const Decision& d) override;
  void step_end(Version last) override;
  /// How the job ended was agreed on in the recorded run.
  bool needs_nothing(const Decision& d) const override { return d.kind == Decision::Kind::ends; }
  /// The worker, whose iteration `own` is done, may begin the next one: it is told.
  virtual void let_go(Rank rank, Version own, Instant) { verdict(rank, own, false); }
  void verdict(Rank rank, Version own, bool end);
  /// Whether it counts for the core that a worker is held back while a stop is agreed on.
  virtual bool records_holds() const { return false; }
  /// The worker has done its last iteration.
  virtual void on_last(Rank, Instant) {}
  /// The worker, of this node, is gone: it will neither arrive nor take a result. To be told to all nodes.
  virtual void leave(Rank rank, Instant now) = 0;
  /// This agent goes on without another one: what that has given of its workers is all that there will be.
  virtual void on_node_lost(NodeId node, Instant now) = 0;

  /// To be called at every arrival: what the worker published, pinned. nullopt: it has published nothing of `t`.
  std::optional<memory::Buffer> on_published(Rank rank, Version t, Duration compute);
  /// The agent has what it needs of the worker's start.
  void begin(Rank rank, Instant now) { go_on(rank, Version{job().first.value - 1}, now); }
  /// The worker's iteration v is averaged, its result delivered: it goes on, or waits for the end.
  void finish(Rank rank, Version v, Instant now);
  /// This node's part in the mean of all models after v: the sum of `weight` models.
  void give_part(Version v, Bytes sum, double weight, Instant now);
  bool is_due(Version v) const;
  /// The last iteration that the worker does, as far as it is known.
  Version last_of(Rank rank) const;
  /// A stop, or a graph, is being agreed on.
  bool is_stopping() const { return frozen_.has_value(); }
  /// Of this node, those too that have not opened their shares yet.
  std::vector<Rank> living_ranks() const;
  Duration patience() const;
  /// Until when others wait for it, whose last word was at `word`: it may have given signs of life since.
  Instant awaited_until(Rank rank, Instant word) const;
  /// Others have waited for it at iteration t: if that is over, it leaves.
  void leave_if_awaited_too_long(Rank rank, Version t, Instant word, Instant now);
  Instant started() const { return started_; }
  /// It may be silent for long.
  bool is_evaluating(Rank rank) const { return under_evaluation_ && evaluator_ == rank; }

 private:
  Instant silent_since(Rank rank, Instant word) const;

  struct Part {
    Bytes copy;  ///< Empty: `data` stays where it is until the mean is made.
    const void* data = nullptr;
    double weight = 1;
  };
  struct RemotePart {
    Bytes sum;
    double weight = 0;
    RoundSums sums;
    bool at_end = false;  ///< All nodes get it; else node 0 does.
  };
  /// The mean of all models after one version: gathered in snapshots_, and once it is whole of who makes the mean.
  struct Snapshot {
    std::map<Rank, Part> parts;  ///< Of this node.
    std::optional<RemotePart> own;
    std::map<NodeId, RemotePart> remote;
  };

  void give(Rank rank, Version v, bool copy);
  void look_at(Version v, Instant now);
  void send_part(NodeId to, Version v, const RemotePart& part, NodeId of);
  void average_for_evaluation(Version v, const std::shared_ptr<const Snapshot>& snapshot);
  void average_at_end(Version v, const std::shared_ptr<const Snapshot>& snapshot);
  collective::Reduction mean_of(const Snapshot& snapshot) const;
  static RoundSums sums_of(const Snapshot& snapshot);
  Version next_word(Version own) const;
  void go_on(Rank rank, Version own, Instant now);
  void go(Rank rank, Instant now);
  void go_on_without(NodeId node, Instant now);
  void on_part(NodeId from, const wire::Partial::Reader& header, std::vector<std::byte> sum, Instant now);
  void on_ending(NodeId from, const wire::Ending::Reader& ending);
  void act(const Agreement::Actions& actions);
  void carry_out(const Agreement::Ask& ask);
  void carry_out(const Agreement::Decide& decided);
  void freeze(Agreement::On what);
  void hold_back();
  std::optional<Version> held_at(Rank rank) const;
  Version given_at_most() const;
  std::set<NodeId> nodes_left() const;
  void answer(Agreement::On what);
  void decide_end(Version last);
  void decide_graph(Version last, const std::vector<Rank>& members);
  Version begun_of(Rank rank) const;
  void forget_evaluation(Version v);
  void send_ending(NodeId to, wire::Ending::Phase phase, Agreement::On what, Version v,
                   const std::vector<std::pair<Rank, Version>>& begun = {});

  Version last_;
  RunningMedian steps_;
  std::map<Rank, Instant> alive_;     ///< The last sign of life that is no word.
  std::set<Rank> gone_;               ///< Of this node, those too that never opened a share.
  std::map<Rank, Version> begun_;     ///< The last iteration that a local worker may do before it waits.
  std::map<Rank, Version> finished_;  ///< The last one that was averaged.
  std::map<Rank, RoundSums> latest_;  ///< Of what it last published.
  RoundSums unreported_;
  Version reported_;
  std::map<Version, Snapshot> snapshots_;
  std::optional<Version> under_evaluation_;
  Rank evaluator_{};
  Instant started_;
  std::shared_ptr<const Snapshot> end_;  ///< The mean of all last models is made of it.

  bool stop_wished_ = false;
  Agreement agreement_;  ///< Node 0.
  std::optional<Version> given_until_;
  std::optional<Version> frozen_;      ///< Nobody here begins what is later.
  std::map<Rank, Version> elsewhere_;  ///< Node 0: what other nodes' workers have begun, where workers end apart.
  std::map<Rank, Version> ends_at_;    ///< Where workers of this node end apart, on node 0 those of all.
  std::map<Rank, Version> waiting_;    ///< Workers that would have, with what they have finished.
};

}  // namespace paceline::scheduler
