#include "algorithms/job/options.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "algorithms/job/metric.h"
#include "algorithms/parse.h"
#include "runtime/base/json.h"
#include "runtime/base/readable.h"
#include "runtime/observe/format.h"

namespace paceline::job {
namespace {

using nlohmann::json;

enum class Kind { integer, number, above_zero, time, seed, text, choice, flag, metric, target, nodes, program };

struct Option {
  std::string_view name;
  Kind kind;
  double least = 0;
  double most = 0;  ///< Of a text: bytes.
  std::array<std::string_view, 4> choices{};
  std::string_view words{};
};

constexpr double kTextMax = 65536;
constexpr double kSecondsMax = 1e9;

constexpr Option kOptions[] = {
    {"workers", Kind::integer, 1, 4096},
    {"minimum", Kind::integer, 1, 4096},
    {"strategy", Kind::text, 0, kTextMax},
    {"epochs", Kind::above_zero, 0, 1e6},
    {"batch", Kind::integer, 1, 1 << 20},
    {"accumulate", Kind::integer, 1, 65536},
    {"samples", Kind::integer, 0, 1e12},
    {"evaluate_every_epochs", Kind::number, 0, 1e6},
    {"checkpoint_every_s", Kind::time, 0, kSecondsMax},
    {"time_limit_s", Kind::time, 0, kSecondsMax},
    {"patience_s", Kind::time, 0, kSecondsMax},
    {"start_limit_s", Kind::time, 0, kSecondsMax},
    {"early_stopping", Kind::integer, 0, 1e6},
    {"keep_checkpoints", Kind::integer, 1, 1e6},
    {"optimizer_state", Kind::choice, 0, 0, {"", "keep", "reset", "average"}, "keep, reset or average"},
    {"buffers", Kind::choice, 0, 0, {"average", "keep", "keep", "keep"}, "average or keep"},
    {"lost", Kind::choice, 0, 0, {"ok", "fail", "fail", "fail"}, "ok or fail"},
    {"metric", Kind::metric},
    {"target", Kind::target},
    {"seed", Kind::seed},
    {"slow", Kind::text, 0, kTextMax},
    {"straggle", Kind::text, 0, kTextMax},
    {"resume", Kind::text, 0, kTextMax},
    {"run_directory", Kind::text, 0, kTextMax},
    {"label", Kind::text, 0, kTextMax},
    {"json", Kind::flag},
    {"replay", Kind::text, 0, kTextMax},
    {"replay_build", Kind::text, 0, kTextMax},
    {"node_of", Kind::nodes, 0, 1023},
    {"script", Kind::program},
    {"program", Kind::text, 0, kTextMax},  // What `status` names.
};

const Option* find(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kOptions), std::end(kOptions), [&](const Option& option) { return option.name == name; });
  return found == std::end(kOptions) ? nullptr : found;
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
    case Kind::flag: return value.is_boolean();
    case Kind::metric: return is_metric(value);
    case Kind::target: return value.is_null() || (value.is_number() && std::isfinite(value.get<double>()));
    case Kind::nodes:
      return value.is_array() && std::all_of(value.begin(), value.end(), [&](const json& node) {
               return node.is_number_integer() && is_within(node, option.least, option.most);
             });
    case Kind::program: return true;
  }
  return false;
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
    case Kind::choice: return "give " + std::string(option.words);
    case Kind::flag: return "give true or false";
    case Kind::metric: return "give it a name, a unit and a direction, each at most 100 bytes of UTF-8";
    case Kind::target: return "give a finite number, or none";
    case Kind::nodes:
      return observe::format("give the node of each worker, from %.0f to %.0f", option.least, option.most);
    case Kind::program: return "";
  }
  return "";
}

/// Workers that a flag names and that the job has not: of `--slow` by their numbers, else by how many there are.
Result<void> check_workers_named(const json& options) {
  const std::int64_t workers = options.value("workers", std::int64_t{0});
  if (workers == 0) return {};
  const auto refuse = [](const char* flag, std::string_view given, const std::string& why) {
    return fail(ErrorKind::invalid, std::string(flag) + " " + std::string(given) + ": " + why);
  };
  const std::string there_are = "there are only " + std::to_string(workers) + " workers";
  const std::string slow = options.value("slow", "");
  for (std::size_t begin = 0; begin < slow.size();) {
    const std::string_view part = std::string_view(slow).substr(begin, slow.find(',', begin) - begin);
    if (algorithms::read_integer(part.substr(0, part.find(':'))).value_or(0) >= workers)
      return refuse("--slow", part, "workers are numbered 0 to " + std::to_string(workers - 1));
    begin += part.size() + 1;
  }
  const std::string straggle = options.value("straggle", "");
  if (algorithms::read_integer(straggle.substr(0, straggle.find(':'))).value_or(0) > workers)
    return refuse("--straggle", straggle, there_are);
  if (const auto least = options.value("minimum", std::int64_t{1}); least > workers)
    return refuse("--minimum", std::to_string(least), there_are);
  return {};
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

}  // namespace paceline::job
