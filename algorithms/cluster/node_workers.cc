#include "algorithms/cluster/node_workers.h"

#include <unistd.h>

#include <utility>

#include "actors/protocol_wire.h"

namespace paceline::cluster {

NodeWorkers::NodeWorkers(const Make& make, std::function<void(WorkerOutput::Source)> prints,
                         std::function<void(WorkerId)> printed, EventLoop& loop, Around around)
    : around_(std::move(around)),
      workers_(make(
          {.ended = [this](WorkerId worker, const auto& end) { on_ended(worker, end); },
           .said = [this](WorkerId worker, process::DescriptorMessage message) { on_said(worker, std::move(message)); },
           .prints = std::move(prints),
           .printed = std::move(printed)})),
      sessions_(loop, {.message = around_.session_said,
                       .broken = [this](WorkerId worker, const Error& error) { workers_->end(worker, error.text); }}) {}

void NodeWorkers::fork(const actors::ActorRouter::Fork& fork) {
  spans_.begin(fork.worker, {fork.root, fork.name, fork.type});
  workers_->fork(fork);
}

void NodeWorkers::on_ended(WorkerId worker, const Workers::Listener::End& end) {
  sessions_.close(worker);
  (void)::unlink(actors::line_path(around_.directory, worker).c_str());
  spans_.end(worker, around_.clock.now());
  around_.ended(worker, end);
}

void NodeWorkers::on_said(WorkerId worker, process::DescriptorMessage message) {
  using Kind = process::DescriptorMessage::Kind;
  switch (message.kind) {
    case Kind::open_channel: return open_session(worker, message.request);
    case Kind::find_state: return give_state(worker, message.request);
    case Kind::keep_state: return keep_state(worker, message.request, std::move(message.fds.front()));
    case Kind::spans: return spans_.keep(worker, workers_->pid(worker), std::move(message.fds.front()));
    case Kind::captured: return around_.captured(worker, message.body, std::move(message.fds.front()));
    case Kind::answer:
    case Kind::failure: return;  // It has not been asked.
  }
}

void NodeWorkers::open_session(WorkerId worker, std::uint64_t request) {
  const auto opened = sessions_.open(worker, [&](const std::vector<process::BorrowedFd>& descriptors) {
    workers_->answer(worker, request, {}, descriptors);
  });
  if (!opened) workers_->answer(worker, request, tl::unexpected(opened.error()), {});
}

/// What the actor's process before this one has given to be kept.
void NodeWorkers::give_state(WorkerId worker, std::uint64_t request) {
  std::vector<process::BorrowedFd> found;
  if (const auto* const state = states_.find(around_.restartable(worker))) found.emplace_back(*state);
  workers_->answer(worker, request, {}, found);
}

void NodeWorkers::keep_state(WorkerId worker, std::uint64_t request, process::Fd state) {
  const ActorId actor = around_.restartable(worker);
  const auto kept = actor.value == 0
                        ? fail(ErrorKind::invalid, "nothing is kept of what is no actor that may be started again")
                        : states_.keep(actor, std::move(state));
  workers_->answer(worker, request, kept.map([] { return std::string(); }), {});
}

}  // namespace paceline::cluster
