#include "scheduler/asynchronous/pair_coordinator.h"

#include <algorithm>
#include <utility>

namespace paceline::scheduler {
namespace {

using Wire = wire::Exchange::Phase;

Wire to_wire(PairEngine::Phase phase) {
  switch (phase) {
    case PairEngine::Phase::ask: return Wire::ASK;
    case PairEngine::Phase::offer: return Wire::OFFER;
    case PairEngine::Phase::mean: return Wire::MEAN;
    case PairEngine::Phase::decline: break;
  }
  return Wire::DECLINE;
}

std::optional<PairEngine::Phase> from_wire(Wire phase) {
  switch (phase) {
    case Wire::ASK: return PairEngine::Phase::ask;
    case Wire::OFFER: return PairEngine::Phase::offer;
    case Wire::MEAN: return PairEngine::Phase::mean;
    case Wire::DECLINE: return PairEngine::Phase::decline;
    default: return std::nullopt;
  }
}

}  // namespace

PairCoordinator::PairCoordinator(Workplace& work, Partner partner)
    : Coordinator(work),
      partner_(std::move(partner)),
      pace_(work, *this, {.ends_apart = true, .returns = OwnPace::Return::at_once}),
      async_(work, pace_, *this),
      engine_({.self = work_.job.self, .node_of = work_.job.node_of}) {}

std::vector<std::shared_ptr<AsynchronousWorkers::Bytes>> PairCoordinator::own_models() const {
  std::vector<std::shared_ptr<Bytes>> models;
  for (const Rank rank : pace_.living_ranks())
    if (const auto it = models_.find(rank); it != models_.end()) models.push_back(it->second);
  return models;
}

Contents PairCoordinator::own_contents() const {
  Contents all;
  for (const Rank rank : pace_.living_ranks()) add(all, work_.ledger.model(rank));
  return all;
}

// Events

void PairCoordinator::on_start(Rank rank, Instant) {
  models_[rank] = std::make_shared<Bytes>(*async_.at(rank).taken);
  act(engine_.on_begun(rank));
}

/// Ends of averagings free models, so that the order of meetings depends on them too.
void PairCoordinator::step(const Decision& d) {
  switch (d.kind) {
    case Decision::Kind::averaged: return act(engine_.on_averaged(averaged_));
    case Decision::Kind::stepped: return act(engine_.on_stepped(d.rank));
    default: return async_.step(d);
  }
}

void PairCoordinator::on_step(Rank rank, Worker& w, Instant) {
  const Changes& changes = changes_[rank];
  work_.counters.count_staleness(changes.all - changes.when_taken);
  act(engine_.on_arrival(rank, partner_(rank, w.t)));
}

void PairCoordinator::on_exchange(NodeId from, const Message& message, std::shared_ptr<Bytes> bulk, Instant) {
  const auto phase = from_wire(message.phase);
  const PairEngine::Meeting meeting{message.rank, message.partner};
  const auto travels = phase == PairEngine::Phase::offer || phase == PairEngine::Phase::mean;
  if (!phase || bulk->empty() == travels) return;
  if (travels) work_.ledger.on_held(message.contents);
  if (phase == PairEngine::Phase::offer) visitors_[meeting.initiator] = {std::move(bulk), message.contents};
  if (phase == PairEngine::Phase::mean && work_.view.is_here(meeting.low()) &&
      work_.view.lives_on(meeting.high(), from)) {
    // A mean of all that is being made keeps what it reads.
    models_[meeting.low()] = std::move(bulk);
    work_.ledger.on_taken(meeting.low(), message.contents);
    if (meeting.low() != meeting.initiator) ++changes_[meeting.low()].all;
  }
  act(engine_.on_message(*phase, meeting));
  async_.look_at_end();
}

bool PairCoordinator::holds_others_up(Rank rank) const {
  const auto awaited = engine_.awaited();
  return std::find(awaited.begin(), awaited.end(), rank) != awaited.end();
}

void PairCoordinator::leave(Rank rank, Instant now) {
  act(engine_.on_gone(rank));
  async_.leave(now);
}

void PairCoordinator::on_node_lost(NodeId node, Instant) {
  act(engine_.on_node_gone(node));
  std::erase_if(visitors_, [&](const auto& visitor) { return work_.view.lives_on(visitor.first, node); });
  async_.look_at_end();
}

// Actions of the core

void PairCoordinator::act(const PairEngine::Actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& a) { carry_out(a); }, action);
}

