#include "scheduler/rounds/round_coordinator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/observe/format.h"
#include "scheduler/shell/worker_windows.h"

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

}  // namespace

RoundCoordinator::RoundCoordinator(Workplace& work, Options options, std::unique_ptr<RoundPlan> plan)
    : Coordinator(work), options_(std::move(options)), engine_(engine_options(work_.job), std::move(plan)) {
  if (options_.outer_step) outer_.emplace(options_.outer_step, options_.outer_elements);
  abandons_ = engine_.plan().round(engine_.plan().next_round(work_.job.first)).late == Lateness::abandons;
}

// Events
// ----------------------------------------------------------------------------------------------------------------

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
  if (message.isPartial()) return on_partial(from, message.getPartial(), std::move(bulk), now);
  if (!message.isActivate()) return;
  const auto activate = message.getActivate();
  const Version v{activate.getVersion()};
  if (activate.getGone() >= 0)
    return work_.chronicle.hear({.kind = Kind::gone_elsewhere, .rank = Rank{activate.getGone()}, .at = now}, now);
  if (activate.getCount()) return work_.chronicle.hear({.kind = Kind::counted, .version = v, .at = now}, now);
  work_.chronicle.hear({.kind = Kind::activated, .node = NodeId{activate.getRoot()}, .version = v, .at = now}, now);
}

void RoundCoordinator::on_partial(NodeId from, const wire::Partial::Reader& header, std::vector<std::byte> sum,
                                  Instant now) {
  RemotePartial partial;
  partial.contributions = header.getContributions();
  partial.sum = piece_of(std::move(sum));
  partial.bodies = header.getBodies();
  partial.sums = {header.getLossSum(),      header.getLossCount(),          header.getSamples(),
                  header.getLearningRate(), Duration(header.getLeaderNs()), header.getStops()};
  const Version v{header.getVersion()};
  const auto of = work_.view.giver(from, header.getOf());
  if (of == from) used_.on_given(from, v);
  if (!of || !is_sound(*of, partial)) return;
  if (v <= engine_.done()) return;  // A duplicate of what is executed.
  if (!rounds_[{v.value, header.getGroup()}].remote.try_emplace(*of, std::move(partial)).second) return;
  work_.chronicle.hear({.kind = Kind::partial, .node = *of, .version = v, .group = header.getGroup(), .at = now}, now);
}

void RoundCoordinator::pass_on(NodeId lost, NodeId to) {
  const auto send = [&](const Key& key, const RemotePartial& partial) {
    send_partial(key, partial, partial.sum, lost, to);
  };
  used_.pass_on(lost, to, send);
  for (const auto& [key, round] : rounds_)  // Who has no part in it takes no notice.
    if (const auto partial = round.remote.find(lost); partial != round.remote.end()) send(key, partial->second);
}

/// Whether this node can add it to its own sum; else the job fails.
bool RoundCoordinator::is_sound(NodeId from, const RemotePartial& partial) {
  if (partial.contributions == 0) return true;
  const bool weighs = partial.contributions > 0 && (!options_.weighing.by_samples || partial.sums.samples > 0);
  if (!weighs)
    work_.fail_job(
        observe::format("node %d sent a partial sum of %d contributions with %lld samples: it weighs nothing",
                        from.value, partial.contributions, static_cast<long long>(partial.sums.samples)));
  return weighs && work_.has_right_size(from, "a partial sum", partial.sum.size());
}

/// In a replay deadlines are not looked at: what put them off then stands in the record.
void RoundCoordinator::on_alive(Rank rank, Instant now) {
  if (!work_.chronicle.replays()) work_.chronicle.hear({.kind = Kind::alive, .rank = rank, .at = now}, now);
}

