#include "algorithms/cluster/training/job_view.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "algorithms/cluster/training/job_news.h"
#include "algorithms/session/session_state.h"

namespace paceline::cluster {
namespace {

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

template <class T>
unsigned size_of(const std::vector<T>& list) {
  return static_cast<unsigned>(list.size());
}

void write_ranks(const std::vector<Rank>& ranks, capnp::List<std::int32_t>::Builder list) {
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, ranks[i].value);
}

void write_counters(const scheduler::Workplace::Counters& counters, wire::Progress::Counters::Builder body) {
  body.setGroupAverages(counters.group_averages);
  body.setGlobalAverages(counters.global_averages);
  body.setSkipped(counters.skipped);
  body.setLateMerges(counters.late_merges);
  body.setAbandonedBodies(counters.abandoned_bodies);
  auto staleness = body.initStaleness(static_cast<unsigned>(counters.staleness.size()));
  for (unsigned i = 0; i < staleness.size(); ++i) staleness.set(i, counters.staleness[i]);
}

}  // namespace

void JobView::begin(Version first) {
  first_ = first;
  last_ = Version{first.value - 1};
}

void JobView::on_executed(const AveragingService::Executed& executed, Duration clock) {
  if (executed.sums.loss_count > 0)
    figures_.loss = executed.sums.loss_sum / static_cast<double>(executed.sums.loss_count);
  figures_.samples += executed.sums.samples;
  if (executed.version <= last_) return;
  // Time per update, evaluations excluded: the training clock stands still while they run.
  const auto steps = static_cast<double>(executed.version.value - last_.value);
  if (last_ >= first_ && figures_.step_s.size() < kStepsMax)
    figures_.step_s.push_back(static_cast<float>((seconds(clock) - figures_.last_clock_s) / steps));
  figures_.last_clock_s = seconds(clock);
  last_ = executed.version;
}

void JobView::write(wire::Progress::Builder progress, const std::vector<Rank>& starting,
                    std::optional<Duration> since) const {
  progress.setJob(settings_.job.value);
  progress.setNode(settings_.self.value);
  progress.setStrategy(settings_.strategy.name);
  if (starting.empty() || !since) return;
  auto body = progress.initStarting();
  write_ranks(starting, body.initWorkers(size_of(starting)));
  body.setSinceS(seconds(*since));
}

const char* JobView::state_of(Rank rank, WorkerId worker, const memory::Window& window) const {
  if (members_.has_left(rank)) return "left";
  return outbox_.process_state(worker) == 'T' ? "frozen" : name_of(session::state_of(window));
}

void JobView::write(wire::Progress::Training::Builder training, AveragingService& averagings, Duration clock,
                    Instant now) const {
  const std::int64_t done = averagings.done().value;
  training.setUpdate(done + 1);
  training.setUpdates(averagings.last().value + 1);
  training.setPeriod(averagings.period());
  training.setClockS(seconds(clock));
  training.setMedianStepS(seconds(averagings.median_step()));
  training.setStepS(median_of(figures_.step_s));
  training.setLoss(figures_.loss);
  training.setSamples(figures_.samples);
  write_counters(averagings.counters(), training.initCounters());
  cluster::write(averagings.ledger().open(), settings_.self, settings_.leg, training.initLedger());
  std::vector<std::pair<Rank, WorkerId>> shown;
  for (const auto& joined : members_.joined())
    if (averagings.window(joined.first)) shown.push_back(joined);
  auto rows = training.initWorkers(size_of(shown));
  for (unsigned i = 0; i < rows.size(); ++i) {
    const auto [rank, worker] = shown[i];
    const memory::Window& window = *averagings.window(rank);
    const auto& progress = window.progress();
    const auto step = progress.step.load(std::memory_order_relaxed);
    const auto samples = progress.samples.load(std::memory_order_relaxed);
    auto row = rows[i];
    row.setRank(rank.value);
    row.setNode(settings_.self.value);
    row.setPid(outbox_.process_id(worker));
    row.setStep(step);
    row.setLag(std::max<std::int64_t>(0, done + 1 - step));
    row.setSamplesPerS(clock > Duration::zero() ? static_cast<double>(samples) / seconds(clock) : 0.0);
    row.setSamples(samples);
    row.setState(state_of(rank, worker, window));
    row.setComputeS(seconds(Duration(progress.compute_ns.load(std::memory_order_relaxed))));
    row.setWaitS(seconds(Duration(progress.wait_ns.load(std::memory_order_relaxed))));
  }
  if (const auto waiting = averagings.waiting()) {
    auto body = training.initWaiting();
    body.setUpdate(waiting->version.value);
    write_ranks(waiting->missing, body.initMissing(size_of(waiting->missing)));
    body.setSinceS(seconds(now - waiting->since));
  }
}

void JobView::trace(const wire::Progress::Training::Reader& training, AveragingService& averagings, Instant now) {
  std::int64_t samples = 0;
  int waiting = 0;
  for (const auto worker : training.getWorkers()) {
    samples += worker.getSamples();
    waiting += wire::view(worker.getState()) == name_of(session::State::wait);
  }
  const double since = figures_.counted.at == Instant{} ? 0 : seconds(now - figures_.counted.at);
  averagings.count("samples/s", since > 0 ? static_cast<double>(samples - figures_.counted.samples) / since : 0, now);
  averagings.count("workers that wait", waiting, now);
  averagings.count("loss", figures_.loss, now);
  figures_.counted = {now, samples};
}

}  // namespace paceline::cluster
