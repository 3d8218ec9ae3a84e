#include "actors/worker/worker_main.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "actors/process_client.h"
#include "actors/protocol_wire.h"
#include "actors/worker/call_thread.h"
#include "actors/worker/state_keeper.h"
#include "runtime/base/check.h"
#include "runtime/base/steady_now.h"
#include "runtime/process/supervise.h"

namespace paceline::worker {
namespace {

Context* context = nullptr;  // Set once, before any user code runs in the worker.

/// How long a task may run before those behind it go back to their owners, who may have other workers for them.
constexpr Duration kTaskPatience = std::chrono::milliseconds(5);

[[noreturn]] void give_up(WorkerId worker, const Error& error) {
  std::fprintf(stderr, "paceline: %s: %s\n", where(worker).c_str(), error.text.c_str());
  std::fflush(stderr);
  _exit(1);
}

/// Its agent has them, too. Without them less is seen of this worker.
std::unique_ptr<actors::SpanBook> spans_of(WorkerId worker, process::DescriptorChannel& agent) {
  auto spans = actors::SpanBook::create();
  const auto sent =
      spans ? agent.tell(process::DescriptorMessage::Kind::spans, {}, {(*spans)->fd()}) : tl::unexpected(spans.error());
  if (sent) return *std::move(spans);
  std::fprintf(stderr, "paceline: %s: what it runs is not seen: %s\n", where(worker).c_str(),
               sent.error().text.c_str());
  return nullptr;
}

}  // namespace

bool is_worker() { return context != nullptr; }

Context& current() {
  PACELINE_CHECK(context != nullptr, "this process is no worker");
  return *context;
}

void worker_main(WorkerId worker, process::Fd agent_socket, actors::Client::TransportFactory transport) {
  // A worker ends by _exit or a signal, so what it printed must not wait in a buffer.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  static auto* shared = new CallThreads;  // The I/O thread uses it until the process ends, and the others do.
  shared->worker = worker;
  static auto* agent = new process::DescriptorChannel(std::move(agent_socket));
  shared->keeper = keep_at_agent(*agent);
  shared->spans = spans_of(worker, *agent);
  shared->give_up = [worker](const Error& error) { give_up(worker, error); };
  auto executable = actors::this_executable();
  if (!executable) give_up(worker, executable.error());
  actors::Client::Options options;
  options.role = "worker";
  options.name = actors::worker_peer(worker);
  options.agent_address = actors::environment(actors::kAgentEnv);
  options.executable = *std::move(executable);
  options.line_path = actors::line_path_beside(options.agent_address, worker);
  options.welcome_patience =
      std::chrono::minutes(10);  // An agent that is gone hangs up; one that is slow is waited for.
  options.hang_up = agent->socket().get();
  options.on_hang_up = [] { _exit(process::kExitAgentGone); };
  options.on_lost = [worker](const Error& error) { give_up(worker, error); };
  options.on_work = [](actors::Work work) { return shared->queues.push(std::move(work)); };
  options.on_signal = [](actors::Client& client, const actors::Signal& signal) {
    const bool wanted = signal.kind == actors::Signal::Kind::taken;
    auto call = wanted ? std::nullopt : shared->queues.take(signal.task, signal.owner);
    if (!call) return shared->running.on_signal(signal, [] { kill(getpid(), SIGKILL); });
    const std::string what = call->actor.value == 0 ? "task " : "call ";
    (void)client.answer(
        {call->task, std::move(call->owner), cancelled(what, call->task, "before it began"), call->by_line});
  };
  options.on_turn = [](actors::Client& client) {
    std::optional<Instant> again;
    for (auto& call : shared->queues.first().take_unbegun(steady_now(), kTaskPatience, again)) {
      actors::CallResult unbegun{call.task, std::move(call.owner), Bytes{}, call.by_line, true, {}};
      (void)client.answer(std::move(unbegun));
    }
    return again;
  };
  if (options.agent_address.empty())
    give_up(worker, {ErrorKind::invalid, "PACELINE_AGENT is not set: only agents start workers"});
  const auto address = options.agent_address;
  // Work may arrive with the welcome: it waits in the queue until the context is there.
  auto client = actors::Client::connect(std::move(options), std::move(transport));
  if (!client) give_up(worker, client.error());
  context = new Context{worker, (*client)->node(), address, agent, client->get()};
  actors::set_process_client(*std::move(client));

  shared->client = context->client;
  run_calls(*shared);
}

}  // namespace paceline::worker
