#include "algorithms/cluster/job_directory.h"

#include <algorithm>
#include <utility>

namespace paceline::cluster {
namespace {

std::vector<NodeId> left_of(const JobEntry& entry) {
  std::vector<NodeId> left;
  for (const auto& [node, incarnation] : entry.incarnation_of)
    if (!entry.without.contains(node)) left.push_back(node);
  return left;
}

}  // namespace

/// As far as is known here, the agent lives that it is connected to.
bool JobDirectory::has_driver(const JobEntry& entry) const {
  const auto its = incarnation(entry.driver.node);
  if (!its) return !ended_.contains(entry.driver.node);
  return entry.driver.incarnation == 0 || *its == entry.driver.incarnation;
}

bool JobDirectory::is_the_drivers(NodeId node, const JobEntry& entry) const {
  const auto member = entry.incarnation_of.find(node);
  const bool is_its_agent =
      member == entry.incarnation_of.end() || incarnation(node).value_or(member->second) == member->second;
  return node == entry.driver.node && has_driver(entry) && is_its_agent;
}

/// Not the driver's, and not the last one.
bool JobDirectory::may_go_on_without(const JobEntry& entry, NodeId node) const {
  const auto left = left_of(entry);
  return !is_the_drivers(node, entry) && (left.size() > 1 || left.front() != node);
}

JobId JobDirectory::add(JobEntry entry, Actions& out) {
  const JobId job{++newest_.value};
  for (const NodeId node : entry.node_of) entry.incarnation_of[node] = registered_.at(node).incarnation;
  compare(job, jobs_.emplace(job, std::move(entry)).first->second, out);
  return job;
}

const JobEntry* JobDirectory::find(JobId job) const {
  const auto it = jobs_.find(job);
  return it == jobs_.end() ? nullptr : &it->second;
}

JobDirectory::Actions JobDirectory::begin_next_leg(JobId job, const job::Options& options) {
  JobEntry& entry = jobs_.at(job);
  entry.given["strategy"] = entry.options.strategy = options.strategy;
  entry.given["lr_factor"] = entry.options.lr_factor = options.lr_factor;
  ++entry.leg;
  Actions out;
  compare(job, entry, out);
  return out;
}

bool JobDirectory::may_come_back(JobId job, NodeId node, int most, Instant now) const {
  const JobEntry* const entry = find(job);
  if (!entry || !entry->without.contains(node) || !is_here(node) || !has_driver(*entry)) return false;
  if (is_cut_off(job, node)) return false;
  const auto times = came_back_.find({job, node});
  return most > (times == came_back_.end() ? 0
                                           : std::count_if(times->second.begin(), times->second.end(),
                                                           [now](Instant at) { return now - at < kBackWithin; }));
}

bool JobDirectory::is_cut_off(JobId job, NodeId node) const {
  const auto its = registered_.find(node);
  return its != registered_.end() && its->second.cut_off.contains(job);
}

JobDirectory::Actions JobDirectory::take_back(JobId job, NodeId node, Instant now) {
  auto& times = came_back_[{job, node}];
  std::erase_if(times, [now](Instant at) { return now - at >= kBackWithin; });
  times.push_back(now);
  JobEntry& entry = jobs_.at(job);
  ++entry.leg;
  take_part(job, entry, node);
  Actions out{Open{job, node}};  // It is there before anybody else begins that leg.
  compare(job, entry, out);
  return out;
}

/// From its newest leg on.
void JobDirectory::take_part(JobId job, JobEntry& entry, NodeId node) {
  entry.without.erase(node);
  entry.incarnation_of[node] = registered_.at(node).incarnation;
  entry.back_in[node] = entry.leg;
  told_lost_.erase({job, node});
  runs_[node][job] = entry.leg;
}

JobDirectory::Actions JobDirectory::move_places(JobId job, const std::map<std::int32_t, NodeId>& to) {
  JobEntry& entry = jobs_.at(job);
  ++entry.leg;
  Actions out;
  for (const auto& [rank, node] : to) {
    entry.node_of.at(static_cast<std::size_t>(rank)) = node;
    if (entry.incarnation_of.contains(node)) continue;
    take_part(job, entry, node);
    out.push_back(Open{job, node});
  }
  const std::set<NodeId> nodes(entry.node_of.begin(), entry.node_of.end());
  std::erase_if(entry.incarnation_of, [&](const auto& member) {  // Who is there leaves when it has ended this leg.
    return !nodes.contains(member.first) && entry.without.contains(member.first);
  });
  std::erase_if(entry.back_in, [&](const auto& back) { return !nodes.contains(back.first); });
  std::erase_if(entry.without, [&](NodeId node) { return !nodes.contains(node); });
  if (const auto pairs = apart_.find(job); pairs != apart_.end())
    std::erase_if(pairs->second,
                  [&](const Apart& one) { return !nodes.contains(one.from) || !nodes.contains(one.node); });
  compare(job, entry, out);
  return out;
}

void JobDirectory::on_left(NodeId node, JobId job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || found->second.has_place(node)) return;
  found->second.incarnation_of.erase(node);
  found->second.without.erase(node);
  runs_[node].erase(job);
}

