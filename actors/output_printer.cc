#include "actors/output_printer.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "actors/shown_output.h"

namespace paceline::actors {
namespace {

/// False: nobody will ever take it.
bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {  // Somebody has made it so.
      ::usleep(10'000);
      continue;
    }
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

struct OutputPrinter::State {
  State(int fd, Shown tell) : descriptor(fd), colour(wants_colour(fd)), shown(std::move(tell)) {}
  const int descriptor;
  const bool colour;
  const Shown shown;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Output> queue;
  bool diverted = false;
  bool begun = false;
  bool ending = false;
  bool all_shown = false;
};

OutputPrinter::OutputPrinter(int descriptor, Shown shown)
    : state_(std::make_shared<State>(descriptor, std::move(shown))) {}

OutputPrinter::~OutputPrinter() {
  std::lock_guard lock(state_->mutex);
  state_->ending = true;
  state_->changed.notify_all();
}

void OutputPrinter::show(Output output) {
  std::lock_guard lock(state_->mutex);
  state_->queue.push_back(std::move(output));
  state_->changed.notify_all();
  begin();
}

void OutputPrinter::divert(bool diverted) {
  std::lock_guard lock(state_->mutex);
  state_->diverted = diverted;
  state_->changed.notify_all();
  begin();
}

std::optional<Output> OutputPrinter::take(Duration timeout) {
  std::unique_lock lock(state_->mutex);
  if (!state_->changed.wait_for(lock, timeout, [this] { return state_->diverted && !state_->queue.empty(); }))
    return std::nullopt;
  std::optional<Output> next = std::move(state_->queue.front());
  state_->queue.pop_front();
  return next;
}

void OutputPrinter::on_taken_shown(const Output& output) { on_shown(*state_, output); }

void OutputPrinter::expect_all() {
  std::lock_guard lock(state_->mutex);
  state_->all_shown = false;
}

/// The thread, if there is something for it to do. With the lock.
void OutputPrinter::begin() {
  if (state_->diverted || state_->queue.empty() || std::exchange(state_->begun, true)) return;
  try {
    std::thread([state = state_] { run(state); }).detach();
  } catch (const std::system_error&) {  // Not one thread more can be had: it stands in the logs.
    state_->begun = false;
    state_->queue.clear();
  }
}

bool OutputPrinter::wait_for_all(Duration timeout) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, timeout, [this] { return state_->all_shown; });
}

void OutputPrinter::on_shown(State& state, const Output& output) {
  if (output.bytes > 0) state.shown(output.node, output.bytes);
  if (!output.all) return;
  std::lock_guard lock(state.mutex);
  state.all_shown = true;
  state.changed.notify_all();
}

void OutputPrinter::run(const std::shared_ptr<State>& state) {
  sigset_t all;  // Signals are the program's; and nobody at the other end is no reason to end it.
  sigfillset(&all);
  (void)::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  bool taken = true;
  std::unique_lock lock(state->mutex);
  while (true) {
    state->changed.wait(lock, [&] { return state->ending || (!state->diverted && !state->queue.empty()); });
    if (state->ending) return;
    const Output output = std::move(state->queue.front());
    state->queue.pop_front();
    lock.unlock();
    if (taken) taken = write_all(state->descriptor, shown(output, state->colour));
    on_shown(*state, output);
    lock.lock();
  }
}

}  // namespace paceline::actors
