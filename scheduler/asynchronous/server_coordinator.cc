#include "scheduler/asynchronous/server_coordinator.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace paceline::scheduler {

ServerCoordinator::ServerCoordinator(Workplace& work, ServerEngine::Options options)
    : Coordinator(work),
      options_(options),
      pace_(work, *this, {.ends_apart = true, .returns = OwnPace::Return::at_once}),
      async_(work, pace_, *this),
      engine_(options),
      server_node_(work.view.leader()) {}

std::vector<std::shared_ptr<AsynchronousWorkers::Bytes>> ServerCoordinator::own_models() const {
  const bool anybody_is_left = gone_.size() < work_.job.node_of.size();  // Else nobody would end with it.
  if (!is_server() || !server_ || !anybody_is_left) return {};
  return {server_};
}

// Where a worker is

/// Everybody starts from the same model: the first that is there is the server's.
void ServerCoordinator::on_start(Rank rank, Instant) {
  if (std::exchange(has_start_, true)) return;
  const Bytes& start = *async_.at(rank).taken;
  const Version before{work_.job.first.value - 1};
  if (is_server()) {
    server_ = std::make_shared<Bytes>(start);
  } else {
    look_at_newest({std::make_shared<const Bytes>(start), applied()});
    async_.send(server_node_, {.phase = Phase::PUSH, .rank = rank, .version = before}, piece_of(Bytes(start)));
  }
}

void ServerCoordinator::on_step(Rank rank, Worker& w, Instant now) {
  awaited_.erase(rank);
  is_server() ? on_push(rank, w.t, nullptr, work_.ledger.contents(rank, true), now) : push(rank);
}

void ServerCoordinator::push(Rank rank) {
  const auto made = work_.pool.get(work_.windows.bytes());
  const auto subtract = [this, rank, made] {
    const Worker& of = async_.at(rank);
    auto r = work_.windows.reduction();
    r.inputs = {work_.windows.at(rank).window.data(of.published).data(), of.taken->data()};
    r.weights = {1, -1};
    r.outputs.push_back({made->data(), 1.0});
    return r;
  };
  const auto push = [this, rank, made](Instant) {
    work_.ledger.on_used(rank, async_.at(rank).t);
    work_.ledger.on_held(work_.ledger.contents(rank));
    async_.send(server_node_,
                {.phase = Phase::PUSH,
                 .rank = rank,
                 .version = async_.at(rank).t,
                 .contents = work_.ledger.contents(rank, true)},
                piece_of(made));
  };
  work_.averagings.add({subtract, push}, {rank});
}

/// On another node than the server's.
void ServerCoordinator::take(Rank rank, std::shared_ptr<Bytes> model) {
  const auto copy = [this, rank, model] {
    auto r = work_.windows.reduction();
    r.inputs = {model->data()};
    async_.add_result(rank, r);
    return r;
  };
  const auto given = [this, rank](Instant now) {
    taking_.erase(rank);
    async_.deliver(rank, now);
  };
  taking_.insert(rank);
  work_.averagings.add({copy, given}, {});
}

// Where the server is

/// The order of the pushes, and who pulls after which, is decided here and nowhere else. `step`: what a worker of
/// another node adds; nullptr: the worker is of this node.
void ServerCoordinator::on_push(Rank rank, Version t, std::shared_ptr<Bytes> step, const Contents& contents,
                                Instant now) {
  if (gone_.contains(rank)) return;
  if (const auto known = pushed_.find(rank); known != pushed_.end() && t <= known->second) {
    if (t == known->second && owed_.contains(rank)) serve_again(rank, now);
    return;
  }
  owed_.erase(rank);
  const auto push = engine_.on_push(rank);
  const bool is_last = t >= pace_.last_of(rank);
  auto served = engine_.on_done(rank, is_last);
  if (is_last) served.push_back(rank);
  for (const Rank each : served) engine_.on_pull(each);
  pushed_[rank] = t;
  add(contents_, contents);
  waiting_.emplace(rank, now);
  for (const Rank each : served) waiting_.erase(each);
  work_.counters.count_staleness(push.staleness);

  const auto add_up = [this, rank, step, scale = push.scale] {
    auto r = work_.windows.reduction();
    if (step) {
      r.inputs = {step->data(), server_->data()};
      r.weights = {scale, 1};
    } else {
      const Worker& w = async_.at(rank);
      r.inputs = {work_.windows.at(rank).window.data(w.published).data(), w.taken->data(), server_->data()};
      r.weights = {scale, -scale, 1};
    }
    return r;
  };
  serve(add_up, std::move(served), rank);
}