void RoundCoordinator::on_gone(Rank rank, Instant now) {
  if (!work_.windows.living(rank) && !work_.chronicle.replays()) return;
  work_.chronicle.hear({.kind = Kind::gone, .rank = rank, .at = now}, now);
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
      auto& sums = rounds_[{d.version.value, d.group}].sums;
      sums.leader_time = d.took;
      sums.stops = d.stops;
      std::vector<std::optional<Version>> contributed;
      for (const auto& c : d.contributions) contributed.push_back(c.iteration);
      return act(engine_.on_sealed(d.version, d.group, contributed, d.at), d.at);
    }
    case Kind::executed: {
      auto actions = engine_.on_executed(d.version, d.group, executed_sums_, d.at);
      // What is left of versions that are done was passed on to an agent that has no part in it.
      rounds_.erase(rounds_.begin(), rounds_.upper_bound({engine_.done().value, INT32_MAX}));
      return act(std::move(actions), d.at);
    }
    case Kind::merged: return act(engine_.on_merged(d.rank, d.at), d.at);
    case Kind::gone:
      if (Member* const member = work_.windows.living(d.rank)) member->gone = true;
      work_.averagings.end_compute(d.rank);
      return act(engine_.on_gone(d.rank, d.at), d.at);
    case Kind::gone_elsewhere: return act(engine_.on_gone_elsewhere(d.rank, d.at), d.at);
    case Kind::node_gone: used_.on_lost(d.node); return act(engine_.on_node_gone(d.node, d.at), d.at);
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
// -----------------------------------------------------------------------------------------------------

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
  if (!work_.chronicle.replays() || is_alone()) return true;
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
    if (!member || !member->gone) return true;
  }
  return false;  // Nobody is left here who would get a result.
}

void RoundCoordinator::carry_out(const RoundEngine::Activate& a, Instant) {
  wire::Message message;
  auto body = message.root().initActivate();
  body.setJob(work_.job.job.value);
  body.setRoot(a.root.value);
  body.setVersion(a.version.value);
  work_.send(a.to, message);
}

void RoundCoordinator::carry_out(const RoundEngine::Count& a, Instant) {
  wire::Message message;
  auto body = message.root().initActivate();
  body.setJob(work_.job.job.value);
  body.setVersion(a.version.value);
  body.setCount(true);
  work_.send(a.to, message);
}

void RoundCoordinator::carry_out(const RoundEngine::Gone& a, Instant) {
  wire::Message message;
  auto body = message.root().initActivate();
  body.setJob(work_.job.job.value);
  body.setGone(a.rank.value);
  work_.send(a.to, message);
}

void RoundCoordinator::carry_out(const RoundEngine::Seal& a, Instant now) {
  auto& round = rounds_[{a.version.value, a.group}];
  round.members = a.members;
  const Lateness late_ones = engine_.plan().round(a.version).late;
  const bool cuts_short = abandons_ || late_ones == Lateness::finishes;
  Decision sealed{.kind = Kind::sealed, .version = a.version, .group = a.group, .at = now};
  if (work_.view.leads()) sealed.took = work_.clock.at(now);
  sealed.stops = stop_wanted_ ? 1 : 0;
  for (const Rank rank : a.members) {
    auto& found = sealed.contributions.emplace_back();
    found.rank = rank;
    Member* const member = work_.windows.find(rank);
    if (!member) continue;  // Has not opened its share yet: it contributes nothing.
    if (work_.chronicle.replays() && !work_.chronicle.replay().next_contribution(rank)) continue;
    auto& window = member->window;
    const auto buffer = window.seal();
    if (!buffer && is_alone()) {
      found.iteration = a.version;
      found.bodies = options_.weighing.bodies;
    }
    if (!buffer) continue;
    const auto tag = window.tag(*buffer);
    if (!counts(tag, a.version)) {
      window.unseal(memory::Window::Unseal::keep);
      continue;
    }
    found.iteration = Version{tag.iteration};
    found.bodies = tag.bodies;
    add_contribution(round, {rank, *buffer, tag.samples}, tag, a.version, cuts_short);
  }
  if (abandons_ && work_.job.node_of.size() > 1) {
    const auto missing = static_cast<std::int64_t>(a.members.size() - round.contributions.size());
    work_.counters.abandoned_bodies += missing * options_.weighing.bodies;
  }
  if (is_alone() || (!cuts_short && !options_.weighing.by_samples))
    round.sums.samples = engine_.plan().round(a.version).kind == Round::Kind::sync ? newly_computed() : 0;
  check_learning_rates(round, a.version);
  work_.chronicle.decide(sealed);
}

