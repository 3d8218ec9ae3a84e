#include "algorithms/simulate/cluster/simulated_driver.h"

#include <algorithm>
#include <utility>

#include "actors/process_ids.h"
#include "actors/protocol_wire.h"
#include "algorithms/job/job_event_wire.h"
#include "algorithms/simulate/cluster/must.h"

namespace paceline::simulate {
namespace {

using nlohmann::json;
using Heard = job::HeardEvents::Event;

constexpr Duration kStopPatience = std::chrono::seconds(2);     // Then its workers' calls are waited for no longer.
constexpr Duration kAskEvery = std::chrono::milliseconds(100);  // Workers to leave, or places to be moved.
constexpr Duration kJoinPatience = std::chrono::seconds(1);
constexpr Duration kAgentLook = std::chrono::milliseconds(20);  // For one that lives.

}  // namespace

SimulatedDriver::SimulatedDriver(NodeId node, std::int32_t nodes, std::string name, Connect connect, const Clock& clock,
                                 std::vector<std::string>& findings)
    : node_(node),
      nodes_(nodes),
      name_(std::move(name)),
      connect_(std::move(connect)),
      endpoint_(connect_(node, name_)),
      clock_(clock),
      findings_(findings) {
  say_hello();
}

void SimulatedDriver::say_hello() {
  wire::Message hello;
  auto body = hello.root().initHello();
  body.setRole("driver");
  body.setName(name_);
  (void)endpoint_->send("agent", {hello.to_frame()});
  actors::Executable executable;
  executable.path = "/simulated";
  (void)endpoint_->send("agent", actors::encode(executable));
}

// What it asks for

ActorId SimulatedDriver::create(NodeId node, const std::string& name, actors::RestartRule rule, JobId job) {
  actors::CreateActor create;
  create.actor = actors::actor_id(node, process_, next_actor_++);
  create.name = name;
  create.owner = name_;
  create.naming.claims = !name.empty();
  create.rule = rule;
  create.type = "Simulated";
  create.job = job;
  actors_.emplace(create.actor, std::nullopt);
  (void)endpoint_->send("agent", actors::encode(create));
  return create.actor;
}

TaskId SimulatedDriver::call(ActorId actor, std::vector<Bytes> arguments) {
  actors::Call call;
  call.task = actors::task_id(process_, next_call_);
  call.number = next_call_++;
  call.actor = actor;
  call.arguments = std::move(arguments);
  calls_.emplace(call.task, Made{actor, {}});
  if (const auto dead = actors_.find(actor); dead != actors_.end() && dead->second) {
    calls_.at(call.task).result = tl::unexpected(*dead->second);  // A client knows that its actor has died.
    return call.task;
  }
  const auto task = call.task;
  (void)endpoint_->send("agent", actors::encode(call));
  return task;
}

std::uint64_t SimulatedDriver::request(const std::string& verb, const std::string& json) {
  wire::Message message;
  auto body = message.root().initRequest();
  body.setId(next_request_);
  body.setVerb(verb);
  body.setJson(json);
  body.setFrom(name_);
  requests_.emplace(next_request_, Asked{verb, {}});
  (void)endpoint_->send("agent", {message.to_frame()});
  return next_request_++;
}

SimulatedDriver::Job& SimulatedDriver::submit(json options, Training training) {
  auto job = std::make_unique<Job>();
  job->options = std::move(options);
  job->training = std::move(training);
  job->submitted = request("submit", json_text(job->options));
  jobs_.push_back(std::move(job));
  return *jobs_.back();
}

// What it hears

bool SimulatedDriver::step() {
  if (gone_ || (!endpoint_ && !find_agent())) return false;
  bool any = hear();
  if (!endpoint_ || is_new_) return any;
  for (auto& job : jobs_) any = carry_on(*job) || any;
  return any;
}

std::optional<Instant> SimulatedDriver::next_deadline() const {
  std::optional<Instant> next;
  if (!endpoint_) return clock_.now() + kAgentLook;
  for (const auto& job : jobs_) {
    next = earlier(next, job->asks_again);
    if (job->closing) continue;
    if (job->stopped) next = earlier(next, *job->stopped + kStopPatience);
    if (job->places.wanted() && job->has_begun)
      next = earlier(next, std::max(job->asks_from, clock_.now() + kAskEvery));
    if (!job->stopped && job->ended_early) next = earlier(next, *job->ended_early + kJoinPatience);
  }
  return next;
}

bool SimulatedDriver::hear() {
  bool any = false;
  while (auto event = endpoint_->poll(Duration::zero())) {
    any = true;
    if (event->kind == transport::Event::Kind::disconnected) {
      lose_agent();
      return true;
    }
    if (event->kind != transport::Event::Kind::message) continue;
    const auto message = must(wire::Received::parse(std::move(event->frames.front())));
    must(message.visit([&](const wire::Envelope::Reader& envelope) -> Result<void> {
      on_message(envelope, event->frames);
      return {};
    }));
  }
  return any;
}

void SimulatedDriver::on_message(const wire::Envelope::Reader& envelope, std::vector<transport::Frame>& frames) {
  if (envelope.isWelcome()) {
    process_ = envelope.getWelcome().getProcess();
    if (std::exchange(is_new_, false)) begin_anew();
  }
  if (envelope.isActorReady()) {
    const auto ready = must(actors::decode(envelope.getActorReady()));
    if (ready.error.text.empty()) return;
    actors_[ready.actor] = ready.error;
    for (auto& [task, made] : calls_)
      if (made.actor == ready.actor && !made.result) made.result = tl::unexpected(ready.error);
  }
  if (envelope.isCallResult()) {
    auto result = must(actors::decode(envelope.getCallResult(), frames));
    const auto made = calls_.find(result.task);
    if (made != calls_.end() && !made->second.result) made->second.result = std::move(result.value);
  }
  if (envelope.isReply()) {
    const auto reply = envelope.getReply();
    const auto asked = requests_.find(reply.getId());
    if (asked == requests_.end()) return;
    if (asked->second.reply) findings_.push_back(name_ + " has two replies to " + asked->second.verb);
    asked->second.reply = reply.getOk() ? Result<std::string>(wire::text(reply.getJson()))
                                        : tl::unexpected(actors::read(reply.getError()));
  }
  if (envelope.isJobEvent()) {
    const auto event = envelope.getJobEvent();
    on_job_event({event.getJob(), NodeId{event.getNode()}, event.getNumber(), event.getOldest(), job::to_json(event)});
  }
}

// When its agent has ended

void SimulatedDriver::lose_agent() {
  endpoint_.reset();
  const Error gone{ErrorKind::disconnected, "its agent was gone before it answered"};
  std::set<TaskId> go_on;
  for (auto& job : jobs_) {
    if (job->closing && !requests_.at(*job->closing).reply) job->closing.reset();  // It asks again.
    job->moved.reset();
    job->asks_again.reset();
    for (const auto& run : job->runs)
      if (run && actors::node_of(calls_.at(*run).actor) != node_) go_on.insert(*run);
  }
  for (auto& [id, asked] : requests_)
    if (!asked.reply) asked.reply = tl::unexpected(gone);
  for (auto& [task, made] : calls_)
    if (!made.result && !go_on.contains(task)) made.result = tl::unexpected(gone);
  for (auto& [actor, error] : actors_)
    if (!error) error = gone;
  gone_ = std::all_of(jobs_.begin(), jobs_.end(), [this](const auto& job) { return is_over(*job); });
}

/// Another node's where there is one, else that which was started in its place.
bool SimulatedDriver::find_agent() {
  for (std::int32_t i = 1; i <= nodes_ && !endpoint_; ++i) {
    const NodeId next{(node_.value + i) % nodes_};
    endpoint_ = connect_(next, name_);
    if (endpoint_) node_ = next;
  }
  if (!endpoint_) return false;
  is_new_ = is_moved_ = true;
  say_hello();
  return true;
}

void SimulatedDriver::begin_anew() {
  for (auto& job : jobs_) {
    if (is_over(*job) || job->stopped || has_all_results(*job)) continue;
    job->moved = drive(*job);
  }
}

std::uint64_t SimulatedDriver::drive(const Job& job) {
  return request("drive", json_text(json{{"job", job.training.job}, {"heard", job.heard.list()}}));
}

/// Its workers' calls are made again, or there is no such job any more.
bool SimulatedDriver::take_up(Job& job) {
  const auto& answer = requests_.at(*job.moved).reply;
  if (!answer) return false;
  if (*answer && !parse_json(**answer).value("linked", false)) {
    if (!job.asks_again) job.asks_again = clock_.now() + kAgentLook;
    if (clock_.now() < *job.asks_again) return false;
    job.asks_again.reset();
    job.moved = drive(job);
    return true;
  }
  job.moved.reset();
  for (const auto& run : job.runs) {
    if (!run || result_of(*run)) continue;
    Made& made = calls_.at(*run);
    if (!*answer) {
      made.result = tl::unexpected(answer->error());
      continue;
    }
    actors::Call again;
    again.task = *run;
    again.actor = made.actor;
    again.again = true;
    (void)endpoint_->send("agent", actors::encode(again));
  }
  if (!*answer && job.failure.empty()) job.failure = answer->error().text;
  return true;
}

// Its jobs

void SimulatedDriver::on_job_event(const Event& event) {
  for (auto& job : jobs_) {
    if (job->training.job != event.job) continue;
    const auto heard = job->heard.on_event(event.from, event.number, event.oldest);
    if (heard == Heard::missed && !job->moved) (void)drive(*job);
    if (heard != Heard::next || job->heard.is_said_again(event.body)) return;
    const json& body = event.body;
    const auto kind = body.value("event", "");
    if (kind == "node_lost") {
      for (auto* const lost : {&job->lost, &job->ever_lost}) lost->insert(body.at("node").get<std::int32_t>());
      job->starting.erase(body.at("node").get<std::int32_t>());
    }
    if (kind == "node_joined") job->lost.erase(body.at("node").get<std::int32_t>());
    if (kind == "progress" && !job->lost.contains(body.value("node", -1)))
      job->starting[body.value("node", -1)] = body.value("starting", json::object()).value("workers", json::array());
    job->places.on_event(body);
    job->ledger.on_event(body);
    if (kind == "first_step") job->has_begun = true;
    if (kind == "left" && body.value("returns", false)) job->away.insert(body.value("worker", std::size_t{0}));
    if (kind == "left" && !body.value("returns", false)) job->away.erase(body.value("worker", std::size_t{0}));
    if (kind == "returned") job->away.erase(body.value("worker", std::size_t{0}));
    if (kind == "failed" && job->failure.empty() && !job->closing) job->failure = body.value("text", "?");
    if (kind != "progress") job->news.push_back(body);
    return;
  }
  early_events_.push_back(event);
}

bool SimulatedDriver::carry_on(Job& job) {
  if (job.refused || job.closing) return false;
  if (job.moved) return take_up(job);
  const auto& answer = requests_.at(job.submitted).reply;
  if (!answer) return false;
  if (!*answer) {
    job.failure = answer->error().text;
    return job.refused = true;
  }
  if (job.runs.empty()) {
    start_workers(job, parse_json(**answer));
    return true;
  }
  const Instant now = clock_.now();
  if (has_all_results(job) || (job.stopped && now - *job.stopped >= kStopPatience)) {
    const auto has_failed = [this](const auto& run) { return !run || (result_of(*run) && !*result_of(*run)); };
    if (!std::exchange(job.has_told_outcome, true) && is_moved_ && job.failure.empty() &&
        std::all_of(job.runs.begin(), job.runs.end(), has_failed))
      job.failure =
          result_of(**std::find_if(job.runs.begin(), job.runs.end(), [](const auto& run) { return run.has_value(); }))
              ->error()
              .text;
    job.closing = request("close", json_text(json{{"job", job.training.job},
                                                  {"outcome",
                                                   {{"state", job.failure.empty() ? "ended" : "failed"},
                                                    {"failure", job.failure.empty() ? json() : json(job.failure)}}}}));
    return true;
  }
  if (job.stopped) return false;
  if (!job.failure.empty()) {
    stop(job, "failed");
    return true;
  }
  if (!has_missing_worker(job)) {
    job.ended_early.reset();
    return scale(job);
  }
  if (!job.ended_early) job.ended_early = now;
  if (now - *job.ended_early < kJoinPatience) return false;
  stop(job, "a worker ended before it took part");
  return true;
}

void SimulatedDriver::start_workers(Job& job, const json& placed) {
  job.training.job = placed.value("job", std::uint64_t{0});
  for (const auto& event : std::exchange(early_events_, {})) on_job_event(event);
  const auto nodes = placed.at("nodes").get<std::vector<std::int32_t>>();
  job.places = job::Places(nodes, placed.value("vacant", std::vector<std::int32_t>{}), job.options.value("minimum", 1),
                           job.options.value("begin_with", 0) < 0);
  job.runs.resize(nodes.size());
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(nodes.size()); ++rank)
    if (!job.places.is_vacant(rank)) start_worker(job, rank);
}

