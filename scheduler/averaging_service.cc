#include "scheduler/averaging_service.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/observe/format.h"

namespace paceline::scheduler {

void add(RoundSums& to, const RoundSums& from) {
  to.loss_sum += from.loss_sum;
  to.loss_count += from.loss_count;
  to.samples += from.samples;
  if (to.learning_rate == 0) to.learning_rate = from.learning_rate;
  to.leader_time = std::max(to.leader_time, from.leader_time);
  to.stops += from.stops;
}

namespace {

constexpr Duration kReplayLook = std::chrono::milliseconds(1);  // Mini-batches are published without a word.

}  // namespace

std::string damaged_window(Rank rank) {
  return "the window of worker " + to_string(rank) +
         " has no free buffer for a result: its shared memory was overwritten, by the script or by us";
}

AveragingService::AveragingService(JobOptions options, TaskGraph& graph, collective::Averager& averager,
                                   SendToNode send)
    : job_(std::move(options)),
      view_(job_.self, {job_.node_of.begin(), job_.node_of.end()}),
      graph_(graph),
      averager_(averager),
      send_(std::move(send)) {
  clock_begin_ = clock_now();
  evaluated_last_ = Version{job_.first.value - 1};
  if (job_.replay) replay_.emplace(*std::exchange(job_.replay, std::nullopt));
  if (!job_.record_path.empty()) {
    if (auto writer = RecordWriter::create(job_.record_path, job_.record_head)) record_.emplace(std::move(*writer));
  }
  if (job_.trace_path.empty()) return;
  if (auto trace = observe::TraceWriter::open(job_.trace_path)) {
    trace_.emplace(std::move(*trace));
    trace_->name_track(job_.self.value, 0, "node " + to_string(job_.self), "agent");
  }
}

AveragingService::~AveragingService() = default;

Result<void> AveragingService::join(Rank rank, memory::Window window, memory::ControlPage control) {
  const auto& layout = window.layout();
  if (!members_.empty() && (layout.elements != elements_ || layout.dtype != dtype_)) {
    return fail(ErrorKind::invalid, "worker " + to_string(rank) + " shares " + std::to_string(layout.elements) +
                                        " parameters, the others " + std::to_string(elements_) +
                                        ": every worker must build the same model");
  }
  elements_ = layout.elements;
  dtype_ = layout.dtype;
  Member member{std::move(window), std::move(control), false};
  const Decision joined{.kind = Decision::Kind::joined, .rank = rank};
  if (!replay_) {
    record(joined);
    add_member(rank, std::move(member));
    return {};
  }
  joins_early() ? add_member(rank, std::move(member)) : void(joining_.insert_or_assign(rank, std::move(member)));
  hear(joined, clock_now());
  return {};
}

void AveragingService::add_member(Rank rank, Member member) {
  if (last() < job_.last) member.control.words().last.store(last().value, std::memory_order_release);
  members_.insert_or_assign(rank, std::move(member));
  limit(rank);
  begin_compute(rank);
}

bool AveragingService::lives_on(Rank rank, NodeId node) const {
  return rank.value >= 0 && static_cast<std::size_t>(rank.value) < job_.node_of.size() &&
         job_.node_of[static_cast<std::size_t>(rank.value)] == node;
}

AveragingService::Member* AveragingService::living(Rank rank) {
  const auto it = members_.find(rank);
  return it == members_.end() || it->second.gone ? nullptr : &it->second;
}

memory::Window* AveragingService::window(Rank rank) {
  const auto it = members_.find(rank);
  return it == members_.end() ? nullptr : &it->second.window;
}

memory::ControlPage* AveragingService::control(Rank rank) {
  const auto it = members_.find(rank);
  return it == members_.end() ? nullptr : &it->second.control;
}

void AveragingService::set_last(Version v) {
  for (auto& [rank, member] : members_) {
    member.control.words().last.store(v.value, std::memory_order_release);
    member.control.ring();
  }
}

void AveragingService::stop() {
  for (auto* members : {&members_, &joining_}) {
    for (auto& [rank, member] : *members) {
      member.control.words().stop.store(1, std::memory_order_release);
      member.control.ring();
    }
  }
  if (record_ && done() >= last()) record_->finish();
}

void AveragingService::end_work() {
  for (const auto& [rank, id] : std::exchange(computing_, {})) drop_task(id);
  for (const auto& [id, averaging] : std::exchange(averagings_, {})) drop_task(id);
  drop_task(std::exchange(last_averaging_, TaskId{}));
  running_ = false;
  trace_.reset();
  record_.reset();
}

void AveragingService::drop_task(TaskId id) {
  if (id.value == 0) return;
  (void)graph_.cancel(id);
  (void)graph_.forget(id);
}

void AveragingService::end_at(Version v) {
  const Decision ends{.kind = Decision::Kind::ends, .version = v};
  hear(ends, clock_now());
}

void AveragingService::tick(Instant now) {
  looked_ = now;
  replay_ ? follow(now) : look(now);
}

std::optional<Instant> AveragingService::next_deadline() const {
  if (!replay_) return core_deadline();
  return replay_->next() && !lost_way_ ? std::optional(looked_ + kReplayLook) : std::nullopt;
}

/// Unless the word that releases it came before what this node needed to execute it.
void AveragingService::hold(Version v) {
  if (v <= released_) return;
  held_since_ = clock_now();
  for (auto& [rank, member] : members_) member.control.words().hold.store(v.value, std::memory_order_release);
}

void AveragingService::release(Version v) {
  released_ = std::max(released_, v);
  for (auto& [rank, member] : members_) {
    if (member.control.words().hold.load(std::memory_order_relaxed) != v.value) continue;
    member.control.words().hold.store(-1, std::memory_order_release);
    member.control.ring();
  }
  if (!held_since_ || v == last()) return;  // After the last one training time stands still for good.
  held_ += clock_now() - *held_since_;
  held_since_.reset();
}

void AveragingService::start_clock(Instant now) {
  clock_begin_ = now;
  held_ = {};
}

Duration AveragingService::clock(Instant now) const {
  return (held_since_ ? *held_since_ : now) - clock_begin_ - held_;
}

bool AveragingService::evaluation_due(Version v) const {
  if (job_.evaluate_every <= 0) return false;
  return (v.value + 1) / job_.evaluate_every > (evaluated_last_.value + 1) / job_.evaluate_every;
}

std::vector<AveragingService::Event> AveragingService::take_events() { return std::exchange(events_, {}); }

void AveragingService::fail_job(std::string text) { tell(Failed{std::move(text)}); }

void AveragingService::set_verdict(Rank rank, const memory::WorkerVerdict& verdict) {
  const auto it = members_.find(rank);
  if (it == members_.end()) return;
  it->second.control.set_verdict(verdict);
  it->second.control.ring();
}

// Other agents
// -------------------------------------------------------------------------------------------------------------------

std::set<NodeId> AveragingService::other_nodes() const {
  std::set<NodeId> nodes(job_.node_of.begin(), job_.node_of.end());
  std::erase_if(nodes, [this](NodeId node) { return node == job_.self || without_.contains(node); });
  return nodes;
}

std::vector<Rank> AveragingService::ranks_on(NodeId node) const {
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < job_.node_of.size(); ++i)
    if (job_.node_of[i] == node) ranks.emplace_back(static_cast<std::int32_t>(i));
  return ranks;
}