/// Samples since the last average of all: what the late published in between is in no sum, or in several.
std::int64_t RoundCoordinator::newly_computed() {
  std::int64_t all = 0;
  for (const auto& [rank, member] : work_.windows.all())
    all += member.window.progress().samples.load(std::memory_order_relaxed);
  return all - std::exchange(counted_samples_, all);
}

bool RoundCoordinator::counts(const memory::BufferTag& tag, Version v) const {
  // Gradients of another version do not, unless what was late is to.
  if (gradients(v)) return tag.iteration == v.value || engine_.plan().round(v).late == Lateness::accumulates;
  // What was published before the last average is in it.
  return !options_.weighing.by_samples || (tag.iteration > engine_.done().value && tag.samples > 0);
}

void RoundCoordinator::add_contribution(Gathering& round, const Contribution& from, const memory::BufferTag& tag,
                                        Version v, bool cuts_short) {
  if (options_.weighing.by_bodies && tag.bodies < options_.weighing.bodies) {
    // Sealed: nobody else touches it before the round is executed.
    void* sum = work_.windows.at(from.rank).window.data(from.buffer).data();
    const void* inputs[] = {sum};
    collective::sum_into(sum, options_.weighing.of_unfinished(tag.bodies), inputs, work_.windows.elements(),
                         work_.windows.dtype());
  }
  round.contributions.push_back(from);
  round.bodies += tag.bodies;
  add(round.sums, {tag.loss_sum, tag.loss_count, tag.samples, tag.learning_rate, {}, 0});
  if (cuts_short) work_.counters.abandoned_bodies += std::max(0, options_.weighing.bodies - tag.bodies);
  const auto late = std::max<std::int64_t>(0, v.value - tag.iteration);
  ++work_.counters.staleness[std::min(static_cast<std::size_t>(late), work_.counters.staleness.size() - 1)];
}

void RoundCoordinator::check_learning_rates(const Gathering& round, Version v) {
  std::optional<std::pair<Rank, double>> first;
  for (const auto& c : round.contributions) {
    const auto& tag = work_.windows.at(c.rank).window.tag(c.buffer);
    if (tag.iteration != v.value) continue;
    if (!first) {
      first = {c.rank, tag.learning_rate};
    } else if (std::abs(first->second - tag.learning_rate) > 1e-12 * std::abs(first->second)) {
      work_.fail_job(observe::format(
          "learning rates differ at update %lld: worker %d has %g, worker %d has %g; let "
          "shared.schedule(scheduler) advance them",
          static_cast<long long>(v.value), first->first.value, first->second, c.rank.value, tag.learning_rate));
      return;
    }
  }
}

void RoundCoordinator::carry_out(const RoundEngine::SendPartial& a, Instant) {
  const Key key{a.version.value, a.group};
  auto& round = rounds_[key];
  if (round.partial_targets.empty() && !round.partial_ready)
    work_.averagings.add({[this, key] { return prepare_partial(key); }, [this, key](Instant) { finish_partial(key); }},
                         ranks_of(round.contributions));
  if (round.partial_ready) {
    send_partial(key, a.to);
  } else {
    round.partial_targets.push_back(a.to);
  }
}

void RoundCoordinator::send_partial(const Key& key, NodeId to) {
  const auto& round = rounds_.at(key);
  const auto contributions = static_cast<std::int32_t>(round.contributions.size());
  send_partial(key, {contributions, round.bodies, round.sums},
               round.own_partial ? piece_of(round.own_partial) : Piece{}, work_.job.self, to);
}

