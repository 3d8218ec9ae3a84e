// The script of actors_end_to_end_test: an actor script that checks its own answers. Exit status 0: all were right.
#include <paceline.h>

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using paceline::test::error_of;
using paceline::test::expect;
using paceline::test::has;

class Counter {
 public:
  explicit Counter(int start) : n_(start) {
    if (start < 0) throw std::invalid_argument("negative start");
  }
  virtual ~Counter() = default;
  int add(int k) { return n_ += k; }
  virtual std::string name(const std::string& prefix) const { return prefix + "counter"; }
  int fail_with(std::string text) { throw std::runtime_error(text); }
  int process() const { return getpid(); }
  void crash() {
    std::signal(SIGSEGV, SIG_DFL);  // Sanitizers catch it.
    std::raise(SIGSEGV);
  }
  std::map<std::string, std::vector<double>> echo(std::map<std::string, std::vector<double>> values) { return values; }

 private:
  int n_;
};

class Relay {
 public:
  explicit Relay(paceline::Handle<Counter> counter) : counter_(counter) {}
  int twice(int k) {
    counter_.call(&Counter::add, k);
    return counter_.call(&Counter::add, k).get();
  }

 private:
  paceline::Handle<Counter> counter_;
};

/// Its calls run at a time.
class Tally {
 public:
  int add(int k) { return sum_ += k; }
  paceline::Async<int> add_later(int k) {
    co_await paceline::sleep_for(std::chrono::milliseconds(1));
    co_return add(k);
  }

 private:
  std::atomic<int> sum_{0};
};

int square(int x) { return x * x; }
double total(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

void actors() {
  auto counter = paceline::create<Counter>({.name = "counter"}, 10);
  auto relay = paceline::create<Relay>(counter);
  expect(relay.call(&Relay::twice, 5).get() == 20, "an actor calls another one");
  expect(counter.call(&Counter::name, "my ").get() == "my counter", "a virtual method, a literal as a string");
  expect(counter.call(&Counter::process).get() != getpid(), "an actor has a process of its own");
  const std::map<std::string, std::vector<double>> values{{"a", std::vector<double>(100'000, 0.5)}, {"b", {}}};
  expect(counter.call(&Counter::echo, values).get() == values, "large values come back unchanged");
  const auto thrown = error_of([&] { counter.call(&Counter::fail_with, "boom").get(); });
  expect(has(thrown, "boom") && has(thrown, "runtime_error") && has(thrown, "worker"), thrown.c_str());
  expect(counter.call(&Counter::add, 1).get() == 21, "an actor goes on after an exception");

  auto bad = paceline::create<Counter>({.name = "bad"}, -1);
  const auto constructor = error_of([&] { bad.call(&Counter::add, 1).get(); });
  expect(has(constructor, "negative start") && has(constructor, "'bad'"), constructor.c_str());

  auto many = paceline::create_many<Counter>({.name = "many", .count = 3}, 100);
  std::vector<paceline::Future<int>> sums;
  for (const auto& one : many) sums.push_back(one.call(&Counter::add, 1));
  for (const auto& sum : sums) expect(sum.get() == 101, "create_many");
}

void deaths() {
  auto victim = paceline::create<Counter>({.name = "victim"}, 0);
  victim.call(&Counter::add, 1).get();
  auto crash = victim.call(&Counter::crash);
  auto behind = victim.call(&Counter::add, 1);
  const auto text = error_of([&] { behind.get(); });
  expect(has(text, "'victim'") && has(text, "SIGSEGV"), text.c_str());
  expect(has(error_of([&] { crash.get(); }), "SIGSEGV"), "the call that crashed");
  expect(has(error_of([&] { victim.call(&Counter::add, 1).get(); }), "SIGSEGV"), "a call to a dead actor");
}

void threads() {
  auto tally = paceline::create<Tally>({.concurrency = 4, .groups = {{"others", 2}}});
  const auto others = tally.in_group("others");
  std::vector<paceline::Future<int>> calls;
  for (int i = 0; i < 25; ++i) {
    calls.push_back(tally.call(&Tally::add, 1));
    calls.push_back(tally.call(&Tally::add_later, 1));
    calls.push_back(others.call(&Tally::add, 1));
    calls.push_back(others.call(&Tally::add_later, 1));
  }
  for (const auto& call : calls) (void)call.get();
  expect(tally.call(&Tally::add, 0).get() == 100, "several threads of an actor");
}

void tasks() {
  auto a = paceline::async(square, 7);
  auto b = paceline::async(square, a);
  auto c = paceline::async(
      {.cpus = 2}, [](int x, int y) { return x + y; }, a, b);
  expect(c.get() == 2450, "futures as arguments");
  auto counter = paceline::create<Counter>(1);
  expect(paceline::async(square, counter.call(&Counter::add, 2)).get() == 9,
         "the future of a call as an argument of a task");
  const std::array<double, 3> few{1, 2, 3.5};
  expect(paceline::async(total, few).get() == 6.5, "an array where a span is read");
  expect(paceline::async(total, std::vector<double>(100'000, 0.5)).get() == 50'000, "a vector where a span is read");
  expect(paceline::async(
             total, paceline::async([] {
               return std::vector<double>{1, 2};
             })).get() == 3,
         "a future's vector where a span is read");
  auto failed = paceline::async([](int x) -> int { throw std::runtime_error("no " + std::to_string(x)); }, 3);
  expect(has(error_of([&] { paceline::async(square, failed).get(); }), "no 3"), "a failed argument");
  expect(has(error_of([] { paceline::async({.cpus = 99}, square, 1).get(); }), "cpus"), "more cpus than there are");
  std::vector<paceline::Future<int>> squares;
  for (int i = 1; i <= 200; ++i) squares.push_back(paceline::async(square, i));
  int sum = 0;
  for (const auto& one : squares) sum += one.get();
  expect(sum == 2686700, "many tasks");
  expect(has(error_of([] { paceline::async([] { std::raise(SIGKILL); }).get(); }), "SIGKILL"),
         "a task that kills its worker");
  expect(paceline::async(square, 3).get() == 9, "tasks go on after that");
}

}  // namespace

int main(int argc, char** argv) {
  expect(argc == 2 && std::string(argv[1]) == "argument", "arguments arrive");
  actors();
  deaths();
  threads();
  tasks();
  return paceline::test::exit_status();
}
