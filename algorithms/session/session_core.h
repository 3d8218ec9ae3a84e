#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "algorithms/session/job_terms.h"
#include "algorithms/session/session.h"
#include "algorithms/session/session_state.h"
#include "algorithms/session/step_numbers.h"
#include "runtime/base/clock.h"
#include "runtime/memory/control.h"
#include "runtime/memory/window.h"
#include "runtime/store/shared_object.h"
#include "runtime/wire/codec.h"

namespace paceline::session {

/// The worker's side of a strategy, without I/O: publishes, waits for the agent's word, flips. Knows no strategy by
/// name: whether an iteration is reported, waited for or abandoned is the agent's answer (its round engine's).
///
/// What may have to wait is polled: while there is no value (or false) it is called again, with the same arguments,
/// when the agent may have said something (its control page rang, on_replica, on_go_on). Nothing else is called in
/// between. Owned by one thread.
///
///   computing -> awaits its turn -> published: awaits a verdict, an average, what its batch weighs -> computing
///             -> held, awaits a replica (next), awaits that its start was seen -> computing
class SessionCore {
 public:
  /// How it reaches its agent, and who reads the run's trace.
  struct Outbox {
    std::function<void(wire::Message&)> message;
    std::function<std::uint64_t()> wants_replica;  ///< The number that the answer is to have.
    /// The worker's whole state at an update.
    std::function<void(std::int64_t update, store::SharedObject::Pieces state)> replica;
    std::function<void(const char* what, Instant begin, Instant end, std::int64_t update)> span;
  };
  struct Share {
    std::uint64_t job = 0;
    std::int32_t rank = 0;
    std::uint64_t outer_elements = 0;  ///< How many an outer step is made with.
  };
  using Next = std::optional<paceline_next>;
  using Outcome = std::optional<paceline_outcome>;

  SessionCore(Share share, JobTerms terms, memory::Window window, memory::ControlPage control, Outbox outbox,
              const Clock& clock);

  // What a worker does; session.h says what each means
  // -----------------------------------------------------------------

  const paceline_session_info& info() const { return info_; }
  struct Dealt {
    std::int64_t samples = 0, batch = 1, epoch = 0, end = 0, left = 0;
    std::string place{};
  };
  void deals(const Dealt& dealt) { dealt_ = dealt; }
  const std::string& place() const { return terms_.place; }
  void plan(std::int64_t first_update, std::int64_t updates, std::int64_t evaluate_every);
  Next next(paceline_lease& lease);
  Outcome step_gradients(std::span<const paceline_span> pieces, const paceline_stats& stats);
  Outcome step_model(const paceline_stats& stats);
  bool placed();
  bool capture(store::SharedObject::Pieces state);
  bool restored();
  paceline_span model() const;
  std::uint64_t averagings() const { return averagings_; }
  std::int64_t members() const { return members_; }
  paceline_span result() const { return result_; }
  paceline_span replica() const;
  void evaluated(double value);
  void saved();
  paceline_span outer() const;
  bool set_outer(std::span<const std::byte> state) { return numbers_.set_outer_state(state); }
  void stop_job(const char* reason);
  /// `write` says what it is that the agent is told, after the update that was done last.
  void report(const std::function<void(wire::Report::Builder)>& write);
  void end();  ///< The worker leaves.

  // What its agent does
  // ------------------------------------------------------------------------------------------------

  /// A donor's state, which it had at `update`.
  void on_replica(std::int64_t update, store::SharedObject state);
  /// There is no replica to be had: it goes on with what it has.
  void on_go_on(std::int64_t update);
  /// The agent is gone: whatever waits ends.
  void on_agent_gone() { lost_ = true; }

  /// It waits for on_replica or on_go_on; else for the bell.
  bool awaits_replica() const { return is<AwaitsReplica>(); }
  bool is_lost() const { return lost_; }
  /// It was asked to leave, and has.
  bool has_left() const { return has_left_; }
  /// The mini-batch under way is worth nothing any more.
  bool is_cut_short() const { return is_stopped() || (terms_.abandons && is_abandoned()); }
  bool is_stopped() const { return control_.words().stop.load(std::memory_order_acquire) != 0; }
  const memory::ControlPage& control() const { return control_; }

 private:
  struct Computing {};
  struct AwaitsTurn {};      ///< A replay: to publish.
  struct AwaitsNextTurn {};  ///< A replay: to begin the next mini-batch of an update that may end early.
  struct AwaitsVerdict {
    memory::Buffer published;
  };
  struct AwaitsAverage {};     ///< Of an update that may end early.
  struct AwaitsBatchScale {};  ///< What its own batch weighs.
  struct AwaitsAgent {};       ///< Alone, where the job may end or be evaluated.
  struct AwaitsStartSeen {};   ///< The agent looks at its first model.
  struct AwaitsReplica {};
  struct Held {};  ///< Others evaluate, or the job ends.
  using Phase = std::variant<Computing, AwaitsTurn, AwaitsNextTurn, AwaitsVerdict, AwaitsAverage, AwaitsBatchScale,
                             AwaitsAgent, AwaitsStartSeen, AwaitsReplica, Held>;
  template <class P>
  bool is() const {
    return std::holds_alternative<P>(phase_);
  }
  void enter(Phase phase);
  void leave(bool counted = true);
  Outcome wait();
  bool is_over() const { return lost_ || is_stopped(); }
  /// The job is over for this window and page: it goes on in its next leg.
  bool has_next_leg() const { return control_.words().next_leg.load(std::memory_order_acquire) != 0; }

