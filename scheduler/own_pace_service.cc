#include "scheduler/own_pace_service.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace paceline::scheduler {
namespace {

constexpr Duration kPatienceMin = std::chrono::seconds(5);
constexpr int kPatienceSteps = 10;
// A Partial's group.
constexpr std::int32_t kSnapshot = -1;
constexpr std::int32_t kEnd = -2;

}  // namespace

OwnPaceService::OwnPaceService(JobOptions options, TaskGraph& graph, collective::Averager& averager, SendToNode send)
    : AveragingService(std::move(options), graph, averager, std::move(send)),
      last_(job().last),
      reported_{job().first.value - 1},
      started_(clock_now()) {}

std::vector<Rank> OwnPaceService::living_ranks() const {
  auto ranks = view_.ranks_on(job().self);
  std::erase_if(ranks, [this](Rank rank) { return gone_.contains(rank); });
  return ranks;
}

Duration OwnPaceService::patience() const {
  const auto patience = std::max<Duration>(kPatienceMin, kPatienceSteps * steps_.get());
  return std::min(patience, job().wait_limit.value_or(patience));
}

Instant OwnPaceService::silent_since(Rank rank, Instant word) const {
  const auto it = alive_.find(rank);
  return it == alive_.end() ? word : std::max(word, it->second);
}

Instant OwnPaceService::awaited_until(Rank rank, Instant word) const {
  const Instant until = silent_since(rank, word) + patience();
  return job().wait_limit ? std::min(until, word + *job().wait_limit) : until;
}

void OwnPaceService::leave_if_awaited_too_long(Rank rank, Version t, Instant word, Instant now) {
  if (now < awaited_until(rank, word)) return;
  tell(Left{rank, t, now - silent_since(rank, word), now - word});
  on_gone(rank, now);
}

/// Where no worker is left, what they had done; the job goes on elsewhere.
Version OwnPaceService::done() const {
  const auto ranks = living_ranks();
  Version done = last_;
  if (ranks.empty() && !end_) {
    done = Version{job().first.value - 1};
    for (const auto& [rank, finished] : finished_) done = std::max(done, finished);
  }
  for (const Rank rank : ranks) {
    const auto it = finished_.find(rank);
    const Version finished = it == finished_.end() ? Version{job().first.value - 1} : it->second;
    if (finished < last_of(rank)) done = std::min(done, finished);
  }
  return done;
}

Version OwnPaceService::last_of(Rank rank) const {
  const auto it = ends_at_.find(rank);
  return it == ends_at_.end() ? last_ : std::min(last_, it->second);
}

// An iteration
// ------------------------------------------------------------------------------------------------------------

std::optional<memory::Buffer> OwnPaceService::on_published(Rank rank, Version t, Duration compute) {
  Member* const member = windows_.living(rank);
  if (!member) return {};
  averagings_.end_compute(rank);
  if (compute > Duration::zero()) steps_.add(compute);
  const auto buffer = member->window.seal();
  if (!buffer) return {};
  const auto tag = member->window.tag(*buffer);
  if (tag.iteration != t.value) {
    member->window.unseal(memory::Window::Unseal::keep);
    return {};
  }
  latest_[rank] = {tag.loss_sum, tag.loss_count, tag.samples, tag.learning_rate, {}, 0};
  unreported_.samples += tag.samples;
  return buffer;
}

void OwnPaceService::finish(Rank rank, Version v, Instant now) {
  finished_[rank] = v;
  if (v != last_ && is_due(v) && parts_are_by_version()) give(rank, v, true);
  go_on(rank, v, now);
  look_at(v, now);
  if (done() <= reported_) return;
  reported_ = done();
  RoundSums sums = std::exchange(unreported_, {});
  for (const auto& [of, latest] : latest_) {
    sums.loss_sum += latest.loss_sum;
    sums.loss_count += latest.loss_count;
  }
  tell(Executed{reported_, false, false, false, {}, sums});
}

/// Unless a stop is being agreed on that may come before its next iteration.
void OwnPaceService::go_on(Rank rank, Version own, Instant now) {
  if (own >= last_of(rank)) {
    on_last(rank, now);
    if (!parts_are_by_version()) return;
    give(rank, last_, false);
    return look_at(last_, now);
  }
  if (const auto stop = held_at(rank); stop && next_word(own) > *stop) {
    waiting_[rank] = own;
    return;
  }
  if (!windows_.living(rank)) return;
  begun_[rank] = next_word(own);
  let_go(rank, own, now);
}

