// Calls of a method that does nothing, in calls a second: one at a time, pipelined, and of one caller to four actors;
// and tasks that do nothing.
//   paceline run actor_calls [SECONDS]       a JSON line each: {"name": ..., "per_second": ...}
#include <paceline.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

class Counter {
 public:
  int add(int by) { return sum_ += by; }

 private:
  int sum_ = 0;
};

/// `call` makes some calls, whose number it returns, until the time is up.
template <class Calls>
void measure(const char* name, double seconds, Calls call) {
  for (int i = 0; i < 20; ++i) call();  // The way there is found, and every page touched.
  const auto begin = Clock::now();
  double passed = 0;
  long done = 0;
  while (passed < seconds) {
    done += call();
    passed = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::printf("{\"name\": \"%s\", \"per_second\": %.0f}\n", name, static_cast<double>(done) / passed);
}

int one() { return 1; }

int all_of(std::vector<paceline::Future<int>>& sums) {
  for (auto& sum : sums) sum.get();
  return static_cast<int>(sums.size());
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  auto counter = paceline::create<Counter>();
  measure("1_1_actor_calls_sync", seconds, [&] {
    counter.call(&Counter::add, 1).get();
    return 1;
  });
  measure("1_1_actor_calls_async", seconds, [&] {
    std::vector<paceline::Future<int>> sums;
    for (int i = 0; i < 1000; ++i) sums.push_back(counter.call(&Counter::add, 1));
    return all_of(sums);
  });
  auto four = paceline::create_many<Counter>({.count = 4});
  measure("1_n_actor_calls_async", seconds, [&] {
    std::vector<paceline::Future<int>> sums;
    for (int i = 0; i < 1000; ++i) sums.push_back(four[static_cast<std::size_t>(i) % 4].call(&Counter::add, 1));
    return all_of(sums);
  });
  measure("single_client_tasks_sync", seconds, [&] {
    paceline::async(one).get();
    return 1;
  });
  measure("single_client_tasks_async", seconds, [&] {
    std::vector<paceline::Future<int>> sums;
    for (int i = 0; i < 1000; ++i) sums.push_back(paceline::async(one));
    return all_of(sums);
  });
}
