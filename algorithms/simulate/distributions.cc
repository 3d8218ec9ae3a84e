#include "algorithms/simulate/distributions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "algorithms/parse.h"
#include "algorithms/simulate/strict_json.h"
#include "runtime/base/json.h"

namespace paceline::simulate {
namespace {

using algorithms::Call;
using nlohmann::json;

std::optional<double> time_of(const Call& call, std::size_t index) {
  const auto time = algorithms::read_duration(call.arguments[index].value.name);
  if (!time || *time <= Duration(0) || seconds(*time) > kTimeMost) return std::nullopt;
  return seconds(*time);
}
std::optional<double> real_of(const Call& call, std::size_t index) {
  const auto real = algorithms::read_real(call.arguments[index].value.name);
  return real && *real > 0 && *real <= 100 ? real : std::nullopt;
}
bool plain(const Call& call) {
  return std::all_of(call.arguments.begin(), call.arguments.end(), [](const algorithms::Argument& argument) {
    return argument.key.empty() && argument.value.arguments.empty();
  });
}

std::optional<Distribution> distribution_of(const Call& call) {
  const std::size_t given = call.arguments.size();
  if (!plain(call)) return std::nullopt;
  if (call.name == "constant" && given == 1) {
    if (const auto time = time_of(call, 0)) return Constant{*time};
  } else if (call.name == "exponential" && given == 1) {
    if (const auto mean = time_of(call, 0)) return Exponential{*mean};
  } else if (call.name == "uniform" && given == 2) {
    const auto least = time_of(call, 0), most = time_of(call, 1);
    if (least && most && *least <= *most) return Uniform{*least, *most};
  } else if (call.name == "lognormal" && given == 2) {
    const auto median = time_of(call, 0), sigma = real_of(call, 1);
    if (median && sigma) return Lognormal{*median, *sigma};
  } else if (call.name == "pareto" && given == 2) {
    const auto scale = time_of(call, 0), shape = real_of(call, 1);
    if (scale && shape) return Pareto{*scale, *shape};
  }
  return std::nullopt;
}

tl::unexpected<Error> bad_line(std::size_t number, const std::string& what) {
  return fail(ErrorKind::invalid, "line " + std::to_string(number) + ": " + what);
}

std::optional<double> time_in(std::string_view word) {
  if (const auto number = algorithms::read_real(word)) return *number;
  const auto time = algorithms::read_duration(word);
  return time ? std::optional(seconds(*time)) : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last - first + 1);
}

/// Times a step out of a run's events.
class Progress {
 public:
  void take(const json& event) {
    const auto workers = event.is_object() ? event.find("workers") : event.end();
    if (!event.is_object() || workers == event.end() || !workers->is_array()) return;
    for (const json& row : *workers) {
      if (!row.is_object() || !row.value("rank", json()).is_number() || !row.value("step", json()).is_number() ||
          !row.value("compute_s", json()).is_number())
        continue;
      const Seen now{row["step"].get<std::int64_t>(), row["compute_s"].get<double>()};
      const auto [at, first] = last_.try_emplace(row["rank"].get<std::int64_t>(), now);
      const auto steps = now.step - at->second.step;
      const double time =
          (now.compute_s - at->second.compute_s) / static_cast<double>(std::max<std::int64_t>(steps, 1));
      if (first || steps <= 0 || !(time > 0)) continue;
      // As many times as steps were done, so that a busy interval counts for what it is; bounded.
      for (std::int64_t k = 0; k < std::min<std::int64_t>(steps, 1000); ++k) times_[at->first].push_back(time);
      at->second = now;
    }
  }
  Trace trace() const {
    Trace trace;
    for (const auto& [rank, times] : times_) trace.times_s.push_back(times);
    return trace;
  }

 private:
  struct Seen {
    std::int64_t step;
    double compute_s;
  };
  std::map<std::int64_t, Seen> last_;
  std::map<std::int64_t, std::vector<double>> times_;
};

struct Draw {
  std::uint64_t seed;
  Rank worker;
  std::int64_t index;

  Random random() const { return Random(seed, Use::compute, {worker.value, index}); }

  double operator()(const Constant& d) const { return d.time_s; }
  double operator()(const Exponential& d) const { return -d.mean_s * std::log(random().uniform()); }
  double operator()(const Uniform& d) const { return d.least_s + (d.most_s - d.least_s) * (1 - random().uniform()); }
  double operator()(const Lognormal& d) const { return d.median_s * std::exp(d.sigma * random().normal()); }
  double operator()(const Pareto& d) const { return d.scale_s * std::pow(random().uniform(), -1 / d.shape); }
  double operator()(const Trace& d) const {
    const auto& times = d.times_s[static_cast<std::size_t>(worker.value) % d.times_s.size()];
    const auto size = static_cast<std::int64_t>(times.size());
    return times[static_cast<std::size_t>(d.times_s.size() == 1 ? random().below(size) : index % size)];
  }
};

}  // namespace

Result<Distribution> parse_distribution(std::string_view text) {
  const auto call = algorithms::parse_call(text);
  if (!call) return tl::unexpected(call.error());
  if (auto distribution = distribution_of(*call)) return std::move(*distribution);
  return fail(ErrorKind::invalid, "give " + std::string(kDistributionForms) +
                                      ", with times above 0 such as 500ms and shapes from above 0 to 100");
}

std::optional<std::string> traced_file(std::string_view text) {
  constexpr std::string_view kBegin = "trace(";
  if (!text.starts_with(kBegin) || !text.ends_with(')')) return std::nullopt;
  return std::string(trimmed(text.substr(kBegin.size(), text.size() - kBegin.size() - 1)));
}

Result<Trace> read_trace(std::string_view content) {
  std::vector<double> times;
  Progress progress;
  std::size_t number = 0;
  bool is_metrics = false;
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = trimmed(content.substr(0, end));
    content.remove_prefix(std::min(end + 1, content.size()));
    ++number;
    if (line.empty()) continue;
    if (line.front() == '{') {
      is_metrics = true;
      const auto event = parse_strict(line);
      if (!event && content.empty()) break;  // The last line of a run that goes on.
      if (!event) return bad_line(number, event.error().text);
      progress.take(*event);
      continue;
    }
    const auto time = time_in(line);
    if (is_metrics || !time || !(*time > 0) || *time > kTimeMost)
      return bad_line(number, std::string(line.substr(0, 40)) + "; give a time above 0 such as 0.5 (seconds) or 500ms");
    times.push_back(*time);
  }
  Trace trace = is_metrics ? progress.trace() : Trace{{std::move(times)}};
  if (trace.times_s.empty() || trace.times_s[0].empty())
    return fail(ErrorKind::invalid,
                is_metrics ? "has no worker with two progress events: take a longer run" : "has no time in it");
  return trace;
}

double draw(const Distribution& distribution, std::uint64_t seed, Rank worker, std::int64_t index) {
  return std::clamp(std::visit(Draw{seed, worker, index}, distribution), kTimeLeast, kTimeMost);
}

}  // namespace paceline::simulate
