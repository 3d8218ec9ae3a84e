#include "scheduler/asynchronous/server_service.h"

#include <algorithm>
#include <utility>

namespace paceline::scheduler {

ServerService::ServerService(JobOptions job, ServerEngine::Options options, TaskGraph& graph,
                             collective::Averager& averager, SendToNode send)
    : AsynchronousService(std::move(job), graph, averager, std::move(send)), engine_(options) {}

std::vector<std::shared_ptr<AsynchronousService::Bytes>> ServerService::own_models() const {
  if (!is_server() || !server_) return {};
  return {server_};
}

// Where a worker is
// -------------------------------------------------------------------------------------------------------

/// Everybody starts from the same model: the first that is there is the server's.
void ServerService::on_start(Rank rank, Instant) {
  if (std::exchange(has_start_, true)) return;
  const Bytes& start = *workers_.at(rank).taken;
  const Version before{job().first.value - 1};
  if (is_server()) {
    server_ = std::make_shared<Bytes>(start);
  } else {
    send_exchange(NodeId{0}, {.phase = Phase::PUSH, .rank = rank, .version = before}, &start);
  }
}

void ServerService::on_step(Rank rank, Worker& w, Instant now) {
  awaited_.erase(rank);
  if (is_server()) return on_push(rank, w.t, nullptr, now);
  const auto subtract = [this, rank] {
    const Worker& of = workers_.at(rank);
    auto r = windows_.reduction();
    r.inputs = {windows_.at(rank).window.data(of.published).data(), of.taken->data()};
    r.weights = {1, -1};
    r.outputs.push_back({of.taken->data(), 1.0});
    return r;
  };
  const auto push = [this, rank](Instant) {
    const Worker& of = workers_.at(rank);
    send_exchange(NodeId{0}, {.phase = Phase::PUSH, .rank = rank, .version = of.t}, of.taken.get());
  };
  averagings_.add({subtract, push}, {rank});
}

/// On another node than the server's.
void ServerService::take(Rank rank, std::shared_ptr<Bytes> model) {
  const auto copy = [this, rank, model] {
    auto r = windows_.reduction();
    r.inputs = {model->data()};
    add_result(rank, r);
    return r;
  };
  averagings_.add({copy, [this, rank](Instant now) { deliver(rank, now); }}, {});
}

// Where the server is
// -------------------------------------------------------------------------------------------------------

/// The order of the pushes, and who pulls after which, is decided here and nowhere else. `step`: what a worker of
/// another node adds; nullptr: the worker is of this node.
void ServerService::on_push(Rank rank, Version t, std::shared_ptr<Bytes> step, Instant now) {
  if (gone_.contains(rank)) return;
  const auto push = engine_.on_push(rank);
  const bool is_last = t >= last_of(rank);
  auto served = engine_.on_done(rank, is_last);
  if (is_last) served.push_back(rank);
  for (const Rank each : served) engine_.on_pull(each);
  pushed_[rank] = t;
  waiting_.emplace(rank, now);
  for (const Rank each : served) waiting_.erase(each);
  ++counters_.staleness[std::min(static_cast<std::size_t>(push.staleness), counters_.staleness.size() - 1)];

  const auto add_up = [this, rank, step, scale = push.scale] {
    auto r = windows_.reduction();
    if (step) {
      r.inputs = {step->data(), server_->data()};
      r.weights = {scale, 1};
    } else {
      const Worker& w = workers_.at(rank);
      r.inputs = {windows_.at(rank).window.data(w.published).data(), w.taken->data(), server_->data()};
      r.weights = {scale, -scale, 1};
    }
    return r;
  };
  serve(add_up, std::move(served), rank);
}

void ServerService::serve(std::function<collective::Reduction()> inputs, std::vector<Rank> served,
                          std::optional<Rank> pushed) {
  const auto given = std::make_shared<Bytes>();  // To other nodes.
  const auto prepare = [this, inputs = std::move(inputs), served, given] {
    auto r = inputs();
    r.outputs.push_back({server_->data(), 1.0});
    for (const Rank rank : served) {
      if (view_.is_here(rank)) {
        add_result(rank, r);
      } else if (given->empty()) {
        given->resize(windows_.bytes());
        r.outputs.push_back({given->data(), 1.0});
      }
    }
    return r;
  };
  const auto finish = [this, served, pushed, given](Instant now) {
    for (const Rank rank : served) {
      if (view_.is_here(rank)) {
        deliver(rank, now);
      } else if (!gone_.contains(rank)) {
        send_exchange(view_.node_of(rank),
                      {.phase = Phase::PULL, .rank = rank, .version = pushed_.at(rank)}, given.get());
      }
    }
    if (!pushed) return;
    trace("push", pushed_.at(*pushed));
    ++counters_.group_averages;
    count_iteration(job().node_of.size() - gone_.size());
  };
  averagings_.add({prepare, finish}, pushed ? std::vector{*pushed} : std::vector<Rank>{});
}

void ServerService::on_exchange(NodeId from, const Message& message, std::shared_ptr<Bytes> bulk, Instant now) {
  switch (message.phase) {
    case Phase::PUSH:
      if (!is_server() || !view_.lives_on(message.rank, from) || bulk->empty()) return;
      if (message.version >= job().first) return on_push(message.rank, message.version, std::move(bulk), now);
      if (!std::exchange(has_start_, true)) server_ = std::move(bulk);
      return;
    case Phase::PULL:
      if (from.value == 0 && workers_.contains(message.rank) && !bulk->empty()) take(message.rank, std::move(bulk));
      return;
    default: return;
  }
}

// Others
// ------------------------------------------------------------------------------------------------------------------

void ServerService::step(const Decision& d) {
  d.kind == Decision::Kind::gone_elsewhere ? on_rank_gone(d.rank, clock_now()) : AsynchronousService::step(d);
}

void ServerService::on_strategy_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                        Instant now) {
  if (message.isGone() && is_server()) {
    if (const Rank rank{message.getGone().getRank()}; view_.lives_on(rank, from))
      chronicle_.hear({.kind = Decision::Kind::gone_elsewhere, .rank = rank, .at = now}, now);
  } else if (message.isAwaited()) {
    awaited_.insert(Rank{message.getAwaited().getRank()});
    if (!chronicle_.replays()) look(now);
  }
  AsynchronousService::on_strategy_message(from, message, std::move(bulk), now);
}

