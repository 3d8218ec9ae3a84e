#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/collective/averager.h"
#include "runtime/memory/control.h"
#include "runtime/memory/window.h"
#include "runtime/observe/trace.h"
#include "runtime/wire/codec.h"
#include "scheduler/rounds/round_engine.h"
#include "scheduler/task_graph.h"

namespace paceline::scheduler {

/// How a sum of contributions becomes the gradient or model that the members get.
enum class Divisor {
  contributions,  ///< Mean over those that contributed (models; gradients whose members wait).
  members,        ///< Over all members, also those with nothing (Non-blocking SGD, reading B: eta n/N times the mean
                  ///< gradient).
  bodies,         ///< Over all mini-batches that were summed (reading D).
};

/// Shell of the round engine on one agent, for one job: decodes, steps the core, moves windows between their roles,
/// runs the reductions on the agent's averaging threads and sends partial sums to other agents. Owned by the agent's
/// control loop. Averagings and late merges run one after the other, in the order in which the engine asked for them;
/// windows are not touched elsewhere.
class RoundService {
 public:
  struct Options {
    JobId job;
    RoundEngine::Options engine;
    std::int32_t bodies = 1;  ///< Mini-batches of one complete update.
    Divisor divisor = Divisor::contributions;
    bool weighs_by_bodies = false;    ///< A contribution of n of N mini-batches counts n/N times (reading A).
    std::int64_t evaluate_every = 0;  ///< Updates between evaluations; 0: never but at the end.
    bool evaluates = false;
    std::string trace_path;  ///< Empty: no trace.
  };
  using SendToNode = std::function<void(NodeId, wire::Message&, std::vector<std::vector<std::byte>>)>;

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
    Duration silent;
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

  RoundService(Options options, std::unique_ptr<RoundPlan> plan, TaskGraph& graph, collective::Averager& averager,
               SendToNode send);
  ~RoundService();

  /// A local worker opened its share. `invalid` if its size differs from the others'.
  Result<void> join(Rank rank, memory::Window window, memory::ControlPage control);
  memory::Window* window(Rank rank);
  memory::ControlPage* control(Rank rank);

  void on_arrival(Rank rank, Version t, Duration compute, Instant now);
  void on_count(Version v, Instant now);
  void on_activation(NodeId root, NodeId from, Version v, Instant now);
  void on_partial(NodeId from, const wire::Partial::Reader& header, std::vector<std::byte> sum, Instant now);
  void on_gone(Rank rank, Instant now);
  /// An averaging that was submitted as `id` is done; false: it is not ours.
  bool on_reduced(std::uint64_t id, Instant now);
  /// Everybody may go on after the evaluation at v.
  void release(Version v);
  /// The training clock starts (again) at zero; evaluations do not count.
  void start_clock(Instant now);
  Duration clock(Instant now) const;
  /// All local workers end at their next look.
  void stop();
  /// Ends the job on all nodes at the next sync.
  void stop_at_sync() { stop_wanted_ = true; }
  /// The job's last version is v, at which everybody is held.
  void end_at(Version v);
  void tick(Instant now);
  std::optional<Instant> next_deadline() const;

  std::vector<Event> take_events();
  const Counters& counters() const { return counters_; }
  const RoundEngine& engine() const { return engine_; }
  std::size_t members() const { return members_.size(); }

 private:
  struct Member {
    memory::Window window;
    memory::ControlPage control;
    bool gone = false;
  };
  struct Contribution {
    Rank rank;
    memory::Buffer buffer;
  };
  static std::vector<Rank> ranks_of(const std::vector<Contribution>& contributions);
  struct RemotePartial {
    std::vector<std::byte> sum;
    std::int32_t contributions = 0;
    std::int64_t bodies = 0;
    RoundSums sums;
  };
  using Key = std::pair<std::int64_t, std::int32_t>;  // version, group
  /// What is gathered for one group of one version until it is executed.
  struct Gathering {
    std::vector<Rank> members;
    std::vector<Contribution> contributions;
    std::int64_t bodies = 0;
    RoundSums sums;
    std::vector<std::byte> own_partial;
    bool partial_ready = false;
    std::vector<NodeId> partial_targets;
    std::map<NodeId, RemotePartial> remote;
  };
  struct PartialTask {
    Key key;
  };
  struct ExecuteTask {
    Key key;
    RoundEngine::Execute what;
  };
  struct MergeTask {
    RoundEngine::Merge what;
  };
  using Task = std::variant<PartialTask, ExecuteTask, MergeTask>;

  void act(RoundEngine::Actions actions, Instant now);
  void carry_out(const RoundEngine::Activate& a, Instant now);
  void carry_out(const RoundEngine::Count& a, Instant now);
  void carry_out(const RoundEngine::Seal& a, Instant now);
  void carry_out(const RoundEngine::SendPartial& a, Instant now);
  void carry_out(const RoundEngine::Execute& a, Instant now);
  void carry_out(const RoundEngine::Merge& a, Instant now);
  void carry_out(const RoundEngine::Verdict& a, Instant now);
  void carry_out(const RoundEngine::Abandon& a, Instant now);
  void carry_out(const RoundEngine::Leave& a, Instant now);

  void add_averaging(Task task, const std::vector<Rank>& contributors);
  void begin_compute(Rank rank);
  void end_compute(Rank rank);
  TaskId new_task_id();
  void start_tasks(Instant now);
  void finish_task(Instant now);
  collective::Reduction prepare(const PartialTask& task);
  collective::Reduction prepare(const ExecuteTask& task);
  collective::Reduction prepare(const MergeTask& task);
  void finish(const PartialTask& task, Instant now);
  void finish(const ExecuteTask& task, Instant now);
  void finish(const MergeTask& task, Instant now);
  void send_partial(const Key& key, NodeId to);
  bool gradients() const;
  bool abandons() const { return abandons_; }
  bool evaluation_due(Version v) const;
  double scale_of(const Gathering& round, std::size_t group_members) const;
  void check_learning_rates(const Gathering& round, Version v);
  void fail_job(std::string text);
  void trace(const char* category, std::int64_t version, Instant begin, Instant end);

  Options options_;
  RoundEngine engine_;
  TaskGraph& graph_;
  collective::Averager& averager_;
  SendToNode send_;
  bool abandons_ = false;
  std::map<Rank, Member> members_;
  std::uint64_t elements_ = 0;
  memory::Dtype dtype_ = memory::Dtype::f32;
  std::map<Key, Gathering> rounds_;
  std::deque<std::pair<RoundEngine::Action, Instant>> pending_actions_;
  bool acting_ = false;
  std::map<TaskId, Task> tasks_;  // Averaging tasks that are not done.
  bool running_ = false;
  std::vector<Rank> outputs_;  ///< Local members whose windows hold a result in progress (of the task in flight).
  std::uint64_t next_task_ = 0;
  TaskId last_averaging_{0};
  std::map<Rank, TaskId> computing_;  // The compute task that a worker has leased, or had when it last arrived.
  TaskId in_flight_{0};
  Instant task_began_{};
  Version evaluated_last_{-1};
  Instant clock_begin_{};
  Duration held_{};
  std::optional<Instant> held_since_;
  bool stop_wanted_ = false;
  std::vector<Event> events_;
  Counters counters_;
  std::optional<observe::TraceWriter> trace_;
};

}  // namespace paceline::scheduler
