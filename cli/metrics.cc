#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "cli/prometheus.h"
#include "runtime/base/json.h"
#include "runtime/http/loopback_server.h"
#include "runtime/http/token.h"

namespace paceline::cli {
namespace {

struct MetricsFlags {
  std::string name;
  std::int32_t port = 9464;
  bool json = false;
};

constexpr const char* kPrometheus = "text/plain; version=0.0.4; charset=utf-8";

/// Until Ctrl-C, or the cluster's end.
Result<void> serve(const MetricsFlags& flags, const Ask& ask) {
  const auto root = RuntimeRoot::open();
  if (!root) return tl::unexpected(root.error());
  const auto cluster = find_cluster(*root, flags.name);
  if (!cluster) return tl::unexpected(cluster.error());
  const auto file = *cluster / "metrics.token";
  auto token = http::token_in(file);
  if (!token) return tl::unexpected(token.error());
  auto server =
      http::LoopbackServer::open({flags.port, *std::move(token), "/metrics", kPrometheus, [&]() -> Result<std::string> {
                                    const auto status = ask(*cluster, "status", nlohmann::json::object());
                                    if (!status) return tl::unexpected(status.error());
                                    return prometheus_text(*status);
                                  }});
  if (!server) return tl::unexpected(server.error());
  const std::string url = "http://127.0.0.1:" + std::to_string(server->port()) + "/metrics";
  if (flags.json)
    std::puts(json_text({{"url", url}, {"token_file", file.string()}}).c_str());
  else
    std::printf("%s, to who sends the token in %s (Authorization: Bearer ...)\n", url.c_str(), file.c_str());
  std::fflush(stdout);
  std::jthread watch([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && is_running(*cluster)) std::this_thread::sleep_for(std::chrono::seconds(1));
    server->stop();
  });
  server->serve();
  return {};
}

}  // namespace

Action add_metrics(Flags app, Ask ask) {
  auto flags = std::make_shared<MetricsFlags>();
  Flags command = app.command("metrics", "Serve a cluster's figures to Prometheus, on this machine");
  command.add("--name", &flags->name, "default: what PACELINE_CLUSTER names, else 'default'");
  command.add("--port", &flags->port, "on the loopback device; 0: any that is free").between(0, 65535).shows_default();
  command.add("--json", &flags->json, "where it is, as a JSON object: url, token_file");
  return [flags, ask = std::move(ask)] {
    const auto done = serve(*flags, ask);
    return done ? kDone : report(done.error());
  };
}

}  // namespace paceline::cli
