// What the death of an actor's process does to the calls that it had, whatever happens in between: the router of its
// node and the windows of its callers, with everything that lies between them in queues of this test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/call_windows.h"
#include "actors/router/actor_router.h"
#include "actors/router/router_test_support.h"
#include "tests/support/sanitized.h"

namespace paceline::actors {
namespace {

const ActorId kActor = actor_id(kHere, 1, 1);
constexpr int kCallers = 3;
constexpr int kCalls = 30;  // Of each caller.

/// A call is its number among those of its caller, in the first byte. Some are too large for a line.
transport::Frame frame_of(int call, bool is_large) {
  return transport::Frame(is_large ? 150 : 1, static_cast<std::byte>(call));
}
constexpr unsigned kFences = 1000;  // Their numbers, from here on.
TaskId task_of(int caller, int call) {
  return task_id(static_cast<ProcessId>(caller + 1), static_cast<unsigned>(call));
}
int caller_of(TaskId task) { return static_cast<int>(task.value >> 33) - 1; }
int call_of(TaskId task) { return static_cast<int>(task.value & 0xffffff); }
bool is_fence(TaskId task) { return call_of(task) >= static_cast<int>(kFences); }

struct OnItsWay {
  TaskId task;
  bool by_line = false;
};

/// A process of the actor's.
struct Process {
  WorkerId worker;
  bool lives = true;
  bool constructed = false;
  std::deque<std::variant<CreateActor, Call>> from_agent;
  std::deque<OnItsWay> taken;
  std::deque<CallResult> to_agent;
};

/// One that calls, as actors/client.cc does.
struct Caller {
  enum class State { none, asked, open, lost };
  CallWindows windows{{.calls = 6, .bytes = 1000, .line_bytes = 100}};
  int made = 0;
  unsigned fences = 0;
  std::map<TaskId, std::size_t> in_flight;
  std::map<TaskId, Result<Bytes>> ended;
  State state = State::none;
  int restarts = 0;
  std::shared_ptr<Process> line;
  std::deque<TaskId> line_out;
  std::deque<TaskId> line_in;
  std::deque<std::variant<Call, bool>> to_agent;  // bool: asks where the actor is.
  std::deque<std::variant<CallResult, Result<ActorRouter::LineTo>>> from_agent;
};

class Restarts {
 public:
  Restarts(unsigned seed, RestartRule rule) : random_(seed), rule_(rule) {
    Executable executable;
    executable.path = "/script";
    router_.on_executable("driver/0", executable);
    CreateActor create;
    create.actor = kActor;
    create.owner = "driver/0";
    create.rule = rule;
    carry_out(router_.on_create(create, kHere));
  }

  void run() {
    for (int i = 0; i < 4000; ++i) step(true);
    for (int i = 0; i < 20000 && !is_over(); ++i) step(false);
  }
  void check() const {
    ASSERT_TRUE(is_over()) << "a call has no end";
    for (int c = 0; c < kCallers; ++c) {
      for (const auto& [task, value] : callers_[c].ended) {
        const auto found = effects_.find(task);
        const int effects = found == effects_.end() ? 0 : found->second;
        ASSERT_TRUE(!value || effects >= 1) << "a result of nothing";
        ASSERT_TRUE(rule_.call_retries < 0 || effects <= 1 + rule_.call_retries) << "done too often";
        ASSERT_TRUE(value || value.error().kind == ErrorKind::disconnected) << value.error().text;
      }
    }
  }
  int failed() const {
    int all = 0;
    for (const auto& caller : callers_)
      for (const auto& [task, value] : caller.ended) all += value ? 0 : 1;
    return all;
  }
  int restarts() const { return started_ - 1; }

 private:
  bool is_over() const {
    return std::all_of(std::begin(callers_), std::end(callers_),
                       [](const Caller& caller) { return caller.made == kCalls && caller.ended.size() == kCalls; });
  }
  bool chance(int of) { return random_() % static_cast<unsigned>(of) == 0; }

  void step(bool may_kill) {
    const auto which = static_cast<int>(random_() % kCallers);
    Caller& caller = callers_[which];
    switch (random_() % 10) {
      case 0: return make_call(which);
      case 1: return agent_hears(which);
      case 2: return caller_hears(caller);
      case 3: return worker_takes(caller);
      case 4: return worker_runs();
      case 5: return agent_hears_worker();
      case 6: return hear_line(caller);
      case 7: return ask(caller);
      case 8: return carry_out(router_.tick(Instant{}));
      default: break;
    }
    if (may_kill && chance(20) && process_) process_->lives = false;
    if (process_ && !process_->lives && chance(4)) {
      const WorkerId worker = process_->worker;
      if (chance(2)) carry_out(router_.on_owner_gone(worker_peer(worker)));
      process_.reset();
      carry_out(router_.on_worker_gone(worker, "killed"));
    }
    if (process_ && process_->lives && !said_hello_) {
      said_hello_ = true;
      carry_out(router_.on_worker_ready(process_->worker));
    }
  }