void PairCoordinator::carry_out(const PairEngine::Send& a) {
  Message message{.phase = to_wire(a.phase), .rank = a.meeting.initiator, .partner = *a.meeting.partner};
  switch (a.phase) {
    case PairEngine::Phase::offer: {
      Bytes model = *models_.at(a.meeting.low());  // It goes on from it where the other one is lost.
      message.contents = work_.ledger.model(a.meeting.low());
      return async_.send(a.to, message, piece_of(std::move(model)));
    }
    case PairEngine::Phase::mean:
      if (auto visitor = visitors_.extract(a.meeting.initiator)) {
        message.contents = visitor.mapped().contents;
        work_.ledger.on_held(message.contents);
        async_.send(a.to, message, piece_of(std::move(visitor.mapped().model)));
      }
      return;
    case PairEngine::Phase::ask:
    case PairEngine::Phase::decline: return async_.send(a.to, message);
  }
}

void PairCoordinator::carry_out(const PairEngine::Average& a) {
  const auto& [initiator, partner] = a.meeting;
  const bool both = work_.view.is_here(a.meeting.low());
  const auto low = both ? models_.at(a.meeting.low()) : visitors_.at(initiator).model;
  const auto high = models_.at(a.meeting.high());
  const auto average = [this, low, high] {
    auto r = work_.windows.reduction();
    r.inputs = {low->data(), high->data()};
    r.outputs = {{low->data(), 0.5}, {high->data(), 0.5}};
    return r;
  };
  const Decision done{.kind = Decision::Kind::averaged, .rank = initiator};
  const auto averaged = [this, meeting = a.meeting, done](Instant) {
    ++work_.counters.group_averages;
    if (work_.view.is_here(*meeting.partner)) ++changes_[*meeting.partner].all;
    share_contents(meeting);
    averaged_ = meeting;
    work_.chronicle.decide(done);
    async_.look_at_end();
  };
  work_.averagings.add({average, averaged, done}, {});
}

/// Both models are the same now.
void PairCoordinator::share_contents(const PairEngine::Meeting& meeting) {
  const Rank low = meeting.low(), high = meeting.high();
  const auto visitor = visitors_.find(meeting.initiator);
  const Contents of_low = visitor == visitors_.end() ? work_.ledger.model(low) : visitor->second.contents;
  const Contents of_high = work_.ledger.model(high);
  work_.ledger.on_taken(high, of_low);
  if (visitor == visitors_.end()) return work_.ledger.on_taken(low, of_high);
  add(visitor->second.contents, of_high);
}

void PairCoordinator::carry_out(const PairEngine::Step& a) {
  const Rank rank = a.initiator;
  const auto add_step = [this, rank] {
    const Worker& w = async_.at(rank);
    auto& model = *models_.at(rank);
    auto r = work_.windows.reduction();
    r.inputs = {work_.windows.at(rank).window.data(w.published).data(), w.taken->data(), model.data()};
    r.weights = {1, -1, 1};
    r.outputs.push_back({model.data(), 1.0});
    async_.add_result(rank, r);
    return r;
  };
  const Decision done{.kind = Decision::Kind::stepped, .rank = rank};
  const auto stepped = [this, rank, done](Instant now) {
    Changes& changes = changes_[rank];
    changes.when_taken = changes.all;
    work_.ledger.on_used(rank, async_.at(rank).t);
    work_.trace("pair", async_.at(rank).t);
    work_.chronicle.decide(done);
    async_.deliver(rank, now);
    async_.count_iteration(pace_.living_ranks().size());
    async_.look_at_end();
  };
  work_.averagings.add({add_step, stepped, done}, {rank});
}

}  // namespace paceline::scheduler
