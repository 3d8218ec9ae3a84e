// What a TaskError tells: an actor script whose first argument says where the tasks run; it checks its own answers.
// Exit status 0: all were right.
#include <paceline.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using paceline::ErrorKind;
using paceline::TaskError;
using paceline::test::expect;
using paceline::test::has;

using namespace std::chrono_literals;

int node = 0;  // Where what fails first runs.

int first(int x) { throw std::out_of_range("no " + std::to_string(x)); }
int second(int x) { return x; }
int third(int x, int y) { return x + y; }
int waits(int there) { return paceline::async({.node = there}, first, 7).get(); }
int waits_longer(int there) { return paceline::async(waits, there).get(); }
int wraps(int there) {
  try {
    return waits(there);
  } catch (...) {
    std::throw_with_nested(std::runtime_error("no start"));
  }
}
int bad_bytes() { throw std::runtime_error("\xff\xc3 bytes"); }
int number() { throw 42; }
struct Odd {};
int odd() { throw Odd{}; }
int words() { throw "not today"; }
int long_text() { throw std::runtime_error(std::string(std::size_t{80} << 20, 'x')); }
int dies() {
  std::cout << "last words" << std::endl;
  kill(getpid(), SIGKILL);
  std::this_thread::sleep_for(10s);
  return 0;
}

class Thrower {
 public:
  int fail(int x) {
    if (x > 0) throw std::out_of_range("no " + std::to_string(x));
    return x;
  }
  int end() { return dies(); }
};

class Caller {
 public:
  explicit Caller(paceline::Handle<Thrower> other) : other_(std::move(other)) {}
  int call(int x) { return other_.call(&Thrower::fail, x).get(); }
#ifdef PACELINE_HAS_COROUTINES
  paceline::Async<int> call_later(int x) {
    co_await paceline::sleep_for(1ms);
    co_return co_await other_.call(&Thrower::fail, x);
  }
#endif

 private:
  paceline::Handle<Thrower> other_;
};

struct Unmade {
  explicit Unmade(int x) { throw std::out_of_range("no " + std::to_string(x)); }
  int call() { return 0; }
};

/// Ends itself, and says so in a file.
class Leaver {
 public:
  explicit Leaver(std::string path) : path_(std::move(path)) {}
  ~Leaver() { std::ofstream(path_, std::ios::app) << "destroyed\n"; }
  Leaver(const Leaver&) = delete;
  Leaver& operator=(const Leaver&) = delete;

  int add(int x) { return sum_ += x; }
  int leave(int x) {
    paceline::exit();
    return sum_ += x;
  }
  int leave_throwing() {
    paceline::exit();
    throw std::out_of_range("no 7");
  }
#ifdef PACELINE_HAS_COROUTINES
  paceline::Async<int> leave_later(int x) {
    paceline::exit();
    co_await paceline::sleep_for(20ms);
    co_return sum_ += x;
  }
#endif

 private:
  const std::string path_;
  int sum_ = 0;
};

/// What `run` throws.
template <class Do>
TaskError thrown_by(Do run) {
  try {
    run();
  } catch (const TaskError& error) {
    return error;
  }
  return TaskError({ErrorKind::internal, "nothing was thrown"});
}

/// All of a chain on a line, for what is said where something is wrong.
std::string told(const TaskError& error) {
  std::string all = error.what();
  for (const auto& cause : error.causes())
    all += "\n  " + cause.what + " at " + std::to_string(cause.node) + ", " + cause.worker + ", " + cause.log + ": " +
           cause.text;
  return all;
}

/// The first cause is `first(7)`, or the like, there; `links` have failed.
void expect_first(const TaskError& error, std::size_t links, const std::string& what) {
  const bool right = error.kind() == ErrorKind::invalid && error.cause() == "std::out_of_range: no 7" &&
                     error.node() == node && error.worker().starts_with("worker ") && error.causes().size() == links &&
                     has(error.causes().back().what, what) && has(error.what(), error.cause());
  expect(right, std::to_string(links) + " links to " + what + ": " + told(error));
}

