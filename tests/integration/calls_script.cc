// Calls under load and in distress: an actor script whose first argument says which; it checks its own answers. Exit
// status 0: all were right.
#include <paceline.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using paceline::test::error_of;
using paceline::test::expect;

using namespace std::chrono_literals;

class Counter {
 public:
  explicit Counter(int delay_ms = 0) { std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms)); }
  int add(int k) { return n_ += k; }
  int work_us(int us) {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
    return ++n_;
  }
  int process() const { return getpid(); }
  int parent() const { return getppid(); }
  std::vector<char> echo(std::vector<char> bytes) { return bytes; }
  int take(const std::vector<char>&) { return ++n_; }

 private:
  int n_ = 0;
};

int nested(int depth) { return depth == 0 ? 0 : 1 + paceline::async(nested, depth - 1).get(); }

/// `count` calls at once to one actor: all come, in order.
void expect_all(const paceline::Handle<Counter>& counter, int count, int from = 0) {
  std::vector<paceline::Future<int>> sums;
  for (int i = 0; i < count; ++i) sums.push_back(counter.call(&Counter::add, 1));
  for (int i = 0; i < count; ++i) {
    const int sum = sums[static_cast<std::size_t>(i)].get();
    if (sum != from + i + 1) return expect(false, "call " + std::to_string(i) + " gave " + std::to_string(sum));
  }
}

/// flood CALLS FLIGHT: calls in flights, futures kept, then all asked for.
void flood(int calls, int flight) {
  auto counter = paceline::create<Counter>();
  for (int done = 0; done < calls; done += flight) expect_all(counter, flight, done);
}

/// before_ready CALLS: to an actor whose constructor takes a second.
void before_ready(int calls) { expect_all(paceline::create<Counter>(1000), calls); }

/// stopped CALLS BEFORE: to an actor that is stopped for a second, beside another that goes on meanwhile; after some
/// calls, so many that the way past the agent is found.
void stopped(int calls, int before) {
  auto counter = paceline::create<Counter>();
  expect_all(counter, before);
  auto other = paceline::create<Counter>();
  const int pid = counter.call(&Counter::process).get();
  kill(pid, SIGSTOP);
  std::vector<paceline::Future<int>> sums;
  for (int i = 0; i < calls; ++i) sums.push_back(counter.call(&Counter::add, 1));
  expect_all(other, 1000);
  expect(!sums[0].ready(), "a stopped actor answers nothing");
  kill(pid, SIGCONT);
  for (int i = 0; i < calls; ++i) expect(sums[static_cast<std::size_t>(i)].get() == before + i + 1, "a call is lost");
}

/// busy CALLS: to an actor that takes its time.
void busy(int calls) {
  auto counter = paceline::create<Counter>();
  std::vector<paceline::Future<int>> sums;
  for (int i = 0; i < calls; ++i) sums.push_back(counter.call(&Counter::work_us, 20));
  for (int i = 0; i < calls; ++i) expect(sums[static_cast<std::size_t>(i)].get() == i + 1, "a call is lost");
}

/// large COUNT BYTES: arguments and results of many bytes.
void large(int count, int bytes) {
  auto counter = paceline::create<Counter>();
  const std::vector<char> payload(static_cast<std::size_t>(bytes), 'x');
  std::vector<paceline::Future<std::vector<char>>> echoes;
  for (int i = 0; i < count; ++i) echoes.push_back(counter.call(&Counter::echo, payload));
  for (auto& echo : echoes) expect(echo.get() == payload, "a large call came back otherwise");
}

