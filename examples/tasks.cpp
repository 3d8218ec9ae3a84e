// Any function is a task: it runs on some worker, and a future is an argument like any other.
#include <paceline.h>

#include <chrono>
#include <iostream>
#include <vector>

int square(int x) { return x * x; }

int main() {
  auto a = paceline::async(square, 7);  // Future<int>
  auto b = paceline::async(square, a);  // runs when `a` is there
  auto c = paceline::async(
      {.retries = 1}, [](int x, int y) { return x + y; }, a, b);
  std::cout << c.get() << '\n';  // 49 + 2401 = 2450

  const auto heavy = paceline::async({.cpus = 0.5}, square, 3);  // Two of these share a core.
  while (heavy.valid() && !heavy.ready())
    if (!heavy.wait_for(std::chrono::seconds(2))) std::cout << "still waiting\n";

  std::vector<paceline::Future<int>> squares;
  for (int i = 1; i <= 100; ++i) squares.push_back(paceline::async(square, i));
  int sum = 0;
  for (const auto& one : squares) sum += one.get();
  std::cout << sum << '\n';  // 338350
}
