#include "scheduler/own_pace/model_means.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace paceline::scheduler {
namespace {

// A Partial's group.
constexpr std::int32_t kEvaluation = -1;
constexpr std::int32_t kEnd = -2;

}  // namespace

// Gathering

void ModelMeans::give(Rank rank, Version v, bool copies) {
  const Part model = workers_.model_of(rank);
  Given part{{}, model.data, model.weight};
  if (copies) {
    const auto* data = static_cast<const std::byte*>(model.data);
    part.copy.assign(data, data + work_.windows.bytes());
    part.data = part.copy.data();
  }
  open_[v].parts.insert_or_assign(rank, std::move(part));
}

void ModelMeans::look_at(Version v, Instant now) {
  const auto it = open_.find(v);
  if (it == open_.end() || end_) return;
  if (!it->second.sums.contains(work_.job.self)) return sum_up(v, it->second, now);
  for (const NodeId node : work_.view.others())
    if (!it->second.sums.contains(node)) return;
  if (lacks_all(v)) return;  // Who had the model is lost, and the next one gives it anew.
  const auto whole = std::make_shared<const Sums>(std::move(it->second.sums));
  open_.erase(open_.begin(), std::next(it));  // Of one before, some had given their parts to who led then.
  if (v == workers_.last()) {
    end_ = whole;  // What falls due now is not evaluated.
    average_at_end(v, whole);
  } else {
    average_for_evaluation(v, whole);
  }
  work_.averagings.start(now);
}

bool ModelMeans::lacks_all(Version v) const {
  const auto it = open_.find(v);
  return it == open_.end() || std::all_of(it->second.sums.begin(), it->second.sums.end(),
                                          [](const auto& sum) { return sum.second.weight == 0; });
}

void ModelMeans::look_at_all(Instant now) {
  std::vector<Version> open;
  for (const auto& [v, gathering] : open_) open.push_back(v);
  for (const Version v : open) look_at(v, now);
}

void ModelMeans::sum_up(Version v, Gathering& gathering, Instant now) {
  if (!workers_.parts_are_by_version()) return;
  const auto ranks = workers_.ranks_at(v);
  const auto gave = [&](Rank rank) { return gathering.parts.contains(rank); };
  if (!std::all_of(ranks.begin(), ranks.end(), gave)) return;
  Piece sum;
  double weight = 0;
  std::vector<const void*> inputs;
  Contents contents;
  for (const auto& [rank, part] : gathering.parts) {
    if (v == workers_.last()) work_.ledger.on_used(rank, v);
    scheduler::add(contents, work_.ledger.model(rank));
    inputs.push_back(part.data);
    weight += part.weight;
  }
  if (!inputs.empty()) {
    const auto made = work_.pool.get(work_.windows.bytes());
    collective::sum_into(made->data(), 1.0, inputs, work_.windows.elements(), work_.windows.dtype());
    sum = piece_of(made);
  }
  give_sum(v, std::move(sum), weight, contents, now);
}

void ModelMeans::give_sum(Version v, Piece sum, double weight, const Contents& contents, Instant now) {
  const bool at_end = v == workers_.last();
  Sum own{std::move(sum), weight, {}, at_end};
  own.contents = contents;
  for (const Rank rank : workers_.living_ranks()) add(own.sums, workers_.latest_of(rank));
  own.sums.samples = 0;  // Told with every version.
  if (at_end) {
    for (const NodeId node : work_.view.others()) send(node, v, own, work_.job.self);
  } else if (!work_.view.leads()) {
    send(work_.view.leader(), v, own, work_.job.self);
    open_.erase(v);
    return;
  }
  open_[v].sums.insert_or_assign(work_.job.self, std::move(own));
  look_at(v, now);
}

void ModelMeans::on_gone(Rank rank) {
  for (auto& [v, gathering] : open_)
    if (!gathering.sums.contains(work_.job.self)) gathering.parts.erase(rank);
}

void ModelMeans::forget_evaluation(Version v) {
  const auto it = open_.find(v);
  if (it == open_.end()) return;
  if (!workers_.parts_are_by_version()) return void(open_.erase(it));
  std::erase_if(it->second.sums, [this](const auto& sum) { return sum.first == work_.job.self || !sum.second.at_end; });
}

// Other nodes' sums

void ModelMeans::send(NodeId to, Version v, const Sum& part, NodeId of) {
  wire::Message message;
  auto body = message.root().initPartial();
  body.setJob(work_.job.job.value);
  body.setVersion(v.value);
  body.setGroup(part.at_end ? kEnd : kEvaluation);
  body.setWeight(part.weight);
  body.setLossSum(part.sums.loss_sum);
  body.setLossCount(part.sums.loss_count);
  body.setLearningRate(part.sums.learning_rate);
  write(part.contents, body.initContents(static_cast<unsigned>(part.contents.size())));
  if (of != work_.job.self) body.setOf(of.value);
  work_.send(to, message, part.sum);
}