  // next()
  Next look(paceline_lease& lease);
  paceline_next next_of_its_own(paceline_lease& lease);
  void ask_for_replica();
  bool is_held() const;
  bool must_evaluate() const;
  paceline_next begin_evaluation(paceline_lease& lease);
  paceline_next begin_capture();
  bool capture_wanted() const;
  bool is_at_boundary() const;
  bool may_save() const;
  bool must_leave() const;
  std::optional<memory::Buffer> snapshot() const;
  void publish_start();
  bool await_start_seen();

  // Steps
  paceline_payload payload_at(std::int64_t update) const;
  bool lives_in_window() const { return lease_.payload == PACELINE_MODELS || terms_.steps_by_batch(); }
  bool stands_apart() const { return terms_.steps_apart && !alone_; }
  void begin_update(std::int64_t update);
  std::int64_t through() const;
  Outcome begin_step_model(const paceline_stats& stats);
  void publish_model();
  Outcome await_verdict();
  Outcome await_agent();
  Outcome await_average();
  Outcome add_to_batch(std::span<const paceline_span> pieces, const paceline_stats& stats);
  void ask_for_scale(std::int32_t begun);
  Outcome await_scale();
  Outcome add_gradients(std::span<const paceline_span> pieces, const paceline_stats& stats);
  void leave_unfinished();
  paceline_outcome apply_own(memory::Buffer sum);
  bool batch_is_over() const;
  void add_loss(const paceline_stats& stats);
  void fill_tag(memory::BufferTag& tag, const paceline_stats& stats);
  void take_members(memory::Buffer averaged);
  void set_result(std::byte* data) { result_ = {data, window_.layout().elements}; }

  // What the agent is told, and has said
  void arrive();
  void tell_arrivals();
  void report_at(std::int64_t update, const std::function<void(wire::Report::Builder)>& write);
  bool is_due_alone() const;
  std::int64_t publication() const;
  std::int64_t may_publish() const { return control_.words().may_publish.load(std::memory_order_acquire); }
  bool has_its_turn() const { return publication() <= may_publish() || (terms_.abandons && is_abandoned()); }
  bool is_abandoned() const { return control_.words().abandoned.load(std::memory_order_acquire) >= lease_.update; }
  std::int64_t executed() const { return control_.words().executed.load(std::memory_order_acquire); }
  std::int64_t last() const;
  std::optional<memory::WorkerVerdict> new_verdict();
  void set_state(State state);
  void span(const char* what, Instant begin, Instant end) { outbox_.span(what, begin, end, lease_.update); }
  Instant now() const { return clock_.now(); }

  const Share share_;
  const JobTerms terms_;
  const bool alone_;  ///< One worker: there is nobody to average with.
  memory::Window window_;
  memory::ControlPage control_;
  const Outbox outbox_;
  const Clock& clock_;
  StepNumbers numbers_;
  paceline_session_info info_{};

  Phase phase_;
  Instant entered_{};  ///< The phase.
  bool begun_ = false;
  bool lost_ = false;
  bool needs_replica_ = false;
  bool stop_asked_ = false;
  bool has_left_ = false;
  std::optional<Instant> time_is_up_;  ///< Once the job has begun: when this worker asks for its end.

  paceline_lease lease_{};
  paceline_span result_{};
  Instant update_began_{};
  bool in_window_ = false;  ///< The parameters live in the window, not in the caller's memory.
  std::int64_t next_round_ = 0;
  bool lr_may_decay_ = true;
  std::uint64_t averagings_ = 0;
  bool is_average_ = true;    ///< The model is what the last averaging gave: there was no local step since.
  bool is_of_all_ = true;     ///< That was one of all workers.
  std::int64_t members_ = 0;  ///< Of the last one of all that it took; 0: none yet.
  std::deque<double> losses_;
  std::int64_t samples_ = 0;  ///< That the next publication brings.
  std::int64_t since_ = 0;    ///< First mini-batch, of the whole job, that its agent has not been told of.

  Dealt dealt_;
  std::int64_t evaluate_every_ = 0;
  std::int64_t evaluated_ = -1;
  std::int64_t evaluating_ = -1;  ///< -1: no evaluation runs.
  std::optional<store::SharedObject> replica_;
  std::optional<std::int64_t> replica_update_;  ///< The answer is there.
  std::uint64_t verdicts_seen_ = 0;
  std::uint32_t captures_seen_ = 0;
  std::uint32_t saves_seen_ = 0;

  struct Arrival {
    std::int64_t update;
    Duration took;
    double loss;
    std::int64_t since = 0, through = 0;  ///< Mini-batches.
  };
  std::vector<Arrival> arrivals_;  ///< Not told to the agent yet.
  Instant told_{};
};

}  // namespace paceline::session
