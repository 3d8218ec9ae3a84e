// What users' code does that nobody should, and what is left behind: an actor script whose first argument says which,
// and which checks its own answers. Exit status 0: all were right.
#include <paceline.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using namespace std::chrono_literals;
using paceline::test::error_of;
using paceline::test::expect;
using paceline::test::has;

int twice(int x) { return 2 * x; }

/// How a child of this process's ends that does this: 0, or what it says by _exit.
template <class Do>
int status_of_child(Do in_child) {
  const pid_t child = fork();
  if (child == 0) _exit(in_child());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// 0: it is told that it is a copy.
int is_refused(const std::string& error) { return has(error, "is a copy that fork() made") ? 0 : 1; }

class Forks {
 public:
  int process() const { return getpid(); }
  /// A child that does nothing of ours, and one that tries.
  int plain() const {
    return status_of_child([] { return 0; });
  }
  int calls() const {
    return status_of_child([] { return is_refused(error_of([] { (void)paceline::async(twice, 1).get(); })); });
  }
  /// A child that is still there when this process has ended.
  int leaves() const {
    const pid_t child = fork();
    if (child == 0) {
      std::this_thread::sleep_for(60s);
      _exit(0);
    }
    return child;
  }
};

void forks() {
  auto actor = paceline::create<Forks>();
  for (int i = 0; i < 5; ++i) {
    expect(actor.call(&Forks::plain).get() == 0, "a child that does nothing");
    expect(actor.call(&Forks::calls).get() == 0, "a child that calls");
  }
  for (int i = 0; i < 200; ++i) expect(paceline::async(twice, i).get() == 2 * i, "a task beside it");
  const auto late = paceline::async([] {
    std::this_thread::sleep_for(300ms);
    return 1;
  });
  expect(status_of_child([&] { return is_refused(error_of([&] { (void)late.get(); })); }) == 0,
         "a child of main that waits");
  expect(status_of_child([&] {
           return is_refused(error_of([&] { (void)paceline::wait(std::vector{late, late}, {.count = 1}); }));
         }) == 0,
         "a child of main that waits for one of two");
#ifndef __SANITIZE_ADDRESS__  // Which takes what its parent's threads have for lost.
  const pid_t returns = fork();
  if (returns == 0) std::exit(7);  // As from main: nothing is closed that is its parent's.
  int status = 0;
  waitpid(returns, &status, 0);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 7, "a child that leaves main");
#endif
  expect(late.get() == 1, "the parent's result");

  const int left = actor.call(&Forks::leaves).get();
  const int process = actor.call(&Forks::process).get();
  const auto begin = paceline::test::Clock::now();
  kill(process, SIGKILL);
  expect(has(error_of([&] { (void)actor.call(&Forks::plain).get(); }), "SIGKILL"), "its parent was killed");
  expect(paceline::test::since(begin) < 10, "a child does not stand for its parent");
  kill(left, SIGKILL);
}

class Throws {
 public:
  ~Throws() noexcept(false) {
    if (throws_) throw std::runtime_error("no end");
  }
  void leave() {
    throws_ = true;
    paceline::exit();
  }
  int one() { return 1; }

 private:
  bool throws_ = false;
};

struct ThrowsAtItsEnd {
  ~ThrowsAtItsEnd() noexcept(false) { throw std::runtime_error("not at the end either"); }
};
int throws_at_its_end() {
  ThrowsAtItsEnd here;
  return 1;
}
int throws_twice() {
  ThrowsAtItsEnd here;
  throw std::runtime_error("first");
}

void destructors() {
  auto actor = paceline::create<Throws>({.restarts = -1});
  expect(actor.call(&Throws::one).get() == 1, "an answer");
  actor.call(&Throws::leave).get();
  const auto gone = error_of([&] { (void)actor.call(&Throws::one).get(); });
  expect(has(gone, "has called paceline::exit(), and did not come through its destructor"),
         "of one whose destructor throws: " + gone);
  { auto dropped = paceline::create<Throws>(); }
  expect(has(error_of([] { (void)paceline::async(throws_at_its_end).get(); }), "not at the end either"),
         "of a task's local");
  expect(has(error_of([] { (void)paceline::async(throws_twice).get(); }), "SIGABRT"), "two at a time end the process");
  expect(paceline::async(twice, 2).get() == 4, "a task after these");
}

/// Arguments and results beyond what can go by value, by far.
void large() {
  const auto size = [](const std::vector<char>& bytes) { return bytes.size(); };
  const std::vector<char> two_gigabytes(std::size_t{9} << 28);
  const auto error = error_of([&] { (void)paceline::async(size, two_gigabytes).get(); });
  expect(has(error, "2304 MiB") && has(error, "can go by value"), "an argument: " + error);
  const auto result =
      error_of([] { (void)paceline::async([] { return std::vector<char>(std::size_t{9} << 28); }).get(); });
  expect(has(result, "2304 MiB") && has(result, "by value"), "a result: " + result);
  expect(paceline::async(twice, 2).get() == 4, "a task after these");
}

class Slow {
 public:
  int sleep(int ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    return ms;
  }
  paceline::Async<int> wait(paceline::Queue<int> queue) { co_return (co_await queue.get_async()).value_or(0); }
  paceline::Generator<int> endless() {
    for (int i = 0;; ++i) co_yield i;
  }
};

paceline::Generator<int> endless() {
  for (int i = 0;; ++i) co_yield i;
}

/// main returns, and nothing of all this is over.
void outstanding() {
  static std::vector<paceline::Future<int>> futures;
  static auto actor = paceline::create<Slow>();
  static auto named = paceline::create<Slow>({.name = "slow", .restarts = 3, .call_retries = -1});
  static auto queue = paceline::make_queue<int>();
  for (int i = 0; i < 50; ++i) futures.push_back(actor.call(&Slow::sleep, 100'000));
  for (int i = 0; i < 50; ++i) futures.push_back(named.call(&Slow::sleep, 100'000));
  for (int i = 0; i < 50; ++i)
    futures.push_back(paceline::async([] {
      std::this_thread::sleep_for(100s);
      return 1;
    }));
  static auto waits = paceline::create<Slow>();
  futures.push_back(waits.call(&Slow::wait, queue));
  static auto got = queue.get_async();
  static auto stream = paceline::async(endless);
  static auto other = waits.call(&Slow::endless);
  static auto then = futures[0].then([](int ms) { return ms + 1; });
  static auto depends = paceline::async(twice, futures[3]);
  static auto late = paceline::async({.timeout = 50s}, twice, futures[4]);
  static auto reader = std::thread([] {
    try {
      for (const int value : stream)
        if (value < 0) return;
    } catch (const paceline::TaskError&) {
    }
  });
  reader.detach();
  expect(stream.valid() && !got.ready() && !then.ready() && !depends.ready() && !late.ready(), "nothing is over");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "forks")
    forks();
  else if (what == "destructors")
    destructors();
  else if (what == "large")
    large();
  else if (what == "outstanding")
    outstanding();
  else
    expect(false, "there is no '" + what + "'");
  return paceline::test::exit_status();
}
