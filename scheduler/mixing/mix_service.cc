#include "scheduler/mixing/mix_service.h"

#include <algorithm>
#include <utility>

#include "runtime/base/steady_now.h"

namespace paceline::scheduler {

MixService::MixService(Options options, TaskGraph& graph, collective::Averager& averager, SendToNode send)
    : OwnPaceService(options.job, graph, averager, std::move(send)),
      options_(std::move(options)),
      engine_({.self = job().self, .node_of = job().node_of}, options_.plan) {}

MixService::~MixService() = default;

void MixService::add_for(Rank rank, std::function<collective::Reduction(Member&, Worker&)> prepare,
                         std::function<void(Member&, Worker&, Instant)> finish) {
  const Decision done{.kind = Decision::Kind::averaged, .rank = rank};
  add_averaging({[this, rank, prepare = std::move(prepare)] {
                   Member* const member = living(rank);
                   return member ? prepare(*member, workers_.at(rank)) : reduction();
                 },
                 [this, rank, done, finish = std::move(finish)](Instant now) {
                   decide(done);
                   if (Member* const member = living(rank)) finish(*member, workers_.at(rank), now);
                 },
                 done},
                {rank});
}

// A step
// -----------------------------------------------------------------------------------------------------------------

void MixService::on_start(Rank rank, Instant now) {
  Member* const member = living(rank);
  if (!member || workers_.contains(rank)) return;
  const auto start = member->window.seal();
  if (!start) return fail_job(damaged_window(rank));
  const auto data = member->window.data(*start);
  Worker& w = workers_[rank];
  const Version first = job().first;
  w.t = w.exchange = w.sent_at = first;
  w.contributed = w.mixed = Version{first.value - 1};
  w.since = now;
  if (options_.push_sum) w.x.assign(data.begin(), data.end());
  if (overlaps()) w.total = w.x;
  if (overlaps()) {
    begin_exchange(rank);
  } else if (options_.combine_then_adapt || options_.stands_in) {
    w.model = std::make_shared<Bytes>(data.begin(), data.end());
    if (options_.combine_then_adapt) contribute(rank, first, {w.model, 1}, now);
  }
  member->window.unseal(memory::Window::Unseal::keep);
  start_averagings(now);
  begin(rank, now);
}

void MixService::on_arrival(Rank rank, Version t, Duration compute, Instant now) {
  if (!living(rank) && !replays()) return;
  hear({.kind = Decision::Kind::arrived, .rank = rank, .version = t, .at = now, .took = compute}, now);
}

/// Which shares there are when a worker goes on without the others', and who is known to be gone, depends on the order
/// in which all of these happen.
void MixService::step(const Decision& d) {
  const Instant now = steady_now();
  if (d.kind == Decision::Kind::arrived) return arrived(d.rank, d.version, d.took, now);
  if (d.kind != Decision::Kind::exchanged) return OwnPaceService::step(d);
  auto& waiting = exchanged_[{d.node, d.rank, d.group}];
  if (waiting.empty()) return;
  const auto message = std::move(waiting.front());
  waiting.pop_front();
  std::visit([&](const auto& each) { take(d.rank, each, now); }, message);
}

void MixService::arrived(Rank rank, Version t, Duration compute, Instant now) {
  if (t < job().first) return on_start(rank, now);
  const auto it = workers_.find(rank);
  if (it == workers_.end()) return;
  const auto buffer = on_published(rank, t, compute);
  if (!buffer) return;
  Worker& w = it->second;
  w.t = t;
  w.stood_in_for = false;
  w.published = *buffer;
  w.since = now;
  w.waits = true;
  if (overlaps()) {
    add_step(rank);
  } else if (options_.combine_then_adapt) {
    want(rank, now);
  } else {
    // The model after the step; under push-sum the numerator x + (after - x / w).
    const auto contribution = spare_bytes();
    add_for(
        rank,
        [this, contribution](Member& member, Worker& of) {
          auto r = reduction();
          r.inputs = {member.window.data(of.published).data()};
          if (options_.push_sum && of.weight != 1) {
            r.inputs.push_back(of.x.data());
            r.weights = {1, 1 - 1 / of.weight};
          }
          r.outputs.push_back({contribution->data(), 1.0});
          return r;
        },
        [this, rank, contribution](Member&, Worker& of, Instant at) {
          want(rank, at);  // Before what it contributes: mixings that this completes are then found together.
          contribute(rank, of.exchange, {contribution, of.weight}, at);
        });
  }
  start_averagings(now);
}

/// Overlap: the step's change goes to what the worker kept; shares that are here already are taken.
void MixService::add_step(Rank rank) {
  const auto change = [this](Member& member, const Worker& w, Bytes& to) {
    auto r = reduction();
    r.inputs = {to.data(), member.window.data(w.published).data(), w.x.data()};
    r.weights = {1, 1, -1 / w.weight};
    r.outputs.push_back({to.data(), 1.0});
    return r;
  };
  add_for(
      rank, [change](Member& member, Worker& w) { return change(member, w, w.total); },
      [](Member&, Worker&, Instant) {});
  add_for(
      rank, [change](Member& member, Worker& w) { return change(member, w, w.x); },
      [this, rank](Member&, Worker& w, Instant at) {
        const bool must_wait = w.t.value + 1 - w.sent_at.value >= options_.overlap;
        if (must_wait || engine_.ready(rank, w.exchange)) return want(rank, at);
        go_on_without(rank);
      });
}

void MixService::go_on_without(Rank rank) {
  add_for(
      rank,
      [this, rank](Member& member, Worker& w) {
        auto r = reduction();
        const auto buffer = begin_result(rank, member, w.t);
        if (!buffer) return r;
        r.inputs = {w.x.data()};
        r.outputs.push_back({member.window.data(*buffer).data(), 1 / w.weight});
        return r;
      },
      [this, rank](Member& member, Worker& w, Instant now) { deliver(rank, member, w, now); });
}

void MixService::want(Rank rank, Instant now) { act(engine_.on_wanted(rank, workers_.at(rank).exchange), now); }

void MixService::contribute(Rank rank, Version v, Contribution contribution, Instant now) {
  workers_.at(rank).contributed = v;
  held_[{rank, v}] = std::move(contribution);
  act(engine_.on_contribution(rank, v), now);
}

/// Overlap: what the worker gives away leaves x and w.
void MixService::begin_exchange(Rank rank) {
  const auto contribution = spare_bytes();
  Worker& w = workers_.at(rank);
  w.outstanding = true;
  const double kept = kept_share(rank, w.exchange);  // Known now: who leaves until it is done changes nothing.
  add_for(
      rank,
      [this, kept, contribution](Member&, Worker& of) {
        auto r = reduction();
        r.inputs = {of.x.data()};
        r.outputs = {{contribution->data(), 1.0}, {of.x.data(), kept}};
        return r;
      },
      [this, rank, kept, contribution](Member&, Worker& of, Instant now) {
        const double weight = of.weight;
        of.weight *= kept;
        contribute(rank, of.exchange, {contribution, weight}, now);
      });
}

/// Memory for a model; what nobody reads any more is used again, so that a step allocates nothing.
std::shared_ptr<MixService::Bytes> MixService::spare_bytes() {
  for (const auto& model : pool_)
    if (model.use_count() == 1) return model;
  return pool_.emplace_back(std::make_shared<Bytes>(bytes()));
}

/// Its own share, and those of workers that are gone and take none.
double MixService::kept_share(Rank rank, Version v) const {
  for (const Share& share : engine_.row(rank, v))
    if (share.from == rank) return share.weight;
  return 1;
}

void MixService::act(MixEngine::Actions actions, Instant now) {
  for (auto& action : actions) pending_actions_.emplace_back(std::move(action), now);
  if (acting_) return;  // The outer call carries them out, in order.
  acting_ = true;
  while (!pending_actions_.empty()) {
    const auto [action, at] = std::move(pending_actions_.front());
    pending_actions_.pop_front();
    std::visit([this](const auto& a) { carry_out(a); }, action);
    if (pending_actions_.empty()) start_averagings(at);
  }
  acting_ = false;
}

void MixService::carry_out(const MixEngine::Send& a) {
  const Contribution& contribution = held_.at({a.rank, a.version});
  wire::Message message;
  auto body = message.root().initShare();
  body.setJob(job().job.value);
  body.setRank(a.rank.value);
  body.setVersion(a.version.value);
  body.setWeight(contribution.weight);
  send(a.to, message, {*contribution.data});
}

void MixService::carry_out(const MixEngine::Release& a) { held_.erase({a.rank, a.version}); }

/// What is mixed is kept by the averaging: an engine that hears of a death releases what is being read.
std::shared_ptr<MixService::Terms> MixService::terms_of(const MixEngine::Mix& a) const {
  auto terms = std::make_shared<Terms>();
  for (const Share& share : a.row)
    terms->push_back({held_.at({share.from, a.version}), share.weight, share.from == a.rank});
  return terms;
}

void MixService::carry_out(const MixEngine::Mix& a) {
  if (!options_.combine_then_adapt && !options_.push_sum) return mix_alike(a);
  const auto terms = terms_of(a);
  const bool adds_change = !overlaps() && options_.combine_then_adapt;
  const auto next = adds_change ? spare_bytes() : nullptr;
  const bool has_change = adds_change && !workers_.at(a.rank).stood_in_for;
  add_for(
      a.rank,
      [this, a, terms, next, adds_change, has_change](Member& member, Worker& w) {
        auto r = reduction();
        const auto buffer = w.stood_in_for ? std::nullopt : begin_result(a.rank, member, w.t);
        if (!buffer && !w.stood_in_for) return r;
        double weight = 0;
        if (overlaps()) {  // It has kept its own share.
          r.inputs = {w.x.data()};
          r.weights = {1};
          weight = w.weight;
        }
        for (const Term& term : *terms) {
          if (overlaps() && term.own) continue;
          r.inputs.push_back(term.contribution.data->data());
          r.weights.push_back(term.weight - (has_change && term.own ? 1 : 0));
          weight += term.weight * term.contribution.weight;
        }
        if (has_change) {
          r.inputs.push_back(member.window.data(w.published).data());
          r.weights.push_back(1);
        }
        if (adds_change) r.outputs.push_back({next->data(), 1.0});
        if (options_.push_sum) {
          w.weight = weight;
          r.outputs.push_back({w.x.data(), 1.0});
        }
        if (buffer) r.outputs.push_back({member.window.data(*buffer).data(), options_.push_sum ? 1 / weight : 1.0});
        return r;
      },
      [this, a, next, adds_change](Member& member, Worker& w, Instant now) {
        w.model = next;
        end_mix(a.rank, a.version, member, w, now);
        if (adds_change && a.version < last()) contribute(a.rank, a.version.next(), {next, 1}, now);
      });
}

/// Everybody here who is to get the very same mixture (the mean of a cluster, of all) gets it of one pass.
void MixService::mix_alike(const MixEngine::Mix& a) {
  auto ranks = std::make_shared<std::vector<Rank>>(1, a.rank);
  std::erase_if(pending_actions_, [&](const auto& pending) {
    const auto* other = std::get_if<MixEngine::Mix>(&pending.first);
    if (!other || other->version != a.version || other->row != a.row) return false;
    ranks->push_back(other->rank);
    return true;
  });
  const auto terms = terms_of(a);
  const auto kept = options_.stands_in ? spare_bytes() : nullptr;
  const auto prepare = [this, ranks, terms, kept] {
    auto r = reduction();
    for (const Term& term : *terms) {
      r.inputs.push_back(term.contribution.data->data());
      r.weights.push_back(term.weight);
    }
    for (const Rank rank : *ranks) {
      Member* const member = living(rank);
      if (!member || workers_.at(rank).stood_in_for) continue;
      const auto buffer = begin_result(rank, *member, workers_.at(rank).t);
      if (buffer) r.outputs.push_back({member->window.data(*buffer).data(), 1.0});
    }
    if (kept) r.outputs.push_back({kept->data(), 1.0});
    return r;
  };
  const auto finish = [this, ranks, kept, v = a.version](Instant now) {
    for (const Rank rank : *ranks) workers_.at(rank).model = kept;
    for (const Rank rank : *ranks)
      if (Member* const member = living(rank)) end_mix(rank, v, *member, workers_.at(rank), now);
  };
  const Decision done{.kind = Decision::Kind::averaged, .rank = a.rank};
  add_averaging({prepare,
                 [this, finish, done](Instant now) {
                   decide(done);
                   finish(now);
                 },
                 done},
                *ranks);
}

void MixService::end_mix(Rank rank, Version v, Member& member, Worker& w, Instant now) {
  w.mixed = v;
  w.exchange = v.next();
  w.outstanding = false;
  ++counters_.group_averages;
  trace("mix", v, averaging_began(), steady_now());
  act(engine_.on_mixed(rank, v), now);
  deliver(rank, member, w, now);
}

void MixService::deliver(Rank rank, Member& member, Worker& w, Instant now) {
  if (!w.stood_in_for) {
    if (member.window.sealed()) member.window.unseal(memory::Window::Unseal::recycle);
    member.window.deliver();
  }
  w.waits = false;
  w.since = now;
  if (overlaps() && !w.outstanding && w.t < last()) {
    w.sent_at = w.t.next();
    begin_exchange(rank);
  }
  finish(rank, w.t, now);
}

void MixService::stand_in(Rank rank, Version v, Instant now) {
  Worker& w = workers_.at(rank);
  w.t = v;
  w.stood_in_for = w.waits = true;
  w.since = now;
  want(rank, now);
  if (!options_.combine_then_adapt) contribute(rank, v, {w.model, 1}, now);
}

void MixService::hand_over(Rank rank, Version own, Instant now) {
  if (!workers_.at(rank).stood_in_for) return verdict(rank, own, false);  // It is there.
  add_for(
      rank,
      [this, rank, own](Member& member, Worker& w) {
        auto r = reduction();
        const auto buffer = begin_result(rank, member, own);
        if (!buffer) return r;
        r.inputs = {w.model->data()};
        r.outputs.push_back({member.window.data(*buffer).data(), 1.0});
        return r;
      },
      [this, rank, own](Member& member, Worker& w, Instant at) {
        member.window.deliver();
        w.since = at;
        verdict(rank, own, false);
      });
  start_averagings(now);
}

OwnPaceService::ModelPart MixService::model_of(Rank rank) {
  const Worker& w = workers_.at(rank);
  if (options_.stands_in) return {w.model->data(), 1};
  if (overlaps()) return {w.total.data(), 1};
  if (options_.push_sum) return {w.x.data(), w.weight};
  const auto& window = members_.at(rank).window;
  const auto result = window.writing();
  return {result ? window.data(*result).data() : nullptr, 1};
}

// Others
// ------------------------------------------------------------------------------------------------------------------

void MixService::on_strategy_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                     Instant now) {
  if (message.isShare()) {
    const auto share = message.getShare();
    if (!has_right_size(from, "a model", bulk.size())) return;
    exchange(from, Rank{share.getRank()},
             Given{Version{share.getVersion()}, {std::make_shared<Bytes>(std::move(bulk)), share.getWeight()}}, now);
  } else if (message.isGone()) {
    const auto gone = message.getGone();
    exchange(from, Rank{gone.getRank()}, Gone{Version{gone.getContributed()}, Version{gone.getMixed()}}, now);
  } else if (message.isAwaited() && !replays()) {
    on_awaited(Rank{message.getAwaited().getRank()}, Version{message.getAwaited().getVersion()}, now);
  }
}

