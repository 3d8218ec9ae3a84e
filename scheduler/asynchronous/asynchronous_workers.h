#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "scheduler/own_pace/exchanged.h"
#include "scheduler/own_pace/own_pace.h"

namespace paceline::scheduler {

/// The workers of strategies without versions, on one agent: what a worker adds to a model is its step, the model it
/// has published less the one that it was last given. Here is what the server's and the pairs' have in common:
///
///   evaluation  when the workers have done so many iterations on average (as the leader sees it), it asks all nodes
///               for their part of the mean as it is then (`gather`)
///   stop        nobody waits for who is behind: each worker ends with the iteration that it has begun
///   return      a worker that had left comes in with what it loaded as the model that it was last given, and with the
///               iteration after that (`back`: its node tells all others)
///   end         a node whose workers have all done their last iteration tells all others (`done`); when all have, each
///               gives its part. A worker that is silent beyond patience while others wait for this leaves
class AsynchronousWorkers {
 public:
  using Bytes = ModelMeans::Bytes;
  using Phase = wire::Exchange::Phase;
  struct Worker {
    Version t;                     ///< Iteration under way.
    std::shared_ptr<Bytes> taken;  ///< The model that it was last given.
    memory::Buffer published{};    ///< Sealed until the result is delivered.
    bool computes = true;
    Instant since{};  ///< When it began to compute.
  };
  struct Message {
    Phase phase;
    Rank rank;
    Rank partner = Rank{-1};
    Version version = {};
    std::vector<Version> applied = {};  ///< Of a server's model, by rank.
    Contents contents = {};             ///< Of a model that meets another.
  };
  class Strategy {
   public:
    /// One that had left has done iteration t, or counts as one that has: on_start follows.
    virtual void on_back(Rank rank, Version t) = 0;
    /// `taken` is the model that the worker starts from.
    virtual void on_start(Rank rank, Instant now) = 0;
    /// The worker has published its iteration w.t and waits.
    virtual void on_step(Rank rank, Worker& w, Instant now) = 0;
    virtual void on_exchange(NodeId from, const Message& message, std::shared_ptr<Bytes> bulk, Instant now) = 0;
    /// The models that this node brings to the mean of all.
    virtual std::vector<std::shared_ptr<Bytes>> own_models() const = 0;
    /// What is in these.
    virtual Contents own_contents() const = 0;
    /// Nothing that was begun for other nodes' workers is to change own_models().
    virtual bool is_settled() const { return true; }
    /// Others cannot go on before the local worker does, be it that nobody has ended.
    virtual bool holds_others_up(Rank rank) const = 0;

   protected:
    ~Strategy() = default;
  };

  AsynchronousWorkers(Workplace& work, OwnPace& pace, Strategy& strategy);

  // What the coordinator hears, the pace's part included --------------------------------------------------------------
  void on_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk, Instant now);
  void look(Instant now);
  std::optional<Instant> core_deadline() const;
  void step(const Decision& d);
  // As OwnPace::Strategy has it
  void on_last(Rank rank);
  void leave(Instant now);

  Worker* find(Rank rank);
  Worker& at(Rank rank) { return workers_.at(rank); }
  /// Adds the outputs that a worker is given: its window's result and `taken`.
  void add_result(Rank rank, collective::Reduction& to);
  /// The reduction with add_result is done: the worker goes on with it. Nothing if it is gone.
  void deliver(Rank rank, Instant now);
  /// One of `workers` has done an iteration; the leader evaluates if it is time.
  void count_iteration(std::size_t workers);
  /// So many were done as far as another node has seen it.
  void resume_count(double iterations) { iterations_ = iterations; }
  /// To be called when something is_settled() depends on has changed, or who is here or elsewhere.
  void look_at_end();
  /// This node has models to give that another had.
  void gather_end_again();
  void send(NodeId to, const Message& message, Piece bulk = {});

 private:
  struct Told {
    Message message;
    std::shared_ptr<Bytes> bulk;
  };

  void on_arrival(Rank rank, Version t, Duration compute, Instant now);
  void come_in(Rank rank, Version t, Instant now);
  bool has_ended() const;
  void begin(Rank rank, Version own, Instant now);
  void on_exchange(NodeId from, const wire::Exchange::Reader& exchange, std::vector<std::byte> bulk, Instant now);
  void gather(Version v, bool at_end);
  std::optional<Instant> awaited_since(Rank rank) const;

  Workplace& work_;
  OwnPace& pace_;
  Strategy& strategy_;
  std::map<Rank, Worker> workers_;
  Exchanged<Told> exchanged_;
  double iterations_ = 0;  ///< That the workers have done, on average, as far as it is seen here.
  Version evaluated_;
  std::set<Rank> ended_;   ///< Local workers that have done their last iteration.
  std::set<NodeId> done_;  ///< Nodes whose workers have all.
  bool told_ = false;
  bool gathered_end_ = false;
};

}  // namespace paceline::scheduler
