#include "cli/simulate_one.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "cli/simulate_view.h"
#include "runtime/base/steady_now.h"
#include "runtime/observe/progress.h"

namespace paceline::cli {

namespace {

// Beyond these it takes --yes.
constexpr double kTimeMax = 60;
constexpr double kBytesMax = 2.0 * (1 << 30);

/// On stderr, once a simulation takes longer than two seconds.
class Progress {
 public:
  Progress(std::string label, double steps) : started_(steady_now()) {
    view_.strategy = std::move(label);
    view_.updates = static_cast<std::int64_t>(steps);
    if (observe::is_live_terminal(STDERR_FILENO)) live_.emplace(STDERR_FILENO);
  }
  ~Progress() {
    if (shown_ && live_) live_->finish(view_);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void on_step() {
    if (++view_.update % 1024 != 0) return;
    const Instant now = steady_now();
    view_.elapsed = now - started_;
    if (view_.elapsed < kQuiet) return;
    shown_ = true;
    const double rate = static_cast<double>(view_.update) / seconds(view_.elapsed);
    view_.samples_per_s = rate;
    view_.eta = from_seconds(std::max(0.0, static_cast<double>(view_.updates - view_.update) / rate));
    live_ ? live_->show(view_, now) : plain_.show(view_, now);
  }

 private:
  static constexpr Duration kQuiet = std::chrono::seconds(2);
  Instant started_;
  observe::RunView view_;
  std::optional<observe::LiveBlock> live_;
  observe::PlainLines plain_{STDERR_FILENO};
  bool shown_ = false;
};

}  // namespace

Result<void> check_cost(const simulate::Cost& cost, bool yes) {
  if (yes || (cost.time_s <= kTimeMax && cost.bytes <= kBytesMax)) return {};
  return fail(ErrorKind::invalid, "would take about " + time_in_words(cost.time_s) + " and " +
                                      size_in_words(cost.bytes) + "; pass --yes to do it all the same");
}

Result<simulate::Outcome> simulate_one(simulate::Job& job, const std::string& label) {
  PACELINE_TRY(simulate::check_span(job));
  Progress progress(label, job.problem->workers() * static_cast<double>(job.steps));
  job.on_step = [&progress] { progress.on_step(); };
  auto outcome = simulate::simulate(job);
  job.on_step = nullptr;
  return outcome;
}

}  // namespace paceline::cli
