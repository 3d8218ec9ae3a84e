#pragma once

#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/output_message.h"
#include "actors/process_client.h"
#include "actors/process_ids.h"
#include "actors/protocol_wire.h"
#include "actors/router/actor_router.h"
#include "runtime/base/steady_now.h"
#include "runtime/process/fork_server.h"
#include "runtime/process/supervise.h"
#include "runtime/transport/transport.h"

#include <poll.h>
#include <signal.h>

namespace paceline::actors {

/// The smallest agent that can carry actors: real fork servers, a real transport and the real router, one node. For
/// tests.
class MiniAgent {
 public:
  /// Listens in `directory` (mode 0700), as the first agent of a cluster does.
  static Result<std::unique_ptr<MiniAgent>> start(const std::string& directory, Client::TransportFactory factory) {
    auto transport = factory("agent/0");
    if (!transport) return tl::unexpected(std::move(transport).error());
    auto address = (*transport)->listen(agent_address(directory));
    if (!address) return tl::unexpected(std::move(address).error());
    return std::unique_ptr<MiniAgent>(new MiniAgent(directory, *address, *std::move(transport)));
  }

  /// One round: waits at most `timeout_ms` for something, and acts on it.
  void step(int timeout_ms) {
    std::vector<pollfd> waits{{transport_->descriptor(), POLLIN, 0}};
    for (auto& [path, server] : servers_) waits.push_back({server.descriptor(), POLLIN, 0});
    router_.at(steady_now());
    const auto due = router_.next_deadline();
    const bool is_due = due && *due <= steady_now();
    ::poll(waits.data(), waits.size(), is_due ? 0 : timeout_ms);
    if (is_due) carry_out(router_.tick(steady_now()));
    for (auto& [path, server] : servers_) {
      for (auto& event : server.events()) on_fork_event(event);
    }
    while (auto event = transport_->poll(Duration::zero())) on_event(*std::move(event));
  }
  std::size_t workers() const { return workers_.size(); }

 private:
  struct Worker {
    process::Fd pidfd, socket;
  };
  MiniAgent(std::string directory, std::string address, std::unique_ptr<transport::Transport> transport)
      : directory_(std::move(directory)), address_(std::move(address)), transport_(std::move(transport)), router_([] {
          ActorRouter::Options options;
          options.has.cpus = 2;
          return options;
        }()) {}

  void on_fork_event(process::ForkServer::Event& event) {
    using Kind = process::ForkServer::Event::Kind;
    if (event.kind == Kind::forked) {
      workers_[event.worker] = {std::move(event.pidfd), std::move(event.socket)};
      if (kill_when_forked_.erase(event.worker) > 0) end(event.worker);
    } else if (event.kind == Kind::exited || event.kind == Kind::fork_refused) {
      workers_.erase(event.worker);
      kill_when_forked_.erase(event.worker);
      carry_out(router_.on_worker_gone(event.worker, event.kind == Kind::exited ? to_string(event.exit) : event.text));
    }
  }

  void on_event(transport::Event event) {
    if (event.kind == transport::Event::Kind::disconnected) carry_out(router_.on_owner_gone(event.peer));
    if (event.kind != transport::Event::Kind::message) return;
    auto received = wire::Received::parse(std::move(event.frames.at(0)));
    if (!received) return;
    (void)received->visit([&](wire::Envelope::Reader root) { on_message(event.peer, root, event.frames); });
  }

