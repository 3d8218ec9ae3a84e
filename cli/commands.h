#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/flags/flags.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace paceline::cli {

/// Exit statuses of every command.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kInterrupted = 130;

/// Asks the cluster in a folder; the verbs are the head's (algorithms/cluster/client.h).
using Ask = std::function<Result<nlohmann::json>(const std::filesystem::path& cluster, const std::string& verb,
                                                 const nlohmann::json& body)>;

/// A subcommand: declared to `app`, it returns what to do, and with which exit status, once the flags are parsed.
using Action = std::function<int()>;
Action add_run(Flags app);
/// For drivers that were started without a cluster (actors/embedded_cluster.h); not shown to users.
Action add_embed(Flags app);
/// The same: what the flags in their arguments say, as JSON, or {"error": ...}.
Action add_options(Flags app);
Action add_up(Flags app, Ask ask);
Action add_down(Flags app, Ask ask);
Action add_status(Flags app, Ask ask);
Action add_list(Flags app, Ask ask);
Action add_get(Flags app, Ask ask);
Action add_summary(Flags app, Ask ask);
Action add_stack(Flags app, Ask ask);
/// The actor of a cluster that has claimed a name, and the end of one. `not_found`.
using FindActor = std::function<Result<ActorId>(const std::filesystem::path& cluster, const std::string& name)>;
using KillActor = std::function<Result<void>(const std::filesystem::path& cluster, ActorId actor)>;
Action add_kill(Flags app, Ask ask, FindActor find_actor, KillActor kill_actor);
/// Tells the owner of a task or a call in a cluster that it is not wanted; returns who that is. `not_found`.
using CancelTask = std::function<Result<std::string>(const std::filesystem::path& cluster, TaskId task, bool force)>;
Action add_cancel(Flags app, CancelTask cancel_task);
/// Tells the driver of a training job how many workers are wanted.
Action add_scale(Flags app, Ask ask);
Action add_set(Flags app, Ask ask);
Action add_drain(Flags app, Ask ask);
Action add_metrics(Flags app, Ask ask);
Action add_timeline(Flags app, Ask ask);
Action add_export(Flags app);
Action add_logs(Flags app);
Action add_replay(Flags app);
Action add_report(Flags app);
Action add_simulate(Flags app);
Action add_reproduce(Flags app);
Action add_bench(Flags app);
/// `line`: whose commands and flags it names.
Action add_completion(Flags app, const CommandLine& line);
Action add_check(Flags app);
Action add_clean(Flags app);
Action add_version(Flags app);

/// Of the build: "1.13.0", or "none".
std::string torch_version();
/// "paceline 0.1.0 (libtorch 1.13.0)"
std::string version_text();

/// Says on stderr that these nodes have not answered, and that `what` of them is therefore missing.
void say_silent(const std::vector<std::string>& nodes, const std::string& what);
/// Prints the error as one line on stderr; `kUsage` for what the user got wrong, else `kFailed`.
int report(const Error& error);

}  // namespace paceline::cli
