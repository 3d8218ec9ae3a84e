#include "actors/worker/call_thread.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <iostream>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include "actors/cancel.h"
#include "actors/exit.h"
#include "actors/looking.h"
#include "actors/protocol_wire.h"
#include "actors/resumer.h"
#include "actors/wait_observer.h"
#include "runtime/base/steady_now.h"

namespace paceline::worker {
namespace {

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

/// An actor's coroutines go on in the thread in which they began.
class ResumeHere final : public actors::Resumer {
 public:
  ResumeHere(actors::Client& client, WorkQueue& queue, std::size_t thread)
      : client_(client), queue_(queue), thread_(thread) {}
  std::function<void()> later(std::function<void()> go_on) override {
    return [this, call = within, go_on = std::move(go_on)] {
      queue_.resume({call, go_on}, thread_);
      client_.wake();
    };
  }
  void after(Duration duration, std::function<void()> go_on) override {
    queue_.resume_at(steady_now() + duration, {within, std::move(go_on)}, thread_);
  }

 private:
  actors::Client& client_;
  WorkQueue& queue_;
  std::size_t thread_;
};

class CallThread final : private actors::ValueSink {
 public:
  /// `group` empty: of what is called in none.
  CallThread(CallThreads& shared, Executor executor, std::string group, WorkQueue& queue, std::size_t thread,
             std::string what)
      : shared_(shared),
        executor_(std::move(executor)),
        group_(std::move(group)),
        queue_(queue),
        thread_(thread),
        what_(std::move(what)),
        tell_agent_(*shared.client),
        resume_here_(*shared.client, queue, thread) {}

  [[noreturn]] void run() {
    if (what_ == kTask) {
      actors::observe_waits(&tell_agent_);
    } else {
      actors::set_resumer(&resume_here_);
    }
    const auto has_work = [this] { return !queue_.is_idle(thread_); };
    while (true) {
      auto next = [&] {
        std::optional<actors::Sleeping> sleeping;
        if (!has_work() && !shared_.client->look_for_work(has_work, queue_.next_timer(thread_))) sleeping.emplace();
        return queue_.pop(thread_);
      }();
      std::visit([this](auto&& one) { handle(std::forward<decltype(one)>(one)); }, std::move(next));
      if (++done_ % kSome != 0) continue;
      const Instant now = steady_now();
      in_short_.on_waited(true, now, now);
      if (in_short_) shared_.client->look_between_calls();
    }
  }

  static constexpr std::uint64_t kSome = 16;
  static constexpr const char* kTask = "task ";
  static constexpr const char* kCall = "call ";

 private:
  void handle(actors::CreateActor create) {
    what_ = kCall;
    actors::set_resumer(&resume_here_);
    const bool is_alone = create.concurrency.is_one_at_a_time();
    auto ready = executor_.construct(std::move(create));
    if (is_alone) {
      actors::set_exit([this] { leaving_.insert(within); });
    } else {
      // A thread that waits does not keep the others: the agent could make nothing of it.
      actors::observe_waits(nullptr);
      if (ready.error.text.empty())
        if (const auto begun = begin_others(); !begun) ready.error = begun.error();
    }
    flush_output();
    if (const auto sent = shared_.client->post(actors::encode(ready)); !sent) shared_.give_up(sent.error());
  }

  Result<void> begin_others() {
    shared_.client->work_is_for_many();
    try {
      for (auto& group : shared_.queues.groups()) {
        for (std::size_t i = group.name.empty() ? 1 : 0; i < group.queue.threads(); ++i) {
          std::thread([&shared = shared_, executor = executor_.for_another_thread(), &group, i]() mutable {
            CallThread(shared, std::move(executor), group.name, group.queue, i, kCall).run();
          }).detach();
        }
      }
    } catch (const std::system_error& error) {
      return fail(ErrorKind::invalid, std::string("the threads of an actor cannot be started: ") + error.what() + " (" +
                                          where(shared_.worker) + ")");
    }
    return {};
  }

