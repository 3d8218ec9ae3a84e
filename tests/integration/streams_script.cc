// Streams: an actor script whose first argument says which, and which checks its own answers. Exit status 0: all were
// right.
#include <paceline.h>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using namespace std::chrono_literals;
using paceline::Generator;
using paceline::Stream;
using paceline::test::error_of;
using paceline::test::expect;
using paceline::test::has;

Generator<int> up_to(int last) {
  for (int i = 1; i <= last; ++i) co_yield i;
}

/// Says in `file` how many it has made.
Generator<int> counted(std::string file, int last) {
  for (int i = 1; i <= last; ++i) {
    std::ofstream(file) << i << '\n';
    co_yield i;
  }
}
int count_in(const std::string& file) {
  int count = 0;
  std::ifstream(file) >> count;
  return count;
}
/// Once it has not changed for a while.
int settled(const std::string& file) {
  int count = -1;
  for (int now = count_in(file); now != count; now = count_in(file)) {
    count = now;
    std::this_thread::sleep_for(300ms);
  }
  return count;
}

Generator<int> fails_after(int values) {
  for (int i = 1; i <= values; ++i) co_yield i;
  throw std::out_of_range("no more of them");
}

Generator<std::vector<char>> large(int count, int bytes) {
  for (int i = 0; i < count; ++i)
    co_yield std::vector<char>(static_cast<std::size_t>(bytes), static_cast<char>('a' + i));
}

/// Its process dies once, in the middle.
Generator<int> dies_once(std::string file, int last) {
  for (int i = 1; i <= last; ++i) {
    if (i == last / 2 && count_in(file) == 0) {
      std::ofstream(file) << 1 << std::flush;
      kill(getpid(), SIGKILL);
    }
    co_yield i;
  }
}

/// Says in `file` that it has ended.
Generator<int> endless(std::string file) {
  struct AtItsEnd {
    std::string file;
    ~AtItsEnd() { std::ofstream(file) << (paceline::cancelled() ? 2 : 1); }
  } at_its_end{file};
  for (int i = 1;; ++i) co_yield i;
}

Generator<double> slow(int count) {
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(400ms);
    co_yield i;
  }
}

class Numbers {
 public:
  explicit Numbers(int factor) : factor_(factor) {}
  Generator<long> times(int count) {
    for (int i = 1; i <= count; ++i) {
      last_ = i;
      co_yield static_cast<long>(i) * factor_;
    }
  }
  int last() const { return last_; }
  int process() const { return getpid(); }

 private:
  std::atomic<int> last_{0};
  int factor_;
};

template <class T>
void expect_counts(const Stream<T>& stream, long from, long to, long factor = 1) {
  long next = from;
  for (const T value : stream) expect(value == static_cast<T>(next++ * factor), "a value came out of turn");
  expect(next == to + 1, "there were " + std::to_string(next - from) + " values");
}

void order(int count) {
  expect_counts(paceline::async(up_to, count), 1, count);
  expect_counts(paceline::async(up_to, 0), 1, 0);
  expect_counts(paceline::async({.ahead = 1}, up_to, 100), 1, 100);
  auto numbers = paceline::create<Numbers>(3);
  expect_counts(numbers.call(&Numbers::times, count), 1, count, 3);
  expect_counts(numbers.call(&Numbers::times, 50), 1, 50, 3);
  // Many at a time, read in turns.
  std::vector<Stream<int>> streams;
  for (int i = 0; i < 20; ++i) streams.push_back(paceline::async(up_to, 100 + i));
  for (int value = 1; value <= 100; ++value)
    for (auto& stream : streams) expect(stream.next() == value, "one of many streams");
  for (int i = 0; i < 20; ++i) expect_counts(streams[static_cast<std::size_t>(i)], 101, 100 + i);
}

void backpressure(const std::string& folder) {
  const auto file = folder + "/made";
  auto stream = paceline::async({.ahead = 10}, counted, file, 1000);
  expect(stream.next() == 1, "the first one");
  const int before = settled(file);
  expect(before >= 10 && before <= 12, "it was ahead by " + std::to_string(before));
  for (int i = 2; i <= 100; ++i) expect(stream.next() == i, "a value");
  const int after = settled(file);
  expect(after > 100 && after <= 112, "it is ahead by " + std::to_string(after - 100));
  // Of 1 MiB each, and 64 MiB may be on their way.
  auto megabytes = paceline::async({.ahead = 1000}, large, 20, 20 << 20);
  for (int i = 0; i < 20; ++i) {
    const auto value = megabytes.next();
    expect(value && value->size() == (20u << 20) && value->back() == 'a' + i, "a large value");
  }
  expect(!megabytes.next(), "an end");
}

