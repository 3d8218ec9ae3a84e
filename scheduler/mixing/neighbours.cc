#include "scheduler/mixing/neighbours.h"

#include <algorithm>
#include <utility>

namespace paceline::scheduler {

Neighbours::Neighbours(Workplace& work, OwnPace& pace, Strategy& strategy, Options options)
    : work_(work),
      pace_(pace),
      strategy_(strategy),
      every_(options.every),
      passing_(options.passing),
      engine_({.self = work.job.self, .node_of = work.job.node_of, .columns_add_up = options.columns_add_up},
              std::move(options.plan)),
      contributions_(work.job.self, work.view, engine_, options.alike),
      exchanged_(work.chronicle) {}

Neighbours::Turn& Neighbours::add(Rank rank, Version own, Instant now) {
  const Version first = own.next(), before = exchanged_by(own);
  return turns_[rank] = {.t = first,
                         .exchange = before.next(),
                         .contributed = before,
                         .mixed = before,
                         .since = now,
                         .seen = first};
}

bool Neighbours::begin_wait(Rank rank, Version t, Duration compute, Instant now) {
  const auto buffer = pace_.on_published(rank, t, compute);
  if (!buffer) return false;
  Turn& turn = turns_.at(rank);
  turn.t = t;
  turn.published = *buffer;
  turn.since = now;
  turn.waits = true;
  return true;
}

void Neighbours::end_wait(Rank rank, Instant now) {
  Turn& turn = turns_.at(rank);
  turn.waits = false;
  turn.seen = turn.t.next();
  turn.since = now;
}

void Neighbours::step(const Decision& d) {
  if (d.kind != Decision::Kind::exchanged) return pace_.step(d);
  const Instant now = work_.now();
  if (const auto message = exchanged_.take(d)) std::visit([&](const auto& each) { take(d.rank, each, now); }, *message);
}

// A mixing

void Neighbours::contribute(Rank rank, Version v, Contribution contribution, Instant now) {
  turns_.at(rank).contributed = v;
  if (contribution.contents.empty()) contribution.contents = work_.ledger.contents(rank);
  contributions_.hold(rank, v, std::move(contribution));
  act(engine_.on_contribution(rank, v), now);
}

void Neighbours::want(Rank rank, Instant now) { act(engine_.on_wanted(rank, turns_.at(rank).exchange), now); }

void Neighbours::act(MixEngine::Actions actions, Instant now) {
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

void Neighbours::carry_out(const MixEngine::Send& a) {
  send_share(a.to, a.rank, a.version, contributions_.at(a.rank, a.version));
}

void Neighbours::send_share(NodeId to, Rank rank, Version v, const Contribution& contribution) {
  wire::Message message;
  auto body = message.root().initShare();
  body.setJob(work_.job.job.value);
  body.setRank(rank.value);
  body.setVersion(v.value);
  body.setWeight(contribution.weight);
  write(contribution.contents, body.initContents(static_cast<unsigned>(contribution.contents.size())));
  work_.send(to, message, contribution.data);
}

void Neighbours::pass_on(NodeId lost, NodeId to) {
  pace_.pass_on(lost, to);
  contributions_.pass_on(
      lost, to, [&](Rank rank, Version v, const Contribution& contribution) { send_share(to, rank, v, contribution); });
}

std::shared_ptr<Neighbours::Terms> Neighbours::terms_of(const MixEngine::Mix& a) const {
  auto terms = std::make_shared<Terms>();
  for (const Share& share : a.row)
    terms->push_back({contributions_.at(share.from, a.version), share.weight, share.from == a.rank});
  return terms;
}

std::vector<Rank> Neighbours::take_alike(const MixEngine::Mix& a) {
  std::vector<Rank> ranks{a.rank};
  std::erase_if(pending_actions_, [&](const auto& pending) {
    const auto* other = std::get_if<MixEngine::Mix>(&pending.first);
    if (!other || other->version != a.version || other->row != a.row) return false;
    ranks.push_back(other->rank);
    return true;
  });
  return ranks;
}

void Neighbours::end_mix(Rank rank, Version v, const Terms& terms, Instant now) {
  for (const Term& term : terms)
    if (!passing_) work_.ledger.on_taken(rank, term.contribution.contents);
  Turn& turn = turns_.at(rank);
  turn.mixed = v;
  turn.exchange = v.next();
  ++work_.counters.group_averages;
  work_.trace("mix", turn.t);
  act(engine_.on_mixed(rank, v), now);
}

// Others

void Neighbours::on_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                            Instant now) {
  if (pace_.on_message(from, message, bulk, now)) return;
  if (message.isShare()) {
    const auto share = message.getShare();
    const Version v{share.getVersion()};
    if (v < Version{0} || !work_.has_right_size(from, "a model", bulk.size(), strategy_.contribution_bytes(v)) ||
        !work_.is_weight(from, share.getWeight()))
      return;
    hear(Rank{share.getRank()},
         Given{v, {piece_of(std::move(bulk)), share.getWeight(), contents_of(share.getContents())}}, now);
  } else if (message.isGone()) {
    const auto gone = message.getGone();
    hear(Rank{gone.getRank()}, Gone{Version{gone.getContributed()}, Version{gone.getMixed()}}, now);
  } else if (message.isAwaited() && !work_.chronicle.replays()) {
    on_awaited(Rank{message.getAwaited().getRank()}, Version{message.getAwaited().getVersion()}, now);
  }
}

/// Of a worker of another agent: from there, or passed on.
void Neighbours::hear(Rank rank, Told message, Instant now) {
  if (!work_.view.has(rank)) return;
  const NodeId from = work_.view.node_of(rank);
  if (from == work_.job.self || work_.view.is_without(from)) return;
  if (auto* given = std::get_if<Given>(&message)) {
    if (engine_.has_contributed(rank, given->version)) return;
    // Who knows the decision already may have given to what comes after it.
    if (const auto& until = pace_.endings.given_until(); until && given->version > *until)
      return early_.emplace_back(rank, std::move(*given)), void();
  }
  const auto which = static_cast<std::int32_t>(message.index());
  exchanged_.hear(from, rank, which, std::move(message), now);
}

void Neighbours::remake(Version last, std::shared_ptr<const MixPlan> plan, const std::vector<Rank>& join, Instant now) {
  if (plan) engine_.remake(last, std::move(plan));
  for (const Rank rank : join) {
    act(engine_.on_back(rank, last), now);
    if (work_.view.is_without(work_.view.node_of(rank))) act(engine_.on_lost(rank), now);
  }
  for (auto& [rank, given] : std::exchange(early_, {})) hear(rank, std::move(given), now);
}

void Neighbours::take(Rank rank, const Given& given, Instant now) {
  contributions_.on_given(rank, given.version);
  if (!passing_) work_.ledger.on_held(given.contribution.contents);
  contributions_.hold(rank, given.version, given.contribution);
  act(engine_.on_contribution(rank, given.version), now);
}

void Neighbours::take(Rank rank, const Gone& gone, Instant now) {
  strategy_.on_gone_elsewhere(rank, now);
  act(engine_.on_gone(rank, gone.contributed, gone.mixed), now);
  contributions_.on_gone();
  strategy_.after_gone();
}

void Neighbours::leave(Rank rank, Instant now) {
  const auto it = turns_.find(rank);
  const Version none = exchanged_by(Version{work_.job.first.value - 1});
  const Version contributed = it == turns_.end() ? none : it->second.contributed;
  const Version mixed = it == turns_.end() ? none : it->second.mixed;
  tell_gone(rank, {contributed, mixed}, now);
}

void Neighbours::on_not_joined(Rank rank, Version last, Instant now) { tell_gone(rank, {last, last}, now); }

void Neighbours::tell_gone(Rank rank, Gone gone, Instant now) {
  for (const NodeId node : work_.view.others()) {
    wire::Message message;
    auto body = message.root().initGone();
    body.setJob(work_.job.job.value);
    body.setRank(rank.value);
    body.setContributed(gone.contributed.value);
    body.setMixed(gone.mixed.value);
    work_.send(node, message);
  }
  act(engine_.on_gone(rank, gone.contributed, gone.mixed), now);
  strategy_.after_gone();
}

void Neighbours::on_node_lost(NodeId node, Instant now) {
  std::erase_if(early_, [&](const auto& early) { return work_.view.lives_on(early.first, node); });
  for (const Rank rank : work_.view.ranks_on(node)) {
    strategy_.on_gone_elsewhere(rank, now);
    act(engine_.on_lost(rank), now);
  }
  contributions_.on_gone();
  strategy_.after_gone();
}

std::optional<Rank> Neighbours::missing(Rank rank, const Turn& turn) const {
  return turn.waits ? engine_.missing(rank) : std::nullopt;
}

/// Who waits beyond patience complains about the first that is missing, once a patience.
void Neighbours::look(Instant now) {
  std::vector<std::pair<Rank, Version>> awaited;
  for (auto& [rank, turn] : turns_) {
    const auto missing = this->missing(rank, turn);
    if (!missing || now < complaint_at(turn)) continue;
    turn.complained = now;
    awaited.emplace_back(*missing, turn.exchange);
  }
  for (const auto& [rank, v] : awaited) {
    work_.view.is_here(rank) ? on_awaited(rank, v, now) : pace_.complain_of(rank, v);
  }
}

/// A worker of this node: it leaves if it has given no sign of life for longer than patience. If it waits itself, its
/// own neighbours are asked.
void Neighbours::on_awaited(Rank rank, Version v, Instant now) {
  auto* const member = work_.windows.living(rank);
  const auto it = turns_.find(rank);
  if (!member || pace_.means.is_evaluating(rank)) return;
  if (it == turns_.end()) return pace_.leave_if_awaited_too_long(rank, work_.job.first, pace_.started(), now);
  Turn& turn = it->second;
  if (turn.waits || turn.contributed >= v) return;
  const Version begun{member->window.progress().step.load(std::memory_order_relaxed)};
  if (begun > turn.seen) {  // It computes iterations that it does not publish.
    turn.seen = begun;
    turn.since = now;
  }
  pace_.leave_if_awaited_too_long(rank, std::max(turn.t, Version{turn.seen.value - 1}), turn.since, now);
}

std::optional<Instant> Neighbours::core_deadline() const {
  std::optional<Instant> next;
  for (const auto& [rank, turn] : turns_) {
    if (!missing(rank, turn)) continue;
    next = earlier(next, complaint_at(turn));
  }
  return next;
}

std::optional<Coordinator::Waiting> Neighbours::waiting() const {
  std::optional<Coordinator::Waiting> waiting;
  for (const auto& [rank, turn] : turns_) {
    const auto missing = this->missing(rank, turn);
    if (!missing || (waiting && waiting->since <= turn.since)) continue;
    waiting = Coordinator::Waiting{turn.t, {*missing}, turn.since};
  }
  return waiting;
}

}  // namespace paceline::scheduler
