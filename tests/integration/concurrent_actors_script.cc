// Actors whose calls run at a time: an actor script whose first argument says what happens; it checks its own answers.
// Exit status 0: all were right.
#include <paceline.h>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using namespace std::chrono_literals;
using paceline::Async;
using paceline::Future;
using paceline::Handle;
using paceline::test::error_of;
using paceline::test::expect;
using paceline::test::has;

/// Data that several threads use.
class Room {
 public:
  /// Returns when so many are here.
  int meet(int count) {
    std::unique_lock lock(mutex_);
    ++here_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return here_ >= count; });
    return count;
  }
  int here() const {
    std::lock_guard lock(mutex_);
    return here_;
  }
  void leave() {
    std::lock_guard lock(mutex_);
    here_ = 0;
  }
  int add(int k) { return sum_ += k; }
  void note(int k) {
    std::lock_guard lock(mutex_);
    notes_.push_back(k);
  }
  std::vector<int> notes() const {
    std::lock_guard lock(mutex_);
    return notes_;
  }
  int fail(int k) const { throw std::out_of_range("number " + std::to_string(k)); }
  /// Until somebody cancels it.
  int turn(int k) {
    ++turning_;
    while (!paceline::cancelled()) std::this_thread::sleep_for(1ms);
    --turning_;
    return k;
  }
  int turning() const { return turning_; }
  int process() const { return getpid(); }
  /// Whether it goes on where it began, after so many waits.
  Async<bool> stays(int waits) {
    const auto thread = std::this_thread::get_id();
    bool same = true;
    for (int i = 0; i < waits; ++i) {
      co_await paceline::sleep_for(1ms);
      same = same && std::this_thread::get_id() == thread;
      co_await paceline::async([](int k) { return k; }, i);
      same = same && std::this_thread::get_id() == thread;
    }
    co_return same;
  }
  /// Calls `other`, which calls this one, so often.
  int bounce(Handle<Room> self, Handle<Room> other, int times) {
    return times == 0 ? 0 : 1 + other.call(&Room::bounce, other, self, times - 1).get();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int here_ = 0;
  std::vector<int> notes_;
  std::atomic<int> sum_{0};
  std::atomic<int> turning_{0};
};

/// together THREADS
void together(int threads) {
  auto room = paceline::create<Room>({.concurrency = threads});
  for (int round = 0; round < 3; ++round) {
    std::vector<Future<int>> meetings;
    for (int i = 0; i < threads; ++i) meetings.push_back(room.call(&Room::meet, threads));
    for (const auto& each : meetings) expect(each.get() == threads, "those that meet");
    room.call(&Room::leave).get();
  }
  std::vector<Future<int>> failing;
  for (int i = 0; i < 100; ++i) failing.push_back(room.call(&Room::fail, i));
  for (int i = 0; i < 100; ++i) {
    const auto error = error_of([&] { (void)failing[static_cast<std::size_t>(i)].get(); });
    expect(has(error, "number " + std::to_string(i)), "what each threw: " + error);
  }
}

void groups(int nodes) {
  auto room = paceline::create<Room>({.node = nodes - 1, .groups = {{"doors", 1}, {"others", 3}}});
  const auto waits = room.call(&Room::meet, 5);  // Keeps the thread of what is in no group.
  std::vector<Future<void>> notes;
  for (int i = 0; i < 1000; ++i) notes.push_back(room.in_group("doors").call(&Room::note, i));
  for (const auto& each : notes) each.get();
  const auto noted = room.in_group("others").call(&Room::notes).get();
  bool in_order = noted.size() == 1000;
  for (std::size_t i = 0; in_order && i < noted.size(); ++i) in_order = noted[i] == static_cast<int>(i);
  expect(in_order, "a group of one thread keeps the order");
  expect(!waits.ready(), "one still waits");
  std::vector<Future<int>> meetings;
  for (int i = 0; i < 3; ++i) meetings.push_back(room.in_group("others").call(&Room::meet, 5));
  meetings.push_back(room.in_group("doors").call(&Room::meet, 5));
  for (const auto& each : meetings) expect(each.get() == 5, "one of another group");
  expect(waits.get() == 5, "what the others have ended");
  const auto error = error_of([&] { (void)room.in_group("windows").call(&Room::here).get(); });
  expect(has(error, "no concurrency group 'windows'"), "a group that is not there: " + error);
  auto plain = paceline::create<Room>();
  expect(has(error_of([&] { (void)plain.in_group("doors").call(&Room::here).get(); }), "no concurrency group 'doors'"),
         "a group of an actor without any");
  expect(plain.call(&Room::here).get() == 0, "it goes on");
}

