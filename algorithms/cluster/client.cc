#include "algorithms/cluster/client.h"

#include <unistd.h>

#include <memory>

#include "actors/client.h"
#include "actors/process_client.h"
#include "actors/process_ids.h"
#include "actors/protocol_wire.h"
#include "runtime/base/json.h"

namespace paceline::cluster {
namespace {

Result<std::unique_ptr<actors::Client>> connect_to(const std::filesystem::path& cluster, NodeId node = NodeId{0}) {
  actors::Client::Options options;
  options.role = "cli";
  options.name = "cli/" + std::to_string(getpid());
  options.agent_address = actors::agent_address(cluster.string(), node);
  options.welcome_patience = std::chrono::seconds(3);
  return actors::Client::connect(std::move(options), actors::process_transport());
}

}  // namespace

Result<nlohmann::json> ask(const std::filesystem::path& cluster, const std::string& verb, const nlohmann::json& body) {
  const auto client = connect_to(cluster);
  if (!client) return tl::unexpected(client.error());
  const auto answer = (*client)->request(verb, json_text(body), std::chrono::seconds(5));
  if (!answer) return tl::unexpected(answer.error());
  auto said = parse_json(*answer);
  if (said.is_discarded())
    return fail(ErrorKind::internal, "the cluster answered '" + verb + "' with something that is no JSON");
  return said;
}

Result<ActorId> find_actor(const std::filesystem::path& cluster, const std::string& name) {
  const auto client = connect_to(cluster);
  if (!client) return tl::unexpected(client.error());
  return (*client)->find(name, "");
}

Result<void> kill_actor(const std::filesystem::path& cluster, ActorId actor) {
  const auto client = connect_to(cluster);
  if (!client) return tl::unexpected(client.error());
  const auto ended = (*client)->end(actor);
  if (!ended) return tl::unexpected(ended.error());
  if (*ended) return fail(ErrorKind::not_found, (*ended)->text);
  return {};
}

Result<std::string> cancel_task(const std::filesystem::path& cluster, TaskId task, bool force) {
  const NodeId node = actors::node_of(task);
  if (!std::filesystem::exists(cluster / ("agent-" + to_string(node) + ".sock")))
    return fail(ErrorKind::not_found, "there is no task or call " + to_string(task) + ": the cluster has no node " +
                                          to_string(node) + ", whose it would be");
  const auto client = connect_to(cluster, node);
  if (!client) return tl::unexpected(client.error());
  const auto answer = (*client)->request(
      actors::kCancelVerb, json_text(nlohmann::json{{"task", task.value}, {"force", force}}), std::chrono::seconds(5));
  if (!answer) return tl::unexpected(answer.error());
  return parse_json(*answer).value("owner", std::string());
}

}  // namespace paceline::cluster
