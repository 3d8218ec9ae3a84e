#include "scheduler/asynchronous/asynchronous_workers.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace paceline::scheduler {

AsynchronousWorkers::AsynchronousWorkers(Workplace& work, OwnPace& pace, Strategy& strategy)
    : work_(work), pace_(pace), strategy_(strategy), exchanged_(work.chronicle), evaluated_{work.job.first.value - 1} {}

AsynchronousWorkers::Worker* AsynchronousWorkers::find(Rank rank) {
  const auto it = workers_.find(rank);
  return it == workers_.end() ? nullptr : &it->second;
}

// An iteration

/// The models depend on the order in which workers arrive and leave and messages come, and on nothing else that is told
/// here.
void AsynchronousWorkers::step(const Decision& d) {
  const Instant now = work_.now();
  if (d.kind == Decision::Kind::arrived) return on_arrival(d.rank, d.version, d.took, now);
  if (d.kind != Decision::Kind::exchanged) return pace_.step(d);
  auto told = exchanged_.take(d);
  if (!told) return;
  strategy_.on_exchange(d.node, told->message, std::move(told->bulk), now);
  work_.averagings.start(now);
}

void AsynchronousWorkers::on_arrival(Rank rank, Version t, Duration compute, Instant now) {
  if (pace_.returns(rank)) {
    if (pace_.comes_in(rank, t, has_ended())) come_in(rank, t, now);
  } else if (!work_.windows.living(rank)) {
    return;
  } else if (t < work_.job.first) {
    if (!workers_.contains(rank)) begin(rank, t, now);
  } else if (const auto it = workers_.find(rank); it != workers_.end() && it->second.computes) {
    const auto buffer = pace_.on_published(rank, t, compute);
    if (!buffer) return;
    Worker& w = it->second;
    w.t = t;
    w.published = *buffer;
    w.computes = false;
    strategy_.on_step(rank, w, now);
  }
  work_.averagings.start(now);
}

/// Where nobody was left who had a model there was no end.
bool AsynchronousWorkers::has_ended() const {
  return gathered_end_ && (pace_.means.has_end() || !pace_.means.lacks_all(pace_.last()));
}

/// Others, which may know that this node's workers were all done, wait for this one.
void AsynchronousWorkers::come_in(Rank rank, Version t, Instant now) {
  ended_.erase(rank);
  told_ = gathered_end_ = false;
  for (const NodeId node : work_.view.others()) send(node, {.phase = Phase::BACK, .rank = rank, .version = t});
  strategy_.on_back(rank, t);
  begin(rank, t, now);
}

/// From what it has published, which is the model after `own`.
void AsynchronousWorkers::begin(Rank rank, Version own, Instant now) {
  auto& window = work_.windows.at(rank).window;
  const auto start = window.seal();
  if (!start) return;
  const auto data = window.data(*start);
  workers_[rank] = {own.next(), std::make_shared<Bytes>(data.begin(), data.end()), {}, true, now};
  window.unseal(memory::Window::Unseal::keep);
  strategy_.on_start(rank, now);
  pace_.begin(rank, own, now);
}

void AsynchronousWorkers::add_result(Rank rank, collective::Reduction& to) {
  auto* const member = work_.windows.living(rank);
  if (!member) return;
  const Worker& w = workers_.at(rank);
  const auto buffer = work_.begin_result(rank, *member, w.t);
  if (!buffer) return;
  to.outputs.push_back({member->window.data(*buffer).data(), 1.0});
  to.outputs.push_back({w.taken->data(), 1.0});
}

void AsynchronousWorkers::deliver(Rank rank, Instant now) {
  auto* const member = work_.windows.living(rank);
  if (!member) return;
  member->window.unseal(memory::Window::Unseal::recycle);
  member->window.deliver();
  Worker& w = workers_.at(rank);
  w.computes = true;
  w.since = now;
  pace_.finish(rank, w.t, now);
}

// Means of all models

void AsynchronousWorkers::count_iteration(std::size_t workers) {
  iterations_ += 1 / static_cast<double>(std::max<std::size_t>(1, workers));
  const Version v{work_.job.first.value - 1 + static_cast<std::int64_t>(std::floor(iterations_ + 1e-9))};
  if (v <= evaluated_) return;
  evaluated_ = v;
  if (!work_.view.leads() || !pace_.is_due(v) || v >= pace_.last() || pace_.endings.frozen()) return;
  for (const NodeId node : work_.view.others()) send(node, {.phase = Phase::GATHER, .rank = Rank{0}, .version = v});
  gather(v, false);
}

