#include "algorithms/train/core.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "actors/cancel.h"
#include "algorithms/train/blas_check.h"
#include "algorithms/train/dataset.h"
#include "runtime/base/splitmix.h"

namespace paceline::train {
namespace {

/// How often it was stepped: what torch keeps for classes derived from it.
std::int64_t steps_of(const torch::optim::LRScheduler& scheduler) {
  struct Derived : torch::optim::LRScheduler {
    static auto count() { return &Derived::step_count_; }
  };
  return scheduler.*Derived::count();
}

}  // namespace

Core::Core(const WorkerStart& start) : start_(start) {
  auto settings = parse_worker_settings(start.options);
  if (!settings) throw std::invalid_argument(settings.error().text);
  settings_ = std::move(*settings);
  present_ = settings_.options.workers - static_cast<std::int32_t>(settings_.options.vacant.size());
  parameters_ = Parameters(settings_.average_buffers);
  torch::set_num_threads(1);
  torch::manual_seed(settings_.options.seed);
  if (start_.rank == 0) warn_if_blas_is_slow();
}

std::size_t Core::share(std::shared_ptr<torch::nn::Module> module, torch::optim::Optimizer& optimizer) {
  if (session_)
    throw std::logic_error("share: the job has begun; share all models before the first next() or data loader");
  if (!module) throw std::invalid_argument("share: the model is empty");
  const std::size_t number = parameters_.add(*module, optimizer);
  std::string name = module->name();
  if (name.ends_with("Impl")) name.resize(name.size() - 4);
  Share share;
  share.name = "share " + std::to_string(number) + " (" + name + ")";
  share.module = std::move(module);
  share.optimizer = &optimizer;
  shares_.push_back(std::move(share));
  return number;
}

void Core::open() {
  if (session_) return;
  if (shares_.empty()) throw std::logic_error("next: call share first");
  if (settings_.optimizer_state == OptimizerState::average) share_optimizer_state();
  const auto config = session_config();
  char error[1024] = "";
  session_.reset(paceline_session_open(&config, error, sizeof error));
  if (!session_)
    throw std::runtime_error(std::string("worker ") + std::to_string(start_.rank) + " cannot join its job: " + error);
  session_of_this_thread() = session_.get();
  read_terms();
  straggler_.emplace(settings_.slow, settings_.straggle, start_.rank, info_.workers, info_.seed);
  if (info_.leg > 0) {
    take_up_leg(paceline_session_place(session_.get()));
  } else if (!settings_.options.resume.empty()) {
    resume();
  }
  for (const auto& use : std::exchange(when_open_, {})) use(session_.get());
}

paceline_session_config Core::session_config() const {
  return {start_.endpoint.c_str(),
          start_.worker,
          start_.agent,
          start_.job,
          start_.rank,
          parameters_.elements(),
          parameters_.type() == torch::kFloat64 ? PACELINE_F64 : PACELINE_F32,
          parameters_.trainable_elements()};
}

/// Of the present leg.
void Core::read_terms() {
  info_ = paceline_session_get_info(session_.get());
  optimizer_state_ =
      settings_.optimizer_state.value_or(info_.reset_momentum ? OptimizerState::reset : OptimizerState::keep);
  lease_.update = reached_ = info_.first_update;
  summed_update_ = -1;
  follow_model();
  if (info_.bodies > 1 || shares_.size() > 1)
    gradients_ = torch::zeros({static_cast<std::int64_t>(parameters_.elements())}, parameters_.type());
}

// Legs
// -----------------------------------------------------------------------------------------------------------------

/// The job goes on with another strategy: each worker from the model that all have, with its own optimiser's state, and
/// with what is left of the epoch.
void Core::begin_next_leg() {
  follow_model();
  if (model_at_) parameters_.leave();
  model_at_ = nullptr;
  const std::int64_t bodies = std::max(1, info_.bodies);
  const auto config = session_config();
  char error[1024] = "";
  if (!paceline_session_reopen(session_.get(), &config, error, sizeof error))
    throw std::runtime_error("worker " + std::to_string(start_.rank) + " cannot go on with its job: " + error);
  read_terms();
  if (shards_) {
    begun_ = shards_->at(info_.first_update * bodies);
    begun_.body = info_.first_update * std::max(1, info_.bodies);
    begun_samples_ = dealt_samples_;
  }
  shards_.reset();
  changed_.reset();
  plan();
}

/// This worker was not there when it began.
void Core::take_up_leg(const std::string& place) {
  const auto space = place.find(' ');
  const auto begun = space == std::string::npos ? std::nullopt : algorithms::place_of(place.substr(space + 1));
  if (!begun) return;  // There is no data set.
  begun_ = *begun;
  begun_.body = info_.first_update * std::max(1, info_.bodies);
  begun_samples_ = std::atoll(place.c_str());
}

/// As take_up_leg() reads it.
std::string Core::place_of_leg() const {
  return std::to_string(dealt_samples_) + " " + text_of(shards_->at(info_.first_update * std::max(1, info_.bodies)));
}

void Core::with_session(std::function<void(paceline_session*)> use) {
  session_ ? use(session_.get()) : when_open_.push_back(std::move(use));
}

/// The optimisers' tensors lie behind the parameters, from before the first step on.
void Core::share_optimizer_state() {
  std::vector<torch::Tensor> tensors;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    try {
      create_optimizer_state(*shares_[i].optimizer);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("optimizer-state average: " + std::string(error.what()));
    }
    for (const auto& [name, tensor] : read_optimizer_state(*shares_[i].optimizer, parameters_.trainable(i)))
      if (tensor.is_floating_point()) tensors.push_back(tensor);  // Not the counters of steps.
  }
  const auto before = parameters_.elements();
  parameters_.set_state(std::move(tensors));
  if (session_ && parameters_.elements() != before)
    throw std::invalid_argument("the saved optimiser state has other tensors than this optimiser's");
}