void MixService::exchange(NodeId from, Rank rank, std::variant<Given, Gone> message, Instant now) {
  if (!lives_on(rank, from)) return;
  const auto which = static_cast<std::int32_t>(message.index());
  exchanged_[{from, rank, which}].push_back(std::move(message));
  hear({.kind = Decision::Kind::exchanged, .rank = rank, .node = from, .group = which}, now);
}

void MixService::take(Rank rank, const Given& given, Instant now) {
  held_[{rank, given.version}] = given.contribution;
  act(engine_.on_contribution(rank, given.version), now);
}

void MixService::take(Rank rank, const Gone& gone, Instant now) {
  on_gone_elsewhere(rank, now);
  act(engine_.on_gone(rank, gone.contributed, gone.mixed), now);
}

/// Others may be more exchanges ahead than this worker will ever do.
void MixService::on_last(Rank rank, Instant now) {
  if (overlaps()) leave(rank, now);
}

void MixService::leave(Rank rank, Instant now) {
  const auto it = workers_.find(rank);
  const Version none{job().first.value - 1};
  const Version contributed = it == workers_.end() ? none : it->second.contributed;
  const Version mixed = it == workers_.end() ? none : it->second.mixed;
  for (const NodeId node : other_nodes()) {
    wire::Message message;
    auto body = message.root().initGone();
    body.setJob(job().job.value);
    body.setRank(rank.value);
    body.setContributed(contributed.value);
    body.setMixed(mixed.value);
    send(node, message);
  }
  act(engine_.on_gone(rank, contributed, mixed), now);
}

