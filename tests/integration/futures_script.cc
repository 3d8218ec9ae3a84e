// Futures on real processes: an actor script whose first argument says which case; it checks its own answers. Exit
// status 0: all were right.
#include <paceline.h>

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using paceline::ErrorKind;
using paceline::Future;
using paceline::test::Clock;
using paceline::test::error_of;
using paceline::test::expect;
using paceline::test::has;
using paceline::test::since;

using namespace std::chrono_literals;

int square(int x) {
  return static_cast<int>(static_cast<unsigned>(x) * static_cast<unsigned>(x));
}  // Of large ones the lowest bits.
int nap(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  return ms;
}

/// What kind of error `run` throws; nothing: none.
template <class Do>
std::optional<ErrorKind> kind_of(Do run) {
  try {
    run();
  } catch (const paceline::TaskError& error) {
    return error.kind();
  }
  return std::nullopt;
}

class Sleeper {
 public:
  int nap(int ms) { return ::nap(ms); }
  void set_self(paceline::Handle<Sleeper> self) { self_ = self.borrowed(); }
  /// Waits for itself, among others.
  std::string wait_for_itself(bool all) {
    std::vector<Future<int>> calls;
    calls.push_back(paceline::async(square, 2));
    calls.push_back(self_.call(&Sleeper::nap, 0));
    return error_of([&] {
      if (all)
        (void)paceline::get(calls);
      else
        (void)paceline::wait(std::vector{calls[1]}).ready.at(0).get();
    });
  }

 private:
  paceline::Handle<Sleeper> self_;
};

/// timeouts: they say what was awaited, and the future stays usable, also where the result comes with the timeout.
void timeouts() {
  auto slow = paceline::async(nap, 400);
  const auto error = error_of([&] { (void)slow.get(5ms); });
  expect(has(error, "has had no result for 0.005 s") && has(error, "task "), error);
  expect(kind_of([&] { (void)paceline::get({.timeout = 1ms}, slow); }) == ErrorKind::timed_out, "a kind of its own");
  expect(slow.get(100s) == 400, "the result, later");
  expect(slow.get(0s) == 400, "one that is there needs no time");
  auto sleeper = paceline::create<Sleeper>({.name = "sleeper"});
  auto call = sleeper.call(&Sleeper::nap, 300);
  expect(has(error_of([&] { (void)call.get(1ms); }), "of actor "), "whose call it is");
  expect(call.get() == 300, "the result of a call, later");
  int late = 0;
  for (int i = 0; i < 300; ++i) {
    auto one = paceline::async(nap, i % 3);
    const auto kind = kind_of([&] { expect(one.get(std::chrono::microseconds(i * 10)) == i % 3, "a result"); });
    expect(!kind || kind == ErrorKind::timed_out, "a timeout or a result");
    late += kind ? 1 : 0;
    expect(one.get() == i % 3, "a result after a timeout");
  }
  std::printf("%d of 300 late\n", late);
}

/// many COUNT: each comes out once, whichever are ready first.
void many(int count) {
  std::vector<Future<int>> pending;
  for (int i = 0; i < count; ++i) pending.push_back(paceline::async(square, i % 1000));
  std::size_t left = pending.size();
  long long sum = 0, expected = 0;
  for (int i = 0; i < count; ++i) expected += square(i % 1000);
  for (std::size_t step = 1; !pending.empty(); step = step % 3 + 1) {
    auto [ready, others] = paceline::wait(std::move(pending), {.count = std::min(step, left)});
    expect(ready.size() == std::min(step, left) && others.size() == left - ready.size(), "as many as were asked for");
    for (auto& one : ready) sum += one.get();
    left = others.size();
    pending = std::move(others);
  }
  expect(sum == expected, "each result once");
}

