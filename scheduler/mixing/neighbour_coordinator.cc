#include "scheduler/mixing/neighbour_coordinator.h"

#include <algorithm>
#include <utility>

namespace paceline::scheduler {

NeighbourCoordinator::NeighbourCoordinator(Workplace& work, std::shared_ptr<const MixPlan> plan, bool columns_add_up)
    : OwnPaceCoordinator(work),
      engine_({.self = work_.job.self, .node_of = work_.job.node_of, .columns_add_up = columns_add_up},
              std::move(plan)) {}

void NeighbourCoordinator::add_turn(Rank rank, Turn& turn, Instant now) {
  turns_[rank] = &turn;
  turn.t = turn.exchange = work_.job.first;
  turn.contributed = turn.mixed = Version{work_.job.first.value - 1};
  turn.seen = work_.job.first;
  turn.since = now;
}

bool NeighbourCoordinator::begin_wait(Rank rank, Turn& turn, Version t, Duration compute, Instant now) {
  const auto buffer = on_published(rank, t, compute);
  if (!buffer) return false;
  turn.t = t;
  turn.published = *buffer;
  turn.since = now;
  turn.waits = true;
  return true;
}

void NeighbourCoordinator::end_wait(Turn& turn, Instant now) {
  turn.waits = false;
  turn.seen = turn.t.next();
  turn.since = now;
}

void NeighbourCoordinator::add_for(Rank rank, std::function<collective::Reduction(Member&)> prepare,
                                   std::function<void(Member&, Instant)> finish) {
  add_told(rank,
           {[this, rank, prepare = std::move(prepare)] {
              Member* const member = work_.windows.living(rank);
              return member ? prepare(*member) : work_.windows.reduction();
            },
            [this, rank, finish = std::move(finish)](Instant now) {
              if (Member* const member = work_.windows.living(rank)) finish(*member, now);
            }},
           {rank});
}

void NeighbourCoordinator::add_sum(Rank rank, std::function<collective::Reduction(Member&)> prepare) {
  work_.averagings.add({[this, rank, prepare = std::move(prepare)] {
                          Member* const member = work_.windows.living(rank);
                          return member ? prepare(*member) : work_.windows.reduction();
                        },
                        [](Instant) {}},
                       {rank});
}

void NeighbourCoordinator::add_told(Rank rank, Averaging averaging, const std::vector<Rank>& contributors) {
  const Decision done{.kind = Decision::Kind::averaged, .rank = rank};
  averaging.told = done;
  averaging.finish = [this, done, finish = std::move(averaging.finish)](Instant now) {
    work_.chronicle.decide(done);
    finish(now);
  };
  work_.averagings.add(std::move(averaging), contributors);
}

void NeighbourCoordinator::step(const Decision& d) {
  const Instant now = work_.now();
  if (d.kind == Decision::Kind::arrived)
    return d.version < work_.job.first ? on_start(d.rank, now) : arrived(d.rank, d.version, d.took, now);
  if (d.kind != Decision::Kind::exchanged) return OwnPaceCoordinator::step(d);
  auto& waiting = exchanged_[{d.node, d.rank, d.group}];
  if (waiting.empty()) return;
  const auto message = std::move(waiting.front());
  waiting.pop_front();
  std::visit([&](const auto& each) { take(d.rank, each, now); }, message);
}

// A mixing
// --------------------------------------------------------------------------------------------------------------

void NeighbourCoordinator::contribute(Rank rank, Version v, Contribution contribution, Instant now) {
  turns_.at(rank)->contributed = v;
  held_[{rank, v}] = std::move(contribution);
  act(engine_.on_contribution(rank, v), now);
}

void NeighbourCoordinator::want(Rank rank, Instant now) {
  act(engine_.on_wanted(rank, turns_.at(rank)->exchange), now);
}

void NeighbourCoordinator::act(MixEngine::Actions actions, Instant now) {
  for (auto& action : actions) pending_actions_.emplace_back(std::move(action), now);
  if (acting_) return;  // The outer call carries them out, in order.
  acting_ = true;
  while (!pending_actions_.empty()) {
    const auto [action, at] = std::move(pending_actions_.front());
    pending_actions_.pop_front();
    std::visit([this](const auto& a) { carry_out(a); }, action);
    if (pending_actions_.empty()) work_.averagings.start(at);
  }
  acting_ = false;
}

void NeighbourCoordinator::carry_out(const MixEngine::Send& a) {
  send_share(a.to, a.rank, a.version, held_.at({a.rank, a.version}));
}

void NeighbourCoordinator::send_share(NodeId to, Rank rank, Version v, const Contribution& contribution) {
  wire::Message message;
  auto body = message.root().initShare();
  body.setJob(work_.job.job.value);
  body.setRank(rank.value);
  body.setVersion(v.value);
  body.setWeight(contribution.weight);
  work_.send(to, message, contribution.data);
}

void NeighbourCoordinator::carry_out(const MixEngine::Release& a) {
  auto released = held_.extract({a.rank, a.version});
  if (!rows_are_alike() || released.empty()) return;
  const NodeId of = work_.view.node_of(a.rank);
  for (const NodeId node : work_.view.others())
    if (of != work_.job.self && node != of && may_lack(node, a.version)) {
      used_.insert(std::move(released));
      return;
    }
}

/// A worker that contributes to v has mixed all before.
void NeighbourCoordinator::note_given(Rank rank, Version v) {
  if (!rows_are_alike()) return;
  Version& given = given_.try_emplace(work_.view.node_of(rank), v).first->second;
  given = std::max(given, v);
  forget_used();
}

/// An agent without a worker lacks nothing.
bool NeighbourCoordinator::may_lack(NodeId node, Version v) const {
  const auto left = engine_.left();
  if (std::none_of(left.begin(), left.end(), [&](Rank rank) { return work_.view.lives_on(rank, node); })) return false;
  const auto given = given_.find(node);
  return given == given_.end() || given->second <= v;
}

void NeighbourCoordinator::forget_used() {
  const auto others = work_.view.others();
  std::erase_if(used_, [&](const auto& used) {
    return std::none_of(others.begin(), others.end(), [&](NodeId node) {
      return !work_.view.lives_on(used.first.first, node) && may_lack(node, used.first.second);
    });
  });
}

void NeighbourCoordinator::pass_on(NodeId lost, NodeId to) {
  OwnPaceCoordinator::pass_on(lost, to);
  if (!rows_are_alike()) return;
  for (const auto* contributions : {&used_, &held_})
    for (const auto& [key, contribution] : *contributions)
      if (work_.view.lives_on(key.first, lost) && may_lack(to, key.second))
        send_share(to, key.first, key.second, contribution);
}

std::shared_ptr<NeighbourCoordinator::Terms> NeighbourCoordinator::terms_of(const MixEngine::Mix& a) const {
  auto terms = std::make_shared<Terms>();
  for (const Share& share : a.row)
    terms->push_back({held_.at({share.from, a.version}), share.weight, share.from == a.rank});
  return terms;
}

std::vector<Rank> NeighbourCoordinator::take_alike(const MixEngine::Mix& a) {
  std::vector<Rank> ranks{a.rank};
  std::erase_if(pending_actions_, [&](const auto& pending) {
    const auto* other = std::get_if<MixEngine::Mix>(&pending.first);
    if (!other || other->version != a.version || other->row != a.row) return false;
    ranks.push_back(other->rank);
    return true;
  });
  return ranks;
}

void NeighbourCoordinator::end_mix(Rank rank, Version v, Instant now) {
  Turn& turn = *turns_.at(rank);
  turn.mixed = v;
  turn.exchange = v.next();
  ++work_.counters.group_averages;
  work_.trace("mix", turn.t);
  act(engine_.on_mixed(rank, v), now);
}

// Others
// ------------------------------------------------------------------------------------------------------------------

void NeighbourCoordinator::on_strategy_message(NodeId from, const wire::Envelope::Reader& message,
                                               std::vector<std::byte> bulk, Instant now) {
  if (message.isShare()) {
    const auto share = message.getShare();
    const Version v{share.getVersion()};
    if (v < Version{0} || !work_.has_right_size(from, "a model", bulk.size(), contribution_bytes(v)) ||
        !work_.is_weight(from, share.getWeight()))
      return;
    exchange(Rank{share.getRank()}, Given{v, {piece_of(std::move(bulk)), share.getWeight()}}, now);
  } else if (message.isGone()) {
    const auto gone = message.getGone();
    exchange(Rank{gone.getRank()}, Gone{Version{gone.getContributed()}, Version{gone.getMixed()}}, now);
  } else if (message.isAwaited() && !work_.chronicle.replays()) {
    on_awaited(Rank{message.getAwaited().getRank()}, Version{message.getAwaited().getVersion()}, now);
  }
}

/// Of a worker of another agent: from there, or passed on.
void NeighbourCoordinator::exchange(Rank rank, std::variant<Given, Gone> message, Instant now) {
  if (!work_.view.has(rank)) return;
  const NodeId from = work_.view.node_of(rank);
  if (from == work_.job.self || work_.view.is_without(from)) return;
  if (auto* given = std::get_if<Given>(&message)) {
    if (engine_.has_contributed(rank, given->version)) return;
    // Who knows the decision already may have given to what comes after it.
    if (endings_.given_until() && given->version > *endings_.given_until())
      return early_.emplace_back(rank, std::move(*given)), void();
  }
  const auto which = static_cast<std::int32_t>(message.index());
  exchanged_[{from, rank, which}].push_back(std::move(message));
  work_.chronicle.hear({.kind = Decision::Kind::exchanged, .rank = rank, .node = from, .group = which}, now);
}

void NeighbourCoordinator::remake(Version last, std::shared_ptr<const MixPlan> plan, Instant now) {
  if (plan) engine_.remake(last, std::move(plan));
  for (auto& [rank, given] : std::exchange(early_, {})) exchange(rank, std::move(given), now);
}

void NeighbourCoordinator::take(Rank rank, const Given& given, Instant now) {
  note_given(rank, given.version);
  held_[{rank, given.version}] = given.contribution;
  act(engine_.on_contribution(rank, given.version), now);
}

void NeighbourCoordinator::take(Rank rank, const Gone& gone, Instant now) {
  on_gone_elsewhere(rank, now);
  act(engine_.on_gone(rank, gone.contributed, gone.mixed), now);
  forget_used();
  after_gone();
}

void NeighbourCoordinator::leave(Rank rank, Instant now) {
  const auto it = turns_.find(rank);
  const Version none{work_.job.first.value - 1};
  const Version contributed = it == turns_.end() ? none : it->second->contributed;
  const Version mixed = it == turns_.end() ? none : it->second->mixed;
  for (const NodeId node : work_.view.others()) {
    wire::Message message;
    auto body = message.root().initGone();
    body.setJob(work_.job.job.value);
    body.setRank(rank.value);
    body.setContributed(contributed.value);
    body.setMixed(mixed.value);
    work_.send(node, message);
  }
  act(engine_.on_gone(rank, contributed, mixed), now);
  after_gone();
}

void NeighbourCoordinator::on_node_lost(NodeId node, Instant now) {
  std::erase_if(early_, [&](const auto& early) { return work_.view.lives_on(early.first, node); });
  for (const Rank rank : work_.view.ranks_on(node)) {
    on_gone_elsewhere(rank, now);
    act(engine_.on_lost(rank), now);
  }
  forget_used();
  after_gone();
}

std::optional<Rank> NeighbourCoordinator::missing(Rank rank, const Turn& turn) const {
  return turn.waits ? engine_.missing(rank) : std::nullopt;
}

/// Who waits beyond patience complains about the first that is missing, once a patience.
void NeighbourCoordinator::look(Instant now) {
  std::vector<std::pair<Rank, Version>> awaited;
  for (auto& [rank, turn] : turns_) {
    const auto missing = this->missing(rank, *turn);
    if (!missing || now < complaint_at(*turn)) continue;
    turn->complained = now;
    awaited.emplace_back(*missing, turn->exchange);
  }
  for (const auto& [rank, v] : awaited) {
    work_.view.is_here(rank) ? on_awaited(rank, v, now) : complain_of(rank, v);
  }
}

/// A worker of this node: it leaves if it has given no sign of life for longer than patience. If it waits itself, its
/// own neighbours are asked.
void NeighbourCoordinator::on_awaited(Rank rank, Version v, Instant now) {
  Member* const member = work_.windows.living(rank);
  const auto it = turns_.find(rank);
  if (!member || means_.is_evaluating(rank)) return;
  if (it == turns_.end()) return leave_if_awaited_too_long(rank, work_.job.first, started(), now);
  Turn& turn = *it->second;
  if (turn.waits || turn.contributed >= v) return;
  const Version begun{member->window.progress().step.load(std::memory_order_relaxed)};
  if (begun > turn.seen) {  // It computes iterations that it does not publish.
    turn.seen = begun;
    turn.since = now;
  }
  leave_if_awaited_too_long(rank, std::max(turn.t, Version{turn.seen.value - 1}), turn.since, now);
}

std::optional<Instant> NeighbourCoordinator::core_deadline() const {
  std::optional<Instant> next;
  for (const auto& [rank, turn] : turns_) {
    if (!missing(rank, *turn)) continue;
    next = earlier(next, complaint_at(*turn));
  }
  return next;
}

std::optional<Coordinator::Waiting> NeighbourCoordinator::waiting() const {
  std::optional<Waiting> waiting;
  for (const auto& [rank, turn] : turns_) {
    const auto missing = this->missing(rank, *turn);
    if (!missing || (waiting && waiting->since <= turn->since)) continue;
    waiting = Waiting{turn->t, {*missing}, turn->since};
  }
  return waiting;
}

}  // namespace paceline::scheduler
