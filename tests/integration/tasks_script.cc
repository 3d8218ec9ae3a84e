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
#include <map>
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

/// spread NODES: they go to nodes in turn, and nothing waits for a node while another has room.
void spread(int nodes) {
  std::map<int, int> of_node;
  for (int i = 0; i < 10 * nodes; ++i) ++of_node[paceline::async({.spread = true}, node_of_worker).get()];
  expect(static_cast<int>(of_node.size()) == nodes, "each node ran some");
  for (const auto& [node, count] : of_node)
    expect(count >= 8 && count <= 12, std::to_string(count) + " of one node, of 10 for each");
  std::vector<paceline::Future<int>> long_ones, short_ones;
  for (int i = 0; i < nodes; ++i)
    long_ones.push_back(paceline::async({.cpus = 1, .spread = true}, nap, i == 0 ? 2000 : 1));
  const auto begin = Clock::now();
  for (int i = 0; i < 200; ++i) short_ones.push_back(paceline::async({.spread = true}, square, i));
  for (int i = 0; i < 200; ++i) expect(short_ones[static_cast<std::size_t>(i)].get() == i * i, "a task's result");
  if (nodes > 1) expect(since(begin) < 2, "the other node took what waited behind the long one");
  for (auto& one : long_ones) one.get();
  const auto error = error_of([] { (void)paceline::async({.node = 0, .spread = true}, square, 1); });
  expect(error.find("give it a node, or spread, not both") != error.npos, error);
}

