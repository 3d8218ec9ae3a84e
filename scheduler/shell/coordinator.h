#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/shell/workplace.h"

namespace paceline::scheduler {

/// How far the workers of a job are on one agent, and what they say of that: in rounds of all, or each at a pace of its
/// own.
class Pace {
 public:
  /// A local worker has published iteration t and waits for its verdict; `compute`: what it took, waiting excluded.
  virtual void on_arrival(Rank rank, Version t, Duration compute, Instant now) = 0;
  /// A local worker has given a sign of life: its silence begins anew.
  virtual void on_alive(Rank rank, Instant now) = 0;
  /// A local worker's process has ended.
  virtual void on_gone(Rank rank, Instant now) = 0;
  /// Nothing is under way with the window of a local worker that has gone: its next process may have it.
  virtual bool is_free(Rank) const { return false; }
  /// A local worker that has gone has another process, which has its window; or again, where the state that it was to
  /// begin with cannot be had. Workplace::Admitted follows.
  virtual void on_return(Rank, Instant) {}
  /// The iteration that it begins with then, or a later one.
  virtual Version begins_with(Rank) const { return done().next(); }
  /// The job is to end on all nodes at one version, as soon as can be.
  virtual void stop_soon() = 0;

  virtual Version done() const = 0;
  virtual Version last() const = 0;
  virtual std::int64_t period() const { return 1; }
  /// Running median of the last 20 steps of all local workers, waiting excluded; zero before the first.
  virtual Duration median_step() const = 0;
  /// Whether all stand still at the version that is evaluated (so that the job can end there).
  virtual bool evaluations_hold() const = 0;

 protected:
  ~Pace() = default;
};

/// How the workers of a job average, on one agent: tells a core what happens, and carries out what it decides with what
/// the workplace has. There is one for rounds, and one for each way of averaging without. What it tells its core goes
/// through the workplace's chronicle, so that it is recorded, and replayed, from outside.
class Coordinator {
 public:
  /// Who is waited for at the oldest open version.
  struct Waiting {
    Version version;
    std::vector<Rank> missing;
    Instant since;
  };

  explicit Coordinator(Workplace& work) : work_(work) {}
  virtual ~Coordinator() = default;
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  virtual Pace& pace() = 0;
  virtual std::optional<Waiting> waiting() const { return {}; }

  // What happens ------------------------------------------------------------------------------------------------------

  /// A local worker's batch of update t is over; `bodies` of its mini-batches, which took `each`, count. It waits for
  /// its verdict.
  virtual void on_batch(Rank, Version /*t*/, std::int32_t /*bodies*/, Duration /*each*/, Instant) {}
  /// A message of another agent that is not lost.
  virtual void on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                               Instant now) = 0;
  /// Sends `to` what is held here of a lost agent and `to` may lack: what both can have used has to be the same.
  virtual void pass_on(NodeId lost, NodeId to) = 0;
  /// Looks at the core's deadlines, which a replay does not do: to be recorded if one has passed.
  virtual void look(Instant now) = 0;
  virtual std::optional<Instant> core_deadline() const = 0;

  // The chronicle's turn to speak -------------------------------------------------------------------------------------

  /// Tells the core and carries out its actions.
  virtual void step(const Decision& decision) = 0;
  // A replay, as Chronicle::Core has it; whether workers may join before their turn.
  virtual bool go_on() { return true; }
  virtual bool needs_nothing(const Decision&) const { return false; }
  virtual bool joins_early() const { return false; }

 protected:
  using Member = WorkerWindows::Member;
  using Executed = Workplace::Executed;
  using Left = Workplace::Left;
  using Admitted = Workplace::Admitted;

  Workplace& work_;
};

using MakeCoordinator = std::function<std::unique_ptr<Coordinator>(Workplace&)>;

}  // namespace paceline::scheduler