/// mixed CALLS: small ones, which find a way past the agent, and large ones, which do not: none overtakes another.
void mixed(int calls) {
  auto counter = paceline::create<Counter>();
  std::vector<paceline::Future<int>> order;
  for (int i = 0; i < calls; ++i) {
    const bool large = i % 97 == 0 || (i / 500) % 2 == 1;
    order.push_back(counter.call(&Counter::take, std::vector<char>(large ? 30'000 : 30)));
    if (i % 1000 == 999) expect(order.back().get() == i + 1, "a call overtook another");
  }
  for (int i = 0; i < calls; ++i)
    if (order[static_cast<std::size_t>(i)].get() != i + 1)
      return expect(false, "call " + std::to_string(i) + " was overtaken");
}

/// killed CALLS BEFORE: all calls under way end when the actor is killed, and say so.
void killed(int calls, int before) {
  auto counter = paceline::create<Counter>();
  expect_all(counter, before);
  const int pid = counter.call(&Counter::process).get();
  kill(pid, SIGSTOP);
  std::vector<paceline::Future<int>> sums;
  for (int i = 0; i < calls; ++i) sums.push_back(counter.call(&Counter::add, 1));
  const auto begin = paceline::test::Clock::now();
  kill(pid, SIGKILL);
  for (auto& sum : sums) (void)sum.wait_for(std::chrono::minutes(1));
  std::printf("all had ended %.1f ms after the kill\n", 1e3 * paceline::test::since(begin));
  for (auto& sum : sums) {
    const auto error = error_of([&] { (void)sum.get(); });
    if (error.find("SIGKILL") == error.npos) return expect(false, "a call to a killed actor: " + error);
  }
  const auto later = error_of([&] { (void)counter.call(&Counter::add, 1).get(); });
  expect(later.find("SIGKILL") != later.npos, "a later one: " + later);
}

class Caller {
 public:
  /// Calls the actor from here; how many results were not what they have to be.
  int calls(paceline::Handle<Counter> to, int count) {
    std::vector<paceline::Future<std::vector<char>>> echoes;
    const std::vector<char> payload(10, 'x');
    for (int i = 0; i < count; ++i) echoes.push_back(to.call(&Counter::echo, payload));
    int wrong = 0;
    for (auto& echo : echoes) wrong += echo.get() == payload ? 0 : 1;
    return wrong;
  }
};

/// callers ACTORS CALLS: many processes call one actor, which nobody keeps from the others.
void callers(int actors, int calls) {
  auto counter = paceline::create<Counter>();
  auto all = paceline::create_many<Caller>({.count = actors});
  for (int round = 0; round < 3; ++round) {
    std::vector<paceline::Future<int>> wrong;
    for (auto& caller : all) wrong.push_back(caller.call(&Caller::calls, counter, calls));
    for (auto& one : wrong) expect(one.get() == 0, "a result went to another caller");
  }
}

/// temporary ACTORS: the handle goes before the answer comes; the actor stays until then, and no longer, whoever keeps
/// the result.
void temporary(int actors) {
  std::vector<paceline::Future<int>> processes;
  for (int i = 0; i < actors; ++i) {
    expect(paceline::create<Counter>(20).call(&Counter::work_us, 20'000).get() == 1, "a call of a temporary handle");
    processes.push_back(paceline::create<Counter>().call(&Counter::process));
  }
  for (auto& process : processes) {
    const int pid = process.get();
    for (int tries = 0; tries < 2000 && kill(pid, 0) == 0; ++tries) std::this_thread::sleep_for(10ms);
    expect(kill(pid, 0) != 0, "an actor without handles and calls goes on");
  }
}

/// many ACTORS: all at once, each of which answers.
void many(int actors) {
  const auto begin = paceline::test::Clock::now();
  std::vector<paceline::Handle<Counter>> counters;
  for (int i = 0; i < actors; ++i) counters.push_back(paceline::create<Counter>());
  std::vector<paceline::Future<int>> sums;
  for (int i = 0; i < actors; ++i) sums.push_back(counters[static_cast<std::size_t>(i)].call(&Counter::add, i));
  for (int i = 0; i < actors; ++i) expect(sums[static_cast<std::size_t>(i)].get() == i, "one of many actors");
  std::printf("%d actors answered after %.3f s\n", actors, paceline::test::since(begin));
}

/// nowhere: an actor on a node that does not exist.
void nowhere() {
  expect_all(paceline::create<Counter>(), 1);
  auto counter = paceline::create<Counter>({.node = 9});
  const auto error = error_of([&] { (void)counter.call(&Counter::add, 1).get(); });
  expect(error.find("node 9") != error.npos, "an actor on no node: " + error);
  const auto refused = error_of([] { (void)paceline::create<Counter>({.name = "nowhere", .node = 1024}); });
  expect(refused.find("node 1024") != refused.npos, "an actor on a node that no cluster has: " + refused);
}

/// idle ACTORS: so many that do nothing, until the end of the input.
void idle(int actors) {
  auto all = paceline::create_many<Counter>({.count = actors});
  for (auto& one : all) expect_all(one, 1);
  std::puts("idle");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}

/// node_lost: somebody kills or stops node 1, once "calls" is printed, and lets it go on once "lost" is. Calls end,
/// until it is there again.
void node_lost() {
  auto counter = paceline::create<Counter>({.name = "there", .node = 1});
  expect_all(counter, 10);
  std::vector<paceline::Future<int>> under_way;
  for (int i = 0; i < 10'000; ++i) under_way.push_back(counter.call(&Counter::work_us, 1000));
  std::puts("calls");
  std::fflush(stdout);
  const auto error = error_of([&] {
    for (auto& one : under_way) (void)one.get();
  });
  expect(error.find("node 1 is gone") != error.npos, "a call to a node that was killed: " + error);
  const auto later = error_of([&] { (void)counter.call(&Counter::add, 1).get(); });
  expect(later.find("node 1 is gone") != later.npos, "a later one: " + later);
  std::puts("lost");
  std::fflush(stdout);
  std::string created = "not tried";  // Until its agent is there again an actor there fails, and says so.
  for (int i = 0; i < 200 && !created.empty(); ++i) {
    created = error_of([] { expect_all(paceline::create<Counter>({.name = "again", .node = 1}), 1); });
    if (!created.empty()) expect(created.find("node 1 is gone") != created.npos, "an actor there: " + created);
    std::this_thread::sleep_for(50ms);
  }
  expect(created.empty(), "its agent is not there again: " + created);
}

/// server_failed: the program is removed and its fork server killed. Who lives goes on; who is asked for hears why not.
void server_failed() {
  auto counter = paceline::create<Counter>();
  expect_all(counter, 10);
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  std::filesystem::remove(program);
  kill(counter.call(&Counter::parent).get(), SIGKILL);
  const std::string why = "start " + program.string() + ": No such file or directory";
  for (int i = 0; i < 2; ++i) {
    const auto of_actor = error_of([&] { (void)paceline::create<Counter>().call(&Counter::add, 1).get(); });
    expect(of_actor.find(why) != of_actor.npos, "an actor of a program that is gone: " + of_actor);
    const auto of_task = error_of([] { (void)paceline::async(nested, 0).get(); });
    expect(of_task.find(why) != of_task.npos, "a task of a program that is gone: " + of_task);
  }
  expect_all(counter, 10, 10);
  kill(counter.call(&Counter::process).get(), SIGKILL);
  const auto of_killed = error_of([&] { (void)counter.call(&Counter::add, 1).get(); });
  expect(of_killed.find("SIGKILL") != of_killed.npos, "a call to an actor that was killed: " + of_killed);
}

class Ring {
 public:
  void set(paceline::Handle<Ring> next) { next_ = next; }
  int ask(int hops) { return hops == 0 ? 0 : 1 + next_.call(&Ring::ask, hops - 1).get(); }
  int count() { return ++count_; }
  void touch() {}
  /// Until the way past the agent is found.
  void find(int calls) {
    for (int i = 0; i < calls; ++i) next_.call(&Ring::touch).get();
  }

 private:
  paceline::Handle<Ring> next_;
  int count_ = 0;
};

/// circle ACTORS BEFORE: each calls the next and waits, the last one the first; after some calls that end.
void circle(int actors, int before) {
  std::vector<paceline::Handle<Ring>> ring;
  for (int i = 0; i < actors; ++i) ring.push_back(paceline::create<Ring>({.name = "ring-" + std::to_string(i)}));
  for (int i = 0; i < actors; ++i)
    ring[static_cast<std::size_t>(i)].call(&Ring::set, ring[static_cast<std::size_t>((i + 1) % actors)]).get();
  for (auto& one : ring)
    if (actors > 1) one.call(&Ring::find, before).get();
  expect(ring[0].call(&Ring::ask, actors - 1).get() == actors - 1, "a chain that ends");
  const auto error = error_of([&] { (void)ring[0].call(&Ring::ask, actors).get(); });
  expect(error.find("wait for each other for ever") != error.npos && error.find("ring-0") != error.npos, error);
  for (auto& one : ring) expect(one.call(&Ring::count).get() == 1, "an actor of a circle goes on");
}

/// nested TASKS DEPTH: tasks that wait for tasks, more than there are cores.
void nest(int tasks, int depth) {
  std::vector<paceline::Future<int>> all;
  for (int i = 0; i < tasks; ++i) all.push_back(paceline::async(nested, depth));
  for (auto& one : all) expect(one.get() == depth, "a task that waits for a task");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const auto number = [&](int i) { return argc > i ? std::atoi(argv[i]) : 0; };
  if (what == "flood")
    flood(number(2), number(3));
  else if (what == "before_ready")
    before_ready(number(2));
  else if (what == "stopped")
    stopped(number(2), number(3));
  else if (what == "busy")
    busy(number(2));
  else if (what == "large")
    large(number(2), number(3));
  else if (what == "killed")
    killed(number(2), number(3));
  else if (what == "mixed")
    mixed(number(2));
  else if (what == "callers")
    callers(number(2), number(3));
  else if (what == "nowhere")
    nowhere();
  else if (what == "node_lost")
    node_lost();
  else if (what == "temporary")
    temporary(number(2));
  else if (what == "many")
    many(number(2));
  else if (what == "server_failed")
    server_failed();
  else if (what == "circle")
    circle(number(2), number(3));
  else if (what == "idle")
    idle(number(2));
  else if (what == "nested")
    nest(number(2), number(3));
  else
    expect(false, "there is no '" + what + "'");
  return paceline::test::exit_status();
}
