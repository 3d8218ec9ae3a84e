#include "algorithms/job/job_record.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "runtime/base/json.h"

namespace paceline::job {
namespace {

using nlohmann::json;

constexpr std::size_t kLoggedMax = 1000;  // Names.
constexpr double kRateWindow = 3;         // Seconds that a worker's samples/s is taken over.

std::int64_t sum_of(const std::map<std::int32_t, json>& counters, const char* name) {
  std::int64_t sum = 0;
  for (const auto& [node, values] : counters) sum += values.value(name, std::int64_t{0});
  return sum;
}

/// What each node counts for itself.
std::int64_t most_of(const std::map<std::int32_t, json>& counters, const char* name) {
  std::int64_t most = 0;
  for (const auto& [node, values] : counters) most = std::max(most, values.value(name, std::int64_t{0}));
  return most;
}

/// JSON has no NaN and no infinity: null stands for them.
double loss_of(const json& event, double otherwise) {
  const auto loss = event.find("loss");
  if (loss == event.end()) return otherwise;
  return loss->is_null() ? std::nan("") : loss->get<double>();
}

}  // namespace

JobRecord::JobRecord(const Options& options, const std::vector<std::int32_t>& node_of,
                     const std::vector<std::int32_t>& vacant)
    : strategy_(options.name()), metric_(options.metric), target_(options.target) {
  for (std::int32_t rank = 0; const std::int32_t node : node_of) {
    workers_[rank] = {.rank = rank, .node = node, .state = "starting"};
    ++rank;
  }
  for (const std::int32_t rank : vacant) {
    vacant_.insert(rank);
    left_.insert(rank);
    workers_[rank].state = "vacant";
    workers_[rank].left = true;
  }
}

void JobRecord::on_event(const json& event) {
  const std::string kind = event.value("event", "");
  if (kind == "node_joined") on_node_joined(event);
  if (event.contains("node") && lost_nodes_.contains(event.value("node", 0))) return;  // It may say something again.
  ledger_.on_event(event);
  if (kind == "started") {
    updates_ = event.value("updates", updates_);
    update_ = std::max(update_, event.value("first", update_));
  } else if (kind == "progress") {
    on_progress(event);
  } else if (kind == "closed") {
    on_progress(event);
    closed_.insert(event.value("node", 0));
  } else if (kind == "evaluated") {
    if (!event.contains("value") || !event["value"].is_number()) return;  // The script has no metric.
    evaluations_.push_back({event.value("update", std::int64_t{0}), event.value("clock_s", 0.0),
                            event.value("value", 0.0), loss_of(event, 0.0)});
  } else if (kind == "metric") {
    const auto name = event.value("name", "");
    if (!event.contains("value") || !event["value"].is_number()) return;
    if (!logged_.contains(name) && logged_.size() >= kLoggedMax) return;
    if (!logged_.contains(name)) logged_names_.push_back(name);
    logged_[name][event.value("worker", 0)] = event["value"].get<double>();
  } else if (kind == "left") {
    on_left(event);
  } else if (kind == "returned") {
    on_returned(event.value("worker", -1));
  } else if (kind == "node_lost") {
    closed_.insert(event.value("node", 0));
    lost_nodes_.insert(event.value("node", 0));
  } else if (kind == "failed") {
    if (!failure_) failure_ = event.value("text", std::string("the job failed"));
  } else if (kind == "final") {
    if (!left_.contains(event.value("worker", -1))) models_[event.value("worker", -1)] = event.value("model", "");
  } else if (kind == "file") {
    files_[event.value("path", "")] = event.value("hash", "");
  } else if (kind == "changed") {
    changes_.push_back({{"update", event.value("update", std::int64_t{0})},
                        {"strategy", event.value("strategy", "")},
                        {"lr_factor", event.value("lr_factor", 1.0)},
                        {"after_s", event.value("after_s", 0.0)}});
  } else if (kind == "stopping") {
    const auto why = event.value("text", "");
    if (stop_reason_.empty()) stop_reason_ = why.empty() ? "it was stopped" : why;
  }
}

std::string JobRecord::changed_to() const { return changes_.empty() ? "" : changes_.back().value("strategy", ""); }

/// Its agent is another one than before, or its places were others': it counts anew.
void JobRecord::on_node_joined(const json& event) {
  const auto node = event.value("node", -1);
  lost_nodes_.erase(node);
  closed_.erase(node);
  for (const std::int32_t rank : event.value("places", std::vector<std::int32_t>{})) {
    const auto worker = workers_.find(rank);
    if (worker == workers_.end()) continue;
    auto& done = done_[rank];
    if (done.empty()) done.push_back({worker->second.node});
    done.push_back({node});
    worker->second.node = node;
  }
}

bool JobRecord::closed() const {
  return std::all_of(workers_.begin(), workers_.end(),
                     [this](const auto& worker) { return closed_.contains(worker.second.node); });
}

void JobRecord::on_left(const json& event) {
  const auto rank = event.value("worker", -1);
  // Of a lost node all are said to have left, those too that were not there.
  if (vacant_.contains(rank) && !away_.contains(rank)) return;
  left_.insert(rank);
  away_.erase(rank);
  if (event.value("returns", false)) {
    away_.insert(rank);
  } else if (event.value("drained", false)) {
    vacant_.insert(rank);
    ++drains_[rank];
  } else if (!event.value("ended", false)) {
    lost_.insert(rank);
    vacant_.erase(rank);
    if (event.value("with_node", false)) with_node_.insert(rank);
  }
  if (const auto it = workers_.find(rank); it != workers_.end()) it->second.left = true;
}

void JobRecord::on_returned(std::int32_t rank) {
  const bool joins = vacant_.contains(rank) || lost_.contains(rank);
  for (auto* const ranks : {&left_, &lost_, &with_node_, &away_, &vacant_}) ranks->erase(rank);
  ++(joins ? joins_ : returns_)[rank];
  if (const auto it = workers_.find(rank); it != workers_.end()) it->second.left = false;
}

bool JobRecord::has_lost_node() const {
  return std::any_of(with_node_.begin(), with_node_.end(), [this](std::int32_t rank) { return lost_.contains(rank); });
}

std::int64_t JobRecord::living() const {
  return std::count_if(workers_.begin(), workers_.end(), [this](const auto& worker) {
    return !lost_.contains(worker.first) && !vacant_.contains(worker.first);
  });
}

void JobRecord::conclude() {
  for (const std::int32_t rank : std::exchange(away_, {}))
    if (!vacant_.contains(rank)) lost_.insert(rank);
}

/// The clock and the loss are one node's, so that they fit each other.
bool JobRecord::leads(std::int32_t node) const {
  return std::all_of(workers_.begin(), workers_.end(), [&](const auto& each) {
    const std::int32_t its = std::max(each.second.node, 0);  // Of one that is not known the first.
    return its >= node || lost_nodes_.contains(its);
  });
}

void JobRecord::on_progress(const json& event) {
  const std::int32_t node = event.value("node", 0);
  const double clock = event.value("clock_s", 0.0);
  if (event.contains("counters")) counters_[node] = event["counters"];
  update_ = std::max(update_, event.value("update", update_));
  period_ = event.value("period", period_);
  if (leads(node)) {
    clock_s_ = std::max(clock_s_, clock);
    loss_ = loss_of(event, loss_);
    const auto update = event.value("update", std::int64_t{0});
    if (update > 0 && (losses_.empty() || update > losses_.back().update)) losses_.push_back({update, clock, loss_});
    step_s_ = event.value("step_s", step_s_);
  }
  for (const auto& row : event.value("workers", json::array())) {
    const auto known = workers_.find(row.value("rank", -1));
    if (known == workers_.end()) continue;
    auto& worker = known->second;
    if (worker.node == kNotKnown) worker.node = node;
    auto& done = done_[worker.rank];
    if (done.empty()) done.push_back({worker.node});
    count(done, node, row);
    worker.samples = 0;
    worker.wait_s = 0;
    for (const Done& each : done) {
      worker.samples += each.samples;
      worker.wait_s += each.wait_s;
    }
    if (worker.node != node) continue;  // Its place is another's by now, or will be.
    worker.step = row.value("step", worker.step);
    worker.state = row.value("state", worker.state);
    worker.left = worker.left || worker.state == "left";
    auto& mark = marks_[worker.rank];
    if (clock > mark.clock_s)
      worker.samples_per_s = static_cast<double>(worker.samples - mark.samples) / (clock - mark.clock_s);
    if (clock - mark.clock_s > kRateWindow) mark = {clock, worker.samples};
  }
}

/// A node may tell of a place that is another's by now.
void JobRecord::count(std::vector<Done>& done, std::int32_t node, const json& row) {
  const auto last = std::find_if(done.rbegin(), done.rend(), [node](const Done& each) { return each.node == node; });
  if (last == done.rend()) return;
  last->samples = row.value("samples", last->samples);
  last->wait_s = row.value("wait_s", last->wait_s);
}

std::int64_t JobRecord::samples() const {
  std::int64_t sum = 0;
  for (const auto& [rank, worker] : workers_) sum += worker.samples;
  return sum;
}

double JobRecord::samples_per_s() const { return clock_s_ > 0 ? static_cast<double>(samples()) / clock_s_ : 0; }

std::optional<double> JobRecord::time_to_target_s() const {
  if (!target_) return std::nullopt;
  for (const auto& evaluation : evaluations_)
    if (reaches(metric_, evaluation.value, *target_)) return evaluation.clock_s;
  return std::nullopt;
}

std::vector<std::pair<std::string, double>> JobRecord::logged() const {
  std::vector<std::pair<std::string, double>> means;
  for (const auto& name : logged_names_) {
    const auto& values = logged_.at(name);
    double sum = 0;
    for (const auto& [rank, value] : values) sum += value;
    means.emplace_back(name, sum / static_cast<double>(values.size()));
  }
  return means;
}

std::optional<Evaluation> JobRecord::best() const {
  std::optional<Evaluation> best;
  for (const auto& evaluation : evaluations_)
    if (!best || is_better(metric_, evaluation.value, best->value)) best = evaluation;
  return best;
}

json JobRecord::result() const {
  double wait = 0;
  std::vector<double> waits;
  for (const auto& [rank, worker] : workers_) {
    wait += worker.wait_s;
    waits.push_back(worker.wait_s);
  }
  const auto to_target = time_to_target_s();
  json result{{"event", "result"},
              {"strategy", strategy_},
              {"time_to_target_s", to_target ? json(*to_target) : json(nullptr)},
              {"samples_per_s", samples_per_s()},
              {"step_s", step_s_},
              {"wait_s", wait},
              {"wait_s_per_worker", waits},
              {"group_averages", sum_of(counters_, "group_averages")},
              {"global_averages", most_of(counters_, "global_averages")},
              {"skipped_steps", sum_of(counters_, "skipped")},
              {"late_merges", sum_of(counters_, "late_merges")},
              {"abandoned_batches", sum_of(counters_, "abandoned_bodies")},
              {"updates", update_},
              {"samples", samples()},
              {"samples_per_update",
               update_ > 0 ? json(static_cast<double>(samples()) / static_cast<double>(update_)) : json(nullptr)},
              {"train_s", clock_s_},
              {"loss", loss_}};
  auto& metric = result["metric"] = to_json(metric_);
  metric["value"] = evaluations_.empty() ? json(nullptr) : json(evaluations_.back().value);
  if (metric_.name == "accuracy") result["test_accuracy"] = metric["value"];
  if (const auto best = this->best()) {
    metric["best"] = best->value;
    metric["best_update"] = best->update;
  }
  for (const auto& [name, mean] : logged()) result["logged"][name] = mean;
  for (const auto& [rank, model] : models_) result["models"][std::to_string(rank)] = model;
  if (!files_.empty()) result["files"] = files_;
  if (auto rows = ledger(); !rows.empty()) result["ledger"] = std::move(rows);
  if (!changes_.empty()) result["changes"] = changes_;
  if (failure_) result["failure"] = *failure_;
  std::set<std::int32_t> left;
  std::set_difference(left_.begin(), left_.end(), vacant_.begin(), vacant_.end(), std::inserter(left, left.end()));
  if (!left.empty()) result["left"] = left;
  if (!vacant_.empty()) result["vacant"] = vacant_;
  if (!lost_.empty()) result["lost"] = lost_;
  for (const auto& [name, all] : {std::pair{"returned", returns_}, {"joined", joins_}, {"drained", drains_}})
    for (const auto& [rank, times] : all) result[name][std::to_string(rank)] = times;
  return result;
}

}  // namespace paceline::job
