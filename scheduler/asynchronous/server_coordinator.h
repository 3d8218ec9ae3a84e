#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "scheduler/asynchronous/asynchronous_workers.h"
#include "scheduler/asynchronous/server_engine.h"

namespace paceline::scheduler {

/// Coordinator of an asynchronous parameter server on one agent. The model is kept by the agent that leads, which adds
/// each step to it, scaled, as it comes, and gives the result to whom the bound lets go on:
///
///   worker publishes x' -> where the server is:  server += scale (x' - taken);  worker gets the server's model
///   on another node        push: x' - taken ->   <- pull: the server's model, and which steps are in it
///   who had left is back   back: the iteration that it counts as having done ->
///   the server is lost     model: the newest that was pulled -> who leads now, and goes on from the newest of all;
///                          who waits for a model pushes its step again, which is added unless it is in that one
class ServerCoordinator final : public Coordinator, private OwnPace::Strategy, private AsynchronousWorkers::Strategy {
 public:
  ServerCoordinator(Workplace& work, ServerEngine::Options options);

  Pace& pace() override { return pace_; }
  std::optional<Waiting> waiting() const override;

 private:
  using Bytes = AsynchronousWorkers::Bytes;
  using Message = AsynchronousWorkers::Message;
  using Phase = AsynchronousWorkers::Phase;
  using Worker = AsynchronousWorkers::Worker;

  void on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                       Instant now) override;
  void pass_on(NodeId lost, NodeId to) override;
  void look(Instant now) override;
  std::optional<Instant> core_deadline() const override;
  void step(const Decision& d) override;

  void on_last(Rank rank, Instant) override { async_.on_last(rank); }
  void on_ends_apart() override;
  void leave(Rank rank, Instant now) override;
  void on_node_lost(NodeId node, Instant now) override;

  void on_back(Rank rank, Version t) override;
  void on_start(Rank rank, Instant now) override;
  void on_step(Rank rank, Worker& w, Instant now) override;
  void on_exchange(NodeId from, const Message& message, std::shared_ptr<Bytes> bulk, Instant now) override;
  std::vector<std::shared_ptr<Bytes>> own_models() const override;
  Contents own_contents() const override { return contents_; }
  bool holds_others_up(Rank rank) const override;

  /// A model of the server's, and the last iteration of each rank that is in it.
  struct Snapshot {
    std::shared_ptr<const Bytes> model;
    std::vector<Version> applied;
    Contents contents{};
  };
  struct Early {  ///< A push, or that somebody is back, that came before this node knew that the server is here.
    NodeId from;
    Message message;
    std::shared_ptr<Bytes> step;
  };

  bool is_server() const { return work_.view.leads(); }
  void push(Rank rank);
  void take_over(Instant now);
  void tell_again(Instant now);
  void look_at_newest(Snapshot snapshot);
  void serve_again(Rank rank, Instant now);
  std::vector<Version> applied() const;
  void on_push(Rank rank, Version t, std::shared_ptr<Bytes> step, const Contents& contents, Instant now);
  void on_rank_gone(Rank rank, Instant now);
  void tell_gone(Rank rank, NodeId to);
  void on_rank_back(Rank rank, Version t);
  /// Who waits no longer for the bound gets the model as it is.
  void let_pull(std::vector<Rank> served);
  /// What `inputs` add up to is the server's new model, which is given to `served`. `pushed`: by a push of this rank.
  void serve(std::function<collective::Reduction()> inputs, std::vector<Rank> served, std::optional<Rank> pushed = {});
  void take(Rank rank, std::shared_ptr<Bytes> model);

  const ServerEngine::Options options_;
  OwnPace pace_;
  AsynchronousWorkers async_;
  ServerEngine engine_;
  NodeId server_node_;
  bool has_start_ = false;            ///< The server has it, or was sent it.
  std::set<Rank> gone_;               ///< Of all nodes, as far as it is known here.
  std::set<Rank> awaited_;            ///< Local workers that the server says are waited for.
  std::map<Rank, Version> returned_;  ///< Local workers that had left, with what they count as having done.
  std::set<Rank> taking_;             ///< Local workers that are being given what they have pulled.
  Snapshot newest_;                   ///< Of those that were pulled here or passed on, where the server is not.
  std::vector<Early> early_;
  // Where the server is.
  std::shared_ptr<Bytes> server_;
  Contents contents_;                ///< Of its model.
  std::map<Rank, Version> pushed_;   ///< Last iteration.
  std::map<Rank, Instant> waiting_;  ///< For the bound, since when.
  std::set<Rank> owed_;              ///< Their last push is in what this server began with; they may not have pulled.
  Instant complained_{};
};

}  // namespace paceline::scheduler
