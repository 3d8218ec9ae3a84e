#include "algorithms/cluster/cluster_state.h"

#include <algorithm>
#include <utility>

#include "runtime/base/json.h"
#include "runtime/base/read_number.h"
#include "runtime/base/readable.h"
#include "runtime/observe/format.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;

constexpr const char* kJob = "job/";
constexpr const char* kNode = "node/";
constexpr const char* kRunning = "running";
constexpr std::size_t kTextMax = 1024;

double unix_seconds(ClusterState::Wall at) {
  return std::chrono::duration_cast<std::chrono::duration<double>>(at.time_since_epoch()).count();
}

std::string key_of(JobId job) { return kJob + std::to_string(job.value); }

}  // namespace

ClusterState::ClusterState(std::shared_ptr<store::StateStore> store) : store_(std::move(store)) {
  if (!store_) return;
  const auto found = store_->read("");
  if (!found) {
    problem_ = found.error().text;
    return;
  }
  for (const auto& [key, text] : *found) {
    auto record = parse_json(text);
    if (!record.is_object()) continue;
    const std::size_t slash = key.find('/') + 1;
    const std::string_view kind = std::string_view(key).substr(0, slash), number = std::string_view(key).substr(slash);
    if (const auto job = kind == kJob ? read_number<std::uint64_t>(number) : std::nullopt)
      jobs_.emplace(JobId{*job}, std::move(record));
    else if (const auto node = kind == kNode ? read_number<std::int32_t>(number) : std::nullopt)
      nodes_.emplace(NodeId{*node}, std::move(record));
  }
}

void ClusterState::change(const std::string& key, const json& record) { changed_[key] = json_text(record); }

void ClusterState::on_registered(NodeId node, std::uint64_t incarnation, const std::string& address, Wall at) {
  json& record = nodes_.try_emplace(node, json::object()).first->second;
  if (record.value("incarnation", json()) == incarnation) return;
  record = {{"node", node.value},
            {"incarnation", incarnation},
            {"address", address},
            {"starts", starts(node) + 1},
            {"registered", observe::utc_text(at)}};
  change(kNode + to_string(node), record);
}

void ClusterState::on_drained(NodeId node) {
  json& record = nodes_.try_emplace(node, json::object()).first->second;
  record["drained"] = true;
  change(kNode + to_string(node), record);
}

bool ClusterState::is_drained(NodeId node) const {
  const auto record = nodes_.find(node);
  return record != nodes_.end() && record->second.value("drained", json()) == true;
}

std::int64_t ClusterState::starts(NodeId node) const {
  const auto record = nodes_.find(node);
  const json starts = record == nodes_.end() ? json() : record->second.value("starts", json());
  return starts.is_number_integer() ? starts.get<std::int64_t>() : 0;
}

void ClusterState::on_running(JobId job, const JobEntry& entry, Wall at) {
  const auto [found, is_new] = jobs_.try_emplace(job, json::object());
  if (!is_new) return;
  json nodes = json::array();
  for (const NodeId node : entry.node_of) nodes.push_back(node.value);
  found->second = {{"job", job.value},
                   {"state", kRunning},
                   {"strategy", entry.options.strategy},
                   {"script", entry.options.program},
                   {"run_directory", entry.options.run_directory},
                   {"driver", entry.driver.peer},
                   {"nodes", std::move(nodes)},
                   {"lost_nodes", json::array()},
                   {"began", observe::utc_text(at)},
                   {"began_unix_s", unix_seconds(at)}};
  change(key_of(job), found->second);
}

void ClusterState::on_node_lost(JobId job, NodeId node, const std::string& cause, Wall at) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  json& lost = found->second["lost_nodes"];
  if (!lost.is_array()) lost = json::array();
  const auto is_it = [&](const json& one) { return one.is_object() && one.value("node", json()) == node.value; };
  if (std::any_of(lost.begin(), lost.end(), is_it)) return;
  lost.push_back({{"node", node.value}, {"cause", cause}, {"at", observe::utc_text(at)}});
  change(key_of(job), found->second);
}