/// The parameters lie where the session wants them: copied where they come into the window or leave it, moved without
/// copying inside.
void Core::follow_model() {
  void* const at = paceline_session_model(session_.get()).data;
  void* const from = std::exchange(model_at_, at);
  const std::uint64_t averagings = paceline_session_averagings(session_.get());
  const bool has_other_numbers = std::exchange(averagings_, averagings) != averagings;
  if (at == from && !(at && has_other_numbers)) return;
  if (at == nullptr) return parameters_.leave();
  if (from != nullptr) return parameters_.move_to(at);
  parameters_.place(at);
  paceline_session_placed(session_.get());
  follow_model();
}

/// Tells the session how long the job is: nominal samples decide, so that all strategies are measured with the same
/// yardstick.
void Core::plan() {
  planned_ = true;
  if (epoch_samples_ == 0) epoch_samples_ = settings_.options.samples;
  if (epoch_samples_ == 0)
    throw std::logic_error(
        "next: the job's length is not known: call me.batches or me.sampler before, or set .samples in RunOptions");
  if (epoch_samples_ < info_.workers * settings_.options.batch) {
    throw std::invalid_argument("an epoch of " + std::to_string(epoch_samples_) + " samples gives " +
                                std::to_string(info_.workers) + " workers less than one batch of " +
                                std::to_string(settings_.options.batch) +
                                " each: use fewer workers or a smaller batch");
  }
  const double every_epochs = settings_.options.evaluate_every_epochs;
  const auto per_epoch = static_cast<double>(updates_per_epoch());
  const std::int64_t every = every_epochs > 0 ? std::max<std::int64_t>(1, std::llround(every_epochs * per_epoch)) : 0;
  if (dealt_samples_ > 0) deal(dealt_samples_, settings_.options.batch);
  go_on_within_an_epoch();
  if (settings_.options.early_stopping > 0 && !metric && start_.rank == 0 && info_.leg == 0)
    paceline_session_warn(session_.get(),
                          "early stopping has no effect: nothing is evaluated, call me.evaluate(metric)");
  if (shards_)
    paceline_session_deals(session_.get(), dealt_samples_, settings_.options.batch, shards_->first_epoch(),
                           shards_->first_end(), shards_->first_left(), place_of_leg().c_str());
  // Of a later leg there is an update at least: the one before ended before the job's end.
  const std::int64_t least = info_.leg > 0 ? info_.first_update + 1 : 0;
  paceline_session_plan(session_.get(), lease_.update, std::max(least, updates_in(settings_.options.epochs)), every);
}

