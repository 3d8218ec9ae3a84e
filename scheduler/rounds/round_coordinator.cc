#include "scheduler/rounds/round_coordinator.h"

#include <algorithm>
#include <variant>

namespace paceline::scheduler {
namespace {

RoundEngine::Options engine_options(const JobOptions& job) {
  RoundEngine::Options engine;
  engine.self = job.self;
  engine.node_of = job.node_of;
  engine.first = job.first;
  engine.last = job.last;
  engine.wait_limit = job.wait_limit;
  return engine;
}

PartialSums::Key key_of(Version v, std::int32_t group) { return {v.value, group}; }

bool holds(const std::vector<Rank>& ranks, Rank rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

}  // namespace

RoundCoordinator::RoundCoordinator(Workplace& work, Options options, std::unique_ptr<RoundPlan> plan)
    : Coordinator(work),
      options_(std::move(options)),
      engine_(engine_options(work_.job), std::move(plan)),
      abandons_(round(engine_.plan().next_round(work_.job.first)).late == Lateness::abandons),
      sums_(work, options_.weighing),
      sealing_(work, options_.weighing, abandons_),
      merges_(work, outer_) {
  if (options_.outer_step) outer_.emplace(options_.outer_step, options_.outer_elements);
}

// Events

void RoundCoordinator::on_arrival(Rank rank, Version t, Duration compute, Instant now) {
  if (!work_.windows.living(rank) && !work_.chronicle.replays()) return;
  if (t < work_.job.first) return on_start(rank, now);
  work_.chronicle.hear({.kind = Kind::arrived, .rank = rank, .version = t, .at = now, .took = compute}, now);
}

/// A worker shows the model that it starts from, the same as the others, and waits until it was seen.
void RoundCoordinator::on_start(Rank rank, Instant now) {
  Member* const member = work_.windows.living(rank);
  if (!member || !outer_) return;
  if (!outer_->has_begun()) {
    const auto start = member->window.seal();
    if (!start) return work_.fail_job(damaged_window(rank));
    outer_->begin(member->window.data(*start), work_.windows.dtype());
    member->window.unseal(memory::Window::Unseal::keep);
  }
  memory::WorkerVerdict verdict;
  verdict.own = work_.job.first.value - 1;
  verdict.next = verdict.next_round = work_.job.first.value;
  work_.windows.set_verdict(rank, verdict);
  act({}, now);  // An averaging may have waited for it.
}

void RoundCoordinator::on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                       Instant now) {
  if (message.isPartial()) {
    const auto partial = message.getPartial();
    const Version v{partial.getVersion()};
    if (const auto of = sums_.on_partial(from, partial, std::move(bulk), engine_.done()))
      work_.chronicle.hear({.kind = Kind::partial, .node = *of, .version = v, .group = partial.getGroup(), .at = now},
                           now);
    return;
  }
  if (!message.isActivate()) return;
  const auto activate = message.getActivate();
  const Version v{activate.getVersion()};
  if (activate.getGone() >= 0) {
    const auto kind = activate.getBack() ? Kind::back_elsewhere : Kind::gone_elsewhere;
    return work_.chronicle.hear({.kind = kind, .rank = Rank{activate.getGone()}, .at = now}, now);
  }
  if (activate.getCount()) return work_.chronicle.hear({.kind = Kind::counted, .version = v, .at = now}, now);
  work_.chronicle.hear({.kind = Kind::activated, .node = NodeId{activate.getRoot()}, .version = v, .at = now}, now);
}

void RoundCoordinator::pass_on(NodeId lost, NodeId to) { sums_.pass_on(lost, to); }

/// In a replay deadlines are not looked at: what put them off then stands in the record.
void RoundCoordinator::on_alive(Rank rank, Instant now) {
  if (!work_.chronicle.replays()) work_.chronicle.hear({.kind = Kind::alive, .rank = rank, .at = now}, now);
}

void RoundCoordinator::on_gone(Rank rank, Instant now) {
  const Member* const member = work_.windows.find(rank);
  const bool is_known = !member || !member->gone || engine_.is_returning(rank);
  if (!is_known && !work_.chronicle.replays()) return;
  work_.chronicle.hear({.kind = Kind::gone, .rank = rank, .at = now}, now);
}

void RoundCoordinator::on_return(Rank rank, Instant now) {
  work_.chronicle.hear({.kind = Kind::returned, .rank = rank, .at = now}, now);
}

void RoundCoordinator::look(Instant now) {
  auto actions = engine_.tick(now);
  if (actions.empty()) return;
  work_.chronicle.record({.kind = Kind::looked, .at = now});
  act(std::move(actions), now);
}

void RoundCoordinator::step(const Decision& d) {
  switch (d.kind) {
    case Kind::arrived:
      work_.averagings.end_compute(d.rank);
      return act(engine_.on_arrival(d.rank, d.version, d.took, d.at), d.at);
    case Kind::activated: return act(engine_.on_activation(d.node, d.node, d.version, d.at), d.at);
    case Kind::counted: return act(engine_.on_count(d.version, d.at), d.at);
    case Kind::partial: return act(engine_.on_partial(d.node, d.version, d.group, d.at), d.at);
    case Kind::sealed: {
      auto& sums = sums_.group(key_of(d.version, d.group)).sums;
      sums.leader_time = d.took;
      sums.stops = d.stops;
      std::vector<std::optional<Version>> contributed;
      for (const auto& c : d.contributions) contributed.push_back(c.iteration);
      return act(engine_.on_sealed(d.version, d.group, contributed, d.at), d.at);
    }
    case Kind::executed: {
      auto actions = engine_.on_executed(d.version, d.group, executed_sums_, d.at);
      sums_.forget(engine_.done());
      return act(std::move(actions), d.at);
    }
    case Kind::merged: return act(engine_.on_merged(d.rank, d.at), d.at);
    case Kind::gone:
      if (Member* const member = work_.windows.living(d.rank)) member->gone = true;
      work_.averagings.end_compute(d.rank);
      return act(engine_.on_gone(d.rank, d.at), d.at);
    case Kind::gone_elsewhere: return act(engine_.on_gone_elsewhere(d.rank, d.at), d.at);
    case Kind::returned: return act(engine_.on_return(d.rank, d.at), d.at);
    case Kind::back_elsewhere: return engine_.on_back_elsewhere(d.rank);
    case Kind::node_gone: sums_.on_lost(d.node); return act(engine_.on_node_gone(d.node, d.at), d.at);
    case Kind::alive: return engine_.on_alive(d.rank, d.at);
    case Kind::ends: return engine_.end_at(d.version);
    case Kind::looked: return act(engine_.tick(d.at), d.at);
    default: return;  // Joined: told to all; the others are of other cores.
  }
}

std::optional<RoundCoordinator::Waiting> RoundCoordinator::waiting() const {
  const auto waiting = engine_.waiting();
  if (!waiting) return {};
  return Waiting{waiting->version, waiting->missing, waiting->since};
}

// Actions of the core

void RoundCoordinator::act(RoundEngine::Actions actions, Instant now) {
  for (auto& action : actions) pending_actions_.emplace_back(std::move(action), now);
  if (acting_) return;  // The outer call carries them out, in order.
  acting_ = true;
  while (!pending_actions_.empty() && is_ready(pending_actions_.front().first)) {
    auto [action, at] = std::move(pending_actions_.front());
    pending_actions_.pop_front();
    std::visit([this, at = at](const auto& a) { carry_out(a, at); }, action);
    if (pending_actions_.empty()) work_.averagings.start(at);
  }
  acting_ = false;
}

bool RoundCoordinator::go_on() {
  act({}, work_.now());
  return pending_actions_.empty();
}

/// A worker may complete its update while it is being sealed without: of that nothing is used.
bool RoundCoordinator::needs_nothing(const Decision& d) const {
  return abandons_ && d.kind == Kind::arrived && work_.chronicle.replay().sealed(d.rank) >= d.version;
}

/// What its next seal will find is there.
bool RoundCoordinator::has_published(Rank rank) {
  const Member* const member = work_.windows.living(rank);
  return work_.chronicle.has_published(rank, member ? &member->window : nullptr);
}

/// In a replay workers come first: they publish what the seal found, and go through every update (in the run a slow
/// one may have missed some and taken another's state instead, which was the same).
bool RoundCoordinator::is_ready(const RoundEngine::Action& action) {
  if (std::holds_alternative<RoundEngine::Execute>(action) && waits_for_start()) return false;
  if (!work_.chronicle.replays() || sealing_.is_alone()) return true;
  if (const auto* seal = std::get_if<RoundEngine::Seal>(&action))
    return std::all_of(seal->members.begin(), seal->members.end(), [this](Rank r) { return has_published(r); });
  if (std::holds_alternative<RoundEngine::Abandon>(action))
    return std::all_of(work_.windows.all().begin(), work_.windows.all().end(),
                       [this](const auto& m) { return m.second.gone || has_published(m.first); });
  const auto* execute = std::get_if<RoundEngine::Execute>(&action);
  if (!execute || !abandons_) return true;
  return std::all_of(work_.chronicle.replay().joining().begin(), work_.chronicle.replay().joining().end(),
                     [&](Rank rank) {
                       const Member* const member = work_.windows.find(rank);
                       if (!member) return false;
                       const auto step = member->window.progress().step.load(std::memory_order_acquire);
                       return member->gone || step >= execute->version.value;
                     });
}

/// The outer model is not known here before a worker has begun, and without it there is no next one.
bool RoundCoordinator::waits_for_start() const {
  if (!outer_ || outer_->has_begun()) return false;
  for (const Rank rank : work_.view.ranks_on(work_.job.self)) {
    const Member* const member = work_.windows.find(rank);
    if (member ? !member->gone : !work_.job.vacant.contains(rank) && !engine_.has_left(rank)) return true;
  }
  return false;  // Nobody is left here who would get a result.
}

template <class Fill>
void RoundCoordinator::send_activation(NodeId to, const Fill& fill) {
  wire::Message message;
  auto body = message.root().initActivate();
  body.setJob(work_.job.job.value);
  fill(body);
  work_.send(to, message);
}

void RoundCoordinator::carry_out(const RoundEngine::Activate& a, Instant) {
  send_activation(a.to, [&](auto& body) {
    body.setRoot(a.root.value);
    body.setVersion(a.version.value);
  });
}

void RoundCoordinator::carry_out(const RoundEngine::Count& a, Instant) {
  send_activation(a.to, [&](auto& body) {
    body.setVersion(a.version.value);
    body.setCount(true);
  });
}

void RoundCoordinator::carry_out(const RoundEngine::Gone& a, Instant) {
  send_activation(a.to, [&](auto& body) {
    body.setGone(a.rank.value);
    body.setBack(a.back);
  });
}

void RoundCoordinator::carry_out(const RoundEngine::Seal& a, Instant now) {
  Decision sealed{.kind = Kind::sealed, .version = a.version, .group = a.group, .at = now};
  if (work_.view.leads()) sealed.took = work_.clock.at(now);
  sealed.stops = stop_wanted_ ? 1 : 0;
  sealing_.seal(a, round(a.version), engine_.done(), sums_.group(key_of(a.version, a.group)), sealed);
  work_.chronicle.decide(sealed);
}

void RoundCoordinator::carry_out(const RoundEngine::SendPartial& a, Instant) {
  sums_.send(key_of(a.version, a.group), a.to);
}

void RoundCoordinator::carry_out(const RoundEngine::Execute& a, Instant) {
  const Decision done{.kind = Kind::executed, .version = a.version, .group = a.group};
  work_.averagings.add(
      {[this, a] { return prepare_average(a); }, [this, a](Instant at) { finish_average(a, at); }, done},
      sums_.group(key_of(a.version, a.group)).contributors());
}

void RoundCoordinator::carry_out(const RoundEngine::Merge& a, Instant) {
  const Decision done{.kind = Kind::merged, .rank = a.rank};
  const auto prepare = [this, a] { return merges_.prepare(a, round(a.own), members_); };
  const auto finish = [this, a](Instant at) {
    merges_.finish(a);
    work_.chronicle.decide({.kind = Kind::merged, .rank = a.rank, .at = at});
  };
  work_.averagings.add({prepare, finish, done}, {a.rank});
}

void RoundCoordinator::carry_out(const RoundEngine::Verdict& a, Instant) {
  work_.counters.skipped += a.skipped;
  if (!a.averaged) give_back(a.rank);
  memory::WorkerVerdict verdict;
  verdict.own = a.own.value;
  verdict.next = a.next.value;
  verdict.next_round = a.next_round.value;
  verdict.skipped = a.skipped;
  verdict.fresh = a.fresh;
  verdict.averaged = a.averaged;
  verdict.end = a.end;
  verdict.lr_may_decay = a.lr_may_decay;
  verdict.of_all = false;
  for (Version v = a.own; v < a.next && !verdict.of_all; v = v.next())
    verdict.of_all = round(v).kind == Round::Kind::sync;
  work_.windows.set_verdict(a.rank, verdict);
  if (!a.end && !abandons_ && work_.windows.find(a.rank)) work_.averagings.begin_compute(a.rank);
}

/// It goes on with what it published: the next round is not to find that there, which may even be one of gradients.
void RoundCoordinator::give_back(Rank rank) {
  Member* const member = work_.windows.living(rank);
  if (member && !member->window.writing()) (void)member->window.withdraw();
}

void RoundCoordinator::carry_out(const RoundEngine::Abandon& a, Instant) { work_.windows.abandon(a.version); }

void RoundCoordinator::carry_out(const RoundEngine::Leave& a, Instant) {
  if (Member* const member = work_.windows.find(a.rank)) member->gone = true;
  work_.tell(Left{a.rank, a.version, a.silent, a.waited});
}

void RoundCoordinator::carry_out(const RoundEngine::Admit& a, Instant) {
  merges_.forget(a.rank);
  work_.windows.let_in(a.rank);
  work_.averagings.begin_compute(a.rank);
  work_.tell(Admitted{a.rank, a.after, a.may_skip});
}

// Averagings of groups

collective::Reduction RoundCoordinator::prepare_average(const RoundEngine::Execute& what) {
  outputs_.clear();
  auto reduction = work_.windows.reduction();
  const auto contributions = sums_.add_up(key_of(what.version, what.group), what.others, reduction);
  if (!contributions) return work_.windows.reduction();
  if (!reduction.inputs.empty() || (round(what.version).is_partial() && !sealing_.is_alone()))
    add_outputs(what, *contributions, reduction);
  return reduction;
}

void RoundCoordinator::add_outputs(const RoundEngine::Execute& what, std::int32_t contributions,
                                   collective::Reduction& to) {
  const Round of = round(what.version);
  const auto& group = sums_.group(key_of(what.version, what.group));
  const double mean = 1.0 / options_.weighing.divisor_of(group.total(), group.totals().members, of.payload);
  const bool gradients = of.payload == Payload::gradients;
  const auto output = [&](Rank rank, bool whole) {
    Member* const member = work_.windows.living(rank);
    if (!member) return;
    auto& window = member->window;
    const bool in_place = gradients && group.has(rank);
    // Nothing to give: its gradient was of another version.
    if (gradients && !in_place && !abandons_ && !of.is_partial()) return;
    const auto buffer = in_place ? window.begin_result_in_place() : window.begin_result();
    if (!buffer) return work_.fail_job(damaged_window(rank));
    outputs_.push_back(rank);
    window.tag(*buffer) = {};
    window.tag(*buffer).iteration = what.version.value;
    window.tag(*buffer).divisor = whole ? 1 : contributions;
    if (what.sync) window.tag(*buffer).members = static_cast<std::int32_t>(group.totals().members);
    to.outputs.push_back({window.data(*buffer).data(), whole ? mean : 1.0});
  };
  for (const Rank rank : what.fresh) output(rank, gradients || what.sync || !options_.adds_own_again);
  if (outer_) {  // The late take it from there.
    if (outer_->has_begun()) outer_->carry_on(to, mean);
  } else if (!of.merges_own_version) {
    for (const Rank rank : what.stale) output(rank, gradients);
  } else if (!what.stale.empty()) {
    to.outputs.push_back({merges_.keep(what.version, what.stale, contributions), 1.0});
  }
}

void RoundCoordinator::finish_average(const RoundEngine::Execute& what, Instant now) {
  const auto key = key_of(what.version, what.group);
  executed_sums_ = sums_.group(key).totals();
  if (what.sync) members_ = static_cast<std::int32_t>(executed_sums_.members);
  deliver(what);
  merges_.forget_gone();
  (what.sync ? work_.counters.global_averages : work_.counters.group_averages) += 1;
  work_.trace("average", what.version);
  tell_executed(what);
  if (abandons_) {
    work_.windows.set_executed(what.version);
    for (const auto& [rank, member] : work_.windows.all())
      work_.averagings.begin_compute(rank);  // What was left of the last one is abandoned.
  }
  sums_.on_executed(key, what.others);
  work_.chronicle.decide({.kind = Kind::executed, .version = what.version, .group = what.group, .at = now});
}

void RoundCoordinator::deliver(const RoundEngine::Execute& what) {
  // A model is no contribution to a round of gradients, nor the other way round.
  const auto is_of_models = [this](Version v) { return round(v).payload == Payload::models; };
  const bool models = is_of_models(what.version), keeps = models && is_of_models(what.version.next());
  for (const auto& contribution : sums_.group(key_of(what.version, what.group)).contributions) {
    work_.ledger.on_used(contribution.rank, contribution.through, !models);
    auto& window = work_.windows.at(contribution.rank).window;
    if (window.sealed()) window.unseal(keeps ? memory::Window::Unseal::keep : memory::Window::Unseal::recycle);
  }
  note_contents(what);
  for (const Rank rank : outputs_) {
    auto& window = work_.windows.at(rank).window;
    !abandons_&& holds(what.fresh, rank) ? window.deliver() : window.retain();
  }
}

/// Who merges with it later has it then.
void RoundCoordinator::note_contents(const RoundEngine::Execute& what) {
  const Contents contents = sums_.group(key_of(what.version, what.group)).all_contents();
  for (const Rank rank : outputs_)
    if (abandons_ || holds(what.fresh, rank)) work_.ledger.on_taken(rank, contents);
  if (!abandons_) merges_.note(what.version, what.stale, contents);
  if (!what.others.empty()) work_.ledger.on_held(contents);
  if (const Round of = round(what.version); what.sync && !of.is_partial())
    work_.ledger.on_job_has(contents, of.payload == Payload::models);
}

void RoundCoordinator::tell_executed(const RoundEngine::Execute& what) {
  const Version v = what.version;
  const bool sync = what.sync && !round(v).is_partial();
  const bool over = sync && (v >= engine_.last() || executed_sums_.stops > 0);
  const bool evaluate = sync && work_.job.evaluates && (over || work_.evaluation_due(v));
  if (over) {
    engine_.end_at(v);
    work_.windows.set_last(v);
  }
  if (evaluate) work_.note_evaluated(v);
  if (evaluate || over) work_.hold(v);
  work_.tell(
      Executed{v, sync, over, evaluate, evaluate ? evaluators(what.fresh, over) : std::vector<Rank>(), executed_sums_});
}

/// Those that have the mean. At the end the late get the same model, only later.
std::vector<Rank> RoundCoordinator::evaluators(const std::vector<Rank>& fresh, bool over) const {
  std::vector<Rank> have, late;
  for (const auto& [rank, member] : work_.windows.all())
    if (!member.gone) (holds(fresh, rank) ? have : late).push_back(rank);
  if (over) have.insert(have.end(), late.begin(), late.end());
  return have;
}

}  // namespace paceline::scheduler
