#include "runtime/observe/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runtime/observe/format.h"
#include "runtime/observe/text_width.h"

namespace paceline::observe {
namespace {

std::string rate_text(double samples_per_s) {
  if (samples_per_s >= 99'950) return format("%.0f k", samples_per_s / 1e3);
  if (samples_per_s >= 9'995) return format("%.1f k", samples_per_s / 1e3);
  return format("%.0f", samples_per_s);
}

bool troubled(const WorkerView& worker) { return worker.state == "frozen" || worker.state == "dead"; }

const char* color_of(const WorkerView& worker) {
  if (troubled(worker)) return "\x1b[31m";
  if (worker.state == "wait") return "\x1b[33m";
  if (worker.state == "left") return "\x1b[2m";
  return "\x1b[32m";
}

std::string worker_row(const WorkerView& worker, bool color) {
  const std::string who = format("  worker %-3d node %-2d", worker.rank.value, worker.node.value);
  const std::string space(9 - std::min<std::size_t>(text_width(worker.state), 9), ' ');
  return who +
         format("  step %-7lld %8s samples/s  ", static_cast<long long>(worker.step),
                rate_text(worker.samples_per_s).c_str()) +
         (color ? color_of(worker) + worker.state + "\x1b[0m" : worker.state) + space +
         (worker.lag > 0 ? format("  %lld behind", static_cast<long long>(worker.lag)) : "");
}

std::string headline(const RunView& view) {
  std::string line = view.strategy;
  line += format("  update %lld", static_cast<long long>(view.update));
  if (view.updates > 0) line += format("/%lld", static_cast<long long>(view.updates));
  if (view.epochs > 0) line += format("  epoch %d/%d", view.epoch, view.epochs);
  line += "  " + rate_text(view.samples_per_s) + " samples/s";
  if (view.loss) line += format("  loss %.4g", *view.loss);
  if (!view.metric.empty()) line += "  " + view.metric;
  line += "  " + duration_text(view.elapsed);
  if (view.eta) line += ", " + duration_text(*view.eta) + " left";
  return line;
}

/// The first names, and how many more there are: as many as `width` has room for.
std::string logged_line(const RunView& view, std::size_t width) {
  const auto more = [&](std::size_t shown) {
    return shown < view.logged.size() ? format("  and %zu more", view.logged.size() - shown) : "";
  };
  std::string line;
  std::size_t shown = 0;
  while (shown < std::min(view.logged.size(), kLoggedMax)) {
    const auto& [name, value] = view.logged[shown];
    const std::string longer = line + "  " + name + format(" %.4g", value);
    if (shown > 0 && text_width(longer + more(shown + 1)) > width) break;
    line = longer;
    ++shown;
  }
  return line + more(shown);
}

/// What was fitted to `width` ends without spaces.
std::string fit(const std::string& line, std::size_t width) {
  std::string fitted = truncate(line, width);
  fitted.erase(fitted.find_last_not_of(' ') + 1);
  return fitted;
}

}  // namespace

std::string duration_text(Duration time) {
  const double s = std::max(seconds(time), 0.0);
  if (s < 9.95) return format("%.1f s", s);
  const auto whole = std::llround(s);
  if (whole < 60) return format("%lld s", whole);
  if (whole < 3600) return format("%lld:%02lld", whole / 60, whole % 60);
  return format("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
}

std::vector<std::string> render(const RunView& view, std::size_t width, bool color) {
  std::vector<WorkerView> shown = view.workers;
  std::size_t hidden = 0;
  if (shown.size() > kWorkerRowsMax) {
    hidden = shown.size() - kWorkerRowsMax;
    std::stable_sort(shown.begin(), shown.end(), [](const WorkerView& a, const WorkerView& b) {
      return troubled(a) != troubled(b) ? troubled(a) : a.lag > b.lag;
    });
    shown.resize(kWorkerRowsMax);
    std::sort(shown.begin(), shown.end(), [](const WorkerView& a, const WorkerView& b) { return a.rank < b.rank; });
  }
  std::vector<std::string> lines{fit(headline(view), width)};
  if (!view.logged.empty()) lines.push_back(fit(logged_line(view, width), width));
  for (const WorkerView& worker : shown) lines.push_back(fit(worker_row(worker, color), width));
  if (hidden) lines.push_back(fit(format("  ... and %zu more", hidden), width));
  return lines;
}

std::string render_line(const RunView& view) {
  std::string line = headline(view);
  line.append(logged_line(view, SIZE_MAX));
  std::size_t named = 0;
  for (const WorkerView& worker : view.workers) {
    if (!troubled(worker)) continue;
    if (++named > 4) return line + ", ...";
    line += (named == 1 ? "  " : ", ") + format("worker %d ", worker.rank.value) + worker.state;
  }
  return line;
}

}  // namespace paceline::observe
