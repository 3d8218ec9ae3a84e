// Pools of actors and queues: an actor script whose first argument says which, and which checks its own answers. Exit
// status 0: all were right.
#include <paceline.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using namespace std::chrono_literals;
using paceline::Queue;
using paceline::test::error_of;
using paceline::test::expect;
using paceline::test::has;

class Numbers {
 public:
  explicit Numbers(int first_ms) : first_ms_(first_ms) {}
  int square(int x) {
    if (calls_++ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(first_ms_));
    if (x < 0) throw std::out_of_range("no negative ones");
    return x * x;
  }
  int calls() const { return calls_; }
  int process() const { return getpid(); }

 private:
  int first_ms_;
  int calls_ = 0;
};

/// The one whose first call takes long has one call, the others all the rest.
void slow_ones_get_fewer() {
  std::vector<paceline::Handle<Numbers>> actors{paceline::create<Numbers>(1500)};
  for (int i = 0; i < 2; ++i) actors.push_back(paceline::create<Numbers>(0));
  paceline::ActorPool<Numbers> pool(actors);
  std::vector<int> values(300);
  std::iota(values.begin(), values.end(), 0);
  const auto squares = pool.map(&Numbers::square, values);
  for (int i = 0; i < 300; ++i) expect(squares.at(static_cast<std::size_t>(i)) == i * i, "a square");
  const int slow = actors[0].call(&Numbers::calls).get();
  expect(slow < 100, "the slow one had " + std::to_string(slow));
  const auto error = error_of([&] { (void)pool.map(&Numbers::square, std::vector{1, -1, 2}); });
  expect(has(error, "element 1: ") && has(error, "no negative ones"), "the first error: " + error);
}

void the_dead_get_nothing() {
  auto actors = paceline::create_many<Numbers>({.count = 2}, 0);
  paceline::ActorPool<Numbers> pool(actors);
  kill(actors[1].call(&Numbers::process).get(), SIGKILL);
  int failed = 0;
  for (int i = 0; i < 100; ++i) failed += error_of([&] { (void)pool.call(&Numbers::square, i).get(); }).empty() ? 0 : 1;
  expect(failed >= 1 && failed < 10, std::to_string(failed) + " of 100 calls went to the dead one");
}

long consume(const Queue<long>& queue, int ms) {
  long sum = 0;
  while (const auto value = queue.get()) {
    sum += *value;
    if (ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  }
  return sum;
}

void produce(const Queue<long>& queue, long first, long count) {
  for (long i = 0; i < count; ++i) queue.put(first + i);
}

/// Actors, so that none waits for a cpu that another one holds.
class Worker {
 public:
  long consume(const Queue<long>& queue) { return ::consume(queue, 0); }
  void produce(const Queue<long>& queue, long first, long count) { ::produce(queue, first, count); }
};

void each_value_comes_once(long count) {
  auto queue = paceline::make_queue<long>({.capacity = 10, .actor = {.name = "values"}});
  auto workers = paceline::create_many<Worker>({.count = 4});
  std::vector<paceline::Future<long>> sums;
  for (int i = 0; i < 2; ++i) sums.push_back(workers.at(static_cast<std::size_t>(i)).call(&Worker::consume, queue));
  std::vector<paceline::Future<void>> puts;
  for (long i = 0; i < 2; ++i)
    puts.push_back(workers.at(static_cast<std::size_t>(2 + i)).call(&Worker::produce, queue, i * count, count));
  paceline::get(puts);
  expect(queue.size() <= 10, "it holds no more than it may");
  queue.close();
  long sum = 0;
  for (const auto& one : sums) sum += one.get();
  expect(sum == (2 * count - 1) * count, "each once: " + std::to_string(sum));
  expect(has(error_of([&] { queue.put(1); }), "put() into a queue that is closed"), "closed");
}

void deadlines() {
  auto queue = paceline::make_queue<std::string>({.capacity = 1});
  const auto begin = paceline::test::Clock::now();
  expect(!queue.get(100ms), "there is none");
  expect(queue.put("one", 100ms) && !queue.put("two", 100ms), "there is room for one");
  expect(paceline::test::since(begin) >= 0.2, "it waited");
  auto waits = queue.put_async("three");
  expect(queue.get() == "one" && waits.get() && queue.get(1s) == "three", "who waits has the room that is made");
  paceline::kill(queue.actor());
  expect(!error_of([&] { (void)queue.get(); }).empty(), "its process is gone");
}

void same_name() {
  const paceline::QueueOptions options{.actor = {.name = "jobs", .get_if_exists = true}};
  auto one = paceline::make_queue<int>(options), other = paceline::make_queue<int>(options);
  one.put(5);
  expect(other.get(5s) == 5, "it is the same queue");
}

/// An actor that ends is not waited for by those that it would have given something.
void owner_goes() {
  auto queue = paceline::make_queue<long>();
  auto gets = queue.get_async();
  queue = {};
  (void)gets.wait_for(100ms);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "pool")
    slow_ones_get_fewer();
  else if (what == "dead")
    the_dead_get_nothing();
  else if (what == "once")
    each_value_comes_once(std::atol(argv[2]));
  else if (what == "deadlines")
    deadlines();
  else if (what == "name")
    same_name();
  else if (what == "left")
    owner_goes();
  else
    expect(false, "no such case: " + what);
  return paceline::test::exit_status();
}
