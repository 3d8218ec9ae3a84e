#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace paceline::cluster {

/// Asks the cluster whose runtime directory is `cluster`; the verbs are the head's (head.h). `disconnected`,
/// `timed_out` when it does not answer.
Result<nlohmann::json> ask(const std::filesystem::path& cluster, const std::string& verb, const nlohmann::json& body);

/// The living actor that has claimed this name. `not_found` where there is none; the others as above.
Result<ActorId> find_actor(const std::filesystem::path& cluster, const std::string& name);

/// Ends it. `not_found` where it does not live; the others as above.
Result<void> kill_actor(const std::filesystem::path& cluster, ActorId actor);

/// Tells the process that has asked for this task or call that it is not wanted any more; gives that process's name. By
/// `force` a task's worker ends. `not_found` where there is no such process; the others as above.
Result<std::string> cancel_task(const std::filesystem::path& cluster, TaskId task, bool force);

}  // namespace paceline::cluster