JobDirectory::Actions JobDirectory::close(JobId job) {
  auto closed = jobs_.extract(job);
  if (closed.empty()) return {};
  for (auto& [node, runs] : runs_)
    if (is_here(node)) runs.erase(job);  // Who has said that it runs, and not yet who it is, hears then.
  std::erase_if(told_lost_, [&](const auto& told) { return told.first == job; });
  std::erase_if(came_back_, [&](const auto& one) { return one.first.first == job; });
  apart_.erase(job);
  without_driver_.erase(job);
  return {Close{job, std::move(closed.mapped())}};
}

JobDirectory::Actions JobDirectory::on_driver_gone(NodeId node, const std::string& peer) {
  std::vector<JobId> its;
  for (const auto& [id, entry] : jobs_)
    if (entry.driver.node == node && entry.driver.peer == peer) its.push_back(id);
  Actions out;
  close_all(its, out);
  return out;
}

void JobDirectory::close_all(const std::vector<JobId>& jobs, Actions& out) {
  for (const JobId id : jobs) {
    auto closed = close(id);
    std::move(closed.begin(), closed.end(), std::back_inserter(out));
  }
}

Result<JobDirectory::Actions> JobDirectory::move_driver(JobId job, const std::string& peer, NodeId to,
                                                        const std::map<NodeId, std::uint64_t>& heard, Instant now) {
  const auto found = jobs_.find(job);
  const auto its = incarnation(to);
  if (found == jobs_.end() || found->second.driver.peer != peer || !its)
    return fail(ErrorKind::not_found, "no job " + to_string(job) + " of " + peer + " runs here any more");
  JobEntry& entry = found->second;
  entry.driver = {to, peer, *its, 0, entry.driver.moves + 1};
  without_driver_.erase(job);
  if (const auto pairs = apart_.find(job); pairs != apart_.end())
    for (Apart& one : pairs->second)
      if (one.until == Instant::max())
        one.until = is_here(one.node) ? now + kLeaderPatience : now;  // Not the driver's now.
  Actions out;
  for (const NodeId node : left_of(entry))
    if (runs_[node].contains(job)) out.push_back(Driven{job, node, heard});
  compare(job, entry, out);
  return out;
}

void JobDirectory::on_runs(NodeId node, JobId job, const JobEntry& entry) {
  newest_ = std::max(newest_, job);
  runs_[node][job] = entry.leg;
  JobEntry& known = jobs_.try_emplace(job, entry).first->second;
  if (entry.driver.moves > known.driver.moves) known.driver = entry.driver;
  if (entry.leg == known.leg) known.without.insert(entry.without.begin(), entry.without.end());
  if (entry.leg <= known.leg) return;
  const JobDriver driver = known.driver;  // Who is of which leg, and what it is, is the newest one's word.
  known = entry;
  known.driver = driver;
}

JobDirectory::Actions JobDirectory::on_registered(NodeId node, std::uint64_t incarnation, JobId newest) {
  newest_ = std::max(newest_, newest);
  registered_[node] = {incarnation, newest};
  ended_.erase(node);
  silent_.erase(node);
  Actions out = compare_all();
  for (const auto& [job, leg] : runs_[node])
    if (const auto known = jobs_.find(job); known != jobs_.end() && known->second.driver.moves > 0)
      out.push_back(Driven{job, node});
  std::erase_if(runs_[node], [&](const auto& runs) {
    if (jobs_.contains(runs.first)) return false;
    out.push_back(CloseOn{runs.first, node});
    return true;
  });
  return out;
}

std::optional<std::uint64_t> JobDirectory::incarnation(NodeId node) const {
  const auto it = registered_.find(node);
  return it == registered_.end() ? std::nullopt : std::optional(it->second.incarnation);
}

