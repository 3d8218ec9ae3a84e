// Actors with durable state, whose processes are killed: a script whose first argument says which way. Exit status 0:
// all was right.
#include <paceline.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using namespace std::chrono_literals;
using paceline::test::Clock;
using paceline::test::error_of;
using paceline::test::expect;
using paceline::test::has;
using paceline::test::since;

constexpr auto kEnough = 100s;  // For whatever is to end.

/// Of the actor's processes, files in a folder that have their numbers as names: those that live.
std::vector<int> processes_of(const std::string& folder) {
  std::vector<int> living;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const int process = std::atoi(entry.path().filename().c_str());
    const auto runs = std::filesystem::read_symlink("/proc/" + std::to_string(process) + "/exe", error);
    if (process > 0 && !error && runs == std::filesystem::read_symlink("/proc/self/exe")) living.push_back(process);
  }
  return living;
}

/// Counts in three ways, which are the same before and after each call.
class Counter {
 public:
  explicit Counter(std::string folder) : folder_(std::move(folder)) {
    const std::ofstream lives(folder_ + "/" + std::to_string(getpid()));
    if (!many_.restored()) std::fill_n(many_.write(0, many_.size()).begin(), many_.size(), 0);
  }
  int add(int k) {
    number_.write() += k;
    for (int& one : many_.write(0, many_.size())) one += k;
    text_.write() = std::to_string(*number_);
    return *number_;
  }
  /// Whose process dies in the middle, the first time.
  int add_and_die(int k) {
    number_.write() += k;
    const std::string died = folder_ + "/died";
    if (!std::filesystem::exists(died)) {
      std::ofstream(died).close();
      kill(getpid(), SIGKILL);
    }
    number_.write() -= k;
    return add(k);
  }
  /// Whose process dies when it has been done, the first time: its answer may not have left.
  int add_and_soon_die(int k) {
    const int value = add(k);
    std::thread([] {
      std::this_thread::sleep_for(3ms);
      kill(getpid(), SIGKILL);
    }).detach();
    return value;
  }
  int throws(int k) {
    add(k);
    throw std::runtime_error("thrown at " + std::to_string(*number_));
  }
  int leave() {
    paceline::exit();
    return add(1);
  }
  int value() const {
    const auto is_it = [this](int one) { return one == *number_; };
    return std::all_of(many_.view().begin(), many_.view().end(), is_it) && *text_ == std::to_string(*number_) ? *number_
                                                                                                              : -1;
  }
  std::uint64_t inode() const;
  void too_late() { paceline::durable<int> late; }
#ifdef PACELINE_HAS_COROUTINES
  paceline::Async<int> later() { co_return 1; }
#endif

 private:
  std::string folder_;
  paceline::durable<int> number_{0};
  paceline::durable_array<int> many_{5000};
  paceline::durable<std::string> text_{"0"};
};

std::vector<std::uint64_t> states_of(const std::filesystem::path& process);
std::uint64_t Counter::inode() const {
  const auto states = states_of("/proc/self");
  return states.empty() ? 0 : states.front();
}

/// The results of so many additions of 1, `flight` of them under way.
std::vector<int> add_many(
    const paceline::Handle<Counter>& counter, int calls, int flight, const std::function<void()>& after_each = [] {}) {
  std::deque<paceline::Future<int>> under_way;
  std::vector<int> results;
  const auto take = [&] {
    const auto future = std::move(under_way.front());
    under_way.pop_front();
    if (!future.wait_for(kEnough)) std::abort();
    results.push_back(future.get());
    after_each();
  };
  for (int i = 0; i < calls; ++i) {
    under_way.push_back(counter.call(&Counter::add, 1));
    if (static_cast<int>(under_way.size()) >= flight) take();
  }
  while (!under_way.empty()) take();
  return results;
}

class Caller {
 public:
  std::vector<int> calls(paceline::Handle<Counter> counter, int calls, int flight) {
    return add_many(counter, calls, flight);
  }
};

