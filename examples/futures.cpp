// Futures: several at once, deadlines, functions of results, tasks over a whole range, and tasks that nobody wants any
// more.
#include <paceline.h>

#include <chrono>
#include <iostream>
#include <stop_token>
#include <string>
#include <vector>

using namespace std::chrono_literals;

int square(int x) { return x * x; }

/// Looks now and then whether somebody still wants it.
long count_up() {
  long n = 0;
  while (!paceline::cancelled()) ++n;
  return n;
}

/// The same, for code that knows tokens.
long count_with(std::stop_token stop) {
  long n = 0;
  while (!stop.stop_requested()) ++n;
  return n;
}

int main() {
  // Whichever is there first.
  std::vector<paceline::Future<int>> left;
  for (int i = 1; i <= 10; ++i) left.push_back(paceline::async(square, i));
  int sum = 0;
  while (!left.empty()) {
    auto waited = paceline::wait(std::move(left), {.count = 1, .timeout = 10s});
    for (const auto& one : waited.ready) sum += one.get();
    left = std::move(waited.pending);
  }
  std::cout << sum << '\n';  // 385

  // Several of any types, all within ten seconds.
  auto a = paceline::async(square, 3);
  auto text = a.then([](int x) { return std::to_string(x) + " is nine"; });  // Runs here, when `a` is there.
  const auto [nine, words] = paceline::get({.timeout = 10s}, a, text);
  std::cout << nine << ": " << words << '\n';

  // One task an element, at most a hundred of them at a time; and each index once, a thousand of them a task.
  const std::vector<int> squares =
      paceline::map(square, std::vector{1, 2, 3}, {.task = {.cpus = 0.5}, .in_flight = 100});
  std::cout << squares.back() << '\n';  // 9
  paceline::parallel_for(0, 10'000, [](int i) { square(i); }, {.task = {.retries = 1}, .chunk = 1'000, .in_flight = 4});

  // A deadline takes nothing away.
  auto endless = paceline::async(count_up);
  try {
    endless.get(100ms);
  } catch (const paceline::TaskError& error) {
    std::cout << "not yet: " << error.what() << '\n';
  }
  if (paceline::cancel(endless) == paceline::Cancelled::told) std::cout << "told to stop\n";

  auto stubborn = paceline::async([] { return count_with(paceline::stop_token()); });
  paceline::cancel(stubborn, {.force = true});  // Ends its worker, if it has begun.
  try {
    stubborn.get();
  } catch (const paceline::TaskError& error) {
    std::cout << error.what() << '\n';  // task ... was cancelled
  }
}
