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
#include "runtime/collective/averager.h"
#include "runtime/memory/control.h"
#include "runtime/memory/window.h"
#include "runtime/observe/trace.h"
#include "runtime/wire/codec.h"
#include "scheduler/record/record_file.h"
#include "scheduler/record/replay.h"
#include "scheduler/rounds/round_plan.h"
#include "scheduler/task_graph.h"
#include "scheduler/views/view_change.h"

namespace paceline::scheduler {

/// What a training job needs of the shell of a strategy's core on one agent, and what all these shells have in common:
/// the workers' windows and control pages, the training clock, averagings as tasks that run one after the other on the
/// agent's averaging threads, and the record of what the core was told (record/decision.h) with its replay. Windows are
/// not touched elsewhere. Owned by the agent's control loop, and while one of its averagings runs by that, too: whoever
/// lets go of a job lets go of no memory that is being reduced.
class AveragingService : public std::enable_shared_from_this<AveragingService> {
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
  bool on_reduced(std::uint64_t id, Instant now);
  /// The evaluation at v is over: everybody may go on who was held for it.
  virtual void release(Version v);
  /// Whether all stand still at the version that is evaluated (so that the job can end there).
  virtual bool evaluations_hold() const { return true; }
  /// The training clock starts (again) at zero; evaluations do not count.
  void start_clock(Instant now);
  Duration clock(Instant now) const;
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

  virtual Version done() const = 0;
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
  struct Member {
    memory::Window window;
    memory::ControlPage control;
    bool gone = false;
  };
  /// An averaging: `prepare` says what to reduce when its turn has come (nothing: no outputs), `finish` what follows.
  struct Averaging {
    std::function<collective::Reduction()> prepare;
    std::function<void(Instant)> finish;
    std::optional<Decision> told = {};  ///< What `finish` will decide(): in a replay it waits for its turn.
  };

  AveragingService(JobOptions options, TaskGraph& graph, collective::Averager& averager, SendToNode send);

  // Other agents
  // -------------------------------------------------------------------------------------------------------

  /// A message of one that is not lost.
  virtual void on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                               Instant now) = 0;
  /// Sends `to` what is held here of a lost agent and `to` may lack: what both can have used has to be the same.
  virtual void pass_on(NodeId /*lost*/, NodeId /*to*/) {}
  /// Those with workers of the job, but this one and those that it goes on without.
  std::set<NodeId> other_nodes() const;
  bool is_without(NodeId node) const { return without_.contains(node); }
  /// Its workers.
  std::vector<Rank> ranks_on(NodeId node) const;
  /// Whose it is what `from` has sent, which passes it on if `of` is not below 0. nullopt: it does not count here.
  std::optional<NodeId> giver(NodeId from, std::int32_t of) const;

  // What the core is told. A shell that tells it nothing that counts but by `hear` and `decide` is recorded, and
  // replayed; one that is not given no file. --------------------------------------------------------------------------

  /// It happened outside: a worker, a message, the job. In a replay: when its turn comes, and then with the recorded
  /// time.
  void hear(const Decision& decision, Instant now);
  /// It follows from an action of the core, that is from what was told before.
  void decide(const Decision& decision);
  /// A replay: it is not the recorded run any more.
  void lose_way(std::string text);
  /// Tells the core and carries out its actions.
  virtual void step(const Decision&) {}
  /// Looks at the core's deadlines, which a replay does not do: `record` if one has passed.
  virtual void look(Instant) {}
  void record(const Decision& decision);
  virtual std::optional<Instant> core_deadline() const { return {}; }
  /// The core's last version is v now.
  virtual void step_end(Version) {}
  /// A replay: actions that had to wait for workers are carried out; false: some still wait.
  virtual bool go_on() { return true; }
  /// A replay: whether workers may join before their turn.
  virtual bool joins_early() const { return false; }
  /// A replay: whether the core may be told at once, since it makes no difference when, or whether, this happens.
  virtual bool needs_nothing(const Decision&) const { return false; }
  bool replays() const { return replay_.has_value(); }
  const Replay& replay() const { return *replay_; }
  /// A replay: the worker's next seal will find what it found then.
  bool has_published(Rank rank);

