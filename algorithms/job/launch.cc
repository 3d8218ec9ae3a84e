#include "algorithms/job/launch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "actors/handle.h"
#include "actors/process_client.h"
#include "actors/task_error.h"
#include "actors/worker/worker_main.h"
#include "algorithms/job/given_options.h"
#include "algorithms/job/interrupts.h"
#include "algorithms/job/job_connection.h"
#include "algorithms/job/job_display.h"
#include "algorithms/job/job_record.h"
#include "algorithms/job/job_worker.h"
#include "algorithms/job/options.h"
#include "algorithms/job/places.h"
#include "algorithms/job/resume.h"
#include "algorithms/job/run_record.h"
#include "algorithms/job/view_changes.h"
#include "algorithms/strategy.h"
#include "runtime/base/contained.h"
#include "runtime/base/json.h"
#include "runtime/base/readable.h"
#include "runtime/base/steady_now.h"
#include "runtime/observe/atomic_file.h"
#include "runtime/observe/format.h"
#include "runtime/observe/line_file.h"
#include "runtime/observe/run_directory.h"
#include "runtime/observe/trace.h"

namespace paceline::job {
namespace {

using nlohmann::json;

constexpr Duration kLookEvery = std::chrono::milliseconds(50);
constexpr Duration kAskEvery = std::chrono::seconds(1);  // Workers to leave: they may not have heard.
constexpr Duration kRestartsWithin = std::chrono::hours(1);
constexpr Duration kStopPatience = std::chrono::milliseconds(500);  // After Ctrl-C: then the workers are killed.
constexpr Duration kFailPatience = std::chrono::seconds(5);         // After a failure; of the time limit, at least.
constexpr Duration kJoinPatience = std::chrono::seconds(1);         // For news of a worker that has ended.
constexpr Duration kTogether = std::chrono::milliseconds(250);      // Those of a lost node are told of one by one.
constexpr Duration kOutputPatience = std::chrono::seconds(1);       // For what the workers have printed last.
constexpr Duration kClosePatience = std::chrono::seconds(2);        // For the nodes' last figures.

/// A process's runs: one after the other.
struct Runs {
  std::atomic<bool> under_way{false};
  int begun = 0;
  bool interrupted = false;  ///< Ctrl-C ends the run that is under way, and begins no other.
};
Runs g_runs;

/// The folder of the process's `number`-th run, where `paceline run` has named the first one's.
std::string directory_of_run(const std::string& first, int number) {
  if (number == 1) return first;
  std::string directory;
  do directory = first + "-" + std::to_string(number++);
  while (std::filesystem::exists(directory));
  return directory;
}

class Job {
 public:
  Job(Program program, json options, Options asked)
      : program_(std::move(program)), options_(std::move(options)), asked_(std::move(asked)) {}

  Result<void> start() {
    auto script = actors::this_executable();
    if (!script) return tl::unexpected(script.error());
    if (!asked_.replay_build.empty() && asked_.replay_build != script->build)
      return fail(ErrorKind::invalid, "a replay needs what the run was made of, but since then " + script->path +
                                          " was built anew: a header, the compiler or Paceline itself is another");
    options_.erase("replay_build");
    const json program = program_record(*script, options_, g_runs.begun);
    PACELINE_TRY(open_run_directory(std::filesystem::path(script->path).stem().string(), program));
    auto& client = actors::process_client();
    script->logs = directory_ + "/logs";
    script->driver = client.executable().driver;
    PACELINE_TRY(client.set_executable(*std::move(script)));
    options_["strategy"] = algorithms::with_absolute_paths(asked_.strategy);
    const auto source = program.value("script", json::object()).value("path", "");
    options_["program"] = readable(source.empty() ? program.value("path", "") : source);
    const auto placed = connection_.submit(options_);
    if (!placed) return tl::unexpected(placed.error());
    const auto nodes = nodes_ = placed->value("nodes", std::vector<std::int32_t>{});
    const auto vacant = placed->value("vacant", std::vector<std::int32_t>{});
    places_ = Places(nodes, vacant, asked_.least_workers(), asked_.begin_with < 0);
    begun_with_ = nodes.size() - vacant.size();
    if (!vacant.empty()) options_["vacant"] = vacant;
    record_.emplace(asked_, nodes, vacant);
    display_.emplace(asked_, actors::process_output());

    const auto main = actors::name_of(program_.main);
    if (!main) return tl::unexpected(main.error());
    const auto call = program_.call ? actors::name_of(program_.call) : actors::FunctionRef{};
    if (!call) return tl::unexpected(call.error());
    functions_ = {*main, *call};
    workers_.resize(nodes.size());
    for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(nodes.size()); ++rank)
      if (!places_.is_vacant(rank)) begin(rank);
    return {};
  }

