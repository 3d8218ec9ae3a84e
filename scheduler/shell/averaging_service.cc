#include "scheduler/shell/averaging_service.h"

#include <set>
#include <utility>
#include <variant>

namespace paceline::scheduler {

AveragingService::AveragingService(JobOptions options, const MakeCoordinator& make, TaskGraph& graph,
                                   collective::Averager& averager, SendToNode send)
    : work_(std::move(options), graph, averager, std::move(send), *this, [this] { return shared_from_this(); }),
      view_change_(work_.job.self, work_.view.nodes()),
      coordinator_(make(work_)) {}

// Workers

Result<void> AveragingService::join(Rank rank, memory::Window window, memory::ControlPage control) {
  if (auto fits = work_.windows.fits(rank, window); !fits) return fits;
  Member member{std::move(window), std::move(control), false};
  const Decision joined{.kind = Decision::Kind::joined, .rank = rank};
  if (!work_.chronicle.replays()) {
    work_.chronicle.record(joined);
    add_member(rank, std::move(member));
    return {};
  }
  coordinator_->joins_early() ? add_member(rank, std::move(member))
                              : void(joining_.insert_or_assign(rank, std::move(member)));
  work_.chronicle.hear(joined, work_.now());
  return {};
}

Result<void> AveragingService::take_place(Rank rank, memory::Window window, memory::ControlPage control) {
  if (auto fits = work_.windows.fits(rank, window); !fits) return fits;
  work_.windows.add(rank, {std::move(window), std::move(control), true});
  return {};
}

void AveragingService::add_member(Rank rank, Member member) {
  work_.windows.add(rank, std::move(member));
  limit(rank);
  work_.averagings.begin_compute(rank);
}

memory::Window& AveragingService::reopen(Rank rank, memory::ControlPage control) {
  work_.windows.reopen(rank, std::move(control));
  return work_.windows.at(rank).window;
}

memory::Window* AveragingService::window(Rank rank) {
  Member* const member = work_.windows.find(rank);
  return member ? &member->window : nullptr;
}

memory::ControlPage* AveragingService::control(Rank rank) {
  Member* const member = work_.windows.find(rank);
  return member ? &member->control : nullptr;
}

void AveragingService::limit(Rank rank) {
  const auto& chronicle = work_.chronicle;
  Member* const member = chronicle.replays() ? work_.windows.living(rank) : nullptr;
  if (!member) return;
  member->control.words().may_publish.store(chronicle.replay().may_publish(rank), std::memory_order_release);
  member->control.ring();
}

// The job

void AveragingService::on_told(const Decision& decision) {
  using Kind = Decision::Kind;
  if (decision.kind == Kind::joined) {
    if (auto waiting = joining_.extract(decision.rank)) add_member(decision.rank, std::move(waiting.mapped()));
  } else if (decision.kind == Kind::ends) {
    coordinator_->step(decision);
    work_.windows.set_last(decision.version);
  } else {
    if (decision.kind == Kind::node_gone) work_.view.go_on_without(decision.node);
    if (work_.chronicle.replays() && decision.kind == Kind::gone) work_.tell(Left{decision.rank, done(), {}, {}, true});
    coordinator_->step(decision);
    if (decision.kind == Kind::node_gone) work_.tell(WentOn{decision.node});
  }
}

/// How a job ends whose evaluations hold nobody was agreed on in the recorded run.
bool AveragingService::needs_nothing(const Decision& decision) const {
  const bool ends_by_itself = decision.kind == Decision::Kind::ends && !evaluations_hold();
  return ends_by_itself || coordinator_->needs_nothing(decision);
}

void AveragingService::tick(Instant now) {
  work_.chronicle.replays() ? work_.chronicle.follow(now) : coordinator_->look(now);
}

std::optional<Instant> AveragingService::next_deadline() const {
  return work_.chronicle.replays() ? work_.chronicle.next_look() : coordinator_->core_deadline();
}

void AveragingService::release(Version v) { work_.release(v, v == last()); }

AveragingService::Reached AveragingService::reached(Instant now) const {
  return {work_.counters, work_.clock.at(now), work_.windows.elements(), work_.windows.dtype()};
}

void AveragingService::go_on_from(const Reached& before, Instant now) {
  work_.counters = before.counters;
  work_.clock.start(now, before.clock);
  work_.windows.expect(before.elements, before.dtype);
}

void AveragingService::begin_next_leg(std::int32_t leg) {
  work_.windows.set_next_leg(leg);
  release(last());
  work_.chronicle.finish();
}

void AveragingService::end_at(Version v) {
  const Decision ends{.kind = Decision::Kind::ends, .version = v};
  work_.chronicle.hear(ends, work_.now());
}

void AveragingService::stop() {
  const auto stop = [](auto& members) {
    for (auto& [rank, member] : members) {
      member.control.words().stop.store(1, std::memory_order_release);
      member.control.ring();
    }
  };
  stop(work_.windows.all());
  stop(joining_);
  if (is_over()) work_.chronicle.finish();
}

// Other agents

void AveragingService::on_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                  Instant now) {
  if (!view_change_.members().contains(from) || work_.view.is_without(from)) return;  // A replay hears of the record.
  if (!message.isFlushed()) return coordinator_->on_peer_message(from, message, std::move(bulk), now);
  std::set<NodeId> lost;
  for (const std::int32_t node : message.getFlushed().getLost()) lost.insert(NodeId{node});
  act(view_change_.on_flushed(from, lost), now);
}

void AveragingService::on_node_gone(NodeId node, Instant now) { act(view_change_.on_lost(node), now); }

void AveragingService::act(const ViewChange::Actions& actions, Instant now) {
  for (const auto& action : actions) {
    if (const auto* flush = std::get_if<ViewChange::Flush>(&action)) {
      for (const NodeId lost : flush->lost) coordinator_->pass_on(lost, flush->to);
      wire::Message message;
      auto body = message.root().initFlushed();
      body.setJob(work_.job.job.value);
      auto list = body.initLost(static_cast<unsigned>(flush->lost.size()));
      for (unsigned i = 0; const NodeId lost : flush->lost) list.set(i++, lost.value);
      work_.send(flush->to, message);
    } else {
      const NodeId lost = std::get<ViewChange::Install>(action).lost;
      work_.chronicle.hear({.kind = Decision::Kind::node_gone, .node = lost, .at = now}, now);
    }
  }
}

}  // namespace paceline::scheduler
