#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/cluster/training/job_members.h"
#include "algorithms/cluster/training/job_news.h"
#include "algorithms/cluster/training/job_replicas.h"
#include "algorithms/cluster/training/job_settings.h"
#include "algorithms/cluster/training/returns.h"
#include "algorithms/cluster/training/signs_of_life.h"
#include "scheduler/shell/averaging_service.h"

namespace paceline::cluster {

/// Shell of Returns on one node: gives the window of a worker that has left to its next process, or a new one to who
/// takes a place that nobody had, tells the averagings and the replicas of it, and says when it is there.
class JobReturns {
 public:
  /// All that is referred to outlives this.
  struct Around {
    const JobSettings& settings;
    const JobOutbox& outbox;
    const JobNews& news;
    JobMembers& members;
    SignsOfLife& life;
    JobReplicas& replicas;
    JobReplicas::Beside beside;
  };

  explicit JobReturns(Around around) : around_(around) {}
  void open(std::shared_ptr<scheduler::AveragingService> averagings) { averagings_ = std::move(averagings); }
  void stop() { averagings_.reset(); }

  bool has(Rank rank) const { return returns_.has(rank); }
  bool has(WorkerId worker) const { return returns_.has(worker); }
  bool empty() const { return returns_.empty(); }
  /// It does not come back.
  void end(Rank rank) { returns_.end(rank); }
  /// This process has ended before it had its window.
  void withdraw(WorkerId worker) { returns_.withdraw(worker); }

  /// A worker has left, and another process is started in its place. `text`: for people.
  void begin(Rank rank, const std::string& text, Instant now);
  /// It has ended on its way, and there is another once more.
  void begin_anew(Rank rank, Instant now) { begin(rank, {now}); }
  /// Somebody comes whose place nobody has.
  void take_place(Rank rank, Instant now) { begin(rank, {now}); }
  void on_share(Rank rank, const Returns::Share& share) { returns_.on_share(rank, share); }
  /// Those that have asked for their windows, and have none yet.
  std::vector<std::pair<Rank, Returns::Share>> unanswered() const;
  /// Those that wait for their windows have them, when nothing is under way with these any more.
  void reopen_free_windows();
  void on_admitted(const scheduler::AveragingService::Admitted& admitted, Instant now);
  /// What it was admitted to begin with cannot be had.
  void readmit(Rank rank);
  /// A worker has arrived with this iteration, which may have been on its way back.
  void on_arrive(Rank rank, std::int64_t iteration, Instant now);
  /// Where updates are abandoned only the first one arrives.
  void on_executed(Version v, Instant now);

 private:
  void begin(Rank rank, const Returns::Gone& gone);
  void reopen_window(Rank rank, const Returns::Share& share);
  void make_window(Rank rank, const Returns::Share& share);
  void on_window_made(Rank rank, const Returns::Share& share, WorkerShare& made);
  void give_window(Rank rank, const Returns::Share& share, WorkerShare& made, process::BorrowedFd window);
  void on_back(Rank rank, std::int64_t update, Instant now);

  const Around around_;
  std::shared_ptr<scheduler::AveragingService> averagings_;
  Returns returns_;
  std::map<Rank, Returns::Share> making_;  ///< Their windows are made beside the loop.
};

}  // namespace paceline::cluster
