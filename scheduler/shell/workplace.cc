#include "scheduler/shell/workplace.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace paceline::scheduler {
namespace {

// Buffers that wait to be used again: a step needs as many, and some that are on their way meanwhile.
constexpr std::size_t kSparesOfAll = 4;
constexpr std::size_t kSparesOfEach = 2;

}  // namespace

void add(RoundSums& to, const RoundSums& from) {
  to.loss_sum += from.loss_sum;
  to.loss_count += from.loss_count;
  to.samples += from.samples;
  if (to.learning_rate == 0) to.learning_rate = from.learning_rate;
  to.leader_time = std::max(to.leader_time, from.leader_time);
  to.stops += from.stops;
  to.members += from.members;
}

Workplace::Workplace(JobOptions options, TaskGraph& graph, collective::Averager& averager, SendToNode send,
                     Chronicle::Core& core, std::function<std::shared_ptr<const void>()> owner)
    : chronicle(core, options.record_path, options.record_head, std::exchange(options.replay, std::nullopt)),
      job(std::move(options)),
      view(job.self, job.node_of),
      averagings(job.job, graph, averager, *job.clock,
                 {std::move(owner), [this](const Decision& told) { return chronicle.is_next(told); },
                  [this](std::string text) { fail_job(std::move(text)); }}),
      pool(kSparesOfAll + kSparesOfEach * view.ranks_on(job.self).size()),
      clock(now()),
      ledger(job.ledger),
      send_(std::move(send)),
      evaluated_last_{job.first.value - 1} {
  for (const Rank rank : view.ranks_on(job.self)) ledger.add(rank, job.vacant.contains(rank));
  if (job.trace_path.empty()) return;
  if (auto trace = observe::TraceWriter::open(job.trace_path)) {
    trace_.emplace(std::move(*trace));
    trace_->name_track(job.self.value, 0, "node " + to_string(job.self), "agent");
  }
}

void Workplace::send(NodeId to, wire::Message& message, Piece bulk) {
  chronicle.flush();
  std::vector<Piece> pieces;
  if (!bulk.empty()) pieces.push_back(std::move(bulk));
  send_(to, message, std::move(pieces));
}

std::optional<memory::Buffer> Workplace::begin_result(Rank rank, WorkerWindows::Member& member, Version v) {
  const auto buffer = WorkerWindows::begin_result(member, v);
  if (!buffer) fail_job(damaged_window(rank));
  return buffer;
}

bool Workplace::has_right_size(NodeId from, const char* what, std::size_t size, std::size_t expected) {
  if (windows.elements() == 0 || size == expected) return true;  // Nobody here has opened a share yet.
  fail_job("node " + to_string(from) + " sent " + what + " of " + std::to_string(size) + " bytes, expected " +
           std::to_string(expected) + ": the workers build different models");
  return false;
}

bool Workplace::is_weight(NodeId from, double weight) {
  if (std::isfinite(weight) && weight >= 0) return true;
  fail_job("node " + to_string(from) + " sent a model that weighs " + std::to_string(weight));
  return false;
}

bool Workplace::evaluation_due(Version v) const {
  if (job.evaluate_every <= 0) return false;
  return (v.value + 1) / job.evaluate_every > (evaluated_last_.value + 1) / job.evaluate_every;
}

/// Unless the word that releases it came before what this node needed to execute it.
void Workplace::hold(Version v) {
  if (!released_ || v > *released_) hold_for_good(v);
}

void Workplace::hold_for_good(Version v) {
  clock.stand_still(now());
  windows.hold(v);
}

void Workplace::release(Version v, bool is_last) {
  released_ = std::max(released_.value_or(v), v);
  windows.release(v);
  if (!is_last) clock.go_on(now());
}

void Workplace::trace(const char* category, Version v) {
  if (!trace_) return;
  trace_->span(job.self.value, 0, category, averagings.began(), now(),
               "{\"task\":" + std::to_string(averagings.number()) + ",\"update\":" + std::to_string(v.value) + "}");
}

void Workplace::count(const char* name, double value, Instant now) {
  if (trace_) trace_->counter(job.self.value, name, now, value);
}

void Workplace::close() {
  averagings.leave();
  trace_.reset();
  chronicle.close();
}

}  // namespace paceline::scheduler
