#include "actors/router/lending.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace paceline::actors {
namespace {

/// Workers of this shape that there is room for, as far as one shows at a time.
std::size_t how_many(const Capacity& room, const Shape& shape) {
  constexpr double kMax = 64;  // Of those that need nothing.
  const double by_cpus = shape.cpus > 0 ? (room.cpus + 1e-6) / shape.cpus : kMax;
  const double by_memory = shape.memory > 0 ? room.memory / static_cast<double>(shape.memory) : kMax;
  return static_cast<std::size_t>(std::max(0.0, std::min(by_cpus, by_memory)));
}

}  // namespace

std::uint32_t Lending::Want::have() const {
  std::uint32_t all = here;
  for (const auto& [node, count] : there) all += count;
  return all;
}

/// The nodes that a task for this one, or for any, may run on.
std::vector<Capacity> Lending::candidates(NodeId node) const {
  std::vector<Capacity> all;
  if (node.value < 0 || node == options_.node) all.push_back(options_.has);
  for (const auto& [other, has] : nodes_)
    if (node.value < 0 || node == other) all.push_back(has);
  return all;
}

/// What it asks for, in words, if no node has it.
std::optional<Error> Lending::never_fits(const Shape& shape) const {
  const auto nodes = candidates(shape.node);
  const Capacity needs = needs_of(shape);
  Capacity most;
  for (const Capacity& node : nodes) {
    if (node.has_room_for(needs)) return std::nullopt;
    most = {std::max(most.cpus, node.cpus), std::max(most.memory, node.memory)};
  }
  if (most.has_room_for(needs))
    return Error{ErrorKind::infeasible,
                 "a task needs " + to_string(needs) + ", and no node has both: ask for less of one of them"};
  const bool lacks_cpus = !most.has_room_for({needs.cpus, 0});
  const auto lacking = [&](const Capacity& of) {
    return to_string(lacks_cpus ? Capacity{of.cpus, 0} : Capacity{0, of.memory});
  };
  const bool one = shape.node.value >= 0 || nodes_.empty();
  const std::string has = one ? "node " + to_string(shape.node.value >= 0 ? shape.node : options_.node) + " has "
                              : std::string("no node has more than ");
  return Error{ErrorKind::infeasible,
               "a task needs " + lacking(needs) + ", but " + has + lacking(most) + ": ask for no more than that"};
}

Capacity Lending::free() const { return {options_.has.cpus - used_.cpus, options_.has.memory - used_.memory}; }

double Lending::share(const Capacity& part) const {
  return std::max(part.cpus / options_.has.cpus, part.memory / options_.has.memory);
}

Result<void> Lending::on_wants(const Owner& owner, const std::string& root, const Shape& shape, std::uint32_t workers) {
  if (!std::isfinite(shape.cpus) || shape.cpus < 0)
    return fail(ErrorKind::invalid, "a task needs a finite number of cpus, at least 0");
  if (workers > 0 && shape.node.value >= 0 && shape.node != options_.node && !nodes_.contains(shape.node))
    return fail(ErrorKind::infeasible, "a task is to run on node " + to_string(shape.node) +
                                           ", which this cluster does not have: paceline status lists those there are");
  if (workers > 0)
    if (auto refused = never_fits(shape)) return tl::unexpected(*std::move(refused));
  Borrower& borrower = owners_[owner];
  borrower.root = root;
  Want& want = borrower.wants[shape];
  if (owner.node == options_.node && workers < want.workers) want.lowered = true;
  if (want.missing() == 0) borrower.turn = ++turns_;
  want.workers = workers;
  want.recalled = false;
  return {};
}

Lending::Want* Lending::want_of(const Lent& lent) {
  const auto owner = owners_.find(lent.owner);
  return owner == owners_.end() ? nullptr : &owner->second.wants[lent.shape];
}

/// Of one that is lent.
Capacity Lending::held_by(const Worker& worker) {
  const Capacity needs = needs_of(worker.lent->shape);
  return worker.waits ? Capacity{0, needs.memory} : needs;
}

void Lending::take(const Owner& owner, const Capacity& what, double sign) {
  used_.add(what, sign);
  if (const auto borrower = owners_.find(owner); borrower != owners_.end()) borrower->second.holds.add(what, sign);
}

std::optional<Lending::Ask> Lending::on_returned(const Owner& owner, WorkerId id) {
  if (const auto there = elsewhere_.find(id); there != elsewhere_.end() && there->second.owner == owner) {
    const Lent lent = *on_gone_elsewhere(id);
    Ask word{node_of(id), owner.name, lent.shape, 0};
    if (Want* const want = want_of(lent)) {
      const auto left = want->there.find(word.node);
      word.workers = left == want->there.end() ? 0 : left->second;
      want->asked[word.node] = word.workers;
    }
    return word;
  }
  const auto worker = workers_.find(id);
  if (worker == workers_.end() || !worker->second.lent || worker->second.lent->owner != owner) return std::nullopt;
  take(owner, held_by(worker->second), -1);
  worker->second.waits = false;
  const Lent lent = *std::exchange(worker->second.lent, std::nullopt);
  if (Want* const want = want_of(lent)) {
    --want->here;
    want->recalled = false;
    owners_.at(owner).turn = ++turns_;
  }
  idle_[worker->second.root].push_back(id);
  return std::nullopt;
}

