#pragma once

#include <cstdint>
#include <vector>

namespace paceline::cli::reproduce {

// What the papers derive, at any values.

/// 1 + 1/2 + .. + 1/n: mean of the longest of n exponential times of mean 1.
double harmonic(std::int64_t n);

/// AdaComm eq. 12: how much faster a step is on average with period `tau`; `alpha`: time of an averaging over time of a
/// step, both constant.
double period_speedup(double alpha, double tau);

/// Mean of the longest of `workers` times, each the mean of `tau` exponential times of mean 1 (AdaComm eq. 11), by
/// numerical integration of 1 - F^workers; error below 1e-4.
double slowest_mean(std::int64_t workers, std::int64_t tau);

/// AdaComm eq. 13 with F_1 - F_inf = L = sigma^2 = 1.
struct ErrorBound {
  double lr = 0.08;
  double workers = 16;
  double tau = 1;
  double step_s = 1;  ///< With the averaging's share.

  double floor() const { return lr / workers + lr * lr * (tau - 1); }
  double at(double time_s) const { return 2 * step_s / (lr * time_s) + floor(); }
};
/// When the bound of the slower of two (which has the lower floor) falls below the other's.
double crossing_s(const ErrorBound& slow, const ErrorBound& quick);

/// Hier-AVG, theorem 3.4: the part of the bound that depends on K1, K2 and S.
double hierarchy_bound(double k1, double k2, double s);

/// Non-blocking SGD, of the times that the workers would take for a whole batch: corollary 1, the share of the nominal
/// data that an iteration uses, and theorem 5, its throughput over that of an iteration that waits for all.
double share_used(const std::vector<double>& times);
double throughput_ratio(const std::vector<double>& times);

/// Time of an average of `workers` models, each of which takes a link `transfer_s`: around a ring, by recursive
/// doubling.
double ring_s(double workers, double transfer_s);
double doubling_s(double workers, double transfer_s);

}  // namespace paceline::cli::reproduce
