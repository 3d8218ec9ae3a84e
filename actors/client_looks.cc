// A thread that waits for what comes by a line looks at the line itself for a moment: to be woken takes two other
// threads and longer than most calls. ADR 30.
#include <sched.h>

#include <string>
#include <vector>

#include "actors/client.h"
#include "runtime/base/steady_now.h"
#include "runtime/process/this_process.h"

namespace paceline::actors {
namespace {

/// More lines than that take too long to be looked at.
constexpr std::size_t kLinesMax = 8;
constexpr int kLooksATurn = 16;

/// Another core may be doing what is waited for.
bool has_cores() {
  static const bool several = [] {
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) > 1;
  }();
  return several;
}

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

/// Whether it came in the time of one look. Whoever is ready to run goes first.
bool Client::look(channel::Lines::Watch& watch, Looking& looking, const std::function<bool()>& there) {
  const Instant end = steady_now() + Looking::kTime;
  bool came = false;
  while (true) {
    for (int i = 0; i < kLooksATurn && !came; ++i) {
      watch.look();
      came = there();
      pause();
    }
    if (came || steady_now() >= end) break;
    if (lines_turn_.is_wanted()) return false;  // Nobody knows whether it would have come.
    sched_yield();
  }
  looking.on_looked(came);
  return came;
}

bool Client::look_for(const PendingResult& result) {
  if (!lines_ || result.local() || !has_cores() || process::this_process() != pid_) return false;
  const auto turn = lines_turn_.borrow();
  if (!turn || !looking_for_results_.pays()) return false;
  std::vector<std::string> peers;
  {
    std::lock_guard lock(mutex_);
    if (result.actor().value == 0) {
      if (task_lines_.size() > kLinesMax) return false;
      for (const WorkerId worker : task_lines_) peers.push_back(worker_peer(worker));
    } else if (const auto line = line_to_.find(result.actor()); line != line_to_.end()) {
      if (line->second.state == Line::State::open) peers.push_back(line->second.peer);
    }
  }
  auto watch = lines_->watch_out(peers);
  if (watch.empty()) return false;
  return look(watch, looking_for_results_, [&] { return result.ready(); });
}

bool Client::look_for_work(const std::function<bool()>& there) {
  if (!lines_ || !has_cores() || process::this_process() != pid_) return false;
  const auto turn = lines_turn_.borrow();
  if (!turn || !looking_for_work_.pays()) return false;
  auto watch = lines_->watch_in(kLinesMax);
  if (watch.empty()) return false;
  return look(watch, looking_for_work_, there);
}

}  // namespace paceline::actors
