#include "algorithms/cluster/training/job_plan.h"

#include <algorithm>

#include "algorithms/cluster/training/worker_share.h"
#include "runtime/base/json.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;

/// What all decisions of a job rest on.
json record_head(const JobSettings& settings, const JobPlan& plan) {
  json nodes = json::array();
  for (const NodeId node : settings.entry.node_of) nodes.push_back(node.value);
  return {{"strategy", settings.options().strategy},
          {"accumulate", settings.options().accumulate},
          {"seed", settings.options().seed},
          {"node", settings.self.value},
          {"node_of", nodes},
          {"first", plan.first},
          {"updates", plan.updates},
          {"evaluate_every", plan.evaluate_every}};
}

/// Those of the same job only. One that is cut off is a lost node's (cli/recorded/recorded_decisions.h).
Result<scheduler::Chronicle::Recorded> recorded_decisions(const JobSettings& settings, const json& head) {
  auto record = scheduler::read_record_of_killed(scheduler::record_path(settings.options().replay, settings.self));
  if (!record) return tl::unexpected(record.error());
  const json then = parse_json(record->head);
  for (const auto& [name, value] : head.items()) {
    const json before = then.is_object() ? then.value(name, json()) : json();
    if (before != value)
      return fail(ErrorKind::invalid, "this is another job than the recorded one: " + name + " was " +
                                          json_text(before) + ", is " + json_text(value));
  }
  return scheduler::Chronicle::Recorded{std::move(record->decisions), !record->ended};
}

scheduler::Ledger::Options ledger_options(const JobSettings& settings, const JobPlan& plan) {
  const auto late = settings.strategy.tiers.front().late;
  scheduler::Ledger::Options ledger;
  ledger.workers = settings.workers();
  ledger.bodies = settings.strategy.batches;
  ledger.samples = plan.samples;
  ledger.batch = plan.batch;
  ledger.epoch = plan.epoch;
  ledger.epoch_end = plan.epoch_end;
  ledger.left = plan.left;
  ledger.first = plan.first;
  ledger.updates = plan.updates;
  ledger.abandons = late == scheduler::Lateness::abandons || late == scheduler::Lateness::finishes;
  ledger.forgets_late = ledger.abandons || late == scheduler::Lateness::drops;
  return ledger;
}

}  // namespace

Result<JobPlan> checked_plan(JobPlan plan) {
  if (plan.updates <= plan.first || plan.first < 0)
    return fail(ErrorKind::invalid, "nothing to do: the job would end at update " + std::to_string(plan.updates) +
                                        ", and goes on from update " + std::to_string(plan.first) +
                                        ": give more --epochs");
  if (plan.samples < 0 || plan.batch < 1 || plan.epoch < 0 || plan.epoch_end < 0)
    return fail(ErrorKind::invalid, "a data set of " + std::to_string(plan.samples) + " samples in mini-batches of " +
                                        std::to_string(plan.batch));
  return plan;
}

Result<scheduler::JobOptions> averaging_options(const JobSettings& settings, const JobPlan& plan) {
  const job::Options& options = settings.options();
  scheduler::JobOptions job;
  job.job = settings.named();
  job.clock = settings.clock;
  job.self = settings.self;
  job.node_of = settings.entry.node_of;
  for (const std::int32_t rank : settings.options().vacant) job.vacant.insert(Rank{rank});
  job.first = Version{plan.first};
  job.last = Version{plan.updates - 1};
  if (options.patience_s > 0) job.wait_limit = from_seconds(options.patience_s);
  if (settings.strategy.patience) job.wait_limit = settings.strategy.patience;
  job.ledger = ledger_options(settings, plan);
  job.evaluates = plan.evaluate_every >= 0;
  job.evaluate_every = std::max<std::int64_t>(0, plan.evaluate_every);
  if (!options.run_directory.empty()) {
    job.trace_path = options.run_directory + "/node-" + to_string(settings.self) + trace_suffix(settings);
    if (settings.leg == 0) job.record_path = scheduler::record_path(options.run_directory, settings.self);
  }
  const json head = record_head(settings, plan);
  job.record_head = json_text(head);
  if (options.replay.empty()) return job;
  auto decisions = recorded_decisions(settings, head);
  if (!decisions) return tl::unexpected(decisions.error());
  job.replay = *std::move(decisions);
  return job;
}

}  // namespace paceline::cluster
