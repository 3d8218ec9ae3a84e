#include "actors/worker/worker_main.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <iostream>
#include <optional>
#include <utility>
#include <variant>

#include "actors/cancel.h"
#include "actors/process_client.h"
#include "actors/protocol_wire.h"
#include "actors/resumer.h"
#include "actors/worker/executor.h"
#include "actors/worker/stops.h"
#include "actors/worker/work_queue.h"
#include "runtime/base/check.h"
#include "runtime/base/steady_now.h"
#include "runtime/process/supervise.h"

namespace paceline::worker {
namespace {

Context* context = nullptr;  // Set once, before any user code runs in the worker.

/// How long a task may run before those behind it go back to their owners, who may have other workers for them.
constexpr Duration kTaskPatience = std::chrono::milliseconds(5);

thread_local TaskId within;  ///< What this thread runs.

/// The file that standard output goes to, if it is one in which something stands: others may be gone when somebody
/// looks.
std::string log_path() {
  struct stat status {};
  if (::fstat(STDOUT_FILENO, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) return {};
  char path[PATH_MAX];
  const auto size = readlink("/proc/self/fd/1", path, sizeof path);
  const std::string text(path, size > 0 ? static_cast<std::size_t>(size) : 0);
  return text.starts_with('/') && !text.starts_with("/dev/") ? text : std::string();
}

std::string where(WorkerId worker) {
  const auto log = log_path();
  return "worker " + std::to_string(worker.value & 0xffffffff) + " on node " + std::to_string(worker.value >> 32) +
         (log.empty() ? "" : ", log " + log);
}

/// Before a result leaves: who has it may look for what was printed.
void flush_output() {
  std::cout.flush();
  std::fflush(stdout);
}

/// The agent may give this worker's cpus to others while it waits.
class TellAgent final : public actors::WaitObserver {
 public:
  explicit TellAgent(actors::Client& client) : client_(client) {}
  void waits(TaskId task) override { tell(task, true); }
  void goes_on() override { tell(TaskId{}, false); }

 private:
  void tell(TaskId task, bool begins) {
    wire::Message message;
    auto body = message.root().initWaits();
    body.setTask(task.value);
    body.setBegins(begins);
    body.setActor(client_.actor_of(task).value);
    body.setWithin(within.value);
    (void)client_.post(actors::as_message(message.to_frame()));  // Without an agent nothing is there to be given back.
  }

  actors::Client& client_;
};

/// An actor's coroutines go on in its compute thread.
class ResumeHere final : public actors::Resumer {
 public:
  explicit ResumeHere(WorkQueue& queue) : queue_(queue) {}
  std::function<void()> later(std::function<void()> go_on) override {
    return [&queue = queue_, call = within, go_on = std::move(go_on)] { queue.resume({call, go_on}); };
  }
  void after(Duration duration, std::function<void()> go_on) override {
    queue_.resume_at(steady_now() + duration, {within, std::move(go_on)});
  }

 private:
  WorkQueue& queue_;
};

tl::unexpected<Error> cancelled(const std::string& what, TaskId task, const std::string& when) {
  return fail(ErrorKind::cancelled, what + to_string(task) + " was cancelled " + when);
}

[[noreturn]] void give_up(WorkerId worker, const Error& error) {
  std::fprintf(stderr, "paceline: %s: %s\n", where(worker).c_str(), error.text.c_str());
  std::fflush(stderr);
  _exit(1);
}

}  // namespace

bool is_worker() { return context != nullptr; }

Context& current() {
  PACELINE_CHECK(context != nullptr, "this process is no worker");
  return *context;
}

void worker_main(WorkerId worker, int agent_socket, actors::Client::TransportFactory transport) {
  // A worker ends by _exit or a signal, so what it printed must not wait in a buffer.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  static auto* queue = new WorkQueue;  // The I/O thread uses it until the process ends, and the other one.
  static auto* stops = new Stops;
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
  options.hang_up = agent_socket;
  options.on_hang_up = [] { _exit(process::kExitAgentGone); };
  options.on_lost = [worker](const Error& error) { give_up(worker, error); };
  options.on_work = [](actors::Work work) { return queue->push(std::move(work)); };
  options.on_cancel = [](actors::Client& client, const actors::Cancel& cancel) {
    auto call = queue->take(cancel.task, cancel.owner);
    if (!call) return stops->cancel(cancel, [] { kill(getpid(), SIGKILL); });
    const std::string what = call->actor.value == 0 ? "task " : "call ";
    (void)client.answer(
        {call->task, std::move(call->owner), cancelled(what, call->task, "before it began"), call->by_line});
  };
  options.on_turn = [](actors::Client& client) {
    std::optional<Instant> again;
    for (auto& call : queue->take_unbegun(steady_now(), kTaskPatience, again)) {
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
  context = new Context{worker, (*client)->node(), address, agent_socket, client->get()};
  actors::set_process_client(*std::move(client));

  TellAgent tell_agent(*context->client);
  actors::observe_waits(&tell_agent);
  ResumeHere resume_here(*queue);
  Executor executor([worker] { return where(worker); });
  std::string what = "task ";  // Is run here.
  const auto send = [&](actors::CallResult result) {
    if (stops->end(result.task)) result.value = cancelled(what, result.task, "while it ran (" + where(worker) + ")");
    if (const auto sent = context->client->answer(std::move(result)); !sent) give_up(worker, sent.error());
  };
  while (true) {
    auto next = queue->pop();
    if (auto* create = std::get_if<actors::CreateActor>(&next)) {
      what = "call ";
      actors::set_resumer(&resume_here);
      const auto ready = executor.construct(std::move(*create));
      flush_output();
      if (const auto sent = context->client->post(actors::encode(ready)); !sent) give_up(worker, sent.error());
    } else if (auto* call = std::get_if<actors::Call>(&next)) {
      within = call->task;
      const auto token = stops->begin(*call);
      actors::set_stop_token(token);
      if (token.stop_requested()) {  // It was cancelled before it came.
        (void)stops->end(call->task);
        send({call->task, call->owner, cancelled(what, call->task, "before it began"), call->by_line});
        continue;
      }
      auto result = executor.call(std::move(*call));
      flush_output();
      if (result) send(*std::move(result));
    } else {
      auto& resumption = std::get<Resumption>(next);
      within = resumption.within;
      actors::set_stop_token(stops->token_of(within));
      auto results = executor.resume(resumption.go_on);
      flush_output();
      for (auto& result : results) send(std::move(result));
    }
  }
}

}  // namespace paceline::worker