void RoundCoordinator::send_partial(const Key& key, const Summed& summed, Piece sum, NodeId of, NodeId to) {
  wire::Message message;
  auto body = message.root().initPartial();
  body.setJob(work_.job.job.value);
  body.setVersion(key.first);
  body.setGroup(key.second);
  body.setContributions(summed.contributions);
  body.setBodies(summed.bodies);
  body.setLossSum(summed.sums.loss_sum);
  body.setLossCount(summed.sums.loss_count);
  body.setSamples(summed.sums.samples);
  body.setLearningRate(summed.sums.learning_rate);
  body.setLeaderNs(summed.sums.leader_time.count());
  body.setStops(summed.sums.stops);
  if (of != work_.job.self) body.setOf(of.value);
  work_.send(to, message, std::move(sum));
}

void RoundCoordinator::carry_out(const RoundEngine::Execute& a, Instant) {
  const Decision done{.kind = Kind::executed, .version = a.version, .group = a.group};
  work_.averagings.add(
      {[this, a] { return prepare_average(a); }, [this, a](Instant at) { finish_average(a, at); }, done},
      ranks_of(rounds_[{a.version.value, a.group}].contributions));
}

void RoundCoordinator::carry_out(const RoundEngine::Merge& a, Instant) {
  const Decision done{.kind = Kind::merged, .rank = a.rank};
  work_.averagings.add({[this, a] { return prepare_merge(a); }, [this, a](Instant at) { finish_merge(a, at); }, done},
                       {a.rank});
}

void RoundCoordinator::carry_out(const RoundEngine::Verdict& a, Instant) {
  work_.counters.skipped += a.skipped;
  memory::WorkerVerdict verdict;
  verdict.own = a.own.value;
  verdict.next = a.next.value;
  verdict.next_round = a.next_round.value;
  verdict.skipped = a.skipped;
  verdict.fresh = a.fresh;
  verdict.averaged = a.averaged;
  verdict.end = a.end;
  verdict.lr_may_decay = a.lr_may_decay;
  work_.windows.set_verdict(a.rank, verdict);
  if (!a.end && !abandons_ && work_.windows.find(a.rank)) work_.averagings.begin_compute(a.rank);
}

void RoundCoordinator::carry_out(const RoundEngine::Abandon& a, Instant) { work_.windows.abandon(a.version); }

void RoundCoordinator::carry_out(const RoundEngine::Leave& a, Instant) {
  if (Member* const member = work_.windows.find(a.rank)) member->gone = true;
  work_.tell(Left{a.rank, a.version, a.silent, a.waited});
}

// Averaging tasks
// -----------------------------------------------------------------------------------------------------------

std::vector<Rank> RoundCoordinator::ranks_of(const std::vector<Contribution>& contributions) {
  std::vector<Rank> ranks;
  for (const auto& c : contributions) ranks.push_back(c.rank);
  return ranks;
}

void RoundCoordinator::add_inputs(collective::Reduction& reduction, const Gathering& round) {
  for (const auto& c : round.contributions) {
    reduction.inputs.push_back(work_.windows.at(c.rank).window.data(c.buffer).data());
    if (options_.weighing.by_samples) reduction.weights.push_back(options_.weighing.of_samples(c.samples));
  }
}

collective::Reduction RoundCoordinator::prepare_partial(const Key& key) {
  auto& round = rounds_.at(key);
  auto reduction = work_.windows.reduction();
  if (round.contributions.empty()) return reduction;
  round.own_partial = work_.pool.get(work_.windows.bytes());
  add_inputs(reduction, round);
  reduction.outputs.push_back({round.own_partial->data(), 1.0});
  return reduction;
}

void RoundCoordinator::finish_partial(const Key& key) {
  auto& round = rounds_.at(key);
  round.partial_ready = true;
  for (const NodeId to : std::exchange(round.partial_targets, {})) send_partial(key, to);
}

bool RoundCoordinator::is_partial(Version v) const {
  const Lateness late = engine_.plan().round(v).late;
  return late == Lateness::accumulates || late == Lateness::drops;
}

double RoundCoordinator::scale_of(const Gathering& round, Version v) const {
  Weighing::Total total{static_cast<std::int64_t>(round.contributions.size()), round.bodies, round.sums.samples};
  for (const auto& [node, partial] : round.remote) {
    total.contributions += partial.contributions;
    total.bodies += partial.bodies;
    total.samples += partial.sums.samples;
  }
  const auto members = static_cast<std::int64_t>(work_.job.node_of.size());
  return 1.0 / options_.weighing.divisor_of(total, members, engine_.plan().round(v).payload);
}

