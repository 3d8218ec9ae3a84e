#include "algorithms/cluster/client.h"

#include <unistd.h>

#include "actors/client.h"
#include "actors/process_client.h"
#include "runtime/base/json.h"

namespace paceline::cluster {

Result<nlohmann::json> ask(const std::filesystem::path& cluster, const std::string& verb, const nlohmann::json& body) {
  actors::Client::Options options;
  options.role = "cli";
  options.name = "cli/" + std::to_string(getpid());
  options.agent_address = actors::agent_address(cluster.string());
  options.welcome_patience = std::chrono::seconds(3);
  auto client = actors::Client::connect(std::move(options), actors::process_transport());
  if (!client) return tl::unexpected(client.error());
  const auto answer = (*client)->request(verb, json_text(body), std::chrono::seconds(5));
  if (!answer) return tl::unexpected(answer.error());
  auto json = parse_json(*answer);
  if (json.is_discarded())
    return fail(ErrorKind::internal, "the cluster answered '" + verb + "' with something that is no JSON");
  return json;
}

}  // namespace paceline::cluster