  void make_call(int which) {
    Caller& caller = callers_[which];
    if (caller.made == kCalls) return;
    const TaskId task = task_of(which, caller.made);
    auto frame = frame_of(caller.made++, chance(6));
    caller.in_flight[task] = frame.size();
    caller.windows.add(kActor, task, std::move(frame));
    send_kept(caller);
  }
  void send_kept(Caller& caller) {
    while (auto leaving = caller.windows.next(kActor)) {
      if (leaving->fence) {
        leaving->task = task_of(static_cast<int>(&caller - callers_), static_cast<int>(kFences + caller.fences++));
        leaving->call = transport::Frame(1);
        caller.in_flight[leaving->task] = 1;
        caller.windows.add_fence(kActor, *leaving);
      }
      if (leaving->way == CallWindows::Way::agent) {
        Call call;
        call.task = leaving->task;
        call.actor = kActor;
        call.owner = "caller";
        call.resent = leaving->resent;
        caller.to_agent.emplace_back(std::move(call));
      } else if (caller.line_out.size() < 4) {
        caller.line_out.push_back(leaving->task);
        caller.windows.on_sent(kActor, *std::move(leaving));
      } else {
        if (leaving->fence) caller.in_flight.erase(leaving->task);
        return caller.windows.put_back(kActor, *std::move(leaving));
      }
    }
  }
  void end(Caller& caller, TaskId task, Result<Bytes> value, bool by_line) {
    const auto found = caller.in_flight.find(task);
    if (found == caller.in_flight.end()) return;
    caller.windows.on_result(kActor, task, found->second, by_line ? CallWindows::Way::line : CallWindows::Way::agent);
    caller.in_flight.erase(found);
    if (!is_fence(task)) {
      ASSERT_TRUE(caller.ended.emplace(task, std::move(value)).second);
    }
    send_kept(caller);
  }
  void ask(Caller& caller) {
    if (caller.state != Caller::State::none && caller.state != Caller::State::lost) return;
    if (caller.state == Caller::State::none) caller.state = Caller::State::asked;
    caller.to_agent.emplace_back(true);
  }

  void agent_hears(int which) {
    Caller& caller = callers_[which];
    if (caller.to_agent.empty()) return;
    auto message = std::move(caller.to_agent.front());
    caller.to_agent.pop_front();
    if (const auto* call = std::get_if<Call>(&message)) return carry_out(router_.on_call(*call, kHere));
    caller.from_agent.emplace_back(router_.line_to(kActor));
  }
  void caller_hears(Caller& caller) {
    if (caller.from_agent.empty()) return;
    auto message = std::move(caller.from_agent.front());
    caller.from_agent.pop_front();
    if (const auto* result = std::get_if<CallResult>(&message))
      return end(caller, result->task, result->value, result->by_line);
    on_line(caller, std::get<1>(message));
  }
  void on_line(Caller& caller, const Result<ActorRouter::LineTo>& to) {
    if (caller.state == Caller::State::asked) {
      const bool there =  // It listens once it has been told of its actor.
          to && process_ && process_->lives && process_->constructed && to->worker == process_->worker;
      caller.state = there ? Caller::State::open : Caller::State::none;
      if (!there) return;
      caller.restarts = to->restarts;
      caller.line = process_;
      caller.windows.set_line(kActor, true);
      caller.windows.set_rule(kActor, to->rule);
      return send_kept(caller);
    }
    if (caller.state != Caller::State::lost) return;
    if (!to) {
      caller.windows.forget(kActor);
      caller.state = Caller::State::none;
      for (auto& [task, bytes] : std::exchange(caller.in_flight, {}))
        if (!is_fence(task)) caller.ended.emplace(task, tl::unexpected(to.error()));
      return;
    }
    if (to->restarts <= caller.restarts) return;
    for (const TaskId task : caller.windows.on_restart(kActor)) {
      EXPECT_FALSE(rule_.call_retries < 0);
      end(caller, task, tl::unexpected(to->ended), true);
    }
    caller.state = Caller::State::none;
    send_kept(caller);
  }
  void hear_line(Caller& caller) {
    if (!caller.line_in.empty()) {
      const TaskId task = caller.line_in.front();
      caller.line_in.pop_front();
      return end(caller, task, Bytes{}, true);
    }
    if (caller.state != Caller::State::open || caller.line->lives) return;
    caller.line.reset();
    caller.windows.on_line_lost(kActor, caller.line_out.size());
    caller.line_out.clear();
    caller.state = Caller::State::lost;
  }

