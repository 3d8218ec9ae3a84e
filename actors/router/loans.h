#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/router/lending.h"
#include "actors/router/local_workers.h"

namespace paceline::actors::router {

/// Workers for tasks and who has tasks: carries out what Lending decides, and says it to the owners of both nodes. What
/// owners, and workers that are lent, say to each other goes through here. Sans-I/O; owned by the router.
class Loans {
 public:
  Loans(Here& here, LocalWorkers& workers)
      : here_(here), workers_(workers), lending_({.node = here.options.node, .has = here.options.has}) {}

  void at(Instant now) { lending_.at(now); }
  void on_wants(const Wants& wants, NodeId from);
  void on_loan(Loan loan);  ///< Of another node, to an owner here.
  void on_push(PushTask push, NodeId from);
  void on_signal(Signal signal, NodeId from);  ///< To a worker of this node.
  /// Of a worker that is lent to the task's owner, or of one that another node has lent.
  void on_result(CallResult result, const std::string& from);
  void on_worker_ready(WorkerId worker);
  void on_worker_gone(WorkerId worker, const LocalWorkers::Worker& gone, const std::string& how,
                      const std::string& log);
  void on_waits(WorkerId worker, bool waits) { lending_.on_waits(worker, waits); }
  void on_node(NodeId node, const Capacity& has);
  void on_node_lost(NodeId node, const Error& reason);
  /// What was lent to it ends: nobody can say what it does.
  void on_owner_gone(const Lending::Owner& owner, const std::string& root);
  void end_root_if_unused(const std::string& root);
  /// Does what Lending decides now, where the above do not themselves.
  void dispatch();
  /// Tells who has waited for a worker for long.
  void tick();

  const Lending& lending() const { return lending_; }
  void add_to(WorkerView& view) const;

 private:
  bool is_lent_to(WorkerId worker, const Lending::Owner& owner) const;
  void refuse(const Lending::Lent& wanted, Error error) const;
  void give_up(const std::string& root, const Error& error);
  void tell_gone(const Lending::Lent& lent, WorkerId worker, Error reason) const;

  Here& here_;
  LocalWorkers& workers_;
  Lending lending_;
  std::map<std::string, std::set<NodeId>> asked_;  // By root: nodes that owners of it have asked for workers.
};

}  // namespace paceline::actors::router