void coroutines(int count) {
  auto room = paceline::create<Room>({.concurrency = 4});
  std::vector<Future<bool>> all;
  for (int i = 0; i < count; ++i) all.push_back(room.call(&Room::stays, 5));
  for (const auto& each : all) expect(each.get(), "a coroutine goes on where it began");
}

/// flood COUNT: from several threads.
void flood(int count) {
  auto room = paceline::create<Room>({.concurrency = 8});
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      std::vector<Future<int>> calls;
      for (int i = 0; i < count; ++i) calls.push_back(room.call(&Room::add, 1));
      for (const auto& call : calls) (void)call.get();
    });
  }
  for (auto& caller : callers) caller.join();
  expect(room.call(&Room::add, 0).get() == 4 * count, "each has run once");
}

void killed(int count) {
  auto room = paceline::create<Room>({.concurrency = 4, .groups = {{"others", 1}}});
  std::vector<Future<int>> calls;
  for (int i = 0; i < count; ++i) calls.push_back(room.call(&Room::meet, 5));
  kill(room.in_group("others").call(&Room::process).get(), SIGKILL);
  for (const auto& call : calls) {
    const auto error = error_of([&] { (void)call.get(); });
    expect(has(error, "is dead"), "a call of a killed actor: " + error);
  }
}

void cancelled() {
  auto room = paceline::create<Room>({.concurrency = 3, .groups = {{"others", 1}}});
  std::vector<Future<int>> turning;
  for (int i = 0; i < 5; ++i) turning.push_back(room.call(&Room::turn, i));
  const auto others = room.in_group("others");
  while (others.call(&Room::turning).get() < 3) std::this_thread::sleep_for(1ms);
  (void)paceline::cancel(turning[4]);  // Waits.
  (void)paceline::cancel(turning[1]);  // Runs; the one behind it begins.
  for (const int i : {4, 1}) {
    const auto error = error_of([&] { (void)turning[static_cast<std::size_t>(i)].get(); });
    expect(has(error, "cancelled"), "one that was cancelled: " + error);
  }
  while (others.call(&Room::turning).get() < 3) std::this_thread::sleep_for(1ms);
  for (const int i : {0, 2, 3}) {
    expect(!turning[static_cast<std::size_t>(i)].ready(), "the others go on");
    (void)paceline::cancel(turning[static_cast<std::size_t>(i)]);
  }
  for (const int i : {0, 2, 3})
    expect(has(error_of([&] { (void)turning[static_cast<std::size_t>(i)].get(); }), "cancelled"), "the others end");
}

void restarted() {
  auto room = paceline::create<Room>({.restarts = 1, .call_retries = 1, .concurrency = 4, .groups = {{"others", 2}}});
  for (int life = 0; life < 2; ++life) {
    std::vector<Future<int>> meetings;
    for (int i = 0; i < 4; ++i) meetings.push_back(room.call(&Room::meet, 6));
    for (int i = 0; i < 2; ++i) meetings.push_back(room.in_group("others").call(&Room::meet, 6));
    for (const auto& each : meetings) expect(each.get() == 6, "those that meet in life " + std::to_string(life));
    // It may have taken calls of the next life by then: they are made again.
    if (life == 0) kill(room.call(&Room::process).get(), SIGKILL);
  }
}

void circle(int nodes) {
  auto a = paceline::create<Room>({.node = 0, .concurrency = 8});
  auto b = paceline::create<Room>({.node = nodes - 1, .concurrency = 8});
  expect(a.call(&Room::bounce, a, b, 10).get() == 10, "two that call each other");
}

void refused() {
  const auto made = [](const paceline::ActorOptions& options) {
    return error_of([&] { (void)paceline::create<Room>(options); });
  };
  expect(has(made({.concurrency = 0}), "at least 1"), "no thread at all");
  expect(has(made({.concurrency = 1025}), "at most 1024"), "too many threads");
  expect(has(made({.groups = {{"a", 1}, {"a", 1}}}), "two concurrency groups 'a'"), "a name twice");
  expect(has(made({.groups = {{"", 1}}}), "1 to 255 bytes"), "a group without a name");
  expect(has(made({.groups = {{"a", 0}}}), "needs at least 1"), "a group without a thread");
  auto many = paceline::create<Room>({.concurrency = 1024});
  expect(many.call(&Room::here).get() == 0, "as many as can be");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  if (what == "together")
    together(number);
  else if (what == "groups")
    groups(number);
  else if (what == "coroutines")
    coroutines(number);
  else if (what == "flood")
    flood(number);
  else if (what == "killed")
    killed(number);
  else if (what == "cancelled")
    cancelled();
  else if (what == "restarted")
    restarted();
  else if (what == "circle")
    circle(number);
  else if (what == "refused")
    refused();
  else
    expect(false, "no such case: " + what);
  return paceline::test::exit_status();
}