  void on_message(const transport::Peer& peer, wire::Envelope::Reader root, std::vector<transport::Frame>& frames) {
    const NodeId here{0};
    switch (root.which()) {
      case wire::Envelope::HELLO: {
        wire::Message welcome;
        auto body = welcome.root().initWelcome();
        body.setNode(0);
        body.setProcess(process_ids_.join(peer));
        std::vector<transport::Frame> answer;
        answer.push_back(welcome.to_frame());
        (void)transport_->send(peer, std::move(answer));
        if (peer.starts_with("worker/")) carry_out(router_.on_worker_ready(WorkerId(std::stoull(peer.substr(7)))));
        return;
      }
      case wire::Envelope::EXECUTABLE: return router_.on_executable(peer, decode(root.getExecutable()));
      case wire::Envelope::OUTPUT_WANTED: {  // It shows nothing.
        Output all;
        all.all = true;
        (void)transport_->send(peer, encode(all));
        return;
      }
      case wire::Envelope::CREATE_ACTOR:
        return carry_out(router_.on_create(decode(root.getCreateActor()).value(), here));
      case wire::Envelope::WANTS: {
        auto wants = decode(root.getWants());
        wants.owner = peer;
        return carry_out(router_.on_wants(wants, here));
      }
      case wire::Envelope::PUSH_TASK: {
        auto push = decode(root.getPushTask(), frames).value();
        push.owner = peer;
        return carry_out(router_.on_push(std::move(push), here));
      }
      case wire::Envelope::SIGNAL: {
        auto signal = decode(root.getSignal()).value();
        signal.owner = peer;
        return carry_out(router_.on_signal(std::move(signal), here));
      }
      case wire::Envelope::CALL: {
        auto call = decode(root.getCall()).value();
        call.owner = peer;
        return carry_out(router_.on_call(std::move(call), here));
      }
      case wire::Envelope::CALL_RESULT:
        return carry_out(router_.on_result(decode(root.getCallResult(), frames).value(), peer));
      case wire::Envelope::WAITS: {
        const auto waits = root.getWaits();
        return carry_out(router_.on_waits(WorkerId(std::stoull(peer.substr(7))), awaited(waits)));
      }
      case wire::Envelope::ACTOR_READY: return carry_out(router_.on_actor_ready(decode(root.getActorReady()).value()));
      case wire::Envelope::REQUEST: {
        const auto request = root.getRequest();
        if (wire::view(request.getVerb()) == kLeaveVerb) return let_leave(peer, request.getId());
        if (wire::view(request.getVerb()) != kReleaseVerb) return;
        return carry_out(
            router_.on_release(peer, release_from_json(std::string(wire::view(request.getJson()))).value(), NodeId{0}));
      }
      default: return;
    }
  }

  void let_leave(const std::string& peer, std::uint64_t id) {
    router_.on_leaving(WorkerId(std::stoull(peer.substr(7))));
    wire::Message message;
    auto reply = message.root().initReply();
    reply.setId(id);
    reply.setOk(true);
    reply.setJson("{}");
    (void)transport_->send(peer, {message.to_frame()});
  }

  void carry_out(ActorRouter::Actions actions) {
    for (auto& action : actions) {
      if (auto* fork = std::get_if<ActorRouter::Fork>(&action)) {
        start(*fork);
      } else if (auto* kill = std::get_if<ActorRouter::Kill>(&action)) {
        end(kill->worker);
      } else if (auto* claims = std::get_if<ActorRouter::Claim>(&action)) {  // Nobody else is there.
        carry_out(router_.on_claimed(claims->claim.actor, claims->claim.name, claims->claim.actor));
      } else if (auto* send = std::get_if<ActorRouter::Send>(&action)) {
        auto frames = std::visit([](auto& message) { return encode(std::move(message)); }, send->message);
        (void)transport_->send(send->peer, std::move(frames));  // A peer that is gone hears nothing.
      }
    }
  }

  void end(WorkerId id) {
    const auto worker = workers_.find(id);
    if (worker == workers_.end()) {
      kill_when_forked_.insert(id);
    } else {
      (void)process::kill_worker(worker->second.pidfd, SIGKILL);
    }
  }

  void start(const ActorRouter::Fork& fork) {
    auto server = servers_.find(fork.executable.path);
    if (server == servers_.end()) {
      process::ForkServer::Options options{fork.executable.path, fork.executable.args, {}, directory_ + "/server.log"};
      auto started = process::ForkServer::start(std::move(options));
      if (!started) return carry_out(router_.on_worker_gone(fork.worker, started.error().text));
      server = servers_.emplace(fork.executable.path, *std::move(started)).first;
    }
    process::ForkRequest request;
    request.worker = fork.worker;
    request.log_path = directory_ + "/worker-" + std::to_string(number_on_node(fork.worker)) + ".log";
    request.env = {{kAgentEnv, address_}};
    if (auto forked = server->second.fork(request); !forked)
      carry_out(router_.on_worker_gone(fork.worker, forked.error().text));
  }

  std::string directory_;
  std::string address_;
  std::unique_ptr<transport::Transport> transport_;
  ActorRouter router_;
  ProcessIds process_ids_{NodeId{0}};
  std::map<std::string, process::ForkServer> servers_;
  std::map<WorkerId, Worker> workers_;
  std::set<WorkerId> kill_when_forked_;
};

}  // namespace paceline::actors
