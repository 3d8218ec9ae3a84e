#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/shell/coordinator.h"
#include "scheduler/shell/workplace.h"
#include "scheduler/views/view_change.h"

namespace paceline::scheduler {

/// The averagings of a training job on one agent: the one shell of all strategies, over the coordinator of the job's.
/// Owned by the agent's control loop, and while one of its averagings runs by that, too: whoever lets go of a job lets
/// go of no memory that is being reduced.
class AveragingService final : public std::enable_shared_from_this<AveragingService>, private Chronicle::Core {
 public:
  using Executed = Workplace::Executed;
  using Left = Workplace::Left;
  using Admitted = Workplace::Admitted;
  using WentOn = Workplace::WentOn;
  using Failed = Workplace::Failed;
  using Event = Workplace::Event;

  AveragingService(JobOptions options, const MakeCoordinator& make, TaskGraph& graph, collective::Averager& averager,
                   SendToNode send);
  AveragingService(const AveragingService&) = delete;
  AveragingService& operator=(const AveragingService&) = delete;

  /// A local worker opened its share. `invalid` if its size differs from the others'.
  Result<void> join(Rank rank, memory::Window window, memory::ControlPage control);
  /// One that takes a place which nobody had. It is as gone until it is admitted (on_return). `invalid` likewise.
  Result<void> take_place(Rank rank, memory::Window window, memory::ControlPage control);
  /// Nothing is under way with the window of a local worker that has gone.
  bool is_free(Rank rank) const { return coordinator_->pace().is_free(rank); }
  /// It is made ready for the worker's next process, which has this page.
  memory::Window& reopen(Rank rank, memory::ControlPage control);
  memory::Window* window(Rank rank);
  memory::ControlPage* control(Rank rank);

  // As the coordinator has it -----------------------------------------------------------------------------------------
  void on_arrival(Rank rank, Version t, Duration compute, Instant now) {
    coordinator_->pace().on_arrival(rank, t, compute, now);
  }
  void on_batch(Rank rank, Version t, std::int32_t bodies, Duration each, Instant now) {
    coordinator_->on_batch(rank, t, bodies, each, now);
  }
  void on_alive(Rank rank, Instant now) { coordinator_->pace().on_alive(rank, now); }
  void on_gone(Rank rank, Instant now) { coordinator_->pace().on_gone(rank, now); }
  void on_return(Rank rank, Instant now) { coordinator_->pace().on_return(rank, now); }
  Version begins_with(Rank rank) const { return coordinator_->pace().begins_with(rank); }
  void stop_soon() { coordinator_->pace().stop_soon(); }
  Version done() const override { return coordinator_->pace().done(); }
  Version last() const { return coordinator_->pace().last(); }
  std::int64_t period() const { return coordinator_->pace().period(); }
  Duration median_step() const { return coordinator_->pace().median_step(); }
  std::optional<Coordinator::Waiting> waiting() const { return coordinator_->waiting(); }
  /// This node asks and decides where one has to.
  bool leads() const { return work_.view.leads(); }
  bool evaluations_hold() const { return coordinator_->pace().evaluations_hold(); }

  /// A message of the same job's service on another agent.
  void on_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk, Instant now);
  /// Another agent is lost, with its workers. Those that are left agree on what it has given, then they go on.
  void on_node_gone(NodeId node, Instant now);
  /// An averaging that was submitted as `id` is done; false: it is not ours.
  bool on_reduced(std::uint64_t id, Instant now) { return work_.averagings.on_reduced(id, now); }
  /// The worker, which was named when v was executed, evaluates the model after it.
  void evaluate(Rank rank, Version v) { work_.windows.evaluate(rank, v); }
  /// The evaluation at v is over: everybody may go on who was held for it.
  void release(Version v);
  const std::optional<Version>& released() const { return work_.released(); }
  /// The training clock starts (again) at zero; evaluations do not count.
  void start_clock(Instant now) { work_.clock.start(now); }
  /// What the next leg of a job goes on from.
  struct Reached {
    Workplace::Counters counters;
    Duration clock{};
    std::uint64_t elements = 0;  ///< Of a model.
    memory::Dtype dtype = memory::Dtype::f32;
  };
  Reached reached(Instant now) const;
  /// Before anybody joins.
  void go_on_from(const Reached& before, Instant now);
  /// The job has ended for this leg of it only: the local workers, who are held, go on in the next one, which their
  /// agent has by now.
  void begin_next_leg(std::int32_t leg);
  Duration clock(Instant now) const { return work_.clock.at(now); }
  /// What was decided here is in the record: before anything that is said to other nodes because of it.
  void flush_record() { work_.chronicle.flush(); }
  /// A replay: this node was lost here.
  bool is_cut_off() const { return work_.chronicle.is_cut_off(); }
  /// The job's last version is v, at which everybody is held.
  void end_at(Version v);
  /// All local workers end at their next look; the record is complete, if the job has come to its end.
  void stop();
  /// Nothing follows from an averaging that still runs, the node's graph is left, files are complete: what is left is
  /// memory, which any thread may give back. Called before the owner lets go.
  void end_work() { work_.close(); }
  void tick(Instant now);
  std::optional<Instant> next_deadline() const;

  std::vector<Event> take_events() { return work_.take_events(); }
  const Workplace::Counters& counters() const { return work_.counters; }
  /// What became of the samples of this node's workers.
  Ledger& ledger() { return work_.ledger; }
  /// A figure of this node in the trace, as it is from now on.
  void count(const char* name, double value, Instant now) { work_.count(name, value, now); }

 private:
  using Member = WorkerWindows::Member;

  void on_told(const Decision& decision) override;
  bool go_on() override { return coordinator_->go_on(); }
  bool finish_averaging(Instant now) override { return work_.averagings.finish_what_waited(now); }
  bool needs_nothing(const Decision& decision) const override;
  void limit(Rank rank) override;
  void fail(std::string text) override { work_.fail_job(std::move(text)); }
  bool is_over() const override { return done() >= last(); }
  void act(const ViewChange::Actions& actions, Instant now);
  void add_member(Rank rank, Member member);

  Workplace work_;
  ViewChange view_change_;
  std::unique_ptr<Coordinator> coordinator_;
  std::map<Rank, Member> joining_;  ///< A replay: those whose turn it is not yet.
};

}  // namespace paceline::scheduler
