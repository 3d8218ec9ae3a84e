#include "scheduler/rounds/round_service.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <utility>

#include "runtime/base/steady_now.h"

namespace paceline::scheduler {
namespace {

void add(RoundSums& to, const RoundSums& from) {
  to.loss_sum += from.loss_sum;
  to.loss_count += from.loss_count;
  to.samples += from.samples;
  if (to.learning_rate == 0) to.learning_rate = from.learning_rate;
  to.leader_time = std::max(to.leader_time, from.leader_time);
  to.stops += from.stops;
}

/// The roles word lies in memory that the worker can write.
std::string damaged(Rank rank) {
  return "the window of worker " + to_string(rank) +
         " has no free buffer for a result: its shared memory was overwritten, by the script or by us";
}

}  // namespace

RoundService::RoundService(Options options, std::unique_ptr<RoundPlan> plan, TaskGraph& graph,
                           collective::Averager& averager, SendToNode send)
    : options_(std::move(options)),
      engine_(options_.engine, std::move(plan)),
      graph_(graph),
      averager_(averager),
      send_(std::move(send)) {
  abandons_ = engine_.plan().round(engine_.plan().next_round(options_.engine.first)).late == Lateness::abandons;
  clock_begin_ = steady_now();
  evaluated_last_ = Version{options_.engine.first.value - 1};
  if (options_.trace_path.empty()) return;
  if (auto trace = observe::TraceWriter::open(options_.trace_path)) {
    trace_.emplace(std::move(*trace));
    const auto node = options_.engine.self;
    trace_->name_track(node.value, 0, "node " + to_string(node), "agent");
  }
}

RoundService::~RoundService() = default;

bool RoundService::gradients() const { return engine_.plan().payload() == Payload::gradients; }

Result<void> RoundService::join(Rank rank, memory::Window window, memory::ControlPage control) {
  const auto& layout = window.layout();
  if (!members_.empty() && (layout.elements != elements_ || layout.dtype != dtype_)) {
    return fail(ErrorKind::invalid, "worker " + to_string(rank) + " shares " + std::to_string(layout.elements) +
                                        " parameters, the others " + std::to_string(elements_) +
                                        ": every worker must build the same model");
  }
  elements_ = layout.elements;
  dtype_ = layout.dtype;
  members_.insert_or_assign(rank, Member{std::move(window), std::move(control), false});
  begin_compute(rank);
  return {};
}

memory::Window* RoundService::window(Rank rank) {
  const auto it = members_.find(rank);
  return it == members_.end() ? nullptr : &it->second.window;
}

memory::ControlPage* RoundService::control(Rank rank) {
  const auto it = members_.find(rank);
  return it == members_.end() ? nullptr : &it->second.control;
}

// Events
// ----------------------------------------------------------------------------------------------------------------

void RoundService::on_arrival(Rank rank, Version t, Duration compute, Instant now) {
  const auto it = members_.find(rank);
  if (it == members_.end() || it->second.gone) return;
  end_compute(rank);
  act(engine_.on_arrival(rank, t, compute, now), now);
}

void RoundService::on_count(Version v, Instant now) { act(engine_.on_count(v, now), now); }

void RoundService::on_activation(NodeId root, NodeId from, Version v, Instant now) {
  act(engine_.on_activation(root, from, v, now), now);
}

void RoundService::on_partial(NodeId from, const wire::Partial::Reader& header, std::vector<std::byte> sum,
                              Instant now) {
  RemotePartial partial;
  partial.contributions = header.getContributions();
  if (partial.contributions > 0 && elements_ > 0 && sum.size() != elements_ * memory::size_of(dtype_)) {
    fail_job("node " + to_string(from) + " sent a partial sum of " + std::to_string(sum.size()) + " bytes, expected " +
             std::to_string(elements_ * memory::size_of(dtype_)) + ": the workers build different models");
    return;
  }
  partial.sum = std::move(sum);
  partial.bodies = header.getBodies();
  partial.sums = {header.getLossSum(),      header.getLossCount(),          header.getSamples(),
                  header.getLearningRate(), Duration(header.getLeaderNs()), header.getStops()};
  const Version v{header.getVersion()};
  if (v <= engine_.done()) return;  // A duplicate of what is executed.
  rounds_[{v.value, header.getGroup()}].remote.try_emplace(from, std::move(partial));
  act(engine_.on_partial(from, v, header.getGroup(), now), now);
}

void RoundService::on_gone(Rank rank, Instant now) {
  const auto it = members_.find(rank);
  if (it == members_.end() || it->second.gone) return;
  it->second.gone = true;
  end_compute(rank);
  act(engine_.on_gone(rank, now), now);
}

void RoundService::tick(Instant now) { act(engine_.tick(now), now); }

std::optional<Instant> RoundService::next_deadline() const { return engine_.next_deadline(); }

void RoundService::end_at(Version v) {
  engine_.end_at(v);
  for (auto& [rank, member] : members_) {
    member.control.words().last.store(v.value, std::memory_order_release);
    member.control.ring();
  }
}

void RoundService::stop() {
  for (auto& [rank, member] : members_) {
    member.control.words().stop.store(1, std::memory_order_release);
    member.control.ring();
  }
}

void RoundService::release(Version v) {
  for (auto& [rank, member] : members_) {
    if (member.control.words().hold.load(std::memory_order_relaxed) != v.value) continue;
    member.control.words().hold.store(-1, std::memory_order_release);
    member.control.ring();
  }
  if (held_since_) held_ += steady_now() - *held_since_;
  held_since_.reset();
}

void RoundService::start_clock(Instant now) {
  clock_begin_ = now;
  held_ = {};
}

Duration RoundService::clock(Instant now) const { return (held_since_ ? *held_since_ : now) - clock_begin_ - held_; }

std::vector<RoundService::Event> RoundService::take_events() { return std::exchange(events_, {}); }

void RoundService::fail_job(std::string text) { events_.push_back(Failed{std::move(text)}); }

// Actions of the core
// -----------------------------------------------------------------------------------------------------

void RoundService::act(RoundEngine::Actions actions, Instant now) {
  for (auto& action : actions) pending_actions_.emplace_back(std::move(action), now);
  if (acting_) return;  // The outer call carries them out, in order.
  acting_ = true;
  while (!pending_actions_.empty()) {
    auto [action, at] = std::move(pending_actions_.front());
    pending_actions_.pop_front();
    std::visit([this, at = at](const auto& a) { carry_out(a, at); }, action);
    if (pending_actions_.empty()) start_tasks(at);
  }
  acting_ = false;
}

void RoundService::carry_out(const RoundEngine::Activate& a, Instant) {
  wire::Message message;
  auto body = message.root().initActivate();
  body.setJob(options_.job.value);
  body.setRoot(a.root.value);
  body.setVersion(a.version.value);
  send_(a.to, message, {});
}

void RoundService::carry_out(const RoundEngine::Count& a, Instant) {
  wire::Message message;
  auto body = message.root().initActivate();
  body.setJob(options_.job.value);
  body.setVersion(a.version.value);
  body.setCount(true);
  send_(a.to, message, {});
}

void RoundService::carry_out(const RoundEngine::Seal& a, Instant now) {
  auto& round = rounds_[{a.version.value, a.group}];
  round.members = a.members;
  if (options_.engine.self.value == 0) round.sums.leader_time = clock(now);
  round.sums.stops = stop_wanted_ ? 1 : 0;
  std::vector<std::optional<Version>> contributed;
  for (const Rank rank : a.members) {
    const auto it = members_.find(rank);
    if (it == members_.end()) {  // Has not opened its share yet: it contributes nothing.
      contributed.emplace_back();
      continue;
    }
    auto& window = it->second.window;
    const auto buffer = window.seal();
    if (!buffer) {
      contributed.emplace_back();
      continue;
    }
    const auto tag = window.tag(*buffer);
    if (gradients() && tag.iteration != a.version.value) {  // Gradients of another version never count.
      window.unseal(memory::Window::Unseal::keep);
      contributed.emplace_back();
      continue;
    }
    if (options_.weighs_by_bodies && tag.bodies < options_.bodies) {
      // Sealed: nobody else touches it before the round is executed.
      void* sum = window.data(*buffer).data();
      const void* inputs[] = {sum};
      collective::sum_into(sum, static_cast<double>(tag.bodies) / options_.bodies, inputs, elements_, dtype_);
    }
    round.contributions.push_back({rank, *buffer});
    round.bodies += tag.bodies;
    add(round.sums, {tag.loss_sum, tag.loss_count, tag.samples, tag.learning_rate, {}, 0});
    if (abandons_) counters_.abandoned_bodies += std::max(0, options_.bodies - tag.bodies);
    const auto late = std::max<std::int64_t>(0, a.version.value - tag.iteration);
    ++counters_.staleness[std::min(static_cast<std::size_t>(late), counters_.staleness.size() - 1)];
    contributed.emplace_back(Version{tag.iteration});
  }
  if (abandons_ && options_.engine.node_of.size() > 1) {
    const auto missing = static_cast<std::int64_t>(a.members.size() - round.contributions.size());
    counters_.abandoned_bodies += missing * options_.bodies;
  }
  check_learning_rates(round, a.version);
  act(engine_.on_sealed(a.version, a.group, contributed, now), now);
}

void RoundService::check_learning_rates(const Gathering& round, Version v) {
  std::optional<std::pair<Rank, double>> first;
  for (const auto& c : round.contributions) {
    const auto& tag = members_.at(c.rank).window.tag(c.buffer);
    if (tag.iteration != v.value) continue;
    if (!first) {
      first = {c.rank, tag.learning_rate};
    } else if (std::abs(first->second - tag.learning_rate) > 1e-12 * std::abs(first->second)) {
      char text[256];
      std::snprintf(text, sizeof text,
                    "learning rates differ at update %lld: worker %d has %g, worker %d has %g; let "
                    "shared.schedule(scheduler) advance them",
                    static_cast<long long>(v.value), first->first.value, first->second, c.rank.value,
                    tag.learning_rate);
      fail_job(text);
      return;
    }
  }
}

void RoundService::carry_out(const RoundEngine::SendPartial& a, Instant) {
  const Key key{a.version.value, a.group};
  auto& round = rounds_[key];
  if (round.partial_targets.empty() && !round.partial_ready)
    add_averaging(PartialTask{key}, ranks_of(round.contributions));
  if (round.partial_ready) {
    send_partial(key, a.to);
  } else {
    round.partial_targets.push_back(a.to);
  }
}

void RoundService::send_partial(const Key& key, NodeId to) {
  const auto& round = rounds_.at(key);
  wire::Message message;
  auto body = message.root().initPartial();
  body.setJob(options_.job.value);
  body.setVersion(key.first);
  body.setGroup(key.second);
  body.setContributions(static_cast<std::int32_t>(round.contributions.size()));
  body.setBodies(round.bodies);
  body.setLossSum(round.sums.loss_sum);
  body.setLossCount(round.sums.loss_count);
  body.setSamples(round.sums.samples);
  body.setLearningRate(round.sums.learning_rate);
  body.setLeaderNs(round.sums.leader_time.count());
  body.setStops(round.sums.stops);
  std::vector<std::vector<std::byte>> bulk;
  bulk.push_back(round.own_partial);
  send_(to, message, std::move(bulk));
}

void RoundService::carry_out(const RoundEngine::Execute& a, Instant) {
  const Key key{a.version.value, a.group};
  add_averaging(ExecuteTask{key, a}, ranks_of(rounds_[key].contributions));
}

void RoundService::carry_out(const RoundEngine::Merge& a, Instant) { add_averaging(MergeTask{a}, {a.rank}); }

void RoundService::carry_out(const RoundEngine::Verdict& a, Instant) {
  const auto it = members_.find(a.rank);
  if (it == members_.end()) return;
  counters_.skipped += a.skipped;
  memory::WorkerVerdict verdict;
  verdict.own = a.own.value;
  verdict.next = a.next.value;
  verdict.next_round = a.next_round.value;
  verdict.skipped = a.skipped;
  verdict.fresh = a.fresh;
  verdict.averaged = a.averaged;
  verdict.end = a.end;
  it->second.control.set_verdict(verdict);
  it->second.control.ring();
  if (!a.end && !abandons_) begin_compute(a.rank);
}

void RoundService::carry_out(const RoundEngine::Abandon& a, Instant) {
  for (auto& [rank, member] : members_) {
    auto& word = member.control.words().abandoned;
    if (word.load(std::memory_order_relaxed) >= a.version.value) continue;
    word.store(a.version.value, std::memory_order_release);
    member.control.ring();
  }
}

void RoundService::carry_out(const RoundEngine::Leave& a, Instant) {
  const auto it = members_.find(a.rank);
  if (it != members_.end()) it->second.gone = true;
  events_.push_back(Left{a.rank, a.version, a.silent});
}

// Averaging tasks
// -----------------------------------------------------------------------------------------------------------

std::vector<Rank> RoundService::ranks_of(const std::vector<Contribution>& contributions) {
  std::vector<Rank> ranks;
  for (const auto& c : contributions) ranks.push_back(c.rank);
  return ranks;
}

TaskId RoundService::new_task_id() {
  // Users' tasks count from their owner's tag; these have the top bit, then the job.
  return TaskId{(std::uint64_t{1} << 63) | (options_.job.value << 40) | ++next_task_};
}

/// The worker has its lease: its compute task runs from the start.
void RoundService::begin_compute(Rank rank) {
  if (const auto it = computing_.find(rank); it != computing_.end()) {
    end_compute(rank);
    (void)graph_.forget(it->second);
  }
  const TaskId id = new_task_id();
  if (!graph_.add({id, TaskKind::compute, {}, 0}) || !graph_.lease(id))
    return fail_job("the node's task graph is full");
  computing_[rank] = id;
}

void RoundService::end_compute(Rank rank) {
  const auto it = computing_.find(rank);
  if (it == computing_.end() || graph_.state(it->second) != TaskState::leased) return;
  (void)graph_.on_done(it->second);
}

void RoundService::add_averaging(Task task, const std::vector<Rank>& contributors) {
  const TaskId id = new_task_id();
  TaskGraph::Task node{id, TaskKind::averaging, {}, 0};
  if (graph_.state(last_averaging_)) node.dependencies.push_back(last_averaging_);
  for (const Rank rank : contributors) {
    // A stale contribution is of a compute task that is over long ago; the one that still runs is not waited for.
    const auto it = computing_.find(rank);
    if (it != computing_.end() && graph_.state(it->second) == TaskState::done) node.dependencies.push_back(it->second);
  }
  if (!graph_.add(node)) return fail_job("the node's task graph is full");
  tasks_.emplace(id, std::move(task));
  const TaskId before = std::exchange(last_averaging_, id);
  if (const auto state = graph_.state(before); state && state != TaskState::waiting && !tasks_.contains(before))
    (void)graph_.forget(before);
}

void RoundService::start_tasks(Instant now) {
  while (!running_) {
    const auto id = graph_.next_ready(0, TaskKind::averaging);
    if (!id || !tasks_.contains(*id) || !graph_.lease(*id)) return;
    in_flight_ = *id;
    auto reduction = std::visit([this](const auto& task) { return prepare(task); }, tasks_.at(*id));
    task_began_ = steady_now();
    if (!reduction.outputs.empty() && !collective::Averager::is_small(reduction)) {
      if (auto submitted = averager_.submit(id->value, std::move(reduction)); !submitted)
        return fail_job(submitted.error().text);
      running_ = true;
      return;
    }
    if (!reduction.outputs.empty()) collective::Averager::run_inline(reduction);
    finish_task(now);
  }
}

void RoundService::finish_task(Instant now) {
  auto node = tasks_.extract(in_flight_);
  (void)graph_.on_done(in_flight_);
  if (in_flight_ != last_averaging_) (void)graph_.forget(in_flight_);
  std::visit([this, now](const auto& task) { finish(task, now); }, node.mapped());
}

bool RoundService::on_reduced(std::uint64_t id, Instant now) {
  if (!running_ || id != in_flight_.value) return false;
  running_ = false;
  finish_task(now);
  start_tasks(now);
  return true;
}

collective::Reduction RoundService::prepare(const PartialTask& task) {
  auto& round = rounds_.at(task.key);
  collective::Reduction reduction;
  reduction.elements = elements_;
  reduction.dtype = dtype_;
  if (round.contributions.empty()) return reduction;
  round.own_partial.resize(elements_ * memory::size_of(dtype_));
  for (const auto& c : round.contributions)
    reduction.inputs.push_back(members_.at(c.rank).window.data(c.buffer).data());
  reduction.outputs.push_back({round.own_partial.data(), 1.0});
  return reduction;
}

void RoundService::finish(const PartialTask& task, Instant) {
  auto& round = rounds_.at(task.key);
  round.partial_ready = true;
  for (const NodeId to : std::exchange(round.partial_targets, {})) send_partial(task.key, to);
}

double RoundService::scale_of(const Gathering& round, std::size_t group_members) const {
  std::int64_t contributions = static_cast<std::int64_t>(round.contributions.size());
  std::int64_t bodies = round.bodies;
  for (const auto& [node, partial] : round.remote) {
    contributions += partial.contributions;
    bodies += partial.bodies;
  }
  if (!gradients()) return 1.0 / static_cast<double>(std::max<std::int64_t>(1, contributions));
  switch (options_.divisor) {
    case Divisor::contributions:
      return 1.0 / static_cast<double>(std::max<std::int64_t>(1, contributions) * options_.bodies);
    case Divisor::members: return 1.0 / (static_cast<double>(group_members) * options_.bodies);
    case Divisor::bodies: return 1.0 / static_cast<double>(std::max<std::int64_t>(1, bodies));
  }
  return 1.0;
}

collective::Reduction RoundService::prepare(const ExecuteTask& task) {
  auto& round = rounds_.at(task.key);
  collective::Reduction reduction;
  reduction.elements = elements_;
  reduction.dtype = dtype_;

  // One summation order everywhere: nodes ascending, inside the own node by rank.
  std::int32_t contributions = static_cast<std::int32_t>(round.contributions.size());
  if (task.what.others.empty()) {
    for (const auto& c : round.contributions)
      reduction.inputs.push_back(members_.at(c.rank).window.data(c.buffer).data());
  } else {
    bool own_added = round.contributions.empty();
    const auto add_own = [&] {
      if (!own_added) reduction.inputs.push_back(round.own_partial.data());
      own_added = true;
    };
    for (const auto& [node, partial] : round.remote) {
      if (options_.engine.self < node) add_own();
      if (partial.contributions > 0) reduction.inputs.push_back(partial.sum.data());
      contributions += partial.contributions;
    }
    add_own();
  }
  outputs_.clear();
  if (reduction.inputs.empty()) return reduction;

  const double mean = scale_of(round, options_.engine.node_of.size());
  const auto contributor = [&](Rank rank) {
    return std::any_of(round.contributions.begin(), round.contributions.end(),
                       [&](const auto& c) { return c.rank == rank; });
  };
  const auto output = [&](Rank rank, bool fresh) {
    const auto it = members_.find(rank);
    if (it == members_.end() || it->second.gone) return;
    auto& window = it->second.window;
    const bool in_place = gradients() && contributor(rank);
    if (gradients() && !in_place && !abandons_) return;  // Nothing to give: its gradient was of another version.
    const auto buffer = in_place ? window.begin_result_in_place() : window.begin_result();
    if (!buffer) return fail_job(damaged(rank));
    outputs_.push_back(rank);
    const bool whole = fresh || gradients();
    window.tag(*buffer) = {};
    window.tag(*buffer).iteration = task.key.first;
    window.tag(*buffer).divisor = whole ? 1 : contributions;
    reduction.outputs.push_back({window.data(*buffer).data(), whole ? mean : 1.0});
  };
  for (const Rank rank : task.what.fresh) output(rank, true);
  for (const Rank rank : task.what.stale) output(rank, false);
  return reduction;
}

bool RoundService::evaluation_due(Version v) const {
  if (options_.evaluate_every <= 0) return false;
  return (v.value + 1) / options_.evaluate_every > (evaluated_last_.value + 1) / options_.evaluate_every;
}

void RoundService::finish(const ExecuteTask& task, Instant now) {
  const auto node = rounds_.extract(task.key);
  const Gathering& round = node.mapped();
  const Version v{task.key.first};
  RoundSums sums = round.sums;
  for (const auto& [from, partial] : round.remote) add(sums, partial.sums);

  for (const auto& c : round.contributions) {
    auto& window = members_.at(c.rank).window;
    if (window.sealed()) window.unseal(gradients() ? memory::Window::Unseal::recycle : memory::Window::Unseal::keep);
  }
  const auto& fresh = task.what.fresh;
  for (const Rank rank : outputs_) {
    auto& window = members_.at(rank).window;
    const bool waits_for_it = !abandons_ && std::find(fresh.begin(), fresh.end(), rank) != fresh.end();
    waits_for_it ? window.deliver() : window.retain();
  }
  (task.what.sync ? counters_.global_averages : counters_.group_averages) += 1;
  trace("average", v.value, task_began_, steady_now());

  const bool over = task.what.sync && (v >= engine_.last() || sums.stops > 0);
  const bool evaluate = task.what.sync && options_.evaluates && (over || evaluation_due(v));
  std::optional<Rank> evaluator;
  if (over) end_at(v);
  if (evaluate) {
    evaluated_last_ = v;
    for (const auto& [rank, member] : members_)
      if (!member.gone && std::find(fresh.begin(), fresh.end(), rank) != fresh.end()) {
        evaluator = rank;
        break;
      }
    if (options_.engine.self.value == 0 && evaluator)
      members_.at(*evaluator).control.words().evaluate.store(v.value, std::memory_order_release);
  }
  if (evaluate || over) {
    held_since_ = steady_now();
    for (auto& [rank, member] : members_) member.control.words().hold.store(v.value, std::memory_order_release);
  }
  events_.push_back(Executed{v, task.what.sync, over, evaluate, evaluator, sums});
  if (abandons_) {
    for (auto& [rank, member] : members_) {
      member.control.words().executed.store(v.value, std::memory_order_release);
      member.control.ring();
      begin_compute(rank);  // What was left of the last one is abandoned.
    }
  }
  act(engine_.on_executed(v, task.key.second, sums, now), now);
}

collective::Reduction RoundService::prepare(const MergeTask& task) {
  collective::Reduction reduction;
  reduction.elements = elements_;
  reduction.dtype = dtype_;
  outputs_.clear();
  const auto it = members_.find(task.what.rank);
  if (it == members_.end() || it->second.gone) return reduction;
  auto& window = it->second.window;
  const auto own = window.published() ? window.published() : window.sealed();
  const auto with = window.latest();
  if (!own) return reduction;
  const auto buffer = window.begin_result();
  if (!buffer) {
    fail_job(damaged(task.what.rank));
    return reduction;
  }
  outputs_.push_back(task.what.rank);
  window.tag(*buffer) = {};
  window.tag(*buffer).iteration = task.what.own.value;
  reduction.inputs = {window.data(*own).data()};
  // A worker that opened its share after the round has no result to merge with: it goes on with its own.
  if (with) reduction.inputs.insert(reduction.inputs.begin(), window.data(*with).data());
  const double divisor = with ? std::max(1, window.tag(*with).divisor) + 1.0 : 1.0;
  reduction.outputs.push_back({window.data(*buffer).data(), 1.0 / divisor});
  return reduction;
}

void RoundService::finish(const MergeTask& task, Instant now) {
  for (const Rank rank : outputs_) members_.at(rank).window.deliver();
  ++counters_.late_merges;
  trace("merge", task.what.own.value, task_began_, steady_now());
  act(engine_.on_merged(task.what.rank, now), now);
}

void RoundService::trace(const char* category, std::int64_t version, Instant begin, Instant end) {
  if (!trace_) return;
  char name[64];
  std::snprintf(name, sizeof name, "%s %lld", category, static_cast<long long>(version));
  const std::string args =
      "{\"task\":" + std::to_string(in_flight_.value & 0xffffffffff) + ",\"version\":" + std::to_string(version) + "}";
  trace_->span(options_.engine.self.value, 0, category, name, begin, end, args);
}

}  // namespace paceline::scheduler
