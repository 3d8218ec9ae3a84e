// Several actors that do the same, of which each call takes one that is free; and a queue, by which some processes hand
// values to others.
#include <paceline.h>

#include <chrono>
#include <iostream>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

class Counter {
 public:
  /// The first call takes long: others take the words that come next.
  int letters(const std::string& word) {
    if (words_++ == 0) std::this_thread::sleep_for(100ms);
    return static_cast<int>(word.size());
  }

 private:
  int words_ = 0;
};

int consume(const paceline::Queue<int>& queue) {
  int sum = 0;
  while (const auto value = queue.get()) sum += *value;  // Until it is closed, and empty.
  return sum;
}

/// In an actor's coroutine other calls go on while it waits.
class Consumer {
 public:
  paceline::Async<int> next(paceline::Queue<int> queue) {
    const std::optional<int> value = co_await queue.get_async(1s);
    co_return value.value_or(-1);
  }
};

int main() {
  paceline::ActorPool<Counter> pool(paceline::create_many<Counter>({.count = 3}), {.in_flight = 2});
  const std::vector<std::string> words{"each", "of", "them", "to", "whoever", "is", "free"};
  const std::vector<int> letters = pool.map(&Counter::letters, words);
  std::cout << std::accumulate(letters.begin(), letters.end(), 0) << " letters, counted by " << pool.size() << '\n';
  std::cout << pool.call(&Counter::letters, "one").get() << '\n';

  auto queue = paceline::make_queue<int>({.capacity = 100, .actor = {.name = "numbers"}});
  auto first = paceline::async(consume, queue), second = paceline::async(consume, queue);
  for (int i = 1; i <= 1000; ++i) queue.put(i);  // Waits while a hundred are in it.
  queue.close();
  std::cout << first.get() + second.get() << '\n';  // 500500

  auto other = paceline::make_queue<int>();
  auto consumer = paceline::create<Consumer>();
  auto next = consumer.call(&Consumer::next, other);
  if (other.put_async(7).get()) std::cout << next.get() << '\n';  // 7
  std::cout << other.size() << " left\n";
}