/// Where a worker is held while a stop is agreed on; a replay's end is known from the start.
std::optional<Version> OwnPaceService::held_at(Rank rank) const {
  if (!frozen_) return chronicle_.replays() ? chronicle_.replay().ends(rank) : std::nullopt;
  return ends_apart() ? begun_of(rank) : *frozen_;
}

/// Everybody does the first iteration.
Version OwnPaceService::begun_of(Rank rank) const {
  const auto it = begun_.find(rank);
  return it == begun_.end() ? job().first : it->second;
}

/// The iteration after which a worker that has done `own` waits next.
Version OwnPaceService::next_word(Version own) const {
  Version next = next_publication(own);
  const std::int64_t every = job().evaluate_every;
  if (job().evaluates && every > 0) next = std::min(next, Version{((own.value + 1) / every + 1) * every - 1});
  return std::min(next, last_);
}

void OwnPaceService::verdict(Rank rank, Version own, bool end) {
  if (!windows_.living(rank)) return;
  const Version word = next_word(own);
  windows_.set_verdict(rank, {.own = own.value,
                     .next = own.next().value,
                     .next_round = word.value,
                     .averaged = end || averages(own),
                     .end = end});
  if (!end) averagings_.begin_compute(rank);
}

// Means of all models
// -----------------------------------------------------------------------------------------------------

bool OwnPaceService::is_due(Version v) const {
  return job().evaluates && job().evaluate_every > 0 && (v.value + 1) % job().evaluate_every == 0;
}

void OwnPaceService::give(Rank rank, Version v, bool copy) {
  const ModelPart model = model_of(rank);
  Part part{{}, model.data, model.weight};
  if (copy) {
    const auto* data = static_cast<const std::byte*>(model.data);
    part.copy.assign(data, data + windows_.bytes());
    part.data = part.copy.data();
  }
  snapshots_[v].parts.insert_or_assign(rank, std::move(part));
}

/// Gives this node's part once all of it is there, and makes the mean once every node's sum is.
void OwnPaceService::look_at(Version v, Instant now) {
  const auto it = snapshots_.find(v);
  if (it == snapshots_.end() || end_) return;
  Snapshot& snapshot = it->second;
  if (!snapshot.own) {
    if (!parts_are_by_version()) return;
    const auto ranks = living_ranks();
    const auto gave = [&](Rank rank) { return snapshot.parts.contains(rank); };
    if (!std::all_of(ranks.begin(), ranks.end(), gave)) return;
    Bytes sum;
    double weight = 0;
    std::vector<const void*> inputs;
    for (const auto& [rank, part] : snapshot.parts) {
      inputs.push_back(part.data);
      weight += part.weight;
    }
    if (!inputs.empty()) {
      sum.resize(windows_.bytes());
      collective::sum_into(sum.data(), 1.0, inputs, windows_.elements(), windows_.dtype());
    }
    return give_part(v, std::move(sum), weight, now);
  }
  for (const NodeId node : view_.others())
    if (!snapshot.remote.contains(node)) return;
  const auto whole = std::make_shared<const Snapshot>(std::move(snapshot));
  snapshots_.erase(it);
  if (v == last_) {
    end_ = whole;  // What falls due now is not evaluated.
    average_at_end(v, whole);
  } else {
    average_for_evaluation(v, whole);
  }
  averagings_.start(now);
}

void OwnPaceService::give_part(Version v, Bytes sum, double weight, Instant now) {
  RemotePart own{std::move(sum), weight, {}, v == last_};
  for (const Rank rank : living_ranks()) add(own.sums, latest_[rank]);
  own.sums.samples = 0;  // Told with every version.
  if (v == last_) {
    for (const NodeId node : view_.others()) send_part(node, v, own, job().self);
  } else if (job().self.value != 0) {
    send_part(NodeId{0}, v, own, job().self);
    snapshots_.erase(v);
    return;
  }
  snapshots_[v].own = std::move(own);
  look_at(v, now);
}

void OwnPaceService::send_part(NodeId to, Version v, const RemotePart& part, NodeId of) {
  wire::Message message;
  auto body = message.root().initPartial();
  body.setJob(job().job.value);
  body.setVersion(v.value);
  body.setGroup(part.at_end ? kEnd : kSnapshot);
  body.setWeight(part.weight);
  body.setLossSum(part.sums.loss_sum);
  body.setLossCount(part.sums.loss_count);
  body.setLearningRate(part.sums.learning_rate);
  if (of != job().self) body.setOf(of.value);
  send(to, message, {part.sum});
}

