// Workers that print: an actor script whose first argument says what. What the driver's terminal shows is for the test
// to look at; exit status 0: what the script checks itself was right.
#include <paceline.h>

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "actors/test_support/script_checks.h"

using paceline::test::error_of;
using paceline::test::expect;
using paceline::test::has;

using namespace std::chrono_literals;

class Counter {
 public:
  int add(int k) {
    std::printf("counted to %d\n", n_ += k);
    return n_;
  }
  int say(std::string text, bool aloud) {
    if (aloud) std::cerr << text;
    if (!aloud) std::cout << text;
    return getpid();
  }
  int print_lines(int lines, int bytes) {
    const std::string filling(static_cast<std::size_t>(bytes), '.');
    for (int i = 0; i < lines; ++i) std::printf("line %d %s\n", i, filling.c_str());
    return lines;
  }
  int end_by(int signal_number) {
    std::printf("last wor");
    std::fflush(stdout);
    kill(getpid(), signal_number);
    std::this_thread::sleep_for(10s);
    return 0;
  }
  int fail() { throw std::runtime_error("no"); }

 private:
  int n_ = 0;
};

namespace {

int print_in_task(int number) {
  std::cout << "task " << number << std::endl;
  return getpid();
}

/// The most memory that this process has had, MiB.
long peak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss >> 10;
}

/// lines NODES NAME: two actors a node, one of them called NAME-NODE, and a task print one line each.
void lines(int nodes, const std::string& name) {
  std::vector<paceline::Handle<Counter>> counters;
  for (int node = 0; node < nodes; ++node) {
    counters.push_back(paceline::create<Counter>({.name = name + "-" + std::to_string(node), .node = node}));
    counters.push_back(paceline::create<Counter>({.node = node}));
    paceline::async({.node = node}, print_in_task, node).get();
  }
  for (auto& counter : counters) counter.call(&Counter::add, 3).get();
  counters.front().call(&Counter::say, std::string("aloud\n"), true).get();
}

/// nested: what an actor starts prints, too.
int starts_another() { return paceline::async(print_in_task, 17).get() > 0 ? 1 : 0; }

/// last: main ends as soon as it knows that something was printed, half a line among it.
void last() {
  auto counter = paceline::create<Counter>({.name = "counter"});
  counter.call(&Counter::say, std::string("whole\nhalf"), false).get();
}

/// crash SIGNAL: half a line, then the end of its worker.
void crash(int signal_number) {
  auto counter = paceline::create<Counter>({.name = "counter"});
  const auto error = error_of([&] { counter.call(&Counter::end_by, signal_number).get(); });
  expect(!error.empty(), "its end is told");
  std::printf("%s\n", error.c_str());
}

/// flood LINES BYTES [FILE]: of so many bytes and a little more each; then on stdout by how much memory has grown, in
/// MiB. Ends when the file is there.
void flood(int count, int bytes, const char* until) {
  auto counter = paceline::create<Counter>({.name = "counter"});
  counter.call(&Counter::add, 1).get();
  const long before = peak();
  expect(counter.call(&Counter::print_lines, count, bytes).get() == count, "all are printed");
  std::printf("grown by %ld\n", peak() - before);
  std::fflush(stdout);
  while (until != nullptr && access(until, F_OK) != 0) std::this_thread::sleep_for(10ms);
}

/// quiet: nobody prints anything, and an error names no log.
void quiet() {
  auto counter = paceline::create<Counter>({.name = "counter"});
  const auto error = error_of([&] { counter.call(&Counter::fail).get(); });
  expect(has(error, "no") && !has(error, ".log"), error);
}

/// named: an error names the log, since something stands in it.
void named() {
  auto counter = paceline::create<Counter>({.name = "counter"});
  counter.call(&Counter::add, 1).get();
  std::printf("%s\n", error_of([&] { counter.call(&Counter::fail).get(); }).c_str());
}

/// wait: prints, says so on stdout, and waits to be ended.
void wait() {
  auto counter = paceline::create<Counter>({.name = "counter"});
  counter.call(&Counter::add, 1).get();
  std::printf("printed\n");
  std::fflush(stdout);
  std::this_thread::sleep_for(60s);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const auto number = [&](int i) { return argc > i ? std::atoi(argv[i]) : 0; };
  if (what == "lines") {
    lines(number(2), argc > 3 ? argv[3] : "counter");
  } else if (what == "nested") {
    paceline::async(starts_another).get();
  } else if (what == "last") {
    last();
  } else if (what == "crash") {
    crash(number(2));
  } else if (what == "flood") {
    flood(number(2), number(3), argc > 4 ? argv[4] : nullptr);
  } else if (what == "quiet") {
    quiet();
  } else if (what == "named") {
    named();
  } else if (what == "wait") {
    wait();
  } else if (what == "bytes") {
    paceline::create<Counter>({.name = "counter"})
        .call(&Counter::say, std::string("\xff\xfe|\x01|\r\n") + std::string(20'000, 'x') + "\n\n", false)
        .get();
  } else {
    std::fprintf(stderr, "no such check: %s\n", what.c_str());
    return 2;
  }
  return paceline::test::failures == 0 ? 0 : 1;
}