  /// Until all workers have returned or the user interrupts.
  RunResult finish() {
    Interrupts interrupts;
    // Workers end together when their time is up, and evaluate and save what they have; this is for those that do not.
    const Duration limit = from_seconds(asked_.time_limit_s);
    const Duration until_stopped = limit + std::max(kFailPatience, limit / 10);
    Instant time_is_up = steady_now() + until_stopped;
    bool begun = false;
    while (!all_ready()) {
      take_events(kLookEvery);
      const Instant now = steady_now();
      if (connection_.is_cut_off(now)) go_on_elsewhere();
      if (!begun && record_->updates() > 0) {
        begun = true;
        time_is_up = now + until_stopped;
      }
      const bool timed_out = limit > Duration::zero() && now >= time_is_up;
      if ((interrupts.requested() || record_->failure() || timed_out || missing_worker(now) || too_few_workers(now)) &&
          !stop_asked_) {
        stop_asked_ = now;
        const char* reason = interrupts.requested() ? "interrupted"
                             : timed_out            ? "the time limit was reached"
                                                    : "failed";
        (void)connection_.request("stop", {{"reason", reason}}, kStopPatience);
      }
      if (stop_asked_ && now - *stop_asked_ > (interrupts.requested() ? kStopPatience : kFailPatience)) break;
      if (!stop_asked_) scale(now);
      display_->show(*record_, now, false);
    }
    collect_errors();
    close_job(interrupts.requested(), interrupts.requested() ? kStopPatience : kFailPatience);
    const Duration left = stop_asked_ ? kStopPatience - (steady_now() - *stop_asked_) : Duration::zero();
    display_->show_all_output(interrupts.requested() ? left : kOutputPatience);
    display_->show(*record_, steady_now(), true);
    return conclude(interrupts.requested());
  }

 private:
  struct Functions {
    actors::FunctionRef main, call;
  };
  /// Of a place: nothing while that is vacant.
  struct Worker {
    std::optional<Handle<JobWorker>> actor;
    std::optional<Future<void>> run;
    bool is_over() const { return !run || run->ready(); }
  };

  /// A worker takes this place.
  void begin(std::int32_t rank) {
    const auto at = static_cast<std::size_t>(rank);
    const actors::ActorName called{"worker-" + std::to_string(rank), "paceline::Worker", {}, connection_.job()};
    const auto rule = restart_rule();
    auto actor = actors::create_called<JobWorker>(called, NodeId(places_.node_of(rank)), rule, {});
    // Borrowed: workers that do not come to their end go with this job's handles.
    auto run = actor.borrowed().call(&JobWorker::run, functions_.main, functions_.call, program_.arguments,
                                     connection_.job().value, rank, json_text(options_));
    workers_[at] = {std::move(actor), std::move(run)};
  }

  /// As many workers as somebody wants, once the job has begun: those there are know how long it is.
  void scale(Instant now) {
    if (!has_begun_ || came_to_its_end()) return;
    for (std::size_t at = 0; at < workers_.size(); ++at)
      if (workers_[at].run && workers_[at].is_over()) end(static_cast<std::int32_t>(at));
    const auto [start, ask, move] = places_.next();
    for (const std::int32_t rank : start) {
      record_->on_started(rank);
      begin(rank);
    }
    for (const std::int32_t rank : places_.kept())
      if (told_kept_.insert(rank).second)
        display_->warn("worker " + std::to_string(rank) +
                       " stays as long as the job needs it: there is no other one that could take its part");
    if (!move.empty()) move_places(move, now);
    if (ask.empty() || now < asks_from_) return;
    asks_from_ = now + kAskEvery;
    (void)connection_.request("let_go", {{"ranks", ask}}, kStopPatience);
  }

