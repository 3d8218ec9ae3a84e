#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "scheduler/own_pace/endings.h"
#include "scheduler/own_pace/model_means.h"
#include "scheduler/rounds/running_median.h"
#include "scheduler/shell/coordinator.h"

namespace paceline::scheduler {

/// The pace of workers that are at versions of their own. There are no rounds of all, so what these give to other
/// strategies has ways of its own here:
///
///   evaluation  of the mean of the models that the workers had after version v, beside training (model_means.h)
///   end         a worker that has done the last version is held until the mean of all last models is there
///   stop        the last version is agreed on (endings.h): the highest that anybody has begun, of all workers, where
///               they wait for each other, else each ends with the iteration that it has begun
///   death       told to all nodes by the worker's own
///   return      where the strategy knows of it: at any time, with the state of another worker. Nobody waits for it
///               before it arrives, with its start as the iteration before the one that it begins. Where an end is
///               being agreed on, or is near, it does nothing more and ends with the others' model
///
/// Each worker publishes the model that it starts from as the iteration before the first one, and then one an
/// iteration, or at those iterations only that the strategy names; each time it waits for its verdict.
class OwnPace final : public Pace, private ModelMeans::Workers, private Endings::Workers {
 public:
  /// What strategies differ in.
  class Strategy {
   public:
    /// As ModelMeans::Workers has it, where workers do not end apart.
    virtual ModelMeans::Part model_of(Rank) { return {}; }
    /// The next iteration after v at which the strategy wants workers to publish. Evaluations, and the end, come
    /// besides.
    virtual Version next_publication(Version v) const { return v.next(); }
    /// Whether what was published after v is changed: else the worker goes on with the same numbers.
    virtual bool averages(Version) const { return true; }
    /// Whether the worker, whose iteration `own` is done, is told at once to begin the next one; else the strategy sees
    /// to it.
    virtual bool lets_go(Rank, Version /*own*/, Instant) { return true; }
    /// Whether more than the workers of one group have what the worker has done up to `own`: it may leave.
    virtual bool is_shared(Rank, Version /*own*/) const { return true; }
    /// The worker has done its last iteration.
    virtual void on_last(Rank, Instant) {}
    /// The job ends early, and where its workers end is known (`last_of`).
    virtual void on_ends_apart() {}
    /// Nothing more will be done with the window of a worker of this node that is gone.
    virtual bool is_free(Rank) const { return true; }
    /// The worker, of this node, is gone: it will neither arrive nor take a result. To be told to all nodes.
    virtual void leave(Rank rank, Instant now) = 0;
    /// This agent goes on without another one: what that has given of its workers is all that there will be.
    virtual void on_node_lost(NodeId node, Instant now) = 0;

    // Where those that are left may get a graph of their own, as Endings::Workers has it
    virtual std::vector<Rank> left() const { return {}; }
    virtual Version last_given(Version frozen) const { return frozen; }
    /// Nothing after `last` has been begun by anybody: from there on these workers have one, and those that `join`.
    virtual void on_remade(Version /*last*/, const std::vector<Rank>& /*members*/, const std::vector<Rank>& /*join*/,
                           Instant) {}
    /// One of this node that joins begins after `last`, from what it has published.
    virtual void on_joined(Rank, Version /*last*/, Instant) {}
    /// One of this node that was to join has gone in between. To be told to all nodes.
    virtual void on_not_joined(Rank, Version /*last*/, Instant) {}

   protected:
    ~Strategy() = default;
  };
  /// When one that had left and is back takes part.
  enum class Return { never, at_once, with_a_graph };
  struct Options {
    /// Nobody waits for anybody: each worker ends with the iteration that it has begun, and gives no parts of means.
    bool ends_apart = false;
    bool records_holds = false;  ///< As Endings::Workers has it.
    Return returns = Return::never;
  };

  OwnPace(Workplace& work, Strategy& strategy, Options options);

  void on_arrival(Rank rank, Version t, Duration compute, Instant now) override;
  void on_alive(Rank rank, Instant now) override { alive_[rank] = now; }
  void on_gone(Rank rank, Instant now) override;
  bool is_free(Rank rank) const override {
    return options_.returns != Return::never && free_.contains(rank) && strategy_.is_free(rank);
  }
  void on_return(Rank rank, Instant now) override;
  Version begins_with(Rank rank) const override;
  void stop_soon() override { endings.stop_soon(); }
  Version done() const override;
  Version last() const override { return last_; }
  Duration median_step() const override { return steps_.get(); }
  bool evaluations_hold() const override { return false; }

  /// Its own messages; false: it is the strategy's. Then `bulk` is as it was.
  bool on_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte>& bulk, Instant now);
  void pass_on(NodeId lost, NodeId to);
  /// What the strategy has not taken for its own.
  void step(const Decision& d);

