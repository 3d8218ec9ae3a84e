#include "scheduler/shell/averaging_service.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace paceline::scheduler {

void add(RoundSums& to, const RoundSums& from) {
  to.loss_sum += from.loss_sum;
  to.loss_count += from.loss_count;
  to.samples += from.samples;
  if (to.learning_rate == 0) to.learning_rate = from.learning_rate;
  to.leader_time = std::max(to.leader_time, from.leader_time);
  to.stops += from.stops;
}

AveragingService::AveragingService(JobOptions options, TaskGraph& graph, collective::Averager& averager,
                                   SendToNode send)
    : view_(options.self, options.node_of),
      chronicle_(*this, options.record_path, options.record_head, std::exchange(options.replay, std::nullopt)),
      averagings_(options.job, graph, averager, *options.clock,
                  {[this] { return shared_from_this(); },
                   [this](const Decision& told) { return chronicle_.is_next(told); },
                   [this](std::string text) { fail_job(std::move(text)); }}),
      job_(std::move(options)),
      view_change_(job_.self, view_.nodes()),
      send_(std::move(send)),
      clock_(clock_now()),
      evaluated_last_{job_.first.value - 1} {
  if (job_.trace_path.empty()) return;
  if (auto trace = observe::TraceWriter::open(job_.trace_path)) {
    trace_.emplace(std::move(*trace));
    trace_->name_track(job_.self.value, 0, "node " + to_string(job_.self), "agent");
  }
}

AveragingService::~AveragingService() = default;

// Workers
// ---------------------------------------------------------------------------------------------------------------

Result<void> AveragingService::join(Rank rank, memory::Window window, memory::ControlPage control) {
  if (auto fits = windows_.check(rank, window); !fits) return fits;
  Member member{std::move(window), std::move(control), false};
  const Decision joined{.kind = Decision::Kind::joined, .rank = rank};
  if (!chronicle_.replays()) {
    chronicle_.record(joined);
    add_member(rank, std::move(member));
    return {};
  }
  joins_early() ? add_member(rank, std::move(member)) : void(joining_.insert_or_assign(rank, std::move(member)));
  chronicle_.hear(joined, clock_now());
  return {};
}

void AveragingService::add_member(Rank rank, Member member) {
  if (last() < job_.last) member.control.words().last.store(last().value, std::memory_order_release);
  windows_.add(rank, std::move(member));
  limit(rank);
  averagings_.begin_compute(rank);
}

memory::Window* AveragingService::window(Rank rank) {
  Member* const member = windows_.find(rank);
  return member ? &member->window : nullptr;
}

memory::ControlPage* AveragingService::control(Rank rank) {
  Member* const member = windows_.find(rank);
  return member ? &member->control : nullptr;
}

void AveragingService::limit(Rank rank) {
  Member* const member = chronicle_.replays() ? windows_.living(rank) : nullptr;
  if (!member) return;
  member->control.words().may_publish.store(chronicle_.replay().may_publish(rank), std::memory_order_release);
  member->control.ring();
}

std::optional<memory::Buffer> AveragingService::begin_result(Rank rank, Member& member, Version v) {
  const auto buffer = WorkerWindows::begin_result(member, v);
  if (!buffer) fail_job(damaged_window(rank));
  return buffer;
}

// The job
// ---------------------------------------------------------------------------------------------------------------

void AveragingService::on_told(const Decision& decision) {
  using Kind = Decision::Kind;
  if (decision.kind == Kind::joined) {
    if (auto waiting = joining_.extract(decision.rank)) add_member(decision.rank, std::move(waiting.mapped()));
  } else if (decision.kind == Kind::ends) {
    step_end(decision.version);
    windows_.set_last(decision.version);
  } else {
    if (decision.kind == Kind::node_gone) view_.go_on_without(decision.node);
    if (chronicle_.replays() && decision.kind == Kind::gone) tell(Left{decision.rank, done(), {}, {}, true});
    step(decision);
  }
}

void AveragingService::tick(Instant now) { chronicle_.replays() ? chronicle_.follow(now) : look(now); }

std::optional<Instant> AveragingService::next_deadline() const {
  return chronicle_.replays() ? chronicle_.next_look() : core_deadline();
}

void AveragingService::end_at(Version v) {
  const Decision ends{.kind = Decision::Kind::ends, .version = v};
  chronicle_.hear(ends, clock_now());
}

void AveragingService::stop() {
  const auto stop = [](auto& members) {
    for (auto& [rank, member] : members) {
      member.control.words().stop.store(1, std::memory_order_release);
      member.control.ring();
    }
  };
  stop(windows_.all());
  stop(joining_);
  if (is_over()) chronicle_.finish();
}

void AveragingService::end_work() {
  averagings_.leave();
  trace_.reset();
  chronicle_.close();
}

/// Unless the word that releases it came before what this node needed to execute it.
void AveragingService::hold(Version v) {
  if (v <= released_) return;
  clock_.stand_still(clock_now());
  windows_.hold(v);
}

void AveragingService::release(Version v) {
  released_ = std::max(released_, v);
  windows_.release(v);
  if (v != last()) clock_.go_on(clock_now());  // After the last one training time stands still for good.
}

bool AveragingService::evaluation_due(Version v) const {
  if (job_.evaluate_every <= 0) return false;
  return (v.value + 1) / job_.evaluate_every > (evaluated_last_.value + 1) / job_.evaluate_every;
}

std::vector<AveragingService::Event> AveragingService::take_events() { return std::exchange(events_, {}); }

// Other agents
// -------------------------------------------------------------------------------------------------------------------

void AveragingService::on_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                  Instant now) {
  if (!view_change_.members().contains(from) || view_.is_without(from)) return;  // A replay hears it of the record.
  if (!message.isFlushed()) return on_peer_message(from, message, std::move(bulk), now);
  std::set<NodeId> lost;
  for (const std::int32_t node : message.getFlushed().getLost()) lost.insert(NodeId{node});
  act(view_change_.on_flushed(from, lost), now);
}

void AveragingService::on_node_gone(NodeId node, Instant now) { act(view_change_.on_lost(node), now); }

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
      const NodeId lost = std::get<ViewChange::Install>(action).lost;
      chronicle_.hear({.kind = Decision::Kind::node_gone, .node = lost, .at = now}, now);
    }
  }
}

void AveragingService::send(NodeId to, wire::Message& message, std::vector<std::vector<std::byte>> bulk) {
  send_(to, message, std::move(bulk));
}

bool AveragingService::has_right_size(NodeId from, const char* what, std::size_t size, std::size_t expected) {
  if (windows_.elements() == 0 || size == expected) return true;  // Nobody here has opened a share yet.
  fail_job("node " + to_string(from) + " sent " + what + " of " + std::to_string(size) + " bytes, expected " +
           std::to_string(expected) + ": the workers build different models");
  return false;
}

bool AveragingService::is_weight(NodeId from, double weight) {
  if (std::isfinite(weight) && weight >= 0) return true;
  fail_job("node " + to_string(from) + " sent a model that weighs " + std::to_string(weight));
  return false;
}

// The trace
// -------------------------------------------------------------------------------------------------------------------

void AveragingService::trace(const char* category, Version v) {
  if (!trace_) return;
  trace_->span(
      job_.self.value, 0, category, averagings_.began(), clock_now(),
      "{\"task\":" + std::to_string(averagings_.number()) + ",\"update\":" + std::to_string(v.value) + "}");
}

void AveragingService::count(const char* name, double value, Instant now) {
  if (trace_) trace_->counter(job_.self.value, name, now, value);
}

}  // namespace paceline::scheduler
