#include "algorithms/presets.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "algorithms/groups.h"

namespace paceline::algorithms {
namespace {

using Kind = Parameter::Kind;

constexpr auto gradients = Payload::gradients;
constexpr auto models = Payload::models;
constexpr auto all_arrived = Trigger::all_arrived;
constexpr auto first_arrived = Trigger::first_arrived;
constexpr auto waits = Lateness::waits;
constexpr auto abandons = Lateness::abandons;
constexpr double kStepsMax = 1e9;

Groups butterfly(std::int64_t size) {
  return {.kind = Groups::Kind::butterfly, .size = static_cast<std::int32_t>(size)};
}
Period every(std::int64_t steps) { return {.kind = Period::Kind::every, .steps = steps}; }
Period whole_run() { return {.kind = Period::Kind::whole_run}; }

std::optional<Grace> grace(const Values& given) {
  const auto* value = given.get<Grace>("grace");
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

/// `late=skip`: skips. `late=merge`: merges, where a round can fire without the late worker at all.
Lateness lateness(const Values& given, bool can_fire_without) {
  if (given.is("late", "skip")) return Lateness::skips;
  return can_fire_without ? Lateness::merges : waits;
}

const Parameter kLate{.name = "late", .kind = Kind::word, .standard = "merge", .words = {"merge", "skip"}};
const Parameter kGrace{.name = "grace", .kind = Kind::grace, .standard = "none", .words = {"none"}};

/// Synchronous data parallel SGD.
Result<Strategy> allreduce(const Values&, std::int32_t) {
  return Strategy{.tiers = {{.payload = gradients, .period = every(1), .trigger = all_arrived, .late = waits}}};
}

/// Local SGD, PASGD, K-AVG; with period=run one-shot averaging.
Result<Strategy> local_sgd(const Values& given, std::int32_t) {
  const Period period = given.is("period", "run") ? whole_run() : every(given.integer("period"));
  const auto limit = grace(given);
  const auto late = lateness(given, limit.has_value());
  return Strategy{
      .tiers = {{.payload = models, .period = period, .trigger = all_arrived, .late = late, .grace = limit}}};
}

/// WAGMA-SGD (Li et al., Alg. 2): group averaging that waits for nobody, a global average every `sync` steps.
/// late=skip and grace are ours: for workers that are always slow, frozen or dead.
Result<Strategy> wagma(const Values& given, std::int32_t workers) {
  // sqrt(P) by default; where P is no power of two parse_strategy refuses, whatever the size.
  const bool automatic = given.is("group", "auto");
  const auto size = !automatic ? given.integer("group") : is_power_of_two(workers) ? default_group_size(workers) : 2;
  const Groups groups = butterfly(size);
  const Period sync = every(given.integer("sync"));
  const auto limit = grace(given);
  const auto late = lateness(given, true), late_at_sync = lateness(given, limit.has_value());
  return Strategy{
      .tiers = {{.payload = models, .groups = groups, .period = every(1), .trigger = first_arrived, .late = late},
                {.payload = models, .period = sync, .trigger = all_arrived, .late = late_at_sync, .grace = limit}}};
}

/// AdaComm (Wang & Joshi): local SGD whose period shrinks as the loss falls (eq. 18 with 20), optionally with block
/// momentum.
Result<Strategy> adacomm(const Values& given, std::int32_t) {
  const Period period{.kind = Period::Kind::adacomm,
                      .steps = given.integer("period"),
                      .interval_s = seconds(*given.get<Duration>("interval")),
                      .gamma = given.real("gamma"),
                      .slack = given.real("slack"),
                      .loss_window = given.integer("loss_window"),
                      .reset_on_lr_change = given.is("reset_on_lr_change", "yes")};
  return Strategy{.tiers = {{.payload = models, .period = period, .trigger = all_arrived, .late = waits}},
                  .block_momentum = given.real("block_momentum")};
}

/// Non-blocking SGD (He & Dube) over a base algorithm: the base's tiers, started by the first worker that completes its
/// batch, while the others abandon the rest of theirs.
Result<Strategy> nonblocking(const Values& given, std::int32_t) {
  if (given.is("inflight", "wait"))
    return fail(ErrorKind::invalid, "inflight=wait is not available yet; use inflight=drop (the default)");
  Strategy strategy = *given.get<Strategy>("base");
  const bool synchronous = std::all_of(strategy.tiers.begin(), strategy.tiers.end(), [](const Tier& tier) {
    return tier.payload == gradients && tier.trigger == all_arrived && tier.late == waits;
  });
  if (!synchronous)
    return fail(ErrorKind::invalid, "its base '" + strategy.name +
                                        "' does not average gradients every iteration; use nonblocking(allreduce)");
  for (Tier& tier : strategy.tiers) {
    tier.trigger = first_arrived;
    tier.late = abandons;
  }
  strategy.batches = static_cast<std::int32_t>(given.integer("batches"));
  strategy.normalise = given.is("normalise", "a")   ? Strategy::Normalise::a
                       : given.is("normalise", "d") ? Strategy::Normalise::d
                                                    : Strategy::Normalise::b;
  strategy.rotate_shards = true;
  return strategy;
}

std::string number(double value) {
  std::array<char, 32> digits{};
  const auto [end, error] =
      value == static_cast<double>(static_cast<std::int64_t>(value))
          ? std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<std::int64_t>(value))
          : std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() ? std::string(digits.data(), end) : std::to_string(value);
}

}  // namespace

std::string range_in_words(const Parameter& parameter) {
  const std::string from = number(parameter.least), to = number(parameter.most);
  const std::string between = parameter.open ? " above " + from + " and below " + to : " from " + from + " to " + to;
  std::string range;
  switch (parameter.kind) {
    case Kind::integer: range = "a whole number" + between; break;
    case Kind::real: range = "a number" + between; break;
    case Kind::duration: range = "a time" + between + " seconds, such as 60s or 500ms"; break;
    case Kind::grace:
      range = "a time such as 2s or 500ms, a multiple of the median step such as 1.5x (both above 0)";
      break;
    case Kind::strategy: range = "a base algorithm such as allreduce"; break;
    case Kind::word: break;
  }
  for (std::size_t k = 0; k < parameter.words.size(); ++k)
    range += (k > 0 || !range.empty() ? (k + 1 == parameter.words.size() ? " or " : ", ") : "") +
             std::string(parameter.words[k]);
  return range;
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> table{
      {.name = "allreduce",
       .sentence = "averages gradients at every step and waits for everybody: exact, and as slow as the slowest worker",
       .alternative = {},
       .parameters = {},
       .build = allreduce},
      {.name = "local-sgd",
       .sentence = "trains alone for `period` steps, then averages models; hides short delays, not a worker that is "
                   "always slow (late=skip and grace do)",
       .alternative = {},
       .parameters =
           {{.name = "period", .kind = Kind::integer, .standard = "8", .least = 1, .most = kStepsMax, .words = {"run"}},
            kLate,
            kGrace},
       .build = local_sgd},
      {.name = "wagma",
       .sentence = "averages models in changing groups that wait for nobody, and with everybody every `sync` steps; as "
                   "in the paper it hides random delays, with late=skip and grace also workers that are always slow, "
                   "frozen or dead",
       .alternative = "local-sgd, which takes any number of workers",
       .parameters = {{.name = "group",
                       .kind = Kind::integer,
                       .standard = "auto",
                       .least = 1,
                       .most = 1 << 20,
                       .words = {"auto"}},
                      {.name = "sync", .kind = Kind::integer, .standard = "10", .least = 1, .most = kStepsMax},
                      kLate,
                      kGrace},
       .build = wagma},
      {.name = "adacomm",
       .sentence = "local SGD whose period starts long and shrinks as the loss falls: fast at first, exact at the end",
       .alternative = {},
       .parameters =
           {{.name = "period", .kind = Kind::integer, .standard = "20", .least = 1, .most = kStepsMax},
            {.name = "interval", .kind = Kind::duration, .standard = "60s", .least = 0, .most = 1e8, .open = true},
            {.name = "gamma", .kind = Kind::real, .standard = "0.5", .least = 0, .most = 1, .open = true},
            {.name = "slack", .kind = Kind::real, .standard = "0", .least = 0, .most = kStepsMax},
            {.name = "loss_window", .kind = Kind::integer, .standard = "100", .least = 1, .most = 1e6},
            {.name = "block_momentum", .kind = Kind::real, .standard = "0", .least = 0, .most = 0.999},
            {.name = "reset_on_lr_change", .kind = Kind::word, .standard = "no", .words = {"yes", "no"}}},
       .build = adacomm},
      {.name = "nonblocking",
       .sentence = "every update is a batch of `batches` mini-batches; the first worker to finish ends it and the "
                   "others' finished mini-batches count: for workers that are always or randomly slow",
       .alternative = {},
       .parameters = {{.name = "base", .kind = Kind::strategy, .standard = "allreduce"},
                      {.name = "batches", .kind = Kind::integer, .standard = "8", .least = 1, .most = 1e6},
                      {.name = "normalise", .kind = Kind::word, .standard = "b", .words = {"b", "a", "d"}},
                      {.name = "inflight", .kind = Kind::word, .standard = "drop", .words = {"drop", "wait"}}},
       .build = nonblocking},
  };
  return table;
}

const Preset* find_preset(std::string_view name) {
  const auto& table = presets();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Preset& preset) { return preset.name == name; });
  return found == table.end() ? nullptr : &*found;
}

const std::vector<std::string_view>& names_not_available_yet() {
  static const std::vector<std::string_view> names{
      "hier-avg",    "eager-solo",   "eager-majority", "d-psgd", "ad-psgd", "sgp",  "osgp",       "matcha",
      "server-sync", "server-async", "server",         "slowmo", "diloco",  "bmuf", "post-local", "k-avg"};
  return names;
}

}  // namespace paceline::algorithms
