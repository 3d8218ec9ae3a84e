#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/instant.h"

namespace paceline::observe {

struct WorkerView {
  Rank rank{};
  NodeId node{};
  std::int64_t step = 0;
  double samples_per_s = 0;
  std::string state{};   ///< compute, wait, averaging, evaluate, frozen, dead, left.
  std::int64_t lag = 0;  ///< Updates behind the job.
};

struct RunView {
  std::string strategy{};
  std::int64_t update = 0;
  std::int64_t updates = 0;  ///< 0: not known.
  int epoch = 0;
  int epochs = 0;  ///< 0: not known.
  double samples_per_s = 0;
  std::optional<double> loss{};
  std::string metric{};                                  ///< "accuracy 88.1 %"; empty: there was no evaluation yet.
  std::vector<std::pair<std::string, double>> logged{};  ///< The newest of what the job logs, by name.
  Duration elapsed{};
  std::optional<Duration> eta{};
  std::vector<WorkerView> workers{};
};

/// Workers that a block shows; the others are counted.
inline constexpr std::size_t kWorkerRowsMax = 16;
/// Names of what the job logs that a line shows, as far as the width goes; the others are counted.
inline constexpr std::size_t kLoggedMax = 8;

/// "0.8 s", "12 s", "3:07", "1:02:03".
std::string duration_text(Duration time);
/// The block: a headline, what the job logs, then a row a worker; frozen, dead and lagging ones first when not all are
/// shown. Every line fits `width` columns.
std::vector<std::string> render(const RunView& view, std::size_t width, bool color);
/// The headline and what the job logs: what goes into a log, with the troubled workers named at its end.
std::string render_line(const RunView& view);

/// Redraws the block at one place of a terminal. One thread. Writes to `fd`, at most every 100 ms; what else is to be
/// printed meanwhile goes through print(). Changes no terminal mode, so there is nothing to restore.
class LiveBlock {
 public:
  /// Colour unless NO_COLOR is set (to anything but "").
  explicit LiveBlock(int fd);
  void show(const RunView& view, Instant now);
  /// Lines above the block.
  void print(const std::string& text);
  /// Draws the last state whatever the time and leaves it standing.
  void finish(const RunView& view);

 private:
  void draw(const RunView& view);
  std::string erase() const;
  void put(const std::string& bytes) const;

  int fd_;
  bool color_;
  std::size_t lines_ = 0;
  std::optional<Instant> drawn_;
  std::optional<RunView> last_;
};

/// Where there is no terminal: one line every `every`.
class PlainLines {
 public:
  explicit PlainLines(int fd, Duration every = std::chrono::seconds(5)) : fd_(fd), every_(every) {}
  void show(const RunView& view, Instant now);
  void print(const std::string& text);
  void finish(const RunView& view);

 private:
  int fd_;
  Duration every_;
  std::optional<Instant> shown_;
};

/// Whether a live block makes sense there: a terminal that is not "dumb".
bool is_live_terminal(int fd);

}  // namespace paceline::observe
