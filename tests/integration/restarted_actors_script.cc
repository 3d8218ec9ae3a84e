// Actors whose processes are killed, and that are started again: a script whose first argument says which way. What a
// call does is a line of a file that outlives the process; the script compares the two. Exit status 0: all was right.
#include <paceline.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using namespace std::chrono_literals;

using paceline::test::error_of;
using paceline::test::expect;
using paceline::test::has;

constexpr auto kEnough = 60s;  // For whatever is to end.

/// In records that divide a page: a process that is killed while it writes leaves a whole one or none.
void append(const std::string& path, std::string line) {
  constexpr std::size_t kRecord = 64;
  if (!line.empty()) line.insert(line.size() - 1, kRecord - line.size(), ' ');
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || ::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  ::close(file);
}

template <class... Field>
std::vector<std::tuple<Field...>> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::tuple<Field...>> lines;
  for (std::tuple<Field...> one;
       std::apply([&](auto&... field) { return static_cast<bool>((file >> ... >> field)); }, one);)
    lines.push_back(one);
  return lines;
}

/// Whose process writes its number into FOLDER/processes before anything else, and each call a line into FOLDER/calls.
class Target {
 public:
  Target(std::string folder, int delay_ms) : folder_(std::move(folder)) {
    append(folder_ + "/processes", std::to_string(getpid()) + '\n');
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    if (std::filesystem::exists(folder_ + "/throw")) throw std::runtime_error("the file to throw for is there");
  }
  int call(int caller, int number) {
    append(folder_ + "/calls",
           std::to_string(getpid()) + ' ' + std::to_string(caller) + ' ' + std::to_string(number) + '\n');
    return ++n_;
  }
  int process() const { return getpid(); }
  void crash() { std::abort(); }

 private:
  std::string folder_;
  int n_ = 0;
};

using Results = std::vector<int>;  // Of calls, by number: 1 came, 0 failed as unknown, -1 failed otherwise.

Results call_many(const paceline::Handle<Target>& target, int caller, int calls, int flight, int end_ms) {
  std::deque<paceline::Future<int>> under_way;
  Results results;
  const auto take = [&] {
    const auto future = std::move(under_way.front());
    under_way.pop_front();
    if (!future.wait_for(kEnough)) std::abort();  // A call without an end: the driver hears that this one died.
    const auto error = error_of([&] { (void)future.get(); });
    if (!error.empty() && !has(error, "whether it has done this call is unknown"))
      std::fprintf(stderr, "call %zu of %d: %s\n", results.size(), caller, error.c_str());
    results.push_back(error.empty() ? 1 : has(error, "whether it has done this call is unknown") ? 0 : -1);
  };
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(end_ms);
  for (int i = 0; i < calls && std::chrono::steady_clock::now() < until; ++i) {
    under_way.push_back(target.call(&Target::call, caller, i));
    if (static_cast<int>(under_way.size()) >= flight) take();
  }
  while (!under_way.empty()) take();
  return results;
}

class Caller {
 public:
  Results calls(paceline::Handle<Target> target, int caller, int calls, int flight, int end_ms) {
    return call_many(target, caller, calls, flight, end_ms);
  }
};

bool is_ours(int process) {
  std::error_code error;
  return process > 0 && std::filesystem::read_symlink("/proc/" + std::to_string(process) + "/exe", error) ==
                            std::filesystem::read_symlink("/proc/self/exe");
}

/// Stops it, and waits until none of its threads runs any more.
void stop(int process) {
  kill(process, SIGSTOP);
  const auto runs = [&] {
    for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
      std::ifstream file(thread.path() / "stat");
      std::string stat;
      std::getline(file, stat);
      if (const auto name_end = stat.rfind(')'); name_end + 2 < stat.size() && stat[name_end + 2] != 'T') return true;
    }
    return false;
  };
  while (runs()) std::this_thread::sleep_for(1ms);
}

int newest_process(const std::string& folder) {
  const auto processes = lines_of<int>(folder + "/processes");
  return processes.empty() ? 0 : std::get<0>(processes.back());
}

/// Waits for the actor's next process.
int next_process(const std::string& folder, int after) {
  for (int i = 0; i < 3000; ++i, std::this_thread::sleep_for(10ms))
    if (const int process = newest_process(folder); process != after && process != 0) return process;
  return 0;
}

