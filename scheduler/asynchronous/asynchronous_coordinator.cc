#include "scheduler/asynchronous/asynchronous_coordinator.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace paceline::scheduler {

AsynchronousCoordinator::AsynchronousCoordinator(Workplace& work)
    : OwnPaceCoordinator(work), evaluated_{work_.job.first.value - 1} {}

// An iteration
// ------------------------------------------------------------------------------------------------------------

/// The models depend on the order in which workers arrive and leave and messages come, and on nothing else that is told
/// here.
void AsynchronousCoordinator::step(const Decision& d) {
  const Instant now = work_.now();
  if (d.kind == Decision::Kind::arrived) return arrived(d.rank, d.version, d.took, now);
  if (d.kind != Decision::Kind::exchanged) return OwnPaceCoordinator::step(d);
  auto& waiting = exchanged_[{d.node, d.rank, static_cast<Phase>(d.group)}];
  if (waiting.empty()) return;
  auto [message, bulk] = std::move(waiting.front());
  waiting.pop_front();
  on_exchange(d.node, message, std::move(bulk), now);
  work_.averagings.start(now);
}

void AsynchronousCoordinator::arrived(Rank rank, Version t, Duration compute, Instant now) {
  Member* const member = work_.windows.living(rank);
  if (!member) return;
  if (t < work_.job.first) {
    const auto start = workers_.contains(rank) ? std::nullopt : member->window.seal();
    if (!start) return;
    const auto data = member->window.data(*start);
    workers_[rank] = {work_.job.first, std::make_shared<Bytes>(data.begin(), data.end()), {}, true, now};
    member->window.unseal(memory::Window::Unseal::keep);
    on_start(rank, now);
    begin(rank, now);
  } else if (const auto it = workers_.find(rank); it != workers_.end() && it->second.computes) {
    const auto buffer = on_published(rank, t, compute);
    if (!buffer) return;
    Worker& w = it->second;
    w.t = t;
    w.published = *buffer;
    w.computes = false;
    on_step(rank, w, now);
  }
  work_.averagings.start(now);
}

void AsynchronousCoordinator::add_result(Rank rank, collective::Reduction& to) {
  Member* const member = work_.windows.living(rank);
  if (!member) return;
  const Worker& w = workers_.at(rank);
  const auto buffer = work_.begin_result(rank, *member, w.t);
  if (!buffer) return;
  to.outputs.push_back({member->window.data(*buffer).data(), 1.0});
  to.outputs.push_back({w.taken->data(), 1.0});
}

void AsynchronousCoordinator::deliver(Rank rank, Instant now) {
  Member* const member = work_.windows.living(rank);
  if (!member) return;
  member->window.unseal(memory::Window::Unseal::recycle);
  member->window.deliver();
  Worker& w = workers_.at(rank);
  w.computes = true;
  w.since = now;
  finish(rank, w.t, now);
}

// Means of all models
// -----------------------------------------------------------------------------------------------------

void AsynchronousCoordinator::count_iteration(std::size_t workers) {
  iterations_ += 1 / static_cast<double>(std::max<std::size_t>(1, workers));
  const Version v{work_.job.first.value - 1 + static_cast<std::int64_t>(std::floor(iterations_ + 1e-9))};
  if (v <= evaluated_) return;
  evaluated_ = v;
  if (!work_.view.leads() || !is_due(v) || v >= last() || endings_.frozen()) return;
  for (const NodeId node : work_.view.others())
    send_exchange(node, {.phase = Phase::GATHER, .rank = Rank{0}, .version = v});
  gather(v, false);
}

/// This node's part, as it is when all that was submitted before is done.
void AsynchronousCoordinator::gather(Version v, bool at_end) {
  const auto sum = std::make_shared<std::shared_ptr<PooledBytes>>();
  const auto models = std::make_shared<std::vector<std::shared_ptr<Bytes>>>();
  const auto prepare = [this, sum, models] {
    *models = own_models();
    auto r = work_.windows.reduction();
    for (const auto& model : *models) r.inputs.push_back(model->data());
    if (models->empty()) return r;
    *sum = work_.pool.get(work_.windows.bytes());
    r.outputs.push_back({(*sum)->data(), 1.0});
    return r;
  };
  const auto give = [this, v, at_end, sum, models](Instant now) {
    if (!at_end && v >= last()) return;  // A stop has come in between.
    means_.give_sum(v, *sum ? piece_of(*sum) : Piece{}, static_cast<double>(models->size()), now);
  };
  work_.averagings.add({prepare, give}, {});
}