void errors() {
  auto stream = paceline::async(fails_after, 3);
  for (int i = 1; i <= 3; ++i) expect(stream.next() == i, "a value before the error");
  for (int i = 0; i < 2; ++i) {
    const auto error = error_of([&] { (void)stream.next(); });
    expect(has(error, "out_of_range") && has(error, "no more of them") && has(error, "worker"), "the error: " + error);
  }
  expect(has(error_of([] { (void)paceline::async({.ahead = 0}, up_to, 3); }), "from 1"), "0 ahead");
  expect(has(error_of([] { (void)Stream<int>().next(); }), "an empty stream"), "an empty stream");
  auto late = paceline::async({.timeout = 300ms}, slow, 10);
  const auto error = error_of([&] {
    while (late.next()) {
    }
  });
  expect(has(error, "0.3 s"), "too late: " + error);
}

void dropped(const std::string& folder) {
  const auto file = folder + "/ended";
  expect(paceline::async(endless, file).next() == 1, "a value of a stream that is dropped");
  for (int i = 0; i < 200 && count_in(file) == 0; ++i) std::this_thread::sleep_for(50ms);
  expect(count_in(file) == 2, "its generator has ended, and could know why");
  auto stream = paceline::async(endless, file + "-other");
  expect(stream.next() == 1, "a value");
  expect(paceline::cancel(stream) == paceline::Cancelled::told, "it ran");
  const auto error = error_of([&] {
    while (stream.next()) {
    }
  });
  expect(has(error, "cancelled"), "cancelled: " + error);
  // The worker is free again.
  expect_counts(paceline::async(up_to, 10), 1, 10);
}

void timeouts() {
  auto stream = paceline::async(slow, 3);
  int late = 0;
  for (int i = 0; i < 3;) {
    try {
      expect(stream.next(150ms) == i, "none is lost");
      ++i;
    } catch (const paceline::TaskError& error) {
      expect(error.kind() == paceline::ErrorKind::timed_out, error.what());
      ++late;
    }
  }
  expect(late > 0, "some waits were too short");
  expect(stream.next() == std::nullopt, "the end");
}

void dies(const std::string& folder, int count) {
  expect_counts(paceline::async({.retries = 1}, dies_once, folder + "/died", count), 1, count);
  auto unlucky = paceline::async(dies_once, folder + "/died_too", count);
  int got = 0;
  const auto error = error_of([&] {
    while (unlucky.next()) ++got;
  });
  expect(has(error, "SIGKILL") && got < count / 2, "after " + std::to_string(got) + ": " + error);

  auto numbers = paceline::create<Numbers>({.restarts = 1, .call_retries = 1}, 2);
  const int pid = numbers.call(&Numbers::process).get();
  auto stream = numbers.call(&Numbers::times, count);
  for (int i = 1; i <= 10; ++i) expect(stream.next() == 2L * i, "a value before the kill");
  kill(pid, SIGKILL);
  expect_counts(stream, 11, count, 2);

  auto mortal = paceline::create<Numbers>(2);
  const int other = mortal.call(&Numbers::process).get();
  auto ends = mortal.call(&Numbers::times, 1'000'000'000);
  expect(ends.next() == 2, "a value before the kill");
  kill(other, SIGKILL);
  expect(has(error_of([&] {
               while (ends.next()) {
               }
             }),
             "is dead"),
         "of a dead actor");
}

class Readers {
 public:
  paceline::Async<int> sum(int count) {
    auto stream = paceline::async(up_to, count);
    int all = 0;
    while (const auto value = co_await stream.next_async()) all += *value;
    co_return all;
  }
  int one() { return 1; }
};

/// Read by coroutines, and by tasks.
void nested(int count) {
  auto readers = paceline::create<Readers>();
  std::vector<paceline::Future<int>> sums;
  for (int i = 0; i < 5; ++i) sums.push_back(readers.call(&Readers::sum, count));
  expect(readers.call(&Readers::one).get() == 1, "others go on meanwhile");
  for (auto& sum : sums) expect(sum.get() == count * (count + 1) / 2, "a sum");
  const auto sum = [](int last) {
    int all = 0;
    for (const int value : paceline::async(up_to, last)) all += value;
    return all;
  };
  expect(paceline::async(sum, count).get() == count * (count + 1) / 2, "a task's sum");
}

/// Values a second, of small ones.
void rate(int count) {
  auto numbers = paceline::create<Numbers>(1);
  for (int round = 0; round < 5; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    expect_counts(paceline::async({.ahead = 1000}, up_to, count), 1, count);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("%.0f values a second\n", count / took.count());
  }
}

/// main returns while one is computed.
void left() {
  static auto stream = paceline::async(up_to, 1'000'000'000);
  expect(stream.next() == 1, "a value");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string folder = argc > 2 ? argv[2] : "";
  const auto number = [&](int i) { return argc > i ? std::atoi(argv[i]) : 0; };
  if (what == "order")
    order(number(2));
  else if (what == "backpressure")
    backpressure(folder);
  else if (what == "errors")
    errors();
  else if (what == "dropped")
    dropped(folder);
  else if (what == "timeouts")
    timeouts();
  else if (what == "dies")
    dies(folder, number(3));
  else if (what == "nested")
    nested(number(2));
  else if (what == "rate")
    rate(number(2));
  else if (what == "left")
    left();
  else
    expect(false, "there is no '" + what + "'");
  return paceline::test::exit_status();
}