  const JobOptions& job() const { return job_; }
  Instant clock_now() const { return job_.clock->now(); }
  bool lives_on(Rank rank, NodeId node) const;
  /// nullptr: it has not opened its share, or has gone.
  Member* living(Rank rank);
  /// Its compute task depends on nothing, and runs from the start: the worker has its lease.
  void begin_compute(Rank rank);
  void end_compute(Rank rank);
  /// Runs after the one before it and the contributors' compute tasks.
  void add_averaging(Averaging averaging, const std::vector<Rank>& contributors);
  /// What is next in the queue, and so on while they are small. Called while one finishes it does nothing: the next one
  /// follows.
  void start_averagings(Instant now);
  /// Of the averaging that is being finished.
  Instant averaging_began() const { return began_; }
  collective::Reduction reduction() const;
  /// A free buffer of its window, tagged as a result of iteration v; nullopt, and the job fails: there is none, which a
  /// window that nobody overwrote does not come to.
  std::optional<memory::Buffer> begin_result(Rank rank, Member& member, Version v);
  std::size_t bytes() const { return elements_ * memory::size_of(dtype_); }
  /// Whether what another agent sent can be a model of this job; else the job fails. `what`: "a model".
  bool has_right_size(NodeId from, const char* what, std::size_t size) {
    return has_right_size(from, what, size, bytes());
  }
  bool has_right_size(NodeId from, const char* what, std::size_t size, std::size_t expected);
  /// Whether a weight that another agent sent can be one: a number of at least 0; else the job fails.
  bool is_weight(NodeId from, double weight);
  void set_verdict(Rank rank, const memory::WorkerVerdict& verdict);
  void send(NodeId to, wire::Message& message, std::vector<std::vector<std::byte>> bulk = {});
  bool evaluation_due(Version v) const;
  void note_evaluated(Version v) { evaluated_last_ = v; }
  /// Nobody starts an iteration > v until `release`; the training clock stands still.
  void hold(Version v);
  /// `end_at` on the control pages.
  void set_last(Version v);
  void tell(Event event) { events_.push_back(std::move(event)); }
  void fail_job(std::string text);
  void trace(const char* category, Version v, Instant begin, Instant end);

  std::map<Rank, Member> members_;
  std::uint64_t elements_ = 0;
  memory::Dtype dtype_ = memory::Dtype::f32;
  Counters counters_;

 private:
  void act(const ViewChange::Actions& actions, Instant now);
  TaskId new_task_id();
  void drop_task(TaskId id);
  void finish_averaging(Instant now);
  bool finish_waits();
  void add_member(Rank rank, Member member);
  void step_any(const Decision& decision);
  Decision take();
  void follow(Instant now);
  void limit(Rank rank);

  JobOptions job_;
  ViewChange view_;
  std::set<NodeId> without_;  ///< Lost, and gone on without.
  TaskGraph& graph_;
  collective::Averager& averager_;
  SendToNode send_;
  std::map<TaskId, Averaging> averagings_;  // That are not done.
  std::map<Rank, TaskId> computing_;        // The compute task that a worker has leased, or had when it last arrived.
  std::uint64_t next_task_ = 0;
  TaskId last_averaging_{0};
  TaskId in_flight_{0};
  bool running_ = false;  // The one in flight is being reduced, or finishes.
  bool reduced_ = false;  // It is reduced, and waits for its turn to finish.
  Instant began_{};
  Version evaluated_last_{-1};
  Instant clock_begin_{};
  Duration held_{};
  std::optional<Instant> held_since_;
  Version released_{-1};  ///< The last one that was.
  std::vector<Event> events_;
  std::optional<observe::TraceWriter> trace_;
  std::optional<RecordWriter> record_;
  std::optional<Replay> replay_;
  std::map<Rank, Member> joining_;  // A replay: those whose turn it is not yet.
  bool following_ = false;
  bool lost_way_ = false;
  Instant looked_{};
};

/// What a job fails with whose window has no buffer for a result: the roles word lies in memory that the worker can
/// write.
std::string damaged_window(Rank rank);

void add(RoundSums& to, const RoundSums& from);

}  // namespace paceline::scheduler
