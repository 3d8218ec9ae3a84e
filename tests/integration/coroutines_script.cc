// Coroutine methods: an actor script whose first argument says what happens; it checks its own answers. Exit status 0:
// all were right.
#include <paceline.h>

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using namespace std::chrono_literals;
using paceline::Async;
using paceline::Future;
using paceline::Handle;
using paceline::test::error_of;
using paceline::test::expect;
using paceline::test::has;

class Counter {
 public:
  explicit Counter(int start) : n_(start) {}
  int add(int k) { return n_ += k; }
  int fail() const { throw std::out_of_range("too far"); }
  int end() const { _exit(3); }

 private:
  int n_;
};

class Relay {
 public:
  explicit Relay(Handle<Counter> counter) : counter_(counter) {}
  Async<int> twice(int k) {
    co_await counter_.call(&Counter::add, k);
    co_return co_await counter_.call(&Counter::add, k);
  }
  Async<int> through(int k) { co_return co_await twice(k) + 1; }
  Async<void> nothing(int k) { co_await counter_.call(&Counter::add, k); }
  Async<int> fail() { co_return co_await counter_.call(&Counter::fail); }
  Async<std::string> caught() {
    try {
      co_await counter_.call(&Counter::end);
    } catch (const paceline::TaskError& error) {
      co_return error.what();
    }
    co_return "";
  }
  int plain(int k) const { return k; }
  /// After a wait: what lay in the arguments is still there.
  Async<float> arguments(const std::string& text, std::vector<int> numbers, std::span<const float> block) {
    co_await counter_.call(&Counter::add, 0);
    co_return static_cast<float>(text.size()) + static_cast<float>(std::accumulate(numbers.begin(), numbers.end(), 0)) +
        std::accumulate(block.begin(), block.end(), 0.0F);
  }
  Async<int> of_itself(Handle<Relay> self, int depth) {
    if (depth == 0) co_return plain(7);
    co_return co_await self.call(&Relay::of_itself, self, depth - 1);
  }
  Async<int> sum_of(int count) {
    std::vector<Future<int>> all;
    for (int i = 0; i < count; ++i) all.push_back(counter_.call(&Counter::add, 1));
    int sum = 0;
    for (const auto& one : all) sum += co_await one > 0;
    co_return sum;
  }
  Async<int> tasks(int count) {
    std::vector<Future<int>> all;
    for (int i = 0; i < count; ++i) all.push_back(paceline::async([](int k) { return k; }, i));
    int sum = 0;
    for (const auto& one : all) sum += co_await one;
    co_return sum;
  }

 private:
  Handle<Counter> counter_;
};

/// Opens when it is told to, and calls wait for that.
class Gate {
 public:
  Async<int> pass(int number) {
    ++waiting_;
    while (!open_) co_await paceline::sleep_for(1ms);
    --waiting_;
    co_return number;
  }
  int waiting() const { return waiting_; }
  std::size_t size(const std::string& text) const { return text.size(); }
  void open() { open_ = true; }
  int process() const { return getpid(); }

 private:
  int waiting_ = 0;
  bool open_ = false;
};

void relay(int nodes) {
  auto counter = paceline::create<Counter>({.node = nodes - 1}, 10);
  auto relay = paceline::create<Relay>(counter);
  expect(relay.call(&Relay::twice, 5).get() == 20, "a coroutine that calls another actor");
  expect(relay.call(&Relay::through, 1).get() == 23, "a coroutine that awaits another");
  relay.call(&Relay::nothing, 1).get();
  const auto error = error_of([&] { (void)relay.call(&Relay::fail).get(); });
  expect(has(error, "too far"), "what was thrown to a coroutine: " + error);
  const std::vector<float> block(1000, 0.5F);
  expect(relay.call(&Relay::arguments, "four", std::vector{1, 2, 3}, block).get() == 510, "arguments after a wait");
  expect(relay.call(&Relay::of_itself, relay.borrowed(), 20).get() == 7, "an actor that awaits itself");
  expect(relay.call(&Relay::sum_of, 10'000).get() == 10'000, "one that awaits much");
  expect(relay.call(&Relay::tasks, 100).get() == 4950, "tasks of a coroutine");
  const auto caught = relay.call(&Relay::caught).get();
  expect(has(caught, "is dead") && has(caught, "exit status 3"), "the death of what is awaited: " + caught);
}

/// overlap COUNT: as many calls wait at one time, and others run meanwhile.
void overlap(int count) {
  auto gate = paceline::create<Gate>();
  std::vector<Future<int>> passes;
  for (int i = 0; i < count; ++i) passes.push_back(gate.call(&Gate::pass, i));
  expect(gate.call(&Gate::waiting).get() == count, "calls begin in order, and wait");
  gate.call(&Gate::open).get();
  for (int i = 0; i < count; ++i) expect(passes[static_cast<std::size_t>(i)].get() == i, "one that waited");
  expect(gate.call(&Gate::waiting).get() == 0, "none waits any more");
}

/// Calls go past the agent after a while, and large ones never: none waits for one that waits.
void turns() {
  auto gate = paceline::create<Gate>();
  const auto passes = gate.call(&Gate::pass, 1);
  for (int i = 0; i < 100; ++i) expect(gate.call(&Gate::waiting).get() == 1, "one waits, and others do not");
  const auto again = gate.call(&Gate::pass, 2);
  for (const std::size_t size : {100'000U, 10U, 100'000U})
    expect(gate.call(&Gate::size, std::string(size, 'x')).get() == size, "a text of another size");
  expect(gate.call(&Gate::waiting).get() == 2, "two wait");
  gate.call(&Gate::open).get();
  expect(passes.get() == 1 && again.get() == 2, "they pass");
}

/// flood COUNT: calls that wait for one call each.
void flood(int count) {
  auto counter = paceline::create<Counter>(0);
  auto relay = paceline::create<Relay>(counter);
  std::vector<Future<void>> calls;
  for (int i = 0; i < count; ++i) calls.push_back(relay.call(&Relay::nothing, 1));
  for (const auto& call : calls) call.get();
  expect(counter.call(&Counter::add, 0).get() == count, "each has run once");
}

/// killed COUNT: all that wait in an actor that is killed end, and say so.
void killed(int count) {
  auto gate = paceline::create<Gate>();
  std::vector<Future<int>> passes;
  for (int i = 0; i < count; ++i) passes.push_back(gate.call(&Gate::pass, i));
  kill(gate.call(&Gate::process).get(), SIGKILL);
  for (const auto& pass : passes) {
    const auto error = error_of([&] { (void)pass.get(); });
    expect(has(error, "is dead"), "a call that waited in a killed actor: " + error);
  }
}

Async<int> later(int k) {
  co_await paceline::sleep_for(1ms);
  co_return co_await paceline::async([](int x) { return x + 1; }, k);
}

/// Where nothing else could run: `co_await` blocks.
void elsewhere() {
  expect(later(1).get() == 2, "a coroutine in main");
  std::vector<Future<int>> tasks;
  for (int i = 0; i < 20; ++i) tasks.push_back(paceline::async(later, i));
  for (int i = 0; i < 20; ++i) expect(tasks[static_cast<std::size_t>(i)].get() == i + 1, "a task that is a coroutine");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  if (what == "relay")
    relay(number);
  else if (what == "overlap")
    overlap(number);
  else if (what == "turns")
    turns();
  else if (what == "flood")
    flood(number);
  else if (what == "killed")
    killed(number);
  else if (what == "elsewhere")
    elsewhere();
  else
    expect(false, "no such case: " + what);
  return paceline::test::exit_status();
}