void Core::require_all_stepped() const {
  for (const auto& share : shares_) {
    if (share.stepped) continue;
    throw std::logic_error("next: step " + (shares_.size() > 1 ? "of " + share.name + " " : std::string()) +
                           "was not called in the last body; call it once after each next() that returned true");
  }
}

/// Nobody steps an optimiser or a schedule that was handed over but us.
void Core::require_own_steps(const char* what, const Share& share) {
  const auto i = static_cast<std::size_t>(&share - shares_.data());
  if (!ended_ && step_marks(*share.optimizer, parameters_.trainable(i)) != share.marks)
    throw std::logic_error(std::string(what) + ": the optimiser of " + share.name +
                           " was stepped by the script: leave out optimizer.step(), shared.step(loss) does it");
  if (share.scheduler && steps_of(*share.scheduler) != share.scheduler_began + share.scheduled)
    throw std::logic_error(std::string(what) + ": the schedule of " + share.name +
                           " was stepped by the script: leave out its step(), shared.schedule(...) does it");
}

/// What has been done to the optimiser until now was us.
void Core::mark_step(std::size_t share) {
  shares_[share].marks = step_marks(*shares_[share].optimizer, parameters_.trainable(share));
}

void Core::mark_steps() {
  for (std::size_t i = 0; i < shares_.size(); ++i) mark_step(i);
}

bool Core::next() {
  if (in_body_ && !ended_) require_all_stepped();
  if (marked_)
    for (const auto& share : shares_) require_own_steps("next", share);
  in_body_ = false;
  open();
  if (!planned_) plan();
  if (pending_resume_) std::exchange(pending_resume_, nullptr)();
  follow_model();  // A resumed run may be where models are averaged.
  while (!ended_) {
    if (cancelled() && !std::exchange(cancelled_, true)) paceline_session_stop(session_.get(), "cancelled");
    lease_ = {reached_, 0, lease_.payload, lease_.lr_may_decay};  // Evaluation and capture come between updates.
    const auto what = paceline_session_next(session_.get(), &lease_);
    switch (what) {
      case PACELINE_BODY: begin_body(); return true;
      case PACELINE_EVALUATE: evaluate(); break;
      case PACELINE_CAPTURE: {
        follow_model();
        parameters_.write_converted();
        with_encoded_state([&](Pieces state) {
          std::vector<paceline_span> pieces;
          for (const auto& piece : state) pieces.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
          paceline_session_capture(session_.get(), pieces.data(), pieces.size());
        });
        follow_model();
        break;
      }
      case PACELINE_SAVE:
        follow_model();
        save_checkpoint(settings_.fresh_checkpoint_path(Rank{start_.rank}));
        paceline_session_saved(session_.get());
        break;
      case PACELINE_RESTORE: {
        follow_model();
        const auto span = paceline_session_replica(session_.get());
        const auto replica = decode_replica({static_cast<const std::byte*>(span.data), span.elements});
        if (!replica) {
          fail_job("worker " + std::to_string(start_.rank) +
                   ": the replica it was given cannot be read: " + replica.error().text);
          throw Stopped(replica.error().text);
        }
        load_state(*replica);
        if (const auto present = replica->notes.find("present"); present != replica->notes.end())
          present_ = std::atoi(present->second.c_str());
        reached_ = replica->update;
        parameters_.write_converted();
        paceline_session_restored(session_.get());
        follow_model();
        break;
      }
      case PACELINE_END:
        ended_ = true;
        end_with_model();
        break;
      case PACELINE_NEXT_LEG: begin_next_leg(); break;
      case PACELINE_LOST:
        ended_ = true;
        throw Stopped("worker " + std::to_string(start_.rank) + ": its node agent is gone");
    }
  }
  if (model_at_) {
    follow_model();
    parameters_.leave();
    model_at_ = nullptr;
  }
  return false;
}