void ModelMeans::on_partial(NodeId from, const wire::Partial::Reader& header, Bytes sum, Instant now) {
  const Version v{header.getVersion()};
  const bool at_end = header.getGroup() == kEnd;
  if ((!at_end && header.getGroup() != kEvaluation) || v < work_.job.first) return;
  if (!at_end && v >= workers_.last() && !workers_.parts_are_by_version()) return;  // A stop has come in between.
  if ((!sum.empty() && !work_.has_right_size(from, "a sum", sum.size())) || !work_.is_weight(from, header.getWeight()))
    return;
  const auto of = work_.view.giver(from, header.getOf());
  if (!of) return;
  Sum part{piece_of(std::move(sum)), header.getWeight(), {}, at_end};
  part.sums.loss_sum = header.getLossSum();
  part.sums.loss_count = header.getLossCount();
  part.sums.learning_rate = header.getLearningRate();
  part.contents = contents_of(header.getContents());
  work_.ledger.on_held(part.contents);
  auto& sums = open_[v].sums;
  if (const auto before = sums.find(*of); before == sums.end() || before->second.weight == 0)
    sums.insert_or_assign(*of, std::move(part));
  look_at(v, now);
}

void ModelMeans::pass_on(NodeId lost, NodeId to) {
  const auto pass = [&](Version v, const Sums& sums) {
    const auto part = sums.find(lost);
    if (part != sums.end() && part->second.at_end) send(to, v, part->second, lost);
  };
  for (const auto& [v, gathering] : open_) pass(v, gathering.sums);
  if (end_) pass(workers_.last(), *end_);
}

// Means

/// In the order of the nodes, so that all get the same bits.
collective::Reduction ModelMeans::mean_of(const Sums& sums) const {
  auto reduction = work_.windows.reduction();
  double weight = 0;
  for (const auto& [node, part] : sums) {
    if (!part.sum.empty()) reduction.inputs.push_back(part.sum.data());
    weight += part.weight;
  }
  reduction.weights.assign(reduction.inputs.size(), 1 / weight);
  return reduction;
}

RoundSums ModelMeans::totals_of(const Sums& sums) {
  RoundSums totals;
  for (const auto& [node, part] : sums) add(totals, part.sums);
  return totals;
}

void ModelMeans::average_for_evaluation(Version v, const std::shared_ptr<const Sums>& sums) {
  const auto ranks = workers_.living_ranks();
  if (ranks.empty() || !work_.windows.living(ranks.front())) return;
  if (is_under_way()) return;  // One that is due while another runs is left out.
  const Rank evaluator = evaluator_ = ranks.front();
  under_evaluation_ = v;
  const auto prepare = [this, v, evaluator, sums] {
    auto reduction = mean_of(*sums);
    auto* const member = work_.windows.living(evaluator);
    const auto buffer = member ? work_.begin_result(evaluator, *member, v) : std::nullopt;
    if (!buffer) return work_.windows.reduction();
    reduction.outputs.push_back({member->window.data(*buffer).data(), 1.0});
    return reduction;
  };
  const auto evaluate = [this, v, evaluator, sums](Instant) {
    auto* const member = work_.windows.living(evaluator);
    if (!member) {
      under_evaluation_.reset();
      return;
    }
    member->window.retain();
    ++work_.counters.global_averages;
    work_.tell(Workplace::Executed{v, true, false, true, {evaluator}, totals_of(*sums)});
  };
  work_.averagings.add({prepare, evaluate}, {});
}

void ModelMeans::average_at_end(Version v, const std::shared_ptr<const Sums>& sums) {
  const auto given = std::make_shared<std::vector<Rank>>();
  const auto prepare = [this, v, given, sums] {
    auto reduction = mean_of(*sums);
    for (const Rank rank : workers_.living_ranks()) {
      auto* const member = work_.windows.living(rank);
      const auto buffer = member ? work_.begin_result(rank, *member, v) : std::nullopt;
      if (!buffer) continue;
      reduction.outputs.push_back({member->window.data(*buffer).data(), 1.0});
      given->push_back(rank);
    }
    return reduction;
  };
  const auto end = [this, v, given, sums](Instant) {
    open_.clear();
    Contents contents;
    for (const auto& [node, part] : *sums) scheduler::add(contents, part.contents);
    work_.ledger.on_job_has(contents, true);
    std::vector<Rank> evaluators;
    for (const Rank rank : *given) {
      auto* const member = work_.windows.living(rank);
      if (!member) continue;
      member->window.deliver();
      evaluators.push_back(rank);
    }
    ++work_.counters.global_averages;
    work_.windows.set_last(v);
    work_.hold_for_good(v);
    work_.tell(Workplace::Executed{v, true, true, work_.job.evaluates, evaluators, totals_of(*sums)});
    workers_.on_end(*given);
  };
  work_.averagings.add({prepare, end}, {});
}

}  // namespace paceline::scheduler
