#include "algorithms/job/job_connection.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "actors/process_client.h"
#include "algorithms/job/heard_events.h"
#include "algorithms/job/job_event_wire.h"
#include "runtime/base/steady_now.h"
#include "runtime/wire/codec.h"

namespace paceline::job {
namespace {

using nlohmann::json;

constexpr Duration kSilence = std::chrono::seconds(5);        // Nodes tell something four times a second.
constexpr Duration kMovePatience = std::chrono::seconds(10);  // As long as the head lets a job go on without a driver.
constexpr Duration kStartPatience = std::chrono::seconds(1);  // For an agent that is started anew.
constexpr Duration kDrivePatience = std::chrono::seconds(1);
constexpr Duration kLook = std::chrono::milliseconds(20);
constexpr Duration kDriveEvery = std::chrono::milliseconds(200);

}  // namespace

/// Events come on the client's I/O thread and are read by the driver's. Bounded: progress is dropped first.
class JobConnection::Events {
 public:
  void push(const wire::JobEvent::Reader& told) {
    auto event = to_json(told);
    const JobId job{told.getJob()};
    {
      std::lock_guard lock(mutex_);
      auto& heard = heard_[job];
      const auto kind = heard.on_event(NodeId{told.getNode()}, told.getNumber(), told.getOldest());
      misses_ |= kind == HeardEvents::Event::missed;
      if (kind != HeardEvents::Event::next || heard.is_said_again(event)) return;
      last_ = steady_now();
      if (events_.size() >= kEventsMax && told.isProgress()) return;
      events_.emplace_back(job, std::move(event));
    }
    changed_.notify_one();
  }

  /// Of this job; those of the process's run before are forgotten.
  std::deque<json> take(JobId job, Duration timeout) {
    std::deque<std::pair<JobId, json>> events;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, timeout, [&] { return !events_.empty(); });
      events.swap(events_);
    }
    std::deque<json> its;
    for (auto& [of, event] : events)
      if (of == job) its.push_back(std::move(event));
    return its;
  }

  json heard(JobId job) {
    std::lock_guard lock(mutex_);
    return heard_[job].list();
  }

  Instant last() const {
    std::lock_guard lock(mutex_);
    return last_;
  }
  /// Whether something got lost on its way since, that can be told again.
  bool has_missed() {
    std::lock_guard lock(mutex_);
    return std::exchange(misses_, false);
  }
  void begin_to_wait() {
    std::lock_guard lock(mutex_);
    last_ = steady_now();
  }

 private:
  static constexpr std::size_t kEventsMax = 4096;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<JobId, json>> events_;
  std::map<JobId, HeardEvents> heard_;
  Instant last_ = steady_now();
  bool misses_ = false;
};

JobConnection::JobConnection() : events_(std::make_shared<Events>()) {}

void JobConnection::listen(actors::Client& client) {
  client.on_job_event([events = events_](const wire::Received& event) { events->push(event.root().getJobEvent()); });
}

Result<json> JobConnection::submit(const json& options) {
  if (const auto ended = actors::process_client().ended(); ended && ended->kind == ErrorKind::disconnected)
    if (const auto changed = actors::change_agent(); !changed) return tl::unexpected(changed.error());
  auto& client = actors::process_client();
  listen(client);
  const auto answer = client.request("submit", json_text(options));
  if (!answer) return tl::unexpected(answer.error());
  auto placed = parse_json(*answer);
  job_ = JobId{placed.value("job", std::uint64_t{0})};
  return placed;
}

std::deque<json> JobConnection::take(Duration timeout) {
  if ((events_->has_missed() || !unmade_.empty()) && steady_now() >= drives_from_) (void)drive();
  return events_->take(job_, timeout);
}

Result<json> JobConnection::request(const std::string& verb, json body, Duration patience) {
  body["job"] = job_.value;
  return actors::process_client().request(verb, json_text(body), patience).map(parse_json);
}

bool JobConnection::is_cut_off(Instant now) const {
  const auto ended = actors::process_client().ended();
  return ended ? ended->kind == ErrorKind::disconnected : now - events_->last() >= kSilence;
}

Result<void> JobConnection::go_on_elsewhere() {
  events_->begin_to_wait();
  auto& before = actors::process_client();
  const bool was_lost = before.ended().has_value();
  const Instant begun = steady_now();
  const auto may_pass = [&](const Error& error) {
    const Duration waited = steady_now() - begun;
    const bool has_none = &actors::process_client() == &before;  // Else the job is not found any more.
    if (error.kind == ErrorKind::not_found) return has_none && waited < kStartPatience;
    // The next one is lost, too, or the head is away.
    return (error.kind == ErrorKind::disconnected || error.kind == ErrorKind::timed_out) && waited < kMovePatience;
  };
  Result<void> moved = move();
  while (was_lost && !moved && may_pass(moved.error())) {
    std::this_thread::sleep_for(kLook);
    moved = move();
  }
  if (!was_lost || moved) return moved;
  take_calls(actors::process_client());
  for (const auto& call : std::exchange(unmade_, {})) call->complete(tl::unexpected(moved.error()));
  return moved;
}

void JobConnection::take_calls(actors::Client& from) {
  for (auto& call : from.take_calls_of(job_)) unmade_.push_back(std::move(call));
}

Result<void> JobConnection::move() {
  auto& before = actors::process_client();
  const auto client = actors::change_agent();
  if (!client) return tl::unexpected(client.error());
  take_calls(before);
  listen(**client);
  return drive();
}

/// What nodes tell is to come to the agent of now, from where it was last heard, and so are results, as soon as that
/// reaches the nodes: it may just have been started.
Result<void> JobConnection::drive() {
  drives_from_ = steady_now() + kDriveEvery;
  auto& client = actors::process_client();
  const json body{{"job", job_.value}, {"heard", events_->heard(job_)}};
  const auto answer = client.request("drive", json_text(body), kDrivePatience);
  if (!answer) return tl::unexpected(answer.error());
  const auto said = parse_json(*answer);
  if (said.is_object() && said.value("linked", false)) client.make_again(job_, std::exchange(unmade_, {}));
  return {};
}

}  // namespace paceline::job
