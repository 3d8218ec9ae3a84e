#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>

#include "tests/support/reference/internal.h"

namespace paceline::reference {
namespace {

/// local-sgd and wagma: events in the order of the job contract, instant by instant.
class Decentralised {
 public:
  explicit Decentralised(Run& run) : run_(run), P_(static_cast<std::size_t>(run.workers)) {
    for (std::size_t i = 0; i < P_; ++i) {
      Worker w{.x = run.job.start[i], .optimiser = run.optimiser()};
      w.published = w.x;
      w.ends = run.compute(0, static_cast<int>(i));
      workers_.push_back(std::move(w));
    }
  }

  void operator()() {
    for (Time now = next_instant(); now != kNever; now = next_instant()) step(now);
    for (const Worker& w : workers_) run_.models.push_back(w.x);
  }

 private:
  enum class State { computing, arriving, waiting, done };
  struct Worker {
    Vector x;  ///< Current model; after a local step W'.
    Optimiser optimiser;
    State state = State::computing;
    int t = 0;         ///< Iteration being computed or just completed.
    int row_step = 0;  ///< Step that the row will name (a join: the sync's).
    Time ends = 0;     ///< When the local step ends.
    double loss = 0;
    Vector published = {};  ///< Send buffer and its tag.
    int tag = -1;
  };
  struct Executed {
    int version = -1;
    std::vector<Vector> sum;
    std::vector<std::vector<int>> group;
  };  // Per worker.

  bool grouped() const { return run_.strategy.kind == Kind::wagma && run_.strategy.group > 1; }
  bool is_sync(int v) const {
    return (v + 1) % run_.strategy.period == 0 || (run_.job.final_sync && v == run_.job.steps - 1);
  }
  bool has_grace() const { return run_.strategy.grace_s > 0 || run_.strategy.grace_factor > 0; }

  std::vector<int> group_of(int version, int rank) const {
    int n = 0, s = 0;
    while ((1 << n) < run_.workers) ++n;
    while ((1 << s) < run_.strategy.group) ++s;
    std::vector<int> members;
    for (int p = 0; p < run_.workers; ++p) {
      int differing = p ^ rank;
      for (int r = 0; r < s; ++r) differing &= ~(1 << ((version * s + r) % n));
      if (differing == 0) members.push_back(p);
    }
    return members;
  }

  Time next_instant() const {
    Time next = pending_ >= 0 ? grace_ends_ : kNever;
    for (const Worker& w : workers_)
      if (w.state == State::computing) next = std::min(next, w.ends);
    return next;
  }

  void step(Time now) {
    complete(now);
    arrive(now);
    execute_groups(now);
    merge_late(now);
    finish_sync(now);
  }

  void complete(Time now) {
    for (std::size_t i = 0; i < P_; ++i) {
      Worker& w = workers_[i];
      if (w.state != State::computing || w.ends != now) continue;
      const int rank = static_cast<int>(i);
      w.loss = loss_at(run_.objective(rank), w.x);
      w.optimiser.step(w.x, gradient_at(run_.objective(rank), w.x));
      w.published = w.x;
      w.tag = w.row_step = w.t;
      w.state = State::arriving;
      const Time length = run_.compute(w.t, rank);
      run_.computed[i] += length;
      recent_.push_back(length);
      if (recent_.size() > 20) recent_.pop_front();
    }
  }

  void arrive(Time now) {
    for (Worker& w : workers_) {
      if (w.state != State::arriving || !is_sync(w.t) || w.t <= done_) continue;
      if (pending_ < 0) {
        pending_ = w.t;
        grace_ends_ = has_grace() ? now + grace() : kNever;
      }
      if (w.t != pending_) std::abort();  // Nobody can be a whole sync ahead of a pending one.
      w.state = State::waiting;
    }
    if (!run_.strategy.skip || pending_ < 0) return;
    for (Worker& w : workers_) {
      if (w.state != State::arriving) continue;
      w.tag = w.row_step = pending_;
      w.state = State::waiting;
    }
  }