/// looks: wait with a timeout takes nothing away.
void looks() {
  std::vector<Future<int>> all;
  for (const int ms : {2000, 0, 2000, 0}) all.push_back(paceline::async({.cpus = 0}, nap, ms));
  const auto some = paceline::wait(all, {.count = 2});
  expect(some.ready[0].get() == 0 && some.ready[1].get() == 0, "the short ones");
  expect(paceline::wait(all, {.count = 4, .timeout = 10ms}).ready.size() == 2, "two after a timeout");
  expect(paceline::wait(all, {.count = 4}).ready.size() == 4, "all in the end");
  const auto [a, b] = paceline::get(all[1], paceline::async(
                                                +[](int x) { return std::to_string(x); }, 5));
  expect(a == 0 && b == "5", "of several types");
}

int sum_of(const std::vector<int>& values) {
  int sum = 0;
  for (const int value : values) sum += value;
  return sum;
}

/// One that waits for its own tasks in every way there is.
int nested(int depth) {
  if (depth == 0) return nap(5) / 5;
  std::vector<Future<int>> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(paceline::async(nested, depth - 1));
  int sum = 0;
  auto [ready, pending] = paceline::wait(tasks);
  sum += ready.at(0).get();
  while (paceline::wait(pending, {.count = 2, .timeout = 20ms}).ready.size() < 2) {
  }
  (void)paceline::get(tasks);
  for (auto& one : pending) {
    for (bool there = false; !there;) {
      there = !kind_of([&] { sum += one.get(10ms); });
    }
  }
  return sum;
}

/// nested TASKS: more of them at once than there are cpus, so that all are held by tasks that wait.
void nested_tasks(int tasks) {
  std::vector<Future<int>> all;
  for (int i = 0; i < tasks; ++i) all.push_back(paceline::async(nested, 2));
  expect(sum_of(paceline::get(all)) == 9 * tasks, "tasks that wait for tasks");
}

/// circles: one that waits for itself among others fails.
void circles() {
  auto sleeper = paceline::create<Sleeper>({.name = "sleeper"});
  sleeper.call(&Sleeper::set_self, sleeper).get();
  for (const bool all : {true, false}) {
    const auto error = sleeper.call(&Sleeper::wait_for_itself, all).get();
    expect(has(error, "would wait for each other for ever"), error);
  }
}

/// chains: functions of results, here.
void chains() {
  auto text = paceline::async(square, 12).then([](int x) { return std::to_string(x); });
  expect(text.get() == "144", "a function of a result");
  auto doubled = paceline::async(
      +[](const std::string& s) { return s + s; }, text);
  expect(doubled.get() == "144144", "what then() gives is an argument");
  auto nested = paceline::async(square, 2).then([](int x) { return paceline::async(square, x); });
  expect(nested.then([](int x) { return x + 1; }).get() == 17, "a future that is given stands for its result");
  auto waits = paceline::async(nap, 1).then([](int) {
    return paceline::async(nap, 20).then([](int x) { return x + 1; }).get();  // Another one runs meanwhile.
  });
  expect(waits.get() == 21, "a function that waits for another one");
  int ran = 0;
  auto broken = paceline::async(
                    +[](int x) -> int { throw std::runtime_error("the first cause " + std::to_string(x)); }, 7)
                    .then([&](int x) { return x + ++ran; })
                    .then([&](int x) { return x + ++ran; });
  const auto error = error_of([&] { (void)broken.get(); });
  expect(has(error, "the first cause 7") && ran == 0, error);
  auto long_one = paceline::async(square, 1);
  for (int i = 0; i < 2000; ++i) long_one = long_one.then([](int x) { return x + 1; });
  expect(long_one.get() == 2001, "a long chain");
  std::vector<Future<int>> many;
  for (int i = 0; i < 2000; ++i) many.push_back(paceline::async(square, i).then([i](int x) { return x - i * i; }));
  for (const int one : paceline::get(many)) expect(one == 0, "one of many");
}

/// In a task: it waits for a function here that waits for a task.
int waits_for_then(int depth) {
  if (depth == 0) return 1;
  return paceline::async(waits_for_then, depth - 1)
      .then([](int x) { return x + paceline::async(square, 1).get(); })
      .get();
}

