#include "scheduler/mixing/model_mixing.h"

#include <algorithm>
#include <utility>

#include "scheduler/shell/worker_windows.h"

namespace paceline::scheduler {

ModelMixing::ModelMixing(Workplace& work, OwnPace& pace, Neighbours& neighbours, Options options)
    : work_(work), pace_(pace), neighbours_(neighbours), options_(std::move(options)), averagings_(work) {}

void ModelMixing::add_for(Rank rank, std::function<collective::Reduction(Member&, Worker&)> prepare,
                          std::function<void(Member&, Worker&, Instant)> finish) {
  averagings_.add(
      rank, [this, rank, prepare = std::move(prepare)](Member& member) { return prepare(member, workers_.at(rank)); },
      [this, rank, finish = std::move(finish)](Member& member, Instant now) {
        finish(member, workers_.at(rank), now);
      });
}

// A step

void ModelMixing::on_start(Rank rank, Version own, Instant now) {
  auto* const member = work_.windows.living(rank);
  if (!member) return;
  const auto start = member->window.seal();
  if (!start) return work_.fail_job(damaged_window(rank));
  const auto data = member->window.data(*start);
  workers_.erase(rank);
  Worker& w = workers_.emplace(rank, Worker{neighbours_.add(rank, own, now)}).first->second;
  w.sent_at = own.next();
  if (options_.push_sum) w.x.assign(data.begin(), data.end());
  if (overlaps()) w.total = w.x;
  if (overlaps()) {
    begin_exchange(rank);
  } else if (options_.combine_then_adapt || options_.stands_in) {
    w.model = work_.pool.get(data.size());
    std::copy(data.begin(), data.end(), w.model->begin());
    if (options_.combine_then_adapt)
      neighbours_.contribute(rank, own.next(), {piece_of(w.model), 1, work_.ledger.model(rank)}, now);
  }
  member->window.unseal(memory::Window::Unseal::keep);
  work_.averagings.start(now);
  pace_.begin(rank, own, now);
}

void ModelMixing::on_arrival(Rank rank, Version t, Duration compute, Instant now) {
  const auto it = workers_.find(rank);
  if (it == workers_.end() || !neighbours_.begin_wait(rank, t, compute, now)) return;
  it->second.stood_in_for = false;
  if (overlaps()) {
    add_step(rank);
  } else if (options_.combine_then_adapt) {
    neighbours_.want(rank, now);
  } else {
    // The model after the step; under push-sum the numerator x + (after - x / w).
    const auto contribution = work_.pool.get(work_.windows.bytes());
    add_for(
        rank,
        [this, contribution](Member& member, Worker& of) {
          auto r = work_.windows.reduction();
          r.inputs = {member.window.data(of.turn.published).data()};
          if (options_.push_sum && of.weight != 1) {
            r.inputs.push_back(of.x.data());
            r.weights = {1, 1 - 1 / of.weight};
          }
          r.outputs.push_back({contribution->data(), 1.0});
          return r;
        },
        [this, rank, contribution](Member&, Worker& of, Instant at) {
          // Before what it contributes: mixings that this completes are then found together.
          neighbours_.want(rank, at);
          work_.ledger.on_used(rank, of.turn.t);
          neighbours_.contribute(rank, of.turn.exchange, {piece_of(contribution), of.weight}, at);
        });
  }
  work_.averagings.start(now);
}

/// Overlap: the step's change goes to what the worker kept; shares that are here already are taken.
void ModelMixing::add_step(Rank rank) {
  const auto change = [this](Member& member, const Worker& w, Bytes& to) {
    auto r = work_.windows.reduction();
    r.inputs = {to.data(), member.window.data(w.turn.published).data(), w.x.data()};
    r.weights = {1, 1, -1 / w.weight};
    r.outputs.push_back({to.data(), 1.0});
    return r;
  };
  averagings_.add_sum(rank, [this, rank, change](Member& member) {
    Worker& w = workers_.at(rank);
    return change(member, w, w.total);
  });
  add_for(
      rank, [change](Member& member, Worker& w) { return change(member, w, w.x); },
      [this, rank](Member&, Worker& w, Instant at) {
        const bool must_wait = w.turn.t.value + 1 - w.sent_at.value >= options_.overlap;
        if (must_wait || neighbours_.engine().ready(rank, w.turn.exchange)) return neighbours_.want(rank, at);
        go_on_without(rank);
      });
}

void ModelMixing::go_on_without(Rank rank) {
  add_for(
      rank,
      [this, rank](Member& member, Worker& w) {
        auto r = work_.windows.reduction();
        const auto buffer = work_.begin_result(rank, member, w.turn.t);
        if (!buffer) return r;
        r.inputs = {w.x.data()};
        r.outputs.push_back({member.window.data(*buffer).data(), 1 / w.weight});
        return r;
      },
      [this, rank](Member& member, Worker& w, Instant now) { deliver(rank, member, w, now); });
}

/// Overlap: what the worker gives away leaves x and w.
void ModelMixing::begin_exchange(Rank rank) {
  const auto contribution = work_.pool.get(work_.windows.bytes());
  Worker& w = workers_.at(rank);
  w.outstanding = true;
  const double kept = kept_share(rank, w.turn.exchange);  // Known now: who leaves until it is done changes nothing.
  add_for(
      rank,
      [this, kept, contribution](Member&, Worker& of) {
        auto r = work_.windows.reduction();
        r.inputs = {of.x.data()};
        r.outputs = {{contribution->data(), 1.0}, {of.x.data(), kept}};
        return r;
      },
      [this, rank, kept, contribution, t = w.turn.t](Member&, Worker& of, Instant now) {
        const double weight = of.weight;
        of.weight *= kept;
        work_.ledger.on_used(rank, t);
        neighbours_.contribute(rank, of.turn.exchange, {piece_of(contribution), weight}, now);
      });
}

/// Its own share, and those of workers that are gone and take none.
double ModelMixing::kept_share(Rank rank, Version v) const {
  for (const Share& share : neighbours_.engine().row(rank, v))
    if (share.from == rank) return share.weight;
  return 1;
}

void ModelMixing::carry_out(const MixEngine::Mix& a) {
  if (!options_.combine_then_adapt && !options_.push_sum) return mix_alike(a);
  const auto terms = neighbours_.terms_of(a);
  const bool adds_change = !overlaps() && options_.combine_then_adapt;
  const auto next = adds_change ? work_.pool.get(work_.windows.bytes()) : nullptr;
  const bool has_change = adds_change && !workers_.at(a.rank).stood_in_for;
  add_for(
      a.rank,
      [this, a, terms, next, adds_change, has_change](Member& member, Worker& w) {
        auto r = work_.windows.reduction();
        const auto buffer = w.stood_in_for ? std::nullopt : work_.begin_result(a.rank, member, w.turn.t);
        if (!buffer && !w.stood_in_for) return r;
        double weight = 0;
        if (overlaps()) {  // It has kept its own share.
          r.inputs = {w.x.data()};
          r.weights = {1};
          weight = w.weight;
        }
        for (const Term& term : *terms) {
          if (overlaps() && term.own) continue;
          r.inputs.push_back(term.contribution.data.data());
          r.weights.push_back(term.weight - (has_change && term.own ? 1 : 0));
          weight += term.weight * term.contribution.weight;
        }
        if (has_change) {
          r.inputs.push_back(member.window.data(w.turn.published).data());
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
      [this, a, terms, next, adds_change](Member& member, Worker& w, Instant now) {
        w.model = next;
        if (adds_change && a.version < pace_.last()) work_.ledger.on_used(a.rank, w.turn.t);
        end_mix(a, *terms, member, w, now);
        if (adds_change && a.version < pace_.last())
          neighbours_.contribute(a.rank, a.version.next(), {piece_of(next), 1, work_.ledger.model(a.rank)}, now);
      });
}

/// Everybody here who is to get the very same mixture (the mean of a cluster, of all) gets it of one pass.
void ModelMixing::mix_alike(const MixEngine::Mix& a) {
  const auto ranks = std::make_shared<std::vector<Rank>>(neighbours_.take_alike(a));
  const auto terms = neighbours_.terms_of(a);
  const auto kept = options_.stands_in ? work_.pool.get(work_.windows.bytes()) : nullptr;
  const auto prepare = [this, ranks, terms, kept] {
    auto r = work_.windows.reduction();
    for (const Term& term : *terms) {
      r.inputs.push_back(term.contribution.data.data());
      r.weights.push_back(term.weight);
    }
    for (const Rank rank : *ranks) {
      auto* const member = work_.windows.living(rank);
      if (!member || workers_.at(rank).stood_in_for) continue;
      const auto buffer = work_.begin_result(rank, *member, workers_.at(rank).turn.t);
      if (buffer) r.outputs.push_back({member->window.data(*buffer).data(), 1.0});
    }
    if (kept) r.outputs.push_back({kept->data(), 1.0});
    return r;
  };
  const auto finish = [this, ranks, terms, kept, a](Instant now) {
    for (const Rank rank : *ranks) workers_.at(rank).model = kept;
    for (const Rank rank : *ranks)
      if (auto* const member = work_.windows.living(rank))
        end_mix({rank, a.version, {}}, *terms, *member, workers_.at(rank), now);
  };
  averagings_.add(a.rank, {prepare, finish}, *ranks);
}

void ModelMixing::end_mix(const MixEngine::Mix& what, const Neighbours::Terms& terms, Member& member, Worker& w,
                          Instant now) {
  w.outstanding = false;
  neighbours_.end_mix(what.rank, what.version, terms, now);
  deliver(what.rank, member, w, now);
}

void ModelMixing::deliver(Rank rank, Member& member, Worker& w, Instant now) {
  if (!w.stood_in_for) {
    if (member.window.sealed()) member.window.unseal(memory::Window::Unseal::recycle);
    member.window.deliver();
  }
  neighbours_.end_wait(rank, now);
  if (overlaps() && !w.outstanding && w.turn.t < pace_.last()) {
    w.sent_at = w.turn.t.next();
    begin_exchange(rank);
  }
  pace_.finish(rank, w.turn.t, now);
}

void ModelMixing::stand_in(Rank rank, Version v, Instant now) {
  Worker& w = workers_.at(rank);
  w.turn.t = v;
  w.stood_in_for = w.turn.waits = true;
  w.turn.since = now;
  neighbours_.want(rank, now);
  if (!options_.combine_then_adapt)
    neighbours_.contribute(rank, v, {piece_of(w.model), 1, work_.ledger.model(rank)}, now);
}

void ModelMixing::hand_over(Rank rank, Version own, Instant now) {
  if (!workers_.at(rank).stood_in_for) return pace_.tell_to_go_on(rank, own);  // It is there.
  add_for(
      rank,
      [this, rank, own](Member& member, Worker& w) {
        auto r = work_.windows.reduction();
        const auto buffer = work_.begin_result(rank, member, own);
        if (!buffer) return r;
        r.inputs = {w.model->data()};
        r.outputs.push_back({member.window.data(*buffer).data(), 1.0});
        return r;
      },
      [this, rank, own](Member& member, Worker& w, Instant at) {
        member.window.deliver();
        w.turn.since = at;
        pace_.tell_to_go_on(rank, own);
      });
  work_.averagings.start(now);
}

ModelMeans::Part ModelMixing::model_of(Rank rank) const {
  const Worker& w = workers_.at(rank);
  if (options_.stands_in) return {w.model->data(), 1};
  if (overlaps()) return {w.total.data(), 1};
  if (options_.push_sum) return {w.x.data(), w.weight};
  const auto& window = work_.windows.at(rank).window;
  const auto result = window.writing();
  return {result ? window.data(*result).data() : nullptr, 1};
}

/// How far the foremost worker here is, in steps and in exchanges.
std::pair<Version, Version> ModelMixing::furthest() const {
  Version step = work_.job.first, exchange = work_.job.first;
  for (const auto& [rank, w] : workers_) {
    step = std::max(step, w.turn.t);
    exchange = std::max(exchange, w.turn.exchange);
  }
  return {step, exchange};
}

}  // namespace paceline::scheduler
