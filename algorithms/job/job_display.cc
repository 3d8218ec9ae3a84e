#include "algorithms/job/job_display.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "actors/driver_output.h"
#include "algorithms/job/job_summary.h"
#include "algorithms/job/metric.h"
#include "runtime/base/json.h"
#include "runtime/observe/format.h"
#include "runtime/observe/progress.h"

namespace paceline::job {
namespace {

using nlohmann::json;

constexpr double kFirstWaitingLine = 2;  // Seconds.
constexpr double kWaitingLineEvery = 10;
constexpr double kFirstLine = 1;  // Seconds of training, or the first update: what fails before has its error only.

observe::RunView view_of(const JobRecord& record, const json& options) {
  observe::RunView view;
  view.strategy = options.value("label", options.value("strategy", ""));
  view.update = record.update();
  view.updates = record.updates();
  const double epochs = options.value("epochs", 0.0);
  if (record.updates() > 0 && epochs > 0) {
    view.epochs = static_cast<int>(std::ceil(epochs));
    view.epoch = std::min(view.epochs, 1 + static_cast<int>(epochs * static_cast<double>(record.update()) /
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
    row.state = worker.left ? "left" : worker.state;
    row.lag = std::max<std::int64_t>(0, record.update() - worker.step);
    view.workers.push_back(std::move(row));
  }
  return view;
}

}  // namespace

struct JobDisplay::State {
  json options;
  bool as_json = false;
  const bool shows_output = actors::shows_output();
  std::optional<observe::LiveBlock> live;
  std::optional<observe::PlainLines> plain;
  std::map<std::string, std::streamoff> log_positions;  // Per worker's log: what was shown of it.
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

  /// New whole lines of the workers' logs, prefixed with the worker.
  void show_logs(std::size_t workers) {
    if (!shows_output) return;
    const std::string directory = options.value("run_directory", std::string(".")) + "/logs/";
    for (std::size_t rank = 0; rank < workers; ++rank) {
      const std::string name = "worker-" + std::to_string(rank);
      std::ifstream log(directory + name + ".log", std::ios::binary);
      if (!log) continue;
      auto& position = log_positions[name];
      log.seekg(position);
      for (std::string line; std::getline(log, line) && !log.eof();) {
        position += static_cast<std::streamoff>(line.size()) + 1;
        print("[worker " + std::to_string(rank) + "] " + line);
      }
    }
  }
};

JobDisplay::JobDisplay(const json& options, const json&) : state_(std::make_unique<State>()) {
  state_->options = options;
  state_->as_json = options.value("json", false);
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
  if (kind == "left") state_->print(event.value("text", ""));  // Why it failed is said at the end.
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
  state_->show_logs(record.workers().size());
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
