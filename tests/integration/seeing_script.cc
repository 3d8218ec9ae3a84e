// What a cluster is seen to do: an actor script whose first argument says what it does. It goes on until a file is
// there. Exit status 0: all results were right.
#include <paceline.h>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using paceline::Handle;
using paceline::test::expect;

int until(const std::string& file) {
  while (::access(file.c_str(), F_OK) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return 1;
}

int step(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  if (ms < 1) throw std::invalid_argument("no time");
  return ms;
}

int stops() {
  while (!paceline::cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return 1;
}

class Counter {
 public:
  int add(int k) { return n_ += k; }
  int wait(const std::string& file) { return until(file); }
  int stops_too() { return stops(); }

 private:
  int n_ = 0;
};

class Asker {
 public:
  explicit Asker(Handle<Counter> counter) : counter_(std::move(counter)) {}
  int ask(const std::string& file) { return counter_.call(&Counter::wait, file).get(); }

 private:
  Handle<Counter> counter_;
};

void say(const char* text) {
  std::puts(text);
  std::fflush(stdout);
}

/// Ends when somebody has cancelled all three.
void cancelled(const std::string& file) {
  auto counter = paceline::create<Counter>();
  std::vector<paceline::Future<int>> all{paceline::async({.name = "stops"}, stops),
                                         paceline::async({.retries = 3, .name = "goes on"}, until, file),
                                         counter.call(&Counter::stops_too)};
  say("asked");
  for (auto& one : all) {
    try {
      (void)one.get();
      expect(false, "it was not cancelled");
    } catch (const paceline::TaskError& error) {
      expect(error.kind() == paceline::ErrorKind::cancelled, error.what());
    }
  }
}

void tasks(const std::string& file, int count, float cpus, int node) {
  std::vector<paceline::Future<int>> all;
  for (int i = 0; i < count; ++i)
    all.push_back(paceline::async({.cpus = cpus, .retries = 3, .node = node}, until, file));
  say("asked");
  int sum = 0;
  for (const auto& one : all) sum += one.get();
  expect(sum == count, "results of all");
  say("done");
}

/// Who has a name, and who has one of C++'s.
void named(const std::string& file) {
  const auto stars = paceline::async({.name = "count the stars"}, until, file);
  const auto lambda = paceline::async([](const std::string& end) { return until(end); }, file);
  say("asked");
  expect(stars.get() + lambda.get() == 2, "both results");
  say("done");
}

/// Tasks one after the other, one that fails, calls to an actor, and a task that goes on.
void some_of_each(const std::string& file) {
  for (int i = 0; i < 5; ++i) expect(paceline::async({.name = "one step"}, step, 2).get() == 2, "a step");
  expect(!paceline::test::error_of([] { paceline::async(step, 0).get(); }).empty(), "a step that fails");
  auto counter = paceline::create<Counter>({.name = "counter"});
  for (int i = 1; i <= 3; ++i) expect(counter.call(&Counter::add, 1).get() == i, "a count");
  const auto last = paceline::async({.retries = 3}, until, file);
  say("asked");
  expect(last.get() == 1, "the last");
  say("done");
}

void actors(const std::string& file) {
  auto counter = paceline::create<Counter>({.name = "counter", .node = 0});
  auto asker = paceline::create<Asker>({.name = "asker", .node = 1}, counter);
  const auto answer = asker.call(&Asker::ask, file);
  say("asked");
  expect(answer.get() == 1, "an answer");
  say("done");
}

}  // namespace

int main() {
  const auto words = paceline::arguments();
  const auto what = words.at(0);
  const auto error = paceline::test::error_of([&] {
    if (what == "tasks") tasks(words.at(1), std::stoi(words.at(2)), std::stof(words.at(3)), std::stoi(words.at(4)));
    if (what == "named") named(words.at(1));
    if (what == "some") some_of_each(words.at(1));
    if (what == "cancelled") cancelled(words.at(1));
    if (what == "actors") actors(words.at(1));
  });
  if (!error.empty()) std::fprintf(stderr, "error: %s\n", error.c_str());
  return error.empty() ? paceline::test::exit_status() : 1;
}