void ServerCoordinator::serve(std::function<collective::Reduction()> inputs, std::vector<Rank> served,
                              std::optional<Rank> pushed) {
  const auto given = std::make_shared<std::shared_ptr<PooledBytes>>();  // To other nodes.
  const auto prepare = [this, inputs = std::move(inputs), served, given] {
    auto r = inputs();
    r.outputs.push_back({server_->data(), 1.0});
    for (const Rank rank : served) {
      if (work_.view.is_here(rank)) {
        async_.add_result(rank, r);
      } else if (!*given) {
        *given = work_.pool.get(work_.windows.bytes());
        r.outputs.push_back({(*given)->data(), 1.0});
      }
    }
    return r;
  };
  const auto finish = [this, served, pushed, given, applied = applied()](Instant now) {
    for (const Rank rank : served) {
      if (work_.view.is_here(rank)) {
        async_.deliver(rank, now);
      } else if (!gone_.contains(rank)) {
        async_.send(work_.view.node_of(rank),
                    {.phase = Phase::PULL,
                     .rank = rank,
                     .version = pushed_.at(rank),
                     .applied = applied,
                     .contents = contents_},
                    piece_of(*given));
      }
    }
    if (!pushed) return;
    work_.ledger.on_used(*pushed, pushed_.at(*pushed));
    work_.ledger.on_held(work_.ledger.contents(*pushed));
    work_.trace("push", pushed_.at(*pushed));
    ++work_.counters.group_averages;
    async_.count_iteration(work_.job.node_of.size() - gone_.size());
  };
  work_.averagings.add({prepare, finish}, pushed ? std::vector{*pushed} : std::vector<Rank>{});
}

void ServerCoordinator::on_exchange(NodeId from, const Message& message, std::shared_ptr<Bytes> bulk, Instant now) {
  switch (message.phase) {
    case Phase::PUSH:
      if (!work_.view.lives_on(message.rank, from) || bulk->empty()) return;
      if (!is_server()) return early_.push_back({from, message, std::move(bulk)});
      if (message.version >= work_.job.first)
        return on_push(message.rank, message.version, std::move(bulk), message.contents, now);
      if (!std::exchange(has_start_, true)) server_ = std::move(bulk);
      return;
    case Phase::PULL: {
      if (bulk->empty() || message.applied.size() != work_.job.node_of.size()) return;
      look_at_newest({bulk, message.applied, message.contents});
      const Worker* const of = async_.find(message.rank);
      const bool waits = of && !gone_.contains(message.rank) && !of->computes && of->t == message.version;
      if (waits && !taking_.contains(message.rank)) take(message.rank, std::move(bulk));
      return;
    }
    case Phase::BACK:
      if (!work_.view.lives_on(message.rank, from)) return;
      if (!is_server()) return early_.push_back({from, message, {}});
      return on_rank_back(message.rank, message.version);
    case Phase::MODEL:
      if (!bulk->empty() && message.applied.size() == work_.job.node_of.size())
        look_at_newest({std::move(bulk), message.applied, message.contents});
      return;
    default: return;
  }
}

/// What is in the server's model, when all that was submitted is done; where there is none, in the start.
std::vector<Version> ServerCoordinator::applied() const {
  std::vector<Version> applied(work_.job.node_of.size(), Version{work_.job.first.value - 1});
  for (const auto& [rank, t] : pushed_) applied[static_cast<std::size_t>(rank.value)] = t;
  return applied;
}

// Where the server was lost