void OwnPaceService::on_part(NodeId from, const wire::Partial::Reader& header, std::vector<std::byte> sum,
                             Instant now) {
  const Version v{header.getVersion()};
  const bool at_end = header.getGroup() == kEnd;
  if ((!at_end && header.getGroup() != kSnapshot) || v < job().first) return;
  if (!at_end && v >= last_ && !parts_are_by_version()) return;  // A stop has come in between.
  if ((!sum.empty() && !has_right_size(from, "a sum", sum.size())) || !is_weight(from, header.getWeight())) return;
  const auto of = view_.giver(from, header.getOf());
  if (!of) return;
  RemotePart part{std::move(sum), header.getWeight(), {}, at_end};
  part.sums.loss_sum = header.getLossSum();
  part.sums.loss_count = header.getLossCount();
  part.sums.learning_rate = header.getLearningRate();
  snapshots_[v].remote.try_emplace(*of, std::move(part));
  look_at(v, now);
}

/// Own and other nodes' sums in the order of the nodes, so that all get the same bits.
collective::Reduction OwnPaceService::mean_of(const Snapshot& snapshot) const {
  auto reduction = windows_.reduction();
  double weight = 0;
  const auto add_part = [&](const RemotePart& part) {
    if (!part.sum.empty()) reduction.inputs.push_back(part.sum.data());
    weight += part.weight;
  };
  bool own_added = false;
  for (const auto& [node, part] : snapshot.remote) {
    if (job().self < node && !std::exchange(own_added, true)) add_part(*snapshot.own);
    add_part(part);
  }
  if (!own_added) add_part(*snapshot.own);
  reduction.weights.assign(reduction.inputs.size(), 1 / weight);
  return reduction;
}

RoundSums OwnPaceService::sums_of(const Snapshot& snapshot) {
  RoundSums sums = snapshot.own->sums;
  for (const auto& [from, part] : snapshot.remote) add(sums, part.sums);
  return sums;
}

void OwnPaceService::average_for_evaluation(Version v, const std::shared_ptr<const Snapshot>& snapshot) {
  const auto ranks = living_ranks();
  if (ranks.empty() || !windows_.living(ranks.front())) return;
  if (under_evaluation_) return;  // One that is due while another runs is left out.
  const Rank evaluator = evaluator_ = ranks.front();
  under_evaluation_ = v;
  const auto prepare = [this, v, evaluator, snapshot] {
    auto reduction = mean_of(*snapshot);
    Member* const member = windows_.living(evaluator);
    const auto buffer = member ? begin_result(evaluator, *member, v) : std::nullopt;
    if (!buffer) return windows_.reduction();
    reduction.outputs.push_back({member->window.data(*buffer).data(), 1.0});
    return reduction;
  };
  const auto done = [this, v, evaluator, snapshot](Instant) {
    Member* const member = windows_.living(evaluator);
    if (!member) {
      under_evaluation_.reset();
      return;
    }
    member->window.retain();
    member->control.words().evaluate.store(v.value, std::memory_order_release);
    member->control.ring();
    ++counters_.global_averages;
    tell(Executed{v, true, false, true, evaluator, sums_of(*snapshot)});
  };
  averagings_.add({prepare, done}, {});
}

void OwnPaceService::average_at_end(Version v, const std::shared_ptr<const Snapshot>& snapshot) {
  const auto given = std::make_shared<std::vector<Rank>>();
  const auto prepare = [this, v, given, snapshot] {
    auto reduction = mean_of(*snapshot);
    for (const Rank rank : living_ranks()) {
      Member* const member = windows_.living(rank);
      const auto buffer = member ? begin_result(rank, *member, v) : std::nullopt;
      if (!buffer) continue;
      reduction.outputs.push_back({member->window.data(*buffer).data(), 1.0});
      given->push_back(rank);
    }
    return reduction;
  };
  const auto finish_job = [this, v, given, snapshot](Instant) {
    snapshots_.clear();
    std::optional<Rank> evaluator;
    for (const Rank rank : *given) {
      Member* const member = windows_.living(rank);
      if (!member) continue;
      member->window.deliver();
      if (!evaluator) evaluator = rank;
    }
    ++counters_.global_averages;
    windows_.set_last(v);
    if (job().evaluates && evaluator && job().self.value == 0)
      windows_.at(*evaluator).control.words().evaluate.store(v.value, std::memory_order_release);
    hold(v);
    tell(Executed{v, true, true, job().evaluates, evaluator, sums_of(*snapshot)});
    for (const Rank rank : *given) verdict(rank, v, true);
  };
  averagings_.add({prepare, finish_job}, {});
}

