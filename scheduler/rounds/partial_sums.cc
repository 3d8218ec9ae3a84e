#include "scheduler/rounds/partial_sums.h"

#include <algorithm>
#include <utility>

#include "runtime/observe/format.h"

namespace paceline::scheduler {

bool PartialSums::Group::has(Rank contributor) const {
  return std::any_of(contributions.begin(), contributions.end(), [&](const auto& c) { return c.rank == contributor; });
}

std::vector<Rank> PartialSums::Group::contributors() const {
  std::vector<Rank> ranks;
  for (const auto& c : contributions) ranks.push_back(c.rank);
  return ranks;
}

RoundSums PartialSums::Group::totals() const {
  RoundSums all = sums;
  for (const auto& [from, partial] : remote) add(all, partial.sums);
  return all;
}

Contents PartialSums::Group::all_contents() const {
  Contents all = contents;
  for (const auto& [from, partial] : remote) scheduler::add(all, partial.contents);
  return all;
}

Weighing::Total PartialSums::Group::total() const {
  Weighing::Total total{static_cast<std::int64_t>(contributions.size()), bodies, sums.samples};
  for (const auto& [node, partial] : remote) {
    total.contributions += partial.contributions;
    total.bodies += partial.bodies;
    total.samples += partial.sums.samples;
  }
  return total;
}

// This agent's

void PartialSums::send(Key key, NodeId to) {
  auto& group = groups_[key];
  if (group.is_summed) return send_own(key, to);
  if (group.targets.empty())
    work_.averagings.add({[this, key] { return prepare(key); }, [this, key](Instant) { finish(key); }},
                         group.contributors());
  group.targets.push_back(to);
}

void PartialSums::add_own(const Group& group, collective::Reduction& to) const {
  for (const auto& c : group.contributions) {
    to.inputs.push_back(work_.windows.at(c.rank).window.data(c.buffer).data());
    if (weighing_.by_samples) to.weights.push_back(weighing_.of_samples(c.samples));
  }
}

collective::Reduction PartialSums::prepare(Key key) {
  auto& group = groups_.at(key);
  auto reduction = work_.windows.reduction();
  if (group.contributions.empty()) return reduction;
  group.own = work_.pool.get(work_.windows.bytes());
  add_own(group, reduction);
  reduction.outputs.push_back({group.own->data(), 1.0});
  return reduction;
}

void PartialSums::finish(Key key) {
  auto& group = groups_.at(key);
  group.is_summed = true;
  for (const NodeId to : std::exchange(group.targets, {})) send_own(key, to);
}

void PartialSums::send_own(Key key, NodeId to) {
  const auto& group = groups_.at(key);
  const Summed summed{static_cast<std::int32_t>(group.contributions.size()), group.bodies, group.sums, group.contents};
  send(key, summed, group.own ? piece_of(group.own) : Piece{}, work_.job.self, to);
}

void PartialSums::send(Key key, const Summed& summed, Piece sum, NodeId of, NodeId to) {
  wire::Message message;
  auto body = message.root().initPartial();
  body.setJob(work_.job.job.value);
  body.setVersion(key.first);
  body.setGroup(key.second);
  body.setContributions(summed.contributions);
  body.setBodies(summed.bodies);
  body.setLossSum(summed.sums.loss_sum);
  body.setLossCount(summed.sums.loss_count);
  body.setSamples(summed.sums.samples);
  body.setLearningRate(summed.sums.learning_rate);
  body.setLeaderNs(summed.sums.leader_time.count());
  body.setStops(summed.sums.stops);
  body.setMembers(summed.sums.members);
  write(summed.contents, body.initContents(static_cast<unsigned>(summed.contents.size())));
  if (of != work_.job.self) body.setOf(of.value);
  work_.send(to, message, std::move(sum));
}

// Other agents'

std::optional<NodeId> PartialSums::on_partial(NodeId from, const wire::Partial::Reader& header,
                                              std::vector<std::byte> sum, Version done) {
  RemotePartial partial;
  partial.contributions = header.getContributions();
  partial.sum = piece_of(std::move(sum));
  partial.bodies = header.getBodies();
  partial.sums = {header.getLossSum(),      header.getLossCount(),          header.getSamples(),
                  header.getLearningRate(), Duration(header.getLeaderNs()), header.getStops(),
                  header.getMembers()};
  partial.contents = contents_of(header.getContents());
  const Version v{header.getVersion()};
  const auto of = work_.view.giver(from, header.getOf());
  if (of == from) used_.on_given(from, v);
  if (!of || !is_sound(*of, partial) || v <= done) return {};
  const bool is_new = groups_[{v.value, header.getGroup()}].remote.try_emplace(*of, std::move(partial)).second;
  return is_new ? of : std::nullopt;
}

/// Whether this node can add it to its own sum; else the job fails.
bool PartialSums::is_sound(NodeId from, const RemotePartial& partial) {
  if (partial.contributions == 0) return true;
  const bool weighs = partial.contributions > 0 && (!weighing_.by_samples || partial.sums.samples > 0);
  if (!weighs)
    work_.fail_job(
        observe::format("node %d sent a partial sum of %d contributions with %lld samples: it weighs nothing",
                        from.value, partial.contributions, static_cast<long long>(partial.sums.samples)));
  return weighs && work_.has_right_size(from, "a partial sum", partial.sum.size());
}

void PartialSums::pass_on(NodeId lost, NodeId to) {
  const auto pass = [&](const Key& key, const RemotePartial& partial) { send(key, partial, partial.sum, lost, to); };
  used_.pass_on(lost, to, pass);
  for (const auto& [key, group] : groups_)  // Who has no part in it takes no notice.
    if (const auto partial = group.remote.find(lost); partial != group.remote.end()) pass(key, partial->second);
}

/// One summation order everywhere: nodes ascending, inside the own node by rank.
std::optional<std::int32_t> PartialSums::add_up(Key key, const std::vector<NodeId>& others,
                                                collective::Reduction& to) const {
  const auto& group = groups_.at(key);
  auto contributions = static_cast<std::int32_t>(group.contributions.size());
  if (others.empty()) {
    add_own(group, to);
    return contributions;
  }
  bool own_added = group.contributions.empty();
  const auto add_sum_of_own = [&] {
    if (!own_added) to.inputs.push_back(group.own->data());
    own_added = true;
  };
  for (const auto& [node, partial] : group.remote) {
    if (work_.job.self < node) add_sum_of_own();
    if (partial.contributions > 0) {
      // It may have come before anybody here had opened a share.
      if (!work_.has_right_size(node, "a partial sum", partial.sum.size())) return {};
      to.inputs.push_back(partial.sum.data());
    }
    contributions += partial.contributions;
  }
  add_sum_of_own();
  return contributions;
}

void PartialSums::on_executed(Key key, const std::vector<NodeId>& others) {
  auto group = groups_.extract(key);
  used_.keep(key, others, std::move(group.mapped().remote));
}

}  // namespace paceline::scheduler
