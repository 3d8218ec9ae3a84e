#include "scheduler/mixing/neighbour_service.h"

#include <algorithm>
#include <utility>

namespace paceline::scheduler {

NeighbourService::NeighbourService(JobOptions job, std::shared_ptr<const MixPlan> plan, bool columns_add_up,
                                   TaskGraph& graph, collective::Averager& averager, SendToNode send)
    : OwnPaceService(std::move(job), graph, averager, std::move(send)),
      engine_({.self = this->job().self, .node_of = this->job().node_of, .columns_add_up = columns_add_up},
              std::move(plan)) {}

void NeighbourService::add_turn(Rank rank, Turn& turn, Instant now) {
  turns_[rank] = &turn;
  turn.t = turn.exchange = job().first;
  turn.contributed = turn.mixed = Version{job().first.value - 1};
  turn.seen = job().first;
  turn.since = now;
}

bool NeighbourService::begin_wait(Rank rank, Turn& turn, Version t, Duration compute, Instant now) {
  const auto buffer = on_published(rank, t, compute);
  if (!buffer) return false;
  turn.t = t;
  turn.published = *buffer;
  turn.since = now;
  turn.waits = true;
  return true;
}

void NeighbourService::end_wait(Turn& turn, Instant now) {
  turn.waits = false;
  turn.seen = turn.t.next();
  turn.since = now;
}

void NeighbourService::add_for(Rank rank, std::function<collective::Reduction(Member&)> prepare,
                               std::function<void(Member&, Instant)> finish) {
  add_told(rank,
           {[this, rank, prepare = std::move(prepare)] {
              Member* const member = windows_.living(rank);
              return member ? prepare(*member) : windows_.reduction();
            },
            [this, rank, finish = std::move(finish)](Instant now) {
              if (Member* const member = windows_.living(rank)) finish(*member, now);
            }},
           {rank});
}

void NeighbourService::add_sum(Rank rank, std::function<collective::Reduction(Member&)> prepare) {
  averagings_.add({[this, rank, prepare = std::move(prepare)] {
                   Member* const member = windows_.living(rank);
                   return member ? prepare(*member) : windows_.reduction();
                 },
                 [](Instant) {}},
                {rank});
}

void NeighbourService::add_told(Rank rank, Averaging averaging, const std::vector<Rank>& contributors) {
  const Decision done{.kind = Decision::Kind::averaged, .rank = rank};
  averaging.told = done;
  averaging.finish = [this, done, finish = std::move(averaging.finish)](Instant now) {
    chronicle_.decide(done);
    finish(now);
  };
  averagings_.add(std::move(averaging), contributors);
}

std::shared_ptr<NeighbourService::Bytes> NeighbourService::spare_bytes(std::size_t size) {
  for (const auto& bytes : pool_) {
    if (bytes.use_count() > 1) continue;
    bytes->resize(size);
    return bytes;
  }
  return pool_.emplace_back(std::make_shared<Bytes>(size));
}

void NeighbourService::on_arrival(Rank rank, Version t, Duration compute, Instant now) {
  if (!windows_.living(rank) && !chronicle_.replays()) return;
  chronicle_.hear({.kind = Decision::Kind::arrived, .rank = rank, .version = t, .at = now, .took = compute}, now);
}

void NeighbourService::step(const Decision& d) {
  const Instant now = clock_now();
  if (d.kind == Decision::Kind::arrived)
    return d.version < job().first ? on_start(d.rank, now) : arrived(d.rank, d.version, d.took, now);
  if (d.kind != Decision::Kind::exchanged) return OwnPaceService::step(d);
  auto& waiting = exchanged_[{d.node, d.rank, d.group}];
  if (waiting.empty()) return;
  const auto message = std::move(waiting.front());
  waiting.pop_front();
  std::visit([&](const auto& each) { take(d.rank, each, now); }, message);
}

// A mixing
// --------------------------------------------------------------------------------------------------------------

void NeighbourService::contribute(Rank rank, Version v, Contribution contribution, Instant now) {
  turns_.at(rank)->contributed = v;
  held_[{rank, v}] = std::move(contribution);
  act(engine_.on_contribution(rank, v), now);
}

void NeighbourService::want(Rank rank, Instant now) { act(engine_.on_wanted(rank, turns_.at(rank)->exchange), now); }

void NeighbourService::act(MixEngine::Actions actions, Instant now) {
  for (auto& action : actions) pending_actions_.emplace_back(std::move(action), now);
  if (acting_) return;  // The outer call carries them out, in order.
  acting_ = true;
  while (!pending_actions_.empty()) {
    const auto [action, at] = std::move(pending_actions_.front());
    pending_actions_.pop_front();
    std::visit([this](const auto& a) { carry_out(a); }, action);
    if (pending_actions_.empty()) averagings_.start(at);
  }
  acting_ = false;
}

void NeighbourService::carry_out(const MixEngine::Send& a) {
  send_share(a.to, a.rank, a.version, held_.at({a.rank, a.version}));
}

void NeighbourService::send_share(NodeId to, Rank rank, Version v, const Contribution& contribution) {
  wire::Message message;
  auto body = message.root().initShare();
  body.setJob(job().job.value);
  body.setRank(rank.value);
  body.setVersion(v.value);
  body.setWeight(contribution.weight);
  send(to, message, {*contribution.data});
}

void NeighbourService::carry_out(const MixEngine::Release& a) {
  auto released = held_.extract({a.rank, a.version});
  if (!rows_are_alike() || released.empty()) return;
  const NodeId of = view_.node_of(a.rank);
  for (const NodeId node : view_.others())
    if (of != job().self && node != of && may_lack(node, a.version)) {
      used_.insert(std::move(released));
      return;
    }
}

/// A worker that contributes to v has mixed all before.
void NeighbourService::note_given(Rank rank, Version v) {
  if (!rows_are_alike()) return;
  Version& given = given_.try_emplace(view_.node_of(rank), v).first->second;
  given = std::max(given, v);
  forget_used();
}

/// An agent without a worker lacks nothing.
bool NeighbourService::may_lack(NodeId node, Version v) const {
  const auto left = engine_.left();
  if (std::none_of(left.begin(), left.end(), [&](Rank rank) { return view_.lives_on(rank, node); })) return false;
  const auto given = given_.find(node);
  return given == given_.end() || given->second <= v;
}

void NeighbourService::forget_used() {
  const auto others = view_.others();
  std::erase_if(used_, [&](const auto& used) {
    return std::none_of(others.begin(), others.end(), [&](NodeId node) {
      return !view_.lives_on(used.first.first, node) && may_lack(node, used.first.second);
    });
  });
}

void NeighbourService::pass_on(NodeId lost, NodeId to) {
  OwnPaceService::pass_on(lost, to);
  if (!rows_are_alike()) return;
  for (const auto* contributions : {&used_, &held_})
    for (const auto& [key, contribution] : *contributions)
      if (view_.lives_on(key.first, lost) && may_lack(to, key.second)) send_share(to, key.first, key.second, contribution);
}

std::shared_ptr<NeighbourService::Terms> NeighbourService::terms_of(const MixEngine::Mix& a) const {
  auto terms = std::make_shared<Terms>();
  for (const Share& share : a.row)
    terms->push_back({held_.at({share.from, a.version}), share.weight, share.from == a.rank});
  return terms;
}

std::vector<Rank> NeighbourService::take_alike(const MixEngine::Mix& a) {
  std::vector<Rank> ranks{a.rank};
  std::erase_if(pending_actions_, [&](const auto& pending) {
    const auto* other = std::get_if<MixEngine::Mix>(&pending.first);
    if (!other || other->version != a.version || other->row != a.row) return false;
    ranks.push_back(other->rank);
    return true;
  });
  return ranks;
}

void NeighbourService::end_mix(Rank rank, Version v, Instant now) {
  Turn& turn = *turns_.at(rank);
  turn.mixed = v;
  turn.exchange = v.next();
  ++counters_.group_averages;
  trace("mix", turn.t);
  act(engine_.on_mixed(rank, v), now);
}

// Others
// ------------------------------------------------------------------------------------------------------------------

void NeighbourService::on_strategy_message(NodeId from, const wire::Envelope::Reader& message,
                                           std::vector<std::byte> bulk, Instant now) {
  if (message.isShare()) {
    const auto share = message.getShare();
    const Version v{share.getVersion()};
    if (v < Version{0} || !has_right_size(from, "a model", bulk.size(), contribution_bytes(v)) ||
        !is_weight(from, share.getWeight()))
      return;
    exchange(Rank{share.getRank()}, Given{v, {std::make_shared<Bytes>(std::move(bulk)), share.getWeight()}}, now);
  } else if (message.isGone()) {
    const auto gone = message.getGone();
    exchange(Rank{gone.getRank()}, Gone{Version{gone.getContributed()}, Version{gone.getMixed()}}, now);
  } else if (message.isAwaited() && !chronicle_.replays()) {
    on_awaited(Rank{message.getAwaited().getRank()}, Version{message.getAwaited().getVersion()}, now);
  }
}

/// Of a worker of another agent: from there, or passed on.
void NeighbourService::exchange(Rank rank, std::variant<Given, Gone> message, Instant now) {
  if (rank.value < 0 || static_cast<std::size_t>(rank.value) >= job().node_of.size()) return;
  const NodeId from = view_.node_of(rank);
  if (from == job().self || view_.is_without(from)) return;
  if (auto* given = std::get_if<Given>(&message)) {
    if (engine_.has_contributed(rank, given->version)) return;
    // Who knows the decision already may have given to what comes after it.
    if (given_until() && given->version > *given_until()) return early_.emplace_back(rank, std::move(*given)), void();
  }
  const auto which = static_cast<std::int32_t>(message.index());
  exchanged_[{from, rank, which}].push_back(std::move(message));
  chronicle_.hear({.kind = Decision::Kind::exchanged, .rank = rank, .node = from, .group = which}, now);
}

void NeighbourService::remake(Version last, std::shared_ptr<const MixPlan> plan, Instant now) {
  if (plan) engine_.remake(last, std::move(plan));
  for (auto& [rank, given] : std::exchange(early_, {})) exchange(rank, std::move(given), now);
}

void NeighbourService::take(Rank rank, const Given& given, Instant now) {
  note_given(rank, given.version);
  held_[{rank, given.version}] = given.contribution;
  act(engine_.on_contribution(rank, given.version), now);
}

void NeighbourService::take(Rank rank, const Gone& gone, Instant now) {
  on_gone_elsewhere(rank, now);
  act(engine_.on_gone(rank, gone.contributed, gone.mixed), now);
  forget_used();
  after_gone();
}

void NeighbourService::leave(Rank rank, Instant now) {
  const auto it = turns_.find(rank);
  const Version none{job().first.value - 1};
  const Version contributed = it == turns_.end() ? none : it->second->contributed;
  const Version mixed = it == turns_.end() ? none : it->second->mixed;
  for (const NodeId node : view_.others()) {
    wire::Message message;
    auto body = message.root().initGone();
    body.setJob(job().job.value);
    body.setRank(rank.value);
    body.setContributed(contributed.value);
    body.setMixed(mixed.value);
    send(node, message);
  }
  act(engine_.on_gone(rank, contributed, mixed), now);
  after_gone();
}

void NeighbourService::on_node_lost(NodeId node, Instant now) {
  std::erase_if(early_, [&](const auto& early) { return view_.lives_on(early.first, node); });
  for (const Rank rank : view_.ranks_on(node)) {
    on_gone_elsewhere(rank, now);
    act(engine_.on_lost(rank), now);
  }
  forget_used();
  after_gone();
}

std::optional<Rank> NeighbourService::missing(Rank rank, const Turn& turn) const {
  return turn.waits ? engine_.missing(rank) : std::nullopt;
}

/// Who waits beyond patience complains about the first that is missing, once a patience.
void NeighbourService::look(Instant now) {
  std::vector<std::pair<Rank, Version>> awaited;
  for (auto& [rank, turn] : turns_) {
    const auto missing = this->missing(rank, *turn);
    if (!missing || now < complaint_at(*turn)) continue;
    turn->complained = now;
    awaited.emplace_back(*missing, turn->exchange);
  }
  for (const auto& [rank, v] : awaited) {
    const NodeId node = view_.node_of(rank);
    if (node == job().self) {
      on_awaited(rank, v, now);
      continue;
    }
    wire::Message message;
    auto body = message.root().initAwaited();
    body.setJob(job().job.value);
    body.setRank(rank.value);
    body.setVersion(v.value);
    send(node, message);
  }
}

/// A worker of this node: it leaves if it has given no sign of life for longer than patience. If it waits itself, its
/// own neighbours are asked.
void NeighbourService::on_awaited(Rank rank, Version v, Instant now) {
  Member* const member = windows_.living(rank);
  const auto it = turns_.find(rank);
  if (!member || is_evaluating(rank)) return;
  if (it == turns_.end()) return leave_if_awaited_too_long(rank, job().first, started(), now);
  Turn& turn = *it->second;
  if (turn.waits || turn.contributed >= v) return;
  const Version begun{member->window.progress().step.load(std::memory_order_relaxed)};
  if (begun > turn.seen) {  // It computes iterations that it does not publish.
    turn.seen = begun;
    turn.since = now;
  }
  leave_if_awaited_too_long(rank, std::max(turn.t, Version{turn.seen.value - 1}), turn.since, now);
}

std::optional<Instant> NeighbourService::core_deadline() const {
  std::optional<Instant> next;
  for (const auto& [rank, turn] : turns_) {
    if (!missing(rank, *turn)) continue;
    const Instant at = complaint_at(*turn);
    next = next ? std::min(*next, at) : at;
  }
  return next;
}

std::optional<AveragingService::Waiting> NeighbourService::waiting() const {
  std::optional<Waiting> waiting;
  for (const auto& [rank, turn] : turns_) {
    const auto missing = this->missing(rank, *turn);
    if (!missing || (waiting && waiting->since <= turn->since)) continue;
    waiting = Waiting{turn->t, {*missing}, turn->since};
  }
  return waiting;
}

}  // namespace paceline::scheduler
