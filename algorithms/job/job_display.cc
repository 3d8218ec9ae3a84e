#include "algorithms/job/job_display.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include "actors/shown_output.h"
#include "algorithms/job/job_summary.h"
#include "algorithms/job/metric.h"
#include "runtime/base/json.h"
#include "runtime/base/steady_now.h"
#include "runtime/observe/format.h"
#include "runtime/observe/progress.h"

namespace paceline::job {
namespace {

using nlohmann::json;

constexpr double kFirstWaitingLine = 2;  // Seconds.
constexpr double kWaitingLineEvery = 10;
constexpr Duration kOutputAtATime = std::chrono::milliseconds(50);  // Of a flood: then progress has its turn.
constexpr double kFirstLine = 1;  // Seconds of training, or the first update: what fails before has its error only.

observe::RunView view_of(const JobRecord& record, const Options& options) {
  observe::RunView view;
  view.strategy = record.changed_to().empty() ? options.name() : record.changed_to();
  view.update = record.update();
  view.updates = record.updates();
  if (record.updates() > 0 && options.epochs > 0) {
    view.epochs = static_cast<int>(std::ceil(options.epochs));
    view.epoch = std::min(view.epochs, 1 + static_cast<int>(options.epochs * static_cast<double>(record.update()) /
                                                            static_cast<double>(record.updates())));
  }
  view.samples_per_s = record.samples_per_s();
  if (record.update() > 0) view.loss = record.loss();
  if (!record.evaluations().empty())
    view.metric = record.metric().name + " " + text(record.metric(), record.evaluations().back().value);
  view.logged = record.logged();
  view.elapsed = from_seconds(record.clock_s());
  if (record.update() > 0 && record.updates() > record.update()) {
    view.eta = from_seconds(record.clock_s() * static_cast<double>(record.updates() - record.update()) /
                            static_cast<double>(record.update()));
  }
  for (const auto& [rank, worker] : record.workers()) {
    observe::WorkerView row;
    row.rank = Rank{rank};
    row.node = NodeId{worker.node};
    row.step = worker.step;
    row.samples_per_s = worker.samples_per_s;
    row.state = record.is_vacant(rank) ? "vacant" : worker.left ? "left" : worker.state;
    row.lag = std::max<std::int64_t>(0, record.update() - worker.step);
    view.workers.push_back(std::move(row));
  }
  return view;
}

}  // namespace

struct JobDisplay::State {
  State(const Options& given, actors::DriverOutput& printed)
      : options(given),
        as_json(given.json),
        output(printed),
        colour(actors::wants_colour(as_json ? STDERR_FILENO : STDOUT_FILENO)) {
    output.divert(true);
  }
  ~State() { output.divert(false); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const Options options;
  const bool as_json;
  actors::DriverOutput& output;
  const bool colour;
  std::optional<observe::LiveBlock> live;
  std::optional<observe::PlainLines> plain;
  std::string memory;  // A line of windows; empty: it is not known yet, or has been shown.
  bool memory_told = false;
  std::map<int, double> starting_due;  // By node: when it is said next that workers have not shared their models.

  void print(const std::string& text) {
    if (as_json) {
      std::fprintf(stderr, "%s\n", text.c_str());
    } else if (live) {
      live->print(text);
    } else {
      plain->print(text);
    }
  }

  /// Who is waited for before training can begin: after two seconds, and then every ten.
  void show_starting(const json& starting, int node) {
    const double since = starting.value("since_s", 0.0);
    const auto due = starting_due.try_emplace(node, kFirstWaitingLine).first;
    if (since < due->second) return;
    due->second = since + kWaitingLineEvery;
    std::string names;
    const auto workers = starting.value("workers", std::vector<int>());
    for (const int rank : workers) names += (names.empty() ? "" : ", ") + std::to_string(rank);
    const bool one = workers.size() == 1;
    print(observe::format("waiting for worker%s %s to share %s, %.0f s so far", one ? "" : "s", names.c_str(),
                          one ? "its model" : "their models", since));
  }

  /// The next of workers' output that comes within `wait`; false: nothing has, or it was the end of what was asked for.
  bool show_next(Duration wait) {
    const auto next = output.take(wait);
    if (!next) return false;
    const auto text = actors::shown(*next, colour);
    if (as_json) {
      std::fwrite(text.data(), 1, text.size(), stderr);  // Bytes as they are.
    } else if (!text.empty()) {
      print(text);
    }
    output.on_taken_shown(*next);
    return !next->all;
  }
};

JobDisplay::JobDisplay(const Options& options, actors::DriverOutput& output)
    : state_(std::make_unique<State>(options, output)) {
  if (state_->as_json) return;
  if (observe::is_live_terminal(STDOUT_FILENO)) {
    state_->live.emplace(STDOUT_FILENO);
  } else {
    state_->plain.emplace(STDOUT_FILENO);
  }
}

JobDisplay::~JobDisplay() = default;

void JobDisplay::on_event(const json& event) {
  const auto kind = event.value("event", "");
  if (state_->as_json) {
    std::printf("%s\n", json_text(event).c_str());
    std::fflush(stdout);
    return;
  }
  if (kind == "left" || kind == "returned" || kind == "scale" || kind == "drain" || kind == "changed" ||
      kind == "node_joined")
    state_->print(event.value("text", ""));  // Why it failed is said at the end.
  if (kind == "warning") warn(event.value("text", ""));
  if (kind == "progress" && event.contains("starting"))
    state_->show_starting(event["starting"], event.value("node", 0));
  if (kind == "memory" && !std::exchange(state_->memory_told, true)) {
    char text[200];
    std::snprintf(text, sizeof text, "windows: %.1f MiB a worker, %.1f MiB a node",
                  event.value("bytes_worker", 0.0) / 1048576, event.value("bytes_node", 0.0) / 1048576);
    state_->memory = text;
  }
}

void JobDisplay::show(const JobRecord& record, Instant now, bool last) {
  const Instant others_turn = steady_now() + kOutputAtATime;
  while (state_->show_next(Duration::zero()) && steady_now() < others_turn) continue;
  if (state_->as_json) return;
  if (record.update() == 0 && (record.failure() || record.clock_s() < kFirstLine)) return;
  if (!state_->memory.empty()) state_->print(std::exchange(state_->memory, ""));
  const auto view = view_of(record, state_->options);
  if (last) {
    state_->live ? state_->live->finish(view) : state_->plain->finish(view);
  } else {
    state_->live ? state_->live->show(view, now) : state_->plain->show(view, now);
  }
}

void JobDisplay::show_all_output(Duration patience) {
  const Instant deadline = steady_now() + patience;
  if (patience <= Duration::zero() || !state_->output.ask_for_all()) return;
  while (state_->show_next(deadline - steady_now()) && steady_now() < deadline) continue;
}

void JobDisplay::warn(const std::string& text) { state_->print("warning: " + text); }

void JobDisplay::conclude(const JobRecord& record, const json& result, bool interrupted, const std::string& checkpoint,
                          const std::string& run_directory) {
  if (state_->as_json) {
    std::printf("%s\n", json_text(result).c_str());
    std::fflush(stdout);
  } else {
    if (record.update() > 0)
      for (const auto& line : summary_of(record)) state_->print(line);
    state_->print("run directory: " + run_directory);
  }
  if (result.contains("failure")) std::fprintf(stderr, "paceline: %s\n", result["failure"].get<std::string>().c_str());
  if (!interrupted) return;
  const std::string text = checkpoint.empty() ? "interrupted before the first checkpoint was written"
                                              : "interrupted; the last checkpoint is " + checkpoint +
                                                    " (go on with --resume " + run_directory + ")";
  std::fprintf(stderr, "paceline: %s\n", text.c_str());
}

}  // namespace paceline::job