/// Of two models of a server's the newer has all that is in the other one.
void ServerCoordinator::look_at_newest(Snapshot snapshot) {
  const auto steps = [](const Snapshot& of) {
    return std::accumulate(of.applied.begin(), of.applied.end(), std::int64_t{0},
                           [](std::int64_t sum, Version v) { return sum + v.value; });
  };
  if (!newest_.model || steps(snapshot) > steps(newest_)) newest_ = std::move(snapshot);
}

/// Who leads next is the lowest of those that are left: no higher one needs it.
void ServerCoordinator::pass_on(NodeId lost, NodeId to) {
  pace_.pass_on(lost, to);
  if (lost > server_node_ || to > work_.job.self) return;
  if (newest_.model)
    async_.send(to, {.phase = Phase::MODEL, .rank = Rank{0}, .applied = newest_.applied, .contents = newest_.contents},
                {newest_.model, std::span(*newest_.model)});
}

void ServerCoordinator::take_over(Instant now) {
  engine_ = ServerEngine(options_);
  has_start_ = newest_.model != nullptr;
  if (has_start_) server_ = std::make_shared<Bytes>(*newest_.model);
  const std::int64_t before = work_.job.first.value - 1;
  std::int64_t steps = 0;
  for (std::size_t i = 0; has_start_ && i < newest_.applied.size(); ++i) {
    const Rank rank{static_cast<std::int32_t>(i)};
    const Version t = newest_.applied[i];
    if (t.value <= before) continue;
    pushed_[rank] = t;
    owed_.insert(rank);
    steps += t.value - before;
    engine_.resume(rank, t.value - before);
    if (t >= pace_.last_of(rank)) (void)engine_.on_done(rank, true);
  }
  contents_ = newest_.contents;
  newest_ = {};
  for (const Rank rank : gone_) (void)engine_.on_gone(rank);
  async_.resume_count(static_cast<double>(steps) / static_cast<double>(work_.job.node_of.size()));
  for (auto& push : std::exchange(early_, {})) on_exchange(push.from, push.message, std::move(push.step), now);
  async_.gather_end_again();
}

/// What the lost server was told, or may have been: who is gone, and the steps that workers wait with.
void ServerCoordinator::tell_again(Instant now) {
  const auto living = pace_.living_ranks();
  for (const Rank rank : work_.view.ranks_on(work_.job.self)) {
    const Worker* const w = async_.find(rank);
    if (std::find(living.begin(), living.end(), rank) == living.end()) {
      if (!is_server()) tell_gone(rank, server_node_);
      continue;
    }
    if (const auto back = returned_.find(rank); back != returned_.end() && !is_server())
      async_.send(server_node_, {.phase = Phase::BACK, .rank = rank, .version = back->second});
    if (w && !w->computes && !taking_.contains(rank)) {
      is_server() ? on_push(rank, w->t, nullptr, work_.ledger.contents(rank, true), now) : push(rank);
    }
  }
}

/// It has pushed what is in the model, and has not pulled.
void ServerCoordinator::serve_again(Rank rank, Instant now) {
  owed_.erase(rank);
  const bool is_last = pushed_.at(rank) >= pace_.last_of(rank);
  waiting_.emplace(rank, now);
  auto served = engine_.on_back(rank, is_last);
  if (is_last) served.push_back(rank);
  let_pull(std::move(served));
}

// Others

void ServerCoordinator::step(const Decision& d) {
  d.kind == Decision::Kind::gone_elsewhere ? on_rank_gone(d.rank, work_.now()) : async_.step(d);
}

void ServerCoordinator::on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                        Instant now) {
  if (message.isGone()) {
    if (const Rank rank{message.getGone().getRank()}; work_.view.lives_on(rank, from))
      work_.chronicle.hear({.kind = Decision::Kind::gone_elsewhere, .rank = rank, .at = now}, now);
  } else if (message.isAwaited()) {
    awaited_.insert(Rank{message.getAwaited().getRank()});
    if (!work_.chronicle.replays()) look(now);
  }
  async_.on_message(from, message, std::move(bulk), now);
}

void ServerCoordinator::leave(Rank rank, Instant now) {
  on_rank_gone(rank, now);
  if (!is_server()) tell_gone(rank, server_node_);
  async_.leave(now);
}