JobDirectory::Actions JobDirectory::on_gone(NodeId node, std::string cause, bool is_silent) {
  causes_[node] = std::move(cause);
  registered_.erase(node);
  if (!is_silent) ended_.insert(node);
  for (auto& [job, pairs] : apart_)
    for (Apart& one : pairs)
      if ((one.from == node || one.node == node) && !is_the_drivers(one.node, jobs_.at(job)))
        one.until = Instant::min();  // Nobody's word is needed.
  runs_.erase(node);
  Actions out;
  for (const auto& [id, entry] : jobs_)
    if (entry.incarnation_of.contains(node)) lose(id, entry, node, out);
  return out;
}

JobDirectory::Actions JobDirectory::on_cut_off(NodeId from, NodeId node, JobId job, const std::string& cause,
                                               Instant now) {
  Actions out;
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || from == node) return out;
  JobEntry& entry = found->second;
  for (const NodeId member : {from, node})
    if (!entry.incarnation_of.contains(member) || entry.without.contains(member)) return out;
  // Whether another one can be reached, the word of the driver's counts, and else that of who leads.
  if (is_the_drivers(node, entry)) {  // It says so itself, or will turn out to be gone.
    apart_[job].push_back({from, node, cause, Instant::max()});
    return out;
  }
  const bool decides = from == entry.driver.node || from == left_of(entry).front();
  const Instant known = start_ + kRegisterPatience;  // Who is here, as far as this head can know.
  const bool is_gone = !is_here(node) && (now >= known || causes_.contains(node));
  if (decides || is_gone) {
    causes_[node] = cause;
    lose_for_good(job, entry, node, out);
  } else {
    apart_[job].push_back({from, node, cause, std::max(now + kLeaderPatience, is_here(node) ? now : known)});
  }
  return out;
}

/// Of two that cannot reach each other one is not here, or it is the later one.
void JobDirectory::part(Instant now, Actions& out) {
  for (auto& [job, pairs] : apart_) {
    JobEntry& entry = jobs_.at(job);
    for (const Apart& one : pairs) {
      if (entry.without.contains(one.from) || entry.without.contains(one.node) || now < one.until) continue;
      const NodeId later = std::max(one.from, one.node), sooner = std::min(one.from, one.node);
      const NodeId lost = is_here(sooner) ? later : sooner;
      causes_[lost] = one.cause;
      lose_for_good(job, entry, lost, out);
    }
    std::erase_if(pairs, [&](const Apart& one) {
      return entry.without.contains(one.from) || entry.without.contains(one.node) || now >= one.until;
    });
  }
}

void JobDirectory::close_without_driver(Instant now, Actions& out) {
  std::vector<JobId> over;
  for (const auto& [id, entry] : jobs_) {
    const NodeId node = entry.driver.node;
    if (!is_here(node) && !ended_.contains(node) &&
        now >= silent_.try_emplace(node, now).first->second + kSilentPatience)
      ended_.insert(node);
    if (has_driver(entry)) {
      without_driver_.erase(id);
    } else if (now >= without_driver_.try_emplace(id, now + kDriverPatience).first->second) {
      over.push_back(id);
    }
  }
  close_all(over, out);
}

JobDirectory::Actions JobDirectory::tick(Instant now) {
  Actions out;
  part(now, out);
  close_without_driver(now, out);
  if (now < start_ + kRegisterPatience) return out;
  for (const auto& [id, entry] : jobs_)
    for (const auto& [node, incarnation] : entry.incarnation_of)
      if (!is_here(node)) lose(id, entry, node, out);
  return out;
}

std::optional<Instant> JobDirectory::next_deadline() const {
  std::optional<Instant> next;
  for (const auto& [job, pairs] : apart_)
    for (const Apart& one : pairs)
      if (one.until != Instant::max()) next = earlier(next, one.until);
  for (const auto& [id, entry] : jobs_) {
    const auto until = without_driver_.find(id);
    if (until != without_driver_.end()) next = earlier(next, until->second);
    if (until == without_driver_.end() && !has_driver(entry)) next = earlier(next, start_);
    if (is_here(entry.driver.node) || ended_.contains(entry.driver.node)) continue;
    const auto silent = silent_.find(entry.driver.node);
    next = earlier(next, silent == silent_.end() ? start_ : silent->second + kSilentPatience);
  }
  for (const auto& [id, entry] : jobs_)
    for (const auto& [node, incarnation] : entry.incarnation_of)
      if (!is_here(node) && is_here(entry.driver.node) && !told_lost_.contains({id, node}) &&
          !goes_on_without(entry, node))
        return next ? std::min(*next, start_ + kRegisterPatience) : start_ + kRegisterPatience;
  return next;
}

