#include "cli/timeline_view.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "actors/callee_name.h"
#include "actors/concurrency.h"
#include "cli/cells.h"
#include "runtime/base/json.h"
#include "runtime/base/readable.h"
#include "runtime/observe/trace_event.h"

namespace paceline::cli {
namespace {

using nlohmann::json;
using observe::TraceTrack;

// So that sums of two times, and their differences, are times.
constexpr std::int64_t kClockMost = 4'000'000'000'000'000'000;
constexpr std::int64_t kNowMost = kClockMost / 2;

struct Worker {
  std::int64_t node = 0;
  std::int64_t number = 0;
  std::string who;  ///< "worker 3: Counter counter".
  bool is_actor = false;
  bool has_ended = false;
  std::int64_t clock_ns = 0;  ///< Of its node: of the day, less that of its spans.
  std::int64_t now_ns = 0;    ///< When they were read, or it ended, of their clock.
  std::vector<actors::Span> spans;
  std::uint64_t lost = 0;
};

/// Of what may be anything: from 0 to `most`.
std::int64_t whole(const json& object, const char* name, std::int64_t most) {
  const json value = object.value(name, json());
  if (value.is_number_unsigned())
    return static_cast<std::int64_t>(std::min(value.get<std::uint64_t>(), static_cast<std::uint64_t>(most)));
  return value.is_number_integer() ? std::clamp(value.get<std::int64_t>(), std::int64_t{0}, most) : 0;
}

std::string who_runs(const json& worker) {
  const auto own = cell(worker, "name");
  std::string name = own == "tasks" ? own : actors::plain_name(cell(worker, "class"));
  if (name.empty() || name == "-") name = "actor";
  if (own != "tasks" && !own.empty() && own != "-") name += " " + own;
  return "worker " + cell(worker, "worker") + ": " + name + (worker.value("ended", json()) == true ? " (ended)" : "");
}

/// Those that lie in the future are nonsense.
Worker read(const json& worker, std::int64_t clock_ns) {
  auto read = spans_in(worker);
  auto spans = std::move(read.over);
  spans.insert(spans.end(), read.running.begin(), read.running.end());
  const auto now = whole(worker, "now_ns", kNowMost);
  std::erase_if(spans, [&](const actors::Span& span) { return span.began_ns > now || span.ended_ns > now; });
  return {whole(worker, "node", 1 << 30),
          whole(worker, "worker", std::int64_t{1} << 32),
          who_runs(worker),
          cell(worker, "name") != "tasks",
          worker.value("ended", json()) == true,
          clock_ns,
          now,
          std::move(spans),
          read.lost};
}

std::vector<Worker> workers_in(const json& status) {
  std::map<std::int64_t, std::int64_t> clocks;
  for (const json& node : list(status, "nodes"))
    if (node.is_object()) clocks[whole(node, "node", 1 << 30)] = whole(node, "clock_ns", kClockMost);
  std::vector<Worker> workers;
  for (const json& worker : list(status, "spans"))
    if (worker.is_object()) workers.push_back(read(worker, clocks[whole(worker, "node", 1 << 30)]));
  std::erase_if(workers, [](const Worker& worker) { return worker.spans.empty(); });
  return workers;
}

class Writer {
 public:
  /// `since_ns`: the time of day that is 0 in the trace.
  Writer(std::int64_t since_ns, const NameOf& name_of, const std::function<void(std::string_view)>& write)
      : since_ns_(since_ns), name_of_(name_of), write_(write) {}

  void add(const Worker& worker) {
    std::set<std::uint32_t> threads;
    for (const auto& span : worker.spans)
      if (threads.insert(span.thread).second) name_track(worker, span.thread);
    for (const auto& span : worker.spans) add(worker, span);
  }

 private:
  /// Threads have numbers of their own in each worker, tracks in each node.
  static TraceTrack track_of(const Worker& worker, std::uint32_t thread) {
    constexpr int kThreads = actors::Concurrency::kThreadsMax;
    return {worker.node, worker.number * kThreads + thread % kThreads};
  }
  void name_track(const Worker& worker, std::uint32_t thread) {
    const auto track = track_of(worker, thread);
    observe::write_track_name(line_, track, "process_name", "node " + std::to_string(worker.node));
    write_(line_);
    observe::write_track_name(line_, track, "thread_name",
                              worker.who + (thread == 0 ? "" : ", thread " + std::to_string(thread)));
    write_(line_);
  }
  void add(const Worker& worker, const actors::Span& span) {
    const auto track = track_of(worker, span.thread);
    const char* const category = span.task.value == 0 ? "constructor" : worker.is_actor ? "call" : "task";
    const bool runs = span.ended_ns == 0;
    auto name = name_of_(span.name);
    if (name.empty()) name = "unknown";
    json args{{"worker", worker.number}, {"failed", span.failed || (runs && worker.has_ended)}};
    if (span.task.value != 0) args["task"] = to_string(span.task);
    if (!span.owner.empty()) args["owner"] = readable(span.owner);
    if (runs) args[worker.has_ended ? "died" : "runs"] = true;
    const auto at = [&](std::int64_t ns) { return Instant(Duration(ns + worker.clock_ns - since_ns_)); };
    const Instant begin = at(span.began_ns);
    const Instant end = at(runs ? worker.now_ns : span.ended_ns);
    if (!span.coroutine) {
      observe::write_span(line_, track, category, name, begin, end, json_text(args));
      return write_(line_);
    }
    ++coroutines_;
    observe::write_span_end(line_, true, track, category, name, coroutines_, begin, json_text(args));
    write_(line_);
    observe::write_span_end(line_, false, track, category, name, coroutines_, end, "");
    write_(line_);
  }

  const std::int64_t since_ns_;
  const NameOf& name_of_;
  const std::function<void(std::string_view)>& write_;
  std::string line_;
  std::uint64_t coroutines_ = 0;
};

std::string counted(std::uint64_t number, const char* what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

}  // namespace

TimelineFigures write_timeline(const json& status, const NameOf& name_of,
                               const std::function<void(std::string_view event)>& write) {
  const auto workers = workers_in(status);
  std::optional<std::int64_t> first;
  for (const Worker& worker : workers)
    for (const auto& span : worker.spans)
      first = std::min(first.value_or(span.began_ns + worker.clock_ns), span.began_ns + worker.clock_ns);
  TimelineFigures figures;
  Writer writer(first.value_or(0), name_of, write);
  for (const Worker& worker : workers) {
    writer.add(worker);
    ++figures.workers;
    figures.spans += worker.spans.size();
    figures.lost += worker.lost;
  }
  for (const json& node : list(status, "nodes"))
    if (node.is_object()) figures.left_out += static_cast<std::size_t>(whole(node, "spans_left_out", 1 << 30));
  return figures;
}

std::string timeline_text(const std::string& file, const TimelineFigures& figures) {
  std::string text = file + ": " + counted(figures.spans, "call") + " of " + counted(figures.workers, "worker");
  if (figures.lost > 0) text += ", " + counted(figures.lost, "older one") + " are not kept";
  if (figures.left_out > 0) text += ", " + counted(figures.left_out, "worker") + " left out: too many";
  return text + "; open it in https://ui.perfetto.dev\n";
}

json timeline_json(const std::string& file, const TimelineFigures& figures) {
  return {{"file", file},
          {"calls", figures.spans},
          {"workers", figures.workers},
          {"lost", figures.lost},
          {"workers_left_out", figures.left_out}};
}

}  // namespace paceline::cli