  /// Again and again until the nodes have said that they have them, or it turns out that they cannot.
  void move_places(const Places::Moves& moves, Instant now) {
    if (now < moves_from_) return;
    moves_from_ = now + kAskEvery;
    const auto answer = connection_.request("move_places", {{"places", Places::list(moves)}}, kStopPatience);
    if (const auto taken = contained([&] { places_.on_moved(answer); }); !taken) display_->warn(taken.error().text);
  }

  /// The call of a worker has returned that was asked to leave, or never came: its process goes, its place is free.
  void end(std::int32_t rank) {
    const bool was_to_join = places_.is_on_its_way(rank), was_away = record_->is_away(rank) && !was_to_join;
    places_.on_over(rank);
    if (!places_.is_vacant(rank)) return;
    if (was_to_join) record_->on_not_joined(rank);
    auto& worker = workers_[static_cast<std::size_t>(rank)];
    try {
      worker.run->get();
    } catch (const std::exception& error) {
      const std::string who = "worker " + std::to_string(rank);
      display_->warn(who +
                     (was_to_join ? ", which was to join, has ended: "
                      : was_away  ? ", which was to come back, has ended: "
                                  : ", which had left as was asked: ") +
                     error.what());
    }
    worker = {};
  }

  void on_event(const json& event) {
    has_begun_ |= event.value("event", "") == "first_step";
    places_.on_event(event);
    record_->on_event(event);
    display_->on_event(event);
  }

  Result<void> open_run_directory(const std::string& name, const json& program) {
    directory_ = asked_.run_directory;
    if (directory_.empty()) {
      auto created = observe::RunDirectory::create("runs", name, std::chrono::system_clock::now());
      if (!created) return tl::unexpected(created.error());
      directory_ = created->path();
    } else {  // Made by `paceline run`.
      directory_ = directory_of_run(directory_, g_runs.begun);
      PACELINE_TRY(observe::RunDirectory::check_unused(directory_));
      std::error_code error;
      std::filesystem::create_directories(directory_ + "/logs", error);
      if (error)
        return fail(ErrorKind::invalid, "cannot create the run directory " + directory_ + ": " + error.message());
    }
    directory_ = std::filesystem::absolute(directory_).string();
    options_["run_directory"] = directory_;
    const json configuration{{"options", options_}, {"environment", environment_record()}, {"program", program}};
    PACELINE_TRY(observe::write_json_atomic(directory_ + "/configuration.json", json_text(configuration, 2) + "\n"));
    auto metrics = observe::LineFile::open(directory_ + "/metrics.jsonl");
    if (!metrics) return tl::unexpected(metrics.error());
    metrics_.emplace(std::move(*metrics));
    view_trace_.emplace(directory_);
    return {};
  }

  void take_events(Duration timeout) {
    for (const json& event : connection_.take(timeout)) {
      const auto taken = contained([&] { on_event(event); });
      if (!taken) display_->warn("an event of the job could not be read: " + taken.error().text);
      if (const auto written = metrics_->append(json_text(event), steady_now()); !written)
        display_->warn(written.error().text);
      if (const auto traced = view_trace_->on_event(event, steady_now()); !traced) display_->warn(traced.error().text);
    }
  }

  /// The driver's agent is gone, or stands still.
  void go_on_elsewhere() {
    const auto moved = connection_.go_on_elsewhere();
    if (moved) {
      display_->warn("the agent of this program is gone, or stands still: it goes on through that of node " +
                     to_string(actors::process_client().node()));
    } else if (!std::exchange(is_stuck_, true)) {
      display_->warn("the agent of this program is gone, or stands still, and there is no other: " +
                     moved.error().text);
    }
  }

  /// What a worker was called for, its next process is called for again.
  actors::RestartRule restart_rule() const {
    if (!others_come()) return {};
    return {.restarts = asked_.restarts, .call_retries = -1, .within = kRestartsWithin};
  }

