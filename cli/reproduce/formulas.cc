#include "cli/reproduce/formulas.h"

#include <algorithm>
#include <cmath>

namespace paceline::cli::reproduce {
namespace {

/// P(mean of tau exponential times of mean 1 <= x).
double erlang_mean_below(double x, std::int64_t tau) {
  const double rate = static_cast<double>(tau) * x;
  double above = 0;
  for (std::int64_t k = 0; k < tau; ++k) {
    const auto count = static_cast<double>(k);
    above += std::exp(count * std::log(rate) - rate - std::lgamma(count + 1));
  }
  return std::max(0.0, 1 - above);
}

}  // namespace

double harmonic(std::int64_t n) {
  double sum = 0;
  for (std::int64_t k = 1; k <= n; ++k) sum += 1 / static_cast<double>(k);
  return sum;
}

double period_speedup(double alpha, double tau) { return (1 + alpha) / (1 + alpha / tau); }

double slowest_mean(std::int64_t workers, std::int64_t tau) {
  constexpr double kStep = 1e-3;
  double sum = 0;
  for (double x = kStep / 2; x < 40; x += kStep) {
    const double rest = 1 - std::pow(erlang_mean_below(x, tau), static_cast<double>(workers));
    sum += kStep * rest;
    if (x > 1 && rest < 1e-9) break;
  }
  return sum;
}

double crossing_s(const ErrorBound& slow, const ErrorBound& quick) {
  return 2 / slow.lr * (slow.step_s - quick.step_s) / (quick.floor() - slow.floor());
}

double hierarchy_bound(double k1, double k2, double s) {
  return (k2 - k1) * (4 * k2 + k1 - 3) / s + (k1 - 1) * (3 * k2 + k1 - 2);
}

double share_used(const std::vector<double>& times) {
  const double least = *std::min_element(times.begin(), times.end());
  double sum = 0;
  for (double time : times) sum += least / time;
  return sum / static_cast<double>(times.size());
}

double throughput_ratio(const std::vector<double>& times) {
  const double most = *std::max_element(times.begin(), times.end());
  double sum = 0;
  for (double time : times) sum += most / time;
  return sum / static_cast<double>(times.size());
}

double ring_s(double workers, double transfer_s) { return 2 * (workers - 1) / workers * transfer_s; }
double doubling_s(double workers, double transfer_s) { return std::ceil(std::log2(workers)) * transfer_s; }

}  // namespace paceline::cli::reproduce
