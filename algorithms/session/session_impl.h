#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/payloads.h"
#include "algorithms/session/agent_link.h"
#include "algorithms/session/session.h"
#include "algorithms/strategy.h"
#include "runtime/base/instant.h"
#include "runtime/base/steady_now.h"
#include "runtime/memory/control.h"
#include "runtime/memory/shared_object.h"
#include "runtime/memory/window.h"
#include "runtime/observe/trace.h"

namespace paceline::session {

/// What a worker is doing, as its agent and `status` see it (Window::Progress::state).
enum class State : std::uint32_t { compute = 0, wait = 1, averaging = 2, evaluate = 3, restore = 4, ended = 5 };

/// The worker's side of a strategy: publishes, waits for the agent's word, flips. Knows no strategy by name: whether an
/// iteration is reported, waited for or abandoned is the agent's answer (its round engine's). Owned by the compute
/// thread; blocks on the agent's control page only, never without noticing that the agent has gone.
class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const paceline_session_config& config);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const paceline_session_info& info() const { return info_; }
  void plan(std::int64_t first_update, std::int64_t updates, std::int64_t evaluate_every);
  paceline_next next(paceline_lease& lease);
  paceline_span model() const;
  std::uint64_t averagings() const { return averagings_; }
  void placed();
  paceline_span result() const { return result_; }
  paceline_outcome step_gradients(std::span<const paceline_span> pieces, const paceline_stats& stats);
  paceline_outcome step_model(const paceline_stats& stats);
  void evaluated(double value);
  void saved();
  paceline_span outer() const;
  bool set_outer(std::span<const std::byte> state);
  void end_with(std::span<const paceline_span> pieces, std::size_t width);
  void capture(std::span<const std::byte> replica);
  paceline_span replica() const;
  void restored();
  double sleep(double seconds);
  void stop_job(const char* reason);
  void report(const char* kind, const char* name, double value, const char* text);
  void report_at(std::int64_t update, const char* kind, const char* name, double value, const char* text);
  Result<void*> object(const std::string& key, std::uint64_t size, bool& fill);
  void seal_object(const std::string& key);

 private:
  /// How often a waiting worker looks whether its agent still lives.
  static constexpr Duration kLook = std::chrono::milliseconds(200);

  explicit Session(AgentLink link) : link_(std::move(link)) {}

  Result<void> configure(Answer answer, const paceline_session_config& config);
  /// Blocks until `done()`; false when the job was stopped or the agent is gone.
  template <class Done>
  bool wait_until(const Done& done, bool counted = true);
  paceline_payload payload_at(std::int64_t update) const;
  bool lives_in_window() const { return lease_.payload == PACELINE_MODELS || steps_by_batch_; }
  paceline_next look(paceline_lease& lease);
  void publish_start();
  Result<void> fetch_replica();
  void begin_update(std::int64_t update);
  std::int64_t publication() const;
  std::int64_t may_publish() const;
  bool wait_for_turn();
  void start_next_block(double learning_rate);
  void add_loss(const paceline_stats& stats);
  void fill_tag(memory::BufferTag& tag, const paceline_stats& stats);
  bool add_pieces(std::span<const paceline_span> pieces, std::byte* into, const std::byte* base);
  void post(wire::Message& message);
  void arrive();
  void tell_arrivals();
  void scale(std::byte* data, double factor);
  bool has_outer_step() const { return outer_.kind != algorithms::Outer::Kind::none; }
  bool due_alone() const;
  paceline_outcome go_on_alone();
  paceline_outcome apply_own(memory::Buffer sum);
  bool batch_is_over() const;
  paceline_outcome add_to_batch(std::span<const paceline_span> pieces, const paceline_stats& stats);
  paceline_outcome end_batch(std::int32_t begun);
  void take_step_apart(memory::Buffer model);
  void put_step_together(bool fresh);
  bool abandoned() const;
  bool stopped() const;
  std::int64_t last() const;
  bool capture_wanted() const;
  paceline_next take_capture();
  bool may_save() const;
  paceline_next take_evaluation(paceline_lease& lease);
  std::optional<memory::Buffer> snapshot() const;
  std::int64_t executed() const;
  paceline_outcome take_abandoned_result();
  paceline_outcome leave_unfinished();
  paceline_outcome take_verdict(memory::Buffer published);
  void set_state(State state);
  void span(const char* category, Instant begin, Instant end);

  AgentLink link_;
  std::optional<memory::Window> window_;
  std::optional<memory::ControlPage> control_;
  std::optional<observe::TraceWriter> trace_;
  std::map<std::string, memory::SharedObject> objects_;
  std::optional<memory::SharedObject> replica_;
  paceline_session_info info_{};
  std::uint64_t job_ = 0;
  std::int32_t rank_ = 0;
  std::int32_t node_ = 0;
  bool publishes_every_ = false;    ///< Every iteration is reported, also those without a round.
  bool abandons_ = false;           ///< Each mini-batch is published; the update may end early.
  bool own_pace_ = false;           ///< Evaluations are of models that are nobody's own.
  bool shows_start_ = false;        ///< The agent wants to see the start before the first iteration.
  bool finishes_ = false;           ///< When another ends the update, the mini-batch under way is the last one.
  bool steps_apart_ = false;        ///< Models of the step's start are averaged (algorithms/step_apart.h).
  bool steps_by_batch_ = false;     ///< It steps with a batch of its own, which others may end, then models are mixed.
  bool accumulates_ = false;        ///< A gradient that missed its round is added to the next one.
  bool weighs_by_samples_ = false;  ///< A publication brings all since the worker last took an average.
  bool alone_ = false;              ///< One worker: there is nobody to average with.
  algorithms::Payloads payloads_;
  bool in_window_ = false;  ///< The parameters live in the window, not in the caller's memory.
  std::size_t loss_window_ = 1;
  algorithms::Outer outer_;                ///< What follows an average of all (algorithms/outer.h).
  std::uint64_t outer_elements_ = 0;       ///< How many it is made with.
  std::vector<std::byte> outer_state_;     ///< Where the block began, then the momentum.
  std::vector<std::byte> start_, change_;  ///< Of the local step, where it stands apart.
  std::vector<std::byte> batch_;           ///< The sum of the gradients of lease_.body mini-batches.

  paceline_lease lease_{};
  paceline_span result_{};
  std::int64_t next_round_ = 0;
  bool lr_may_decay_ = true;
  std::int64_t evaluate_every_ = 0;
  struct Arrival {
    std::int64_t update;
    Duration took;
    double loss;
  };
  std::vector<Arrival> arrivals_;  ///< Not told to the agent yet.
  Instant told_{};
  bool started_ = false;
  bool needs_replica_ = false;
  std::int64_t replica_update_ = 0;
  bool stop_asked_ = false;
  Duration time_limit_{};              ///< Of the job; 0: none.
  std::optional<Instant> time_is_up_;  ///< Once it has begun: when this worker asks for its end.
  bool lost_ = false;
  std::int64_t evaluated_ = -1;
  std::int64_t evaluating_ = -1;  ///< -1: no evaluation runs.
  std::uint64_t verdicts_seen_ = 0;
  std::uint32_t captures_seen_ = 0;
  std::uint32_t saves_seen_ = 0;
  bool is_average_ = true;  ///< The model is what the last averaging gave: there was no local step since.
  std::deque<double> losses_;
  std::int64_t samples_ = 0;  ///< That the next publication brings.
  std::uint64_t averagings_ = 0;
  Instant update_began_{};
};

template <class Done>
bool Session::wait_until(const Done& done, bool counted) {
  const Instant begin = steady_now();
  bool reached = false;
  while (true) {
    const std::uint32_t bell = control_->bell();
    if ((reached = done()) || stopped()) break;
    if (!control_->wait(bell, kLook) && !link_.agent_is_there()) {
      lost_ = true;
      break;
    }
  }
  if (counted) window_->progress().wait_ns.fetch_add((steady_now() - begin).count(), std::memory_order_relaxed);
  return reached;
}

}  // namespace paceline::session