/// Parameters and float buffers: what a replay has to end with, too.
void Core::end_with_model() {
  follow_model();
  std::vector<paceline_span> pieces;
  for (const auto& tensor : parameters_.all())
    pieces.push_back({tensor.data_ptr(), static_cast<std::uint64_t>(tensor.nbytes())});
  paceline_session_end_with(session_.get(), pieces.data(), pieces.size(), /*width=*/1);
}

void Core::begin_body() {
  follow_model();
  reached_ = lease_.update;
  if (lease_.payload == PACELINE_MODELS) {
    // The session leases whole updates; the bodies inside one are counted here.
    if (lease_.body == 0 && lease_.update != summed_update_) summed_bodies_ = 0;
    summed_update_ = lease_.update;
    lease_.body = static_cast<std::int32_t>(summed_bodies_);
  }
  if (lease_.payload != PACELINE_MODELS && lease_.body == 0) parameters_.mark_buffers();
  for (auto& share : shares_) {
    advance_schedule(share, due(share, lease_.update));
    share.stepped = false;
  }
  drawn_ = 0;
  std::uint64_t seed = splitmix(info_.seed);
  for (const std::int64_t part : {std::int64_t{start_.rank}, lease_.update, std::int64_t{lease_.body}}) {
    seed = splitmix(seed ^ static_cast<std::uint64_t>(part));
  }
  torch::manual_seed(seed);
  if (lease_.body == 0) {
    if (const double delay = straggler_->before(lease_.update); delay > 0)
      paceline_session_sleep(session_.get(), delay);
  }
  if (lease_.body == 0) tell_view();
  mark_steps();
  in_body_ = marked_ = true;
  body_began_ = Clock::now();
}

void Core::tell_view() {
  if (std::exchange(told_present_, present_) != present_ && on_view) on_view();
}

void Core::schedule(std::size_t number, torch::optim::LRScheduler& scheduler, Advance advance) {
  if (shares_[number].scheduler) throw std::logic_error("schedule: a share has one learning rate schedule");
  shares_[number].scheduler = &scheduler;
  shares_[number].advance = advance;
  shares_[number].scheduler_began = steps_of(scheduler);
}

/// How many steps the schedule has made when this update begins.
std::int64_t Core::due(const Share& share, std::int64_t update) const {
  return share.advance == Advance::per_epoch ? epoch_at(update * info_.bodies) : update;
}

void Core::advance_schedule(Share& share, std::int64_t to) {
  if (!share.scheduler || (share.scheduled >= to && share.wanted.empty())) return;
  const auto rates = learning_rates(*share.optimizer);
  if (!share.wanted.empty()) set_learning_rates(*share.optimizer, std::exchange(share.wanted, {}));
  for (; share.scheduled < to; ++share.scheduled) share.scheduler->step();
  if (!lease_.lr_may_decay) hold_decay(share, rates);
}

/// Where the schedule has gone below `rates` these stay; it goes on from its own.
void Core::hold_decay(Share& share, const std::vector<double>& rates) {
  auto wanted = learning_rates(*share.optimizer);
  auto held = wanted;
  for (std::size_t i = 0; i < std::min(held.size(), rates.size()); ++i) held[i] = std::max(held[i], rates[i]);
  if (held == wanted) return;
  set_learning_rates(*share.optimizer, held);
  share.wanted = std::move(wanted);
}

void Core::evaluate() {
  follow_model();  // Where workers are at versions of their own, it is not this worker's.
  const std::int64_t reached = std::exchange(reached_, lease_.update);
  double value = std::nan("");
  if (metric) {
    torch::NoGradGuard no_grad;
    std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> modes;  // Parents first: train() is recursive.
    for (const auto& share : shares_) {
      modes.emplace_back(share.module, share.module->is_training());
      for (const auto& item : share.module->named_modules("", /*include_self=*/false))
        modes.emplace_back(item.value(), item.value()->is_training());
    }
    for (const auto& share : shares_) share.module->eval();
    value = metric();
    for (const auto& [module, training] : modes) module->train(training);
  }
  if (metric && std::isnan(value))
    paceline_session_warn(session_.get(), ("the evaluation at update " + std::to_string(lease_.update) +
                                           " gave nan: it counts as no better, and reaches no target")
                                              .c_str());
  save_checkpoint(settings_.checkpoint_path());
  paceline_session_evaluated(session_.get(), value);
  reached_ = reached;
  follow_model();
}