void OwnPaceService::release(Version v) {
  if (under_evaluation_ == v) under_evaluation_.reset();
  AveragingService::release(v);
}

// The end
// -----------------------------------------------------------------------------------------------------------------

void OwnPaceService::stop_soon(Instant) {
  if (chronicle_.replays() || std::exchange(stop_wished_, true)) return;
  if (job().self.value == 0) return agree_on(Agreement::On::end);
  send_ending(NodeId{0}, wire::Ending::Phase::WISH, Agreement::On::end, {});
}

void OwnPaceService::send_ending(NodeId to, wire::Ending::Phase phase, Agreement::On what, Version v,
                                 const std::vector<std::pair<Rank, Version>>& begun) {
  wire::Message message;
  auto body = message.root().initEnding();
  body.setJob(job().job.value);
  body.setPhase(phase);
  body.setVersion(v.value);
  body.setGraph(what == Agreement::On::graph);
  auto list = body.initBegun(static_cast<unsigned>(begun.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setRank(begun[i].first.value);
    list[i].setVersion(begun[i].second.value);
  }
  send(to, message);
}

void OwnPaceService::on_ending(NodeId from, const wire::Ending::Reader& ending) {
  const Version v{ending.getVersion()};
  const auto what = ending.getGraph() ? Agreement::On::graph : Agreement::On::end;
  switch (ending.getPhase()) {
    case wire::Ending::Phase::WISH: return agree_on(what);
    case wire::Ending::Phase::ASK: freeze(what); return answer(what);
    case wire::Ending::Phase::ANSWER:
      for (const auto each : ending.getBegun())
        if (const Rank rank{each.getRank()}; view_.lives_on(rank, from)) elsewhere_[rank] = Version{each.getVersion()};
      return act(agreement_.on_answer(from, what, v, nodes_left()));
    case wire::Ending::Phase::DECIDE: {
      if (what == Agreement::On::end) return decide_end(v);
      std::vector<Rank> members;
      for (const auto each : ending.getBegun()) members.emplace_back(each.getRank());
      return decide_graph(v, members);
    }
  }
}

void OwnPaceService::agree_on(Agreement::On what) {
  if (job().self.value == 0 && !chronicle_.replays()) act(agreement_.wish(what));
}

void OwnPaceService::act(const Agreement::Actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& a) { carry_out(a); }, action);
}

void OwnPaceService::carry_out(const Agreement::Ask& ask) {
  for (const NodeId node : view_.others()) send_ending(node, wire::Ending::Phase::ASK, ask.what, {});
  freeze(ask.what);
  act(agreement_.on_answer(job().self, ask.what, given_at_most(), nodes_left()));
}

void OwnPaceService::carry_out(const Agreement::Decide& decided) {
  const bool is_end = decided.what == Agreement::On::end;
  const Version last = is_end ? std::min(decided.last, last_) : decided.last;
  std::vector<std::pair<Rank, Version>> members;
  if (!is_end)
    for (const Rank rank : left()) members.emplace_back(rank, Version{});
  for (const NodeId node : view_.others()) send_ending(node, wire::Ending::Phase::DECIDE, decided.what, last, members);
  is_end ? decide_end(last) : decide_graph(last, left());
}

std::set<NodeId> OwnPaceService::nodes_left() const {
  auto nodes = view_.others();
  nodes.insert(job().self);
  return nodes;
}

void OwnPaceService::freeze(Agreement::On what) {
  if (records_holds()) chronicle_.record({.kind = Decision::Kind::frozen});
  hold_back();
  given_until_.reset();
  if (what == Agreement::On::graph) given_until_ = last_given(*frozen_);
}

/// The highest version that somebody here may contribute to before the decision.
Version OwnPaceService::given_at_most() const { return given_until_.value_or(*frozen_); }

/// Nobody here begins what is later than the highest iteration that somebody has begun.
void OwnPaceService::hold_back() {
  frozen_ = job().first;
  for (const auto& [rank, v] : begun_) frozen_ = std::max(*frozen_, v);
}

void OwnPaceService::answer(Agreement::On what) {
  std::vector<std::pair<Rank, Version>> begun;
  if (ends_apart())
    for (const Rank rank : living_ranks()) begun.emplace_back(rank, begun_of(rank));
  send_ending(NodeId{0}, wire::Ending::Phase::ANSWER, what, given_at_most(), begun);
}

