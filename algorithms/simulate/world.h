#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "algorithms/strategy.h"
#include "runtime/base/ids.h"
#include "runtime/base/instant.h"
#include "scheduler/rounds/round_engine.h"

namespace paceline::simulate {

using Vector = std::vector<double>;

/// Every worker's link: a message takes `latency` plus its bytes over the bandwidth; a link carries one at a time.
struct Network {
  Duration latency{};
  double bytes_per_second = 0;  ///< 0: infinitely fast.

  bool takes_time() const { return latency > Duration::zero() || bytes_per_second > 0; }
  /// `messages` one after the other on one link.
  Duration time(double messages, double bytes_each) const;
  /// Of an average of `members`: a ring or recursive doubling, whichever is faster.
  Duration time_of_average(std::int64_t members, double bytes) const;
};

/// What a simulated job runs on: who is where, how long things take, what goes wrong. Functions are asked in a fixed
/// order, so that one seed gives one run.
struct World {
  std::vector<NodeId> node_of;  ///< Rank -> agent; size P.
  std::int32_t nodes = 1;
  /// Time that the worker computes at iteration t (nonblocking: each of its mini-batches); > 0.
  std::function<Duration(Rank, Version)> compute;
  /// How long a message travels; empty: no time at all.
  std::function<Duration(NodeId from, NodeId to)> latency;
  /// How often a message is delivered (at least once); empty: once.
  std::function<int()> copies;

  struct Fault {
    Rank rank;
    Instant at;
    std::optional<Instant> until;  ///< Stopped from `at` until then; nullopt: dead.
  };
  std::vector<Fault> faults;  ///< At most one a worker.

  /// Who takes part is another from iteration `after` + 1 on; ascending. `after`: an average of all; -1: the start.
  struct View {
    Version after{-1};
    std::vector<Rank> leave = {}, join = {};
  };
  std::vector<View> views;

  Duration patience_min = std::chrono::hours(24 * 365);
  double patience_median_steps = 0;
  double absent_median_steps = 0;
  Version last{0};  ///< T-1.
  bool late_finish_their_iterations = false;
  bool keeps_events = true;  ///< For checkers; they take memory.
  Network network = {};
  double model_bytes = 0;  ///< What a model weighs on the network; 0: 8 a number.
};

/// How workers learn: what a local step makes of a model.
struct Learner {
  std::function<Vector(Rank)> start;
  /// Gradient of the worker's loss at x, and the loss.
  std::function<std::pair<Vector, double>(Rank, Version, const Vector& x)> gradient;
  double lr = 0.1;
  double momentum = 0;
  bool nesterov = false;
  std::int64_t loss_window = 100;
};

/// SGD's momentum in PyTorch's form: the first buffer is the first gradient.
struct Momentum {
  Vector buffer;  ///< Empty: no step yet.
};
/// One step of SGD on `model`.
void step(const Learner& learner, Momentum& momentum, Vector& model, const Vector& gradient);

/// What happened, for tests: each entry is something that one agent or worker did.
namespace event {
struct Published {
  Rank rank;
  Version tag;
};
struct Reported {
  Rank rank;
  Version tag;
};
/// `tags`, `numbers`: what the agent pinned, by member.
struct Sealed {
  NodeId node;
  Version version;
  std::int32_t group;
  std::map<Rank, Version> tags;
  std::map<Rank, Vector> numbers;
};
/// `tags`: all contributions that this agent's result was made of.
struct Executed {
  NodeId node;
  Version version;
  std::int32_t group;
  std::map<Rank, Version> tags;
  Vector mean;
  std::vector<Rank> fresh;
  std::vector<Rank> stale;
};
struct Merged {
  Rank rank;
  Version own;
  Version with;
};
struct WentOn {
  Rank rank;
  Version own;
  Version next;
  bool fresh;
  bool averaged;
  bool end;
  Duration waited;
};
struct Died {
  Rank rank;
};
struct Left {
  Rank rank;
  Version version;
};
struct Abandoned {
  NodeId node;
  Version version;
};
}  // namespace event
struct Event {
  Instant at;
  std::variant<event::Published, event::Reported, event::Sealed, event::Executed, event::Merged, event::WentOn,
               event::Died, event::Left, event::Abandoned>
      what;
};

/// Sorted ranks that many rows share: a thousand workers that have averaged have one list.
class Members {
 public:
  Members() = default;
  Members(std::vector<Rank> ranks) : ranks_(std::make_shared<const std::vector<Rank>>(std::move(ranks))) {}
  Members(std::initializer_list<Rank> ranks) : Members(std::vector<Rank>(ranks)) {}

  auto begin() const { return get().begin(); }
  auto end() const { return get().end(); }
  std::size_t size() const { return get().size(); }
  bool operator==(const Members& other) const { return get() == other.get(); }

 private:
  const std::vector<Rank>& get() const {
    static const std::vector<Rank> none;
    return ranks_ ? *ranks_ : none;
  }
  std::shared_ptr<const std::vector<Rank>> ranks_;
};

/// One row of the job contract: what a worker has to show for one of its steps.
struct Row {
  Rank worker;
  Version step;
  Duration time{};    ///< When the step's averaging had been applied.
  Vector model = {};  ///< After it.
  bool fresh = true;  ///< Its contribution to this version was no older one.
  Members group;      ///< Whose models went in.
  double weight = 1;
  std::int64_t period = 1;
  std::int64_t batches_done = 1;
  double loss = 0;  ///< At the model that the gradient was taken at.
};

/// What the whole job came to.
struct Summary {
  Vector model;                  ///< Mean of the workers' current models; the server's; sum x / sum w of push-sum.
  Duration time{};               ///< Of the last row.
  std::int64_t messages = 0;     ///< Of the strategy's schedule on a network without shared memory.
  std::int64_t bytes = 0;        ///< 8 a number.
  std::vector<Duration> waited;  ///< A worker's last row less the computing that it had completed by then.
};

/// What a simulation gives.
struct Outcome {
  std::vector<Row> rows;  ///< In order of time, worker, step.
  Summary summary;
};

/// Orders the rows, and derives from them what the summary says of time. `computed`: computing that each worker
/// completed.
void finish(Outcome& outcome, const std::vector<Duration>& computed);
/// An average of g members: a reduce-scatter and an allgather around a ring.
void count_ring(Summary& summary, std::int64_t members, std::int64_t numbers);
/// Whole vectors of doubles sent one by one.
void count(Summary& summary, std::int64_t messages, std::int64_t numbers_each);

}  // namespace paceline::simulate