void tasks() {
  const auto one = paceline::async({.node = node}, first, 7);
  const auto plain = thrown_by([&] { (void)one.get(); });
  expect_first(plain, 1, "first(int)");
  expect(has(plain.what(), plain.worker() + " on node " + std::to_string(node)), told(plain));

  const auto last = paceline::async(third, 1, paceline::async(second, one));
  const auto chain = thrown_by([&] { (void)last.get(); });
  expect_first(chain, 3, "first(int)");
  expect(has(chain.causes()[0].what, "third(int, int)") && has(chain.causes()[0].text, "argument 2 failed") &&
             chain.causes()[0].worker.empty() && has(chain.causes()[1].what, "second(int)"),
         told(chain));

  auto longer = one;
  for (int i = 0; i < 100; ++i) longer = paceline::async(second, longer);
  const auto most = thrown_by([&] { (void)longer.get(); });
  expect_first(most, 16, "first(int)");
  expect(most.causes_left_out() == 85 && std::string(most.what()).size() < 1000, told(most));

  expect_first(thrown_by([] { (void)paceline::async(waits_longer, node).get(); }), 3, "first(int)");
  const auto nested = thrown_by([] { (void)paceline::async(wraps, node).get(); });
  expect_first(nested, 2, "first(int)");
  expect(has(nested.what(), "no start") && has(nested.causes()[0].text, "no start") &&
             has(nested.causes()[0].what, "wraps(int)"),
         told(nested));
  expect_first(thrown_by([&] { (void)paceline::get(paceline::async(second, 1), one); }), 1, "first(int)");
  expect_first(thrown_by([&] { (void)paceline::get(std::vector{one, longer}); }), 1, "first(int)");
  expect_first(thrown_by([&] { (void)one.then([](int x) { return x; }).get(); }), 1, "first(int)");
  expect_first(
      thrown_by([&] {
        (void)paceline::async(second, 7).then([](int x) { return paceline::async({.node = node}, first, x); }).get();
      }),
      1, "first(int)");

  const auto mapped = thrown_by([] { (void)paceline::map(first, std::vector{7}, {.task = {.node = node}}); });
  expect_first(mapped, 1, "first(int)");
  expect(has(mapped.what(), "element 0: std::out_of_range"), told(mapped));
  const auto indexed = thrown_by([] { paceline::parallel_for(5, 6, first, {.task = {.node = node}, .chunk = 1}); });
  expect(has(indexed.what(), "index 5: std::out_of_range: no 5") && indexed.cause() == "std::out_of_range: no 5",
         told(indexed));
}

void actors() {
  auto thrower = paceline::create<Thrower>({.name = "thrower", .node = node});
  auto caller = paceline::create<Caller>({.name = "caller"}, thrower);
  expect_first(thrown_by([&] { (void)thrower.call(&Thrower::fail, 7).get(); }), 1,
               "Thrower::fail(int) of actor 'thrower'");
  // Past the agents, too.
  for (int i = 0; i < 30; ++i) (void)thrower.call(&Thrower::fail, 0).get();
  expect_first(thrown_by([&] { (void)thrower.call(&Thrower::fail, 7).get(); }), 1,
               "Thrower::fail(int) of actor 'thrower'");
  const auto passed = thrown_by([&] { (void)caller.call(&Caller::call, 7).get(); });
  expect_first(passed, 2, "Thrower::fail(int) of actor 'thrower'");
  expect(has(passed.causes()[0].what, "Caller::call(int) of actor 'caller'") && has(passed.what(), "actor 'caller'"),
         told(passed));
  const auto failed = paceline::async({.node = node}, first, 7);
  const auto kept = thrown_by([&] { (void)thrower.call(&Thrower::fail, failed).get(); });
  expect_first(kept, 2, "first(int)");
  expect(has(kept.causes()[0].what, "Thrower::fail(int)"), told(kept));
#ifdef PACELINE_HAS_COROUTINES
  const auto later = thrown_by([&] { (void)caller.call(&Caller::call_later, 7).get(); });
  expect_first(later, 2, "Thrower::fail(int) of actor 'thrower'");
  expect(has(later.causes()[0].what, "Caller::call_later(int)"), told(later));
#endif
  auto unmade = paceline::create<Unmade>({.node = node}, 7);
  expect_first(thrown_by([&] { (void)unmade.call(&Unmade::call).get(); }), 1, "the constructor of actor");
}

/// Its process was killed, and its log is there and holds its last words.
void expect_killed(const TaskError& error, const std::string& what, std::size_t links) {
  std::ifstream file(error.log());
  const std::string log{std::istreambuf_iterator<char>(file), {}};
  expect(error.kind() == ErrorKind::disconnected && error.node() == node && error.worker().starts_with("worker ") &&
             has(error.cause(), "SIGKILL") && has(log, "last words") && has(error.what(), "last words") &&
             error.causes().size() == links && error.causes().back().what == what,
         what + ": " + told(error) + "\nlog: " + log);
}

void deaths() {
  const auto dead = paceline::async({.node = node}, dies);
  expect_killed(thrown_by([&] { (void)dead.get(); }), "", 1);
  expect_killed(thrown_by([&] { (void)paceline::async(second, dead).get(); }), "", 2);
  auto ends = paceline::create<Thrower>({.name = "ends", .node = node});
  const auto ended = ends.call(&Thrower::end);
  expect_killed(thrown_by([&] { (void)ended.get(); }), "actor 'ends'", 1);
  expect_killed(thrown_by([&] { (void)ends.call(&Thrower::fail, 0).get(); }), "actor 'ends'", 1);
  for (const int before : {0, 30}) {  // Through agents, and past them.
    auto again = paceline::create<Thrower>({.name = "again", .node = node, .restarts = 1});
    for (int i = 0; i < before; ++i) (void)again.call(&Thrower::fail, 0).get();
    const auto unknown = thrown_by([&] { (void)again.call(&Thrower::end).get(); });
    expect_killed(unknown, "actor 'again'", 1);
    expect(has(unknown.what(), "started again"), unknown.what());
    (void)again.call(&Thrower::fail, 0).get();
  }
}