  /// To be called at every arrival: what the worker published, pinned. nullopt: it has published nothing of `t`.
  std::optional<memory::Buffer> on_published(Rank rank, Version t, Duration compute);
  /// It had left, and has another process that has not arrived.
  bool returns(Rank rank) const { return returning_.contains(rank); }
  /// Whether it, which arrives with its start as iteration t, takes part from here on, else later. `ends`: it is too
  /// late for that.
  bool comes_in(Rank rank, Version t, bool ends);
  /// The agent has what it needs of the worker's start, which is the model after `own`.
  void begin(Rank rank, Version own, Instant now) { go_on(rank, own, now); }
  /// The worker's iteration v is averaged, its result delivered: it goes on, or waits for the end.
  void finish(Rank rank, Version v, Instant now);
  /// The worker begins the iteration after `own`.
  void tell_to_go_on(Rank rank, Version own) { verdict(rank, own, Verdict::go_on); }
  /// The mean of all models after v is one of those that are evaluated on the way.
  bool is_due(Version v) const;
  /// The last iteration that the worker does, as far as it is known.
  Version last_of(Rank rank) const;
  std::vector<Rank> living_ranks() const override;
  Duration patience() const;
  /// Until when others wait for it, whose last word was at `word`: it may have given signs of life since.
  Instant awaited_until(Rank rank, Instant word) const;
  /// Others have waited for it at iteration t: if that is over, it leaves.
  void leave_if_awaited_too_long(Rank rank, Version t, Instant word, Instant now);
  /// Tells the node of a worker that others have waited for it beyond patience, for its v if that is known.
  void complain_of(Rank rank, Version v);
  Instant started() const { return started_; }

  ModelMeans means;
  Endings endings;

 private:
  ModelMeans::Part model_of(Rank rank) override { return strategy_.model_of(rank); }
  RoundSums latest_of(Rank rank) const override;
  bool parts_are_by_version() const override { return !options_.ends_apart; }
  void on_end(const std::vector<Rank>& given) override;
  Version begun_of(Rank rank) const override;
  Version furthest_begun() const override;
  bool ends_apart() const override { return options_.ends_apart; }
  std::vector<Rank> left() const override { return strategy_.left(); }
  std::vector<Rank> joining() const override;
  std::vector<Rank> ranks_at(Version v) const override;
  Version last_given(Version frozen) const override { return strategy_.last_given(frozen); }
  bool records_holds() const override { return options_.records_holds; }

  Instant silent_since(Rank rank, Instant word) const;
  Version next_word(Version own) const;
  enum class Verdict { go_on, end, end_without_mean };
  /// One that comes back, and does nothing more.
  struct Late {
    Version t;             ///< It counts as having done.
    bool has_end = false;  ///< It has loaded the model that the job has ended with.
  };
  void let_in(Rank rank, Version t);
  void remake(const Decision& remade, Instant now);
  void join(Rank rank, Version last, Instant now);
  void end_late(Rank rank, Late late);
  void verdict(Rank rank, Version own, Verdict what);
  void go_on(Rank rank, Version own, Instant now);
  void go_on_all(Instant now);
  void go(Rank rank, Instant now);
  void end_at(Version last);
  void report();
  std::optional<Version> held_at(Rank rank) const;

  Workplace& work_;
  Strategy& strategy_;
  const Options options_;
  Version last_;
  RunningMedian steps_;
  std::map<Rank, Instant> alive_;      ///< The last sign of life that is no word.
  std::set<Rank> gone_;                ///< Of this node, those too that never opened a share.
  std::set<Rank> free_;                ///< Of those: no averaging that began before uses its window.
  std::set<Rank> returning_;           ///< Of those: they have another process, which loads its state.
  std::map<Rank, Version> joining_;    ///< Of those: they have arrived, and wait for a graph.
  std::map<Rank, Version> joined_;     ///< After which versions workers of this node have joined.
  std::map<Rank, Late> late_;          ///< Of those: they have arrived, and wait for the others' end.
  std::map<Rank, Version> begun_;      ///< The last iteration that a local worker may do before it waits.
  std::map<Rank, Version> finished_;   ///< The last one that was averaged.
  std::map<Rank, Version> published_;  ///< The last one that it has published, its processes before it included.
  std::map<Rank, RoundSums> latest_;   ///< Of what it last published.
  std::map<Rank, Version> ends_at_;    ///< Where workers of this node end apart, on the leader those of all.
  std::map<Rank, Version> waiting_;    ///< Those that are held back, with what they have finished.
  RoundSums unreported_;
  Version reported_;
  Instant started_;
  bool over_ = false;
};

}  // namespace paceline::scheduler