void Lending::drop_unused() {
  for (auto& [owner, borrower] : owners_) {
    std::erase_if(borrower.wants, [](const auto& entry) {
      const Want& want = entry.second;
      return want.workers == 0 && want.have() == 0 && !want.lowered;
    });
  }
  std::erase_if(owners_, [](const auto& entry) { return entry.second.wants.empty(); });
}

std::vector<WorkerId> Lending::on_owner_gone(const Owner& owner) {
  std::vector<WorkerId> lent;
  for (const auto& [id, worker] : workers_)
    if (worker.lent && worker.lent->owner == owner) lent.push_back(id);
  std::erase_if(elsewhere_, [&](const auto& entry) { return entry.second.owner == owner; });
  for (const WorkerId worker : lent) (void)on_worker_gone(worker);
  owners_.erase(owner);
  return lent;
}

std::vector<Lending::Owner> Lending::owners_of(const std::string& root) const {
  std::vector<Owner> owners;
  for (const auto& [owner, borrower] : owners_)
    if (borrower.root == root) owners.push_back(owner);
  return owners;
}

std::vector<Lending::Owner> Lending::owners_on(NodeId node) const {
  std::vector<Owner> owners;
  for (const auto& [owner, borrower] : owners_)
    if (owner.node == node) owners.push_back(owner);
  return owners;
}

std::vector<Lending::Lent> Lending::give_up(const std::string& root) {
  std::vector<Lent> missing;
  for (auto& [owner, borrower] : owners_) {
    if (borrower.root != root) continue;
    for (auto& [shape, want] : borrower.wants) {
      if (want.missing() == 0 || !may_be_here(shape)) continue;
      missing.push_back({owner, shape});
      want.workers = want.have();
    }
  }
  return missing;
}

void Lending::on_started(WorkerId worker, const std::string& root) { workers_.emplace(worker, Worker{root}); }

void Lending::on_ready(WorkerId id) {
  const auto worker = workers_.find(id);
  if (worker == workers_.end() || std::exchange(worker->second.ready, true)) return;
  idle_[worker->second.root].push_back(id);
}

std::optional<Lending::Lent> Lending::on_worker_gone(WorkerId id) {
  const auto worker = workers_.find(id);
  if (worker == workers_.end()) return std::nullopt;
  const Worker gone = std::move(worker->second);
  workers_.erase(worker);
  if (const auto idle = idle_.find(gone.root); idle != idle_.end()) {
    std::erase(idle->second, id);
    if (idle->second.empty()) idle_.erase(idle);
  }
  if (!gone.lent) return std::nullopt;
  take(gone.lent->owner, held_by(gone), -1);
  if (Want* const want = want_of(*gone.lent)) {
    --want->here;
    want->recalled = false;
  }
  return gone.lent;
}

void Lending::on_waits(WorkerId id, bool waits) {
  const auto worker = workers_.find(id);
  if (worker == workers_.end() || !worker->second.lent) return;
  if (std::exchange(worker->second.waits, waits) != waits)
    take(worker->second.lent->owner, {worker->second.lent->shape.cpus, 0}, waits ? -1 : 1);
}

void Lending::on_node(NodeId node, const std::optional<Capacity>& has) {
  if (has) {
    nodes_[node] = *has;
    return;
  }
  nodes_.erase(node);
  std::erase_if(elsewhere_, [&](const auto& entry) { return node_of(entry.first) == node; });
  for (auto& [owner, borrower] : owners_) {
    for (auto& [shape, want] : borrower.wants) {
      want.there.erase(node);
      want.asked.erase(node);
    }
  }
}

void Lending::on_lent_elsewhere(const Owner& owner, const std::string& root, const Shape& shape, WorkerId worker) {
  if (!elsewhere_.emplace(worker, Lent{owner, shape}).second) return;
  owners_[owner].root = root;  // It may have wanted nothing any more.
  ++owners_[owner].wants[shape].there[node_of(worker)];
}

std::vector<std::pair<WorkerId, Lending::Lent>> Lending::lent_elsewhere(NodeId node) const {
  std::vector<std::pair<WorkerId, Lent>> lent;
  for (const auto& [worker, its] : elsewhere_)
    if (node_of(worker) == node) lent.emplace_back(worker, its);
  return lent;
}

std::optional<Lending::Lent> Lending::on_gone_elsewhere(WorkerId worker) {
  const auto there = elsewhere_.extract(worker);
  if (there.empty()) return std::nullopt;
  if (Want* const want = want_of(there.mapped())) {
    const auto count = want->there.find(node_of(worker));
    if (count != want->there.end() && --count->second == 0) want->there.erase(count);
  }
  return there.mapped();
}