void SimulatedDriver::start_worker(Job& job, std::int32_t rank) {
  const int restarts = job.options.value("restarts", 0);
  const actors::RestartRule rule{restarts, restarts > 0 ? -1 : 0};
  const auto at = static_cast<std::size_t>(rank);
  auto its = job.training;
  its.rank = rank;
  const auto text = its.to_text();
  Bytes bytes(text.size());
  std::transform(text.begin(), text.end(), bytes.begin(), [](char c) { return std::byte(c); });
  job.runs[at] = call(create(NodeId{job.places.node_of(rank)}, "", rule, JobId{job.training.job}), {bytes});
}

void SimulatedDriver::let_go(TaskId run) {
  (void)request(actors::kReleaseVerb, actors::to_json({{calls_.at(run).actor}, {}}));
}

/// As many workers as somebody wants, once the job has begun, and until one has come to its end.
bool SimulatedDriver::scale(Job& job) {
  if (!job.has_begun) return false;
  for (std::size_t i = 0; i < job.runs.size(); ++i) {
    const auto rank = static_cast<std::int32_t>(i);
    if (!job.runs[i] || !result_of(*job.runs[i])) continue;
    job.places.on_over(rank);
    if (job.places.is_vacant(rank)) job.away.erase(i);
    if (job.places.is_vacant(rank)) let_go(*std::exchange(job.runs[i], std::nullopt));
    if (job.runs[i] && *result_of(*job.runs[i])) return false;
  }
  const auto [start, ask, move] = job.places.next();
  for (const std::int32_t rank : start) {
    job.away.insert(static_cast<std::size_t>(rank));
    start_worker(job, rank);
  }
  if (!move.empty() && move_places(job, move)) return true;
  if (ask.empty() || clock_.now() < job.asks_from) return !start.empty();
  job.asks_from = clock_.now() + kAskEvery;
  (void)request("let_go", json_text(json{{"job", job.training.job}, {"ranks", ask}}));
  return true;
}