  void worker_takes(Caller& caller) {
    if (!process_ || !process_->lives) return;
    if (chance(2) && !process_->from_agent.empty()) {
      auto message = std::move(process_->from_agent.front());
      process_->from_agent.pop_front();
      if (const auto* call = std::get_if<Call>(&message); call != nullptr && is_fence(call->task)) {
        process_->to_agent.push_back({call->task, "caller", Bytes{}});
      } else if (call != nullptr) {
        process_->taken.push_back({call->task});
      } else {
        process_->constructed = true;
      }
    } else if (caller.line == process_ && !caller.line_out.empty()) {
      const TaskId task = caller.line_out.front();
      caller.line_out.pop_front();
      if (is_fence(task)) return caller.line_in.push_back(task);
      process_->taken.push_back({task, true});
    }
  }
  void worker_runs() {
    if (!process_ || !process_->lives || process_->taken.empty()) return;
    ASSERT_TRUE(process_->constructed) << "a call before the constructor";
    const auto [task, by_line] = process_->taken.front();
    process_->taken.pop_front();
    const int caller = caller_of(task), call = call_of(task);
    const bool first = effects_[task]++ == 0;
    auto& before = last_[{started_, caller}];
    ASSERT_LT(before, call + 1) << "a call overtook another";
    before = call + 1;
    if (first) {
      ASSERT_LT(last_first_[caller], call + 1) << "a call ran after a later one had";
      last_first_[caller] = call + 1;
    }
    if (by_line && !chance(4)) return callers_[caller].line_in.push_back(task);
    CallResult result{task, "caller", Bytes{}, by_line};
    process_->to_agent.push_back(std::move(result));
  }
  void agent_hears_worker() {
    if (!process_ || process_->to_agent.empty()) return;
    auto result = std::move(process_->to_agent.front());
    process_->to_agent.pop_front();
    carry_out(router_.on_result(std::move(result), worker_peer(process_->worker)));
  }

  void carry_out(const ActorRouter::Actions& actions) {
    for (const auto& action : actions) {
      if (const auto* fork = std::get_if<ActorRouter::Fork>(&action)) {
        process_ = std::make_shared<Process>();
        process_->worker = fork->worker;
        said_hello_ = false;
        ++started_;
      } else if (const auto* send = std::get_if<ActorRouter::Send>(&action)) {
        deliver(*send);
      }
    }
  }
  void deliver(const ActorRouter::Send& send) {
    if (const auto* create = std::get_if<CreateActor>(&send.message)) {
      process_->from_agent.emplace_back(*create);
      carry_out(router_.on_actor_ready({kActor, "driver/0", false, {}}));
    } else if (const auto* call = std::get_if<Call>(&send.message)) {
      if (process_ && worker_peer(process_->worker) == send.peer) process_->from_agent.emplace_back(*call);
    } else if (const auto* result = std::get_if<CallResult>(&send.message)) {
      callers_[caller_of(result->task)].from_agent.emplace_back(*result);
    }
  }

  std::mt19937 random_;
  RestartRule rule_;
  ActorRouter router_{[] {
    ActorRouter::Options options;
    options.node = kHere;
    options.calls_a_turn = 3;
    return options;
  }()};
  Caller callers_[kCallers];
  std::shared_ptr<Process> process_;
  bool said_hello_ = false;
  int started_ = 0;
  std::map<TaskId, int> effects_;
  std::map<std::pair<int, int>, int> last_;  // By process and caller.
  int last_first_[kCallers] = {};
};

/// Of many lives: how many calls failed, and how often the actor was started again.
std::pair<int, int> live(RestartRule rule, unsigned lives) {
  int failed = 0, restarts = 0;
  for (unsigned seed = 0; seed < lives; ++seed) {
    SCOPED_TRACE(seed);
    Restarts life(seed, rule);
    life.run();
    life.check();
    if (testing::Test::HasFatalFailure()) break;
    failed += life.failed();
    restarts += life.restarts();
  }
  return {failed, restarts};
}

constexpr int kLives = kSanitized ? 100 : 500;

TEST(RestartsTest, WithoutRetriesACallRunsOnceOrFails) {
  const auto [failed, restarts] = live({.restarts = -1}, kLives);
  EXPECT_GT(failed, kLives);
  EXPECT_GT(restarts, 2 * kLives);
}

TEST(RestartsTest, WithRetriesForEverAllCallsRunInOrder) {
  const auto [failed, restarts] = live({.restarts = -1, .call_retries = -1}, kLives);
  EXPECT_EQ(failed, 0);
  EXPECT_GT(restarts, 2 * kLives);
}

TEST(RestartsTest, WithSomeRetriesACallRunsAtMostSoOftenMore) {
  const auto [failed, restarts] = live({.restarts = -1, .call_retries = 1}, kLives);
  EXPECT_GT(failed, kLives / 50);
  EXPECT_GT(restarts, 2 * kLives);
}

TEST(RestartsTest, OnceRestartsAreUsedUpAllCallsEnd) {
  const auto [failed, restarts] = live({.restarts = 2, .call_retries = 5}, kLives);
  EXPECT_GT(failed, kLives);
  EXPECT_LE(restarts, 2 * kLives);
}

}  // namespace
}  // namespace paceline::actors