/// spread_lost PATH: half of them are for a node that is killed meanwhile.
void spread_lost(const std::string& path) {
  std::vector<paceline::Future<int>> all;
  for (int i = 0; i < 20; ++i) all.push_back(paceline::async({.retries = 5, .spread = true}, counted, path, 500));
  for (auto& one : all) expect(one.get() > 0, "it was run");
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

/// Until somebody cancels it: says so in the file.
int until_cancelled(const std::string& path) {
  counted(path + "begun", 0);
  const auto begin = Clock::now();
  while (!paceline::cancelled() && since(begin) < 60) nap(1);
  counted(path + (paceline::cancelled() ? "told" : "not-told"), 0);
  return 0;
}
void wait_for(const std::string& path) {
  const auto begin = Clock::now();
  while (runs_of(path) == 0 && since(begin) < 60) nap(1);
}
int counted_throw(const std::string& path) {
  counted(path, 0);
  throw std::runtime_error("bad luck");
}
/// Throws at its first run, and dies at its second.
int third_time(const std::string& path) {
  counted(path, 0);
  if (runs_of(path) == 1) throw std::runtime_error("bad luck");
  if (runs_of(path) == 2) return end_by(SIGKILL);
  return 3;
}

paceline::TaskError failure_of(const paceline::Future<int>& future) {
  try {
    (void)future.get();
  } catch (const paceline::TaskError& error) {
    return error;
  }
  return paceline::TaskError({paceline::ErrorKind::internal, "nothing was thrown"});
}

/// options PATH NODE: what tasks are called, how long they may take, after what they are run again.
void options(const std::string& path, int node) {
  using paceline::ErrorKind;
  const auto thrown = failure_of(paceline::async({.node = node, .name = "part 3"}, counted_throw, path + "named"));
  expect(paceline::test::has(thrown.what(), "(task 'part 3', worker") &&
             paceline::test::has(thrown.causes()[0].what, "counted_throw(") &&
             thrown.causes()[0].what.ends_with(" of task 'part 3'"),
         thrown.what() + (" / " + thrown.causes()[0].what));
  const auto dead = failure_of(paceline::async({.node = node, .name = "part 4"}, end_by, SIGKILL));
  expect(dead.kind() == ErrorKind::disconnected && dead.causes()[0].what == "task 'part 4'" &&
             paceline::test::has(dead.what(), "task 'part 4': "),
         dead.what());
  paceline::Future<int> slow;
  std::string seen;
  for (auto timeout = 500ms; runs_of(seen + "begun") == 0 && timeout < 60s; timeout *= 2) {
    seen = path + std::to_string(timeout.count());  // A slow machine may not have begun it in its time.
    slow = paceline::async({.retries = 5, .node = node, .name = "slow", .timeout = timeout}, until_cancelled, seen);
    while (!slow.ready() && runs_of(seen + "begun") == 0) nap(1);
    if (slow.ready()) seen.clear();
  }
  const auto hold = paceline::async({.node = node}, until_cancelled, path + "hold");
  const auto behind = paceline::async({.node = node, .name = "behind", .timeout = 100ms}, square, hold);
  const auto early = failure_of(behind);  // Whose argument is not there in its time.
  expect(
      early.kind() == ErrorKind::timed_out && paceline::test::has(early.what(), "task 'behind' was not over in 0.1 s"),
      early.what());
  (void)paceline::cancel(hold);
  const auto late = failure_of(slow);
  expect(late.kind() == ErrorKind::timed_out && late.causes()[0].what == "task 'slow'", late.what());
  expect(paceline::cancel(slow) == paceline::Cancelled::done, "it has ended");
  wait_for(seen + "told");
  expect(runs_of(seen + "told") == 1 && runs_of(seen + "begun") == 1, "it is told, and is not run again");
  const auto at_once = failure_of(paceline::async({.node = node, .timeout = 0ms}, square, 3));
  expect(at_once.kind() == ErrorKind::timed_out, at_once.what());
  expect(paceline::async({.node = node, .timeout = 10h}, square, 3).get() == 9, "one that is in time");
  expect(paceline::async({.timeout = std::chrono::nanoseconds::max()}, square, 3).get() == 9, "one that has for ever");
  const auto mapped = paceline::map(square, std::vector{1, 2, 3}, {.task = {.timeout = 10h}});
  expect(mapped == std::vector{1, 4, 9}, "those of a map");

  (void)failure_of(paceline::async({.retries = 2, .node = node}, counted_throw, path + "once"));
  expect(runs_of(path + "once") == 1, "what throws is not run again");
  const auto often = failure_of(paceline::async({.retries = 2, .node = node, .retry_on = paceline::RetryOn::failure},
                                                counted_throw, path + "thrice"));
  expect(runs_of(path + "thrice") == 3 && often.cause() == "std::runtime_error: bad luck", "what throws is run again");
  const auto third =
      paceline::async({.retries = 2, .node = node, .retry_on = paceline::RetryOn::failure}, third_time, path + "third");
  expect(third.get() == 3, "after an error and a death");
  const auto unasked = paceline::async({.retries = 5, .retry_on = paceline::RetryOn::failure}, square,
                                       paceline::async({.node = node}, counted_throw, path + "argument"));
  expect(failure_of(unasked).causes().size() == 2 && runs_of(path + "argument") == 1, "an argument that failed");
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

/// Of this process, in bytes.
double resident() {
  std::ifstream file("/proc/self/statm");
  double all = 0, pages = 0;
  file >> all >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// pending TASKS: what those take that wait behind others, with their futures, and how long they run after that.
void pending(int tasks) {
  std::vector<paceline::Future<int>> holders, all;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) holders.push_back(paceline::async(nap, 600'000));
  all.reserve(static_cast<std::size_t>(tasks));
  nap(500);
  const double before = resident();
  for (int i = 0; i < tasks; ++i) all.push_back(paceline::async(square, i % 1000));
  std::printf("%d tasks wait: %.0f bytes each\n", tasks, (resident() - before) / tasks);
  const auto begin = Clock::now();
  for (auto& holder : holders) (void)paceline::cancel(holder, {.force = true});
  for (int i = 0; i < tasks; ++i) expect(all[static_cast<std::size_t>(i)].get() == square(i % 1000), "a task's result");
  std::printf("all had run %.1f s later\n", since(begin));
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
  else if (what == "spread")
    spread(number(2));
  else if (what == "spread_lost")
    spread_lost(path);
  else if (what == "large")
    large(number(2), number(3));
  else if (what == "chains")
    chains(number(2));
  else if (what == "deaths")
    deaths(path);
  else if (what == "options")
    options(path, number(3));
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
  else if (what == "pending")
    pending(number(2));
  else if (what == "shapes")
    shapes();
  else
    expect(false, "no such case: " + what);
  return paceline::test::exit_status();
}