/// kills FOLDER NODES FLIGHT: two callers add 2,000 times each; after some hundred answers the counter's process is
/// killed, again and again.
void kills(const std::string& folder, int nodes, int flight) {
  constexpr int kCalls = 2000;
  auto counter =
      paceline::create<Counter>({.name = "counter", .node = nodes - 1, .restarts = -1, .call_retries = -1}, folder);
  auto other = paceline::create<Caller>({.node = 0});
  int killed = 0;
  std::mt19937 random(static_cast<unsigned>(getpid()));
  unsigned left = 100;
  const auto kill_at_times = [&] {
    if (--left > 0) return;
    left = 100 + random() % 300;
    for (const int process : processes_of(folder)) killed += kill(process, SIGKILL) == 0 ? 1 : 0;
  };
  auto later = other.call(&Caller::calls, counter, kCalls, flight);
  auto results = add_many(counter, kCalls, flight, kill_at_times);
  expect(std::is_sorted(results.begin(), results.end()), "a caller's results are not in order");
  const auto others = later.get();
  expect(std::is_sorted(others.begin(), others.end()), "the other caller's results are not in order");
  results.insert(results.end(), others.begin(), others.end());
  std::sort(results.begin(), results.end());
  const bool each_once = [&] {
    for (std::size_t i = 0; i < results.size(); ++i)
      if (results[i] != static_cast<int>(i) + 1) return false;
    return true;
  }();
  expect(each_once, "each of the results from 1 to 4,000 came once");
  const int value = counter.call(&Counter::value).get();
  expect(value == 2 * kCalls, "4,000 additions of 1 give " + std::to_string(value));
  std::printf("%d kills\n", killed);
  expect(killed >= 3, "it was hardly ever killed");
}

/// half FOLDER: what a call had changed when its process died is undone; what was done is not done again.
void half(const std::string& folder) {
  auto counter = paceline::create<Counter>({.name = "counter", .restarts = -1, .call_retries = -1}, folder);
  expect(counter.call(&Counter::add, 5).get() == 5, "its first call");
  expect(counter.call(&Counter::add_and_die, 2).get() == 7, "a call that was cut short");
  expect(counter.call(&Counter::value).get() == 7, "the state after it");
  int value = 7;
  for (int i = 0; i < 20; ++i) {
    const int result = counter.call(&Counter::add_and_soon_die, 1).get();
    expect(result == ++value, "after " + std::to_string(i) + " deaths: " + std::to_string(result));
    std::this_thread::sleep_for(std::chrono::milliseconds(i));
  }
  const auto error = error_of([&] { (void)counter.call(&Counter::throws, 1).get(); });
  expect(has(error, "thrown at 28"), "what it threw: " + error);
  expect(counter.call(&Counter::value).get() == 28, "what was changed before counts");
}

/// unknown FOLDER: without call_retries the state is whole, too.
void unknown(const std::string& folder) {
  auto counter = paceline::create<Counter>({.name = "counter", .restarts = 1}, folder);
  expect(counter.call(&Counter::add, 5).get() == 5, "its first call");
  const auto error = error_of([&] { (void)counter.call(&Counter::add_and_die, 2).get(); });
  expect(has(error, "whether it has done this call is unknown"), "the call that was cut short: " + error);
  expect(counter.call(&Counter::value).get() == 5, "the state after it");
}

/// The inodes of durable state that a process has open.
std::vector<std::uint64_t> states_of(const std::filesystem::path& process) {
  std::vector<std::uint64_t> inodes;
  std::error_code error;
  for (std::filesystem::directory_iterator files(process / "fd", error), end; !error && files != end;
       files.increment(error)) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(files->path(), gone).string();
    struct stat status {};
    if (!gone && has(target, "memfd:paceline-durable") && ::stat(files->path().c_str(), &status) == 0)
      inodes.push_back(status.st_ino);
  }
  return inodes;
}

bool is_open_anywhere(std::uint64_t inode) {
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    const auto states = states_of(process.path());
    if (std::find(states.begin(), states.end(), inode) != states.end()) return true;
  }
  return false;
}

/// released FOLDER: nothing is left of the state when the actor has ended, in whichever way.
void released(const std::string& folder) {
  const auto goes = [](std::uint64_t inode) {
    for (int i = 0; i < 1000 && is_open_anywhere(inode); ++i) std::this_thread::sleep_for(20ms);
    return inode != 0 && !is_open_anywhere(inode);
  };
  auto counter = paceline::create<Counter>({.restarts = -1, .call_retries = -1}, folder);
  auto inode = counter.call(&Counter::inode).get();
  expect(is_open_anywhere(inode), "there is some");
  for (const int process : processes_of(folder)) kill(process, SIGKILL);
  expect(counter.call(&Counter::inode).get() == inode, "it is the same after a restart");
  counter = {};
  expect(goes(inode), "state of an actor whose last handle is gone");
  counter = paceline::create<Counter>({.restarts = -1}, folder);
  inode = counter.call(&Counter::inode).get();
  (void)counter.call(&Counter::leave).get();
  expect(goes(inode), "state of an actor that has called exit()");
  counter = paceline::create<Counter>({.restarts = 1, .call_retries = -1}, folder);
  inode = counter.call(&Counter::inode).get();
  for (int i = 0; i < 2; ++i) {
    for (const int process : processes_of(folder)) kill(process, SIGKILL);
    (void)error_of([&] { (void)counter.call(&Counter::add, 1).get(); });
  }
  expect(goes(inode), "state of an actor that is dead");
}

