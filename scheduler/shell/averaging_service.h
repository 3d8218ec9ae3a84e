#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/observe/trace.h"
#include "runtime/wire/codec.h"
#include "scheduler/record/chronicle.h"
#include "scheduler/rounds/round_plan.h"
#include "scheduler/shell/averagings.h"
#include "scheduler/shell/training_clock.h"
#include "scheduler/shell/worker_windows.h"
#include "scheduler/views/view.h"
#include "scheduler/views/view_change.h"

namespace paceline::scheduler {

/// What a training job needs of the shell of a strategy's core on one agent, and what all these shells are made of: who
/// is in the job (View), its workers' windows (WorkerWindows), averagings as tasks (Averagings), what the core is told,
/// and its record (Chronicle), the training clock. Owned by the agent's control loop, and while one of its averagings
/// runs by that, too: whoever lets go of a job lets go of no memory that is being reduced.
class AveragingService : public std::enable_shared_from_this<AveragingService>, private Chronicle::Core {
 public:
  using SendToNode = std::function<void(NodeId, wire::Message&, std::vector<std::vector<std::byte>>)>;

  struct JobOptions {
    JobId job;
    NodeId self;
    std::vector<NodeId> node_of;      ///< Rank -> node; size P.
    Version first{0};                 ///< First iteration (resume).
    Version last;                     ///< T-1.
    bool evaluates = false;           ///< At the end, and
    std::int64_t evaluate_every = 0;  ///< so many updates apart; 0: only at the end.
    std::string trace_path;           ///< Empty: no trace.
    std::string record_path;          ///< Where the decisions are written to; empty: nowhere.
    std::string record_head;
    /// How long others wait even for a worker that gives signs of life; nullopt: until it arrives.
    std::optional<Duration> wait_limit;
    std::optional<std::vector<Decision>> replay;  ///< A recorded run's: this one decides the same.
    const Clock* clock = &machine_clock();
  };

  /// What the job's owner must know about.
  struct Executed {
    Version version;
    bool sync;
    bool over;  ///< The job's last version. Its workers are held, as for an evaluation, until `release`.
    bool evaluate;
    std::optional<Rank> evaluator;
    RoundSums sums;
  };
  struct Left {
    Rank rank;
    Version version;
    Duration silent;        ///< Since its last sign of life.
    Duration waited;        ///< For it.
    bool replayed = false;  ///< It was not silent: it left here in the run that is replayed.
  };
  struct Failed {
    std::string text;
  };
  using Event = std::variant<Executed, Left, Failed>;

  struct Counters {
    std::int64_t group_averages = 0;
    std::int64_t global_averages = 0;
    std::int64_t skipped = 0;
    std::int64_t late_merges = 0;
    std::int64_t abandoned_bodies = 0;
    /// Contributions by how many versions late they were; the last: as many or more.
    std::array<std::int64_t, 17> staleness{};
  };

  /// Who is waited for at the oldest open version.
  struct Waiting {
    Version version;
    std::vector<Rank> missing;
    Instant since;
  };

  virtual ~AveragingService();
  AveragingService(const AveragingService&) = delete;
  AveragingService& operator=(const AveragingService&) = delete;

  /// A local worker opened its share. `invalid` if its size differs from the others'.
  Result<void> join(Rank rank, memory::Window window, memory::ControlPage control);
  memory::Window* window(Rank rank);
  memory::ControlPage* control(Rank rank);

  /// A local worker has published iteration t and waits for its verdict; `compute`: what it took, waiting excluded.
  virtual void on_arrival(Rank rank, Version t, Duration compute, Instant now) = 0;
  /// A local worker's batch of update t is over; `bodies` of its mini-batches, which took `each`, count. It waits for
  /// its verdict.
  virtual void on_batch(Rank, Version /*t*/, std::int32_t /*bodies*/, Duration /*each*/, Instant) {}
  /// A message of the same job's service on another agent, which is not lost.
  void on_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk, Instant now);
  /// A local worker has given a sign of life: its silence begins anew.
  virtual void on_alive(Rank rank, Instant now) = 0;
  /// A local worker's process has ended.
  virtual void on_gone(Rank rank, Instant now) = 0;
  /// Another agent is lost, with its workers. Those that are left agree on what it has given, then they go on.
  void on_node_gone(NodeId node, Instant now);
  /// An averaging that was submitted as `id` is done; false: it is not ours.
  bool on_reduced(std::uint64_t id, Instant now) { return averagings_.on_reduced(id, now); }
  /// The evaluation at v is over: everybody may go on who was held for it.
  virtual void release(Version v);
  /// Whether all stand still at the version that is evaluated (so that the job can end there).
  virtual bool evaluations_hold() const { return true; }
  /// The training clock starts (again) at zero; evaluations do not count.
  void start_clock(Instant now) { clock_.start(now); }
  Duration clock(Instant now) const { return clock_.at(now); }
  /// All local workers end at their next look; the record is complete, if the job has come to its end.
  void stop();
  /// Nothing follows from an averaging that still runs, the node's graph is left, files are complete: what is left is
  /// memory, which any thread may give back. Called before the owner lets go.
  void end_work();
  /// Ends the job on all nodes at one version, as soon as the strategy can.
  virtual void stop_soon(Instant now) = 0;
  /// The job's last version is v, at which everybody is held.
  void end_at(Version v);
  void tick(Instant now);
  std::optional<Instant> next_deadline() const;

