#include "runtime/base/background.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/base/contained.h"

namespace paceline {

struct Background::State {
  struct Task {
    std::function<Result<void>()> work;
    std::function<void(Result<void>)> follows;
    Result<void> done{};
  };

  int event = -1;
  std::thread thread;
  std::mutex mutex;  ///< Guards what follows.
  std::condition_variable wanted;
  std::deque<Task> queue, done;
  bool stop = false;

  void run();
  ~State() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wanted.notify_one();
    if (thread.joinable()) thread.join();
    if (event >= 0) ::close(event);
  }
};

void Background::State::run() {
  std::unique_lock lock(mutex);
  while (true) {
    wanted.wait(lock, [this] { return stop || !queue.empty(); });
    if (stop) return;
    Task task = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    task.done = contained(task.work);
    task.work = nullptr;  // What it held is given back here.
    lock.lock();
    done.push_back(std::move(task));
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(event, &one, sizeof one);  // Cannot block: it counts to 2^64.
  }
}

Background::Background(std::unique_ptr<State> state) : state_(std::move(state)) {}
Background::~Background() = default;

Result<std::unique_ptr<Background>> Background::create() {
  auto state = std::make_unique<State>();
  state->event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (state->event < 0) return fail_errno("background: eventfd");
  try {
    state->thread = std::thread([s = state.get()] { s->run(); });
  } catch (const std::system_error& error) {
    return fail(ErrorKind::internal, std::string("background: start a thread: ") + error.what());
  }
  return std::unique_ptr<Background>(new Background(std::move(state)));
}

void Background::run(std::function<Result<void>()> work, std::function<void(Result<void>)> follows) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->queue.push_back({std::move(work), std::move(follows)});
  }
  state_->wanted.notify_one();
}

int Background::descriptor() const { return state_->event; }

void Background::take_done() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(state_->event, &count, sizeof count);  // Before the list.
  std::deque<State::Task> done;
  {
    const std::lock_guard lock(state_->mutex);
    done.swap(state_->done);
  }
  for (State::Task& task : done) task.follows(std::move(task.done));
}

}  // namespace paceline
