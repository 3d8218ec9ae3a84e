#include <memory>
#include <utility>

#include "algorithms/cluster/head.h"
#include "algorithms/cluster/process_life.h"
#include "algorithms/cluster/processes.h"
#include "runtime/base/steady_now.h"
#include "runtime/observe/atomic_file.h"

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
  PACELINE_TRY(life->watch(*loop, [&] { running = false; }));
  auto endpoint = open_link_endpoint("head", head_address(options.directory), std::nullopt);
  if (!endpoint) return tl::unexpected(endpoint.error());
  Head head(Head::Options{options.name, options.nodes, steady_now()}, std::move(endpoint->transport));
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