  Version done() const override = 0;
  virtual Version last() const = 0;
  virtual std::int64_t period() const { return 1; }
  /// Running median of the last 20 steps of all local workers, waiting excluded; zero before the first.
  virtual Duration median_step() const = 0;
  virtual std::optional<Waiting> waiting() const { return {}; }

  std::vector<Event> take_events();
  const Counters& counters() const { return counters_; }
  /// A figure of this node in the trace, as it is from now on.
  void count(const char* name, double value, Instant now);

 protected:
  using Member = WorkerWindows::Member;
  using Averaging = Averagings::Averaging;

  AveragingService(JobOptions options, TaskGraph& graph, collective::Averager& averager, SendToNode send);

  /// A message of another agent that is not lost.
  virtual void on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                               Instant now) = 0;
  /// Sends `to` what is held here of a lost agent and `to` may lack: what both can have used has to be the same.
  virtual void pass_on(NodeId /*lost*/, NodeId /*to*/) {}
  /// Tells the core and carries out its actions.
  virtual void step(const Decision&) {}
  /// Looks at the core's deadlines, which a replay does not do: to be recorded if one has passed.
  virtual void look(Instant) {}
  virtual std::optional<Instant> core_deadline() const { return {}; }
  /// The core's last version is v now.
  virtual void step_end(Version) {}
  bool go_on() override { return true; }
  bool needs_nothing(const Decision&) const override { return false; }
  /// A replay: whether workers may join before their turn.
  virtual bool joins_early() const { return false; }

  const JobOptions& job() const { return job_; }
  Instant clock_now() const { return job_.clock->now(); }
  void send(NodeId to, wire::Message& message, std::vector<std::vector<std::byte>> bulk = {});
  /// As WorkerWindows::begin_result; if there is none, the job fails.
  std::optional<memory::Buffer> begin_result(Rank rank, Member& member, Version v);
  /// Whether what another agent sent can be a model of this job; else the job fails. `what`: "a model".
  bool has_right_size(NodeId from, const char* what, std::size_t size) {
    return has_right_size(from, what, size, windows_.bytes());
  }
  bool has_right_size(NodeId from, const char* what, std::size_t size, std::size_t expected);
  /// Whether a weight that another agent sent can be one: a number of at least 0; else the job fails.
  bool is_weight(NodeId from, double weight);
  bool evaluation_due(Version v) const;
  void note_evaluated(Version v) { evaluated_last_ = v; }
  /// Nobody starts an iteration > v until `release`; the training clock stands still.
  void hold(Version v);
  void tell(Event event) { events_.push_back(std::move(event)); }
  void fail_job(std::string text) { tell(Failed{std::move(text)}); }
  /// What the averaging that is being finished has taken.
  void trace(const char* category, Version v);

  View view_;
  WorkerWindows windows_;
  Chronicle chronicle_;
  Averagings averagings_;
  Counters counters_;

 private:
  void on_told(const Decision& decision) final;
  bool finish_averaging(Instant now) final { return averagings_.finish_what_waited(now); }
  void limit(Rank rank) final;
  void on_lost_way(std::string text) final { fail_job(std::move(text)); }
  bool is_over() const final { return done() >= last(); }
  void act(const ViewChange::Actions& actions, Instant now);
  void add_member(Rank rank, Member member);

  JobOptions job_;
  ViewChange view_change_;
  SendToNode send_;
  TrainingClock clock_;
  Version evaluated_last_;
  Version released_{-1};  ///< The last one that was.
  std::vector<Event> events_;
  std::optional<observe::TraceWriter> trace_;
  std::map<Rank, Member> joining_;  ///< A replay: those whose turn it is not yet.
};

void add(RoundSums& to, const RoundSums& from);

}  // namespace paceline::scheduler
