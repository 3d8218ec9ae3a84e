#include <cstdio>
#include <memory>
#include <utility>

#include "algorithms/cluster/head.h"
#include "algorithms/cluster/process_life.h"
#include "algorithms/cluster/processes.h"
#include "runtime/base/steady_now.h"
#include "runtime/observe/atomic_file.h"
#include "runtime/store/sqlite_store.h"

namespace paceline::cluster {
namespace {

constexpr Duration kFarewell = std::chrono::milliseconds(50);  // For the answer to `down` to leave.

}  // namespace

Result<bool> run_head(const ProcessOptions& options) {
  auto life = ProcessLife::begin(options, "head");
  if (!life) return tl::unexpected(life.error());
  auto loop = EventLoop::create();
  if (!loop) return tl::unexpected(loop.error());
  bool running = true;
  PACELINE_TRY(life->watch(*loop, {.stop = [&](int) { running = false; }}));
  auto endpoint = open_link_endpoint("head", head_address(options.directory), std::nullopt);
  if (!endpoint) return tl::unexpected(endpoint.error());
  const auto store = std::make_shared<store::SqliteStore>(options.directory + "/state.db");
  Head head(Head::Options{options.name, options.nodes, steady_now(), store}, std::move(endpoint->transport));
  if (!store->damage().empty())
    std::fprintf(stderr, "paceline: head: what earlier heads wrote down is put aside: %s\n", store->damage().c_str());
  PACELINE_TRY(loop->watch(head.descriptor(), [&] { head.poll(steady_now()); }));

  bool announced = false;
  std::optional<Instant> end;
  while (running && !(end && steady_now() >= *end)) {
    const Instant now = steady_now();
    head.tick(now);
    if (!announced && head.ready()) {
      announced = true;
      PACELINE_TRY(observe::write_json_atomic(options.directory + "/ready", "{}\n"));
    }
    if (!end && head.down()) end = now + kFarewell;
    const auto deadline = earlier(head.next_deadline(), end);
    PACELINE_TRY(
        loop->run_once(deadline ? std::max<Duration>(Duration::zero(), *deadline - steady_now()) : Duration(-1)));
  }
  return head.down();
}

}  // namespace paceline::cluster
