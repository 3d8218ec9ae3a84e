#include "algorithms/cluster/memory_lookout.h"

#include <algorithm>
#include <utility>

#include "runtime/base/steady_now.h"
#include "runtime/store/memory_room.h"

namespace paceline::cluster {
namespace {

MemoryWatch::Options watch_options(NodeId node, std::uint64_t limit) {
  constexpr std::uint64_t kReserveMax = std::uint64_t{1} << 30;
  MemoryWatch::Options watch;
  watch.node = node;
  watch.limit = limit;
  watch.reserve = std::min(store::total_bytes() / 20, kReserveMax);
  return watch;
}

}  // namespace

MemoryLookout::MemoryLookout(NodeId node, std::uint64_t limit, Around around)
    : around_(std::move(around)), watch_(watch_options(node, limit)) {}

Result<void> MemoryLookout::start(EventLoop& loop) {
  auto thread = Background::create();
  if (!thread) return tl::unexpected(thread.error());
  thread_ = *std::move(thread);
  return loop.watch(thread_->descriptor(), [this] { thread_->take_done(); });
}

std::optional<Instant> MemoryLookout::next_deadline() const {
  return !thread_ || looking_ || around_.workers.size() == 0 ? std::nullopt : std::optional(watch_.next_look());
}

void MemoryLookout::tick(Instant now) {
  const auto due = next_deadline();
  if (!due || *due > now) return;
  looking_ = true;
  if (watch_.is_at_all(now)) return look_at_workers();
  auto look = std::make_shared<MemoryWatch::Look>();
  look->at_all = false;
  auto read = [look]() -> Result<void> {
    look->available = store::available_bytes();
    return {};
  };
  thread_->run(std::move(read), [this, look](const Result<void>& done) {
    if (done && look->available < watch_.at_all_below()) return look_at_workers();
    on_look(done, *look);
  });
}

/// Where there are many, to go through them costs more than to read what the machine has: in pages that had not been
/// used for long, too.
void MemoryLookout::look_at_workers() {
  const Instant now = steady_now();
  auto look = std::make_shared<MemoryWatch::Look>();
  auto sources = around_.workers.memory_sources();
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
  thread_->run(std::move(read), [this, look](const Result<void>& done) { on_look(done, *look); });
}

void MemoryLookout::on_look(const Result<void>& done, MemoryWatch::Look& look) {
  looking_ = false;
  if (!done) return watch_.on_no_look(steady_now());
  std::erase_if(look.workers,
                [this](const auto& worker) { return around_.workers.pid(worker.id) <= 0; });  // Ended meanwhile.
  for (auto& worker : look.workers) worker.asked = around_.asked(worker.id);
  if (const auto victim = watch_.on_look(look, steady_now())) around_.end(*victim);
}

}  // namespace paceline::cluster
