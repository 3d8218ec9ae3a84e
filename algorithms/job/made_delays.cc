#include "algorithms/job/made_delays.h"

#include <optional>
#include <string>

#include "algorithms/parse.h"

namespace paceline::job {
namespace {

constexpr double kFactorMax = 1e6;
constexpr double kDelayMax = 86'400;  // Seconds.
constexpr std::int64_t kCountMax = 999'999;

/// "3:rest" as worker (or count) and what follows.
struct Numbered {
  std::int32_t number = 0;
  std::string_view rest;
};

std::optional<Numbered> numbered(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto number = algorithms::read_integer(text.substr(0, colon));
  if (!number || *number < 0 || *number > kCountMax) return std::nullopt;
  return Numbered{static_cast<std::int32_t>(*number), text.substr(colon + 1)};
}

/// 0: none of ours.
double unit_at_end(std::string_view& text) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  for (const Unit& unit : {Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1}}) {
    if (!text.ends_with(unit.name)) continue;
    text.remove_suffix(unit.name.size());
    return unit.seconds;
  }
  return 0;
}

}  // namespace

Result<SlowWorkers> parse_slow_workers(std::string_view text) {
  SlowWorkers slow;
  for (std::size_t begin = 0; !text.empty() && begin <= text.size();) {
    const auto part = text.substr(begin, text.find(',', begin) - begin);
    const auto worker = numbered(part);
    std::string_view factor = worker ? worker->rest : "";
    if (factor.ends_with('x')) factor.remove_suffix(1);
    const double times = algorithms::read_real(factor).value_or(0);
    if (times < 1 || times > kFactorMax)
      return fail(ErrorKind::invalid,
                  std::string(part) + ": give worker:factor such as 3:4x, with a factor of at least 1");
    slow.factors[worker->number] = times;
    begin += part.size() + 1;
  }
  return slow;
}

Result<RandomDelay> parse_random_delay(std::string_view text) {
  if (text.empty()) return RandomDelay{};
  const auto count = numbered(text);
  std::string_view delay = count ? count->rest : "";
  const double unit = unit_at_end(delay);
  const double value = algorithms::read_real(delay).value_or(-1);
  if (unit == 0 || value < 0 || value * unit > kDelayMax)
    return fail(ErrorKind::invalid, std::string(text) + ": give count:delay such as 1:40ms (units us, ms, s)");
  return RandomDelay{count->number, value * unit};
}

}  // namespace paceline::job
