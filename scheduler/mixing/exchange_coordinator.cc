#include "scheduler/mixing/exchange_coordinator.h"

#include <algorithm>
#include <utility>

#include "scheduler/shell/worker_windows.h"

namespace paceline::scheduler {

ExchangeCoordinator::ExchangeCoordinator(Workplace& work, Options options)
    : Coordinator(work),
      options_(std::move(options)),
      pace_(work, *this, {}),
      neighbours_(work, pace_, *this, {.plan = options_.plan, .alike = !is_whole(), .every = options_.every}),
      averagings_(work) {}

std::optional<Version> ExchangeCoordinator::sent_after(std::int64_t t) const {
  if (t < work_.job.first.value || (t + 1) % options_.every != 0) return std::nullopt;
  return Version{(t + 1) / options_.every - 1};
}

Version ExchangeCoordinator::next_publication(Version v) const {
  const auto next_sent = [this](std::int64_t t) {
    t = std::max(t, work_.job.first.value);
    return t + options_.every - 1 - t % options_.every;
  };
  const std::int64_t t = v.value + 1;
  return Version{std::min(next_sent(t), next_sent(t - options_.delay) + options_.delay)};
}

ExchangeCoordinator::Range ExchangeCoordinator::part(Version r) const {
  if (is_whole()) return {0, work_.windows.elements()};
  const auto parts = static_cast<std::size_t>(options_.parts), part = static_cast<std::size_t>(r.value) % parts;
  return {work_.windows.elements() * part / parts, work_.windows.elements() * (part + 1) / parts};
}

ExchangeCoordinator::Range ExchangeCoordinator::outer(Range range) const {
  const std::size_t end = outer_elements();
  return {std::min(range.from, end), std::min(range.to, end)};
}

ExchangeCoordinator::Range ExchangeCoordinator::rest(Range range) const {
  const std::size_t begin = outer_elements();
  return {std::max(range.from, begin), std::max(range.to, begin)};
}

/// A part; a whole model, and slow weights behind it.
std::size_t ExchangeCoordinator::contribution_bytes(Version r) const {
  const auto [from, to] = part(r);
  return (to - from + (is_whole() ? outer_elements() : 0)) * memory::size_of(work_.windows.dtype());
}

std::byte* ExchangeCoordinator::at(Member& member, const Worker& worker, std::size_t i) const {
  return member.window.data(worker.turn.published).data() + i * memory::size_of(work_.windows.dtype());
}

collective::Reduction ExchangeCoordinator::sum_of(Range range) const {
  auto sum = work_.windows.reduction();
  sum.elements = range.to - range.from;
  return sum;
}

// A step

void ExchangeCoordinator::on_start(Rank rank, Instant now) {
  Member* const member = work_.windows.living(rank);
  if (!member || workers_.contains(rank)) return;
  const auto start = member->window.seal();
  if (!start) return work_.fail_job(damaged_window(rank));
  Worker& w = workers_.emplace(rank, Worker{neighbours_.add(rank, Version{work_.job.first.value - 1}, now), nullptr})
                  .first->second;
  auto& slow = is_whole() ? w.slow : common_;  // All start alike.
  if (!slow) {
    slow = std::make_shared<Slow>();
    const auto weights = member->window.data(*start).first(outer_elements() * memory::size_of(work_.windows.dtype()));
    slow->weights.assign(weights.begin(), weights.end());
    slow->buffer.resize(weights.size());
  }
  w.slow = slow;
  member->window.unseal(memory::Window::Unseal::keep);
  pace_.begin(rank, Version{work_.job.first.value - 1}, now);
}

void ExchangeCoordinator::step(const Decision& d) {
  const Instant now = work_.now();
  if (d.kind != Decision::Kind::arrived) return neighbours_.step(d);
  d.version < work_.job.first ? on_start(d.rank, now) : on_arrival(d.rank, d.version, d.took, now);
}

void ExchangeCoordinator::on_arrival(Rank rank, Version t, Duration compute, Instant now) {
  const auto it = workers_.find(rank);
  if (it == workers_.end() || !neighbours_.begin_wait(rank, t, compute, now)) return;
  if (const auto sent = sent_after(t.value)) send_model(rank, *sent);
  const auto taken = sent_after(t.value - options_.delay);
  averagings_.add(
      rank, [this](Member&) { return work_.windows.reduction(); },
      [this, rank, taken](Member& member, Instant at) {
        if (!taken) return deliver(rank, member, at);
        workers_.at(rank).turn.exchange = *taken;
        neighbours_.want(rank, at);
      });
  work_.averagings.start(now);
}

void ExchangeCoordinator::send_model(Rank rank, Version r) {
  const auto contribution = work_.pool.get(contribution_bytes(r));
  averagings_.add_sum(rank, [this, rank, contribution, sent = part(r)](Member& member) {
    auto copy = sum_of(sent);
    copy.inputs = {at(member, workers_.at(rank), sent.from)};
    copy.outputs = {{contribution->data(), 1.0}};
    return copy;
  });
  averagings_.add(
      rank,
      [this, rank, contribution](Member&) {
        if (!is_whole()) return work_.windows.reduction();
        auto copy = sum_of({0, outer_elements()});
        copy.inputs = {workers_.at(rank).slow->weights.data()};
        copy.outputs = {{at(*contribution, work_.windows.elements()), 1.0}};
        return copy;
      },
      [this, rank, r, contribution](Member&, Instant now) {
        work_.ledger.on_used(rank, workers_.at(rank).turn.t);
        neighbours_.contribute(rank, r, {piece_of(contribution), 1}, now);
      });
}

void ExchangeCoordinator::carry_out(const MixEngine::Mix& a) {
  const Range taken = part(a.version);
  const auto terms = neighbours_.terms_of(a);
  if (is_whole()) {
    step_own(a.rank, terms);
  } else {
    // The first here who takes a part makes the step for all: they all have the same row.
    if (stepped_ < a.version) step_all(taken, terms);
    stepped_ = std::max(stepped_, a.version);
    take_step(a.rank, taken);
  }
  averagings_.add(
      a.rank,
      [this, rank = a.rank, terms, taken](Member& member) {
        const Range range = rest(taken);
        auto mean = sum_of(range);
        std::byte* const model = at(member, workers_.at(rank), range.from);
        mean.inputs = {model};
        mean.weights = {options_.keeps};
        for (const Term& term : *terms) {
          mean.inputs.push_back(at(term.contribution.data, range.from - taken.from));
          mean.weights.push_back((1 - options_.keeps) / static_cast<double>(terms->size()));
        }
        mean.outputs = {{model, 1.0}};
        return mean;
      },
      [this, a, terms](Member& member, Instant now) {
        neighbours_.end_mix(a.rank, a.version, *terms, now);
        deliver(a.rank, member, now);
      });
}

void ExchangeCoordinator::step_all(Range taken, const std::shared_ptr<Terms>& terms) {
  const auto add = [&](double weights, double buffer, double mean, Bytes Slow::*to) {
    const auto prepare = [=, this, range = outer(taken)] {
      auto sum = sum_of(range);
      sum.inputs = {at(common_->weights, range.from), at(common_->buffer, range.from)};
      sum.weights = {weights, buffer};
      for (const Term& term : *terms) {
        sum.inputs.push_back(term.contribution.data.data());
        sum.weights.push_back(mean / static_cast<double>(terms->size()));
      }
      sum.outputs = {{at(*common_.*to, range.from), 1.0}};
      return sum;
    };
    work_.averagings.add({prepare, [](Instant) {}}, {});
  };
  add(1, options_.momentum, -1, &Slow::buffer);
  add(1 - options_.rate, -options_.rate * options_.momentum, options_.rate, &Slow::weights);
}

void ExchangeCoordinator::take_step(Rank rank, Range taken) {
  averagings_.add_sum(rank, [this, rank, range = outer(taken)](Member& member) {
    auto sum = sum_of(range);
    std::byte* const model = at(member, workers_.at(rank), range.from);
    sum.inputs = {model, at(common_->weights, range.from)};
    sum.weights = {options_.keeps, 1 - options_.keeps};
    sum.outputs = {{model, 1.0}};
    return sum;
  });
}

void ExchangeCoordinator::step_own(Rank rank, const std::shared_ptr<Terms>& terms) {
  const Range range{0, outer_elements()};
  averagings_.add_sum(rank, [this, rank, terms, range](Member&) {
    auto sum = sum_of(range);
    Slow& slow = *workers_.at(rank).slow;
    const auto members = static_cast<double>(terms->size());
    const double rate = options_.rate / members, pull = options_.pull / members;
    sum.inputs = {slow.buffer.data(), slow.weights.data()};
    sum.weights = {options_.momentum, -options_.pull};
    for (const Term& term : *terms) {
      const Piece& model = term.contribution.data;
      sum.inputs.insert(sum.inputs.end(), {model.data(), at(model, work_.windows.elements())});
      sum.weights.insert(sum.weights.end(), {rate, pull - rate});
    }
    sum.outputs = {{slow.buffer.data(), 1.0}};
    return sum;
  });
  averagings_.add_sum(rank, [this, rank, range](Member& member) {
    auto sum = sum_of(range);
    Slow& slow = *workers_.at(rank).slow;
    sum.inputs = {slow.weights.data(), slow.buffer.data()};
    sum.outputs = {{slow.weights.data(), 1.0}, {at(member, workers_.at(rank), 0), 1.0}};
    return sum;
  });
}

void ExchangeCoordinator::deliver(Rank rank, Member& member, Instant now) {
  if (!member.window.begin_result_in_place()) return work_.fail_job(damaged_window(rank));
  member.window.deliver();
  neighbours_.end_wait(rank, now);
  pace_.finish(rank, workers_.at(rank).turn.t, now);
}

ModelMeans::Part ExchangeCoordinator::model_of(Rank rank) {
  return {at(work_.windows.at(rank), workers_.at(rank), 0), 1};
}

}  // namespace paceline::scheduler
