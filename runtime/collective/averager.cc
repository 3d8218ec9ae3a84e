#include "runtime/collective/averager.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/base/check.h"

namespace paceline::collective {

namespace {

constexpr int kThreadsMax = 64;
constexpr std::uint64_t kLastLevelDefault = 32ull << 20;  ///< Where the system does not tell.

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::uint64_t last_level_cache() {
  long bytes = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  return bytes > 0 ? static_cast<std::uint64_t>(bytes) : kLastLevelDefault;
}

std::uint64_t bytes_of_one(const Reduction& r) { return r.elements * memory::size_of(r.dtype); }

/// Non-temporal stores pay where the results would not stay in the cache anyway.
bool should_stream(const Reduction& r, std::uint64_t cache) {
  return bytes_of_one(r) * (r.inputs.size() + r.outputs.size()) > cache;
}

void reduce(const Reduction& r, std::uint64_t begin, std::uint64_t end, bool stream) {
  const std::span<const Output> all(r.outputs), outputs = r.then ? all.first(1) : all;
  if (r.weights.empty()) {
    sum_scaled(r.inputs, outputs, begin, end, r.dtype, stream && !r.then);
  } else {
    sum_weighted(r.inputs, r.weights, outputs, begin, end, r.dtype);
  }
  if (!r.then) return;
  r.then(begin, end);
  const std::size_t width = memory::size_of(r.dtype);
  const auto* const result = static_cast<const std::byte*>(outputs[0].data) + begin * width;
  for (const Output& other : all.subspan(1))
    std::memcpy(static_cast<std::byte*>(other.data) + begin * width, result, (end - begin) * width);
}

struct Job {
  Averager::Id id = 0;
  Reduction reduction;
  std::shared_ptr<const void> memory;
  bool stream = false;
  std::uint64_t chunk_elements = 1;
  std::uint64_t chunks = 0;
  std::atomic<std::uint64_t> next{0};  ///< First chunk that nobody has claimed; may run past `chunks`.
  std::atomic<std::uint64_t> done{0};
};

struct Done {
  Averager::Id id;
  std::shared_ptr<const void> memory;
};

}  // namespace

struct Averager::State {
  std::uint64_t cache = last_level_cache();
  int event = -1;
  std::vector<std::thread> threads;

  std::mutex mutex;
  std::condition_variable work;            ///< queue.front() changed, or stop.
  std::deque<std::shared_ptr<Job>> queue;  ///< front: the one that is running.
  std::vector<Done> completed;
  bool stop = false;

  void run();
  void finish(const std::shared_ptr<Job>& job);

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    work.notify_all();
    for (auto& thread : threads) thread.join();
    if (event >= 0) ::close(event);
  }
};

void Averager::State::run() {
  std::shared_ptr<Job> job;
  for (;;) {
    {
      std::unique_lock lock(mutex);
      work.wait(lock, [&] {
        return stop || (!queue.empty() && queue.front()->next.load(std::memory_order_relaxed) < queue.front()->chunks);
      });
      if (stop) return;
      job = queue.front();
    }
    for (;;) {
      const std::uint64_t chunk = job->next.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= job->chunks) break;
      const Reduction& r = job->reduction;
      const std::uint64_t begin = chunk * job->chunk_elements;
      reduce(r, begin, std::min(begin + job->chunk_elements, r.elements), job->stream);
      // Acquire and release: whoever finishes the last chunk has seen all the others.
      if (job->done.fetch_add(1, std::memory_order_acq_rel) + 1 == job->chunks) finish(job);
    }
    job.reset();
  }
}

void Averager::State::finish(const std::shared_ptr<Job>& job) {
  bool more = false;
  {
    const std::lock_guard lock(mutex);
    completed.push_back({job->id, std::move(job->memory)});  // Never let go here, on a thread of the pool.
    queue.pop_front();
    more = !queue.empty();
  }
  if (more) work.notify_all();
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event, &one, sizeof one);  // Cannot block: it counts to 2^64.
}

Averager::Averager(std::unique_ptr<State> state) : state_(std::move(state)) {}
Averager::~Averager() = default;

Result<std::unique_ptr<Averager>> Averager::create(int threads) {
  if (threads < 0 || threads > kThreadsMax)
    return fail(ErrorKind::invalid, "averager: " + std::to_string(threads) + " threads: give 0 (automatic) to " +
                                        std::to_string(kThreadsMax));
  if (threads == 0) threads = std::min(4, usable_cores());
  auto state = std::make_unique<State>();
  state->event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (state->event < 0) return fail_errno("averager: eventfd");
  try {
    for (int i = 0; i < threads; ++i) state->threads.emplace_back([s = state.get()] { s->run(); });
  } catch (const std::system_error& error) {
    return fail(ErrorKind::internal, std::string("averager: start a thread: ") + error.what());
  }
  return std::unique_ptr<Averager>(new Averager(std::move(state)));
}

Result<void> Averager::submit(Id id, Reduction reduction, std::shared_ptr<const void> memory) {
  PACELINE_CHECK(memory != nullptr, "a reduction whose memory nobody owns");
  if (reduction.outputs.empty()) return fail(ErrorKind::invalid, "averager: a reduction without outputs");
  const auto null = [](const void* p) { return p == nullptr; };
  if (std::any_of(reduction.inputs.begin(), reduction.inputs.end(), null) ||
      std::any_of(reduction.outputs.begin(), reduction.outputs.end(), [&](const Output& o) { return null(o.data); }))
    return fail(ErrorKind::invalid, "averager: a reduction with a null pointer");
  if (!reduction.weights.empty() && reduction.weights.size() != reduction.inputs.size())
    return fail(ErrorKind::invalid, "averager: a reduction whose weights are not one an input");
  auto job = std::make_shared<Job>();
  job->id = id;
  job->stream = should_stream(reduction, state_->cache);
  job->chunk_elements = kChunkBytes / memory::size_of(reduction.dtype);
  // A reduction of nothing still completes, in its turn.
  job->chunks = std::max<std::uint64_t>(1, (reduction.elements + job->chunk_elements - 1) / job->chunk_elements);
  job->reduction = std::move(reduction);
  job->memory = std::move(memory);
  bool first = false;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->queue.size() + state_->completed.size() >= kQueueMax)
      return fail(ErrorKind::overloaded, "averager: " + std::to_string(kQueueMax) +
                                             " reductions are queued or not yet taken from completed()");
    state_->queue.push_back(std::move(job));
    first = state_->queue.size() == 1;
  }
  if (first) state_->work.notify_all();
  return {};
}

void Averager::run_inline(const Reduction& reduction) { reduce(reduction, 0, reduction.elements, false); }

bool Averager::is_small(const Reduction& reduction) { return bytes_of_one(reduction) < kInlineBytes; }

int Averager::descriptor() const { return state_->event; }

std::vector<Averager::Id> Averager::completed() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got =
      ::read(state_->event, &count, sizeof count);  // Before the list: a later one rings again.
  std::vector<Done> done;
  {
    const std::lock_guard lock(state_->mutex);
    done.swap(state_->completed);
  }
  std::vector<Id> ids;
  for (const Done& one : done) ids.push_back(one.id);
  return ids;
}

int Averager::threads() const { return static_cast<int>(state_->threads.size()); }

}  // namespace paceline::collective
