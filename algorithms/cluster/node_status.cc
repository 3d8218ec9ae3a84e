#include "algorithms/cluster/node_status.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "actors/process_ids.h"
#include "runtime/base/json.h"
#include "runtime/base/readable.h"
#include "runtime/process/this_machine.h"
#include "runtime/store/memory_room.h"

namespace paceline::cluster {
namespace {

using actors::number_on_node;
using nlohmann::json;
using WorkerView = actors::ActorRouter::WorkerView;

/// Of what a cluster's agents answer together of what workers have run: less than a message takes.
constexpr std::size_t kSpansTextMax = std::size_t{32} << 20;

/// Of a worker for tasks, or of an actor's.
const char* state_of(const WorkerView& worker, bool is_frozen) {
  if (worker.ending) return "ending";
  if (!worker.ready) return "starting";
  if (is_frozen) return "frozen";
  if (worker.waits) return "waiting";
  if (worker.actor.value != 0) return worker.constructed ? "actor" : "constructing";
  return worker.lent ? "lent" : "idle";
}

/// 1.1f is 1.1, and no 1.10000002.
double cpus_of(const actors::Shape& shape) { return std::round(double{shape.cpus} * 1e6) / 1e6; }

json node_or_null(NodeId node) { return node.value < 0 ? json() : json(node.value); }

}  // namespace

void NodeStatus::answer(std::uint64_t query, const json& asked) {
  const Instant now = of_.clock.now();
  const auto longest = of_.loop.take_longest_turns();
  const auto workers = of_.router.workers();
  json status{{"workers", of_.workers.processes().size()},
              {"actors_alive", std::count_if(workers.begin(), workers.end(),
                                             [](const WorkerView& worker) { return !worker.owner.empty(); })},
              {"cpus_free", std::max(0.0, std::round(of_.router.free().cpus * 1e6) / 1e6)},
              {"memory_free", std::max(0.0, of_.router.free().memory)},
              {"memory_used", of_.memory.used()},
              {"rss", store::resident_bytes(::getpid())},
              {"machine", process::this_machine()},
              {"longest_turn_s", seconds(longest.wall)},
              {"longest_turn_cpu_s", seconds(longest.processor)},
              {"jobs", of_.jobs.status(now)}};
  const auto which = [&](const char* name) { return asked.is_object() ? asked.value(name, "") : std::string(); };
  if (const auto actors = which("actors"); !actors.empty()) status["actors"] = actors_view(actors, now);
  if (const auto listed = which("workers"); !listed.empty())
    status["worker_list"] = workers_view(listed, !which("running").empty(), now);
  if (!which("tasks").empty()) {
    status["tasks"] = tasks_view(now);
    status["held"] = holds_view(now);
  }
  if (which("spans").empty()) return head_.answer(query, status);
  answer_with_spans(query, std::move(status));
}

/// Copied beside the loop.
void NodeStatus::answer_with_spans(std::uint64_t query, json status) {
  struct Work {
    std::vector<WorkerSpans::Source> sources;
    json status;
  };
  status["clock_ns"] = std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1) -
                       of_.clock.now().time_since_epoch().count();
  auto work = std::make_shared<Work>(Work{of_.workers.spans().sources(), std::move(status)});
  of_.beside(
      [work, node = of_.node, clock = &of_.clock,
       room = kSpansTextMax / static_cast<std::size_t>(of_.nodes())]() -> Result<void> {
        std::size_t bytes = 0;
        json spans = json::array();
        std::size_t left_out = 0;
        for (const auto& source : work->sources) {
          auto copy = WorkerSpans::copy(source);
          bytes += copy.head.size() + copy.names.size() + copy.over.size();
          if (bytes > room) {
            ++left_out;
            continue;
          }
          spans.push_back({{"node", node.value},
                           {"worker", number_on_node(source.worker)},
                           {"pid", source.label.pid},
                           {"driver", readable(source.label.driver)},
                           {"name", readable(source.label.name)},
                           {"class", readable(source.label.type)},
                           {"ended", source.ended.has_value()},
                           {"now_ns", source.ended.value_or(clock->now()).time_since_epoch().count()},
                           {"head", std::move(copy.head)},
                           {"names", std::move(copy.names)},
                           {"over", std::move(copy.over)}});
        }
        work->status["spans"] = std::move(spans);
        work->status["spans_left_out"] = left_out;
        return {};
      },
      [this, query, work](const Result<void>&) { head_.answer(query, work->status); });
}