collective::Reduction RoundCoordinator::prepare_average(const RoundEngine::Execute& what) {
  auto& round = rounds_.at({what.version.value, what.group});
  auto reduction = work_.windows.reduction();

  outputs_.clear();
  // One summation order everywhere: nodes ascending, inside the own node by rank.
  auto contributions = static_cast<std::int32_t>(round.contributions.size());
  if (what.others.empty()) {
    add_inputs(reduction, round);
  } else {
    bool own_added = round.contributions.empty();
    const auto add_own = [&] {
      if (!own_added) reduction.inputs.push_back(round.own_partial->data());
      own_added = true;
    };
    for (const auto& [node, partial] : round.remote) {
      if (work_.job.self < node) add_own();
      if (partial.contributions > 0) {
        // It may have come before anybody here had opened a share.
        if (!work_.has_right_size(node, "a partial sum", partial.sum.size())) return work_.windows.reduction();
        reduction.inputs.push_back(partial.sum.data());
      }
      contributions += partial.contributions;
    }
    add_own();
  }
  const bool gives_gradients = gradients(what.version), partial = is_partial(what.version);
  if (reduction.inputs.empty() && (!partial || is_alone())) return reduction;

  const double mean = scale_of(round, what.version);
  const auto contributor = [&](Rank rank) {
    return std::any_of(round.contributions.begin(), round.contributions.end(),
                       [&](const auto& c) { return c.rank == rank; });
  };
  const auto output = [&](Rank rank, bool fresh) {
    Member* const member = work_.windows.living(rank);
    if (!member) return;
    auto& window = member->window;
    const bool in_place = gives_gradients && contributor(rank);
    // Nothing to give: its gradient was of another version.
    if (gives_gradients && !in_place && !abandons_ && !partial) return;
    const auto buffer = in_place ? window.begin_result_in_place() : window.begin_result();
    if (!buffer) return work_.fail_job(damaged_window(rank));
    outputs_.push_back(rank);
    const bool whole = (fresh && (what.sync || !options_.adds_own_again)) || gives_gradients;
    window.tag(*buffer) = {};
    window.tag(*buffer).iteration = what.version.value;
    window.tag(*buffer).divisor = whole ? 1 : contributions;
    reduction.outputs.push_back({window.data(*buffer).data(), whole ? mean : 1.0});
  };
  for (const Rank rank : what.fresh) output(rank, true);
  if (outer_) {  // The late take it from there.
    if (outer_->has_begun()) outer_->carry_on(reduction, mean);
  } else if (!engine_.plan().round(what.version).merges_own_version) {
    for (const Rank rank : what.stale) output(rank, false);
  } else if (!what.stale.empty()) {
    auto kept = std::make_shared<Kept>(Kept{std::vector<std::byte>(work_.windows.bytes()), contributions});
    reduction.outputs.push_back({kept->sum.data(), 1.0});
    for (const Rank rank : what.stale) kept_[rank][what.version] = kept;
  }
  return reduction;
}