void texts() {
  const auto bytes = thrown_by([] { (void)paceline::async({.node = node}, bad_bytes).get(); });
  expect(bytes.cause() == "std::runtime_error: \xef\xbf\xbd\xef\xbf\xbd bytes", told(bytes));
  using Said = std::pair<int (*)(), const char*>;
  for (const auto& one :
       {Said{number, "int"}, Said{odd, "(anonymous namespace)::Odd"}, Said{words, "char const*: not today"}}) {
    const auto any = thrown_by([&] { (void)paceline::async({.node = node}, one.first).get(); });
    expect(any.cause() == one.second, told(any));
  }
  const auto much = thrown_by([] { (void)paceline::async({.node = node}, long_text).get(); });
  expect(has(much.cause(), "std::runtime_error: xxxx") && much.cause().size() < (64 << 10) &&
             std::string(much.what()).size() < (64 << 10),
         std::to_string(much.cause().size()) + " bytes");
  expect(paceline::async({.node = node}, second, 3).get() == 3, "its worker goes on");
  const auto here = thrown_by([] { (void)paceline::Future<int>().get(); });
  expect(here.node() == -1 && here.worker().empty() && here.log().empty() && here.causes().size() == 1, told(here));
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool has_exited(const TaskError& error) {
  return error.kind() == ErrorKind::disconnected && error.cause() == "it has called paceline::exit()" &&
         has(error.what(), "'leaver' has ended: it has called paceline::exit()") && error.node() == node;
}

void exits(const std::string& path) {
  int round = 0;
  for (const int before : {0, 30}) {  // Through agents, and past them.
    const auto log = path + std::to_string(++round);
    auto leaver = paceline::create<Leaver>({.name = "leaver", .node = node, .restarts = 5, .call_retries = 5}, log);
    for (int i = 0; i < before; ++i) (void)leaver.call(&Leaver::add, 1).get();
    std::vector<paceline::Future<int>> earlier, later;
    for (int i = 0; i < 20; ++i) earlier.push_back(leaver.call(&Leaver::add, 1));
    const auto last = leaver.call(&Leaver::leave, 100);
    for (int i = 0; i < 20; ++i) later.push_back(leaver.call(&Leaver::add, 1));
    for (int i = 0; i < 20; ++i)
      expect(earlier[static_cast<std::size_t>(i)].get() == before + i + 1, "calls before it are answered");
    expect(last.get() == before + 120, "it is answered itself");
    for (const auto& one : later) {
      const auto error = thrown_by([&] { (void)one.get(); });
      expect(has_exited(error), told(error));
    }
    const auto after = thrown_by([&] { (void)leaver.call(&Leaver::add, 1).get(); });
    expect(has_exited(after), told(after));
    expect(content_of(log) == "destroyed\n", "its destructor has run: " + content_of(log));
  }
  {
    auto leaver =
        paceline::create<Leaver>({.name = "leaver", .node = node}, path + "throws");  // The name is free again.
    const auto thrown = thrown_by([&] { (void)leaver.call(&Leaver::leave_throwing).get(); });
    expect(thrown.cause() == "std::out_of_range: no 7", told(thrown));
    expect(has_exited(thrown_by([&] { (void)leaver.call(&Leaver::add, 1).get(); })), "it ends, too, if it throws");
  }
#ifdef PACELINE_HAS_COROUTINES
  {
    auto leaver = paceline::create<Leaver>({.name = "leaver", .node = node}, path + "later");
    const auto last = leaver.call(&Leaver::leave_later, 5);
    expect(leaver.call(&Leaver::add, 1).get() == 1 && last.get() == 6, "what runs meanwhile is answered");
    expect(has_exited(thrown_by([&] { (void)leaver.call(&Leaver::add, 1).get(); })), "it ends with its call");
  }
#endif
  const auto here = thrown_by([] { paceline::exit(); });
  const auto task = thrown_by([] {
    paceline::async(
        {.node = node}, +[] { paceline::exit(); })
        .get();
  });
  for (const auto& error : {here, task})
    expect(error.kind() == ErrorKind::invalid && has(error.cause(), "outside of the methods of an actor"), told(error));
}

}  // namespace

int main(int argc, char** argv) {
  node = argc > 1 ? std::stoi(argv[1]) : 0;
  if (argc > 2) {
    exits(argv[2]);
    return paceline::test::exit_status();
  }
  tasks();
  actors();
  deaths();
  texts();
  return paceline::test::exit_status();
}
