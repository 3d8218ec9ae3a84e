#include "algorithms/train/straggler.h"

#include <charconv>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/base/splitmix.h"

namespace paceline::train {
namespace {

/// Splits "3:4x" at the colon and reads the number before and the one at the beginning of what follows.
struct Pair {
  std::int32_t first = 0;
  double second = 0;
  std::string_view unit;
};

bool read_pair(std::string_view text, Pair& pair) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const char* const middle = text.data() + colon;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), middle, pair.first);
  const auto second = std::from_chars(middle + 1, end, pair.second);
  pair.unit = std::string_view(second.ptr, static_cast<std::size_t>(end - second.ptr));
  return first.ec == std::errc{} && first.ptr == middle && second.ec == std::errc{} && std::isfinite(pair.second) &&
         pair.first >= 0;
}

}  // namespace

Result<SlowWorker> parse_slow_worker(std::string_view text) {
  SlowWorker slow;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto item = text.substr(0, comma);
    Pair pair;
    if (!read_pair(item, pair) || pair.unit != "x" || pair.second < 1 || pair.second > 1e6) {
      return fail(ErrorKind::invalid,
                  "slow '" + std::string(item) + "': write worker:factor, such as 3:4x, with a factor of at least 1");
    }
    slow.factors[pair.first] = pair.second;
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return slow;
}

Result<RandomDelay> parse_random_delay(std::string_view text) {
  if (text.empty()) return RandomDelay{};
  Pair pair;
  const bool read = read_pair(text, pair);
  const double unit = pair.unit == "us" ? 1e-6 : pair.unit == "ms" ? 1e-3 : pair.unit == "s" ? 1 : 0;
  if (!read || unit == 0 || pair.second < 0 || pair.second * unit > 86'400) {
    return fail(ErrorKind::invalid,
                "straggle '" + std::string(text) + "': write count:delay with a unit of us, ms or s, such as 1:40ms");
  }
  return RandomDelay{pair.first, pair.second * unit};
}

Straggler::Straggler(const SlowWorker& slow, RandomDelay delay, std::int32_t rank, std::int32_t workers,
                     std::uint64_t seed)
    : delay_(delay), rank_(rank), workers_(workers), seed_(seed) {
  if (const auto it = slow.factors.find(rank); it != slow.factors.end()) factor_ = it->second;
}

double Straggler::before(std::int64_t update) const {
  if (delay_.count <= 0) return 0;
  if (delay_.count >= workers_) return delay_.seconds;
  // The first `count` of a shuffle (Fisher-Yates) of the workers.
  std::vector<std::int32_t> order(static_cast<std::size_t>(workers_));
  std::iota(order.begin(), order.end(), 0);
  std::uint64_t state = splitmix(seed_ ^ splitmix(static_cast<std::uint64_t>(update)));
  for (std::size_t i = 0; i < static_cast<std::size_t>(delay_.count); ++i) {
    state = splitmix(state);
    std::swap(order[i], order[i + state % (order.size() - i)]);
    if (order[i] == rank_) return delay_.seconds;
  }
  return 0;
}

}  // namespace paceline::train
