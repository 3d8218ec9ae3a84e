#include "cli/simulate_view.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/json.h"
#include "runtime/observe/format.h"
#include "runtime/observe/table.h"

namespace paceline::cli {

namespace {

using simulate::Figures;

using observe::format;

std::string percent(double share) { return format("%.1f %%", 100 * share); }
std::string figure(double value) { return std::isfinite(value) ? format("%.4g", value) : "diverged"; }
std::string whole(double value) { return format("%.0f", value); }
std::string counted(double count, const char* one) { return whole(count) + " " + one + (count == 1 ? "" : "s"); }

struct WorkerFigures {
  std::int64_t rows = 0, late = 0;
  double loss = 0;
};

std::string model_text(const simulate::Vector& model) {
  constexpr std::size_t kShown = 6;
  std::string text;
  for (std::size_t k = 0; k < std::min(model.size(), kShown); ++k) text += (k ? ", " : "") + format("%.8g", model[k]);
  return "(" + text + (model.size() > kShown ? format(", ... %zu numbers", model.size()) : "") + ")";
}

double above_lowest(const Figures& figures) { return std::isnan(figures.loss) ? INFINITY : figures.loss; }
std::string ended(const Figures& figures) {
  return std::isfinite(figures.loss) ? "ended " + figure(figures.loss) + " above the lowest loss" : "diverged";
}
/// What rounding leaves of nothing is nothing.
std::string distance(double value) { return value < 1e-12 ? "0" : figure(value); }

double against(const Figures& figures, const Figures& base) {
  return base.batches_per_s > 0 ? figures.batches_per_s / base.batches_per_s : 0;
}

}  // namespace

std::string time_in_words(double seconds) {
  if (seconds < 0.0995) return format("%.3g ms", 1e3 * seconds);
  if (seconds < 99.5) return format("%.3g s", seconds);
  if (seconds < 5970) return format("%.3g min", seconds / 60);
  return seconds < 172'800 ? format("%.3g hours", seconds / 3600) : format("%.3g days", seconds / 86'400);
}

std::string size_in_words(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t k = 0;
  for (; bytes >= 999.5 && k + 1 < std::size(units); ++k) bytes /= 1000;
  return format("%.3g %s", bytes, units[k]);
}

std::string job_text(const simulate::Job& job, const simulate::Outcome& outcome) {
  const std::size_t workers = outcome.summary.waited.size();
  std::vector<WorkerFigures> seen(workers);
  for (const simulate::Row& row : outcome.rows) {
    WorkerFigures& worker = seen[static_cast<std::size_t>(row.worker.value)];
    ++worker.rows;
    worker.late += row.fresh ? 0 : 1;
    worker.loss = row.loss;
  }
  observe::Table table({"worker", "steps", "skipped", "late", "waited", "last loss"});
  double rows = 0, late = 0, waited = 0;
  for (std::size_t i = 0; i < workers; ++i) {
    const Duration wait = outcome.summary.waited.at(i);
    table.add({std::to_string(i), std::to_string(seen[i].rows), std::to_string(job.steps - seen[i].rows),
               std::to_string(seen[i].late), format("%.6g s", seconds(wait)), figure(seen[i].loss)});
    rows += static_cast<double>(seen[i].rows);
    late += static_cast<double>(seen[i].late);
    waited += seconds(wait);
  }
  const double time = seconds(outcome.summary.time),
               planned = static_cast<double>(workers) * static_cast<double>(job.steps);
  std::string text = table.text() + "\n";
  text += "model " + model_text(outcome.summary.model) + format(" after %.9g s; ", time) +
          counted(static_cast<double>(outcome.summary.messages), "message") + ", " +
          size_in_words(static_cast<double>(outcome.summary.bytes)) + "\n";
  text += "Under " + job.strategy + ", " + counted(static_cast<double>(workers), "worker") + " did " + whole(rows) +
          " of " + counted(planned, "step") + format(" in %.6g s", time) + ", stood waiting for " +
          percent(time > 0 ? waited / (time * static_cast<double>(workers)) : 0) + " of the time, and came late with " +
          percent(rows > 0 ? late / rows : 0) + " of the steps.\n";
  return text;
}

std::string scenario_table(const std::vector<SimulatedStrategy>& strategies, const Figures& base,
                           const simulate::Scenario& scenario) {
  observe::Table table(
      {"strategy", "step", "samples/s", "done", "waited", "late", "loss", "apart", "messages", "bytes"});
  for (const auto& [label, figures] : strategies) {
    table.add({label, time_in_words(figures.virtual_s / static_cast<double>(scenario.steps)),
               format("%.2fx", against(figures, base)), percent(figures.share_done), percent(figures.waited),
               percent(figures.late), figure(figures.loss), distance(figures.apart), whole(figures.messages),
               size_in_words(figures.bytes * scenario.byte_factor())});
  }
  return table.text();
}

std::string scenario_in_words(const std::vector<SimulatedStrategy>& strategies, const Figures& base,
                              const simulate::Scenario& scenario) {
  std::string text = "In " + counted(static_cast<double>(scenario.steps), "step") + " of " +
                     counted(scenario.workers, "worker") + ", ";
  if (strategies.size() == 1) {
    const SimulatedStrategy& only = strategies.front();
    const std::string relative =
        only.label == "allreduce" ? ""
                                  : format(", had %.2f times the samples/s of allreduce", against(only.figures, base));
    return text + only.label + " took " + time_in_words(only.figures.virtual_s) + relative + " and " +
           ended(only.figures) + ".";
  }
  const auto quickest = std::max_element(strategies.begin(), strategies.end(), [](const auto& a, const auto& b) {
    return a.figures.batches_per_s < b.figures.batches_per_s;
  });
  const auto best = std::min_element(strategies.begin(), strategies.end(), [](const auto& a, const auto& b) {
    return above_lowest(a.figures) < above_lowest(b.figures);
  });
  text += quickest->label + " had the most samples/s, " +
          format("%.2f times those of allreduce", against(quickest->figures, base)) + ", and " +
          ended(quickest->figures) + "; ";
  return text + (best == quickest ? "no other came lower."
                                  : best->label + " came lowest, to " + figure(best->figures.loss) + ".");
}

std::string scenario_json(const std::vector<SimulatedStrategy>& strategies, const Figures& base,
                          const simulate::Scenario& scenario) {
  std::string lines;
  for (const auto& [label, figures] : strategies) {
    const nlohmann::json line = {{"strategy", label},
                                 {"virtual_s", figures.virtual_s},
                                 {"step_s", figures.virtual_s / static_cast<double>(scenario.steps)},
                                 {"batches", figures.batches},
                                 {"batches_per_s", figures.batches_per_s},
                                 {"samples_against_allreduce", against(figures, base)},
                                 {"share_done", figures.share_done},
                                 {"share_waited", figures.waited},
                                 {"share_late", figures.late},
                                 {"loss", figures.loss},
                                 {"apart", figures.apart},
                                 {"messages", figures.messages},
                                 {"bytes", figures.bytes * scenario.byte_factor()},
                                 {"curve", figures.curve}};
    lines += json_text(line) + "\n";
  }
  return lines;
}

}  // namespace paceline::cli