  Time grace() const {
    if (run_.strategy.grace_s > 0) return nanoseconds(run_.strategy.grace_s);
    std::vector<Time> sorted(recent_.begin(), recent_.end());
    std::sort(sorted.begin(), sorted.end());
    return std::llround(run_.strategy.grace_factor * static_cast<double>(sorted[(sorted.size() - 1) / 2]));
  }

  void execute_groups(Time now) {
    if (!grouped()) return;
    while (true) {
      const int v = done_ + 1;
      const bool fired = std::any_of(workers_.begin(), workers_.end(),
                                     [&](const Worker& w) { return w.state == State::arriving && w.t >= v; });
      if (!fired || is_sync(v)) return;
      average(v, [&](int rank) { return group_of(v, rank); });
      for (std::size_t i = 0; i < P_; ++i)
        if (workers_[i].state == State::arriving && workers_[i].t == v) take_mean(i, now);
    }
  }

  /// Executes a version: sums of what everybody has published.
  template <class GroupOf>
  void average(int version, GroupOf group_of_rank) {
    newest_ = Executed{.version = version, .sum = {}, .group = {}};
    for (std::size_t i = 0; i < P_; ++i) {
      newest_.group.push_back(group_of_rank(static_cast<int>(i)));
      std::vector<Vector> terms;
      for (const int member : newest_.group.back())
        terms.push_back(workers_[static_cast<std::size_t>(member)].published);
      newest_.sum.push_back(sum_of(terms));
    }
    done_ = version;
  }

  void take_mean(std::size_t i, Time now) {
    workers_[i].x = divided(newest_.sum[i], static_cast<double>(newest_.group[i].size()));
    write_row(i, now, true, newest_.group[i]);
    begin(i, workers_[i].row_step + 1, now);
  }

  void merge_late(Time now) {
    for (std::size_t i = 0; i < P_; ++i) {
      Worker& w = workers_[i];
      if (w.state != State::arriving) continue;
      if (w.t > done_) {  // Between the syncs of local-sgd: nothing is averaged.
        write_row(i, now, true, {static_cast<int>(i)});
        begin(i, w.t + 1, now);
        continue;
      }
      w.x = divided(sum_of({newest_.sum[i], w.x}), static_cast<double>(newest_.group[i].size() + 1));
      write_row(i, now, false, newest_.group[i]);
      begin(i, run_.strategy.skip ? done_ + 1 : w.t + 1, now);
    }
  }

  void finish_sync(Time now) {
    if (pending_ < 0) return;
    const bool complete =
        std::all_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.state == State::waiting; });
    if (!complete && now < grace_ends_) return;
    auto all = everyone(run_.workers);
    average(pending_, [&](int) { return all; });
    pending_ = -1;
    grace_ends_ = kNever;
    for (std::size_t i = 0; i < P_; ++i)
      if (workers_[i].state == State::waiting) take_mean(i, now);
  }

  void write_row(std::size_t i, Time now, bool fresh, std::vector<int> group) {
    const Worker& w = workers_[i];
    run_.row({.worker = static_cast<int>(i),
              .step = w.row_step,
              .model = w.x,
              .fresh = fresh,
              .group = std::move(group),
              .period = run_.strategy.period,
              .loss = w.loss},
             now);
  }

  void begin(std::size_t i, int t, Time now) {
    Worker& w = workers_[i];
    w.t = t;
    w.state = t < run_.job.steps ? State::computing : State::done;
    if (w.state == State::computing) w.ends = now + run_.compute(t, static_cast<int>(i));
  }

  Run& run_;
  std::size_t P_;
  std::vector<Worker> workers_;
  std::deque<Time> recent_;
  Executed newest_;
  int done_ = -1;     ///< Newest executed version.
  int pending_ = -1;  ///< Sync that somebody has arrived at.
  Time grace_ends_ = kNever;
};

}  // namespace

void run_decentralised(Run& run) { Decentralised{run}(); }

}  // namespace paceline::reference
