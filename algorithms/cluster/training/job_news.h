#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/cluster/training/driver_events.h"
#include "algorithms/cluster/training/job_evaluation.h"
#include "runtime/base/ids.h"
#include "scheduler/shell/averaging_service.h"

namespace paceline::cluster {

/// What a node tells the job's driver, each in a function of its own: docs/command-line.md, Events.
class JobNews {
 public:
  using ToDriver = std::function<void(const DriverEvents::Write&)>;

  /// What a return, or a join, cost.
  struct Cost {
    double after_s = 0;        ///< Since its last process ended, or it asked for its share.
    std::uint64_t bytes = 0;   ///< Of the state that it was given.
    std::int64_t samples = 0;  ///< That it would have done meanwhile.
  };

  JobNews(NodeId self, std::int32_t leg, ToDriver to_driver)
      : self_(self), leg_(leg), to_driver_(std::move(to_driver)) {}

  /// Of windows.
  void memory(double bytes_worker, std::size_t workers) const;
  void started(std::int64_t first, std::int64_t updates) const;
  void first_step(Rank worker) const;
  /// The others go on without it.
  void left(Rank worker, const std::string& text) const { left(worker, text, Leaves::for_good); }
  void left_with_node(Rank worker, const std::string& text) const { left(worker, text, Leaves::with_node); }
  /// As was asked.
  void drained(Rank worker, const std::string& text) const { left(worker, text, Leaves::as_asked); }
  /// Another process comes in its place,
  void left_for_a_while(Rank worker, const std::string& text) const { left(worker, text, Leaves::for_a_while); }
  /// and has begun to train with this update.
  void returned(Rank worker, std::int64_t update, const Cost& cost, const std::string& text) const;
  /// The job had ended, which is no loss.
  void left_ended_job(Rank worker, const std::string& text) const { left(worker, text, Leaves::ended_job); }
  void node_lost(NodeId node, const std::string& text) const;
  /// This node, which was lost, or is new to the job, takes part from this leg on.
  void node_joined(const std::vector<Rank>& places, const std::string& text) const;
  void evaluated(const JobEvaluation::Evaluated& evaluated) const;
  void saved(Rank worker, std::int64_t update) const;
  void metric(Rank worker, std::int64_t update, double clock_s, const std::string& name, double value) const;
  /// What became of the samples of epochs that are over.
  void ledger(const std::vector<scheduler::Ledger::Row>& epochs) const;
  /// The job goes on with another strategy, beginning with this update; its workers were held for `after_s`.
  void changed(std::int64_t update, const std::string& strategy, double lr_factor, double after_s) const;
  void file(const std::string& path, const std::string& hash) const;
  void final_model(Rank worker, const std::string& hash) const;
  void stopping(const std::string& why) const;
  void warning(const std::string& text) const;
  void failed(const std::string& text) const;
  void progress(const std::function<void(wire::Progress::Builder)>& fill) const;

 private:
  enum class Leaves { for_good, as_asked, for_a_while, ended_job, with_node };
  void left(Rank worker, const std::string& text, Leaves how) const;

  const NodeId self_;
  const std::int32_t leg_;
  const ToDriver to_driver_;
};

void write(const JobEvaluation::Evaluated& evaluated, wire::JobEvent::Evaluated::Builder to);
JobEvaluation::Evaluated evaluated_of(const wire::JobEvent::Evaluated::Reader& from);

/// `node`: whose it is, `leg`: of the job.
void write(const std::vector<scheduler::Ledger::Row>& epochs, NodeId node, std::int32_t leg, wire::Ledger::Builder to);

std::string why_left(const scheduler::AveragingService::Left& left);

}  // namespace paceline::cluster
