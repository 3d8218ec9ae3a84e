#include "algorithms/simulate/job_json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/simulate/strict_json.h"
#include "algorithms/strategy.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/json.h"

namespace paceline::simulate {
namespace {

using nlohmann::json;

constexpr std::size_t kQuoteMax = 60;  // Of a wrong value.

std::string text_of(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

std::string quoted(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list of " + std::to_string(value.size());
  const std::string text = json_text(value, -1, true);
  return text.size() > kQuoteMax ? text.substr(0, kQuoteMax) + "..." : text;
}

struct Range {
  double least, most;
  bool below_most = false;  ///< `most` itself is not allowed.

  bool holds(double value) const { return value >= least && (below_most ? value < most : value <= most); }
  std::string words() const {
    return "a number from " + text_of(least) + (below_most ? " to below " : " to ") + text_of(most);
  }
};

constexpr Range kAny{-kNumberMax, kNumberMax};

/// Takes values out of the text and remembers the first thing that is wrong; after that what it gives means nothing.
class Reader {
 public:
  const std::optional<std::string>& error() const { return error_; }

  void refuse(const std::string& path, const std::string& what) {
    if (!error_) error_ = path + ": " + what;
  }
  void refuse(const std::string& path, const json& value, const std::string& allowed) {
    refuse(path, quoted(value) + "; give " + allowed);
  }

  /// `at` must be an object with these members: all of the first, perhaps some of the second, no others.
  bool object(const json& at, const std::string& path, const std::vector<std::string_view>& needed,
              const std::vector<std::string_view>& optional = {}) {
    if (!at.is_object()) {
      refuse(path.empty() ? "the file" : path, at, "an object");
      return false;
    }
    const auto full = [&](std::string_view name) { return (path.empty() ? "" : path + ".") + std::string(name); };
    std::vector<std::string_view> known = needed;
    known.insert(known.end(), optional.begin(), optional.end());
    for (const auto& [name, value] : at.items()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const auto meant = name.size() > 1 ? did_you_mean(name, known) : std::nullopt;
      refuse(full(printable(name.substr(0, kQuoteMax))),
             meant ? "unknown field; did you mean '" + std::string(*meant) + "'?"
                   : "unknown field; known are " + joined(known));
    }
    for (std::string_view name : needed) {
      if (!at.contains(name)) refuse(full(name), "is missing");
    }
    return !error_;
  }

  const json& list(const json& at, const std::string& path, const char* of) {
    static const json kEmpty = json::array();
    if (at.is_array() && !at.empty()) return at;
    refuse(path, at, std::string("a list of ") + of + ", at least one");
    return kEmpty;
  }

  double number(const json& at, const std::string& path, const Range& range) {
    if (at.is_number() && range.holds(at.get<double>())) return at.get<double>();
    refuse(path, at, range.words());
    return range.least;
  }

  std::int64_t integer(const json& at, const std::string& path, std::int64_t least, std::int64_t most) {
    const bool fits = at.is_number_unsigned() ? at.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                                              : at.is_number_integer() && at.get<std::int64_t>() <= most;
    if (fits && at.get<std::int64_t>() >= least) return at.get<std::int64_t>();
    refuse(path, at, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return least;
  }

  Vector vector(const json& at, const std::string& path, const Range& range, std::optional<std::size_t> size) {
    Vector result;
    for (const json& value : list(at, path, "numbers")) {
      const double number = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
      if (!range.holds(number)) {
        refuse(path + "[" + std::to_string(result.size()) + "]", value, range.words());
        return {};
      }
      result.push_back(number);
    }
    if (size && result.size() != *size)
      refuse(path, "has " + std::to_string(result.size()) + " numbers; give " + std::to_string(*size));
    return result;
  }

 private:
  static std::string joined(const std::vector<std::string_view>& names) {
    std::string text;
    for (std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
  }

  std::optional<std::string> error_;
};

std::string element(const std::string& path, std::size_t index) { return path + "[" + std::to_string(index) + "]"; }

std::vector<Quadratic> read_quadratics(Reader& reader, const json& at) {
  std::vector<Quadratic> workers;
  std::optional<std::size_t> size;  // Of the first worker's a.
  for (const json& value : reader.list(at, "problem.workers", "objects {\"a\": [...], \"c\": [...]}")) {
    const std::string path = element("problem.workers", workers.size());
    if (!reader.object(value, path, {"a", "c"})) break;
    Quadratic worker;
    worker.a = reader.vector(value["a"], path + ".a", kAny, size);
    size = size.value_or(worker.a.size());
    worker.c = reader.vector(value["c"], path + ".c", kAny, size);
    if (reader.error()) break;
    workers.push_back(std::move(worker));
  }
  if (workers.size() > kWorkersMax)
    reader.refuse("problem.workers",
                  "has " + std::to_string(workers.size()) + "; give at most " + std::to_string(kWorkersMax));
  return workers;
}

std::shared_ptr<const Problem> read_softmax(Reader& reader, const json& at, std::uint64_t seed) {
  const auto integer = [&](const char* name, std::int64_t least, std::int64_t most) {
    return static_cast<std::int32_t>(reader.integer(at[name], std::string("problem.") + name, least, most));
  };
  if (!reader.object(at, "problem", {"kind", "workers", "classes", "features", "samples"}, {"batch", "spread", "skew"}))
    return nullptr;
  Softmax set{.workers = integer("workers", 1, kWorkersMax),
              .classes = integer("classes", 2, 1000),
              .features = integer("features", 1, 10'000),
              .samples = integer("samples", 1, 1'000'000)};
  if (at.contains("batch")) set.batch = integer("batch", 0, 1'000'000);
  if (at.contains("spread")) set.spread = reader.number(at["spread"], "problem.spread", {0, 1e6});
  if (at.contains("skew")) set.skew = reader.number(at["skew"], "problem.skew", {0, 1});
  const double numbers = 1.0 * set.workers * set.samples * set.features;
  constexpr double kNumbersMax = 1e8;  // 0.8 GB.
  if (numbers > kNumbersMax)
    reader.refuse("problem",
                  "workers x samples x features is " + text_of(numbers) + "; give at most " + text_of(kNumbersMax));
  return reader.error() ? nullptr : make_softmax(set, seed);
}

void read_problem(Reader& reader, const json& at, Job& job) {
  if (!at.is_object()) return reader.refuse("problem", at, "an object");
  const std::string kind = at.contains("kind") && at["kind"].is_string() ? at["kind"].get<std::string>() : "";
  if (kind == "least_squares") {
    if (!reader.object(at, "problem", {"kind", "workers"})) return;
    auto workers = read_quadratics(reader, at["workers"]);
    if (!reader.error()) job.problem = make_quadratic(std::move(workers));
  } else if (kind == "quadratic_noise") {
    if (!reader.object(at, "problem", {"kind", "workers", "noise"})) return;
    auto workers = read_quadratics(reader, at["workers"]);
    const double noise = reader.number(at["noise"], "problem.noise", {0, kNumberMax});
    if (!reader.error()) job.problem = make_quadratic(std::move(workers), noise, job.seed);
  } else if (kind == "softmax") {
    job.problem = read_softmax(reader, at, job.seed);
  } else if (!at.contains("kind")) {
    reader.refuse("problem.kind", "is missing; give \"least_squares\", \"quadratic_noise\" or \"softmax\"");
  } else {
    reader.refuse("problem.kind", at["kind"], "\"least_squares\", \"quadratic_noise\" or \"softmax\"");
  }
}

/// Vectors of `size` numbers, `count` of them.
std::vector<Vector> read_rows(Reader& reader, const json& at, const std::string& path, const Range& range,
                              std::size_t size) {
  std::vector<Vector> rows;
  for (const json& value : reader.list(at, path, "lists of numbers")) {
    rows.push_back(reader.vector(value, element(path, rows.size()), range, size));
    if (reader.error()) break;
  }
  return rows;
}

void read_start(Reader& reader, const json& at, Job& job, std::size_t workers, std::size_t size) {
  if (at.is_array() && !at.empty() && !at[0].is_array()) {
    job.start = {reader.vector(at, "start", kAny, size)};
    return;
  }
  job.start = read_rows(reader, at, "start", kAny, size);
  if (job.start.size() != workers && !reader.error())
    reader.refuse("start", "has " + std::to_string(job.start.size()) +
                               " vectors; give one vector, or one for each of " + std::to_string(workers) + " workers");
}

void read_network(Reader& reader, const json& at, Job& job) {
  if (!reader.object(at, "network", {}, {"latency_s", "bandwidth_Bps"})) return;
  if (at.contains("latency_s")) job.latency_s = reader.number(at["latency_s"], "network.latency_s", {0, kTimeMax});
  if (at.contains("bandwidth_Bps"))
    job.bandwidth_Bps = reader.number(at["bandwidth_Bps"], "network.bandwidth_Bps", {0, 1e18});
}

void read_strategy(Reader& reader, const json& at, Job& job, std::size_t workers) {
  if (!at.is_string()) return reader.refuse("strategy", at, "a text such as \"wagma(group=4,sync=10)\"");
  job.strategy = at.get<std::string>();
  const auto parsed = algorithms::parse_strategy(job.strategy, static_cast<std::int32_t>(workers));
  if (!parsed) reader.refuse("strategy", printable(parsed.error().text));
}

std::vector<Rank> read_ranks(Reader& reader, const json& at, const std::string& path, std::int32_t workers) {
  std::vector<Rank> ranks;
  for (const json& value : reader.list(at, path, "numbers of workers"))
    ranks.emplace_back(static_cast<std::int32_t>(reader.integer(value, element(path, ranks.size()), 0, workers - 1)));
  return ranks;
}

void read_views(Reader& reader, const json& at, Job& job) {
  for (const json& value : reader.list(at, "views", "objects {\"after\": 3, \"leave\": [1], \"join\": [2]}")) {
    const std::string path = element("views", job.views.size());
    if (!reader.object(value, path, {"after"}, {"leave", "join"})) return;
    World::View view{.after = Version{reader.integer(value["after"], path + ".after", -1, kStepsMax)}};
    const auto workers = job.problem->workers();
    if (value.contains("leave")) view.leave = read_ranks(reader, value["leave"], path + ".leave", workers);
    if (value.contains("join")) view.join = read_ranks(reader, value["join"], path + ".join", workers);
    job.views.push_back(std::move(view));
  }
}

bool read_flag(Reader& reader, const json& at, const char* name) {
  if (!at.contains(name)) return false;
  if (!at[name].is_boolean()) reader.refuse(name, at[name], "true or false");
  return at[name] == json(true);
}

void read_members(Reader& reader, const json& at, Job& job) {
  if (!reader.object(at, "", {"problem", "start", "strategy", "lr", "steps", "compute_s"},
                     {"momentum", "nesterov", "network", "seed", "views"}))
    return;
  if (at.contains("seed")) {
    if (!at["seed"].is_number_unsigned()) reader.refuse("seed", at["seed"], "a whole number from 0 to 2^64 - 1");
    if (!reader.error()) job.seed = at["seed"].get<std::uint64_t>();
  }
  job.lr = reader.number(at["lr"], "lr", {0, kNumberMax});
  if (at.contains("momentum")) job.momentum = reader.number(at["momentum"], "momentum", {0, 1, true});
  job.nesterov = read_flag(reader, at, "nesterov");
  job.steps = reader.integer(at["steps"], "steps", 1, kStepsMax);
  if (at.contains("network")) read_network(reader, at["network"], job);
  if (!reader.error()) read_problem(reader, at["problem"], job);
  if (reader.error()) return;
  const auto workers = static_cast<std::size_t>(job.problem->workers());
  read_start(reader, at["start"], job, workers, job.problem->dimensions());
  if (!reader.error()) job.compute_s = read_rows(reader, at["compute_s"], "compute_s", {1e-9, kTimeMax}, workers);
  if (!reader.error()) read_strategy(reader, at["strategy"], job, workers);
  if (!reader.error() && at.contains("views")) read_views(reader, at["views"], job);
}

}  // namespace

Result<Job> read_job(std::string_view text) {
  if (text.size() > kJobTextMax)
    return fail(ErrorKind::invalid, "has more than " + std::to_string(kJobTextMax >> 20) + " MiB; give fewer rows");
  const auto parsed = parse_strict(text);
  if (!parsed) return tl::unexpected(parsed.error());
  Reader reader;
  Job job;
  read_members(reader, *parsed, job);
  if (reader.error()) return fail(ErrorKind::invalid, *reader.error());
  return job;
}

}  // namespace paceline::simulate