/// Of one worker, in nominal samples: the same work under every strategy.
std::int64_t Core::bodies_per_epoch() const {
  return std::max<std::int64_t>(1, epoch_samples_ / (std::max(1, info_.workers) * settings_.options.batch));
}

std::int64_t Core::updates_per_epoch() const {
  return std::max<std::int64_t>(1, bodies_per_epoch() / std::max(1, info_.bodies));
}

std::int64_t Core::epoch() const { return epoch_at(body_number()); }

/// As the data are dealt: an epoch may end within an update. Of a job that has gone on with other workers the bodies
/// before have another size.
std::int64_t Core::epoch_at(std::int64_t body) const {
  if (!changed_) return body / bodies_per_epoch();
  return body < changed_->end ? changed_->epoch : changed_->epoch + 1 + (body - changed_->end) / bodies_per_epoch();
}

/// How long a job of so many epochs is.
std::int64_t Core::updates_in(double epochs) const {
  const auto each = static_cast<double>(updates_per_epoch());
  if (!changed_) return std::max<std::int64_t>(1, std::llround(epochs * each));
  const std::int64_t end = changed_->end / std::max(1, info_.bodies);
  return end + std::llround((epochs - static_cast<double>(changed_->epoch) - 1) * each);
}

/// Whether the place within the data is the one that its number of updates says.
void Core::go_on_within_an_epoch() {
  if (!shards_ || begun_samples_ == 0) return;
  const auto& parts = begun_.parts;
  const std::int64_t each = shards_->bodies_per_epoch(), body = begun_.body;
  const algorithms::Shards::Part as_ever{info_.workers, settings_.options.batch, body % each};
  if (begun_.epoch == body / each && parts == std::vector{as_ever}) return;
  changed_ = Changed{begun_.epoch, std::max(body, shards_->first_end())};
}

torch::OrderedDict<std::string, torch::Tensor> Core::snapshot(std::size_t number) const {
  torch::NoGradGuard no_grad;
  torch::OrderedDict<std::string, torch::Tensor> copies;
  for (const auto& item : shares_[number].module->named_parameters())
    copies.insert(item.key(), item.value().detach().clone());
  return copies;
}

void Core::indices(std::int64_t number, std::int64_t samples, std::int64_t batch, std::vector<std::int64_t>& out) {
  open();
  deal(samples, batch);
  shards_->indices(Rank{start_.rank}, number, out);
}

void Core::deal(std::int64_t samples, std::int64_t batch) {
  if (shards_ && shards_for_.samples == samples && shards_for_.batch == batch) return;
  algorithms::Shards::Options wanted{samples, info_.workers, batch, info_.seed, info_.rotate_shards != 0};
  if (begun_samples_ > 0 && begun_samples_ != samples)
    throw std::invalid_argument("cannot resume from " + settings_.options.resume + ": it is of a data set of " +
                                std::to_string(begun_samples_) + " samples, this one has " + std::to_string(samples) +
                                ": to begin with its model on other data, read it with paceline::load before me.share");
  if (begun_samples_ > 0) wanted.begun = begun_;
  auto made = algorithms::Shards::make(wanted);
  if (!made) throw std::invalid_argument(made.error().text);
  shards_.emplace(std::move(*made));
  shards_for_ = wanted;
}

void Core::uses_file(const std::string& path) {
  with_session([path](paceline_session* session) { paceline_session_uses_file(session, path.c_str()); });
}

void Core::fail_job(const std::string& reason) {
  ended_ = true;
  if (session_) paceline_session_fail(session_.get(), reason.c_str());
}

void Core::close() {
  if (model_at_) parameters_.leave();
  model_at_ = nullptr;
  if (session_of_this_thread() == session_.get()) session_of_this_thread() = nullptr;
  session_.reset();
}

}  // namespace paceline::train