std::optional<NodeId> AveragingService::giver(NodeId from, std::int32_t of) const {
  const NodeId node = of < 0 ? from : NodeId{of};
  if (node == job_.self || without_.contains(node) || ranks_on(node).empty()) return std::nullopt;
  return node;
}

void AveragingService::on_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                  Instant now) {
  if (!view_.members().contains(from) || without_.contains(from)) return;  // A replay hears it of the record.
  if (!message.isFlushed()) return on_peer_message(from, message, std::move(bulk), now);
  std::set<NodeId> lost;
  for (const std::int32_t node : message.getFlushed().getLost()) lost.insert(NodeId{node});
  act(view_.on_flushed(from, lost), now);
}

void AveragingService::on_node_gone(NodeId node, Instant now) { act(view_.on_lost(node), now); }

void AveragingService::act(const ViewChange::Actions& actions, Instant now) {
  for (const auto& action : actions) {
    if (const auto* flush = std::get_if<ViewChange::Flush>(&action)) {
      for (const NodeId lost : flush->lost) pass_on(lost, flush->to);
      wire::Message message;
      auto body = message.root().initFlushed();
      body.setJob(job_.job.value);
      auto list = body.initLost(static_cast<unsigned>(flush->lost.size()));
      for (unsigned i = 0; const NodeId lost : flush->lost) list.set(i++, lost.value);
      send(flush->to, message);
    } else {
      hear({.kind = Decision::Kind::node_gone, .node = std::get<ViewChange::Install>(action).lost, .at = now}, now);
    }
  }
}