void ServerCoordinator::tell_gone(Rank rank, NodeId to) {
  wire::Message message;
  auto body = message.root().initGone();
  body.setJob(work_.job.job.value);
  body.setRank(rank.value);
  work_.send(to, message);
}

void ServerCoordinator::on_node_lost(NodeId node, Instant now) {
  if (work_.chronicle.replays())  // Else it was before this node went on.
    for (const NodeId to : work_.view.others()) pass_on(node, to);
  const bool moves = std::exchange(server_node_, work_.view.leader()) != work_.view.leader();
  if (moves && is_server()) take_over(now);
  for (const Rank rank : work_.view.ranks_on(node)) on_rank_gone(rank, now);
  if (moves) tell_again(now);
  async_.look_at_end();
}

void ServerCoordinator::on_rank_gone(Rank rank, Instant now) {
  std::erase_if(early_, [rank](const Early& early) { return early.message.rank == rank; });
  if (!gone_.insert(rank).second || !is_server()) return;
  waiting_.erase(rank);
  let_pull(engine_.on_gone(rank));
  work_.averagings.start(now);
}

/// It pulled what it loaded, or somebody did.
void ServerCoordinator::on_back(Rank rank, Version t) {
  returned_[rank] = t;
  gone_.erase(rank);
  awaited_.erase(rank);
  if (is_server()) on_rank_back(rank, t);
}

void ServerCoordinator::on_rank_back(Rank rank, Version t) {
  gone_.erase(rank);
  const Version before{work_.job.first.value - 1};
  if (const auto known = pushed_.find(rank); known != pushed_.end() && known->second > t) return;
  pushed_[rank] = t;
  owed_.erase(rank);
  engine_.resume(rank, t.value - before.value);
  engine_.on_pull(rank);
  if (t >= pace_.last_of(rank)) (void)engine_.on_done(rank, true);
}

void ServerCoordinator::let_pull(std::vector<Rank> served) {
  if (served.empty()) return;
  for (const Rank each : served) {
    engine_.on_pull(each);
    waiting_.erase(each);
  }
  const auto as_it_is = [this] {
    auto r = work_.windows.reduction();
    r.inputs = {server_->data()};
    return r;
  };
  serve(as_it_is, std::move(served));
}

/// Some have pushed their last step before it was known to be that.
void ServerCoordinator::on_ends_apart() {
  if (!is_server()) return;
  for (const auto& [rank, t] : pushed_) {
    if (t < pace_.last_of(rank) || gone_.contains(rank)) continue;
    auto served = engine_.on_done(rank, true);
    if (waiting_.contains(rank)) served.push_back(rank);
    let_pull(std::move(served));
  }
}

bool ServerCoordinator::holds_others_up(Rank rank) const {
  if (awaited_.contains(rank)) return true;
  if (!is_server() || waiting_.empty()) return false;
  const auto slowest = engine_.slowest();
  return std::find(slowest.begin(), slowest.end(), rank) != slowest.end();
}

/// Where a bound has made somebody wait beyond patience, the nodes of the slowest are told, once a patience.
void ServerCoordinator::look(Instant now) {
  async_.look(now);
  if (waiting_.empty()) return;
  Instant since = now;
  for (const auto& [rank, at] : waiting_) since = std::min(since, at);
  if (now < std::max(since, complained_) + pace_.patience()) return;
  complained_ = now;
  for (const Rank rank : engine_.slowest()) {
    if (!work_.view.is_here(rank)) pace_.complain_of(rank, {});
  }
}

std::optional<Instant> ServerCoordinator::core_deadline() const {
  auto next = async_.core_deadline();
  for (const auto& [rank, at] : waiting_) {
    next = earlier(next, std::max(at, complained_) + pace_.patience());
  }
  return next;
}

std::optional<Coordinator::Waiting> ServerCoordinator::waiting() const {
  std::optional<Waiting> waiting;
  for (const auto& [rank, at] : waiting_)
    if (!waiting || at < waiting->since) waiting = Waiting{pushed_.at(rank), engine_.slowest(), at};
  return waiting;
}

}  // namespace paceline::scheduler