void OwnPaceService::decide_graph(Version last, const std::vector<Rank>& members) {
  Decision remade{.kind = Decision::Kind::remade, .version = last};
  for (const Rank rank : members) remade.contributions.push_back({rank, std::nullopt, 0});
  chronicle_.hear(remade, clock_now());
}

void OwnPaceService::decide_end(Version last) {
  if (!ends_apart()) return end_at(last);
  auto ends = elsewhere_;
  for (const Rank rank : living_ranks()) ends[rank] = begun_of(rank);
  Decision apart{.kind = Decision::Kind::ends_apart, .version = last};
  for (const auto& [rank, v] : ends) apart.contributions.push_back({rank, std::min(v, last), 0});
  chronicle_.hear(apart, clock_now());
}

/// Of what was given for an evaluation nothing is a part of the end, unless that had come already: each gives again.
void OwnPaceService::forget_evaluation(Version v) {
  const auto it = snapshots_.find(v);
  if (it == snapshots_.end()) return;
  if (!parts_are_by_version()) return void(snapshots_.erase(it));
  it->second.own.reset();
  std::erase_if(it->second.remote, [](const auto& of) { return !of.second.at_end; });
}

void OwnPaceService::step_end(Version last) {
  if (last < last_) forget_evaluation(last);
  last_ = std::min(last_, last);
  windows_.set_last(last_);
  frozen_.reset();
  if (!ends_at_.empty()) on_ends_apart();
  for (const auto& [rank, own] : std::exchange(waiting_, {})) go_on(rank, own, clock_now());
  averagings_.start(clock_now());
}

// Others
// ------------------------------------------------------------------------------------------------------------------

void OwnPaceService::on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                     Instant now) {
  if (message.isPartial()) return on_part(from, message.getPartial(), std::move(bulk), now);
  if (message.isEnding()) return on_ending(from, message.getEnding());
  on_strategy_message(from, message, std::move(bulk), now);
}

void OwnPaceService::on_gone(Rank rank, Instant now) {
  if (view_.is_here(rank) && !gone_.contains(rank))
    chronicle_.hear({.kind = Decision::Kind::gone, .rank = rank, .at = now}, now);
}

void OwnPaceService::step(const Decision& d) {
  if (d.kind == Decision::Kind::gone) go(d.rank, clock_now());
  if (d.kind == Decision::Kind::node_gone) go_on_without(d.node, clock_now());
  if (d.kind == Decision::Kind::frozen) hold_back();
  if (d.kind == Decision::Kind::remade) {
    std::vector<Rank> members;
    for (const auto& c : d.contributions) members.push_back(c.rank);
    frozen_.reset();
    given_until_.reset();
    on_remade(d.version, members, clock_now());
    for (const auto& [rank, own] : std::exchange(waiting_, {})) go_on(rank, own, clock_now());
    averagings_.start(clock_now());
  }
  if (d.kind == Decision::Kind::ends_apart) {
    for (const auto& c : d.contributions) ends_at_[c.rank] = c.iteration.value_or(d.version);
    step_end(d.version);
  }
}

/// Its part of the mean of all last models: all have it, or nobody.
void OwnPaceService::pass_on(NodeId lost, NodeId to) {
  const auto pass = [&](Version v, const Snapshot& snapshot) {
    const auto part = snapshot.remote.find(lost);
    if (part != snapshot.remote.end() && part->second.at_end) send_part(to, v, part->second, lost);
  };
  for (const auto& [v, snapshot] : snapshots_) pass(v, snapshot);
  if (end_) pass(last_, *end_);
}

void OwnPaceService::go_on_without(NodeId node, Instant now) {
  on_node_lost(node, now);
  act(agreement_.on_lost(nodes_left()));
  std::vector<Version> open;
  for (const auto& [v, snapshot] : snapshots_) open.push_back(v);
  for (const Version v : open) look_at(v, now);
  averagings_.start(now);
}

void OwnPaceService::go(Rank rank, Instant now) {
  if (!gone_.insert(rank).second) return;
  if (Member* const member = windows_.living(rank)) member->gone = true;
  averagings_.end_compute(rank);
  waiting_.erase(rank);
  begun_.erase(rank);
  latest_.erase(rank);
  std::vector<Version> open;
  for (auto& [v, snapshot] : snapshots_) {
    if (!snapshot.own) snapshot.parts.erase(rank);
    open.push_back(v);
  }
  leave(rank, now);
  for (const Version v : open) look_at(v, now);
}

}  // namespace paceline::scheduler