const Lending::Lent* Lending::lent(WorkerId worker) const {
  const auto found = workers_.find(worker);
  return found == workers_.end() || !found->second.lent ? nullptr : &*found->second.lent;
}

std::optional<Lending::Decision> Lending::next() {
  // Who has least comes first.
  std::vector<std::pair<const Owner, Borrower>*> order;
  for (auto& entry : owners_) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [this](const auto* a, const auto* b) {
    return std::pair(share(a->second.holds), a->second.turn) < std::pair(share(b->second.holds), b->second.turn);
  });
  for (auto* entry : order) {
    auto& [owner, borrower] = *entry;
    for (auto& [shape, want] : borrower.wants) {
      if (want.missing() > 0 && may_be_here(shape)) {
        if (auto decision = serve(owner, borrower, shape, want)) return decision;
      }
      if (owner.node == options_.node) {
        if (auto decision = ask_others(owner, shape, want)) return decision;
      }
    }
  }
  note_lacks();
  drop_unused();
  return std::nullopt;
}

std::optional<Lending::Decision> Lending::serve(const Owner& owner, const Borrower& borrower, const Shape& shape,
                                                Want& want) {
  if (!fits(shape)) return recall_for(owner, borrower, shape);
  if (const auto idle = idle_.find(borrower.root); idle != idle_.end()) {
    const WorkerId worker = idle->second.back();
    idle->second.pop_back();
    if (idle->second.empty()) idle_.erase(idle);
    workers_.at(worker).lent = Lent{owner, shape};
    workers_.at(worker).since = now_;
    ++want.here;
    take(owner, needs_of(shape), 1);
    return Lend{worker, owner, shape};
  }
  std::size_t starting = 0, running = 0, waiting = 0;
  for (const auto& [id, worker] : workers_) {
    if (worker.root != borrower.root) continue;
    ++(worker.waits ? waiting : running);
    starting += worker.ready ? 0 : 1;
  }
  std::size_t wanted = 0;
  for (const auto& [other, its] : owners_) {
    if (its.root != borrower.root) continue;
    for (const auto& [other_shape, other_want] : its.wants)
      wanted += may_be_here(other_shape) ? other_want.missing() : 0;
  }
  wanted = std::min<std::size_t>(wanted, how_many(free(), shape));
  if (starting >= std::max<std::size_t>(wanted, 1) || running >= options_.workers_max ||
      waiting >= options_.waiting_max)
    return std::nullopt;
  return Start{borrower.root, owner};
}

/// Moving a worker has to leave its old owner no less than the new one gets, but for one that has nothing: that takes
/// turns.
std::optional<Lending::Decision> Lending::recall_for(const Owner& needy, const Borrower& borrower, const Shape& shape) {
  const Capacity needs = needs_of(shape);
  const bool lacks_cpus = !free().has_room_for({needs.cpus, 0});
  const auto lacking = [lacks_cpus](const Capacity& part) { return lacks_cpus ? part.cpus : part.memory; };
  std::pair<const Owner, Borrower>* most = nullptr;
  for (auto& entry : owners_) {
    if (entry.first == needy || lacking(entry.second.holds) <= 0) continue;
    if (most == nullptr || lacking(entry.second.holds) > lacking(most->second.holds)) most = &entry;
  }
  if (most == nullptr) return std::nullopt;
  for (auto& [its, want] : most->second.wants) {
    if (want.here == 0 || lacking(needs_of(its)) <= 0) continue;
    if (want.recalled) return std::nullopt;
    const double left = share(most->second.holds) - share(needs_of(its));
    const bool fair = left >= share(borrower.holds) + share(needs) - 1e-6;
    if (!fair && share(borrower.holds) > 0) continue;
    want.recalled = true;
    return Recall{most->first, its};
  }
  return std::nullopt;
}

std::optional<Lending::Decision> Lending::ask_others(const Owner& owner, const Shape& shape, Want& want) {
  const bool full = !may_be_here(shape) || !fits(shape);
  for (const auto& [node, has] : nodes_) {
    if (shape.node.value >= 0 && shape.node != node) continue;
    if (!has.has_room_for(needs_of(shape))) continue;
    const auto there = want.there.find(node);
    const std::uint32_t have = there == want.there.end() ? 0 : there->second;
    const auto most = static_cast<std::uint32_t>(how_many(has, shape));
    const std::uint32_t target = have + (full ? std::min(want.missing(), std::max(most, have) - have) : 0);
    auto& asked = want.asked[node];
    if (target > asked || (want.lowered && target < asked)) {
      asked = target;
      return Ask{node, owner.name, shape, target};
    }
  }
  want.lowered = false;
  return std::nullopt;
}

}  // namespace paceline::actors