  /// Who is on its way back when another one has come to its end is not waited for.
  bool all_ready() const {
    bool all = true, others = true, ended = false;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const auto rank = static_cast<std::int32_t>(i);
      const bool ready = workers_[i].is_over();
      ended |= ready && !record_->left(rank) && !places_.is_leaving(rank);
      all &= ready;
      others &= ready || record_->is_away(rank);
    }
    return all || (others && ended);
  }

  /// Whether a worker ended before the nodes knew it as one of the job's: the others would wait for it for ever.
  bool missing_worker(Instant now) {
    for (std::size_t rank = 0; rank < workers_.size() && !error_; ++rank) {
      const auto known = record_->workers().find(static_cast<std::int32_t>(rank));
      if (!workers_[rank].run || !workers_[rank].is_over() || known == record_->workers().end() ||
          known->second.state != "starting" || known->second.left)
        continue;
      const Instant since = ended_early_.try_emplace(rank, now).first->second;
      if (now - since < kJoinPatience) continue;
      try {
        workers_[rank].run->get();
      } catch (const std::exception& error) {
        error_ = "worker " + std::to_string(rank) + " ended before it took part in the job: " + error.what();
      }
    }
    return error_.has_value();
  }

  /// Whether so many workers are lost that the user wants no model of those who remain, and nobody comes back in time.
  bool too_few_workers(Instant now) {
    const std::int64_t minimum = asked_.least_workers();
    const auto living = record_->living();
    if (record_->lost().empty() || living >= minimum || minimum <= 1 || error_) {
      too_few_since_.reset();
      said_too_few_ = false;
      return false;
    }
    if (!too_few_since_) too_few_since_ = now;
    if (now - *too_few_since_ < kTogether) return false;
    const std::string few = lost_workers() + " lost: " + std::to_string(living) + " of " +
                            std::to_string(nodes_.size()) +
                            (asked_.elastic ? " remain, and --minimum asks for " + std::to_string(minimum)
                                            : " remain, and the job needs all (--elastic no)");
    const Duration limit = asked_.elastic && record_->has_lost_node() && others_come()
                               ? from_seconds(asked_.minimum_wait_s)
                               : Duration::zero();
    if (limit > Duration::zero() && !std::exchange(said_too_few_, true))
      display_->warn(few + "; the node may come back, and the run goes on for " +
                     observe::format("%g s so", asked_.minimum_wait_s));
    if (now - *too_few_since_ < limit) return false;
    error_ = few;
    return true;
  }

  /// Another process may come in the place of one that has ended, with its node if that was lost.
  bool others_come() const {
    const auto workers = static_cast<std::int32_t>(nodes_.size());
    const auto changed = record_->changed_to();
    const auto strategy = algorithms::parse_strategy(changed.empty() ? asked_.strategy : changed, workers);
    return asked_.restarts > 0 && asked_.replay.empty() && strategy &&
           algorithms::workers_come_back(*strategy, workers);
  }

  /// "workers 1, 3 were"
  std::string lost_workers() const {
    std::string ranks;
    for (const auto rank : record_->lost()) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    return record_->lost().size() == 1 ? "worker " + ranks + " was" : "workers " + ranks + " were";
  }

  /// The last update is done, or the one at which somebody stopped it.
  bool came_to_its_end() const {
    return !record_->stop_reason().empty() || (record_->updates() > 0 && record_->update() >= record_->updates());
  }