/// Whether anything happened.
bool SimulatedDriver::move_places(Job& job, const job::Places::Moves& moves) {
  if (job.moving) {
    const auto& reply = requests_.at(*job.moving).reply;
    if (!reply) return false;
    job.moving.reset();
    job.places.on_moved(reply->map(parse_json));
    return true;
  }
  if (clock_.now() < job.moves_from) return false;
  job.moves_from = clock_.now() + kAskEvery;
  job.moving = request("move_places", json_text(json{{"job", job.training.job}, {"places", job::Places::list(moves)}}));
  return true;
}

void SimulatedDriver::stop(Job& job, const std::string& reason) {
  if (job.failure.empty()) job.failure = reason;
  job.stopped = clock_.now();
  (void)request("stop", json_text(json{{"job", job.training.job}, {"reason", reason}}));
}

/// But of those that were still on their way back when another one had come to its end.
bool SimulatedDriver::has_all_results(const Job& job) const {
  bool all = true, others = true, ended = false;
  for (std::size_t rank = 0; rank < job.runs.size(); ++rank) {
    if (!job.runs[rank]) continue;
    const auto& result = result_of(*job.runs[rank]);
    ended |= result && *result && !job.places.is_leaving(static_cast<std::int32_t>(rank));
    all &= result.has_value();
    others &= result.has_value() || job.away.contains(rank);
  }
  return all || (others && ended);
}