void RoundCoordinator::finish_average(const RoundEngine::Execute& what, Instant now) {
  auto node = rounds_.extract({what.version.value, what.group});
  const Gathering& round = node.mapped();
  const Version v = what.version;
  RoundSums sums = round.sums;
  for (const auto& [from, partial] : round.remote) add(sums, partial.sums);

  // A model is no contribution to a round of gradients, nor the other way round.
  const bool keeps = !gradients(v) && !gradients(v.next());
  for (const auto& c : round.contributions) {
    auto& window = work_.windows.at(c.rank).window;
    if (window.sealed()) window.unseal(keeps ? memory::Window::Unseal::keep : memory::Window::Unseal::recycle);
  }
  const auto& fresh = what.fresh;
  for (const Rank rank : outputs_) {
    auto& window = work_.windows.at(rank).window;
    const bool waits_for_it = !abandons_ && std::find(fresh.begin(), fresh.end(), rank) != fresh.end();
    waits_for_it ? window.deliver() : window.retain();
  }
  std::erase_if(kept_, [&](const auto& entry) {
    const Member* const member = work_.windows.find(entry.first);
    return member && member->gone;
  });
  (what.sync ? work_.counters.global_averages : work_.counters.group_averages) += 1;
  work_.trace("average", v);

  const bool sync = what.sync && !is_partial(v);
  const bool over = sync && (v >= engine_.last() || sums.stops > 0);
  const bool evaluate = sync && work_.job.evaluates && (over || work_.evaluation_due(v));
  std::optional<Rank> evaluator;
  if (over) {
    engine_.end_at(v);
    work_.windows.set_last(v);
  }
  if (evaluate) {
    work_.note_evaluated(v);
    for (const auto& [rank, member] : work_.windows.all()) {
      const bool is_fresh = std::find(fresh.begin(), fresh.end(), rank) != fresh.end();
      if (member.gone || (!is_fresh && (!over || evaluator))) continue;
      evaluator = rank;
      if (is_fresh) break;  // At the end the late get the same model, only later.
    }
  }
  if (evaluate || over) work_.hold(v);
  work_.tell(Executed{v, sync, over, evaluate, evaluator, sums});
  if (abandons_) {
    work_.windows.set_executed(v);
    for (const auto& [rank, member] : work_.windows.all())
      work_.averagings.begin_compute(rank);  // What was left of the last one is abandoned.
  }
  executed_sums_ = sums;
  used_.keep(node.key(), what.others, std::move(node.mapped().remote));
  work_.chronicle.decide({.kind = Kind::executed, .version = v, .group = what.group, .at = now});
}

collective::Reduction RoundCoordinator::prepare_merge(const RoundEngine::Merge& what) {
  auto reduction = work_.windows.reduction();
  outputs_.clear();
  Member* const member = work_.windows.living(what.rank);
  if (!member) return reduction;
  auto& window = member->window;
  if (outer_) {
    const auto buffer = work_.begin_result(what.rank, *member, what.own);
    if (!buffer) return reduction;
    outputs_.push_back(what.rank);
    reduction.inputs.push_back(outer_->data());
    reduction.outputs.push_back({window.data(*buffer).data(), 1.0});
    return reduction;
  }
  const bool merges = !gradients(what.own);  // A mean gradient is taken as it is.
  const auto own = window.published() ? window.published() : window.sealed();
  const auto& kept = kept_[what.rank];
  const auto missed = kept.find(what.with);
  const auto with = missed == kept.end() ? window.latest() : std::nullopt;
  if (merges ? !own : !is_partial(what.own)) return reduction;
  const auto buffer = work_.begin_result(what.rank, *member, what.own);
  if (!buffer) return reduction;
  outputs_.push_back(what.rank);
  // A worker that opened its share after the round has no result to merge with: it goes on with its own.
  std::int32_t contributions = 0;
  if (missed != kept.end()) {
    reduction.inputs.push_back(missed->second->sum.data());
    contributions = missed->second->contributions;
  } else if (with) {
    reduction.inputs.push_back(window.data(*with).data());
    contributions = std::max(1, window.tag(*with).divisor);
  }
  if (merges) reduction.inputs.push_back(window.data(*own).data());
  const double divisor = merges ? contributions + 1.0 : 1.0;
  reduction.outputs.push_back({window.data(*buffer).data(), 1.0 / divisor});
  return reduction;
}

void RoundCoordinator::finish_merge(const RoundEngine::Merge& what, Instant now) {
  for (const Rank rank : outputs_) work_.windows.at(rank).window.deliver();
  auto& kept = kept_[what.rank];
  kept.erase(kept.begin(), kept.upper_bound(what.with));
  ++work_.counters.late_merges;
  work_.trace("merge", what.own);
  work_.chronicle.decide({.kind = Kind::merged, .rank = what.rank, .at = now});
}

}  // namespace paceline::scheduler