  void collect_errors() {
    take_events(Duration::zero());
    record_->conclude();
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      const Worker& worker = workers_[rank];
      if (!worker.run || !worker.is_over() || record_->left(static_cast<std::int32_t>(rank))) continue;
      try {
        worker.run->get();
      } catch (const TaskError& error) {
        if (error.kind() == ErrorKind::cancelled && came_to_its_end()) continue;  // `paceline cancel`: as was wanted.
        if (!error_) error_ = "worker " + std::to_string(rank) + ": " + error.what();
      }
    }
    const auto& workers = record_->workers();
    const bool nobody =
        std::all_of(workers.begin(), workers.end(), [](const auto& entry) { return entry.second.left; });
    const bool ended_early = record_->update() < record_->updates() || record_->lost().size() == workers.size();
    if (!error_ && nobody && ended_early)
      error_ = "all workers have ended, at update " + std::to_string(record_->update()) + " of " +
               std::to_string(record_->updates()) + "; their logs are in " + directory_ + "/logs";
    if (!error_ && !record_->lost().empty() && asked_.lost == "fail")
      error_ = lost_workers() + " lost, and --lost says that the run fails then";
  }

  /// What is known of the job when it is over.
  json outcome(bool interrupted) const {
    const auto failure = error_ ? error_ : record_->failure();
    json outcome{{"state", interrupted ? "interrupted"
                           : failure   ? "failed"
                                       : "ended"},
                 {"updates", record_->update()},
                 {"samples", record_->samples()},
                 {"train_s", record_->clock_s()}};
    if (failure) outcome["failure"] = *failure;
    if (!record_->evaluations().empty()) {
      outcome["metric"] = record_->metric().name;
      outcome["value"] = record_->evaluations().back().value;
    }
    return outcome;
  }

  /// A cluster that does not answer so long closes it when this process ends.
  void close_job(bool interrupted, Duration patience) {
    const auto close = [&](Duration at_most) {
      return connection_.request("close", {{"outcome", outcome(interrupted)}}, at_most);
    };
    if (connection_.is_cut_off(steady_now())) go_on_elsewhere();
    if (!close(patience)) return;
    const Instant deadline = steady_now() + kClosePatience;
    while (!record_->closed() && steady_now() < deadline) take_events(kLookEvery);
    if (interrupted) return;
    notice_early_end();
    (void)close(kStopPatience);  // Once more, with the nodes' last figures.
  }

  /// Its workers have ended well, all nodes have told all that they know, and that is not the whole job.
  void notice_early_end() {
    const bool is_whole = record_->updates() == 0 || came_to_its_end() || stop_asked_ || !asked_.replay.empty();
    if (error_ || record_->failure() || !record_->closed() || is_whole) return;
    error_ = "the job ended at update " + std::to_string(record_->update()) + " of " +
             std::to_string(record_->updates()) +
             ", and nobody has said why: if its script did not, that is a bug in "
             "Paceline, to be reported with " +
             directory_;
  }

  RunResult conclude(bool interrupted) {
    auto& client = actors::process_client();
    (void)client.set_executable(client.executable());  // What is started from here on is no worker of the job.
    RunResult result;
    json summary = record_->result();
    const bool failed = error_.has_value() || record_->failure().has_value();
    if (error_ && !summary.contains("failure")) summary["failure"] = *error_;
    summary["run_directory"] = directory_;
    summary["interrupted"] = interrupted;
    summary["nodes"] = nodes_;
    if (begun_with_ < nodes_.size()) summary["begun_with"] = begun_with_;
    result.code = interrupted ? 130 : failed ? 1 : 0;
    result.run_directory = directory_;
    result.updates = record_->update();
    result.samples = record_->samples();
    result.train_s = record_->clock_s();
    result.time_to_target_s = record_->time_to_target_s();
    result.evaluations = record_->evaluations();
    result.best = record_->best();
    result.losses = record_->losses();
    result.lost.assign(record_->lost().begin(), record_->lost().end());
    if (!result.evaluations.empty()) result.metric = result.evaluations.back().value;
    result.json = json_text(summary);
    (void)metrics_->append(result.json, steady_now());
    (void)metrics_->flush();
    view_trace_.reset();
    if (const auto joined = observe::join_traces(directory_); !joined) display_->warn(joined.error().text);
    if (const auto written = observe::write_json_atomic(directory_ + "/result.json", json_text(summary, 2) + "\n");
        !written)
      display_->warn(written.error().text);
    const auto run = observe::RunDirectory::at(directory_);
    if (std::filesystem::exists(run.checkpoint())) result.checkpoint = run.checkpoint();
    if (std::filesystem::exists(run.best_checkpoint())) result.best_checkpoint = run.best_checkpoint();
    display_->conclude(*record_, summary, interrupted, result.checkpoint, directory_);
    return result;
  }

  Program program_;
  json options_;         // As they travel;
  const Options asked_;  // as they are read here.
  JobConnection connection_;
  bool is_stuck_ = false;  // The user has heard that there is no agent.
  std::string directory_;
  std::optional<observe::LineFile> metrics_;
  std::optional<ViewTrace> view_trace_;
  std::optional<JobRecord> record_;
  std::optional<JobDisplay> display_;
  std::vector<std::int32_t> nodes_;  // Of each place, at the start.
  Places places_;
  Functions functions_;
  std::vector<Worker> workers_;  // Of each place.
  bool has_begun_ = false;
  std::optional<Instant> stop_asked_;  // By this driver.
  std::size_t begun_with_ = 0;         // Workers.
  Instant asks_from_{};                // Those who are to leave,
  Instant moves_from_{};               // and the head to move places.
  std::set<std::int32_t> told_kept_;
  std::optional<Instant> too_few_since_;  // Workers that are left.
  bool said_too_few_ = false;
  std::optional<std::string> error_;
  std::map<std::size_t, Instant> ended_early_;  // Workers that ended and of which no node has said anything yet.
};