/// Who waits beyond patience complains about the first that is missing, once a patience.
void MixService::look(Instant now) {
  std::vector<std::pair<Rank, Version>> awaited;
  for (auto& [rank, w] : workers_) {
    const auto missing = engine_.missing(rank);
    if (!w.waits || !missing || now < std::max(w.since, w.complained) + patience()) continue;
    w.complained = now;
    awaited.emplace_back(*missing, w.exchange);
  }
  for (const auto& [rank, v] : awaited) {
    const NodeId node = job().node_of[static_cast<std::size_t>(rank.value)];
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

/// A worker of this node: it leaves if it has been silent for longer than patience. If it waits itself, its own
/// neighbours are asked.
void MixService::on_awaited(Rank rank, Version v, Instant now) {
  Member* const member = living(rank);
  const auto it = workers_.find(rank);
  if (!member || is_evaluating(rank) || (it != workers_.end() && (it->second.waits || it->second.contributed >= v)))
    return;
  it == workers_.end() ? leave_if_silent(rank, job().first, started(), now)
                       : leave_if_silent(rank, it->second.t, it->second.since, now);
}

std::optional<Instant> MixService::core_deadline() const {
  std::optional<Instant> next;
  for (const auto& [rank, w] : workers_) {
    if (!w.waits || !engine_.missing(rank)) continue;
    const Instant at = std::max(w.since, w.complained) + patience();
    next = next ? std::min(*next, at) : at;
  }
  return next;
}

std::optional<AveragingService::Waiting> MixService::waiting() const {
  std::optional<Waiting> waiting;
  for (const auto& [rank, w] : workers_) {
    const auto missing = engine_.missing(rank);
    if (!w.waits || !missing || (waiting && waiting->since <= w.since)) continue;
    waiting = Waiting{w.exchange, {*missing}, w.since};
  }
  return waiting;
}

}  // namespace paceline::scheduler
