#include "algorithms/cluster/training/job_view.h"

#include <algorithm>

#include "algorithms/session/session_state.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;
using scheduler::AveragingService;

constexpr std::size_t kStepsMax = std::size_t{1} << 16;  // Step times that the median is taken of.

const char* name_of(session::State state) {
  switch (state) {
    case session::State::compute: return "compute";
    case session::State::wait: return "wait";
    case session::State::averaging: return "averaging";
    case session::State::evaluate: return "evaluate";
    case session::State::restore: return "restore";
    case session::State::ended: return "ended";
  }
  return "unknown";
}

double median_of(std::vector<float> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

json numbers_of(const std::vector<Rank>& ranks) {
  json numbers = json::array();
  for (const Rank rank : ranks) numbers.push_back(rank.value);
  return numbers;
}

}  // namespace

void JobView::begin(Version first) {
  first_ = first;
  last_ = Version{first.value - 1};
}

void JobView::on_executed(const AveragingService::Executed& executed, Duration clock) {
  if (executed.sums.loss_count > 0) loss_ = executed.sums.loss_sum / static_cast<double>(executed.sums.loss_count);
  samples_ += executed.sums.samples;
  if (executed.version <= last_) return;
  // Time per update, evaluations excluded: the training clock stands still while they run.
  const auto steps = static_cast<double>(executed.version.value - last_.value);
  if (last_ >= first_ && step_s_.size() < kStepsMax)
    step_s_.push_back(static_cast<float>((seconds(clock) - last_clock_s_) / steps));
  last_clock_s_ = seconds(clock);
  last_ = executed.version;
}

json JobView::starting(const std::vector<Rank>& ranks, std::optional<Duration> since) const {
  json view{{"job", settings_.job.value}, {"node", settings_.self.value}, {"strategy", settings_.strategy.name}};
  if (!ranks.empty() && since) view["starting"] = {{"workers", numbers_of(ranks)}, {"since_s", seconds(*since)}};
  return view;
}

json JobView::view_of(Rank rank, WorkerId worker, const memory::Window& window, std::int64_t done,
                      Duration clock) const {
  const auto& progress = window.progress();
  const auto step = progress.step.load(std::memory_order_relaxed);
  const auto samples = progress.samples.load(std::memory_order_relaxed);
  std::string state = name_of(static_cast<session::State>(progress.state.load(std::memory_order_relaxed)));
  if (members_.has_left(rank))
    state = "left";
  else if (outbox_.process_state(worker) == 'T')
    state = "frozen";
  return {{"rank", rank.value},
          {"node", settings_.self.value},
          {"pid", outbox_.process_id(worker)},
          {"step", step},
          {"lag", std::max<std::int64_t>(0, done + 1 - step)},
          {"samples_per_s", clock > Duration::zero() ? static_cast<double>(samples) / seconds(clock) : 0.0},
          {"samples", samples},
          {"state", state},
          {"compute_s", seconds(Duration(progress.compute_ns.load(std::memory_order_relaxed)))},
          {"wait_s", seconds(Duration(progress.wait_ns.load(std::memory_order_relaxed)))}};
}

void JobView::add(json& view, AveragingService& averagings, Duration clock, Instant now) const {
  const auto& counters = averagings.counters();
  const std::int64_t done = averagings.done().value;
  view["update"] = done + 1;
  view["period"] = averagings.period();
  view["clock_s"] = seconds(clock);
  view["updates"] = averagings.last().value + 1;
  view["median_step_s"] = seconds(averagings.median_step());
  view["step_s"] = median_of(step_s_);
  view["loss"] = loss_;
  view["samples"] = samples_;
  view["counters"] = {{"group_averages", counters.group_averages},
                      {"global_averages", counters.global_averages},
                      {"skipped", counters.skipped},
                      {"late_merges", counters.late_merges},
                      {"abandoned_bodies", counters.abandoned_bodies},
                      {"staleness", counters.staleness}};
  for (const auto& [rank, worker] : members_.joined())
    if (const memory::Window* const window = averagings.window(rank))
      view["workers"].push_back(view_of(rank, worker, *window, done, clock));
  if (const auto waiting = averagings.waiting())
    view["waiting"] = {{"update", waiting->version.value},
                       {"missing", numbers_of(waiting->missing)},
                       {"since_s", seconds(now - waiting->since)}};
}

void JobView::trace(const json& view, AveragingService& averagings, Instant now) {
  std::int64_t samples = 0;
  int waiting = 0;
  for (const auto& worker : view.value("workers", json::array())) {
    samples += worker.value("samples", std::int64_t{0});
    waiting += worker.value("state", "") == name_of(session::State::wait);
  }
  const double since = counted_.at == Instant{} ? 0 : seconds(now - counted_.at);
  averagings.count("samples/s", since > 0 ? static_cast<double>(samples - counted_.samples) / since : 0, now);
  averagings.count("workers that wait", waiting, now);
  averagings.count("loss", loss_, now);
  counted_ = {now, samples};
}

}  // namespace paceline::cluster
