#pragma once

#include <torch/torch.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/session/session.h"
#include "algorithms/shards.h"
#include "algorithms/train/parameters.h"
#include "algorithms/train/replica.h"
#include "algorithms/train/straggler.h"
#include "algorithms/train/worker_main.h"
#include "algorithms/train/worker_settings.h"
#include "paceline/worker.h"

namespace paceline::train {

/// What Worker, Shared, Batches and Sampler are handles of: the adapter between torch models and a session. It decides
/// nothing; it carries gradients or models to the session, steps the optimisers where the strategy wants it, and
/// answers the session's requests (evaluate, capture, restore). Owned by the compute thread; blocks where the session
/// blocks.
///
///   share+ -> open -> { next -> (evaluate | capture | restore)* -> body -> step of every share }* -> end
///
/// Models: each share's optimiser steps at once. Gradients: each share's are taken at its step, and all optimisers step
/// when the last share's step has brought the average.
struct Core {
 public:
  explicit Core(const WorkerStart& start);
  ~Core() { close(); }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// The share's number, which the others take.
  std::size_t share(std::shared_ptr<torch::nn::Module> module, torch::optim::Optimizer& optimizer);
  /// Joins the job with all that was shared; nothing can be shared after. Called by the first that needs the session.
  void open();
  bool next();
  void step(std::size_t share, const torch::Tensor& loss, const StepOptions& options);
  void step(std::size_t share, const LossClosure& closure, const StepOptions& options);
  void schedule(std::size_t share, torch::optim::LRScheduler& scheduler, Advance advance);
  torch::OrderedDict<std::string, torch::Tensor> snapshot(std::size_t share) const;
  /// Calls `use` with the session: now, or as soon as there is one.
  void with_session(std::function<void(paceline_session*)> use);
  /// Gives the model memory of its own and closes the session; may be called twice.
  void close();
  /// The training depends on the contents of this file.
  void uses_file(const std::string& path);
  /// Tells the job that this worker failed.
  void fail_job(const std::string& reason);

  /// Samples of the body with this number in this worker's share of a data set.
  void indices(std::int64_t body_number, std::int64_t samples, std::int64_t batch, std::vector<std::int64_t>& out);
  /// Number of the current body in the whole job: update * bodies + body.
  std::int64_t body_number() const { return lease_.update * info_.bodies + lease_.body; }
  /// Size of the training set; the run's own number of samples goes before it.
  void set_epoch_samples(std::int64_t samples) {
    epoch_samples_ = settings_.options.samples > 0 ? settings_.options.samples : samples;
    dealt_samples_ = samples;
  }
  /// How often the job's strategy was changed.
  std::int32_t leg() const { return info_.leg; }
  void note_drawn(std::int64_t samples) { drawn_ += samples; }
  void require_body(const char* what) const;

  const WorkerStart& start() const { return start_; }
  const WorkerSettings& settings() const { return settings_; }
  std::int64_t update() const { return lease_.update; }
  /// Workers that have a part in averages of all, as the last one of them said that this worker took.
  std::int32_t present() const { return present_; }
  std::int64_t epoch() const;

  std::function<double()> metric;  // The user's, these two.
  std::function<void()> on_view;
  struct UserState {
    std::function<std::string()> save;
    std::function<void(const std::string&)> load;
  };
  std::vector<UserState> user_states;

 private:
  using Clock = std::chrono::steady_clock;
  struct CloseSession {
    void operator()(paceline_session* session) const { paceline_session_close(session); }
  };

  /// A model and its optimiser.
  struct Share {
    std::string name;  ///< For errors: "share 1 (Discriminator)".
    std::shared_ptr<torch::nn::Module> module;
    torch::optim::Optimizer* optimizer = nullptr;
    torch::optim::LRScheduler* scheduler = nullptr;
    Advance advance = Advance::per_update;
    std::int64_t scheduled = 0;        ///< Steps that the schedule has made.
    std::vector<double> wanted;        ///< The schedule's learning rates, while a decay is held back; else empty.
    std::int64_t scheduler_began = 0;  ///< The scheduler's own count when it was handed over.
    std::vector<double> marks;         ///< Of the optimiser, when its last step was ours.
    bool stepped = false;              ///< In this body.
    double loss = 0;
    StepOptions options;  ///< Gradients: of this body's step.
  };

