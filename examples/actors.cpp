// Any class is an actor: it lives in a process of its own, and its methods are called with messages.
#include <paceline.h>

#include <iostream>
#include <stdexcept>

class Counter {
 public:
  explicit Counter(int start) : n_(start) {}
  int add(int k) {
    if (k < 0) throw std::invalid_argument("a counter only counts up");
    return n_ += k;
  }

 private:
  int n_;
};

// Handles are arguments like any others: this actor calls the other one.
class Relay {
 public:
  explicit Relay(paceline::Handle<Counter> counter) : counter_(counter) {}
  int twice(int k) {
    counter_.call(&Counter::add, k);
    return counter_.call(&Counter::add, k).get();
  }

 private:
  paceline::Handle<Counter> counter_;
};

int main() {
  auto counter = paceline::create<Counter>({.name = "counter"}, 10);
  auto relay = paceline::create<Relay>(counter);
  std::cout << relay.call(&Relay::twice, 5).get() << '\n';  // 20

  try {
    counter.call(&Counter::add, -1).get();
  } catch (const paceline::TaskError& error) {  // What the method threw, with the actor, its worker and its log.
    std::cout << error.what() << '\n';
    if (error.kind() == paceline::ErrorKind::disconnected) return 1;  // Its process is gone: nobody threw anything.
  }

  const auto here = paceline::create<Counter>({.name = "here", .node = 0}, 0);
  std::cout << "actor " << to_string(here.id()) << '\n';

  auto many = paceline::create_many<Counter>({.name = "many", .count = 3}, 100);
  int sum = 0;
  for (int i = 0; i < 3; ++i) sum += many[static_cast<std::size_t>(i)].call(&Counter::add, i).get();
  std::cout << sum << '\n';  // 303
}