/// Compares what callers heard with what was done.
void check(const std::string& folder, const std::vector<Results>& heard, int retries) {
  std::map<std::pair<int, int>, int> done;    // By caller and number.
  std::map<std::pair<int, int>, int> newest;  // By process and caller.
  std::map<int, int> newest_first;            // By caller.
  for (const auto& [process, caller, number] : lines_of<int, int, int>(folder + "/calls")) {
    const auto [last, first_of_process] = newest.try_emplace({process, caller}, -1);
    if (number <= last->second) return expect(false, "a call overtook another in one process");
    last->second = number;
    if (done[{caller, number}]++ > 0) continue;
    const auto [first, first_of_caller] = newest_first.try_emplace(caller, -1);
    if (number <= first->second) return expect(false, "a call ran for the first time after a later one had");
    first->second = number;
  }
  std::size_t came = 0, unknown = 0, twice = 0;
  for (std::size_t caller = 0; caller < heard.size(); ++caller) {
    for (std::size_t number = 0; number < heard[caller].size(); ++number) {
      const int result = heard[caller][number];
      const auto effect = done.find({static_cast<int>(caller), static_cast<int>(number)});
      const int times = effect == done.end() ? 0 : effect->second;
      expect(result >= 0, "a call failed otherwise than as unknown");
      expect(result != 1 || times >= 1, "a result of what was not done");
      if (retries >= 0) expect(times <= 1 + retries, "a call was done too often");
      if (retries < 0) expect(result == 1, "a call failed though calls are sent again");
      ++(result == 1 ? came : unknown);
      twice += times > 1 ? 1 : 0;
    }
  }
  const auto processes = lines_of<int>(folder + "/processes").size();
  std::printf("%zu results, %zu unknown, %zu done again, %zu processes\n", came, unknown, twice, processes);
  expect(processes > 2, "it was hardly ever killed");
  expect(came > 100, "hardly anything came");
}

/// kills FOLDER RETRIES NODES FLIGHT MS: kills the actor's process again and again while several call it.
void kills(const std::string& folder, int retries, int nodes, int flight, int ms) {
  constexpr int kCallers = 3;  // And this process.
  auto target = paceline::create<Target>({.name = "target", .node = nodes - 1, .restarts = -1, .call_retries = retries},
                                         folder, 0);
  std::vector<paceline::Handle<Caller>> callers;
  for (int i = 0; i < kCallers; ++i) callers.push_back(paceline::create<Caller>({.node = i % nodes}));
  std::atomic<bool> over{false};
  std::thread killer([&] {
    std::mt19937 random(static_cast<unsigned>(getpid()));
    while (!over) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 150));
      if (const int process = newest_process(folder); is_ours(process)) kill(process, SIGKILL);
    }
  });
  constexpr int kEndless = 1'000'000'000;
  std::vector<paceline::Future<Results>> later;
  for (int i = 0; i < kCallers; ++i)
    later.push_back(callers[static_cast<std::size_t>(i)].call(&Caller::calls, target, i, kEndless, flight, ms));
  std::vector<Results> heard(kCallers + 1);
  heard[kCallers] = call_many(target, kCallers, kEndless, flight, ms);
  over = true;
  killer.join();
  for (int i = 0; i < kCallers; ++i) heard[static_cast<std::size_t>(i)] = later[static_cast<std::size_t>(i)].get();
  check(folder, heard, retries);
}

/// untaken FOLDER: what a stopped process has not taken from a line is the next one's, and nothing of it fails.
void untaken(const std::string& folder) {
  auto target = paceline::create<Target>({.name = "target", .restarts = 1}, folder, 0);
  for (int i = 0; i < 50; ++i) (void)target.call(&Target::call, 0, i).get();
  const int process = target.call(&Target::process).get();
  stop(process);
  std::vector<paceline::Future<int>> later;
  for (int i = 0; i < 3000; ++i) later.push_back(target.call(&Target::call, 0, 50 + i));
  kill(process, SIGKILL);
  for (int i = 0; i < 3000; ++i)
    expect(later[static_cast<std::size_t>(i)].get() == i + 1, "a call that nobody had taken");
  expect(lines_of<int>(folder + "/processes").size() == 2, "two processes");
}

