#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "algorithms/strategy.h"
#include "runtime/base/instant.h"

namespace paceline::algorithms {

/// ceil(v) as all implementations must agree on it: values a rounding error above a whole number do not go up.
std::int64_t ceil_tolerant(double v);

/// floor(v) likewise: values a rounding error below a whole number do not go down.
std::int64_t floor_tolerant(double v);

/// AdaComm eq. 17: ceil(sqrt(F/F_0) * tau_0), at least 1. F_0 <= 0 gives 1; a negative F counts as 0.
std::int64_t basic_period(std::int64_t tau_0, double loss, double loss_0);

/// AdaComm eq. 20: ceil(sqrt((eta_0/eta) * F/F_0) * tau_0), at least 1; tau_0 lies outside the root.
std::int64_t lr_scaled_period(std::int64_t tau_0, double loss, double loss_0, double lr, double lr_0);

/// AdaComm eq. 18: the candidate if candidate + slack < previous, else gamma * previous, rounded up and clamped to
/// 1..previous-1 (1 stays 1). `previous` nullopt: infinite, the candidate holds.
std::int64_t refined_period(std::int64_t candidate, std::optional<std::int64_t> previous, double gamma, double slack);

/// AdaComm's theory: the period that minimises the error bound after the wall-clock time `time`, in the paper's units:
/// sqrt(2 (F_1 - F_inf) D / (eta^3 L^2 sigma^2 T)). Not rounded, not clamped.
double optimal_period(double loss_drop, double delay, double lr, double smoothness, double variance, double time);

/// QSR eq. 2: max(H_base, floor((alpha / eta)^2)), at most 1e9 (also for a learning rate of 0).
std::int64_t quadratic_period(std::int64_t base, double alpha, double lr);

/// Decides AdaComm's communication period tau: eq. 18 with candidates from eq. 20, once an interval T_0.
///
///   averaging points   |  |  |     |     |        |        tau_0 until the first one at or after T_0,
///   boundaries l*T_0   0        1        2        3        then the rule, once, at the first one after each
///
/// F_0 and eta_0 are those of the first averaging point, also when the rule is first applied there. Several boundaries
/// crossed at once count as one. tau never grows, except after a change of the learning rate with `reset_on_lr_change`.
/// Once gamma has halved tau, the candidate (anchored at tau_0) is often larger for ever: the formula then goes on
/// halving. Pure and deterministic; every agent feeds its own copy the same averages. Bounds: 1 <= tau <= 1e9.
class AdaComm {
 public:
  explicit AdaComm(const Period& options);

  /// An averaging was executed. `loss`: F, the mean over workers of the mean of each one's last loss_window losses.
  /// `time`: the training clock of the node that leads. `lr`: the learning rate in force. Returns the period from here
  /// on. A loss or learning rate that is not a finite number changes nothing; the rule stays due.
  std::int64_t on_average(double loss, Duration time, double lr);

  std::int64_t period() const { return period_; }
  /// The learning rate's schedule may decay it only while tau is 1 (the paper's gating).
  bool lr_may_decay() const { return period_ == 1; }

  /// What the rule decided when it was last applied; for the log.
  struct Decision {
    std::int64_t candidate = 0;  ///< c of eq. 20.
    std::int64_t period = 0;     ///< tau that came out.
    bool by_gamma = false;       ///< The candidate was no smaller: tau was cut by gamma.
  };
  const std::optional<Decision>& last_decision() const { return last_decision_; }

 private:
  Period options_;
  Duration interval_;
  std::int64_t period_;
  std::int64_t boundaries_crossed_ = 0;
  std::optional<double> loss_0_;
  double lr_0_ = 0;
  double lr_last_ = 0;
  bool reset_ = false;  ///< The learning rate has changed since the rule was last applied.
  std::optional<Decision> last_decision_;
};

/// Decides the period of the Quadratic Synchronization Rule anew at every average: it grows as the learning rate
/// decays. Before the first average nobody has heard of a learning rate, and H_base holds.
class Qsr {
 public:
  explicit Qsr(const Period& options) : options_(options), period_(options.steps) {}

  /// As AdaComm's. A learning rate that is not a finite number changes nothing.
  std::int64_t on_average(double loss, Duration time, double lr);
  std::int64_t period() const { return period_; }
  bool lr_may_decay() const { return true; }

 private:
  Period options_;
  std::int64_t period_;
};

/// A period that averages change.
using AdaptivePeriod = std::variant<AdaComm, Qsr>;
/// `options` adapts.
AdaptivePeriod make_adaptive_period(const Period& options);

}  // namespace paceline::algorithms