  paceline_session_config session_config() const;
  void read_terms();
  void begin_next_leg();
  void take_up_leg(const std::string& place);
  std::string place_of_leg() const;
  void resume();
  void plan();
  void require_all_stepped() const;
  void require_own_steps(const char* what, const Share& share);
  void mark_step(std::size_t share);
  void mark_steps();
  void begin_body();
  void follow_model();
  void end_with_model();
  Share& begin_step(std::size_t share);
  bool end_step(Share& share, const torch::Tensor& loss);
  double checked_loss(const Share& share, const torch::Tensor& loss);
  paceline_stats stats() const;
  void step_gradients();
  void step_model(std::size_t share, const StepOptions& options);
  void publish_model();
  void average_model(const paceline_stats& stats);
  void apply(std::size_t share, const StepOptions& options);
  double rate_factor() const;
  void note_present();
  void tell_view();
  void sleep_as_slow(Clock::time_point computed);
  void evaluate();
  Replica state();
  using Pieces = std::span<const std::span<const std::byte>>;
  void with_encoded_state(const std::function<void(Pieces)>& use);
  void load_state(const Replica& replica);
  torch::Tensor outer_state() const;
  void load_outer_state(const Replica& replica);
  void save_checkpoint(const std::string& path);
  std::int64_t bodies_per_epoch() const;
  std::int64_t updates_per_epoch() const;
  std::int64_t epoch_at(std::int64_t body) const;
  std::int64_t updates_in(double epochs) const;
  void deal(std::int64_t samples, std::int64_t batch);
  void go_on_within_an_epoch();
  std::int64_t due(const Share& share, std::int64_t update) const;
  void advance_schedule(Share& share, std::int64_t to);
  void hold_decay(Share& share, const std::vector<double>& rates);
  std::string prefix(std::size_t share) const;
  void share_optimizer_state();

  WorkerStart start_;
  WorkerSettings settings_;
  std::unique_ptr<paceline_session, CloseSession> session_;
  paceline_session_info info_{};
  paceline_lease lease_{0, 0, PACELINE_GRADIENTS, 1};
  std::int64_t reached_ = 0;  // First update that is not done: what a replica made now goes on with.
  std::vector<Share> shares_;
  Parameters parameters_;
  OptimizerState optimizer_state_ = OptimizerState::keep;  // What an averaging does with it.
  void* model_at_ = nullptr;                               // Models: where the session has the parameters.
  std::int32_t present_ = 0;
  std::int32_t told_present_ = 0;  // To `on_view`.
  std::uint64_t averagings_ = 0;   // Of the session, when last looked there.
  torch::Tensor gradients_;  // Models: sum over the bodies of an update, if it has several. Gradients: those taken of
                             // several shares.
  std::int64_t summed_bodies_ = 0;
  std::int64_t summed_update_ = -1;
  double summed_loss_ = 0;
  std::int64_t summed_samples_ = 0;
  std::optional<Straggler> straggler_;
  std::optional<algorithms::Shards> shards_;
  algorithms::Shards::Options shards_for_;
  algorithms::Shards::Place begun_{};  ///< Where in the data the job goes on,
  std::int64_t begun_samples_ = 0;     ///< which were so many; 0: it does not.
  /// It goes on with other workers, or other batches, than it had: bodies are counted in epochs from there on.
  struct Changed {
    std::int64_t epoch = 0;  ///< Within which it went on,
    std::int64_t end = 0;    ///< and the first body after that.
  };
  std::optional<Changed> changed_;
  std::int64_t drawn_ = 0;  // Samples since the last step.
  std::vector<std::function<void(paceline_session*)>> when_open_;
  std::function<void()>
      pending_resume_;  // Loads the checkpoint at the first next(): states and schedules are known then.
  std::int64_t epoch_samples_ = 0;
  std::int64_t dealt_samples_ = 0;  ///< Of the data set itself.
  bool planned_ = false;
  bool in_body_ = false;
  bool marked_ = false;  ///< There was a body: optimisers are marked.
  bool ended_ = false;
  bool cancelled_ = false;  ///< So is the call that this worker's training is: the session has been told.
  bool warned_slow_state_ = false;
  Clock::time_point body_began_{};
  Clock::duration applied_{};  // Time spent applying the last average: part of a slow worker's work.
};

}  // namespace paceline::train
