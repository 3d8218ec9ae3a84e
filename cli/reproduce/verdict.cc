#include "cli/reproduce/verdict.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/base/check.h"
#include "runtime/observe/format.h"

namespace paceline::cli::reproduce {

using observe::format;

double Spread::mean() const {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double Spread::least() const { return *std::min_element(values.begin(), values.end()); }
double Spread::most() const { return *std::max_element(values.begin(), values.end()); }
std::string Spread::text(int digits) const {
  if (values.size() == 1) return format("%.*f", digits, values[0]);
  return format("%.*f (%.*f to %.*f)", digits, mean(), digits, least(), digits, most());
}

Spread operator/(const Spread& a, const Spread& b) {
  PACELINE_CHECK(a.values.size() == b.values.size(), "figures of the same seeds");
  Spread ratio;
  for (std::size_t k = 0; k < a.values.size(); ++k) ratio.values.push_back(a.values[k] / b.values[k]);
  return ratio;
}

Bound Bound::at_least(double mean) {
  Bound bound;
  bound.mean_least_ = mean;
  return bound;
}
Bound Bound::at_most(double mean) {
  Bound bound;
  bound.mean_most_ = mean;
  return bound;
}
Bound Bound::within(double mean, double tolerance) {
  Bound bound = at_least(mean - tolerance);
  bound.mean_most_ = mean + tolerance;
  return bound;
}
Bound Bound::above(double each) {
  Bound bound;
  bound.above_ = each;
  return bound;
}
Bound Bound::below(double each) {
  Bound bound;
  bound.below_ = each;
  return bound;
}
Bound Bound::speedup(double paper) {
  Bound bound = at_least(1 + .8 * (paper - 1));
  bound.above_ = 1;
  return bound;
}

bool Bound::keeps(const Spread& figure) const {
  // A figure that is no number keeps no bound.
  return figure.mean() >= mean_least_ && figure.mean() <= mean_most_ && figure.least() > above_ &&
         figure.most() < below_;
}

bool Bound::reversed(const Spread& figure) const {
  return (std::isfinite(above_) && figure.most() < above_) || (std::isfinite(below_) && figure.least() > below_);
}

std::string Bound::text(bool of_one) const {
  std::string text;
  const auto add = [&](const char* relation, double limit) {
    if (std::isfinite(limit)) text += (text.empty() ? "" : ", ") + format("%s %.4g", relation, limit);
  };
  if (std::isfinite(mean_least_) && std::isfinite(mean_most_)) {
    text = mean_least_ == mean_most_ ? format("= %.4g", mean_least_) : format("%.4g to %.4g", mean_least_, mean_most_);
  } else {
    add("≥", mean_least_);
    add("≤", mean_most_);
  }
  add(of_one ? ">" : "each >", above_);
  add(of_one ? "<" : "each <", below_);
  return text;
}

const char* in_words(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds: return "holds";
    case Verdict::by_construction: return "holds by construction";
    case Verdict::fitted: return "fitted";
    case Verdict::does_not_hold: return "does not hold";
    case Verdict::not_tried: break;
  }
  return "not tried";
}

Verdict verdict_of(const std::vector<Check>& checks, Evidence evidence) {
  if (checks.empty()) return Verdict::not_tried;
  if (!std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.keeps(); }))
    return Verdict::does_not_hold;
  switch (evidence) {
    case Evidence::by_construction: return Verdict::by_construction;
    case Evidence::fitted: return Verdict::fitted;
    case Evidence::measured: break;
  }
  return Verdict::holds;
}

}  // namespace paceline::cli::reproduce
