#include "algorithms/strategy.h"

#include <algorithm>
#include <filesystem>

#include "algorithms/groups.h"
#include "algorithms/parse.h"
#include "algorithms/presets.h"
#include "algorithms/topology/graph_file.h"
#include "runtime/base/did_you_mean.h"

namespace paceline::algorithms {
namespace {

using Kind = Parameter::Kind;
using Value = Values::Value;

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (const auto word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

/// "; did you mean x?" or nothing.
std::string hint(std::string_view word, const std::vector<std::string_view>& candidates) {
  const auto meant = did_you_mean(word, candidates);
  return meant ? "; did you mean " + std::string(*meant) + "?" : "";
}

/// Of every strategy, beside those of its preset.
const Parameter kPatience{.name = "patience",
                          .kind = Kind::duration,
                          .standard = "none",
                          .least = 0,
                          .most = 1e8,
                          .open = true,
                          .words = {"none"}};

std::vector<std::string_view> known_strategies() {
  std::vector<std::string_view> names;
  for (const auto& preset : presets()) names.push_back(preset.name);
  return names;
}

bool in_range(const Parameter& parameter, double value) {
  return parameter.open ? parameter.least < value && value < parameter.most
                        : parameter.least <= value && value <= parameter.most;
}

/// As a user writes it, without spaces.
std::string spelling(const Call& call) {
  std::string text = call.name;
  for (const Argument& argument : call.arguments)
    text += (&argument == call.arguments.data() ? "(" : ",") + (argument.key.empty() ? "" : argument.key + "=") +
            spelling(argument.value);
  return text + (call.arguments.empty() ? "" : ")");
}

Result<Strategy> build_call(const Call& call, std::string_view text, std::int32_t workers);

/// One parameter's value; nullopt: it is not in the range.
std::optional<Value> read_value(const Parameter& parameter, const std::string& word) {
  if (std::find(parameter.words.begin(), parameter.words.end(), word) != parameter.words.end()) return Value(word);
  switch (parameter.kind) {
    case Kind::integer:
      if (const auto n = read_integer(word); n && in_range(parameter, static_cast<double>(*n))) return Value(*n);
      break;
    case Kind::real:
      if (const auto x = read_real(word); x && in_range(parameter, *x)) return Value(*x);
      break;
    case Kind::duration:
      if (const auto d = read_duration(word); d && in_range(parameter, seconds(*d))) return Value(*d);
      break;
    case Kind::grace:
      if (const auto d = read_duration(word); d && *d > Duration::zero())
        return Value(Grace{.fixed = *d, .median_steps = 0});
      if (const auto x = read_factor(word); x && *x > 0) return Value(Grace{.fixed = {}, .median_steps = *x});
      break;
    case Kind::graph:
      if (names_graph_file(word)) return Value(word);
      break;
    case Kind::period:
      if (const auto n = read_integer(word); n && in_range(parameter, static_cast<double>(*n)))
        return Value(Period{.steps = *n});
      break;
    case Kind::word:
    case Kind::strategy: break;
  }
  return std::nullopt;
}

/// Reads the arguments of one call against the preset's parameters and collects everything that is wrong with them.
class ArgumentReader {
 public:
  ArgumentReader(const Preset& preset, std::int32_t workers) : preset_(preset), workers_(workers) {}

  void read(const Argument& argument) {
    const Parameter* parameter = find(argument);
    if (parameter == nullptr) return;
    if (!parameter->several && std::find(given_.begin(), given_.end(), parameter->name) != given_.end()) {
      complain("parameter " + std::string(parameter->name) + " is given twice; give it once");
      return;
    }
    given_.push_back(parameter->name);
    values_.note_written(parameter->name);
    set(*parameter, argument.value);
  }

  void fill_standards() {
    for (const auto& parameter : preset_.parameters) {
      if (std::find(given_.begin(), given_.end(), parameter.name) != given_.end()) continue;
      if (parameter.several) {
        const auto pieces = split_strategies(parameter.standard).value();
        for (const auto& piece : pieces) set(parameter, parse_call(piece).value());
      } else {
        set(parameter, Call{.name = std::string(parameter.standard), .arguments = {}});
      }
    }
  }

  const Values& values() const { return values_; }
  const std::string& complaints() const { return complaints_; }

 private:
  const Parameter* find(const Argument& argument) {
    std::vector<std::string_view> names;
    for (const auto& parameter : preset_.parameters) {
      if (argument.key.empty() ? parameter.bare : parameter.name == argument.key) return &parameter;
      names.push_back(parameter.name);
    }
    if (argument.key == kPatience.name) {
      complain("patience is the whole strategy's; give it outside, such as nonblocking(allreduce,patience=30s)");
      return nullptr;
    }
    if (argument.key.empty()) {
      complain("'" + argument.value.name + "' has no name; " + takes(names));
    } else {
      complain("unknown parameter '" + argument.key + "'" + hint(argument.key, names) + "; " + takes(names));
    }
    return nullptr;
  }

  std::string takes(const std::vector<std::string_view>& names) const {
    return names.empty() ? std::string(preset_.name) + " takes no parameters but patience"
                         : "parameters are " + joined(names) + ", patience";
  }

  void set(const Parameter& parameter, const Call& value) {
    if (parameter.kind == Kind::strategy) {
      auto strategy = build_call(value, spelling(value), workers_);
      if (!strategy) {
        complain(strategy.error().text);
      } else if (parameter.several) {
        values_.append(parameter.name, std::move(*strategy));
      } else {
        values_.set(parameter.name, std::move(*strategy));
      }
      return;
    }
    if (parameter.kind == Kind::period && find_preset(value.name) != nullptr) return set_period(parameter, value);
    auto read = value.arguments.empty() ? read_value(parameter, value.name) : std::nullopt;
    if (read) {
      values_.set(parameter.name, std::move(*read));
    } else {
      complain(std::string(parameter.name) + "=" + value.name + (value.arguments.empty() ? "" : "(..)") +
               " is not allowed; " + std::string(parameter.name) + " is " + range_in_words(parameter) + " (default " +
               std::string(parameter.standard) + ")");
    }
  }

  void set_period(const Parameter& parameter, const Call& value) {
    const std::string what = std::string(parameter.name) + "=" + value.name + "(..)";
    const auto strategy = build_call(value, value.name, workers_);
    if (!strategy) {
      complain(strategy.error().text);
    } else if (!strategy->tiers.back().period.adapts()) {
      complain(what + " has no period that adapts; adacomm(..) and qsr(..) have");
    } else if (strategy->outer.kind != Outer::Kind::none) {
      complain(what + " gives its period only; leave out what goes with its average (block_momentum)");
    } else {
      values_.set(parameter.name, strategy->tiers.back().period);
    }
  }

  void complain(const std::string& what) { complaints_ += (complaints_.empty() ? "" : "; ") + what; }

  const Preset& preset_;
  std::int32_t workers_;
  Values values_;
  std::vector<std::string_view> given_;
  std::string complaints_;
};

tl::unexpected<Error> wrong(std::string_view text, const std::string& what) {
  return fail(ErrorKind::invalid, "strategy " + std::string(text) + ": " + what);
}

/// "1, 2 or 4": what divides the number of workers, or the powers of two up to it.
std::string sizes_that_fit(std::int32_t workers, bool powers) {
  std::vector<std::int32_t> sizes;
  for (std::int32_t s = 1; s <= workers; ++s)
    if (powers ? is_power_of_two(s) : workers % s == 0) sizes.push_back(s);
  std::string text;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    text += (k == 0 ? "" : k + 1 == sizes.size() ? " or " : ", ") + std::to_string(sizes[k]);
  return text;
}

/// What the tiers need of the number of workers.
Result<void> check_sizes(const Strategy& strategy, const Preset& preset, std::string_view text, std::int32_t workers) {
  for (const Tier& tier : strategy.tiers) {
    const auto size = tier.groups.size;
    const auto refuse_size = [&](bool powers, const char* what) {
      return wrong(text, "group=" + std::to_string(size) + " does not fit " + std::to_string(workers) +
                             " workers; group " + what + ": " + sizes_that_fit(workers, powers));
    };
    if (tier.groups.kind == Groups::Kind::strided || tier.groups.kind == Groups::Kind::clusters) {
      if (size < 1 || size > workers || workers % size != 0) return refuse_size(false, "divides the number of workers");
    }
    if (tier.groups.kind != Groups::Kind::butterfly || size == 1) continue;
    if (!is_power_of_two(workers)) {
      std::int64_t below = 1;
      while (2 * below <= workers) below *= 2;
      return wrong(text, std::string(preset.name) + "'s butterfly groups need a power of two workers; " +
                             std::to_string(workers) + " is none: use " + std::to_string(below) + " or " +
                             std::to_string(2 * below) + " workers" +
                             (preset.alternative.empty() ? "" : ", or " + std::string(preset.alternative)));
    }
    if (!is_power_of_two(size) || size > workers)
      return refuse_size(true, "is a power of two and at most the number of workers");
  }
  if (auto mixing = make_mix_plan(strategy, workers, 0); !mixing) return wrong(text, mixing.error().text);
  return {};
}

Result<Strategy> build_call(const Call& call, std::string_view text, std::int32_t workers) {
  const Preset* preset = find_preset(call.name);
  if (preset == nullptr) {
    const auto known = known_strategies();
    return fail(ErrorKind::invalid,
                "unknown strategy '" + call.name + "'" + hint(call.name, known) + "; strategies are " + joined(known));
  }
  ArgumentReader reader(*preset, workers);
  for (const Argument& argument : call.arguments) reader.read(argument);
  reader.fill_standards();
  if (!reader.complaints().empty()) return wrong(text, reader.complaints());
  auto strategy = preset->build(reader.values(), workers);
  if (!strategy) return wrong(text, strategy.error().text);
  PACELINE_TRY(check_sizes(*strategy, *preset, text, workers));
  strategy->name = std::string(text);
  return strategy;
}

}  // namespace

Result<Strategy> parse_strategy(std::string_view text, std::int32_t workers) {
  if (workers < 1) {
    return fail(ErrorKind::invalid, "strategy " + std::string(text.substr(0, kTextMax)) +
                                        " needs at least 1 worker, not " + std::to_string(workers));
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return fail(ErrorKind::invalid, "no strategy is given; strategies are " + joined(known_strategies()));
  auto call = parse_call(text);
  if (!call) return tl::unexpected(std::move(call).error());
  std::optional<Duration> patience;
  const auto is_patience = [](const Argument& argument) { return argument.key == kPatience.name; };
  if (const auto given = std::find_if(call->arguments.begin(), call->arguments.end(), is_patience);
      given != call->arguments.end()) {
    const auto value = given->value.arguments.empty() ? read_value(kPatience, given->value.name) : std::nullopt;
    if (!value)
      return wrong(text, "patience=" + spelling(given->value) + " is not allowed; patience is " +
                             range_in_words(kPatience) + " (default none)");
    if (const auto* const duration = std::get_if<Duration>(&*value)) patience = *duration;
    call->arguments.erase(given);
    if (std::any_of(call->arguments.begin(), call->arguments.end(), is_patience))
      return wrong(text, "parameter patience is given twice; give it once");
  }
  auto strategy = build_call(*call, text, workers);
  if (strategy) strategy->patience = patience;
  return strategy;
}

Coordination coordination(const Strategy& strategy) {
  if (strategy.tiers.front().fragments > 0) return Coordination::exchanges;
  switch (strategy.tiers.front().groups.kind) {
    case Groups::Kind::matched: return Coordination::exchanges;
    case Groups::Kind::all:
    case Groups::Kind::butterfly:
    case Groups::Kind::strided: return Coordination::rounds;
    case Groups::Kind::server:
      return strategy.tiers.front().trigger == Trigger::all_arrived || strategy.brings_batches() ? Coordination::rounds
                                                                                                 : Coordination::server;
    case Groups::Kind::pair: return Coordination::pairs;
    default: return strategy.brings_batches() ? Coordination::rounds : Coordination::mixing;
  }
}

bool has_own_pace(const Strategy& strategy, std::int32_t workers) {
  const auto core = coordination(strategy);
  return core == Coordination::exchanges || (workers > 1 && (core != Coordination::rounds || mixes_batches(strategy)));
}

bool workers_come_back(const Strategy& strategy, std::int32_t workers) {
  if (workers == 1 || !has_own_pace(strategy, workers)) return workers > 1;
  switch (coordination(strategy)) {
    case Coordination::server:
    case Coordination::pairs: return true;
    case Coordination::mixing: return strategy.overlap == 0;
    case Coordination::rounds:  // Whose batches are mixed.
    case Coordination::exchanges: return false;
  }
  return false;
}

bool mixes_batches(const Strategy& strategy) {
  const auto who = strategy.tiers.front().groups.kind;
  return strategy.brings_batches() &&
         (who == Groups::Kind::clusters || who == Groups::Kind::ring || who == Groups::Kind::complete ||
          who == Groups::Kind::bipartite || who == Groups::Kind::matchings);
}

Result<std::string> with_parameter(std::string_view strategy, std::string_view name, std::string_view value) {
  auto call = parse_call(strategy);
  if (!call) return tl::unexpected(call.error());
  auto given = parse_call(value);
  if (!given) return tl::unexpected(given.error());
  const auto its = std::find_if(call->arguments.begin(), call->arguments.end(),
                                [&](const Argument& argument) { return argument.key == name; });
  (its == call->arguments.end() ? call->arguments.emplace_back(Argument{std::string(name), {}}) : *its).value =
      *std::move(given);
  return spelling(*call);
}

std::string with_absolute_paths(std::string_view strategy) {
  std::string text;
  while (!strategy.empty()) {
    const auto begin = std::min(strategy.find_first_not_of("(),= \t\r\n"), strategy.size());
    text += strategy.substr(0, begin);
    strategy.remove_prefix(begin);
    const auto end = std::min(strategy.find_first_of("(),= \t\r\n"), strategy.size());
    const std::string word(strategy.substr(0, end));
    strategy.remove_prefix(end);
    std::error_code none;
    const bool is_file = names_graph_file(word) && !read_real(word) && std::filesystem::is_regular_file(word, none);
    text += is_file ? std::filesystem::absolute(word, none).string() : word;
  }
  return text;
}

Result<void> check_optimizer_state(const Strategy& strategy, std::string_view state) {
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorKind::invalid, "optimizer-state " + std::string(state) + ": " + why);
  };
  if (state.empty() || state == "keep") return {};
  if (state != "reset" && state != "average") return refuse("give keep, reset or average");
  const bool averages_models =
      mixes_batches(strategy) || std::any_of(strategy.tiers.begin(), strategy.tiers.end(),
                                             [](const Tier& tier) { return tier.payload == Payload::models; });
  if (!averages_models)
    return refuse("it has no meaning under " + strategy.name +
                  ", which averages gradients: use local-sgd, wagma or another strategy that averages models");
  const bool adds_a_step = strategy.order == Order::combine_then_adapt || strategy.push_sum || strategy.overlap > 0;
  if (state == "reset" && strategy.tiers.front().fragments > 1)
    return refuse("under " + strategy.name + " a part of the model is averaged at a time: use keep or average");
  if (state == "average" && adds_a_step)
    return refuse("under " + strategy.name + " a step is added to what was averaged before it: use keep or reset");
  return {};
}

Result<void> check_lr_scaling(const Strategy& strategy, std::int32_t workers, std::string_view scaling) {
  if (scaling == "none" || !has_own_pace(strategy, workers)) return {};
  return fail(ErrorKind::invalid, "lr-scaling " + std::string(scaling) + " has no meaning under " + strategy.name +
                                      ", which has no rounds of all, from which each worker would learn how many "
                                      "take part: use none, or a strategy such as local-sgd or wagma");
}

std::vector<StrategyHelp> strategy_help() {
  std::vector<StrategyHelp> lines;
  for (const auto& preset : presets()) {
    std::string spelling(preset.name);
    for (std::size_t k = 0; k < preset.parameters.size(); ++k) {
      const auto& parameter = preset.parameters[k];
      spelling += k == 0 ? "(" : ",";
      if (!parameter.bare) spelling += std::string(parameter.name) + "=";
      spelling += parameter.standard;
    }
    if (!preset.parameters.empty()) spelling += ")";
    lines.push_back({spelling, std::string(preset.sentence)});
  }
  return lines;
}

}  // namespace paceline::algorithms
