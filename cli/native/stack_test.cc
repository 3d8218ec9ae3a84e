#include "cli/native/stack.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace paceline::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

[[gnu::always_inline]] inline void wait_for_ever() {
  while (true) ::pause();
}

[[gnu::noinline]] void stand_here(int ready) {
  const char byte = 0;
  (void)!::write(ready, &byte, 1);
  wait_for_ever();
}

/// A process that does this, which ends with the test.
class Child {
 public:
  template <class Do>
  explicit Child(Do what) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      what(ready[1]);
      ::_exit(0);
    }
    ::close(ready[1]);
    char byte = 0;
    (void)!::read(ready[0], &byte, 1);
    ::close(ready[0]);
    while (state() != 'S') std::this_thread::yield();  // It has said so, and stands there in a moment.
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }
  char state() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string stat;
    std::getline(file, stat);
    return stat.at(stat.rfind(')') + 2);
  }

 private:
  pid_t pid_ = -1;
};

const StackFrame* frame_of(const std::vector<ThreadStack>& stacks, const std::string& function) {
  for (const auto& stack : stacks)
    for (const auto& frame : stack.frames)
      if (frame.function.find(function) != std::string::npos) return &frame;
  return nullptr;
}

TEST(StackTest, WhereAProcessStandsIsNamedAndItGoesOn) {
  const Child child(stand_here);
  for (int again = 0; again < 3; ++again) {
    const auto stacks = stacks_of(child.pid());
    ASSERT_TRUE(stacks) << stacks.error().text;
    ASSERT_EQ(stacks->size(), 1u);
    EXPECT_EQ((*stacks)[0].thread, child.pid());
    EXPECT_EQ((*stacks)[0].cut, "");
    const auto* const frame = frame_of(*stacks, "paceline::cli::stand_here(int)");
    ASSERT_NE(frame, nullptr);
    EXPECT_THAT(frame->file, EndsWith("stack_test.cc"));
    EXPECT_GT(frame->line, 0);
    EXPECT_THAT(frame->object, HasSubstr("paceline_native_test"));
    const auto* const inlined = frame_of(*stacks, "wait_for_ever");
    ASSERT_NE(inlined, nullptr);
    EXPECT_TRUE(inlined->inlined);
    EXPECT_LT(inlined->line, frame->line) << "the inlined call, and where it was called";
    EXPECT_EQ(inlined + 1, frame);
    EXPECT_NE(frame_of(*stacks, "main"), nullptr);
    EXPECT_EQ(child.state(), 'S');
  }
}

TEST(StackTest, AFrozenProcessStaysFrozen) {
  const Child child(stand_here);
  ::kill(child.pid(), SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child.pid(), &status, WUNTRACED), child.pid());
  const auto stacks = stacks_of(child.pid());
  ASSERT_TRUE(stacks) << stacks.error().text;
  EXPECT_NE(frame_of(*stacks, "stand_here"), nullptr);
  EXPECT_EQ(child.state(), 'T');
}

TEST(StackTest, OneThatHasEndedIsNotFound) {
  pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  const auto stacks = stacks_of(gone);
  ASSERT_FALSE(stacks);
  EXPECT_EQ(stacks.error().kind, ErrorKind::not_found);
  EXPECT_THAT(stacks.error().text, EndsWith(" has ended"));
}

TEST(StackTest, OneThatIsTracedAlreadySaysByWhom) {
  const Child child([](int ready) {
    ::ptrace(PTRACE_TRACEME);
    stand_here(ready);
  });
  const auto stacks = stacks_of(child.pid());
  ASSERT_FALSE(stacks);
  EXPECT_THAT(stacks.error().text,
              HasSubstr("process " + std::to_string(::getpid()) + ", a debugger, does so already"));
}

/// As nobody's: root may look at everything.
TEST(StackTest, OneOfAnotherUserIsRefused) {
  const bool is_root = ::geteuid() == 0;
  const pid_t other = is_root ? ::getpid() : 1;
  int said[2];
  ASSERT_EQ(::pipe(said), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (is_root && ::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
    const auto stacks = stacks_of(other);
    const std::string text = stacks ? "looked" : stacks.error().text;
    (void)!::write(said[1], text.data(), text.size());
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  char text[256];
  const auto size = ::read(said[0], text, sizeof text);
  EXPECT_EQ(std::string(text, static_cast<std::size_t>(std::max<ssize_t>(size, 0))),
            "process " + std::to_string(other) +
                " may not be looked into: it is user 0's: run this as that user, or as root");
  ::close(said[0]);
  ::close(said[1]);
}

}  // namespace
}  // namespace paceline::cli
