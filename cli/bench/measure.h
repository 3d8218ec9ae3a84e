#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace paceline::bench {

/// What is told of a benchmark's rounds.
struct Summary {
  double per_second = 0;  ///< The median round's.
  double spread = 0;      ///< From the slowest round to the fastest, as a share of the median.
};

/// `rates`: at least one.
inline Summary summary(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  const std::size_t n = rates.size();
  const double median = (rates[(n - 1) / 2] + rates[n / 2]) / 2;
  return {median, median > 0 ? (rates.back() - rates.front()) / median : 0};
}

/// Operations a second of one round: `lot` is done until `seconds` have passed, at least once, and returns each time
/// how many operations it was.
template <class Lot>
double rate(double seconds, Lot& lot) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  double passed = 0;
  long done = 0;
  do {
    done += lot();
    passed = std::chrono::duration<double>(Clock::now() - begin).count();
  } while (passed < seconds);
  return static_cast<double>(done) / passed;
}

/// So many rounds, `seconds` in all, after a tenth of that to warm up.
template <class Lot>
Summary measure(double seconds, int rounds, Lot lot) {
  rate(seconds / 10, lot);
  std::vector<double> rates;
  for (int round = 0; round < rounds; ++round) rates.push_back(rate(seconds / rounds, lot));
  return summary(std::move(rates));
}

/// How many operations a lot is made of: a tenth of what the benchmark says where less than a second is given to it.
inline int lot_size(int full, double seconds) { return seconds < 1 ? full / 10 : full; }

}  // namespace paceline::bench
