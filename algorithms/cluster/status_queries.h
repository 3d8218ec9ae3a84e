#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "algorithms/cluster/head_jobs.h"
#include "algorithms/cluster/head_links.h"
#include "algorithms/cluster/name_directory.h"

namespace paceline::cluster {

/// Requests for the cluster's `status`: each is asked of all agents, and answered with what they say, when all have or
/// its time is up. Owned by the head's control loop.
class StatusQueries {
 public:
  /// `cluster`: its name.
  StatusQueries(std::string cluster, HeadLinks& links, const HeadJobs& jobs, const NameDirectory& names)
      : cluster_(std::move(cluster)), links_(links), jobs_(jobs), names_(names) {}

  /// Under a number that no other request of the head's has.
  void start(std::uint64_t number, const HeadLinks::Asker& asker, const nlohmann::json& body, Instant now);
  /// An agent that was not there is asked, too.
  void on_registered(const transport::Peer& agent);
  void on_answer(std::uint64_t number, NodeId node, nlohmann::json said, Instant now);
  void tick(Instant now);
  std::optional<Instant> next_deadline() const;

 private:
  struct Query {
    HeadLinks::Asker asker;
    nlohmann::json body;
    std::map<NodeId, nlohmann::json> answers;
    Instant deadline;
  };
  void ask(const transport::Peer& agent, std::uint64_t number);
  void finish(std::uint64_t number, Instant now);
  nlohmann::json status_of(const Query& query, Instant now) const;
  void name_awaited(nlohmann::json& workers) const;

  const std::string cluster_;
  HeadLinks& links_;
  const HeadJobs& jobs_;
  const NameDirectory& names_;
  std::map<std::uint64_t, Query> queries_;
};

}  // namespace paceline::cluster
