#include "algorithms/cluster/training/job_entry.h"

#include <algorithm>

#include "runtime/base/job_leg.h"
#include "runtime/base/json.h"

namespace paceline::cluster {
namespace {

/// When a job was opened of which this is said now; not before three years ago, whatever is said.
Instant opened_at(const wire::OpenJob::Reader& open, Instant now) {
  constexpr double kAgeMax = 1e8;
  const double age = open.getAge();
  return now - from_seconds(age > 0 ? std::min(age, kAgeMax) : 0);  // Not a number: now.
}

}  // namespace

JobDriver read_driver(const wire::JobDriver::Reader& driver) {
  return {NodeId{driver.getNode()}, wire::text(driver.getPeer()), driver.getIncarnation(), driver.getRequest(),
          driver.getMoves()};
}

void write_driver(wire::JobDriver::Builder out, const JobDriver& driver) {
  out.setNode(driver.node.value);
  out.setPeer(driver.peer);
  out.setIncarnation(driver.incarnation);
  out.setRequest(driver.request);
  out.setMoves(driver.moves);
}

Result<JobEntry> read_job(const wire::OpenJob::Reader& open, Instant now) {
  JobEntry entry;
  entry.given = parse_json(wire::text(open.getJson()));
  if (!entry.given.is_object()) return fail(ErrorKind::invalid, "openJob without options");
  auto options = job::read_options(entry.given);
  if (!options) return tl::unexpected(options.error());
  entry.options = *std::move(options);
  entry.node_of.resize(open.getMembers().size());
  for (const auto member : open.getMembers()) {
    if (member.getRank() < 0 || static_cast<std::size_t>(member.getRank()) >= entry.node_of.size())
      return fail(ErrorKind::invalid, "openJob with a rank out of range");
    entry.node_of[static_cast<std::size_t>(member.getRank())] = NodeId{member.getNode()};
    entry.incarnation_of[NodeId{member.getNode()}] = member.getIncarnation();
    if (member.getLeg() > 0) entry.back_in[NodeId{member.getNode()}] = member.getLeg();
  }
  if (entry.node_of.empty() || std::any_of(entry.node_of.begin(), entry.node_of.end(),
                                           [&](NodeId member) { return !entry.incarnation_of.contains(member); }))
    return fail(ErrorKind::invalid, "openJob without a node of each worker");
  const auto is_later = [&open](const auto& back) { return back.second > open.getLeg(); };
  if (open.getLeg() > kLegsMax || std::any_of(entry.back_in.begin(), entry.back_in.end(), is_later))
    return fail(ErrorKind::invalid, "openJob with a leg out of range");
  for (const auto member : open.getLeaving())
    if (!entry.has_place(NodeId{member.getNode()}))
      entry.incarnation_of[NodeId{member.getNode()}] = member.getIncarnation();
  entry.since = opened_at(open, now);
  entry.driver = read_driver(open.getDriver());
  for (const std::int32_t lost : open.getWithout())
    if (entry.incarnation_of.contains(NodeId{lost})) entry.without.insert(NodeId{lost});
  entry.leg = std::max(0, open.getLeg());
  return entry;
}

bool JobEntry::has_place(NodeId node) const { return std::find(node_of.begin(), node_of.end(), node) != node_of.end(); }

void write_job(wire::OpenJob::Builder open, JobId job, const JobEntry& entry, Instant now) {
  open.setJob(job.value);
  open.setJson(json_text(entry.given));
  open.setAge(seconds(now - entry.since));
  auto members = open.initMembers(static_cast<unsigned>(entry.node_of.size()));
  for (unsigned rank = 0; rank < entry.node_of.size(); ++rank) {
    const NodeId node = entry.node_of[rank];
    members[rank].setRank(static_cast<std::int32_t>(rank));
    members[rank].setNode(node.value);
    members[rank].setIncarnation(entry.incarnation_of.at(node));
    if (const auto back = entry.back_in.find(node); back != entry.back_in.end()) members[rank].setLeg(back->second);
  }
  write_driver(open.initDriver(), entry.driver);
  open.setLeg(entry.leg);
  std::vector<NodeId> leaving;
  for (const auto& [node, incarnation] : entry.incarnation_of)
    if (!entry.has_place(node)) leaving.push_back(node);
  auto left = open.initLeaving(static_cast<unsigned>(leaving.size()));
  for (unsigned i = 0; i < leaving.size(); ++i) {
    left[i].setNode(leaving[i].value);
    left[i].setIncarnation(entry.incarnation_of.at(leaving[i]));
  }
  auto without = open.initWithout(static_cast<unsigned>(entry.without.size()));
  for (unsigned i = 0; const NodeId node : entry.without) without.set(i++, node.value);
}

Result<algorithms::Strategy> job_strategy(const job::Options& options, std::int32_t workers) {
  auto strategy = algorithms::parse_strategy(options.strategy, workers);
  if (!strategy) return strategy;
  PACELINE_TRY(algorithms::check_optimizer_state(*strategy, options.optimizer_state));
  PACELINE_TRY(algorithms::check_lr_scaling(*strategy, workers, options.lr_scaling));
  if (!strategy->brings_batches()) strategy->batches = options.accumulate;
  return strategy;
}

}  // namespace paceline::cluster
