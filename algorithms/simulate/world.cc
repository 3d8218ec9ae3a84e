#include "algorithms/simulate/world.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace paceline::simulate {

void step(const Learner& learner, Momentum& momentum, Vector& model, const Vector& gradient) {
  const double mu = learner.momentum;
  if (mu == 0) {
    for (std::size_t k = 0; k < model.size(); ++k) model[k] -= learner.lr * gradient[k];
    return;
  }
  Vector& buffer = momentum.buffer;
  if (buffer.empty()) {
    buffer = gradient;
  } else {
    for (std::size_t k = 0; k < gradient.size(); ++k) buffer[k] = mu * buffer[k] + gradient[k];
  }
  for (std::size_t k = 0; k < gradient.size(); ++k)
    model[k] -= learner.lr * (learner.nesterov ? gradient[k] + mu * buffer[k] : buffer[k]);
}

Duration Network::time(double messages, double bytes_each) const {
  const double transfer = bytes_per_second > 0 ? bytes_each / bytes_per_second : 0;
  return from_seconds(messages * (seconds(latency) + transfer));
}

Duration Network::time_of_average(std::int64_t members, double bytes) const {
  if (members < 2) return Duration::zero();
  const auto g = static_cast<double>(members);
  return std::min(time(2 * (g - 1), bytes / g), time(std::ceil(std::log2(g)), bytes));
}

void finish(Outcome& outcome, const std::vector<Duration>& computed) {
  std::stable_sort(outcome.rows.begin(), outcome.rows.end(), [](const Row& a, const Row& b) {
    return std::tie(a.time, a.worker, a.step) < std::tie(b.time, b.worker, b.step);
  });
  Summary& summary = outcome.summary;
  std::vector<Duration> last(computed.size());
  for (const Row& row : outcome.rows) last[static_cast<std::size_t>(row.worker.value)] = summary.time = row.time;
  for (std::size_t i = 0; i < computed.size(); ++i) summary.waited.push_back(last[i] - computed[i]);
}

void count_ring(Summary& summary, std::int64_t members, std::int64_t numbers) {
  summary.messages += 2 * members * (members - 1);
  summary.bytes += 2 * (members - 1) * numbers * static_cast<std::int64_t>(sizeof(double));
}

void count(Summary& summary, std::int64_t messages, std::int64_t numbers_each) {
  summary.messages += messages;
  summary.bytes += messages * numbers_each * static_cast<std::int64_t>(sizeof(double));
}

}  // namespace paceline::simulate
