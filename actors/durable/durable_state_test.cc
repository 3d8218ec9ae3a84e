// What is left of an actor's durable state when its process dies anywhere: before each instruction, and at random
// moments of real lives.
#include "actors/durable/durable_state.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <random>
#include <string>

#include "actors/durable.h"
#include "runtime/store/shared_memory.h"
#include "tests/support/sanitized.h"

namespace paceline::actors {
namespace {

constexpr ProcessId kCaller = 5;
constexpr std::size_t kCount = 3000;  // More than a block of them.

class Home final : public DurableHome {
 public:
  explicit Home(DurableState* state) : state_(state) { set_durable_home(this); }
  ~Home() override { set_durable_home(nullptr); }
  Result<DurableState*> state() override { return state_; }
  bool is_in_use() const override { return true; }

 private:
  DurableState* state_;
};

/// Whose calls each leave one more in all of it.
struct Counter {
  durable<int> number{0};
  durable_array<int> many{kCount};
  durable<std::string> text{"0"};

  void add() {
    const int next = *number + 1;
    number.write() = next;
    for (auto& one : many.write(0, kCount)) one = next;
    text.write() = std::to_string(next);
  }
  /// The same everywhere, or -1.
  int value() const {
    const auto is_it = [this](int one) { return one == *number; };
    return std::all_of(many.view().begin(), many.view().end(), is_it) && *text == std::to_string(*number) ? *number
                                                                                                          : -1;
  }
};

/// A process's: the state, with the actor that it makes.
struct Life {
  explicit Life(process::Fd fd = {}) : state(fd ? DurableState::open(std::move(fd)) : DurableState::create()) {
    EXPECT_TRUE(state) << state.error().text;
    Home home(state->get());
    counter = std::make_unique<Counter>();
    EXPECT_TRUE((*state)->finish());
  }
  DurableState& at() { return **state; }
  void call() {
    counter->add();
    const Bytes answer = to_bytes(*counter->number);
    if (!at().publish(DurableState::Done{kCaller, static_cast<std::uint64_t>(*counter->number), true, answer})) abort();
  }
  process::Fd copy_of_fd() { return at().fd().duplicate(); }