/// A run that is not begun, or that an exception ended.
RunResult failed(const std::string& text, int code) {
  std::fprintf(stderr, "paceline: %s\n", text.c_str());
  RunResult result;
  result.code = code;
  return result;
}

/// All strategies of a comparison, before the first of them runs: here it is known how many workers there are.
Result<void> check_comparison(json& options, std::int32_t workers) {
  const auto listed = options.find("compare");
  if (listed == options.end() || !listed->is_array()) return {};
  for (const auto& strategy : *listed)
    if (strategy.is_string()) PACELINE_TRY(algorithms::parse_strategy(strategy.get<std::string>(), workers));
  options.erase(listed);
  return {};
}

/// The process's next run, to its end.
RunResult next_run(Program program, json given) {
  ++g_runs.begun;
  if (g_runs.interrupted) return failed("interrupted: run " + std::to_string(g_runs.begun) + " was not begun", 130);
  auto options = merged_options(std::move(given));
  if (!options) return refuse(options.error());
  const auto asked = read_options(*options);
  if (!asked) return refuse(asked.error());
  if (const auto checked = check_resume(asked->resume); !checked) return failed(checked.error().text, 2);
  if (const auto checked = check_comparison(*options, asked->workers); !checked) return refuse(checked.error());
  if (g_runs.begun > 1 && !asked->replay.empty())
    return failed("a replay takes a script's first run: run " + std::to_string(g_runs.begun) + " is left out", 0);
  try {
    Job job(std::move(program), *options, *asked);
    if (const auto started = job.start(); !started) return refuse(started.error());
    auto result = job.finish();
    g_runs.interrupted = result.code == 130;
    return result;
  } catch (const std::exception& error) {
    return failed(error.what(), 1);
  }
}

}  // namespace

RunResult refuse(const Error& error) { return failed(error.text, error.kind == ErrorKind::invalid ? 2 : 1); }

RunResult launch(Program program, json options) {
  if (worker::is_worker())
    throw TaskError(
        {ErrorKind::invalid,
         "paceline::run was called within a worker or a task: jobs are started by drivers; call it in main, "
         "and give it what the task found"});
  std::size_t size = 0;
  for (const Bytes& argument : program.arguments) size += argument.size();
  if (size > actors::kArgumentBytesMax)
    return refuse({ErrorKind::invalid, "the arguments of paceline::run take " + std::to_string(size >> 20) +
                                           " MiB, at most " + std::to_string(actors::kArgumentBytesMax >> 20) +
                                           " MiB are possible: read large data in the worker"});
  if (g_runs.under_way.exchange(true))
    return refuse({ErrorKind::invalid,
                   "paceline::run was called while another run of this process is under way: one "
                   "after the other, or each in a process of its own"});
  auto result = next_run(std::move(program), std::move(options));
  g_runs.under_way = false;
  return result;
}

}  // namespace paceline::job