JobDirectory::Actions JobDirectory::compare_all() {
  std::vector<JobId> jobs;
  for (const auto& [id, entry] : jobs_) jobs.push_back(id);
  Actions out;
  for (const JobId id : jobs) compare(id, jobs_.at(id), out);
  return out;
}

/// It was told to, and has not heard it: it runs no part of the job, or one from before it was lost.
bool JobDirectory::has_not_come_back(JobId job, const JobEntry& entry, NodeId node) const {
  const auto back = entry.back_in.find(node);
  if (back == entry.back_in.end()) return false;
  const auto runs = runs_.find(node);
  if (runs == runs_.end()) return true;
  const auto its = runs->second.find(job);
  return its == runs->second.end() || its->second < back->second;
}

/// An agent opens jobs in the order of their numbers: one that was told of a later one, and does not run this one, has
/// closed it.
void JobDirectory::compare(JobId job, JobEntry& entry, Actions& out) {
  std::erase_if(entry.incarnation_of, [&](const auto& member) {  // Those that have left, as on_left() would have said.
    const auto& [node, its] = member;
    return !entry.has_place(node) && !entry.without.contains(node) && incarnation(node) == its &&
           !runs_[node].contains(job);
  });
  for (const auto& [node, incarnation] : entry.incarnation_of) {
    const auto known = registered_.find(node);
    if (known == registered_.end() || entry.without.contains(node)) continue;
    if (known->second.incarnation != incarnation) {
      may_go_on_without(entry, node) ? void(entry.without.insert(node)) : lose(job, entry, node, out);
    } else if (has_not_come_back(job, entry, node) && may_go_on_without(entry, node)) {
      entry.without.insert(node);
    } else if (!runs_[node].contains(job) && known->second.newest >= job) {
      return close_all({job}, out);
    } else if (const auto runs = runs_[node].try_emplace(job, -1).first; runs->second < entry.leg) {
      runs->second = entry.leg;
      known->second.newest = std::max(known->second.newest, job);
      out.push_back(Open{job, node});
    }
  }
  compare_lost(job, entry, out);  // Who is to open it cannot hear of it before.
}

/// Who goes on hears of whom it goes on without, and who was lost, or has no place any more, closes it.
void JobDirectory::compare_lost(JobId job, const JobEntry& entry, Actions& out) {
  for (auto& [node, runs] : runs_)
    if (entry.leg > 0 && is_here(node) && !entry.incarnation_of.contains(node) && runs.erase(job) > 0)
      out.push_back(CloseOn{job, node});
  for (const NodeId lost : entry.without) {
    for (const auto& [node, incarnation] : entry.incarnation_of)
      if (!entry.without.contains(node) && is_here(node)) out.push_back(GoOn{job, node, lost, causes_[lost]});
    if (is_here(lost) && runs_[lost].erase(job) > 0) out.push_back(CloseOn{job, lost});
  }
}

/// Those that are left will say what they cannot reach; where all have ended nobody will.
bool JobDirectory::goes_on_without(const JobEntry& entry, NodeId node) const {
  const auto left = left_of(entry);
  return may_go_on_without(entry, node) && std::any_of(left.begin(), left.end(), [this, node](NodeId each) {
           return each != node && (is_here(each) || !ended_.contains(each));
         });
}

/// Nobody's word is waited for.
void JobDirectory::lose_for_good(JobId job, JobEntry& entry, NodeId node, Actions& out) {
  if (!may_go_on_without(entry, node)) return lose(job, entry, node, out);
  entry.without.insert(node);
  if (is_here(node)) registered_.at(node).cut_off.insert(job);
  compare_lost(job, entry, out);
}

void JobDirectory::lose(JobId job, const JobEntry& entry, NodeId node, Actions& out) {
  if (goes_on_without(entry, node)) return;
  // Its driver hears of it when its own node is there.
  if (!is_here(entry.driver.node) || !told_lost_.insert({job, node}).second) return;
  out.push_back(Lost{job, node, causes_[node]});
}

}  // namespace paceline::cluster
