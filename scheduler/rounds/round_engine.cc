#include "scheduler/rounds/round_engine.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "scheduler/rounds/round_state.h"

namespace paceline::scheduler {

RoundEngine::RoundEngine(Options options, std::unique_ptr<RoundPlan> plan)
    : plan_(std::move(plan)), state_(std::make_unique<State>(std::move(options))) {
  PACELINE_CHECK(plan_ != nullptr, "a round engine needs a plan");
  state_->find_gate(*plan_, Instant{});
}

RoundEngine::RoundEngine(const RoundEngine& other, std::unique_ptr<RoundPlan> plan)
    : plan_(std::move(plan)), state_(std::make_unique<State>(*other.state_)) {}

RoundEngine::RoundEngine(RoundEngine&&) noexcept = default;
RoundEngine& RoundEngine::operator=(RoundEngine&&) noexcept = default;
RoundEngine::~RoundEngine() = default;

RoundEngine::Actions RoundEngine::on_arrival(Rank rank, Version t, Duration compute, Instant now) {
  Actions out;
  State& s = *state_;
  Worker* w = s.worker(rank);
  if (w == nullptr || t <= w->reported || t > s.options.last) return out;
  if (w->phase == Phase::entering) s.come_in(*w, *plan_, out);
  if (w->phase != Phase::computing) return out;
  w->enters_after.reset();
  w->reported = t;
  w->word = now;
  if (compute > Duration::zero()) s.steps.add(compute);
  if (!s.pass_by(*w, t, *plan_, now, out)) s.arrive(*w, t, *plan_, now, out);
  if (now == s.gate_since) s.gate_median = s.steps.get();  // Steps that end in the same instant count.
  s.advance(*plan_, now, out);
  return out;
}

void RoundEngine::on_alive(Rank rank, Instant now) {
  if (Worker* const w = state_->worker(rank)) w->alive = std::max(w->alive, now);
}

void RoundEngine::on_step(Duration compute) { state_->steps.add(compute); }

RoundEngine::Actions RoundEngine::on_activation(NodeId root, NodeId, Version v, Instant now) {
  Actions out;
  State& s = *state_;
  if (v > s.options.last || v < s.options.first || !s.is_agent(root)) return out;
  s.forward(root, v, out);
  s.hear(v, now);
  s.advance(*plan_, now, out);
  return out;
}

RoundEngine::Actions RoundEngine::on_count(Version v, Instant now) {
  Actions out;
  if (v <= state_->done || v > state_->options.last) return out;
  state_->count(v, *plan_, now, out);
  state_->advance(*plan_, now, out);
  return out;
}

RoundEngine::Actions RoundEngine::on_partial(NodeId from, Version v, std::int32_t group, Instant now) {
  Actions out;
  State& s = *state_;
  if (v <= s.done || v > s.options.last || v.value - s.done.value > kVersionsAhead || group < 0) return out;
  if (group >= static_cast<std::int32_t>(s.options.node_of.size()) || !s.is_agent(from) || s.lost.contains(from))
    return out;
  s.partials[{v, group}].insert(from);
  s.hear(v, now);
  s.execute_where_complete(out);
  s.advance(*plan_, now, out);
  return out;
}

RoundEngine::Actions RoundEngine::on_sealed(Version v, std::int32_t group,
                                            const std::vector<std::optional<Version>>& contributed, Instant) {
  Actions out;
  State& s = *state_;
  GroupInFlight* g = s.group_in_flight(v, group);
  if (g == nullptr || g->stage != GroupInFlight::Stage::sealing || contributed.size() != g->members.size()) return out;
  s.seal(*g, contributed);
  // To a lost one that has given, too: with it this agent's own sum is made, which is added to that.
  for (NodeId to : g->others) out.push_back(SendPartial{to, v, group});
  s.execute_where_complete(out);
  return out;
}

RoundEngine::Actions RoundEngine::on_executed(Version v, std::int32_t group, const RoundSums& sums, Instant now) {
  Actions out;
  State& s = *state_;
  GroupInFlight* g = s.group_in_flight(v, group);
  if (g == nullptr || g->stage != GroupInFlight::Stage::executing) return out;
  g->stage = GroupInFlight::Stage::executed;
  const bool finished = s.all_executed();
  // Sums of groups differ from agent to agent; the plan hears only what all know.
  if (finished) plan_->on_executed(v, s.flight->round.kind == Round::Kind::sync ? sums : RoundSums{});
  s.release_members(*g, *plan_, now, out);
  if (finished) {
    s.close_version(*plan_, now);
    s.let_in(*plan_, now, out);
    s.advance(*plan_, now, out);
  }
  return out;
}

RoundEngine::Actions RoundEngine::on_merged(Rank rank, Instant now) {
  Actions out;
  State& s = *state_;
  Worker* w = s.worker(rank);
  if (w == nullptr || !w->merges) return out;
  w->merges = false;
  if (w->phase != Phase::merging) {  // It has left since.
    s.admit_returned(*plan_, now, out);
    return out;
  }
  const bool skips = s.lateness == Lateness::skips;
  // It is late: executed >= reported.
  const Version next = std::max(skips ? w->executed.next() : w->reported.next(), w->without.next());
  const State::Outcome outcome{.fresh = false, .averaged = true, .skipped = next.value - w->reported.value - 1};
  s.release(*w, w->reported, next, outcome, *plan_, now, out);
  return out;
}

RoundEngine::Actions RoundEngine::on_gone(Rank rank, Instant now) {
  Actions out;
  Worker* w = state_->worker(rank);
  state_->returning.erase(rank);
  if (w == nullptr || w->phase == Phase::left) return out;
  state_->leave(*w, *plan_, now, out);
  state_->advance(*plan_, now, out);
  return out;
}

RoundEngine::Actions RoundEngine::on_gone_elsewhere(Rank rank, Instant now) {
  Actions out;
  if (rank.value < 0 || static_cast<std::size_t>(rank.value) >= state_->options.node_of.size()) return out;
  state_->note_gone(rank, *plan_, now, out);
  state_->advance(*plan_, now, out);
  return out;
}

void RoundEngine::on_back_elsewhere(Rank rank) { state_->gone.erase(rank); }

RoundEngine::Actions RoundEngine::on_return(Rank rank, Instant now) {
  Actions out;
  State& s = *state_;
  Worker* const w = s.worker(rank);
  const bool is_on_its_way = w != nullptr && (w->phase == Phase::entering || w->enters_after);
  if (w == nullptr || (w->phase != Phase::left && !is_on_its_way)) return out;
  w->phase = Phase::left;
  w->enters_after.reset();
  s.returning.insert(rank);
  s.admit_returned(*plan_, now, out);
  s.advance(*plan_, now, out);  // It may have been waited for.
  return out;
}

RoundEngine::Actions RoundEngine::on_node_gone(NodeId node, Instant now) {
  Actions out;
  State& s = *state_;
  const NodeId counter = s.counter();
  if (node == s.options.self || !s.lost.insert(node).second) return out;
  s.leave_out_lost_nodes();
  s.forwarded.clear();
  if (s.fired >= s.options.first) s.forward(s.options.self, s.fired, out);  // It may have been lost on its way.
  for (std::size_t i = 0; i < s.options.node_of.size(); ++i)
    if (s.options.node_of[i] == node) s.note_gone(Rank{static_cast<std::int32_t>(i)}, *plan_, now, out);
  if (node == counter) s.announce_to_counter(*plan_, now, out);
  s.execute_where_complete(out);
  s.advance(*plan_, now, out);
  return out;
}

RoundEngine::Actions RoundEngine::tick(Instant now) {
  Actions out;
  state_->end_grace_of_quorum(*plan_, now, out);
  state_->advance(*plan_, now, out, State::Deadlines::look);
  return out;
}

std::optional<Instant> RoundEngine::next_deadline() const { return state_->next_deadline(*plan_); }
std::optional<RoundEngine::Waiting> RoundEngine::waiting() const { return state_->waiting(*plan_); }
bool RoundEngine::is_free(Rank rank) const {
  const auto found = state_->workers.find(rank);
  return found != state_->workers.end() && found->second.phase == Phase::left && !found->second.merges &&
         !state_->flight;
}
bool RoundEngine::has_left(Rank rank) const {
  const auto found = state_->workers.find(rank);
  return found != state_->workers.end() && found->second.phase == Phase::left;
}
bool RoundEngine::is_returning(Rank rank) const { return state_->returning.contains(rank); }
bool RoundEngine::is_awaited_after(Version t) const {
  if (state_->flight) return state_->flight->version > t;
  const auto v = state_->open_version(*plan_);
  return v && state_->fired >= *v && *v > t;
}
Version RoundEngine::done() const { return state_->done; }
Version RoundEngine::last() const { return state_->options.last; }

void RoundEngine::end_at(Version v) { state_->options.last = v; }
Duration RoundEngine::median_step() const { return state_->steps.get(); }
std::string RoundEngine::fingerprint() const { return state_->fingerprint(); }

}  // namespace paceline::scheduler
