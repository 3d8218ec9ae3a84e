#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/protocol.h"

namespace paceline::actors {

/// Which of a node's workers for tasks are lent to whom. Sans-I/O; owned by the router, which carries out what next()
/// says. Owners say of how many workers they have use; what is free goes to who has least. Where nothing is, who has
/// most is asked for one back as soon as somebody has less or nothing, and owners of this node ask other nodes, too.
///
/// A worker belongs to a root (the driver on whose behalf it was started) and is lent to owners of that root only. Its
/// cpus and memory are those of the shape that it is lent for; the cpus are free while its task waits for a result.
/// Who has most is who holds the largest part of the node, of its cpus or of its memory.
class Lending {
 public:
  struct Options {
    NodeId node;
    Capacity has{1, 0x1p60};
    std::size_t workers_max = 64;    ///< Of one root. Those whose task waits do not count, up to a bound of their own:
    std::size_t waiting_max = 4096;  ///< without them nested tasks would wait for a worker for ever.
    Duration patience = std::chrono::seconds(10);  ///< Of an owner that gets no worker at all, before it is told why.
  };
  /// A process, and the node whose agent it is connected to.
  struct Owner {
    std::string name;
    NodeId node;
    auto operator<=>(const Owner&) const = default;
  };

  struct Lend {
    WorkerId worker;
    Owner owner;
    Shape shape;
  };
  /// One worker of this shape.
  struct Recall {
    Owner owner;
    Shape shape;
  };
  /// The router tells the new worker's id with on_started().
  struct Start {
    std::string root;
    Owner owner;
  };
  /// Another node is to hear of how many of its workers an owner of this one has use.
  struct Ask {
    NodeId node;
    std::string owner;
    Shape shape;
    std::uint32_t workers = 0;
  };
  using Decision = std::variant<Lend, Recall, Start, Ask>;

  explicit Lending(Options options) : options_(options) {}

  /// What follows happens now.
  void at(Instant now) { now_ = now; }

  /// `invalid`, `infeasible`: no node has what the shape asks for.
  Result<void> on_wants(const Owner& owner, const std::string& root, const Shape& shape, std::uint32_t workers);
  /// Nothing if it is not lent to this owner. Of another node's: what that node is to hear.
  std::optional<Ask> on_returned(const Owner& owner, WorkerId worker);
  /// Workers of this node that were lent to it; nobody says what they do, so that they have to end.
  std::vector<WorkerId> on_owner_gone(const Owner& owner);
  std::vector<Owner> owners_of(const std::string& root) const;
  std::vector<Owner> owners_on(NodeId node) const;

  void on_started(WorkerId worker, const std::string& root);
  void on_ready(WorkerId worker);
  struct Lent {
    Owner owner;
    Shape shape;
  };
  /// Whom it was lent to.
  std::optional<Lent> on_worker_gone(WorkerId worker);
  void on_waits(WorkerId worker, bool waits);
  /// A node that others may lend workers of, by what it has; nothing: not any more. What it had lent is gone.
  void on_node(NodeId node, const std::optional<Capacity>& has);
  /// A worker of another node was lent to an owner of this one, or is its no longer.
  void on_lent_elsewhere(const Owner& owner, const std::string& root, const Shape& shape, WorkerId worker);
  std::vector<std::pair<WorkerId, Lent>> lent_elsewhere(NodeId node) const;
  std::size_t elsewhere() const { return elsewhere_.size(); }
  std::optional<Lent> on_gone_elsewhere(WorkerId worker);

  /// What is to be done next; to be asked until there is nothing.
  std::optional<Decision> next();

  const Lent* lent(WorkerId worker) const;
  /// What owners of this root lack is wanted no more: workers for it cannot be had.
  std::vector<Lent> give_up(const std::string& root);
  const Capacity& used() const { return used_; }
  Capacity free() const;

  // For people (lending_views.cc)
  /// What an owner of this node has said that it has use of, and what it has.
  struct WantView {
    Owner owner;
    std::string root;
    Shape shape;
    std::uint32_t wanted = 0;          ///< Workers in all, as it says: up to twice as many as have use.
    std::uint32_t lent = 0;            ///< Of this node and others.
    std::optional<Instant> lacking{};  ///< Since when it has had fewer than it wants, if it has.
  };
  std::vector<WantView> wants() const;
  /// Workers of this node that an owner of any node holds something with.
  struct HoldView {
    Owner owner;
    std::size_t workers = 0;
    Capacity holds{};
    Instant since{};  ///< The first of them.
  };
  std::vector<HoldView> holds() const;
  /// Since when a worker is lent; nullopt: it is not.
  std::optional<Instant> lent_since(WorkerId worker) const;
  /// Wants of owners of this node that have had no worker for so long, each once while its owner has tasks of the
  /// shape.
  std::vector<WantView> take_starving(Instant now);
  /// When take_starving() may have some.
  std::optional<Instant> next_deadline() const { return next_starving_; }
  /// In a line: what keeps workers from it, and what would mend it.
  std::string why_none(const WantView& want, Instant now) const;

 private:
  struct Want {
    std::uint32_t workers = 0;                ///< In all.
    std::uint32_t here = 0;                   ///< Lent, of this node,
    std::map<NodeId, std::uint32_t> there{};  ///< and of others,
    std::map<NodeId, std::uint32_t> asked{};  ///< which have been asked for so many.
    bool lowered = false;                     ///< Since they were.
    bool recalled = false;                    ///< One was asked back.
    std::optional<Instant> lacking{};         ///< Since when some are missing,
    std::optional<Instant> starving{};        ///< and since when it has none, until its owner is told.
    bool told = false;                        ///< It was.
    std::uint32_t have() const;
    std::uint32_t missing() const { return workers > have() ? workers - have() : 0; }
  };
  struct Borrower {
    std::string root;
    std::map<Shape, Want> wants{};
    Capacity holds{};        ///< Of this node.
    std::uint64_t turn = 0;  ///< Of those that have as much, the lowest comes first.
  };
  struct Worker {
    std::string root;
    bool ready = false;
    bool waits = false;
    std::optional<Lent> lent{};
    Instant since{};  ///< It is.
  };

  bool may_be_here(const Shape& shape) const { return shape.node.value < 0 || shape.node == options_.node; }
  std::vector<Capacity> candidates(NodeId node) const;
  std::optional<Error> never_fits(const Shape& shape) const;
  bool fits(const Shape& shape) const { return free().has_room_for(needs_of(shape)); }
  double share(const Capacity& part) const;
  static Capacity held_by(const Worker& worker);
  void take(const Owner& owner, const Capacity& what, double sign);
  Want* want_of(const Lent& lent);
  void note_lacks();
  std::string why_none_here(const WantView& want, Instant now) const;
  void drop_unused();
  std::optional<Decision> serve(const Owner& owner, const Borrower& borrower, const Shape& shape, Want& want);
  std::optional<Decision> recall_for(const Owner& needy, const Borrower& borrower, const Shape& shape);
  std::optional<Decision> ask_others(const Owner& owner, const Shape& shape, Want& want);

  Options options_;
  Instant now_{};
  std::optional<Instant> next_starving_{};
  Capacity used_;
  std::uint64_t turns_ = 0;
  std::map<Owner, Borrower> owners_;
  std::map<WorkerId, Worker> workers_;
  std::map<std::string, std::vector<WorkerId>> idle_;  ///< Ready and not lent, by root; the last one is warm.
  std::map<WorkerId, Lent> elsewhere_;
  std::map<NodeId, Capacity> nodes_;  ///< Others.
};

}  // namespace paceline::actors
