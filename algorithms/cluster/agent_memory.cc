// Looks at what memory the workers of a node take, beside the loop: it means reading a file for each of them.
#include "algorithms/cluster/agent.h"
#include "runtime/base/steady_now.h"
#include "runtime/store/memory_room.h"

namespace paceline::cluster {

MemoryWatch::Options Agent::memory_options(const Options& options) {
  constexpr std::uint64_t kReserveMax = std::uint64_t{1} << 30;
  MemoryWatch::Options watch;
  watch.node = options.node;
  watch.limit = options.memory_limit;
  watch.reserve = std::min(store::total_bytes() / 20, kReserveMax);
  return watch;
}

std::optional<Instant> Agent::next_memory_look() const {
  return !lookout_ || looking_ || workers_->size() == 0 ? std::nullopt : std::optional(memory_.next_look());
}

void Agent::look_at_memory(Instant now) {
  const auto due = next_memory_look();
  if (!due || *due > now) return;
  looking_ = true;
  if (memory_.is_at_all(now)) return look_at_workers();
  auto look = std::make_shared<MemoryWatch::Look>();
  look->at_all = false;
  auto read = [look]() -> Result<void> {
    look->available = store::available_bytes();
    return {};
  };
  lookout_->run(std::move(read), [this, look](const Result<void>& done) {
    if (done && look->available < memory_.at_all_below()) return look_at_workers();
    on_memory(done, *look);
  });
}

/// Where there are many, to go through them costs more than to read what the machine has: in pages that had not been
/// used for long, too.
void Agent::look_at_workers() {
  const Instant now = steady_now();
  auto look = std::make_shared<MemoryWatch::Look>();
  auto sources = workers_->memory_sources();
  look->took = steady_now() - now;
  auto read = [look, sources = std::move(sources)]() -> Result<void> {
    look->available = store::available_bytes();
    const Instant begin = steady_now();
    for (const auto& source : sources) {
      const auto has = store::private_bytes(source.pid);
      look->workers.push_back({source.worker, has - std::min(has, source.born_with), 0});
    }
    look->took += steady_now() - begin;
    return {};
  };
  lookout_->run(std::move(read), [this, look](const Result<void>& done) { on_memory(done, *look); });
}

void Agent::on_memory(const Result<void>& done, MemoryWatch::Look& look) {
  looking_ = false;
  if (!done) return memory_.on_no_look(steady_now());
  std::erase_if(look.workers,
                [this](const auto& worker) { return workers_->pid(worker.id) <= 0; });  // Ended meanwhile.
  for (auto& worker : look.workers)
    if (const auto* const lent = router_.lent(worker.id)) worker.asked = lent->shape.memory;
  const auto victim = memory_.on_look(look, steady_now());
  if (!victim) return;
  carry_out(router_.warning_about(victim->worker, victim->why));
  workers_->end(victim->worker, victim->why);
}

}  // namespace paceline::cluster
