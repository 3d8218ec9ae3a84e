#include "algorithms/simulate/cluster/trainee.h"

#include <algorithm>
#include <array>
#include <utility>

#include "algorithms/session/job_terms_wire.h"
#include "algorithms/simulate/cluster/must.h"
#include "runtime/base/json.h"

namespace paceline::simulate {
namespace {

constexpr std::size_t kQuadratics = kScenarioDimensions;
constexpr std::int64_t kBodiesMost = 4;  // An update has, where each has a number of the model to itself.
constexpr Duration kEvaluationTakes = std::chrono::milliseconds(3);
constexpr Duration kOpenWithin = std::chrono::seconds(30);  // As a session of a process.

class OneHot final : public Problem {
 public:
  explicit OneHot(Training training) : training_(std::move(training)) {}
  std::int32_t workers() const override { return training_.workers; }
  std::size_t dimensions() const override { return training_.index_of(training_.workers, 0); }
  std::pair<Vector, double> gradient(Rank worker, Version step, const Vector&) const override {
    Vector gradient(dimensions());
    gradient.at(training_.index_of(worker.value, step.value)) = -1;
    return {gradient, 1.0};
  }
  double objective(const Vector&) const override { return 0; }
  double gradient_ns() const override { return 0; }

 private:
  const Training training_;
};

std::shared_ptr<const Problem> problem_of(const Training& training) {
  if (training.problem == Training::Problem::one_hot) return std::make_shared<OneHot>(training);
  if (training.problem == Training::Problem::scenario)
    return scenario_problem({.workers = training.workers, .seed = training.seed});
  constexpr std::array kCurvature{1.0, 2.0, 1.0, 2.0}, kCentre{0.0, 4.0, 8.0, 12.0};
  std::vector<Quadratic> workers;
  for (std::size_t i = 0; i < static_cast<std::size_t>(training.workers); ++i)
    workers.push_back({Vector(kQuadratics, kCurvature.at(i % 4)), Vector(kQuadratics, kCentre.at(i % 4))});
  return make_quadratic(std::move(workers));
}

/// The first of an update, where a worker had so many before the leg.
std::int64_t body_number_at(const session::SessionCore& core, std::int64_t before, std::int64_t update) {
  return before + (update - core.info().first_update) * core.info().bodies;
}

}  // namespace

std::size_t Training::index_of(std::int32_t worker, std::int64_t body) const {
  return static_cast<std::size_t>(worker * updates * kBodiesMost + body);
}

std::string Training::to_text() const {
  return json_text(nlohmann::json{{"job", job},
                                  {"rank", rank},
                                  {"workers", workers},
                                  {"updates", updates},
                                  {"evaluate_every", evaluate_every},
                                  {"compute", compute},
                                  {"lr", lr},
                                  {"seed", seed},
                                  {"problem", problem},
                                  {"stands_still", stands_still},
                                  {"at", at},
                                  {"epoch", epoch}});
}

Training Training::from(const std::string& text) {
  const auto json = parse_json(text);
  return {json.at("job"),     json.at("rank"), json.at("workers"), json.at("updates"), json.at("evaluate_every"),
          json.at("compute"), json.at("lr"),   json.at("seed"),    json.at("problem"), json.at("stands_still"),
          json.at("at"),      json.at("epoch")};
}

Trainee::Trainee(WorkerId worker, Training training, Agent agent, const Clock& clock)
    : worker_(worker),
      training_(std::move(training)),
      agent_(std::move(agent)),
      clock_(clock),
      takes_(must(parse_distribution(training_.compute))),
      problem_(problem_of(training_)),
      elements_(problem_->dimensions()),
      local_(elements_) {
  open();
}

std::span<double> Trainee::x() { return {window_ != nullptr ? window_ : local_.data(), elements_}; }

void Trainee::open() {
  wire::Message message;
  auto body = message.root().initOpenShare();
  body.setJob(training_.job);
  body.setRank(training_.rank);
  body.setElements(elements_);
  body.setDtype(PACELINE_F64);
  body.setWorker(worker_.value);
  body.setOuterElements(elements_);
  body.setRequest(request_);
  agent_.say(message);
  until_ = clock_.now() + kOpenWithin;
}

void Trainee::on_answer(process::DescriptorMessage answer) {
  if (answer.request != request_) return;
  if (answer.kind == process::DescriptorMessage::Kind::failure) return end(answer.body);
  const auto message = must(wire::Received::parse_packet(answer.body));
  const bool opens = doing_ == Doing::opening;
  if (opens && !message.root().isJobTerms()) return end("an answer of another kind");
  if (opens) return open_session(std::move(answer), session::job_terms(message.root().getJobTerms()));
  if (!message.root().isReplica()) return end("an answer of another kind");
  const auto replica = message.root().getReplica();
  if (answer.fds.empty()) return core_->on_go_on(replica.getUpdate());
  auto object = store::SharedObject::map(std::move(answer.fds.front()), replica.getSize());
  object ? core_->on_replica(replica.getUpdate(), *std::move(object)) : end(object.error().text);
}

void Trainee::open_session(process::DescriptorMessage answer, const session::JobTerms& terms) {
  auto window = memory::Window::map(std::move(answer.fds.at(0)), {elements_, memory::Dtype::f64, terms.buffers});
  auto control = memory::ControlPage::map(answer.fds.at(1));
  if (!window || !control) return end("a window that cannot be mapped");
  session::SessionCore::Outbox outbox;
  outbox.message = agent_.say;
  outbox.wants_replica = [this] { return ++request_; };
  outbox.replica = [this](std::int64_t update, store::SharedObject::Pieces state) {
    const auto object = must(store::SharedObject::sealed_copy_of(state));
    wire::Message captured;
    auto body = captured.root().initReplica();
    body.setJob(named_);
    body.setRank(training_.rank);
    body.setUpdate(update);
    body.setSize(object.size());
    process::DescriptorMessage message;
    message.kind = process::DescriptorMessage::Kind::captured;
    message.body = captured.to_packet();
    message.fds.push_back(object.fd().duplicate());
    agent_.hand(std::move(message));
  };
  outbox.span = [](const char*, Instant, Instant, std::int64_t) {};
  if (core_) before_ = body_number_at(*core_, before_, terms.first_update);
  if (!terms.place.empty()) before_ = std::stoll(terms.place);
  named_ = terms.job;
  if (terms.goes_on) began_with_[terms.first_update] = local_;
  core_.emplace(session::SessionCore::Share{named_, training_.rank, elements_}, terms, *std::move(window),
                *std::move(control), std::move(outbox), clock_);
  // As a training script does: its model is there before the job is planned.
  (void)follow();
  doing_ = Doing::looking;
  plan();
}

void Trainee::plan() {
  const std::int64_t first = core_->info().first_update, each = training_.epoch;
  session::SessionCore::Dealt dealt;
  dealt.place = std::to_string(before_);
  if (each > 0) {
    const std::int64_t left = each - before_ % each;
    dealt.samples = training_.workers * each;
    dealt.epoch = before_ / each;
    dealt.end = first * core_->info().bodies + left;
    dealt.left = training_.workers * left;
  }
  core_->deals(dealt);
  core_->plan(first, training_.updates, training_.evaluate_every);
}

/// The job goes on with another strategy.
void Trainee::begin_next_leg() {
  (void)follow();
  if (window_ != nullptr) local_.assign(window_, window_ + elements_);
  window_ = nullptr;
  placing_ = false;
  doing_ = Doing::opening;
  ++request_;
  open();
}

bool Trainee::step() {
  bool any = false;
  if (doing_ == Doing::opening && clock_.now() >= until_) end("its agent does not answer");
  while (core_ && !is_over() && advance()) any = true;
  return any;
}

std::optional<Instant> Trainee::next_deadline() const {
  if (doing_ == Doing::computing || doing_ == Doing::evaluating || doing_ == Doing::opening) return until_;
  return std::nullopt;
}

bool Trainee::advance() {
  switch (doing_) {
    case Doing::opening:
    case Doing::nothing: return false;
    case Doing::following:
      if (!follow()) return false;
      doing_ = then_;
      return true;
    case Doing::looking: return look();
    case Doing::computing:
      if (clock_.now() < until_ && !core_->is_cut_short()) return false;
      end_body();
      return true;
    case Doing::stepping: return step_with_gradient();
    case Doing::stepping_model: return step_with_model();
    case Doing::capturing:
      if (const auto whole = state(); !core_->capture({&whole, 1})) return false;
      follow_then(Doing::looking);
      return true;
    case Doing::restoring:
      if (!core_->restored()) return false;
      follow_then(Doing::looking);
      return true;
    case Doing::evaluating:
      if (clock_.now() < until_) return false;
      core_->evaluated(problem_->objective({x().begin(), x().end()}));
      follow_then(Doing::looking);
      return true;
  }
  return false;
}

void Trainee::follow_then(Doing next) {
  doing_ = Doing::following;
  then_ = next;
}

/// The model lies where the session wants it.
bool Trainee::follow() {
  if (placing_ && !core_->placed()) return false;
  placing_ = false;
  auto* const at = static_cast<double*>(core_->model().data);
  if (at == window_) return true;
  if (at == nullptr) std::copy(window_, window_ + elements_, local_.begin());
  placing_ = at != nullptr && window_ == nullptr;
  if (placing_) std::copy(local_.begin(), local_.end(), at);
  window_ = at;
  return !placing_ || follow();
}

bool Trainee::look() {
  const auto next = core_->next(lease_);
  if (!next) return false;
  switch (*next) {
    case PACELINE_BODY:
      if (training_.stands_still == training_.rank && lease_.update == training_.at) {
        until_ = Instant::max();
        doing_ = Doing::computing;
        break;
      }
      until_ = clock_.now() + from_seconds(draw(takes_, training_.seed, Rank{training_.rank}, draws_++));
      follow_then(Doing::computing);
      break;
    case PACELINE_EVALUATE:
      until_ = clock_.now() + kEvaluationTakes;
      follow_then(Doing::evaluating);
      break;
    case PACELINE_CAPTURE: doing_ = Doing::capturing; break;
    case PACELINE_SAVE: core_->saved(); break;
    case PACELINE_RESTORE: {
      const auto replica = core_->replica();
      take({static_cast<const std::byte*>(replica.data), replica.elements}) ? void(doing_ = Doing::restoring)
                                                                            : end("the replica has another size");
      break;
    }
    case PACELINE_END:
      (void)follow();
      end("");
      break;
    case PACELINE_LOST: end("its node agent is gone"); break;
    case PACELINE_NEXT_LEG: begin_next_leg(); break;
  }
  return true;
}

/// The model, and what the outer step goes on from.
std::span<const std::byte> Trainee::state() {
  const auto model = std::as_bytes(x());
  const auto outer = core_->outer();
  state_.assign(model.begin(), model.end());
  const auto* const more = static_cast<const std::byte*>(outer.data);
  state_.insert(state_.end(), more, more + outer.elements);
  return state_;
}

bool Trainee::take(std::span<const std::byte> state) {
  const auto model = std::as_writable_bytes(x());
  if (state.size() < model.size()) return false;
  std::copy_n(state.begin(), model.size(), model.begin());
  const auto outer = state.subspan(model.size());
  return outer.empty() || core_->set_outer(outer);
}

void Trainee::end_body() {
  const std::int64_t draw = body_number_at(*core_, before_, lease_.update) + lease_.body;
  auto [gradient, loss] = problem_->gradient(Rank{training_.rank}, Version{draw}, {x().begin(), x().end()});
  gradient_ = std::move(gradient);
  stats_ = {loss, 1, training_.lr};
  doing_ = lease_.payload == PACELINE_MODELS ? Doing::stepping_model : Doing::stepping;
  if (doing_ == Doing::stepping_model) step_along(gradient_.data());
}

void Trainee::step_along(const double* gradient) {
  const double rate = training_.lr * core_->info().lr_factor;
  for (std::size_t i = 0; i < elements_; ++i) x()[i] -= rate * gradient[i];
}

bool Trainee::step_with_gradient() {
  const paceline_span piece{gradient_.data(), elements_};
  const auto outcome = core_->step_gradients({&piece, 1}, stats_);
  if (!outcome) return false;
  if (outcome == PACELINE_APPLY) {
    const auto* averaged = static_cast<const double*>(core_->result().data);
    if (averaged == nullptr) averaged = gradient_.data();
    if (lease_.payload == PACELINE_GRADIENTS) averages_[lease_.update] = averaged[0];
    step_along(averaged);
  }
  const bool steps_model = lease_.payload == PACELINE_BOTH && outcome == PACELINE_APPLY;
  follow_then(steps_model ? Doing::stepping_model : Doing::looking);
  return true;
}

bool Trainee::step_with_model() {
  if (!core_->step_model(stats_)) return false;
  follow_then(Doing::looking);
  return true;
}

void Trainee::end(std::string trouble) {
  if (window_ != nullptr) local_.assign(window_, window_ + elements_);
  trouble_ = std::move(trouble);
  doing_ = Doing::nothing;
  if (core_) core_->end();
}

}  // namespace paceline::simulate