/// left: main returns while functions wait to be run, and while one runs.
void left() {
  for (int i = 0; i < 100; ++i) (void)paceline::async(nap, 3'000).then([](int x) { return x; });
  std::atomic<bool> runs{false};
  (void)paceline::async({.cpus = 0}, square, 1).then([&runs](int) {
    runs = true;
    return paceline::async({.cpus = 0}, nap, 60'000).get();
  });
  while (!runs) nap(1);
}

class Numbers {
 public:
  int half(int x) {
    if (x % 2 != 0) throw std::invalid_argument(std::to_string(x) + " is odd");
    return x / 2;
  }
};

int half(int x) { return Numbers().half(x); }

/// An endless range of even numbers, but for the 501st, which counts how many were asked for.
struct Evens {
  struct Iterator {
    int* asked;
    int i = 0;
    int operator*() const { return ++*asked, 2 * i + (i == 500 ? 1 : 0); }
    Iterator& operator++() { return ++i, *this; }
    bool operator!=(const Iterator&) const { return true; }
  };
  Iterator begin() const { return {asked}; }
  Iterator end() const { return {asked}; }
  int* asked;
};

/// map: results in order, whatever order they come in; few under way; the first error ends it.
void map() {
  std::vector<int> numbers(3000);
  for (int i = 0; i < 3000; ++i) numbers[static_cast<std::size_t>(i)] = i;
  const auto squares = paceline::map(square, numbers, {.in_flight = 100});
  for (int i = 0; i < 3000; ++i) expect(squares.at(static_cast<std::size_t>(i)) == i * i, "in order");
  const auto naps = paceline::map(nap, std::vector{30, 1, 20, 2, 0});
  expect(naps == std::vector{30, 1, 20, 2, 0}, "in order, whichever ends first");
  expect(paceline::map(square, std::vector<int>()).empty(), "of nothing");
  int asked = 0;
  const Evens evens{&asked};
  const auto begin = Clock::now();
  const auto error = error_of([&] { (void)paceline::map(half, evens, {.in_flight = 20}); });
  expect(has(error, "element 500: std::invalid_argument: 1001 is odd"), error);
  // The failing one may be with a worker that is slow to answer while others answer more.
  expect(asked < 100'000 && since(begin) < 50, "an endless range ends with the first error");
  expect(kind_of([&] { (void)paceline::map(half, numbers, {.in_flight = 0}); }) == ErrorKind::invalid, "none");
}

struct Path {
  char text[200];
};
/// counts PATH: parallel_for gives each index once.
void counts(const std::string& path) {
  Path to{};
  std::snprintf(to.text, sizeof to.text, "%s", path.c_str());
  const auto note = [to](int i) {
    FILE* const file = std::fopen(to.text, "a");
    std::fprintf(file, "%d\n", i);
    std::fclose(file);
  };
  for (const std::size_t chunk : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{5000}}) {
    std::remove(path.c_str());
    paceline::parallel_for(-100, 900, note, {.chunk = chunk, .in_flight = 8});
    std::multiset<int> seen;
    std::ifstream file(path);
    for (int i = 0; file >> i;) seen.insert(i);
    expect(seen.size() == 1000 && *seen.begin() == -100 && *seen.rbegin() == 899 &&
               std::set<int>(seen.begin(), seen.end()).size() == 1000,
           "each index once, in chunks of " + std::to_string(chunk));
  }
  const auto error = error_of(
      [] { paceline::parallel_for(0, 1'000'000, +[](int i) { half(2 * i + (i == 777 ? 1 : 0)); }, {.chunk = 10}); });
  expect(has(error, "index 777: std::invalid_argument: 1555 is odd"), error);
  paceline::parallel_for(
      5, 5, +[](int) {});
}

/// Says in a file that it has begun, once a run.
int counted(const std::string& path, int ms) {
  FILE* const file = std::fopen(path.c_str(), "a");
  std::fputc('x', file);
  std::fclose(file);
  return nap(ms);
}
std::size_t runs_of(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 ? static_cast<std::size_t>(found.st_size) : 0;
}
void wait_for_run(const std::string& path, std::size_t runs = 1) {
  const auto begin = Clock::now();
  while (runs_of(path) < runs && since(begin) < 60) nap(1);
  expect(runs_of(path) >= runs, "it has begun");
}

using paceline::Cancelled;

/// Runs until it is told to stop.
int until_cancelled(const std::string& path) {
  counted(path, 0);
  while (!paceline::cancelled()) nap(1);
  std::atomic<bool> called{false};
  const std::stop_callback at_once(paceline::stop_token(), [&] { called = true; });
  if (called) counted(path, 0);
  return 1;
}

template <class T>
void expect_cancelled(const Future<T>& future, const std::string& when) {
  std::string error;
  try {
    (void)future.get(60s);
  } catch (const paceline::TaskError& thrown) {
    error = thrown.kind() == ErrorKind::cancelled ? thrown.what() : std::string("another kind: ") + thrown.what();
  }
  expect(has(error, "was cancelled" + when), "'" + error + "', not: was cancelled" + when);
  expect(paceline::cancel(future) == Cancelled::already, "a second time");
}

/// cancel PATH NODE CPUS: what waits, what runs, what is over.
void cancel(const std::string& path, int node, int cpus) {
  const auto options = paceline::TaskOptions{.retries = 3, .node = node};
  const auto file = [&](const char* name) { return path + name; };
  for (int i = 0; i < 100; ++i) (void)paceline::async(options, square, i).get();  // They are short, it seems.
  auto done = paceline::async(options, square, 3);
  done.get();
  expect(paceline::cancel(done) == Cancelled::done && done.get() == 9, "one that is over stays");

  std::vector<Future<int>> running, waiting;
  for (int i = 0; i < cpus; ++i) running.push_back(paceline::async(options, until_cancelled, file("running")));
  wait_for_run(file("running"), static_cast<std::size_t>(cpus));
  for (int i = 0; i < 200; ++i) waiting.push_back(paceline::async(options, counted, file("waiting"), 0));
  auto deferred = paceline::async(options, counted, file("waiting"), running[0]);
  auto after = running[0].then([](int x) { return x; });
  auto beside = running[0].then([](int x) { return x; });
  for (auto& one : waiting) {
    const auto word = paceline::cancel(one, {.force = true});
    expect(word == Cancelled::ended || word == Cancelled::told, "it waits");
  }
  for (auto& one : waiting) expect_cancelled(one, "");
  expect(paceline::cancel(deferred) == Cancelled::ended, "its argument is not there yet");
  expect_cancelled(deferred, " before it began");
  expect(paceline::cancel(beside) == Cancelled::ended, "a function");
  expect_cancelled(beside, " before it began");
  for (auto& one : running) {
    expect(!one.ready(), "what runs goes on");
    expect(paceline::cancel(one) == Cancelled::told, "it runs");
  }
  for (auto& one : running) expect_cancelled(one, " while it ran (worker ");
  expect(has(error_of([&] { (void)after.get(); }), "was cancelled while it ran"), "an error that passes on");
  expect(runs_of(file("running")) == 2 * static_cast<std::size_t>(cpus), "told once, and not run again");
  expect(runs_of(file("waiting")) == 0, "what waited has not run");

  auto forced = paceline::async(options, counted, file("forced"), 600'000);
  auto others = std::vector<Future<int>>();
  for (int i = 0; i < 200; ++i) others.push_back(paceline::async(options, square, i));
  wait_for_run(file("forced"));
  expect(paceline::cancel(forced, {.force = true}) == Cancelled::told, "by force");
  expect_cancelled(forced, "");
  for (int i = 0; i < 200; ++i) expect(others[static_cast<std::size_t>(i)].get() == i * i, "those beside it");
  expect(runs_of(file("forced")) == 1, "it is not run again");
  expect(kind_of([] { (void)paceline::cancel(Future<int>()); }) == ErrorKind::invalid, "an empty future");
}

class Busy {
 public:
  explicit Busy(int ms) { ::nap(ms); }
  int run(const std::string& path) { return until_cancelled(path); }
  paceline::Async<int> sleep_until_cancelled(const std::string& path) {
    co_await paceline::async({.cpus = 0}, counted, path, 0);
    while (!paceline::cancelled()) co_await paceline::sleep_for(1ms);
    co_return 1;
  }
  int count(const std::string& path) { return counted(path, 0); }
  int nothing() { return 0; }
  /// Its thread takes in what comes all the time.
  int ask_until_cancelled(const std::string& path, const paceline::Handle<Busy>& other) {
    (void)counted(path, 0);
    while (!paceline::cancelled()) (void)other.call(&Busy::nothing).get();
    return 1;
  }
};

/// Of an actor that calls others again and again, after many calls of its own.
void cancel_who_calls(const std::string& path, int node) {
  auto busy = paceline::create<Busy>({.node = node}, 0);
  auto other = paceline::create<Busy>({.node = node}, 0);
  for (int i = 0; i < 500; ++i) (void)busy.call(&Busy::nothing).get();
  auto asking = busy.call(&Busy::ask_until_cancelled, path, other);
  while (runs_of(path) < 1) nap(1);
  nap(100);
  const auto begin = Clock::now();
  (void)paceline::cancel(asking);
  expect_cancelled(asking, " while it ran");
  expect(since(begin) < 5, std::to_string(since(begin)) + " s until it heard of it");
}

/// cancel_calls PATH NODE: of an actor that goes on.
void cancel_calls(const std::string& path, int node) {
  cancel_who_calls(path + "asks", node);
  auto busy = paceline::create<Busy>({.node = node}, 300);
  auto early = busy.call(&Busy::count, path + "early");
  expect(paceline::cancel(early) == Cancelled::told, "the actor is not there yet");
  expect_cancelled(early, " before it began");
  for (const int before : {0, 50}) {  // Through the agent, and past it.
    for (int i = 0; i < before; ++i) (void)busy.call(&Busy::count, path + "before").get();
    const std::string file = path + std::to_string(before);
    auto running = busy.call(&Busy::run, file);
    auto behind = busy.call(&Busy::count, path + "behind");
    auto kept = behind;
    for (int i = 0; i < 1100; ++i) kept = busy.call(&Busy::count, path + "others");
    wait_for_run(file);
    expect(paceline::cancel(behind) == Cancelled::told, "it waits in the actor");
    expect_cancelled(behind, " before it began");
    expect(paceline::cancel(kept) == Cancelled::ended, "it waits here");
    expect_cancelled(kept, " before it began");
    const auto error = error_of([&] { (void)paceline::cancel(running, {.force = true}); });
    expect(has(error, "cannot be cancelled by force"), error);
    expect(paceline::cancel(running) == Cancelled::told, "it runs");
    expect_cancelled(running, " while it ran");
    expect(busy.call(&Busy::count, path + "last").get() == 0, "the actor goes on");
  }
  auto one = busy.call(&Busy::sleep_until_cancelled, path + "coroutine");
  auto other = busy.call(&Busy::sleep_until_cancelled, path + "coroutine");
  wait_for_run(path + "coroutine", 2);
  expect(paceline::cancel(other) == Cancelled::told, "a coroutine");
  expect_cancelled(other, " while it ran");
  expect(!one.wait_for(20ms), "the other one goes on");
  expect(paceline::cancel(one) == Cancelled::told, "this one, too");
  expect_cancelled(one, " while it ran");
  expect(runs_of(path + "early") == 0 && runs_of(path + "behind") == 0, "what was cancelled has not run");
  expect(runs_of(path + "others") == 2 * 1099, "all else has");
}

/// map_ends PATH: the first error of a map cancels what it has asked for.
void map_ends(const std::string& path) {
  std::vector<std::string> files(300, path);
  files.front() = "";
  const auto run = +[](const std::string& file) {
    if (file.empty()) throw std::runtime_error("the first");
    return counted(file, 20);
  };
  const auto error = error_of([&] { (void)paceline::map(run, files, {.in_flight = 300}); });
  expect(has(error, "element 0: std::runtime_error: the first"), error);
  (void)paceline::async(square, 1).get();
  expect(runs_of(path) < 100, std::to_string(runs_of(path)) + " of 299 have begun");
}

/// storm SECONDS: each future ends, with its result or as cancelled, whatever threads cancel.
void storm(int seconds) {
  const auto begin = Clock::now();
  std::size_t cancelled = 0, over = 0;
  for (unsigned round = 0; since(begin) < seconds; ++round) {
    std::vector<Future<int>> all;
    std::mutex mutex;
    std::atomic<bool> ended{false};
    std::thread cancels([&] {
      std::mt19937 random(round);
      while (!ended) {
        Future<int> one;
        {
          std::lock_guard lock(mutex);
          if (all.empty()) continue;
          one = all[random() % all.size()];
        }
        (void)paceline::cancel(one, {.force = random() % 50 == 0});
        if (random() % 3 == 0) std::this_thread::sleep_for(100us);
      }
    });
    for (int i = 0; i < 1000; ++i) {
      auto one = paceline::async({.retries = i % 2}, square, i);
      if (i % 5 == 0) one = paceline::async(square, one);
      std::lock_guard lock(mutex);
      all.push_back(one);
    }
    for (int i = 0; i < 1000; ++i) {
      const int expected = i % 5 == 0 ? square(square(i)) : square(i);
      try {
        expect(all[static_cast<std::size_t>(i)].get(60s) == expected, "a result");
        ++over;
      } catch (const paceline::TaskError& error) {
        expect(error.kind() == ErrorKind::cancelled, error.what());
        ++cancelled;
      }
    }
    ended = true;
    cancels.join();
  }
  std::printf("%zu cancelled, %zu not\n", cancelled, over);
}

/// speed: how long it takes to wait for 1,000, for people.
void speed() {
  std::vector<Future<int>> all;
  for (int i = 0; i < 1000; ++i) all.push_back(paceline::async(square, 1));
  (void)paceline::get(all);
  auto begin = Clock::now();
  for (int i = 0; i < 100; ++i) (void)paceline::wait(all, {.count = 1000});
  std::printf("wait for 1000 that are ready: %.1f us\n", since(begin) * 1e4);
  begin = Clock::now();
  for (int round = 0; round < 20; ++round) {
    std::vector<Future<int>> pending;
    for (int i = 0; i < 1000; ++i) pending.push_back(paceline::async(square, 1));
    while (!pending.empty()) pending = std::move(paceline::wait(std::move(pending)).pending);
  }
  std::printf("1000 tasks, 1000 waits for one: %.2f ms\n", since(begin) * 1000 / 20);
  begin = Clock::now();
  for (int round = 0; round < 20; ++round) {
    std::vector<Future<int>> pending;
    for (int i = 0; i < 1000; ++i) pending.push_back(paceline::async(square, 1));
    (void)paceline::get(pending);
  }
  std::printf("1000 tasks, get of all: %.2f ms\n", since(begin) * 1000 / 20);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const auto number = [&](int i) { return argc > i ? std::atoi(argv[i]) : 0; };
  if (what == "timeouts")
    timeouts();
  else if (what == "many")
    many(number(2));
  else if (what == "looks")
    looks();
  else if (what == "nested")
    nested_tasks(number(2));
  else if (what == "circles")
    circles();
  else if (what == "chains")
    chains();
  else if (what == "then_in_tasks")
    expect(paceline::async(waits_for_then, number(2)).get() == number(2) + 1, "tasks that wait for then()");
  else if (what == "left")
    left();
  else if (what == "map")
    map();
  else if (what == "counts")
    counts(argv[2]);
  else if (what == "cancel")
    cancel(argv[2], number(3), number(4));
  else if (what == "cancel_calls")
    cancel_calls(argv[2], number(3));
  else if (what == "map_ends")
    map_ends(argv[2]);
  else if (what == "storm")
    storm(number(2));
  else if (what == "speed")
    speed();
  else
    expect(false, "no such case: " + what);
  return paceline::test::exit_status();
}