void ServerService::leave(Rank rank, Instant now) {
  if (is_server()) {
    on_rank_gone(rank, now);
  } else {
    wire::Message message;
    auto body = message.root().initGone();
    body.setJob(job().job.value);
    body.setRank(rank.value);
    send(NodeId{0}, message);
  }
  AsynchronousService::leave(rank, now);
}

void ServerService::on_node_lost(NodeId node, Instant now) {
  if (is_server())
    for (const Rank rank : view_.ranks_on(node)) on_rank_gone(rank, now);
  AsynchronousService::on_node_lost(node, now);
}

void ServerService::on_rank_gone(Rank rank, Instant now) {
  if (!gone_.insert(rank).second) return;
  waiting_.erase(rank);
  let_pull(engine_.on_gone(rank));
  averagings_.start(now);
}

void ServerService::let_pull(std::vector<Rank> served) {
  if (served.empty()) return;
  for (const Rank each : served) {
    engine_.on_pull(each);
    waiting_.erase(each);
  }
  const auto as_it_is = [this] {
    auto r = windows_.reduction();
    r.inputs = {server_->data()};
    return r;
  };
  serve(as_it_is, std::move(served));
}

/// Some have pushed their last step before it was known to be that.
void ServerService::on_ends_apart() {
  if (!is_server()) return;
  for (const auto& [rank, t] : pushed_) {
    if (t < last_of(rank) || gone_.contains(rank)) continue;
    auto served = engine_.on_done(rank, true);
    if (waiting_.contains(rank)) served.push_back(rank);
    let_pull(std::move(served));
  }
}

bool ServerService::is_awaited(Rank rank) const {
  if (AsynchronousService::is_awaited(rank) || awaited_.contains(rank)) return true;
  if (!is_server() || waiting_.empty()) return false;
  const auto slowest = engine_.slowest();
  return std::find(slowest.begin(), slowest.end(), rank) != slowest.end();
}

/// Where a bound has made somebody wait beyond patience, the nodes of the slowest are told, once a patience.
void ServerService::look(Instant now) {
  AsynchronousService::look(now);
  if (waiting_.empty()) return;
  Instant since = now;
  for (const auto& [rank, at] : waiting_) since = std::min(since, at);
  if (now < std::max(since, complained_) + patience()) return;
  complained_ = now;
  for (const Rank rank : engine_.slowest()) {
    if (view_.is_here(rank)) continue;
    wire::Message message;
    auto body = message.root().initAwaited();
    body.setJob(job().job.value);
    body.setRank(rank.value);
    send(view_.node_of(rank), message);
  }
}

std::optional<Instant> ServerService::core_deadline() const {
  auto next = AsynchronousService::core_deadline();
  for (const auto& [rank, at] : waiting_) {
    const Instant due = std::max(at, complained_) + patience();
    next = next ? std::min(*next, due) : due;
  }
  return next;
}

std::optional<AveragingService::Waiting> ServerService::waiting() const {
  std::optional<Waiting> waiting;
  for (const auto& [rank, at] : waiting_)
    if (!waiting || at < waiting->since) waiting = Waiting{pushed_.at(rank), engine_.slowest(), at};
  return waiting;
}

}  // namespace paceline::scheduler