void AveragingService::send(NodeId to, wire::Message& message, std::vector<std::vector<std::byte>> bulk) {
  send_(to, message, std::move(bulk));
}

// Averagings are tasks of the node's graph
// ----------------------------------------------------------------------------------------------

TaskId AveragingService::new_task_id() {
  // Users' tasks count from their owner's tag; these have the top bit, then the job.
  return TaskId{(std::uint64_t{1} << 63) | (job_.job.value << 40) | ++next_task_};
}

void AveragingService::begin_compute(Rank rank) {
  if (const auto it = computing_.find(rank); it != computing_.end()) {
    end_compute(rank);
    (void)graph_.forget(it->second);
  }
  const TaskId id = new_task_id();
  if (!graph_.add({id, TaskKind::compute, {}, 0}) || !graph_.lease(id))
    return fail_job("the node's task graph is full");
  computing_[rank] = id;
}

void AveragingService::end_compute(Rank rank) {
  const auto it = computing_.find(rank);
  if (it == computing_.end() || graph_.state(it->second) != TaskState::leased) return;
  (void)graph_.on_done(it->second);
}

void AveragingService::add_averaging(Averaging averaging, const std::vector<Rank>& contributors) {
  const TaskId id = new_task_id();
  TaskGraph::Task node{id, TaskKind::averaging, {}, 0};
  if (graph_.state(last_averaging_)) node.dependencies.push_back(last_averaging_);
  for (const Rank rank : contributors) {
    // A stale contribution is of a compute task that is over long ago; the one that still runs is not waited for.
    const auto it = computing_.find(rank);
    if (it != computing_.end() && graph_.state(it->second) == TaskState::done) node.dependencies.push_back(it->second);
  }
  if (!graph_.add(node)) return fail_job("the node's task graph is full");
  averagings_.emplace(id, std::move(averaging));
  const TaskId before = std::exchange(last_averaging_, id);
  if (const auto state = graph_.state(before); state && state != TaskState::waiting && !averagings_.contains(before))
    (void)graph_.forget(before);
}

void AveragingService::start_averagings(Instant now) {
  while (!running_) {
    const auto id = graph_.next_ready(0, TaskKind::averaging);
    if (!id || !averagings_.contains(*id) || !graph_.lease(*id)) return;
    in_flight_ = *id;
    auto reduction = averagings_.at(*id).prepare();
    began_ = clock_now();
    if (!reduction.outputs.empty() && !collective::Averager::is_small(reduction)) {
      if (auto submitted = averager_.submit(id->value, std::move(reduction), shared_from_this()); !submitted)
        return fail_job(submitted.error().text);
      running_ = true;
      return;
    }
    if (!reduction.outputs.empty()) collective::Averager::run_inline(reduction);
    if (finish_waits()) return;
    finish_averaging(now);
  }
}

/// A replay: whether the averaging that is reduced must wait for what was told before it.
bool AveragingService::finish_waits() {
  const auto& told = averagings_.at(in_flight_).told;
  running_ = reduced_ = replay_ && told && !replay_->is_next(*told);
  return reduced_;
}

void AveragingService::finish_averaging(Instant now) {
  auto node = averagings_.extract(in_flight_);
  (void)graph_.on_done(in_flight_);
  if (in_flight_ != last_averaging_) (void)graph_.forget(in_flight_);
  running_ = true;  // The next one may need the buffers that this one's results leave.
  node.mapped().finish(now);
  running_ = false;
}

bool AveragingService::on_reduced(std::uint64_t id, Instant now) {
  if (!running_ || id != in_flight_.value) return false;
  if (finish_waits()) return true;
  finish_averaging(now);
  start_averagings(now);
  return true;
}

// What the core is told
// ---------------------------------------------------------------------------------------------------------

void AveragingService::record(const Decision& decision) {
  const bool after_the_end = decision.kind == Decision::Kind::gone && done() >= last();
  if (record_ && !after_the_end) record_->add(decision);
}

void AveragingService::step_any(const Decision& decision) {
  using Kind = Decision::Kind;
  if (decision.kind == Kind::joined) {
    if (auto waiting = joining_.extract(decision.rank)) add_member(decision.rank, std::move(waiting.mapped()));
  } else if (decision.kind == Kind::ends) {
    step_end(decision.version);
    set_last(decision.version);
  } else {
    if (decision.kind == Kind::node_gone) without_.insert(decision.node);
    if (replay_ && decision.kind == Kind::gone) tell(Left{decision.rank, done(), {}, {}, true});
    step(decision);
  }
}

