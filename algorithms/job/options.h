#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/run_options.h"
#include "runtime/base/result.h"

namespace paceline::job {

/// All that can be asked of a job: by its script, by flags of `paceline run`, by a replay. As JSON they travel from the
/// driver to the head, the agents and the workers, and stand in the run's configuration.json. An option is added as a
/// field here (or in RunOptions, if scripts have it) and as a row of the table in options.cc, which says what may stand
/// in it and what its flag is.
struct Options : RunOptions {
  std::string slow{};          ///< job/made_delays.h: "3:4x".
  std::string straggle{};      ///< "1:40ms".
  double lr_factor = 1;        ///< That learning rates are multiplied by.
  double time_limit_s = 0;     ///< 0: none; these three.
  double patience_s = 0;       ///< How long others wait even for a worker that gives signs of life.
  double start_limit_s = 600;  ///< Until a worker shares its model.
  double minimum_wait_s = 60;  ///< How long fewer than `minimum` go on while lost nodes may come back.
  std::string lost = "ok";     ///< "ok" or "fail": whether a run that lost workers ends well.
  std::int32_t restarts = 3;   ///< How often each worker is started again within an hour, when its process has ended.
  bool json = false;           ///< Events as JSON lines.
  std::string run_directory{};
  std::string label{};                  ///< What results are called; empty: as the strategy.
  std::string replay{};                 ///< The run directory of the run whose decisions are taken; empty: its own.
  std::string replay_build{};           ///< What that was made of.
  std::string program{};                ///< What `status` names.
  std::vector<std::int32_t> node_of{};  ///< Of each worker; empty: the head says.
  std::vector<std::int32_t> vacant{};   ///< Workers that the run begins without; the head says.

  /// With fewer workers the run fails.
  std::int32_t least_workers() const { return elastic ? minimum : workers; }
  /// What results are called.
  const std::string& name() const { return label.empty() ? strategy : label; }
};

/// What may stand in an option. Texts are UTF-8 without control characters.
enum class Kind {
  integer,
  number,
  above_zero,
  time,
  seed,
  text,
  choice,
  flag,    ///< Of the command line: without a value.
  yes_no,  ///< true or false.
  metric,
  target,
  nodes,
  ranks,
  slow,
  delay
};

/// A row of the table.
struct Option {
  std::string_view name;  ///< In JSON, as the field's.
  Kind kind = Kind::text;
  double least = 0;
  double most = 0;  ///< Of a text: bytes.
  std::vector<std::string_view> choices{};
  std::string_view help{};        ///< What --help says of its flag; empty: it has none.
  std::string_view short_flag{};  ///< "-w"
};

/// In the order in which --help shows them.
const std::vector<Option>& all_options();
/// "--keep-checkpoints" of keep_checkpoints, "--patience" of patience_s.
std::string flag_of(std::string_view option);

/// What an option of a job has to be, where `value` is not that: "give a number from 1 to 4096"; empty where it is. One
/// table says it for the flags of `paceline run`, for RunOptions and for whatever submits a job to the cluster.
std::string unfit(std::string_view option, const nlohmann::json& value);
/// A value for such a message: a text without quotes, NaN and the infinities, too, and no more than the beginning.
std::string shown(const nlohmann::json& value);

/// Each of them fits, so that whoever reads them later can rely on it. Those of other names are the program's own.
Result<void> check_options(const nlohmann::json& options);
/// Workers that a flag names and that the job has not: of `--slow` by their numbers, else by how many there are. A job
/// that does not say how many it has is not checked.
Result<void> check_workers_named(const nlohmann::json& options);
/// Those that are there, else their defaults. `invalid` as check_options().
Result<Options> read_options(const nlohmann::json& options);
/// With what a job goes on: "allreduce", "allreduce, learning rates times 0.5".
std::string in_words(const std::string& strategy, double lr_factor);
/// What a script asks for.
nlohmann::json to_json(const RunOptions& options);

}  // namespace paceline::job
