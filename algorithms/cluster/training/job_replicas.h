#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "algorithms/cluster/training/job_members.h"
#include "algorithms/cluster/training/job_news.h"
#include "algorithms/cluster/training/job_settings.h"
#include "algorithms/cluster/training/replica_exchange.h"
#include "runtime/process/fd.h"
#include "scheduler/shell/averaging_service.h"

namespace paceline::cluster {

/// Shell of the ReplicaExchange on one node: asks workers for their states over their control pages, and sends what
/// they gave to workers and other nodes.
class JobReplicas {
 public:
  using Beside = std::function<void(std::function<Result<void>()>, JobOutbox::Follows)>;
  using Fail = std::function<void(const Error&)>;
  using Readmit = std::function<void(Rank)>;

  /// `beside`: JobOutbox::beside as long as the job is there; `fail`: the job fails; `readmit`: the worker, which comes
  /// back, is to be admitted anew. All that is referred to outlives this.
  JobReplicas(const JobSettings& settings, const JobMembers& members, const JobOutbox& outbox, const JobNews& news,
              Beside beside, Fail fail, Readmit readmit);

  /// From here on workers can be asked, until the job is stopped.
  void open(std::shared_ptr<scheduler::AveragingService> averagings) { averagings_ = std::move(averagings); }
  void stop() { averagings_.reset(); }

  /// `end`: the job's last version, if it has come to it: an older state would be of no use.
  void on_wanted(const wire::Replica::Reader& wanted, NodeId from, std::optional<Version> end, Instant now);
  void on_none(const wire::Replica::Reader& none, NodeId from, Instant now);
  /// A captured state of a local worker.
  void on_captured(Rank rank, std::int64_t update, std::uint64_t size, process::Fd state);
  void on_data(const wire::Replica::Reader& header, std::vector<std::byte> bytes);
  void on_node_gone(NodeId node, Instant now);
  /// Another process comes in the place of a local worker that has left: it is given a state when it is admitted.
  void on_return(Rank rank) { exchange_.on_return(rank); }
  void on_admitted(const scheduler::AveragingService::Admitted& admitted, Instant now);
  /// What a local worker was given last.
  struct Given {
    std::uint64_t bytes = 0;
    std::int64_t update = 0;  ///< That it began with.
  };
  std::optional<Given> given(Rank rank) const;
  void on_left(Rank rank, Instant now);
  /// The job has come to its end.
  void on_end(Version end, Instant now);
  void tick(Instant now);
  std::optional<Instant> due() const;
  /// Rank 0's state at the start is here.
  bool has_start() const { return exchange_.has_start(); }
  void begin_without_start() { exchange_.begin_without_start(); }
  bool has_started(Rank rank) const { return exchange_.has_started(rank); }

 private:
  ReplicaExchange::Donors donors();
  void act(const ReplicaExchange::Actions& actions);
  void carry_out(const ReplicaExchange::Give& give);
  void carry_out(const ReplicaExchange::Send& send);
  void carry_out(const ReplicaExchange::Capture& capture);
  void carry_out(const ReplicaExchange::AskNode& ask);
  void carry_out(const ReplicaExchange::SendNone& none);
  void carry_out(const ReplicaExchange::GoOn& go_on);
  void carry_out(const ReplicaExchange::Readmit& readmit);
  void carry_out(const ReplicaExchange::Lost& lost);

  const JobSettings& settings_;
  const JobMembers& members_;
  const JobOutbox& outbox_;
  const JobNews& news_;
  Beside beside_;
  Fail fail_job_;
  Readmit readmit_;
  ReplicaExchange exchange_;
  std::map<Rank, std::uint64_t> requests_;  ///< Of local workers: the last one's number.
  std::map<Rank, Given> given_;
  std::map<Rank, Instant> to_readmit_;  ///< When.
  std::set<Rank> may_skip_;             ///< They come back, and may begin with what is current then.
  std::shared_ptr<scheduler::AveragingService> averagings_;
};

}  // namespace paceline::cluster
