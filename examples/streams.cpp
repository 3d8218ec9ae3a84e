// Streams: a task, or a method of an actor, whose caller reads values as they are made, and which waits while nobody
// reads.
#include <paceline.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

/// As many as somebody wants.
paceline::Generator<int> primes() {
  std::vector<int> found;
  for (int n = 2;; ++n) {
    if (std::any_of(found.begin(), found.end(), [n](int prime) { return n % prime == 0; })) continue;
    found.push_back(n);
    co_yield n;
  }
}

class Text {
 public:
  explicit Text(std::string text) : text_(std::move(text)) {}
  paceline::Generator<std::string> words() {
    std::istringstream words(text_);
    for (std::string word; words >> word;) co_yield word;
  }

 private:
  std::string text_;
};

class Sums {
 public:
  paceline::Async<int> first(int count) {
    auto stream = paceline::async(primes);
    int sum = 0;
    for (int i = 0; i < count; ++i) sum += (co_await stream.next_async()).value();
    co_return sum;
  }
};

int main() {
  auto stream = paceline::async({.ahead = 10}, primes);  // Computes ten that nobody has read yet, and waits.
  for (const int prime : stream) {
    std::cout << prime << '\n';
    if (prime > 10) break;
  }
  std::cout << "and then " << stream.next(10s).value() << '\n';  // 13
  paceline::cancel(stream);

  auto text = paceline::create<Text>("to be or not to be");
  auto words = text.call(&Text::words);
  int count = 0;
  while (const auto word = words.next()) count += word->size() == 2 ? 1 : 0;
  std::cout << count << " words of two letters\n";  // 5

  auto sums = paceline::create<Sums>();
  std::cout << sums.call(&Sums::first, 10).get() << '\n';  // 129

  auto numbers = primes();  // Here, without a task.
  if (words.valid()) std::cout << "the first is " << *numbers.next() << '\n';
  for (const int prime : primes())
    if (prime > 100) return 0;
}