void AveragingService::hear(const Decision& decision, Instant now) {
  if (!replay_) {
    record(decision);
    return step_any(decision);
  }
  if (decision.kind == Decision::Kind::gone && replay_->next() && !replay_->will_go(decision.rank))
    return lose_way("worker " + to_string(decision.rank) + " has ended, which it did not in the run that is replayed");
  replay_->happened(decision);
  follow(now);
}

void AveragingService::decide(const Decision& decision) {
  if (!replay_) {
    record(decision);
    return step_any(decision);
  }
  if (lost_way_) return;
  const bool as_before = replay_->is_next(decision) && replay_->next()->contributions == decision.contributions;
  if (as_before) return step_any(take());
  lose_way("the replay went another way than the run, at update " +
           to_string(std::max(decision.version, Version{done().value + 1})) +
           ": is this the same Paceline, and the same machine?");
}

void AveragingService::lose_way(std::string text) {
  if (!std::exchange(lost_way_, true)) fail_job(std::move(text));
}

Decision AveragingService::take() {
  Decision taken = replay_->take();
  for (const auto& c : taken.contributions) limit(c.rank);
  record(taken);
  return taken;
}

/// Everything whose turn it is.
void AveragingService::follow(Instant now) {
  if (std::exchange(following_, true)) return;
  while (!lost_way_ && go_on()) {
    if (reduced_ && !finish_waits()) {
      finish_averaging(now);
      start_averagings(now);
    } else if (replay_->is_due() || (replay_->next() && needs_nothing(*replay_->next()))) {
      step_any(take());
    } else {
      break;
    }
  }
  following_ = false;
}

void AveragingService::limit(Rank rank) {
  Member* const member = replay_ ? living(rank) : nullptr;
  if (!member) return;
  member->control.words().may_publish.store(replay_->may_publish(rank), std::memory_order_release);
  member->control.ring();
}

bool AveragingService::has_published(Rank rank) {
  const auto* wanted = replay_->next_contribution(rank);
  const Member* const member = living(rank);
  if (!wanted) return true;
  if (!member) return false;
  const auto published = member->window.published();
  if (!published) return false;
  const auto tag = member->window.tag(*published);
  // The worker writes the tags of other buffers only: if it is still the one, this is what was published.
  if (member->window.published() != published) return false;
  const auto here = Replay::publication(tag.iteration, tag.bodies);
  const auto there = Replay::publication(wanted->iteration->value, wanted->bodies);
  if (here > there)
    lose_way("worker " + to_string(rank) + " went past update " + to_string(*wanted->iteration) +
             ", which it did not in the run that is replayed");
  return here == there;
}

collective::Reduction AveragingService::reduction() const {
  collective::Reduction reduction;
  reduction.elements = elements_;
  reduction.dtype = dtype_;
  return reduction;
}

std::optional<memory::Buffer> AveragingService::begin_result(Rank rank, Member& member, Version v) {
  const auto buffer = member.window.begin_result();
  if (!buffer) {
    fail_job(damaged_window(rank));
    return {};
  }
  member.window.tag(*buffer) = {};
  member.window.tag(*buffer).iteration = v.value;
  return buffer;
}

bool AveragingService::has_right_size(NodeId from, const char* what, std::size_t size, std::size_t expected) {
  if (elements_ == 0 || size == expected) return true;  // Nobody here has opened a share yet.
  fail_job("node " + to_string(from) + " sent " + what + " of " + std::to_string(size) + " bytes, expected " +
           std::to_string(expected) + ": the workers build different models");
  return false;
}

bool AveragingService::is_weight(NodeId from, double weight) {
  if (std::isfinite(weight) && weight >= 0) return true;
  fail_job("node " + to_string(from) + " sent a model that weighs " + std::to_string(weight));
  return false;
}

void AveragingService::trace(const char* category, Version v, Instant begin, Instant end) {
  if (!trace_) return;
  trace_->span(
      job_.self.value, 0, category, begin, end,
      "{\"task\":" + std::to_string(in_flight_.value & 0xffffffffff) + ",\"update\":" + std::to_string(v.value) + "}");
}

void AveragingService::count(const char* name, double value, Instant now) {
  if (trace_) trace_->counter(job_.self.value, name, now, value);
}

}  // namespace paceline::scheduler
