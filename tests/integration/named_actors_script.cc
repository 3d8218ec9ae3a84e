// Actors that have names: an actor script whose first argument says which, and which checks its own answers. Exit
// status 0: all were right.
#include <paceline.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using paceline::Handle;
using paceline::Lifetime;
using paceline::test::error_of;
using paceline::test::expect;

class Counter {
 public:
  /// A line of the file, if there is one, says that it was constructed.
  explicit Counter(const std::string& file = {}) {
    if (!file.empty()) std::ofstream(file, std::ios::app) << "one\n";
  }
  int add(int k) { return n_ += k; }
  int process() const { return getpid(); }
  int sleep(int seconds) const {
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    return 0;
  }

 private:
  int n_ = 0;
};

class Slow {
 public:
  Slow() { std::this_thread::sleep_for(std::chrono::seconds(60)); }
  int never() const { return 0; }
};

class Thrower {
 public:
  Thrower() { throw std::runtime_error("not today"); }
  int never() const { return 0; }
};

int square(int x) { return x * x; }

/// Owns an actor, and uses tasks.
class Parent {
 public:
  int ask() { return child_.call(&Counter::add, 1).get() + paceline::async(square, 10).get(); }
  int child() { return child_.call(&Counter::process).get(); }

 private:
  Handle<Counter> child_ = paceline::create<Counter>({.name = "child"});
};

class Finder {
 public:
  int add(const std::string& name, int k) { return paceline::get_actor<Counter>(name).call(&Counter::add, k).get(); }
};

void expect_error(const std::string& error, const std::string& part) {
  expect(error.find(part) != error.npos, "not '" + part + "' but: " + error);
}

template <class Do>
paceline::ErrorKind kind_of(Do what) {
  try {
    what();
  } catch (const paceline::TaskError& error) {
    return error.kind();
  }
  return paceline::ErrorKind::internal;
}

/// On every node in turn.
Handle<Counter> create(const std::string& name, bool get_if_exists = false) {
  return paceline::create<Counter>({.name = name, .get_if_exists = get_if_exists});
}

void names() {
  auto counter = create("counter");
  expect(counter.call(&Counter::add, 1).get() == 1, "it counts");
  expect(paceline::get_actor<Counter>("counter").call(&Counter::add, 1).get() == 2, "found, it is another");
  expect(paceline::create<Finder>().call(&Finder::add, "counter", 1).get() == 3, "found by a worker, it is another");
  expect(create("counter", true).call(&Counter::add, 1).get() == 4, "get_if_exists gives another");
  expect(counter.call(&Counter::add, 1).get() == 5, "a handle that was found has ended it");
  const auto id = create("counter", true).id();
  expect(id == counter.id(), "its id is another");

  expect_error(error_of([] { create("counter"); }), "actor 'counter' lives already, on node ");
  expect(kind_of([] { create("counter"); }) == paceline::ErrorKind::invalid, "the kind of a collision");
  expect_error(error_of([] { (void)paceline::get_actor<Counter>("countr"); }),
               "no actor 'countr' lives; did you mean 'counter'?: there are 'counter'");
  expect(kind_of([] { (void)paceline::get_actor<Counter>("x"); }) == paceline::ErrorKind::not_found, "its kind");
  expect_error(error_of([] { (void)paceline::get_actor<Finder>("counter"); }), "Counter, and no ");
  expect_error(error_of([] { (void)paceline::create<Finder>({.name = "counter", .get_if_exists = true}); }),
               "Counter, and no ");
  expect_error(error_of([] { (void)paceline::create<Counter>({.lifetime = Lifetime::detached}); }), "give it one");
  expect_error(error_of([] { create(std::string(256, 'x')); }), "at most 255 are possible");
}

