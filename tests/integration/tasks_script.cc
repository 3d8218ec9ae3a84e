// Tasks under load and in distress: an actor script whose first argument says which; it checks its own answers. Exit
// status 0: all were right.
#include <paceline.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using paceline::test::Clock;
using paceline::test::error_of;
using paceline::test::expect;
using paceline::test::since;

using namespace std::chrono_literals;

int square(int x) { return x * x; }
int nap(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  return getpid();
}
std::vector<char> echo(std::vector<char> bytes) { return bytes; }
int node_of_worker() { return getppid(); }  // Its node's fork server.
int end_by(int signal_number) {
  kill(getpid(), signal_number);
  std::this_thread::sleep_for(10s);
  return 0;
}

/// Says in a file that it has begun, once a run.
int counted(const std::string& path, int ms) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (write(file, "x", 1) != 1) return -1;
  close(file);
  return nap(ms);
}
std::size_t runs_of(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 ? static_cast<std::size_t>(found.st_size) : 0;
}

/// flood TASKS: all at once.
void flood(int tasks) {
  std::vector<paceline::Future<int>> all;
  for (int i = 0; i < tasks; ++i) all.push_back(paceline::async(square, i % 1000));
  for (int i = 0; i < tasks; ++i) expect(all[static_cast<std::size_t>(i)].get() == square(i % 1000), "a task's result");
}

/// Whether as many as `all` of these run at once.
int meet(const std::string& path, int all) {
  const auto begin = Clock::now();
  counted(path, 0);
  while (runs_of(path) < static_cast<std::size_t>(all) && since(begin) < 30) nap(1);
  return runs_of(path) == static_cast<std::size_t>(all) ? getppid() : 0;
}

/// spill PATH NODES CPUS: as many run at once as all nodes have cpus.
void spill(const std::string& path, int nodes, int cpus) {
  std::vector<paceline::Future<int>> all;
  for (int i = 0; i < nodes * cpus; ++i) all.push_back(paceline::async(meet, path, nodes * cpus));
  std::set<int> servers;
  for (auto& one : all) servers.insert(one.get());
  expect(!servers.contains(0) && static_cast<int>(servers.size()) == nodes, "all ran at once, on all nodes");
}

/// on_nodes NODES: each runs what is asked of it.
void on_nodes(int nodes) {
  std::set<int> servers;
  for (int node = 0; node < nodes; ++node) {
    std::set<int> of_node;
    for (int i = 0; i < 5; ++i) of_node.insert(paceline::async({.node = node}, node_of_worker).get());
    expect(of_node.size() == 1, "one node ran them");
    servers.insert(of_node.begin(), of_node.end());
  }
  expect(static_cast<int>(servers.size()) == nodes, "each node ran some");
  const auto error = error_of([&] { (void)paceline::async({.node = nodes}, square, 1).get(); });
  expect(error.find("which this cluster does not have") != error.npos, error);
}

/// large COUNT BYTES: by whatever way there is.
void large(int count, int size) {
  std::vector<paceline::Future<std::vector<char>>> all;
  for (int i = 0; i < count; ++i)
    all.push_back(paceline::async(echo, std::vector<char>(static_cast<std::size_t>(i % 2 == 0 ? size : 10), char(i))));
  for (int i = 0; i < count; ++i) {
    const auto got = all[static_cast<std::size_t>(i)].get();
    expect(got == std::vector<char>(static_cast<std::size_t>(i % 2 == 0 ? size : 10), char(i)), "what was sent");
  }
}

/// chains LENGTH: each takes the result of the one before; a failure names its first cause.
void chains(int length) {
  auto value = paceline::async(square, 1);
  for (int i = 0; i < length; ++i)
    value = paceline::async(
        +[](int x) { return x + 1; }, value);
  expect(value.get() == length + 1, "a chain");
  auto broken = paceline::async(
      +[](int x) -> int { throw std::runtime_error("the first cause " + std::to_string(x)); }, 7);
  for (int i = 0; i < 5; ++i)
    broken = paceline::async(
        +[](int x) { return x + 1; }, broken);
  const auto error = error_of([&] { (void)broken.get(); });
  expect(error.find("the first cause 7") != error.npos, error);
}

/// deaths PATH: a task that ends its worker is run again as often as it says; those behind it run once.
void deaths(const std::string& path) {
  auto bad = paceline::async(
      {.retries = 2},
      +[](const std::string& file) {
        counted(file, 0);
        return end_by(SIGKILL);
      },
      path);
  std::vector<paceline::Future<int>> good;
  for (int i = 0; i < 2000; ++i) good.push_back(paceline::async(square, i % 100));
  const auto error = error_of([&] { (void)bad.get(); });
  expect(error.find("SIGKILL") != error.npos, error);
  expect(runs_of(path) == 3, std::to_string(runs_of(path)) + " runs of one that may be run three times");
  for (int i = 0; i < 2000; ++i) expect(good[static_cast<std::size_t>(i)].get() == square(i % 100), "one behind it");
  const auto crash = error_of([&] { (void)paceline::async(end_by, SIGABRT).get(); });
  expect(crash.find("SIGABRT") != crash.npos, crash);
}

