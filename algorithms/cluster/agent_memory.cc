// Looks at what memory the workers of a node take, beside the loop: it means reading a file for each of them.
#include "algorithms/cluster/agent.h"
#include "runtime/base/steady_now.h"
#include "runtime/memory/memory_room.h"

namespace paceline::cluster {

MemoryWatch::Options Agent::memory_options(const Options& options) {
  constexpr std::uint64_t kReserveMax = std::uint64_t{1} << 30;
  MemoryWatch::Options watch;
  watch.node = options.node;
  watch.limit = options.memory_limit;
  watch.reserve = std::min(memory::total_bytes() / 20, kReserveMax);
  return watch;
}

std::optional<Instant> Agent::next_memory_look() const {
  return !lookout_ || looking_ || workers_.size() == 0 ? std::nullopt : std::optional(memory_.next_look());
}

void Agent::look_at_memory(Instant now) {
  const auto due = next_memory_look();
  if (!due || *due > now) return;
  auto look = std::make_shared<MemoryWatch::Look>();
  look->at_all = memory_.is_at_all(now);
  auto read = [look, below = memory_.at_all_below(), sources = workers_.memory_sources()]() -> Result<void> {
    look->available = memory::available_bytes();
    look->at_all = look->at_all || look->available < below;
    if (!look->at_all) return {};
    const Instant begin = steady_now();
    for (const auto& source : sources) {
      const auto has = memory::private_bytes(source.pid);
      look->workers.push_back({source.worker, has - std::min(has, source.born_with), 0});
    }
    look->took = steady_now() - begin;
    return {};
  };
  lookout_->run(std::move(read), [this, look](const Result<void>& done) {
    looking_ = false;
    if (done)
      on_memory(*look);
    else
      memory_.on_no_look(steady_now());
  });
  looking_ = true;
}

void Agent::on_memory(MemoryWatch::Look& look) {
  std::erase_if(look.workers, [this](const auto& worker) { return workers_.pid(worker.id) <= 0; });  // Ended meanwhile.
  for (auto& worker : look.workers)
    if (const auto* const lent = router_.lent(worker.id)) worker.asked = lent->shape.memory;
  const auto victim = memory_.on_look(look, steady_now());
  if (!victim) return;
  carry_out(router_.warning_about(victim->worker, victim->why));
  workers_.end(victim->worker, victim->why);
}

}  // namespace paceline::cluster
