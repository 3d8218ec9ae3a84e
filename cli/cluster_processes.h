#pragma once

#include <optional>

namespace paceline::cli {

/// `paceline supervise|head|agent --directory D [--name N] [--nodes K] [--node I]`: the processes of a cluster, which
/// `up`, `run` and the supervisor start. Their exit status; nullopt: the command line names another command.
std::optional<int> run_cluster_process(int argc, char** argv);

}  // namespace paceline::cli
