#include "algorithms/session/session_impl.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "algorithms/outer.h"
#include "algorithms/step_apart.h"
#include "runtime/base/content_hash.h"
#include "runtime/base/json.h"
#include "runtime/base/steady_now.h"
#include "runtime/collective/kernels.h"
#include "scheduler/record/replay.h"

namespace paceline::session {
namespace {

constexpr Duration kTellAlone = std::chrono::milliseconds(20);  // A job of one worker tells of its updates so often.

void fill_share_request(wire::Message& message, const paceline_session_config& config) {
  auto body = message.root().initOpenShare();
  body.setJob(config.job);
  body.setRank(config.rank);
  body.setElements(config.elements);
  body.setDtype(static_cast<std::uint8_t>(config.dtype));
  body.setWorker(config.worker);
  body.setOuterElements(config.outer_elements > 0 ? config.outer_elements : config.elements);
}

/// A sealed copy of `bytes` in shared memory.
Result<memory::SharedObject> share(std::span<const std::byte> bytes) {
  const std::uint64_t size = std::max<std::size_t>(1, bytes.size());
  auto created = memory::SharedObject::create(size);
  if (!created) return created;
  auto object = memory::SharedObject::fill(fcntl(created->fd(), F_DUPFD_CLOEXEC, 0), size);
  if (!object) return object;
  if (!bytes.empty()) std::memcpy(object->writable().data(), bytes.data(), bytes.size());
  PACELINE_TRY(object->seal());
  return object;
}

/// Calls `step` with a number of the type, and how to see bytes as such numbers.
template <class Step>
void with_type(memory::Dtype dtype, const Step& step) {
  const auto call = [&](auto type) {
    using T = decltype(type);
    step(type, [](auto& bytes) { return std::span(reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)); });
  };
  dtype == memory::Dtype::f64 ? call(double{}) : call(float{});
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const paceline_session_config& config) {
  auto link = AgentLink::connect(config.endpoint, config.worker, config.fd_socket);
  if (!link) return tl::unexpected(link.error());
  std::unique_ptr<Session> session(new Session(std::move(*link)));
  wire::Message request;
  fill_share_request(request, config);
  PACELINE_TRY(session->link_.send(request));
  auto answer = session->link_.receive(30'000);
  if (!answer) return tl::unexpected(answer.error());
  PACELINE_TRY(session->configure(*std::move(answer), config));
  return session;
}

Session::~Session() {
  if (window_) set_state(State::ended);
}

Result<void> Session::configure(Answer answer, const paceline_session_config& config) {
  if (answer.fds.size() != 2)
    return fail(ErrorKind::internal, "the agent's answer to openShare lacks its two descriptors");
  const auto& body = answer.body;
  job_ = config.job;
  rank_ = config.rank;
  payloads_.gradients_until = body.value("gradients_until", std::int64_t{0});
  payloads_.models_every = body.value("models_every", std::int64_t{0});
  info_.workers = body.value("workers", 1);
  info_.bodies = body.value("bodies", 1);
  info_.first_update = body.value("first_update", std::int64_t{0});
  info_.updates = body.value("updates", std::int64_t{0});
  info_.seed = body.value("seed", std::uint64_t{0});
  info_.rotate_shards = body.value("rotate_shards", false);
  info_.reset_momentum = body.value("reset_momentum", false);
  if (const auto outer = body.find("outer"); outer != body.end()) {
    outer_.kind = static_cast<algorithms::Outer::Kind>(outer->value("kind", 0));
    outer_.momentum = outer->value("momentum", 0.0);
    outer_.rate = outer->value("rate", 1.0);
    outer_.nesterov = outer->value("nesterov", false);
    info_.outer_step = static_cast<std::int32_t>(outer_.kind);
  }
  publishes_every_ = body.value("publishes_every_iteration", false);
  abandons_ = body.value("abandons", false);
  own_pace_ = body.value("own_pace", false);
  shows_start_ = body.value("shows_start", false);
  weighs_by_samples_ = body.value("weighs_by_samples", false);
  alone_ = info_.workers == 1 && !has_outer_step() && !shows_start_;
  accumulates_ = body.value("accumulates", false);
  finishes_ = body.value("finishes", false);
  steps_by_batch_ = shows_start_ && payloads_.gradients_until > 0;
  steps_apart_ = body.value("steps_apart", false) && !alone_;
  loss_window_ = std::max<std::size_t>(1, body.value("loss_window", std::size_t{1}));
  next_round_ = body.value("next_round", std::int64_t{0});
  time_limit_ = from_seconds(body.value("time_limit_s", 0.0));
  lr_may_decay_ = body.value("lr_may_decay", true);

  const memory::Window::Layout layout{config.elements, static_cast<memory::Dtype>(config.dtype),
                                      body.value("buffers", 1)};
  auto window = memory::Window::map(answer.fds[0].release(), layout);
  if (!window) return tl::unexpected(window.error());
  window_.emplace(std::move(*window));
  outer_elements_ = config.outer_elements > 0 ? config.outer_elements : config.elements;
  auto control = memory::ControlPage::map(answer.fds[1].get());
  if (!control) return tl::unexpected(control.error());
  control_.emplace(std::move(*control));

  node_ = body.value("node", 0);
  if (const auto path = body.value("trace", std::string()); !path.empty()) {
    if (auto trace = observe::TraceWriter::open(path)) {
      trace_.emplace(std::move(*trace));
      trace_->name_track(node_, rank_ + 1, "node " + std::to_string(node_), "worker " + std::to_string(rank_));
    }
  }
  info_.payload = payload_at(info_.first_update);
  begin_update(info_.first_update);
  in_window_ = lives_in_window();
  return {};
}

/// Alone a worker's own gradient is the average, and its model stays where it is.
paceline_payload Session::payload_at(std::int64_t update) const {
  if (alone_) return payloads_.gradients_until > 0 ? PACELINE_GRADIENTS : PACELINE_MODELS;
  switch (payloads_.at(update, info_.updates - 1)) {
    case algorithms::Payloads::Kind::gradients: break;
    case algorithms::Payloads::Kind::models: return PACELINE_MODELS;
    case algorithms::Payloads::Kind::both: return PACELINE_BOTH;
  }
  return PACELINE_GRADIENTS;
}

void Session::plan(std::int64_t first_update, std::int64_t updates, std::int64_t evaluate_every) {
  info_.first_update = first_update;
  info_.updates = updates;
  evaluate_every_ = evaluate_every;
  if (time_limit_ > Duration::zero()) time_is_up_ = steady_now() + time_limit_;
  begin_update(first_update);
  in_window_ = lives_in_window();
  const nlohmann::json body{{"first", first_update}, {"updates", updates}, {"evaluate_every", evaluate_every}};
  report("plan", "", 0, json_text(body).c_str());
}

paceline_next Session::next(paceline_lease& lease) {
  while (true) {
    const auto what = look(lease);
    if (what != PACELINE_BODY || !steps_by_batch_ || lease_.body > 0 || !batch_is_over()) return what;
    end_batch(0);  // Before it began: the agent goes on for it.
  }
}

paceline_next Session::look(paceline_lease& lease) {
  result_ = {};
  lease = lease_;
  if (time_is_up_ && steady_now() >= *time_is_up_) {
    time_is_up_.reset();
    stop_job("the time limit was reached");
  }
  if (!started_) {
    started_ = true;
    if (rank_ == 0 && !alone_) return PACELINE_CAPTURE;
    update_began_ = steady_now();  // Alone: nothing is ever published, the agent is only told.
    needs_replica_ = rank_ != 0;
  }
  if (needs_replica_) {
    set_state(State::restore);
    if (!fetch_replica()) return lost_ ? PACELINE_LOST : PACELINE_END;
    if (replica_) return PACELINE_RESTORE;
    restored();  // From its own: the newest that can be had.
    lease = lease_;
  }
  const auto held = [&] {
    const std::int64_t hold = control_->words().hold.load(std::memory_order_acquire);
    return hold >= 0 && lease_.update > hold;
  };
  const auto my_turn = [&] {
    const std::int64_t version = control_->words().evaluate.load(std::memory_order_acquire);
    return version >= 0 && (own_pace_ || version < lease_.update) && evaluated_ < version;
  };
  if (held() && !stopped()) {
    set_state(State::wait);
    const Instant begin = steady_now();
    // Others evaluate, or the job ends: no part of training.
    wait_until([&] { return !held() || my_turn() || capture_wanted(); }, false);
    if (!lost_ && !stopped() && held()) {
      return my_turn() ? take_evaluation(lease) : take_capture();
    }
    span("hold", begin, steady_now());
    update_began_ = steady_now();
  }
  if (!stopped() && my_turn()) return take_evaluation(lease);
  if (lost_) return PACELINE_LOST;
  if (stopped() || lease_.update > last()) {
    set_state(State::ended);
    return PACELINE_END;
  }
  if (capture_wanted()) return take_capture();
  if (may_save()) {
    saves_seen_ = control_->words().save_wanted.load(std::memory_order_acquire);
    update_began_ = steady_now();
    return PACELINE_SAVE;
  }
  set_state(State::compute);
  in_window_ = lives_in_window();
  if (const auto start = window_->writing(); steps_apart_ && start) {
    const auto model = window_->data(*start);
    start_.assign(model.begin(), model.end());
  }
  return PACELINE_BODY;
}

bool Session::capture_wanted() const {
  return control_->words().capture_wanted.load(std::memory_order_acquire) != captures_seen_;
}

paceline_next Session::take_capture() {
  captures_seen_ = control_->words().capture_wanted.load(std::memory_order_acquire);
  return PACELINE_CAPTURE;
}

/// Between updates, and where models drift apart between two averagings after one of them.
bool Session::may_save() const {
  return control_->words().save_wanted.load(std::memory_order_acquire) != saves_seen_ && lease_.body == 0 &&
         (is_average_ || alone_ || own_pace_);
}

void Session::saved() {
  span("hold", update_began_, steady_now());
  update_began_ = steady_now();  // Not a part of the next update's computing.
  report("saved", "", 0, "");
}

paceline_span Session::outer() const {
  return {const_cast<std::byte*>(outer_state_.data()), static_cast<std::uint64_t>(outer_state_.size())};
}

bool Session::set_outer(std::span<const std::byte> state) {
  if (!has_outer_step() || state.size() != 2 * outer_elements_ * memory::size_of(window_->layout().dtype)) return false;
  outer_state_.assign(state.begin(), state.end());
  return true;
}

paceline_next Session::take_evaluation(paceline_lease& lease) {
  set_state(State::evaluate);
  update_began_ = steady_now();
  evaluating_ = control_->words().evaluate.load(std::memory_order_acquire);
  lease.update = evaluating_ + 1;
  return PACELINE_EVALUATE;
}

/// The averaged model that is evaluated, where it is not the worker's own.
std::optional<memory::Buffer> Session::snapshot() const {
  const auto latest = own_pace_ ? window_->latest() : std::nullopt;  // Else what is there is a sum.
  return evaluating_ >= 0 && latest && window_->tag(*latest).iteration == evaluating_ ? latest : std::nullopt;
}

paceline_span Session::model() const {
  auto buffer = snapshot();
  if (!buffer) buffer = window_->writing();
  if (!buffer || !in_window_) return {};
  return {window_->data(*buffer).data(), window_->layout().elements};
}

/// Where rounds may fire without a worker, its window answers from the first model on.
void Session::placed() {
  if (started_ && publishes_every_ && !window_->published()) publish_start();
}

/// Windows of models answer from the first moment on: the start is published as iteration -1 (WAGMA's send buffer
/// begins as W_0).
void Session::publish_start() {
  update_began_ = steady_now();
  if (const auto start = window_->writing(); has_outer_step() && start && outer_state_.empty()) {
    const auto model = window_->data(*start).first(outer_elements_ * memory::size_of(window_->layout().dtype));
    outer_state_.assign(model.begin(), model.end());
    outer_state_.resize(2 * model.size());
  }
  if (!lives_in_window() || window_->layout().buffers < 2) return;
  const auto first = window_->writing();
  if (!first) return;
  window_->tag(*first) = {};
  window_->tag(*first).iteration = lease_.update - 1;
  if (!window_->publish(true)) return;
  const auto source = window_->data(*first);
  std::memcpy(window_->data(*window_->writing()).data(), source.data(), source.size());
  if (!shows_start_) return;
  arrivals_.push_back({lease_.update - 1, {}, 0});
  tell_arrivals();
  const auto seen = [&] {
    const auto answer = control_->verdict(verdicts_seen_);
    if (!answer) return false;
    verdicts_seen_ = answer->number;
    next_round_ = std::max(next_round_, answer->verdict.next_round);
    return true;
  };
  wait_until(seen, false);
  update_began_ = steady_now();
}

void Session::begin_update(std::int64_t update) {
  lease_ = {update, 0, payload_at(update), lr_may_decay_};
  update_began_ = steady_now();
  window_->progress().bodies.store(0, std::memory_order_release);
  window_->progress().step.store(update, std::memory_order_relaxed);
}

/// The model that all got is the mean at a block's end; the next block starts where the outer step carries it. Every
/// worker computes the same from the same numbers.
void Session::start_next_block(double learning_rate) {
  const auto buffer = window_->writing();
  if (!buffer) return;
  auto block = window_->data(*buffer);
  with_type(window_->layout().dtype, [&](auto type, const auto& as) {
    const auto mean = as(block).first(outer_elements_), state = as(outer_state_);
    const auto anchor = state.first(outer_elements_);
    algorithms::outer_step<decltype(type)>(outer_, anchor, state.last(outer_elements_), mean, learning_rate);
    // The job's model is what the block ended with, not where another one would start.
    if (lease_.update > last()) std::copy(anchor.begin(), anchor.end(), mean.begin());
  });
}

void Session::add_loss(const paceline_stats& stats) {
  losses_.push_back(stats.loss);
  if (losses_.size() > loss_window_) losses_.pop_front();
  samples_ += stats.samples;
  window_->progress().samples.fetch_add(stats.samples, std::memory_order_relaxed);
}

void Session::fill_tag(memory::BufferTag& tag, const paceline_stats& stats) {
  tag.iteration = lease_.update;
  tag.bodies = lease_.body + 1;
  tag.divisor = 1;
  tag.loss_sum = std::accumulate(losses_.begin(), losses_.end(), 0.0) / static_cast<double>(losses_.size());
  tag.loss_count = 1;
  tag.samples = samples_;
  tag.learning_rate = stats.learning_rate;
}

bool Session::abandoned() const { return control_->words().abandoned.load(std::memory_order_acquire) >= lease_.update; }

void Session::arrive() {
  const Duration took = steady_now() - update_began_;
  window_->progress().compute_ns.fetch_add(took.count(), std::memory_order_relaxed);
  const bool cut_short = steps_by_batch_ && abandons_ && lease_.body < info_.bodies;
  span(cut_short ? "abandoned" : "compute", update_began_, update_began_ + took);
  arrivals_.push_back({lease_.update, took, losses_.empty() ? 0 : losses_.back()});
  const Instant now = update_began_ + took;
  if (alone_ && !due_alone() && now - told_ < kTellAlone) return;  // Nobody waits for it.
  told_ = now;
  tell_arrivals();
}

void Session::tell_arrivals() {
  for (const auto& arrival : std::exchange(arrivals_, {})) {
    wire::Message message;
    auto body = message.root().initArrive();
    body.setJob(job_);
    body.setRank(rank_);
    body.setIteration(arrival.update);
    body.setComputeNs(arrival.took.count());
    body.setLoss(arrival.loss);
    post(message);
  }
}

/// The one that this mini-batch makes.
std::int64_t Session::publication() const { return scheduler::Replay::publication(lease_.update, lease_.body + 1); }

std::int64_t Session::may_publish() const { return control_->words().may_publish.load(std::memory_order_acquire); }

/// In a replay: not before the seal that took what this worker had published before. At once in any other run.
bool Session::wait_for_turn() {
  const auto mine = [&] { return publication() <= may_publish() || (abandons_ && abandoned()); };
  return mine() || wait_until(mine);
}

/// A message that cannot leave matters only if the agent is gone: it is told of everything again by what follows.
void Session::post(wire::Message& message) {
  if (!link_.send(message)) lost_ = !link_.agent_is_there();
}

/// Whether a job of one worker may end with the present update, or be evaluated after it: the evaluation that is due
/// comes with the strategy's next round of all.
bool Session::due_alone() const {
  const std::int64_t update = lease_.update;
  const std::int64_t evaluated = std::max(evaluated_, info_.first_update - 1);
  return update >= last() || stop_asked_ ||
         (evaluate_every_ > 0 && (update + 1) / evaluate_every_ > (evaluated + 1) / evaluate_every_);
}

/// A job of one worker: its own contribution is the average, so it waits for its agent only where an evaluation is due.
paceline_outcome Session::go_on_alone() {
  const std::int64_t update = lease_.update;
  if (due_alone()) {
    const auto answered = [&] {
      if (abandons_) return executed() >= update;
      const auto answer = control_->verdict(verdicts_seen_);
      return answer && answer->verdict.own >= update;
    };
    if (!wait_until(answered)) return PACELINE_OVER;
  }
  begin_update(update + 1);
  return PACELINE_APPLY;
}

paceline_outcome Session::step_model(const paceline_stats& stats) {
  if (lost_ || stopped()) return PACELINE_OVER;
  const auto buffer = window_->writing();
  if (!buffer) return PACELINE_OVER;
  if (lease_.payload != PACELINE_BOTH) add_loss(stats);  // Else its gradient has told.
  if (lease_.update < next_round_ && lease_.update < last() && !publishes_every_) {
    span("compute", update_began_, steady_now());
    is_average_ = false;
    begin_update(lease_.update + 1);
    return PACELINE_GO_ON;
  }
  fill_tag(window_->tag(*buffer), stats);
  if (!weighs_by_samples_) samples_ = 0;
  if (alone_) {
    arrive();
    return go_on_alone() == PACELINE_APPLY ? PACELINE_GO_ON : PACELINE_OVER;
  }
  if (!wait_for_turn()) return PACELINE_OVER;
  const Instant publish_began = steady_now();
  if (steps_apart_) take_step_apart(*buffer);
  window_->publish(publishes_every_);
  span("publish", publish_began, steady_now());
  arrive();
  const auto outcome = take_verdict(*buffer);
  if (outcome != PACELINE_APPLY) return outcome;
  if (has_outer_step()) start_next_block(stats.learning_rate);
  return PACELINE_MOVED;
}

paceline_outcome Session::take_verdict(memory::Buffer published) {
  set_state(State::wait);
  const Instant begin = steady_now();
  std::optional<memory::ControlPage::Numbered> answer;
  if (!wait_until([&] { return (answer = control_->verdict(verdicts_seen_)).has_value(); })) return PACELINE_OVER;
  span("wait", begin, steady_now());
  verdicts_seen_ = answer->number;
  const memory::WorkerVerdict* verdict = &answer->verdict;
  if (verdict->averaged) {
    samples_ = 0;
    ++averagings_;
  }
  next_round_ = verdict->next_round;
  lr_may_decay_ = verdict->lr_may_decay;
  // The job is over and this worker was late for its last averaging: it ends with the same model as the others.
  needs_replica_ = verdict->end && !verdict->fresh;
  const bool gradients = lease_.payload == PACELINE_GRADIENTS;
  is_average_ = verdict->averaged || gradients;
  if (!verdict->averaged && !gradients) {
    // Published without a round: go on from the same numbers, in the buffer that publish() reserved, or in the very one
    // (a run that was resumed between two rounds learns only now when the next one is).
    auto to = window_->writing();
    if (!to) to = window_->withdraw();
    if (!to) return PACELINE_OVER;
    if (*to != published)
      std::memcpy(window_->data(*to).data(), window_->data(published).data(), window_->data(*to).size());
  }
  if (steps_apart_) put_step_together(verdict->fresh);
  if (gradients) {
    const auto buffer = window_->writing();
    if (!buffer) return PACELINE_OVER;
    result_ = {window_->data(*buffer).data(), window_->layout().elements};
  }
  if (!needs_replica_) begin_update(verdict->next);  // Else the agent sees that it is not there yet.
  return verdict->averaged || gradients ? PACELINE_APPLY : PACELINE_GO_ON;
}

void Session::take_step_apart(memory::Buffer buffer) {
  auto model = window_->data(buffer);
  change_.resize(model.size());
  with_type(window_->layout().dtype, [&](auto type, const auto& as) {
    algorithms::take_step_apart<decltype(type)>(as(model), as(start_), as(change_));
  });
}

void Session::put_step_together(bool fresh) {
  const auto buffer = window_->writing();
  if (!buffer) return;
  auto result = window_->data(*buffer);
  const std::int64_t summands = fresh ? window_->tag(*buffer).divisor : 1;
  with_type(window_->layout().dtype, [&](auto type, const auto& as) {
    algorithms::put_step_together<decltype(type)>(as(result), summands, as(start_), as(change_));
  });
}

void Session::evaluated(double value) {
  span("evaluate", update_began_, steady_now());
  update_began_ = steady_now();  // Not a part of the next update's computing.
  evaluated_ = std::exchange(evaluating_, -1);
  report_at(evaluated_, "evaluated", "", value, "");
}

std::int64_t Session::last() const {
  return std::min(info_.updates - 1, control_->words().last.load(std::memory_order_acquire));
}

void Session::stop_job(const char* reason) {
  stop_asked_ = true;
  tell_arrivals();  // The wish is for what follows.
  report("stop", "", 0, reason);
}

bool Session::stopped() const { return control_->words().stop.load(std::memory_order_acquire) != 0; }

std::int64_t Session::executed() const { return control_->words().executed.load(std::memory_order_acquire); }

void Session::capture(std::span<const std::byte> replica) {
  auto object = share(replica);
  if (object) {
    nlohmann::json body{
        {"kind", "replica"}, {"job", job_}, {"rank", rank_}, {"update", lease_.update}, {"size", replica.size()}};
    if (!link_.send_descriptor(body, object->fd())) lost_ = !link_.agent_is_there();
  } else {
    report("fail", "", 0, object.error().text.c_str());
  }
  // Rank 0's first capture is everybody's start.
  if (lease_.update == info_.first_update && lease_.body == 0 && !window_->published()) publish_start();
}

/// Asks for a replica and blocks until a donor's is here, or the word that there is none to be had.
Result<void> Session::fetch_replica() {
  wire::Message message;
  auto body = message.root().initReplicaWanted();
  body.setJob(job_);
  body.setRank(rank_);
  body.setUpdate(lease_.update);
  PACELINE_TRY(link_.send(message));
  while (!stopped()) {
    auto answer = link_.receive(static_cast<int>(kLook / std::chrono::milliseconds(1)));
    if (!answer) {
      if (answer.error().kind == ErrorKind::timed_out) continue;
      lost_ = true;
      return tl::unexpected(answer.error());
    }
    const auto kind = answer->body.value("kind", "");
    replica_update_ = answer->body.value("update", std::int64_t{0});
    if (kind == "go_on") return {};
    if (kind != "replica" || answer->fds.size() != 1) continue;
    auto object = memory::SharedObject::map(answer->fds[0].release(),
                                            std::max<std::uint64_t>(1, answer->body.value("size", std::uint64_t{0})));
    if (!object) return tl::unexpected(object.error());
    replica_.emplace(std::move(*object));
    return {};
  }
  return fail(ErrorKind::cancelled, "the job was stopped");
}

paceline_span Session::replica() const {
  if (!replica_) return {};
  return {const_cast<std::byte*>(replica_->data().data()), replica_->data().size()};
}

void Session::restored() {
  replica_.reset();
  needs_replica_ = false;
  const bool at_start = !window_->published();
  begin_update(replica_update_);
  next_round_ = std::max(next_round_, replica_update_);
  if (at_start) publish_start();
}

double Session::sleep(double seconds_to_sleep) {
  const Instant begin = steady_now();
  const Instant end = begin + from_seconds(seconds_to_sleep);
  while (true) {
    const std::uint32_t bell = control_->bell();
    const Instant now = steady_now();
    if (now >= end || stopped() || (abandons_ && abandoned())) break;
    if (!control_->wait(bell, std::min(kLook, end - now)) && !link_.agent_is_there()) {
      lost_ = true;
      break;
    }
  }
  return seconds(steady_now() - begin);
}

void Session::end_with(std::span<const paceline_span> pieces, std::size_t width) {
  ContentHash hash;
  for (const auto& piece : pieces)
    hash.add({static_cast<const char*>(piece.data), static_cast<std::size_t>(piece.elements) * width});
  report("final", "", 0, hash.hex().c_str());
}

void Session::report(const char* kind, const char* name, double value, const char* text) {
  report_at(lease_.update - 1, kind, name, value, text);
}

void Session::report_at(std::int64_t update, const char* kind, const char* name, double value, const char* text) {
  wire::Message message;
  auto body = message.root().initReport();
  body.setJob(job_);
  body.setRank(rank_);
  body.setKind(kind);
  body.setName(name);
  body.setValue(value);
  body.setText(text);
  body.setUpdate(update);
  post(message);
}

Result<void*> Session::object(const std::string& key, std::uint64_t size, bool& fill) {
  wire::Message message;
  auto body = message.root().initOpenObject();
  body.setJob(job_);
  body.setKey(key);
  body.setSize(size);
  body.setWorker(0);
  PACELINE_TRY(link_.send(message));
  while (true) {
    auto answer = link_.receive(1000);
    if (!answer) {
      if (answer.error().kind == ErrorKind::timed_out && !stopped()) continue;
      return tl::unexpected(answer.error());
    }
    if (answer->body.value("kind", "") != "object" || answer->fds.size() != 1) continue;
    fill = answer->body.value("fill", false);
    const int fd = answer->fds[0].release();
    auto object = fill ? memory::SharedObject::fill(fd, size) : memory::SharedObject::map(fd, size);
    if (!object) return tl::unexpected(object.error());
    auto [it, inserted] = objects_.insert_or_assign(key, std::move(*object));
    return fill ? static_cast<void*>(it->second.writable().data()) : const_cast<std::byte*>(it->second.data().data());
  }
}

void Session::seal_object(const std::string& key) {
  const auto it = objects_.find(key);
  if (it == objects_.end()) return;
  if (const auto sealed = it->second.seal(); !sealed) {
    report("fail", "", 0, sealed.error().text.c_str());
    return;
  }
  wire::Message message;
  auto body = message.root().initSealObject();
  body.setJob(job_);
  body.setKey(key);
  post(message);
}

void Session::set_state(State state) {
  window_->progress().state.store(static_cast<std::uint32_t>(state), std::memory_order_relaxed);
}

void Session::span(const char* category, Instant begin, Instant end) {
  if (!trace_) return;
  char which[40];
  std::snprintf(which, sizeof which, "{\"update\":%lld}", static_cast<long long>(lease_.update));
  trace_->span(node_, rank_ + 1, category, begin, end, which);
}

}  // namespace paceline::session
