// Tasks and actors on nodes that have little memory: an actor script whose first argument says which, and which checks
// its own answers. Exit status 0: all were right. The cluster's workers may have 512 MiB.
#include <paceline.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/test_support/script_checks.h"

namespace {

using namespace std::chrono_literals;
using paceline::test::error_of;
using paceline::test::expect;
using paceline::test::has;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr const char* kKilled = "killed for its memory: it had ";

/// Memory that is used, not only asked for.
class Hoard {
 public:
  void take(std::size_t bytes) {
    for (std::size_t had = 0; had < bytes; had += kBlock) blocks_.push_back(std::make_unique<Block>());
  }

 private:
  static constexpr std::size_t kBlock = 4 * kMiB;
  struct Block {
    Block() { std::fill_n(bytes, kBlock, 'x'); }
    char bytes[kBlock];
  };
  std::vector<std::unique_ptr<Block>> blocks_;
};

/// Until it is ended, or the machine is in danger.
int take_all() {
  Hoard hoard;
  for (int i = 0; i < 4096; ++i) {
    hoard.take(kMiB);
    std::this_thread::sleep_for(1ms);
  }
  return 0;
}

int take_and_stay(int mib, int ms) {
  Hoard hoard;
  hoard.take(static_cast<std::size_t>(mib) * kMiB);
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  return mib;
}

/// Takes all the first time.
int take_all_once(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return 7;
  close(file);
  return take_all();
}

class Counter {
 public:
  int add(int n) { return sum_ += n; }
  int take() { return take_all(); }

 private:
  int sum_ = 0;
};

int square(int x) { return x * x; }

/// limit PATH: who takes more than there is ends, and nobody else.
void limit(const std::string& path) {
  auto bystander = paceline::create<Counter>();
  expect(bystander.call(&Counter::add, 1).get() == 1, "before");
  const auto error = error_of([] { (void)paceline::async({.name = "greedy"}, take_all).get(); });
  expect(has(error, kKilled) && has(error, "of the 512 MiB that they may have (paceline up --memory)"), error);
  const auto twice = error_of([] { (void)paceline::async({.retries = 1}, take_all).get(); });
  expect(has(twice, kKilled), "again: " + twice);
  expect(paceline::async({.retries = 1}, take_all_once, path).get() == 7, "a task that is run again");

  auto greedy = paceline::create<Counter>({.name = "greedy", .restarts = -1});
  expect(greedy.call(&Counter::add, 5).get() == 5, "an actor");
  const auto died = error_of([&] { (void)greedy.call(&Counter::take).get(); });
  expect(has(died, "is started again") && has(died, kKilled), "an actor: " + died);
  expect(greedy.call(&Counter::add, 2).get() == 2, "it was started again");

  expect(bystander.call(&Counter::add, 1).get() == 2, "who took little lives");
  for (int i = 0; i < 100; ++i) expect(paceline::async(square, i).get() == i * i, "tasks after that");
}

/// asked: who has what it has asked for is spared, and who has not ends.
void asked() {
  auto within = paceline::async({.memory = 300 * kMiB}, take_and_stay, 260, 4000);
  std::this_thread::sleep_for(500ms);
  const auto error = error_of([] { (void)paceline::async(take_all).get(); });
  expect(has(error, kKilled), "who has asked for nothing: " + error);
  expect(within.get() == 260, "who has asked for what it has");
}

/// Who runs at once.
class Present {
 public:
  void comes() { most_ = std::max(most_, ++now_); }
  void goes() { --now_; }
  int most() const { return most_; }

 private:
  int now_ = 0, most_ = 0;
};

int visit(paceline::Handle<Present> present) {
  present.call(&Present::comes).get();
  std::this_thread::sleep_for(100ms);
  present.call(&Present::goes).get();
  return 0;
}

int most_of(const paceline::TaskOptions& options) {
  auto present = paceline::create<Present>();
  std::vector<paceline::Future<int>> all;
  for (int i = 0; i < 8; ++i) all.push_back(paceline::async(options, visit, present));
  for (auto& one : all) one.get();
  return present.call(&Present::most).get();
}

/// promised: as many run at once as there is memory for. The node has four cpus.
void promised() {
  expect(most_of({.memory = 200 * kMiB}) == 2, "two of 200 MiB");
  expect(most_of({.memory = 512 * kMiB}) == 1, "one of 512 MiB");
  const int free = most_of({});  // More than four where one waits for an answer: that gives its cpu back.
  expect(free > 2, "as many as there are cpus: " + std::to_string(free));
  const auto error = error_of([] { (void)paceline::async({.memory = 513 * kMiB}, square, 1).get(); });
  expect(has(error, "a task needs 513 MiB of memory, but node 0 has 512 MiB of memory: ask for no more"), error);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string path = argc > 2 ? argv[2] : "";
  if (what == "limit")
    limit(path);
  else if (what == "asked")
    asked();
  else if (what == "promised")
    promised();
  else if (what == "waits")
    (void)paceline::async({.memory = 400 * kMiB}, take_and_stay, 1, 600'000).get();
  else
    expect(false, "there is no '" + what + "'");
  return paceline::test::exit_status();
}