/// An id is text: many readers of JSON have no integers of 64 bits.
json NodeStatus::actors_view(const std::string& which, Instant now) const {
  json views = json::array();
  for (const auto& worker : of_.router.workers()) {
    if (worker.actor.value == 0 || worker.owner.empty() || (which == "detached" && !worker.detached)) continue;
    const char* const state = !worker.ready ? "starting" : !worker.constructed ? "constructing" : "alive";
    views.push_back({{"id", to_string(worker.actor)},
                     {"name", readable(worker.actor_name)},
                     {"class", readable(worker.type)},
                     {"node", of_.node.value},
                     {"pid", of_.workers.processes().pid(worker.worker)},
                     {"state", state},
                     {"owner", worker.detached ? "" : readable(worker.owner)},
                     {"detached", worker.detached},
                     {"calls", worker.calls},
                     {"queued", worker.queued},
                     {"restarts", worker.restarts},
                     {"restarts_max", worker.restarts_max},
                     {"age_s", seconds(now - worker.started)},
                     {"log", readable(of_.workers.processes().log(worker.worker))}});
  }
  return views;
}

json NodeStatus::workers_view(const std::string& which, bool running, Instant now) const {
  json views = json::array();
  for (const auto& worker : of_.router.workers()) {
    if (which == "waiting" && !worker.waits) continue;
    const bool is_actor = !worker.owner.empty();
    const ActorId awaited = worker.waits ? of_.router.actor_awaited(*worker.waits) : ActorId{};
    json view{{"id", to_string(worker.worker)},
              {"worker", number_on_node(worker.worker)},
              {"node", of_.node.value},
              {"pid", of_.workers.processes().pid(worker.worker)},
              {"state", state_of(worker, of_.workers.processes().state(worker.worker) == 'T')},
              {"driver", readable(worker.root)},
              {"owner", worker.lent ? json(readable(worker.lent->owner.name)) : json()},
              {"cpus", worker.lent ? json(cpus_of(worker.lent->shape)) : json()},
              {"memory_used", of_.memory.used_by(worker.worker)},
              {"memory", worker.lent ? json(worker.lent->shape.memory) : json()},
              {"on", worker.lent ? node_or_null(worker.lent->shape.node) : json()},
              {"spread", worker.lent ? json(worker.lent->shape.spread) : json()},
              {"lent_s", worker.lent ? json(seconds(now - worker.lent_since)) : json()},
              {"actor", is_actor ? json(to_string(worker.actor)) : json()},
              {"actor_name", is_actor ? json(readable(worker.actor_name)) : json()},
              {"class", is_actor ? json(readable(worker.type)) : json()},
              {"awaited", awaited.value != 0 ? json(to_string(awaited)) : json()},
              {"waits_for", worker.waits ? json(readable(of_.router.describe_awaited(*worker.waits))) : json()},
              {"waits_s", worker.waits ? json(seconds(now - worker.waits_since)) : json()},
              {"age_s", seconds(now - worker.started)},
              {"log", readable(of_.workers.processes().log(worker.worker))}};
    if (is_actor && !worker.detached) view["owner"] = readable(worker.owner);
    if (running) {
      auto copy = of_.workers.spans().running(worker.worker);
      view["spans"] = {
          {"head", std::move(copy.head)}, {"names", std::move(copy.names)}, {"now_ns", now.time_since_epoch().count()}};
    }
    views.push_back(std::move(view));
  }
  return views;
}

/// Of owners of this node: each is told of by its own agent, with what it has from all nodes.
json NodeStatus::tasks_view(Instant now) const {
  json views = json::array();
  for (const auto& want : of_.router.wants()) {
    const std::uint32_t missing = want.wanted > want.lent ? want.wanted - want.lent : 0;
    views.push_back({{"owner", readable(want.owner.name)},
                     {"node", of_.node.value},
                     {"driver", readable(want.root)},
                     {"program", readable(of_.router.program_of(want.owner.name, want.root))},
                     {"state", missing > 0 ? "waiting" : "served"},
                     {"cpus", cpus_of(want.shape)},
                     {"memory", want.shape.memory},
                     {"on", node_or_null(want.shape.node)},
                     {"spread", want.shape.spread},
                     {"lent", want.lent},
                     {"missing", missing},
                     {"waits_s", want.lacking ? json(seconds(now - *want.lacking)) : json()}});
  }
  return views;
}

json NodeStatus::holds_view(Instant now) const {
  json views = json::array();
  for (const auto& hold : of_.router.holds())
    views.push_back({{"owner", readable(hold.owner.name)},
                     {"owner_node", hold.owner.node.value},
                     {"workers", hold.workers},
                     {"cpus", std::round(hold.holds.cpus * 1e6) / 1e6},
                     {"memory", hold.holds.memory},
                     {"since_s", seconds(now - hold.since)}});
  return views;
}

}  // namespace paceline::cluster
