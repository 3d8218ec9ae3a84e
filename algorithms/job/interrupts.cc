#include "algorithms/job/interrupts.h"

#include <unistd.h>

#include <csignal>
#include <ctime>

namespace paceline::job {
namespace {

// One Ctrl-C may come twice: to the process group, and passed on by `paceline run`. Nobody presses it twice so fast.
constexpr long kSameMs = 60;

volatile std::sig_atomic_t g_count = 0;
volatile long g_first_ms = 0;
struct sigaction g_old_int, g_old_term;

long now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

extern "C" void on_interrupt(int) {
  if (g_count == 0) {
    g_first_ms = now_ms();
    g_count = 1;
  } else if (now_ms() - g_first_ms > kSameMs) {
    _exit(130);
  }
}

}  // namespace

Interrupts::Interrupts() {
  g_count = 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &g_old_int);
  sigaction(SIGTERM, &action, &g_old_term);
}

Interrupts::~Interrupts() {
  sigaction(SIGINT, &g_old_int, nullptr);
  sigaction(SIGTERM, &g_old_term, nullptr);
}

bool Interrupts::requested() const { return g_count > 0; }

}  // namespace paceline::job
