#include "algorithms/simulate/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/base/splitmix.h"

namespace paceline::simulate {
namespace {

constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15u;  // By which splitmix64's state advances.

}  // namespace

Random::Random(std::uint64_t seed, Use use, std::initializer_list<std::int64_t> address) {
  state_ = splitmix(seed);
  state_ = splitmix(state_ ^ static_cast<std::uint64_t>(use));
  for (std::int64_t number : address) state_ = splitmix(state_ ^ static_cast<std::uint64_t>(number));
}

std::uint64_t Random::next() {
  const std::uint64_t number = splitmix(state_);
  state_ += kGamma;
  return number;
}

double Random::uniform() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }

std::int64_t Random::below(std::int64_t n) {
  const auto scaled = static_cast<std::int64_t>((1 - uniform()) * static_cast<double>(n));
  return std::min(scaled, n - 1);
}

double Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2 * std::log(uniform()));
  const double angle = 2 * std::numbers::pi * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

}  // namespace paceline::simulate