/// kills PATH SECONDS RETRIES: somebody kills the workers whose ids are in PATH meanwhile. Every task ends: with its
/// result, or, where it must not be run again, saying that its worker was killed.
void kills(const std::string& path, int seconds, int retries) {
  const auto begin = Clock::now();
  int ended = 0, failed = 0;
  while (since(begin) < seconds) {
    std::vector<paceline::Future<int>> all;
    for (int i = 0; i < 500; ++i) {
      all.push_back(paceline::async(
          {.retries = retries},
          +[](int x, const std::string& file) {
            if (x % 50 == 0) {
              std::ofstream(file + ".tmp" + std::to_string(getpid())) << getpid();
              rename((file + ".tmp" + std::to_string(getpid())).c_str(), file.c_str());
              nap(2);
            }
            return square(x);
          },
          i, path));
    }
    for (int i = 0; i < 500; ++i) {
      try {
        expect(all[static_cast<std::size_t>(i)].get() == square(i), "a task's result");
      } catch (const paceline::TaskError& error) {
        ++failed;
        expect(std::string(error.what()).find("SIGKILL") != std::string::npos, error.what());
      }
      ++ended;
    }
  }
  std::printf("%d ended, %d failed\n", ended, failed);
}

/// behind PATH: what waits behind a long task goes to another worker, also if the long one does not end before it has
/// run.
void behind(const std::string& path) {
  for (int i = 0; i < 200; ++i) paceline::async(square, i).get();  // Tasks are short, it seems.
  std::vector<paceline::Future<int>> all;
  all.push_back(paceline::async(
      +[](const std::string& file) {
        const auto begin = Clock::now();
        while (runs_of(file) < 50 && since(begin) < 30) nap(1);
        return static_cast<int>(runs_of(file));
      },
      path));
  for (int i = 0; i < 50; ++i) all.push_back(paceline::async(counted, path, 0));
  expect(all[0].get() == 50, "those behind it ran first");
}

int leaf(int ms) { return nap(ms) > 0 ? 1 : 0; }
int tree(int depth) {
  if (depth == 0) return leaf(1);
  auto left = paceline::async(tree, depth - 1), right = paceline::async(tree, depth - 1);
  return left.get() + right.get();
}

/// fair: who comes later gets its share though the first one always has more.
void fair() {
  auto greedy = paceline::async(+[] {
    std::vector<paceline::Future<int>> all;
    for (int i = 0; i < 40; ++i) all.push_back(paceline::async(nap, 100));
    for (auto& one : all) one.get();
    return 1;
  });
  nap(300);
  const auto begin = Clock::now();
  paceline::async(square, 2).get();
  expect(since(begin) < 1, std::to_string(since(begin)) + " s until the second owner's task had run");
  greedy.get();
}

/// owner_died: what a dead owner's tasks hold is free again.
void owner_died() {
  const auto owner = paceline::async(+[] {
    for (int i = 0; i < 8; ++i) (void)paceline::async(nap, 60'000);
    nap(200);
    return end_by(SIGKILL);
  });
  expect(!error_of([&] { (void)owner.get(); }).empty(), "an owner that is killed");
  const auto begin = Clock::now();
  std::vector<paceline::Future<int>> all;
  for (int i = 0; i < 4; ++i) all.push_back(paceline::async(nap, 10));
  for (auto& one : all) one.get();
  expect(since(begin) < 20, "its workers are free again");
}

/// outstanding: main returns with everything under way.
void outstanding() {
  for (int i = 0; i < 1000; ++i) (void)paceline::async(nap, 10'000);
  paceline::async({.cpus = 0}, square, 3).get();
}

/// shapes: some of their own, and what no node has.
void shapes() {
  std::vector<paceline::Future<int>> all;
  for (int i = 0; i < 20; ++i) all.push_back(paceline::async({.cpus = i % 2 == 0 ? 0.5F : 0.0F}, nap, 20));
  for (auto& one : all) expect(one.get() > 0, "a task");
  const auto error = error_of([] { (void)paceline::async({.cpus = 1000}, square, 1).get(); });
  expect(error.find("ask for no more than that") != error.npos, error);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string path = argc > 2 ? argv[2] : "";
  const auto number = [&](int i) { return argc > i ? std::atoi(argv[i]) : 0; };
  if (what == "flood")
    flood(number(2));
  else if (what == "spill")
    spill(path, number(3), number(4));
  else if (what == "on_nodes")
    on_nodes(number(2));
  else if (what == "large")
    large(number(2), number(3));
  else if (what == "chains")
    chains(number(2));
  else if (what == "deaths")
    deaths(path);
  else if (what == "kills")
    kills(path, number(3), number(4));
  else if (what == "behind")
    behind(path);
  else if (what == "tree")
    expect(paceline::async(tree, number(2)).get() == 1 << number(2), "a tree of tasks");
  else if (what == "fair")
    fair();
  else if (what == "owner_died")
    owner_died();
  else if (what == "outstanding")
    outstanding();
  else if (what == "shapes")
    shapes();
  else
    expect(false, "no such case: " + what);
  return paceline::test::exit_status();
}