/// used_up FOLDER: dies once more than it may be started again; a crash counts like a kill.
void used_up(const std::string& folder) {
  auto target = paceline::create<Target>({.name = "target", .restarts = 2}, folder, 0);
  expect(target.call(&Target::call, 0, 0).get() == 1, "its first call");
  const int process = newest_process(folder);
  const auto crash = error_of([&] { target.call(&Target::crash).get(); });
  expect(has(crash, "'target' is started again, and whether it has done this call is unknown") && has(crash, "SIGABRT"),
         "a crash: " + crash);
  expect(target.call(&Target::call, 0, 1).get() == 1, "it begins anew");
  expect(newest_process(folder) != process, "another process");
  (void)error_of([&] { target.call(&Target::crash).get(); });
  expect(target.call(&Target::call, 0, 2).get() == 1, "it begins anew once more");
  const auto end = error_of([&] { target.call(&Target::crash).get(); });
  expect(has(end, "'target' is dead, restarted 2 times") && has(end, "SIGABRT"), "its end: " + end);
  const auto later = error_of([&] { (void)target.call(&Target::call, 0, 3).get(); });
  expect(has(later, "restarted 2 times"), "a later call: " + later);
  const auto retries = error_of([] { (void)paceline::create<Caller>({.call_retries = 1}); });
  expect(has(retries, "call_retries without restarts"), "retries only: " + retries);
}

/// constructor FOLDER: throws when it is to be constructed again; what waits for it ends.
void constructor(const std::string& folder) {
  auto target = paceline::create<Target>({.name = "target", .restarts = -1, .call_retries = -1}, folder, 0);
  for (int i = 0; i < 50; ++i) (void)target.call(&Target::call, 0, i).get();
  const int process = newest_process(folder);
  stop(process);
  append(folder + "/throw", "");
  std::vector<paceline::Future<int>> later;
  for (int i = 0; i < 2000; ++i) later.push_back(target.call(&Target::call, 0, 50 + i));
  kill(process, SIGKILL);
  for (auto& one : later) {
    const auto error = error_of([&] { (void)one.get(); });
    if (!has(error, "the file to throw for is there") || !has(error, "started again (once)"))
      return expect(false, "a call to one that could not be constructed again: " + error);
  }
}

/// frozen FOLDER: a process that is stopped for a while is not dead.
void frozen(const std::string& folder) {
  auto target = paceline::create<Target>({.name = "target", .restarts = -1}, folder, 0);
  for (int i = 0; i < 50; ++i) (void)target.call(&Target::call, 0, i).get();
  const int process = newest_process(folder);
  stop(process);
  std::vector<paceline::Future<int>> later;
  for (int i = 0; i < 2000; ++i) later.push_back(target.call(&Target::call, 0, 50 + i));
  std::this_thread::sleep_for(1s);
  kill(process, SIGCONT);
  for (int i = 0; i < 2000; ++i)
    expect(later[static_cast<std::size_t>(i)].get() == 51 + i, "a call to one that was frozen");
  expect(newest_process(folder) == process, "it was not started again");
}

/// released FOLDER: whose last handle goes while it is started again ends for good, and calls say so.
void released(const std::string& folder) {
  auto target = paceline::create<Target>({.name = "target", .restarts = -1, .call_retries = -1}, folder, 200);
  for (int i = 0; i < 50; ++i) (void)target.call(&Target::call, 0, i).get();
  const int process = newest_process(folder);
  kill(process, SIGKILL);
  auto later = target.call(&Target::call, 0, 50);
  next_process(folder, process);
  target = {};
  expect(later.wait_for(kEnough), "a call to an actor that was released has no end");
  const auto error = error_of([&] { (void)later.get(); });
  expect(has(error, "its last handle is gone") || error.empty(), "a call to an actor that was released: " + error);
}

/// driver_killed FOLDER: prints "restarting" while the actor is constructed again, and waits to be killed.
void driver_killed(const std::string& folder) {
  auto target = paceline::create<Target>({.name = "target", .restarts = -1, .call_retries = -1}, folder, 500);
  expect(target.call(&Target::call, 0, 0).get() == 1, "its first call");
  const int process = newest_process(folder);
  kill(process, SIGKILL);
  auto later = target.call(&Target::call, 0, 1);
  expect(next_process(folder, process) != 0, "the next process");
  std::printf("restarting %d\n", getpid());
  std::fflush(stdout);
  std::this_thread::sleep_for(kEnough);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "", folder = argc > 2 ? argv[2] : "";
  const auto number = [&](int i) { return argc > i ? std::atoi(argv[i]) : 0; };
  if (what == "kills")
    kills(folder, number(3), number(4), number(5), number(6));
  else if (what == "untaken")
    untaken(folder);
  else if (what == "used_up")
    used_up(folder);
  else if (what == "constructor")
    constructor(folder);
  else if (what == "frozen")
    frozen(folder);
  else if (what == "released")
    released(folder);
  else if (what == "driver_killed")
    driver_killed(folder);
  else
    expect(false, "there is no '" + what + "'");
  return paceline::test::exit_status();
}
