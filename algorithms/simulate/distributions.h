#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "algorithms/simulate/random.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace paceline::simulate {

// How long a mini-batch takes. Times in seconds.
struct Constant {
  double time_s;
};
struct Exponential {
  double mean_s;
};
struct Uniform {
  double least_s, most_s;
};
/// exp(N(ln median, sigma^2)).
struct Lognormal {
  double median_s, sigma;
};
/// P(longer than t) = (scale / t)^shape for t >= scale; the mean is infinite for a shape of at most 1.
struct Pareto {
  double scale_s, shape;
};
/// Times that were measured.
struct Trace {
  std::vector<std::vector<double>> times_s;  ///< One list: drawn from, with replacement. Several: worker i takes those
                                             ///< of list i mod lists in their order, over and over.
};
using Distribution = std::variant<Constant, Exponential, Uniform, Lognormal, Pareto, Trace>;

/// "exponential(1s)", "uniform(1s,2s)"; without the file of "trace(FILE)", which is the caller's to read. `invalid`
/// quotes the text and says what it takes.
Result<Distribution> parse_distribution(std::string_view text);
/// The forms that there are, for --help and for errors.
inline constexpr std::string_view kDistributionForms =
    "constant(1s), exponential(1s), uniform(1s,2s), lognormal(1s,0.5), pareto(1s,2) or trace(FILE)";

/// FILE, if `text` is trace(FILE).
std::optional<std::string> traced_file(std::string_view text);

/// The times in a file: one a line, as "1.5" (seconds) or "300ms", empty lines skipped; or the metrics.jsonl of a run,
/// which gives a list a worker: the computing between two of its progress events, a step. `invalid` names the line.
Result<Trace> read_trace(std::string_view content);

/// Time of the worker's draw `index`, within kTimeLeast .. kTimeMost.
double draw(const Distribution& distribution, std::uint64_t seed, Rank worker, std::int64_t index);
inline constexpr double kTimeLeast = 1e-9, kTimeMost = 1e6;

}  // namespace paceline::simulate