/// Whether a worker ended before its node knew it as one of the job's: the others would wait for it for ever.
bool SimulatedDriver::has_missing_worker(Job& job) const {
  for (const auto& [node, ranks] : job.starting)
    for (const auto& rank : ranks)
      if (const auto& run = job.runs.at(rank.get<std::size_t>()); run && result_of(*run)) return true;
  return false;
}

bool SimulatedDriver::is_over(const Job& job) const {
  return job.refused || (job.closing && requests_.at(*job.closing).reply);
}

std::string SimulatedDriver::state_of(const Job& job) const {
  std::string state = name_ + ", job " + std::to_string(job.training.job) + " (" + job.options.value("strategy", "") +
                      ", " + std::to_string(job.options.value("workers", 0)) + " workers)";
  if (!requests_.at(job.submitted).reply) return state + ": its submission has no answer";
  if (!job.failure.empty()) state += "; failed: " + job.failure;
  if (job.stopped) state += "; stopped";
  if (job.closing) state += requests_.at(*job.closing).reply ? "; closed" : "; closing";
  for (std::size_t rank = 0; rank < job.runs.size(); ++rank) {
    if (!job.runs[rank]) continue;
    const auto& result = result_of(*job.runs[rank]);
    state += "; worker " + std::to_string(rank) + " " + (!result ? "runs" : *result ? "is done" : result->error().text);
  }
  return state;
}

}  // namespace paceline::simulate