  void handle(actors::Call call) {
    if (call.group != group_) {
      const std::string text =
          "the actor has no concurrency group '" + call.group + "' (" + where(shared_.worker) + ")";
      return send({call.task, std::move(call.owner), fail(ErrorKind::invalid, text), call.by_line});
    }
    within = call.task;
    const auto token = shared_.running.begin(call);
    actors::set_stop_token(token);
    if (token.stop_requested()) {  // It was cancelled before it came.
      (void)shared_.running.end(call.task);
      return send({call.task, call.owner, cancelled(what_, call.task, "before it began"), call.by_line});
    }
    by_line_ = call.by_line;
    owner_ = call.owner;
    auto result = executor_.call(std::move(call), this);
    flush_output();
    if (!result) return;
    send(*std::move(result));
    if (leaving_.contains(within)) end_actor();
  }

  /// A value of the stream that what runs here gives.
  Result<bool> give(Bytes value) override {
    if (value.size() > actors::kResultBytesMax)
      return fail(ErrorKind::invalid, "a value of a stream takes " + std::to_string(value.size() >> 20) +
                                          " MiB; at most " + std::to_string(actors::kResultBytesMax >> 20) +
                                          " MiB can come back by value: give it in parts");
    const auto number = shared_.running.give(within, value.size());
    if (number == 0) return false;
    flush_output();
    actors::CallResult item{within, owner_, std::move(value), by_line_};
    item.item = number;
    if (const auto sent = shared_.client->answer(std::move(item)); !sent) shared_.give_up(sent.error());
    return true;
  }

  void handle(Resumption resumption) {
    within = resumption.within;
    actors::set_stop_token(shared_.running.token_of(within));
    auto results = executor_.resume(resumption.go_on);
    flush_output();
    bool ends = false;
    for (auto& result : results) {
      ends = ends || leaving_.contains(result.task);
      send(std::move(result));
    }
    if (ends) end_actor();
  }

  /// The call that asked for it has been answered. Those that are left here fail with the actor.
  [[noreturn]] void end_actor() {
    // Who cannot be told hears of it by this process's end.
    (void)shared_.client->request(actors::kLeaveVerb, "{}");
    const auto gone = executor_.end();
    flush_output();
    if (const auto sent = shared_.client->post(actors::encode(gone)); !sent) shared_.give_up(sent.error());
    while (true) ::pause();  // Until the agent ends this process.
  }

  void send(actors::CallResult result) {
    if (shared_.running.end(result.task)) {
      auto ended = cancelled(what_, result.task, "while it ran").value();
      result.value = tl::unexpected(actors::leaving(std::move(ended), {}, place_here(shared_.worker), {}));
    }
    if (const auto sent = shared_.client->answer(std::move(result)); !sent) shared_.give_up(sent.error());
  }

  CallThreads& shared_;
  Executor executor_;
  const std::string group_;
  WorkQueue& queue_;
  const std::size_t thread_;
  std::string what_;            ///< Is run here.
  std::set<TaskId> leaving_{};  ///< Calls with which the actor ends.
  std::string owner_;           ///< Of what runs here,
  bool by_line_ = false;        ///< and how it came.
  std::uint64_t done_ = 0;
  actors::Steadiness in_short_{};  ///< Of every kSome of them.
  TellAgent tell_agent_;
  ResumeHere resume_here_;
};

}  // namespace

actors::Place place_here(WorkerId worker) { return actors::place_of(worker, log_path()); }
std::string where(WorkerId worker) { return to_string(place_here(worker)); }

tl::unexpected<Error> cancelled(const std::string& what, TaskId task, const std::string& when) {
  return fail(ErrorKind::cancelled, what + to_string(task) + " was cancelled " + when);
}

void run_calls(CallThreads& shared) {
  Executor executor([worker = shared.worker] { return place_here(worker); }, shared.keeper, shared.spans.get());
  CallThread(shared, std::move(executor), "", shared.queues.first(), 0, CallThread::kTask).run();
}

}  // namespace paceline::worker
