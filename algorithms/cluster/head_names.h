#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "algorithms/cluster/head_links.h"
#include "algorithms/cluster/name_directory.h"

namespace paceline::cluster {

/// The shell of the head's NameDirectory: keeps who has asked what of it, and asks agents what it wants to know. Owned
/// by the head's control loop.
class HeadNames {
 public:
  struct Request {
    HeadLinks::Asker asker;
    std::string verb;
    nlohmann::json body;
  };
  struct Listener {
    std::function<void(const Request&, Instant)> again;  ///< To be made again when all nodes are there.
    std::function<void()> found;                         ///< directory().nodes() may have changed.
  };

  HeadNames(HeadLinks& links, Listener listener) : links_(links), listener_(std::move(listener)) {}

  /// `claim` or `find_actor`, under a number that no other request of the head's has.
  void ask(std::uint64_t number, const Request& request, Instant now);
  bool has_asked(std::uint64_t number) const { return requests_.contains(number); }
  void on_confirmed(std::uint64_t number, const nlohmann::json& said, Instant now);
  void on_unclaim(const nlohmann::json& body);
  void on_names(const transport::Peer& agent, const nlohmann::json& body);
  void on_node_gone(NodeId node, Instant now) { act(directory_.on_node_gone(node), now); }
  const NameDirectory& directory() const { return directory_; }

 private:
  void act(const NameDirectory::Actions& actions, Instant now);
  void carry_out(const NameDirectory::Found& found, Instant now);
  void carry_out(const NameDirectory::Refused& refused, Instant now);
  void carry_out(const NameDirectory::Confirm& confirm, Instant now);
  void carry_out(const NameDirectory::Again& again, Instant now);

  HeadLinks& links_;
  const Listener listener_;
  NameDirectory directory_;
  std::map<std::uint64_t, Request> requests_;  // That the directory has.
};

}  // namespace paceline::cluster
