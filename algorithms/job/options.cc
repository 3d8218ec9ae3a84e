#include "algorithms/job/options.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>

#include "algorithms/job/made_delays.h"
#include "algorithms/job/metric.h"
#include "runtime/base/json.h"
#include "runtime/base/readable.h"
#include "runtime/observe/format.h"

namespace paceline::job {
namespace {

using nlohmann::json;

constexpr double kTextMax = 65536;
constexpr double kSecondsMax = 1e9;
constexpr double kNodeMax = 1023;
constexpr double kWorkersMax = 4096;

Option text_of(std::string_view name, std::string_view help = {}, std::string_view short_flag = {}) {
  return {name, Kind::text, 0, kTextMax, {}, help, short_flag};
}
Option seconds_of(std::string_view name, std::string_view help) { return {name, Kind::time, 0, kSecondsMax, {}, help}; }

/// The table: calls `field(row, member)` for each option that scripts have.
template <class Asked, class Field>
void each_of_script(Asked& of, const Field& field) {
  using K = Kind;
  field({"workers", K::integer, 1, kWorkersMax, {}, "worker processes; 2..8: places for 8, `paceline scale`", "-w"},
        of.workers);
  field({"begin_with",
         K::integer,
         -1,
         kWorkersMax,
         {},
         "so many of the places are taken at the start; 0: all; -1: as many as there are cpus"},
        of.begin_with);
  field({"minimum", K::integer, 1, kWorkersMax, {}, "the run stops, and fails, when fewer workers than these are left"},
        of.minimum);
  field(
      {"elastic", K::yes_no, 0, 0, {}, "no: none of its workers may join or leave, and one that is lost fails the run"},
      of.elastic);
  field(text_of("strategy", "how workers average, such as 'wagma(group=2,sync=10)'; below", "-s"), of.strategy);
  field({"lr_scaling",
         K::choice,
         0,
         0,
         {"none", "linear", "sqrt"},
         "learning rates while fewer of the workers take part: none (as they are), linear or sqrt (times their share, "
         "or its root)"},
        of.lr_scaling);
  field({"accumulate", K::integer, 1, 65536, {}, "mini-batches an update"}, of.accumulate);
  field({"epochs", K::above_zero, 0, 1e6, {}, "passes over the data"}, of.epochs);
  field({"batch", K::integer, 1, 1 << 20, {}, "samples of a mini-batch"}, of.batch);
  field({"samples", K::integer, 0, 1e12}, of.samples);
  field({"evaluate_every_epochs",
         K::number,
         0,
         1e6,
         {},
         "how often the averaged model is evaluated and saved; 0: at the end only"},
        of.evaluate_every_epochs);
  field({"metric", K::metric}, of.metric);
  field({"target", K::target, 0, 0, {}, "stop when an evaluation reaches this: 0.88 or 88%; none: run to the end"},
        of.target);
  field(
      {"early_stopping", K::integer, 0, 1e6, {}, "stop when so many evaluations in a row were no better than the best"},
      of.early_stopping);
  field(seconds_of("checkpoint_every_s",
                   "save besides when 90s, 5m, 1h have passed since the last checkpoint; without it with evaluations "
                   "only"),
        of.checkpoint_every_s);
  field({"keep_checkpoints",
         K::integer,
         1,
         1e6,
         {},
         "so many of the last ones; that of the best evaluation is kept besides"},
        of.keep_checkpoints);
  field({"optimizer_state",
         K::choice,
         0,
         0,
         {"", "keep", "reset", "average"},
         "what an averaging of models does with the optimisers' state: keep, reset or average; default: the "
         "strategy's own"},
        of.optimizer_state);
  field({"buffers",
         K::choice,
         0,
         0,
         {"average", "keep"},
         "BatchNorm's statistics and other float buffers: average (with the model; default) or keep"},
        of.buffers);
  field({"seed", K::seed, 0, 0, {}, "of data order, initial model and made-up delays"}, of.seed);
  field(text_of("resume", "go on from this run directory or checkpoint"), of.resume);
}

/// And for those that only flags, a replay or the driver give.
template <class Asked, class Field>
void each_besides(Asked& of, const Field& field) {
  using K = Kind;
  field({"slow", K::slow, 0, kTextMax, {}, "worker:factor, such as 3:4x: worker 3 takes 4 times as long (it sleeps)"},
        of.slow);
  field({"straggle",
         K::delay,
         0,
         kTextMax,
         {},
         "count:delay, such as 1:40ms: each step that many random workers sleep so long"},
        of.straggle);
  field({"lr_factor", K::above_zero, 0, 1e6, {}, "learning rates are multiplied by this"}, of.lr_factor);
  field(seconds_of("time_limit_s", "stop after 90s, 5m, 1h"), of.time_limit_s);
  field(seconds_of("patience_s",
                   "how long the others wait for a worker that is slow but alive, 30s, 5m; without it as long as it "
                   "takes"),
        of.patience_s);
  field({"lost",
         K::choice,
         0,
         0,
         {"ok", "fail"},
         "whether a run that lost workers, and went on without them, ends well (ok, the default) or not (fail)"},
        of.lost);
  field(
      {"restarts",
       K::integer,
       0,
       1000000,
       {},
       "how often a worker that was killed, or has crashed, is started again within an hour and comes back in (3); 0: "
       "who is killed stays gone, a crash ends the run"},
      of.restarts);
  field(seconds_of("minimum_wait_s",
                   "how long the run goes on with fewer workers than --minimum while a lost node may come back; 1m "
                   "without it"),
        of.minimum_wait_s);
  field(seconds_of("start_limit_s", "how long a worker may take until it shares its model; 10m without it"),
        of.start_limit_s);
  field({"json", K::flag}, of.json);
  field(text_of("run_directory"), of.run_directory);
  field(text_of("label"), of.label);
  field(text_of("replay"), of.replay);
  field(text_of("replay_build"), of.replay_build);
  field(text_of("program"), of.program);
  field({"node_of", K::nodes, 0, kNodeMax}, of.node_of);
  field({"vacant", K::ranks, 0, kWorkersMax - 1}, of.vacant);
}

const Option* find(std::string_view name) {
  const auto& options = all_options();
  const auto found =
      std::find_if(options.begin(), options.end(), [&](const Option& option) { return option.name == name; });
  return found == options.end() ? nullptr : &*found;
}

bool is_text(const json& value, double bytes_max) {
  const auto* const text = value.get_ptr<const std::string*>();
  return text != nullptr && static_cast<double>(text->size()) <= bytes_max && readable(*text) == *text;
}

bool is_within(const json& value, double least, double most) {
  return value.is_number() && value.get<double>() >= least && value.get<double>() <= most;  // NaN is not.
}

bool is_metric(const json& value) {
  if (!value.is_object()) return false;
  return std::all_of(value.begin(), value.end(), [](const json& part) { return is_text(part, 100); });
}

bool fits(const Option& option, const json& value) {
  switch (option.kind) {
    case Kind::integer: return value.is_number_integer() && is_within(value, option.least, option.most);
    case Kind::number:
    case Kind::time: return is_within(value, option.least, option.most);
    case Kind::above_zero: return is_within(value, option.least, option.most) && value.get<double>() > 0;
    case Kind::seed: return value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
    case Kind::text: return is_text(value, option.most);
    case Kind::choice:
      return value.is_string() &&
             std::find(option.choices.begin(), option.choices.end(), value.get<std::string>()) != option.choices.end();
    case Kind::flag:
    case Kind::yes_no: return value.is_boolean();
    case Kind::metric: return is_metric(value);
    case Kind::target: return value.is_null() || (value.is_number() && std::isfinite(value.get<double>()));
    case Kind::nodes:
    case Kind::ranks:
      return value.is_array() && std::all_of(value.begin(), value.end(), [&](const json& node) {
               return node.is_number_integer() && is_within(node, option.least, option.most);
             });
    case Kind::slow: return is_text(value, option.most) && parse_slow_workers(value.get<std::string>());
    case Kind::delay: return is_text(value, option.most) && parse_random_delay(value.get<std::string>());
  }
  return false;
}

/// "keep, reset or average"
std::string in_words(const std::vector<std::string_view>& choices) {
  std::string words;
  for (const auto& choice : choices)
    if (!choice.empty())
      words += (words.empty() ? "" : &choice == &choices.back() ? " or " : ", ") + std::string(choice);
  return words;
}

std::string words_of(const Option& option) {
  switch (option.kind) {
    case Kind::integer:
    case Kind::number: return observe::format("give a number from %.0f to %.0f", option.least, option.most);
    case Kind::above_zero: return observe::format("give a number above 0, at most %.0f", option.most);
    case Kind::time: return observe::format("give seconds, at most %.0f", option.most);
    case Kind::seed: return "give a whole number from 0";
    case Kind::text:
      return observe::format("give a text of at most %.0f bytes, in UTF-8 and without control characters", option.most);
    case Kind::choice: return "give " + in_words(option.choices);
    case Kind::flag: return "give true or false";
    case Kind::yes_no: return "give yes or no";
    case Kind::metric: return "give it a name, a unit and a direction, each at most 100 bytes of UTF-8";
    case Kind::target: return "give a finite number, or none";
    case Kind::nodes:
      return observe::format("give the node of each worker, from %.0f to %.0f", option.least, option.most);
    case Kind::ranks: return observe::format("give numbers of workers, from %.0f to %.0f", option.least, option.most);
    case Kind::slow: return "give worker:factor such as 3:4x, with a factor of at least 1";
    case Kind::delay: return "give count:delay such as 1:40ms (units us, ms, s)";
  }
  return "";
}

void read(const json& value, Metric& out) { out = metric_of(json{{"metric", value}}); }
void read(const json& value, std::optional<double>& out) {
  out = value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}
template <class Field>
void read(const json& value, Field& out) {
  out = value.get<Field>();
}

}  // namespace

std::string shown(const json& value) {
  constexpr std::size_t kShownMax = 80;
  // NaN and the infinities are none of JSON's numbers.
  const std::string text = value.is_number_float() ? observe::format("%g", value.get<double>())
                           : value.is_string()     ? readable(value.get<std::string>())
                                                   : json_text(value);
  return text.size() > kShownMax ? std::string(first_of(text, kShownMax)) + "..." : text;
}

const std::vector<Option>& all_options() {
  static const std::vector<Option> table = [] {
    std::vector<Option> rows;
    const auto add = [&](const Option& option, const auto&) { rows.push_back(option); };
    const Options defaults;
    each_of_script(defaults, add);
    each_besides(defaults, add);
    return rows;
  }();
  return table;
}

std::string flag_of(std::string_view option) {
  std::string flag = "--" + std::string(option);
  if (flag.ends_with("_s")) flag.resize(flag.size() - 2);  // Seconds.
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string unfit(std::string_view name, const json& value) {
  const Option* const option = find(name);
  return option == nullptr || fits(*option, value) ? "" : words_of(*option);
}

Result<void> check_options(const json& options) {
  for (const auto& [name, value] : options.items()) {
    if (const std::string words = unfit(name, value); !words.empty())
      return fail(ErrorKind::invalid, "option " + name + " = " + shown(value) + ": " + words);
  }
  // What neither the flags nor the script know alone.
  const auto target = target_of(options);
  const Metric metric = metric_of(options);
  if (target && *target > 1 && in_percent(metric))
    return fail(ErrorKind::invalid, observe::format("target %g: ", *target) + metric.name +
                                        " is a fraction: give one such as 0.88, or 88%");
  return check_workers_named(options);
}

Result<void> check_workers_named(const json& options) {
  const std::int64_t workers = options.value("workers", std::int64_t{0});
  if (workers == 0) return {};
  const auto refuse = [](const char* flag, const std::string& given, const std::string& why) {
    return fail(ErrorKind::invalid, std::string(flag) + " " + given + ": " + why);
  };
  const std::string there_are = "there are only " + std::to_string(workers) + " workers";
  const auto slow = parse_slow_workers(options.value("slow", ""));
  if (!slow) return tl::unexpected(slow.error());
  if (!slow->factors.empty() && slow->factors.rbegin()->first >= workers)
    return refuse("--slow", observe::format("%d:%gx", slow->factors.rbegin()->first, slow->factors.rbegin()->second),
                  "workers are numbered 0 to " + std::to_string(workers - 1));
  const std::string straggle = options.value("straggle", "");
  const auto delay = parse_random_delay(straggle);
  if (!delay) return tl::unexpected(delay.error());
  if (delay->count > workers) return refuse("--straggle", straggle, there_are);
  const auto least = options.value("minimum", std::int64_t{1}), first = options.value("begin_with", std::int64_t{0});
  if (least > workers) return refuse("--minimum", std::to_string(least), there_are);
  if (first > workers) return refuse("--begin-with", std::to_string(first), there_are);
  if (first > 0 && first < least)
    return refuse("--begin-with", std::to_string(first), "--minimum asks for " + std::to_string(least));
  if (!options.value("elastic", true) && first != 0 && first != workers)
    return refuse(
        "--elastic", "no",
        "then all " + std::to_string(workers) + " workers begin: give --workers one number, and --begin-with none");
  return {};
}

Result<Options> read_options(const json& options) {
  PACELINE_TRY(check_options(options));
  Options read_so_far;
  const auto take = [&](const Option& option, auto& field) {
    if (const auto given = options.find(option.name); given != options.end()) read(*given, field);
  };
  each_of_script(read_so_far, take);
  each_besides(read_so_far, take);
  return read_so_far;
}

std::string in_words(const std::string& strategy, double lr_factor) {
  return strategy + (lr_factor == 1 ? "" : observe::format(", learning rates times %g", lr_factor));
}

json to_json(const RunOptions& options) {
  json written = json::object();
  each_of_script(options, [&](const Option& option, const auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, Metric>)
      written[option.name] = to_json(field);
    else if constexpr (std::is_same_v<Field, std::optional<double>>)
      written[option.name] = field ? json(*field) : json(nullptr);
    else
      written[option.name] = field;
  });
  return written;
}

}  // namespace paceline::job