/// This node's part, as it is when all that was submitted before is done.
void AsynchronousWorkers::gather(Version v, bool at_end) {
  const auto sum = std::make_shared<std::shared_ptr<PooledBytes>>();
  const auto models = std::make_shared<std::vector<std::shared_ptr<Bytes>>>();
  const auto contents = std::make_shared<Contents>();
  const auto prepare = [this, sum, models, contents] {
    *models = strategy_.own_models();
    *contents = strategy_.own_contents();
    auto r = work_.windows.reduction();
    for (const auto& model : *models) r.inputs.push_back(model->data());
    if (models->empty()) return r;
    *sum = work_.pool.get(work_.windows.bytes());
    r.outputs.push_back({(*sum)->data(), 1.0});
    return r;
  };
  const auto give = [this, v, at_end, sum, models, contents](Instant now) {
    if (!at_end && v >= pace_.last()) return;  // A stop has come in between.
    pace_.means.give_sum(v, *sum ? piece_of(*sum) : Piece{}, static_cast<double>(models->size()), *contents, now);
  };
  work_.averagings.add({prepare, give}, {});
}

void AsynchronousWorkers::on_last(Rank rank) {
  ended_.insert(rank);
  look_at_end();
}

void AsynchronousWorkers::look_at_end() {
  const auto ranks = pace_.living_ranks();
  const auto ended = [this](Rank rank) { return ended_.contains(rank); };
  if (!strategy_.is_settled() || gathered_end_) return;
  if (!told_ && std::all_of(ranks.begin(), ranks.end(), ended)) {
    told_ = true;
    for (const NodeId node : work_.view.others()) send(node, {.phase = Phase::DONE, .rank = Rank{0}});
  }
  const auto nodes = work_.view.others();
  if (!told_ || !std::all_of(nodes.begin(), nodes.end(), [this](NodeId node) { return done_.contains(node); })) return;
  gathered_end_ = true;
  gather(pace_.last(), true);
}

void AsynchronousWorkers::gather_end_again() {
  if (gathered_end_ && !pace_.means.has_end() && pace_.means.lacks_all(pace_.last())) gather(pace_.last(), true);
}

// Others

void AsynchronousWorkers::send(NodeId to, const Message& message, Piece bulk) {
  wire::Message wire;
  auto body = wire.root().initExchange();
  body.setJob(work_.job.job.value);
  body.setPhase(message.phase);
  body.setRank(message.rank.value);
  body.setPartner(message.partner.value);
  body.setVersion(message.version.value);
  auto applied = body.initApplied(static_cast<unsigned>(message.applied.size()));
  for (unsigned i = 0; i < applied.size(); ++i) applied.set(i, message.applied[i].value);
  write(message.contents, body.initContents(static_cast<unsigned>(message.contents.size())));
  work_.send(to, wire, std::move(bulk));
}

void AsynchronousWorkers::on_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                     Instant now) {
  if (pace_.on_message(from, message, bulk, now) || !message.isExchange()) return;
  if (!bulk.empty() && !work_.has_right_size(from, "a model", bulk.size())) return;
  on_exchange(from, message.getExchange(), std::move(bulk), now);
  work_.averagings.start(now);
}

void AsynchronousWorkers::on_exchange(NodeId from, const wire::Exchange::Reader& exchange, std::vector<std::byte> bulk,
                                      Instant now) {
  const Version v{exchange.getVersion()};
  if (exchange.getPhase() == Phase::GATHER) return gather(v, false);
  if (exchange.getPhase() == Phase::DONE) {
    done_.insert(from);
    return look_at_end();
  }
  if (exchange.getPhase() == Phase::BACK) {
    done_.erase(from);
    if (!has_ended()) gathered_end_ = false;
  }
  Message told{exchange.getPhase(), Rank{exchange.getRank()}, Rank{exchange.getPartner()}, v};
  for (const std::int64_t applied : exchange.getApplied()) told.applied.emplace_back(applied);
  told.contents = contents_of(exchange.getContents());
  exchanged_.hear(from, told.rank, static_cast<std::int32_t>(told.phase),
                  {told, std::make_shared<Bytes>(std::move(bulk))}, now);
}

void AsynchronousWorkers::leave(Instant now) {
  look_at_end();
  work_.averagings.start(now);
}

/// nullopt: it waits for others, and not they for it.
std::optional<Instant> AsynchronousWorkers::awaited_since(Rank rank) const {
  const auto it = workers_.find(rank);
  if (pace_.means.is_evaluating(rank) || (it != workers_.end() && !it->second.computes)) return {};
  const bool keeps_from_ending = (!ended_.empty() || !done_.empty()) && !ended_.contains(rank);
  if (!keeps_from_ending && !strategy_.holds_others_up(rank)) return {};
  return it == workers_.end() ? pace_.started() : it->second.since;
}

/// Who is silent beyond patience while others wait for it leaves.
void AsynchronousWorkers::look(Instant now) {
  for (const Rank rank : pace_.living_ranks()) {
    const auto since = awaited_since(rank);
    if (!since) continue;
    const auto it = workers_.find(rank);
    pace_.leave_if_awaited_too_long(rank, it == workers_.end() ? work_.job.first : it->second.t, *since, now);
  }
}

std::optional<Instant> AsynchronousWorkers::core_deadline() const {
  std::optional<Instant> next;
  for (const Rank rank : pace_.living_ranks()) {
    const auto since = awaited_since(rank);
    if (!since) continue;
    next = earlier(next, pace_.awaited_until(rank, *since));
  }
  return next;
}

}  // namespace paceline::scheduler
