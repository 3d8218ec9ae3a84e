#include "algorithms/cluster/name_directory.h"

#include <string_view>
#include <utility>

#include "runtime/base/did_you_mean.h"
#include "runtime/base/readable.h"

namespace paceline::cluster {
namespace {

using actors::NameClaim;

constexpr std::size_t kShownMax = 8;

std::string called(const std::string& name) { return "actor '" + readable(name) + "'"; }

Error taken(const NameClaim& holder) {
  return {ErrorKind::invalid, called(holder.name) + " lives already, on node " +
                                  to_string(actors::node_of(holder.actor)) + ", created by " + readable(holder.owner) +
                                  ": find it with get_actor(), let get_if_exists give it, or end it first"};
}

Error of_other_type(const NameClaim& holder, const std::string& type) {
  return {ErrorKind::invalid, called(holder.name) + " is a " + readable(holder.type) + ", and no " + readable(type) +
                                  ": ask for it as what it is"};
}

}  // namespace

NameDirectory::Actions NameDirectory::on_claim(std::uint64_t request, const NameClaim& claim) {
  return {decide(request, claim, false)};
}

NameDirectory::Actions NameDirectory::on_find(std::uint64_t request, const std::string& name, const std::string& type) {
  NameClaim wanted;
  wanted.name = name;
  wanted.type = type;
  return {decide(request, wanted, false)};
}

NameDirectory::Action NameDirectory::decide(std::uint64_t request, const NameClaim& wanted, bool confirmed) {
  const bool claims = wanted.actor.value != 0;
  const auto found = names_.find(wanted.name);
  if (found == names_.end()) {
    if (!claims) return Refused{request, unknown(wanted.name)};
    names_.emplace(wanted.name, wanted);
    return Found{request, wanted.actor};
  }
  NameClaim& holder = found->second;
  if (claims && holder.actor == wanted.rule.after) holder = wanted;
  if (claims && holder.actor == wanted.actor) return Found{request, wanted.actor};
  if (!confirmed) {
    asked_[request] = {wanted, holder.actor};
    return Confirm{request, actors::node_of(holder.actor), holder.actor};
  }
  if (claims && !wanted.rule.get_if_exists) return Refused{request, taken(holder)};
  if (!wanted.type.empty() && wanted.type != holder.type) return Refused{request, of_other_type(holder, wanted.type)};
  return Found{request, holder.actor};
}

NameDirectory::Actions NameDirectory::on_confirmed(std::uint64_t request, bool has) {
  const auto asked = asked_.extract(request);
  if (!asked) return {};
  const auto& [wanted, holder] = asked.mapped();
  if (!has) on_unclaim(wanted.name, holder);
  const auto now = names_.find(wanted.name);
  return {decide(request, wanted, now != names_.end() && now->second.actor == holder)};
}

void NameDirectory::on_unclaim(const std::string& name, ActorId actor) {
  const auto found = names_.find(name);
  if (found != names_.end() && found->second.actor == actor) names_.erase(found);
}

std::vector<ActorId> NameDirectory::on_told(NodeId node, const std::vector<NameClaim>& names) {
  std::erase_if(names_, [node](const auto& entry) { return actors::node_of(entry.second.actor) == node; });
  std::vector<ActorId> lost;
  for (const auto& claim : names)
    if (actors::node_of(claim.actor) != node || !names_.emplace(claim.name, claim).second) lost.push_back(claim.actor);
  return lost;
}

NameDirectory::Actions NameDirectory::on_node_gone(NodeId node) {
  (void)on_told(node, {});
  Actions actions;
  std::erase_if(asked_, [&](const auto& entry) {
    if (actors::node_of(entry.second.holder) != node) return false;
    actions.push_back(Again{entry.first});
    return true;
  });
  return actions;
}

std::set<NodeId> NameDirectory::nodes() const {
  std::set<NodeId> nodes;
  for (const auto& [name, claim] : names_) nodes.insert(actors::node_of(claim.actor));
  return nodes;
}

Error NameDirectory::unknown(const std::string& name) const {
  const std::string text = "no " + called(name) + " lives";
  if (names_.empty())
    return {ErrorKind::not_found, text + ", nor any other with a name: create it with {.name = ...} first"};
  std::vector<std::string_view> candidates;
  std::string some;
  for (const auto& [other, claim] : names_) {
    if (candidates.size() < kShownMax) some += (some.empty() ? "'" : ", '") + readable(other) + "'";
    candidates.push_back(other);
  }
  if (candidates.size() > kShownMax) some += ", ...";
  const auto meant = did_you_mean(name, candidates);
  return {ErrorKind::not_found,
          text + (meant ? "; did you mean '" + readable(std::string(*meant)) + "'?" : "") + ": there are " + some};
}

}  // namespace paceline::cluster