/// A name is free as soon as its actor is dead, however it has ended, on whichever node the next one lives.
void free_again(int times) {
  for (int i = 0; i < times; ++i) {
    { auto counter = create("x"); }
    auto counter = create("x");
    const auto call = counter.call(&Counter::sleep, 60);
    paceline::kill(counter);
    expect_error(error_of([&] { (void)call.get(); }), "has killed it");
    expect_error(error_of([&] { (void)counter.call(&Counter::add, 1).get(); }), "has killed it");
    paceline::kill(counter);  // Dead already.
    counter = create("x");
    const int pid = counter.call(&Counter::process).get();
    ::kill(pid, SIGKILL);
    expect_error(error_of([&] { (void)counter.call(&Counter::add, 1).get(); }), "SIGKILL");
    auto thrower = paceline::create<Thrower>({.name = "x"});
    expect_error(error_of([&] { (void)thrower.call(&Thrower::never).get(); }), "not today");
    auto slow = paceline::create<Slow>({.name = "x"});
    const auto never = slow.call(&Slow::never);
    paceline::kill(slow);  // While it is constructed.
    expect_error(error_of([&] { (void)never.get(); }), "has killed it");
    expect(create("x").call(&Counter::add, 1).get() == 1, "the last one");
  }
  auto many = paceline::create_many<Counter>({.name = "many", .count = 3});
  expect(paceline::get_actor<Counter>("many-2").id() == many[2].id(), "one of many");
}

/// race COUNT FILE: beside others of its kind. Prints the processes of whom it got.
void race(int count, const std::string& file) {
  for (int i = 0; i < count; ++i) {
    const paceline::ActorOptions options{
        .name = "race-" + std::to_string(i), .get_if_exists = true, .lifetime = Lifetime::detached};
    auto one = paceline::create<Counter>(options, file);
    std::printf("%d ", one.call(&Counter::process).get());
  }
  std::printf("\n");
}

/// detach NAME NODE RESTARTS
void detach(const std::string& name, int node, int restarts) {
  auto one =
      paceline::create<Counter>({.name = name, .node = node, .restarts = restarts, .lifetime = Lifetime::detached});
  one.call(&Counter::add, 1).get();
  std::printf("%d\n", one.call(&Counter::process).get());
}

/// find NAME: prints what it counts, and its process.
void find(const std::string& name) {
  auto one = paceline::get_actor<Counter>(name);
  const int sum = one.call(&Counter::add, 1).get();
  std::printf("%d %d\n", sum, one.call(&Counter::process).get());
}

/// own NAME: until it is killed.
void own(const std::string& name) {
  auto one = create(name);
  std::printf("%d\n", one.call(&Counter::process).get());
  std::fflush(stdout);
  while (true) pause();
}

/// wait NAME SECONDS: for the end of a call that takes so long; prints how it ended.
void wait_for(const std::string& name, int seconds) {
  const auto call = paceline::get_actor<Counter>(name).call(&Counter::sleep, seconds);
  std::puts("waits");
  std::fflush(stdout);
  std::puts(error_of([&] { (void)call.get(); }).c_str());
}

void parent() {
  auto one = paceline::create<Parent>({.name = "parent", .lifetime = Lifetime::detached});
  expect(one.call(&Parent::ask).get() == 101, "what its own do");
}

void ask_parent() {
  auto one = paceline::get_actor<Parent>("parent");
  expect(one.call(&Parent::ask).get() == 102, "what they did went with the driver");
  std::printf("%d\n", one.call(&Parent::child).get());
}

}  // namespace

int main() {
  const auto arguments = paceline::arguments();
  const auto which = arguments.at(0);
  const auto text = [&](std::size_t i) { return arguments.at(i); };
  const auto number = [&](std::size_t i) { return std::atoi(arguments.at(i).c_str()); };
  const auto error = error_of([&] {
    if (which == "names") names();
    if (which == "free_again") free_again(number(1));
    if (which == "race") race(number(1), text(2));
    if (which == "detach") detach(text(1), number(2), arguments.size() > 3 ? number(3) : 0);
    if (which == "find") find(text(1));
    if (which == "own") own(text(1));
    if (which == "wait") wait_for(text(1), number(2));
    if (which == "parent") parent();
    if (which == "ask_parent") ask_parent();
  });
  if (!error.empty()) std::fprintf(stderr, "error: %s\n", error.c_str());
  return error.empty() && paceline::test::failures == 0 ? 0 : 1;
}
