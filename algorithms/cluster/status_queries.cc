#include "algorithms/cluster/status_queries.h"

#include <utility>
#include <vector>

#include "algorithms/cluster/requests.h"
#include "algorithms/cluster/training/logged_values.h"
#include "algorithms/cluster/training/recent_changes.h"
#include "algorithms/job/sample_ledger.h"
#include "runtime/base/contained.h"
#include "runtime/base/readable.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;

constexpr Duration kStatusPatience = std::chrono::milliseconds(80);
constexpr Duration kListPatience = std::chrono::seconds(4);
constexpr Duration kMissingPatience = std::chrono::milliseconds(200);  // For nodes that are about to register.
/// What `status` may ask for, and what agents call it.
constexpr std::pair<const char*, const char*> kLists[] = {
    {"actors", "actors"}, {"workers", "worker_list"}, {"tasks", "tasks"}, {"spans", "spans"}};

}  // namespace

void StatusQueries::start(std::uint64_t number, const HeadLinks::Asker& asker, const json& body, Instant now) {
  const bool missing = !links_.are_all_here();
  const auto patience = body.value("patient", false) ? kListPatience : missing ? kMissingPatience : kStatusPatience;
  queries_[number] = {asker, body, {}, now + patience};
  for (const auto& [node, entry] : links_.nodes()) ask(entry.peer, number);
}

void StatusQueries::ask(const transport::Peer& agent, std::uint64_t number) {
  wire::Message message;
  write_request(message, kNodeStatusVerb, queries_.at(number).body, number);
  links_.send(agent, message);
}

void StatusQueries::finish(std::uint64_t number, Instant now) {
  const auto node = queries_.extract(number);
  if (node.empty()) return;
  const auto& query = node.mapped();
  json status;
  const auto made = contained([&] { status = status_of(query, now); });
  links_.reply(query.asker, made ? Result<json>(std::move(status)) : tl::unexpected(made.error()));
}

json StatusQueries::status_of(const Query& query, Instant now) const {
  json status{
      {"name", cluster_}, {"nodes_expected", links_.expected()}, {"nodes", json::array()}, {"jobs", json::array()}};
  for (const auto& [list, its_name] : kLists)
    if (query.body.contains(list)) status[list] = json::array();
  std::map<std::uint64_t, json> jobs;
  std::map<std::uint64_t, job::SampleLedger> ledgers;
  for (const auto& [node_id, entry] : links_.nodes()) {
    json row{{"node", node_id.value},
             {"pid", entry.pid},
             {"cpus", entry.cpus},
             {"memory", entry.memory},
             {"address", entry.address},
             {"answers", false},
             {"starts", jobs_.state().starts(node_id)},
             {"drained", jobs_.state().is_drained(node_id)}};
    if (const auto it = query.answers.find(node_id); it != query.answers.end() && it->second.is_object()) {
      row["answers"] = true;
      row["workers"] = it->second.value("workers", 0);
      row["rss"] = it->second.value("rss", std::int64_t{0});
      for (const char* name : {"longest_turn_s", "longest_turn_cpu_s", "cpus_free", "memory_free", "memory_used"})
        row[name] = it->second.value(name, 0.0);
      row["actors"] = it->second.value("actors_alive", 0);
      for (const char* name : {"held", "machine", "clock_ns", "spans_left_out"})
        if (it->second.contains(name)) row[name] = it->second[name];
      for (const auto& [list, its_name] : kLists)
        for (auto& one : it->second.value(its_name, json::array())) status[list].push_back(std::move(one));
      for (const auto& part : it->second.value("jobs", json::array())) {
        auto& job = jobs[part.value("job", std::uint64_t{0})];
        if (part.contains("ledger"))
          ledgers[part.value("job", std::uint64_t{0})].on_event({{"event", "progress"}, {"ledger", part["ledger"]}});
        if (job.is_null()) {
          job = part;
        } else {
          for (const auto& worker : part.value("workers", json::array())) job["workers"].push_back(worker);
          for (const char* name : {"waiting", "evaluation"})
            if (part.contains(name) && !job.contains(name)) job[name] = part[name];
          if (part.contains("changes"))
            job["changes"] = RecentChanges::of_both(job.value("changes", json()), part["changes"]);
          if (part.contains("logged"))
            job["logged"] = LoggedValues::newest_of(job.value("logged", json()), part["logged"]);
        }
      }
    }
    status["nodes"].push_back(row);
  }
  for (auto& [id_of_job, job] : jobs) {
    if (const auto ledger = ledgers.find(id_of_job); ledger != ledgers.end()) job["ledger"] = ledger->second.rows();
    if (const JobEntry* const known = jobs_.directory().find(JobId{id_of_job})) {
      job["age_s"] = seconds(now - known->since);
      job["script"] = known->options.program;
      job["run_directory"] = known->options.run_directory;
    }
    status["jobs"].push_back(std::move(job));
  }
  if (query.body.contains("jobs_over")) status["jobs_over"] = jobs_.state().jobs_over();
  if (!jobs_.state().problem().empty()) status["problem"] = jobs_.state().problem();
  if (status.contains("workers")) name_awaited(status["workers"]);
  return status;
}

/// An agent does not know what actors of other nodes are called.
void StatusQueries::name_awaited(json& workers) const {
  std::map<std::string, std::string> name_of;
  for (const auto& [name, claim] : names_.names()) name_of.emplace(to_string(claim.actor), name);
  for (json& worker : workers) {
    if (!worker.is_object() || !worker.value("awaited", json()).is_string()) continue;
    if (const auto named = name_of.find(worker["awaited"]); named != name_of.end())
      worker["waits_for"] = "actor '" + readable(named->second) + "'";
  }
}

void StatusQueries::on_registered(const transport::Peer& agent) {
  for (const auto& [number, query] : queries_) ask(agent, number);
}

void StatusQueries::on_answer(std::uint64_t number, NodeId node, json said, Instant now) {
  const auto query = queries_.find(number);
  if (query == queries_.end()) return;
  query->second.answers[node] = std::move(said);
  if (static_cast<std::int32_t>(query->second.answers.size()) >= links_.expected()) finish(number, now);
}

void StatusQueries::tick(Instant now) {
  std::vector<std::uint64_t> late;
  for (const auto& [number, query] : queries_)
    if (now >= query.deadline) late.push_back(number);
  for (const std::uint64_t number : late) finish(number, now);
}

std::optional<Instant> StatusQueries::next_deadline() const {
  std::optional<Instant> deadline;
  for (const auto& [number, query] : queries_) deadline = earlier(deadline, query.deadline);
  return deadline;
}

}  // namespace paceline::cluster