void AsynchronousCoordinator::on_last(Rank rank, Instant) {
  ended_.insert(rank);
  look_at_end();
}

void AsynchronousCoordinator::look_at_end() {
  const auto ranks = living_ranks();
  const auto ended = [this](Rank rank) { return ended_.contains(rank); };
  if (!is_settled() || gathered_end_) return;
  if (!told_ && std::all_of(ranks.begin(), ranks.end(), ended)) {
    told_ = true;
    for (const NodeId node : work_.view.others()) send_exchange(node, {.phase = Phase::DONE, .rank = Rank{0}});
  }
  const auto nodes = work_.view.others();
  if (!told_ || !std::all_of(nodes.begin(), nodes.end(), [this](NodeId node) { return done_.contains(node); })) return;
  gathered_end_ = true;
  gather(last(), true);
}

void AsynchronousCoordinator::gather_end_again() {
  if (gathered_end_ && !means_.has_end() && means_.lacks_all(last())) gather(last(), true);
}

// Others
// ------------------------------------------------------------------------------------------------------------------

void AsynchronousCoordinator::send_exchange(NodeId to, const Message& message, Piece bulk) {
  wire::Message wire;
  auto body = wire.root().initExchange();
  body.setJob(work_.job.job.value);
  body.setPhase(message.phase);
  body.setRank(message.rank.value);
  body.setPartner(message.partner.value);
  body.setVersion(message.version.value);
  auto applied = body.initApplied(static_cast<unsigned>(message.applied.size()));
  for (unsigned i = 0; i < applied.size(); ++i) applied.set(i, message.applied[i].value);
  work_.send(to, wire, std::move(bulk));
}

void AsynchronousCoordinator::on_strategy_message(NodeId from, const wire::Envelope::Reader& message,
                                                  std::vector<std::byte> bulk, Instant now) {
  if (!message.isExchange()) return;
  const auto exchange = message.getExchange();
  if (!bulk.empty() && !work_.has_right_size(from, "a model", bulk.size())) return;
  const Version v{exchange.getVersion()};
  switch (exchange.getPhase()) {
    case Phase::GATHER: gather(v, false); break;
    case Phase::DONE:
      done_.insert(from);
      look_at_end();
      break;
    default: {
      Message told{exchange.getPhase(), Rank{exchange.getRank()}, Rank{exchange.getPartner()}, v};
      for (const std::int64_t applied : exchange.getApplied()) told.applied.emplace_back(applied);
      exchanged_[{from, told.rank, told.phase}].push_back({told, std::make_shared<Bytes>(std::move(bulk))});
      work_.chronicle.hear({.kind = Decision::Kind::exchanged,
                            .rank = told.rank,
                            .node = from,
                            .group = static_cast<std::int32_t>(told.phase)},
                           now);
    }
  }
  work_.averagings.start(now);
}

void AsynchronousCoordinator::leave(Rank, Instant now) {
  look_at_end();
  work_.averagings.start(now);
}

void AsynchronousCoordinator::on_node_lost(NodeId, Instant) { look_at_end(); }

bool AsynchronousCoordinator::is_awaited(Rank rank) const {
  return (!ended_.empty() || !done_.empty()) && !ended_.contains(rank);
}

/// nullopt: it waits for others, and not they for it.
std::optional<Instant> AsynchronousCoordinator::awaited_since(Rank rank) const {
  const auto it = workers_.find(rank);
  if (means_.is_evaluating(rank) || !is_awaited(rank) || (it != workers_.end() && !it->second.computes)) return {};
  return it == workers_.end() ? started() : it->second.since;
}

/// Who is silent beyond patience while others wait for it leaves.
void AsynchronousCoordinator::look(Instant now) {
  for (const Rank rank : living_ranks()) {
    const auto since = awaited_since(rank);
    if (!since) continue;
    const auto it = workers_.find(rank);
    leave_if_awaited_too_long(rank, it == workers_.end() ? work_.job.first : it->second.t, *since, now);
  }
}

std::optional<Instant> AsynchronousCoordinator::core_deadline() const {
  std::optional<Instant> next;
  for (const Rank rank : living_ranks()) {
    const auto since = awaited_since(rank);
    if (!since) continue;
    next = earlier(next, awaited_until(rank, *since));
  }
  return next;
}

}  // namespace paceline::scheduler