class TooMany {
 public:
  int one() const { return *number_; }

 private:
  paceline::durable<int> number_{1};
};

class Changing {
 public:
  explicit Changing(std::string file) {
    if (!std::filesystem::exists(file)) number_ = std::make_unique<paceline::durable<int>>(1);
    std::ofstream(file.c_str());
  }
  int process() const { return getpid(); }

 private:
  std::unique_ptr<paceline::durable<int>> number_;
};

/// refused FOLDER: what cannot be durable says so.
void refused(const std::string& folder) {
  const auto several = paceline::create<TooMany>({.restarts = 1, .concurrency = 2});
  const auto error = error_of([&] { (void)several.call(&TooMany::one).get(); });
  expect(has(error, "durable state in an actor that runs several calls at a time"), "concurrency: " + error);
  auto without = paceline::create<TooMany>({.concurrency = 2});
  expect(without.call(&TooMany::one).get() == 1, "an actor that is not started again");
  auto counter = paceline::create<Counter>({.restarts = 1}, folder);
  const auto late = error_of([&] { counter.call(&Counter::too_late).get(); });
  expect(has(late, "made in an actor's constructor, not in its methods"), "in a method: " + late);
#ifdef PACELINE_HAS_COROUTINES
  const auto coroutine = error_of([&] { (void)counter.call(&Counter::later).get(); });
  expect(has(coroutine, "a coroutine method of an actor with durable state"), "a coroutine: " + coroutine);
#endif
  auto changing = paceline::create<Changing>({.restarts = 1, .call_retries = -1}, folder + "/changing");
  kill(changing.call(&Changing::process).get(), SIGKILL);
  const auto other = error_of([&] { (void)changing.call(&Changing::process).get(); });
  expect(has(other, "has made 0 durable members, and 1 before") || other.empty(), "another constructor: " + other);
}

class Large {
 public:
  explicit Large(std::size_t count) : values_(count) {
    if (values_.restored()) return;
    const auto all = values_.write(0, count);
    for (std::size_t i = 0; i < count; ++i) all[i] = i;
  }
  int process() const { return getpid(); }
  std::uint64_t change(std::size_t i) { return ++values_.write(i, 1)[0] - i; }
  bool is_whole(std::size_t except, std::uint64_t more) const {
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (values_[i] != i + (i == except ? more : 0)) return false;
    return true;
  }

 private:
  paceline::durable_array<std::uint64_t> values_;
};

/// large FOLDER MIB ROUNDS: prints how long a restart with so much state takes, from the kill to the next answer.
void large(const std::string&, int mib, int rounds) {
  const std::size_t count = (static_cast<std::size_t>(mib) << 20) / sizeof(std::uint64_t);
  auto large = paceline::create<Large>({.restarts = -1, .call_retries = -1}, count);
  std::vector<double> took;
  for (int i = 0; i < rounds; ++i) {
    const int process = large.call(&Large::process).get();
    const auto begin = Clock::now();
    kill(process, SIGKILL);
    const auto changed = large.call(&Large::change, count / 2).get();
    took.push_back(1e3 * since(begin));
    expect(changed == static_cast<std::uint64_t>(i) + 1, "a change was lost");
  }
  expect(large.call(&Large::is_whole, count / 2, static_cast<std::uint64_t>(rounds)).get(), "the state is whole");
  std::sort(took.begin(), took.end());
  std::printf("%d MiB, from the kill to the next answer: median %.1f ms, least %.1f, most %.1f\n", mib,
              took[took.size() / 2], took.front(), took.back());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "", folder = argc > 2 ? argv[2] : "";
  const auto number = [&](int i) { return argc > i ? std::atoi(argv[i]) : 0; };
  if (what == "kills")
    kills(folder, number(3), number(4));
  else if (what == "half")
    half(folder);
  else if (what == "unknown")
    unknown(folder);
  else if (what == "released")
    released(folder);
  else if (what == "refused")
    refused(folder);
  else if (what == "large")
    large(folder, number(3), number(4));
  else
    expect(false, "there is no '" + what + "'");
  return paceline::test::exit_status();
}
