#include "algorithms/session/session_core.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/job_leg.h"

// What the worker does between its steps: evaluations, replicas, checkpoints, the start and the end.

namespace paceline::session {

SessionCore::SessionCore(Share share, JobTerms terms, memory::Window window, memory::ControlPage control, Outbox outbox,
                         const Clock& clock)
    : share_(share),
      terms_(std::move(terms)),
      alone_(terms_.is_alone()),
      window_(std::move(window)),
      control_(std::move(control)),
      outbox_(std::move(outbox)),
      clock_(clock),
      numbers_(terms_.outer, window_.layout(), share_.outer_elements),
      next_round_(terms_.next_round),
      lr_may_decay_(terms_.lr_may_decay) {
  info_.workers = terms_.workers;
  info_.bodies = terms_.bodies;
  info_.first_update = terms_.first_update;
  info_.updates = terms_.updates;
  info_.seed = terms_.seed;
  info_.rotate_shards = terms_.rotate_shards;
  info_.reset_momentum = terms_.reset_momentum;
  info_.leg = leg_of(JobId{terms_.job});
  info_.lr_factor = terms_.lr_factor;
  info_.outer_step = static_cast<std::int32_t>(terms_.outer.kind);
  info_.payload = payload_at(info_.first_update);
  begin_update(info_.first_update);
  in_window_ = lives_in_window();
}

void SessionCore::enter(Phase phase) {
  phase_ = phase;
  entered_ = now();
}

void SessionCore::leave(bool counted) {
  phase_ = Computing{};
  if (counted) window_.progress().wait_ns.fetch_add((now() - entered_).count(), std::memory_order_relaxed);
}

/// What it waits for is not there.
SessionCore::Outcome SessionCore::wait() {
  if (!is_over() && !has_next_leg()) return std::nullopt;
  leave();
  return PACELINE_OVER;
}

void SessionCore::plan(std::int64_t first_update, std::int64_t updates, std::int64_t evaluate_every) {
  info_.first_update = first_update;
  info_.updates = updates;
  evaluate_every_ = evaluate_every;
  if (terms_.time_limit > Duration::zero()) time_is_up_ = now() + terms_.time_limit;
  begin_update(first_update);
  in_window_ = lives_in_window();
  report([&](auto report) {
    auto plan = report.initPlan();
    plan.setFirst(first_update);
    plan.setUpdates(updates);
    plan.setEvaluateEvery(evaluate_every);
    plan.setSamples(dealt_.samples);
    plan.setBatch(dealt_.batch);
    plan.setEpoch(dealt_.epoch);
    plan.setEpochEnd(dealt_.end);
    plan.setLeft(dealt_.left);
    plan.setPlace(dealt_.place);
  });
}

void SessionCore::end() { set_state(State::ended); }

// What comes next -----------------------------------------------------------------------------------------------------

SessionCore::Next SessionCore::next(paceline_lease& lease) {
  while (true) {
    if (is<AwaitsBatchScale>() && !await_scale()) return std::nullopt;
    const auto what = look(lease);
    if (what != PACELINE_BODY || !terms_.steps_by_batch() || lease_.body > 0 || !batch_is_over()) return what;
    ask_for_scale(0);  // It is over before it began: the agent goes on for it.
  }
}

SessionCore::Next SessionCore::look(paceline_lease& lease) {
  lease = lease_;
  if (is<Computing>()) {
    result_ = {};
    if (time_is_up_ && now() >= *time_is_up_) {
      time_is_up_.reset();
      stop_job("the time limit was reached");
    }
    if (!std::exchange(begun_, true)) {
      if (share_.rank == 0 && !alone_ && !terms_.returns && !terms_.goes_on) return PACELINE_CAPTURE;
      update_began_ = now();  // Alone: nothing is ever published, the agent is only told.
      needs_replica_ = terms_.returns || (share_.rank != 0 && !terms_.goes_on);
      if (terms_.goes_on) publish_start();
    }
    if (needs_replica_) ask_for_replica();
  }
  if (is<AwaitsReplica>()) {
    if (!is_over() && !replica_update_ && !has_next_leg()) return std::nullopt;
    leave(false);
    if (is_over()) return lost_ ? PACELINE_LOST : PACELINE_END;
    if (has_next_leg()) return PACELINE_NEXT_LEG;
    if (replica_) return PACELINE_RESTORE;
    (void)restored();  // From its own: the newest that can be had.
  }
  if (!await_start_seen()) return std::nullopt;
  lease = lease_;
  if (is<Computing>() && is_held() && !is_stopped()) {
    set_state(State::wait);
    enter(Held{});
  }
  if (is<Held>()) {
    if (!is_over() && is_held() && !must_evaluate() && !capture_wanted()) return std::nullopt;
    leave(false);  // Others evaluate, or the job ends: no part of training.
    if (!is_over() && is_held()) return must_evaluate() ? begin_evaluation(lease) : begin_capture();
    span("hold", entered_, now());
    update_began_ = now();
  }
  return next_of_its_own(lease);
}

/// Nothing keeps it.
paceline_next SessionCore::next_of_its_own(paceline_lease& lease) {
  if (!is_stopped() && must_evaluate()) return begin_evaluation(lease);
  if (lost_) return PACELINE_LOST;
  if (has_next_leg() && !is_stopped()) return PACELINE_NEXT_LEG;
  if (is_stopped() || lease_.update > last()) {
    set_state(State::ended);
    return PACELINE_END;
  }
  if (capture_wanted()) return begin_capture();
  if (may_save()) {
    saves_seen_ = control_.words().save_wanted.load(std::memory_order_acquire);
    update_began_ = now();
    return PACELINE_SAVE;
  }
  if (must_leave()) {
    set_state(State::ended);
    if (!std::exchange(has_left_, true)) report([](auto report) { report.setLeft(); });
    return PACELINE_END;
  }
  set_state(State::compute);
  in_window_ = lives_in_window();
  if (const auto start = window_.writing(); stands_apart() && start) numbers_.begin_step_apart(window_.data(*start));
  return PACELINE_BODY;
}

bool SessionCore::is_held() const {
  const std::int64_t hold = control_.words().hold.load(std::memory_order_acquire);
  return hold >= 0 && lease_.update > hold;
}

std::int64_t SessionCore::last() const {
  return std::min(info_.updates - 1, control_.words().last.load(std::memory_order_acquire));
}

void SessionCore::stop_job(const char* reason) {
  stop_asked_ = true;
  tell_arrivals();  // The wish is for what follows.
  report([&](auto report) { report.setStop(reason); });
}

// Evaluations and checkpoints -----------------------------------------------------------------------------------------

bool SessionCore::must_evaluate() const {
  const std::int64_t version = control_.words().evaluate.load(std::memory_order_acquire);
  return version >= 0 && (terms_.own_pace || version < lease_.update) && evaluated_ < version;
}

paceline_next SessionCore::begin_evaluation(paceline_lease& lease) {
  set_state(State::evaluate);
  update_began_ = now();
  evaluating_ = control_.words().evaluate.load(std::memory_order_acquire);
  lease.update = evaluating_ + 1;
  return PACELINE_EVALUATE;
}

void SessionCore::evaluated(double value) {
  span("evaluate", update_began_, now());
  update_began_ = now();  // Not a part of the next update's computing.
  evaluated_ = std::exchange(evaluating_, -1);
  report_at(evaluated_, [&](auto report) { report.setEvaluated(value); });
}

/// Between updates, and where models drift apart between two averagings after one of them.
bool SessionCore::is_at_boundary() const { return lease_.body == 0 && (is_average_ || alone_ || terms_.own_pace); }

bool SessionCore::may_save() const {
  return control_.words().save_wanted.load(std::memory_order_acquire) != saves_seen_ && is_at_boundary();
}

/// What it has done is in what the others have: those of its group alone may leave, too.
bool SessionCore::must_leave() const {
  return control_.words().leave.load(std::memory_order_acquire) != 0 && is_at_boundary() && is_of_all_;
}

void SessionCore::saved() {
  span("hold", update_began_, now());
  update_began_ = now();  // Not a part of the next update's computing.
  report([](auto report) { report.setSaved(); });
}

// Models --------------------------------------------------------------------------------------------------------------

/// The averaged model that is evaluated, where it is not the worker's own.
std::optional<memory::Buffer> SessionCore::snapshot() const {
  const auto latest = terms_.own_pace ? window_.latest() : std::nullopt;  // Else what is there is a sum.
  return evaluating_ >= 0 && latest && window_.tag(*latest).iteration == evaluating_ ? latest : std::nullopt;
}

paceline_span SessionCore::model() const {
  auto buffer = snapshot();
  if (!buffer) buffer = window_.writing();
  if (!buffer || !in_window_) return {};
  return {window_.data(*buffer).data(), window_.layout().elements};
}

/// Where rounds may fire without a worker, its window answers from the first model on.
bool SessionCore::placed() {
  if (is<Computing>() && begun_ && !needs_replica_ && terms_.publishes_every && !window_.published()) publish_start();
  return await_start_seen();
}

paceline_span SessionCore::outer() const {
  const auto state = numbers_.outer_state();
  return {const_cast<std::byte*>(state.data()), static_cast<std::uint64_t>(state.size())};
}

/// Windows of models answer from the first moment on: the start is published as iteration -1 (WAGMA's send buffer
/// begins as W_0).
void SessionCore::publish_start() {
  update_began_ = now();
  const auto first = window_.writing();
  if (first) numbers_.begin_first_block(window_.data(*first));
  if (!lives_in_window() || window_.layout().buffers < 2 || !first) return;
  window_.tag(*first) = {};
  window_.tag(*first).iteration = lease_.update - 1;
  if (!window_.publish(true)) return;
  const auto source = window_.data(*first);
  std::memcpy(window_.data(*window_.writing()).data(), source.data(), source.size());
  if (!terms_.shows_start || (terms_.returns && !terms_.own_pace)) return;
  arrivals_.push_back({lease_.update - 1, {}, 0});
  tell_arrivals();
  enter(AwaitsStartSeen{});
}

bool SessionCore::await_start_seen() {
  if (!is<AwaitsStartSeen>()) return true;
  const auto verdict = new_verdict();
  if (!verdict && !is_over() && !has_next_leg()) return false;
  if (verdict) {
    next_round_ = std::max(next_round_, verdict->next_round);
    if (verdict->next > lease_.update) begin_update(verdict->next);
    needs_replica_ = verdict->end && !verdict->fresh;  // It came back too late for the job's end.
  }
  leave(false);
  update_began_ = now();
  return true;
}

// Replicas ------------------------------------------------------------------------------------------------------------

bool SessionCore::capture_wanted() const {
  if (control_.words().capture_wanted.load(std::memory_order_seq_cst) == captures_seen_) return false;
  const auto from = control_.words().capture_from.load(std::memory_order_relaxed);
  return lease_.update > from || (lease_.update == from && lease_.body == 0);
}

paceline_next SessionCore::begin_capture() {
  captures_seen_ = control_.words().capture_wanted.load(std::memory_order_acquire);
  return PACELINE_CAPTURE;
}

bool SessionCore::capture(store::SharedObject::Pieces state) {
  if (is<Computing>()) {
    outbox_.replica(lease_.update, state);
    // Rank 0's first capture is everybody's start.
    if (lease_.update == info_.first_update && lease_.body == 0 && !window_.published()) publish_start();
  }
  return await_start_seen();
}

void SessionCore::ask_for_replica() {
  set_state(State::restore);
  replica_update_.reset();
  enter(AwaitsReplica{});
  wire::Message message;
  auto body = message.root().initReplicaWanted();
  body.setJob(share_.job);
  body.setRank(share_.rank);
  body.setUpdate(lease_.update);
  body.setRequest(outbox_.wants_replica());
  outbox_.message(message);
}

void SessionCore::on_replica(std::int64_t update, store::SharedObject state) {
  replica_update_ = update;
  replica_.emplace(std::move(state));
}

void SessionCore::on_go_on(std::int64_t update) { replica_update_ = update; }

paceline_span SessionCore::replica() const {
  if (!replica_) return {};
  return {const_cast<std::byte*>(replica_->data().data()), replica_->data().size()};
}

bool SessionCore::restored() {
  if (is<Computing>()) {
    replica_.reset();
    needs_replica_ = false;
    const bool at_start = !window_.published();
    begin_update(*replica_update_);
    next_round_ = std::max(next_round_, *replica_update_);
    if (at_start) publish_start();
  }
  return await_start_seen();
}

// What the agent is told ----------------------------------------------------------------------------------------------

void SessionCore::arrive() {
  const Duration took = now() - update_began_;
  window_.progress().compute_ns.fetch_add(took.count(), std::memory_order_relaxed);
  const bool cut_short = terms_.steps_by_batch() && terms_.abandons && lease_.body < info_.bodies;
  span(cut_short ? "abandoned" : "compute", update_began_, update_began_ + took);
  arrivals_.push_back({lease_.update, took, losses_.empty() ? 0 : losses_.back(), since_, through()});
  constexpr Duration kTellAlone = std::chrono::milliseconds(20);  // Nobody waits for it.
  if (alone_ && !is_due_alone() && update_began_ + took - told_ < kTellAlone) return;
  told_ = update_began_ + took;
  tell_arrivals();
}

void SessionCore::tell_arrivals() {
  for (const auto& arrival : std::exchange(arrivals_, {})) {
    wire::Message message;
    auto body = message.root().initArrive();
    body.setJob(share_.job);
    body.setRank(share_.rank);
    body.setIteration(arrival.update);
    body.setComputeNs(arrival.took.count());
    body.setLoss(arrival.loss);
    body.setSince(arrival.since);
    body.setThrough(arrival.through);
    outbox_.message(message);
  }
}

void SessionCore::report(const std::function<void(wire::Report::Builder)>& write) {
  report_at(lease_.update - 1, write);
}

void SessionCore::report_at(std::int64_t update, const std::function<void(wire::Report::Builder)>& write) {
  wire::Message message;
  auto body = message.root().initReport();
  body.setJob(share_.job);
  body.setRank(share_.rank);
  body.setUpdate(update);
  write(body);
  outbox_.message(message);
}

void SessionCore::set_state(State state) {
  window_.progress().state.store(static_cast<std::uint32_t>(state), std::memory_order_relaxed);
}

}  // namespace paceline::session
