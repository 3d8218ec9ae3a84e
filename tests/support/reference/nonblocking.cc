#include <algorithm>

#include "tests/support/reference/internal.h"

namespace paceline::reference {
namespace {

/// When iterations end, and how many mini-batches of each worker count.
class BatchClock {
 public:
  explicit BatchClock(Run& run) : run_(run), busy_(static_cast<std::size_t>(run.workers)) {}

  struct Iteration {
    Time ends;
    std::vector<int> done;
  };

  /// Of each worker; 0 of who is not there.
  Iteration next(int t) {
    Iteration it = run_.strategy.wait ? waiting(t) : dropping(t);
    begin_ = it.ends;
    return it;
  }
  void join(std::size_t who) { busy_[who] = {}; }

 private:
  /// What is in flight at the signal counts, and the iteration ends with the last of it.
  Iteration waiting(int t) {
    Iteration it{.ends = begin_, .done = std::vector<int>(busy_.size())};
    Time signal = kNever;
    for (const int i : run_.present) signal = std::min(signal, begin_ + run_.strategy.batches * run_.compute(t, i));
    for (const int i : run_.present) {
      const Time length = run_.compute(t, i), n = (signal - begin_ + length - 1) / length;
      run_.computed[static_cast<std::size_t>(i)] += n * length;
      it.done[static_cast<std::size_t>(i)] = static_cast<int>(n);
      it.ends = std::max(it.ends, begin_ + n * length);
    }
    return it;
  }

  /// The iteration ends at the signal; what is in flight ends in vain, and its worker begins the next one then.
  Iteration dropping(int t) {
    Iteration it{.ends = kNever, .done = std::vector<int>(busy_.size())};
    for (const int i : run_.present)
      it.ends = std::min(it.ends, begins(i) + run_.strategy.batches * run_.compute(t, i));
    for (const int i : run_.present) {
      Busy& flight = busy_[static_cast<std::size_t>(i)];
      const Time at = begins(i), length = run_.compute(t, i);
      const Time n = at >= it.ends ? 0 : (it.ends - at) / length;
      it.done[static_cast<std::size_t>(i)] = static_cast<int>(n);
      Time& computed = run_.computed[static_cast<std::size_t>(i)];
      if (flight.until > begin_ && flight.until <= it.ends) computed += flight.length;
      computed += n * length;
      if (at < it.ends) flight = (it.ends - at) % length == 0 ? Busy{it.ends, 0} : Busy{at + (n + 1) * length, length};
    }
    return it;
  }

  Time begins(int i) const { return std::max(begin_, busy_[static_cast<std::size_t>(i)].until); }

  struct Busy {
    Time until = 0;
    Time length = 0;
  };  // The mini-batch in flight.
  Run& run_;
  std::vector<Busy> busy_;
  Time begin_ = 0;
};

/// What each worker's gradient weighs; the weights' mean is 1 if all have done N.
Vector shares_of(const Strategy& s, const std::vector<int>& done, std::size_t present) {
  double total = 0;
  for (const int n : done) total += n;
  Vector shares;
  for (const int n : done) {
    const double share = static_cast<double>(n) / s.batches;
    shares.push_back(s.normalise == 'd'   ? n * static_cast<double>(present) / total
                     : s.normalise == 'a' ? share * share
                                          : share);
  }
  return shares;
}

}  // namespace

void run_nonblocking(Run& run) {
  const Kind base = run.strategy.base;
  const bool clusters = base == Kind::hier_avg;
  const bool gossip = base == Kind::d_psgd || base == Kind::matcha || clusters;
  const bool atc = base == Kind::matcha || clusters || run.strategy.atc;
  BatchClock clock(run);
  std::vector<Vector> x = run.job.start;
  Optimiser shared = run.optimiser();
  std::vector<Optimiser> own(x.size(), run.optimiser());
  const auto change = [&](int after) {
    run.change(after, [&](std::size_t who, std::size_t of) {
      x[who] = x[of];
      clock.join(who);
    });
  };
  change(-1);
  for (int t = 0; t < run.job.steps; ++t) {
    const auto all = run.present;
    const auto [ends, done] = clock.next(t);
    const Vector shares = shares_of(run.strategy, done, all.size());
    const std::vector<Vector> before = x;
    std::vector<Vector> gradients;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Vector zero(x[i].size(), 0.0);
      gradients.push_back(plus(zero, gradient_at(run.objective(static_cast<int>(i)), x[i]), shares[i]));
    }
    Matrix weights;
    if (gossip) {
      weights = mixing(run, base, t);
      if (!atc) x = mixed(weights, before);
      for (std::size_t i = 0; i < x.size(); ++i)
        if (done[i] > 0) own[i].step(x[i], gradients[i]);
      if (atc) x = mixed(weights, x);
      for (const int i : clusters ? all : std::vector<int>{}) {
        const auto members = members_of(weights, i);
        if (members.front() == i) run.count_ring(static_cast<std::int64_t>(members.size()));
      }
      if (!clusters) run.count(edges_of(weights), run.model_bytes());
    } else {
      Vector model = x[static_cast<std::size_t>(all.front())];
      shared.step(model, divided(sum_of(gradients), static_cast<double>(all.size())));
      std::fill(x.begin(), x.end(), model);
      run.count_gradients(base);
    }
    for (const int i : all) {
      const auto at = static_cast<std::size_t>(i);
      run.row({.worker = i,
               .step = t,
               .model = x[at],
               .fresh = done[at] > 0,
               .group = gossip ? members_of(weights, i) : all,
               .period = clusters ? run.strategy.k2 : 1,
               .batches_done = done[at],
               .loss = loss_at(run.objective(i), before[at])},
              ends);
    }
    change(t);
  }
  run.models = run.of_present(x);
}

}  // namespace paceline::reference
