#include "algorithms/job/interrupts.h"

#include <unistd.h>

#include <csignal>

namespace paceline::job {
namespace {

volatile std::sig_atomic_t g_count = 0;
struct sigaction g_old_int, g_old_term;

extern "C" void on_interrupt(int) {
  g_count = g_count + 1;
  if (g_count > 1) _exit(130);
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