  Result<std::unique_ptr<DurableState>> state;
  std::unique_ptr<Counter> counter;
};

/// Which calls count in it: all before and none after the one that the members say.
int checked(Life& life) {
  const int value = life.counter->value();
  CallRecords::Answer answer;
  const auto& records = life.at().records();
  const auto number = static_cast<std::uint64_t>(value);
  if (value > 0) {
    EXPECT_EQ(records.find(kCaller, number, answer), CallRecords::Kept::kept);
    EXPECT_EQ(answer.bytes, to_bytes(value));
  }
  EXPECT_EQ(records.find(kCaller, number + 1, answer), CallRecords::Kept::not_done);
  return value;
}

TEST(DurableStateTest, TheNextProcessGoesOnWhereTheLastOneWas) {
  Life first;
  first.call();
  first.call();
  Life second(first.copy_of_fd());
  EXPECT_TRUE(second.counter->many.restored());
  EXPECT_EQ(checked(second), 2);
}

TEST(DurableStateTest, WhatWasChangedInACallThatWasNotOverIsPutBack) {
  Life first;
  first.call();
  first.counter->add();
  first.counter->text.write() = "half";
  Life second(first.copy_of_fd());
  EXPECT_EQ(checked(second), 1);
}

TEST(DurableStateTest, RollingBackMakesMembersWhatTheyWere) {
  Life life;
  life.call();
  life.counter->add();
  life.at().roll_back();
  EXPECT_EQ(checked(life), 1);
  life.call();
  EXPECT_EQ(checked(life), 2);
}

TEST(DurableStateTest, AConstructorThatMakesSomethingElseIsRefused) {
  Life first;
  const auto refused = [&](auto make) {
    auto state = DurableState::open(first.copy_of_fd());
    Home home(state->get());
    try {
      make();
    } catch (const TaskError& error) {
      return std::string(error.what());
    }
    const auto finished = (*state)->finish();
    return finished ? std::string() : finished.error().text;
  };
  EXPECT_NE(refused([] { durable<double> other; }).find("member 1 was another one"), std::string::npos);
  EXPECT_NE(refused([] { durable<int> less; }).find("has made 1 durable members, and 3 before"), std::string::npos);
}

TEST(DurableStateTest, WhatIsNoDurableStateIsNotOpened) {
  auto fd = *store::create_memory({.name = "other", .size = 1 << 20, .sealed = store::MemoryShape::Sealed::later});
  EXPECT_EQ(DurableState::open(process::Fd(::dup(fd.get()))).error().kind, ErrorKind::invalid);
  ASSERT_TRUE(store::seal_size(fd));
  EXPECT_EQ(DurableState::open(process::Fd(::dup(fd.get()))).error().text,
            "durable state: what was kept of it is none");
}

TEST(DurableStateTest, AValueThatIsTooLargeChangesNothing) {
  struct Large {
    durable<Bytes> bytes;
    durable<int> number{1};
  };
  auto state = *DurableState::create();
  Home home(state.get());
  Large large;
  ASSERT_TRUE(state->finish());
  large.number.write() = 2;
  large.bytes.write().resize(DurableState::kValueMax + 1);
  const auto published = state->publish({});
  ASSERT_FALSE(published);
  EXPECT_NE(published.error().text.find("at most 60 MiB"), std::string::npos);
  EXPECT_EQ(*large.number, 1);
  EXPECT_TRUE(large.bytes->empty());
  large.number.write() = 3;
  EXPECT_TRUE(state->publish({}));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // With them a call takes millions of steps.

/// The memory as it is at this moment, in a file of its own; none where its holes cannot be seen.
process::Fd snapshot(int from) {
  struct stat status {};
  if (::fstat(from, &status) != 0) return {};
  auto to = *store::create_memory({.name = "snapshot",
                                   .size = static_cast<std::uint64_t>(status.st_size),
                                   .sealed = store::MemoryShape::Sealed::later});
  Bytes bytes;
  for (off_t at = 0; (at = ::lseek(from, at, SEEK_DATA)) >= 0;) {
    const off_t end = ::lseek(from, at, SEEK_HOLE);
    if (end - at > (16 << 20)) return {};
    bytes.resize(static_cast<std::size_t>(end - at));
    if (::pread(from, bytes.data(), bytes.size(), at) != end - at) return {};
    if (::pwrite(to.get(), bytes.data(), bytes.size(), at) != end - at) return {};
    at = end;
  }
  EXPECT_TRUE(store::seal_size(to));
  return to;
}

TEST(DurableStateTest, BeforeWhicheverInstructionAProcessDiesACallHasBeenDoneOrNot) {
  Life life;
  life.call();
  ASSERT_TRUE(snapshot(life.at().fd().get()));
  const pid_t child = ::fork();
  if (child == 0) {
    Life mine(life.copy_of_fd());
    mine.call();  // What is done for the first time takes other ways.
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
    ::raise(SIGSTOP);
    mine.call();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status)) GTEST_SKIP() << "no process may be traced here";
  constexpr int kStride = 13;  // A call takes some ten thousand instructions.
  int looks[2] = {0, 0}, last = 2;
  for (int step = 0;; ++step) {
    if (step % kStride == 0) {
      Life next(snapshot(life.at().fd().get()));
      const int value = checked(next);
      ASSERT_TRUE(value == 2 || value == 3) << "at step " << step << ": " << value;
      ASSERT_GE(value, last) << "at step " << step;
      ++looks[value - 2];
      last = value;
    }
    if (::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) break;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) break;
  }
  EXPECT_GT(looks[0], 10);
  EXPECT_EQ(last, 3);
}

#endif

TEST(DurableStateTest, KilledAtRandomMomentsProcessesAfterEachOtherCountOn) {
  std::mt19937 random(static_cast<unsigned>(::time(nullptr)));
  auto fd = [] {
    Life life;
    return life.copy_of_fd();
  }();
  const auto again = [&] { return process::Fd(::dup(fd.get())); };
  constexpr int kLivesThatCall = kSanitized ? 15 : 50;  // That come so far as to have done a call.
  int before = 0, advanced = 0, longest_us = 4000;
  for (int lives = 0; advanced < kLivesThatCall && lives < 1000; ++lives) {
    const pid_t child = ::fork();
    if (child == 0) {
      Life life(again());
      while (true) life.call();
    }
    ::usleep(300 + random() % static_cast<unsigned>(longest_us));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    Life life(again());
    const int value = checked(life);
    ASSERT_GE(value, before);
    if (value > before)
      ++advanced;
    else
      longest_us = std::min(2 * longest_us, 500'000);
    before = value;
  }
  EXPECT_EQ(advanced, kLivesThatCall);
}

}  // namespace
}  // namespace paceline::actors