void ClusterState::on_node_back(JobId job, NodeId node) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || !found->second["lost_nodes"].is_array()) return;
  json left = json::array();
  for (const json& one : found->second["lost_nodes"])
    if (!one.is_object() || one.value("node", json()) != node.value) left.push_back(one);
  found->second["lost_nodes"] = std::move(left);
  change(key_of(job), found->second);
}

void ClusterState::take_figures(json& record, const json& outcome) {
  if (const auto metric = outcome.value("metric", json()); metric.is_string())
    record["metric"] = readable(first_of(metric.get_ref<const std::string&>(), kTextMax));
  for (const char* const name : {"updates", "samples", "train_s", "value"})
    if (const auto number = outcome.value(name, json()); number.is_number()) record[name] = number;
}

void ClusterState::take_end(json& record, const json& outcome) {
  record.erase("failure");
  for (const char* const name : {"state", "failure"})
    if (const auto text = outcome.value(name, json()); text.is_string())
      record[name] = readable(first_of(text.get_ref<const std::string&>(), kTextMax));
}

void ClusterState::end(JobId job, json& record, const json& outcome, Wall at) {
  take_end(record, outcome);
  take_figures(record, outcome);
  record["ended"] = observe::utc_text(at);
  if (const auto began = record.value("began_unix_s", json()); began.is_number())
    record["took_s"] = std::max(0.0, unix_seconds(at) - began.get<double>());
  change(key_of(job), record);
}

void ClusterState::on_closed(JobId job, const json& outcome, Wall at) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  const bool says_so =
      outcome.is_object() && outcome.value("state", json()).is_string() && outcome["state"] != kRunning;
  if (is_over(job)) {
    if (!outcome.is_object()) return;
    if (says_so) take_end(found->second, outcome);  // A head that had lost sight of it may have thought otherwise.
    take_figures(found->second, outcome);
    change(key_of(job), found->second);
    return void(flush());
  }
  end(job, found->second,
      says_so ? outcome : json{{"state", "failed"}, {"failure", "its driver ended before the job did"}}, at);
  forget_oldest();
  flush();
}

void ClusterState::lose_all_but(const std::set<JobId>& running, Wall at) {
  for (auto& [job, record] : jobs_)
    if (!is_over(job) && !running.contains(job))
      end(job, record, {{"state", "failed"}, {"failure", "its nodes were lost while the head was not there"}}, at);
  forget_oldest();
}

bool ClusterState::is_over(JobId job) const {
  const auto found = jobs_.find(job);
  return found != jobs_.end() && found->second.value("state", json()) != kRunning;
}

JobId ClusterState::newest() const { return jobs_.empty() ? JobId{0} : jobs_.rbegin()->first; }

json ClusterState::jobs_over() const {
  json rows = json::array();
  for (const auto& [job, record] : jobs_)
    if (is_over(job)) rows.push_back(record);
  return rows;
}

void ClusterState::forget_oldest() {
  auto over = static_cast<std::size_t>(
      std::count_if(jobs_.begin(), jobs_.end(), [this](const auto& job) { return is_over(job.first); }));
  for (auto job = jobs_.begin(); job != jobs_.end() && over > kJobsKept;) {
    if (!is_over(job->first)) {
      ++job;
      continue;
    }
    changed_[key_of(job->first)].clear();
    job = jobs_.erase(job);
    --over;
  }
}

bool ClusterState::flush() {
  if (!store_ || changed_.empty()) return true;
  const auto written = store_->write(changed_);
  problem_ = written ? "" : written.error().text;
  if (written) changed_.clear();
  return written.has_value();
}

void ClusterState::write(Instant now) {
  if (try_again_ && now < *try_again_) return;
  try_again_ = flush() ? std::nullopt : std::optional(now + kTryAgain);
}

}  // namespace paceline::cluster
