#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/cluster/training/job_members.h"
#include "algorithms/cluster/training/job_settings.h"
#include "scheduler/shell/averaging_service.h"

namespace paceline::cluster {

/// What people are shown of a node's part of a job: figures of its averagings, and what each worker does.
class JobView {
 public:
  /// All that is referred to outlives this.
  JobView(const JobSettings& settings, const JobMembers& members, const JobOutbox& outbox)
      : settings_(settings), members_(members), outbox_(outbox) {}

  /// Training begins with this update.
  void begin(Version first);
  bool is_training(Version t) const { return t >= first_; }
  /// Of one who is alone, and publishes nothing.
  void on_loss(double loss) { figures_.loss = loss; }
  /// `clock`: the training clock.
  void on_executed(const scheduler::AveragingService::Executed& executed, Duration clock);

  double loss() const { return figures_.loss; }
  std::int64_t samples() const { return figures_.samples; }
  /// What a job's next leg goes on from.
  struct Figures {
    double loss = 0;
    std::vector<float> step_s{};
    double last_clock_s = 0;
    std::int64_t samples = 0;
    struct Counted {
      Instant at{};
      std::int64_t samples = 0;
    };
    Counted counted{};  ///< What the trace was told last.
  };
  const Figures& figures() const { return figures_; }
  void go_on_from(Figures before) { figures_ = std::move(before); }
  /// Before training: who has not shared its model yet.
  void write(wire::Progress::Builder progress, const std::vector<Rank>& starting, std::optional<Duration> since) const;
  /// What the averagings are at. `clock`: of training; what workers do after it is none.
  void write(wire::Progress::Training::Builder training, scheduler::AveragingService& averagings, Duration clock,
             Instant now) const;
  /// This node's samples/s, loss and waiting workers, for the trace.
  void trace(const wire::Progress::Training::Reader& training, scheduler::AveragingService& averagings, Instant now);

 private:
  const char* state_of(Rank rank, WorkerId worker, const memory::Window& window) const;

  const JobSettings& settings_;
  const JobMembers& members_;
  const JobOutbox& outbox_;
  Figures figures_;
  Version first_{0};
  Version last_{-1};
};

}  // namespace paceline::cluster
