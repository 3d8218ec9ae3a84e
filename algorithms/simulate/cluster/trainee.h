#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/session/session_core.h"
#include "algorithms/simulate/scenario.h"
#include "runtime/base/clock.h"
#include "runtime/process/descriptor_message.h"

namespace paceline::simulate {

/// What a simulated worker trains, and how long it takes.
struct Training {
  enum class Problem {
    scenario,    ///< Of docs/jobs.md.
    quadratics,  ///< a/2 (x - c)^2 in each dimension, a = (1,2,1,2), c = (0,4,8,12) by rank, and again.
    one_hot,     ///< -x_i, i another for each mini-batch of each worker: the model says how much each has counted.
  };
  std::uint64_t job = 0;
  std::int32_t rank = 0;
  std::int32_t workers = 4;
  std::int64_t updates = 0;
  std::int64_t evaluate_every = -1;
  std::string compute = "uniform(2ms,8ms)";  ///< How long a mini-batch takes: a distribution, as text.
  double lr = 0.1;
  std::uint64_t seed = 1;
  Problem problem = Problem::scenario;
  std::int32_t stands_still = -1;  ///< This worker never ends with
  std::int64_t at = -1;            ///< this update.
  std::int64_t epoch = 0;          ///< Mini-batches that a worker has in an epoch, of a sample each; 0: there are none.

  /// `one_hot`: which one a worker's mini-batch is, by its number in the whole job.
  std::size_t index_of(std::int32_t worker, std::int64_t body) const;
  std::string to_text() const;
  static Training from(const std::string& text);
};

/// The training loop of a simulated worker: its session is the one of processes. Everything happens in step().
class Trainee {
 public:
  struct Agent {
    std::function<void(wire::Message&)> say;               ///< By its session.
    std::function<void(process::DescriptorMessage)> hand;  ///< By its Unix socket.
  };
  Trainee(WorkerId worker, Training training, Agent agent, const Clock& clock);

  /// Of its agent, over its Unix socket.
  void on_answer(process::DescriptorMessage answer);
  /// Whether anything happened.
  bool step();
  std::optional<Instant> next_deadline() const;

  bool is_over() const { return doing_ == Doing::nothing; }
  /// Why it could not go on; empty: the job ended.
  const std::string& trouble() const { return trouble_; }
  /// When it is over.
  const std::vector<double>& model() const { return local_; }
  std::int64_t updates_done() const { return lease_.update; }
  /// Averaged gradients that it has stepped with, by update.
  /// It was asked to leave, and has.
  bool has_left() const { return core_ && core_->has_left(); }
  const std::map<std::int64_t, double>& averages() const { return averages_; }
  /// Models with which it began legs of the job that it was there for before, by their first updates.
  const std::map<std::int64_t, std::vector<double>>& began_with() const { return began_with_; }

 private:
  enum class Doing {
    opening,    ///< Its share, at its agent.
    following,  ///< The model to where the session wants it.
    looking,    ///< What comes next.
    computing,
    stepping,        ///< With a gradient.
    stepping_model,  ///< With a model.
    capturing,
    restoring,
    evaluating,
    nothing,
  };

  void open();
  void open_session(process::DescriptorMessage answer, const session::JobTerms& terms);
  void plan();
  void begin_next_leg();
  bool advance();
  bool follow();
  void follow_then(Doing next);
  std::span<const std::byte> state();
  bool take(std::span<const std::byte> state);
  bool look();
  void end_body();
  void step_along(const double* gradient);
  bool step_with_gradient();
  bool step_with_model();
  void end(std::string trouble);
  std::span<double> x();

  const WorkerId worker_;
  const Training training_;
  const Agent agent_;
  const Clock& clock_;
  std::optional<session::SessionCore> core_;
  Doing doing_ = Doing::opening;
  std::uint64_t request_ = 1;    ///< That waits for an answer.
  Doing then_ = Doing::looking;  ///< After `following`.
  bool placing_ = false;
  Instant until_{};  ///< Opening, computing, evaluating.
  const Distribution takes_;
  const std::shared_ptr<const Problem> problem_;
  const std::size_t elements_;
  std::int64_t draws_ = 0;
  std::uint64_t named_ = 0;  ///< What its agent calls the job: with its leg.
  std::int64_t before_ = 0;  ///< Mini-batches that a worker had before this leg.
  paceline_lease lease_{};
  double* window_ = nullptr;  ///< Where the model is in the window, if it is there.
  std::vector<double> local_;
  std::vector<std::byte> state_;  ///< That was captured last.
  std::vector<double> gradient_;
  paceline_stats stats_{};
  std::map<std::int64_t, double> averages_;
  std::map<std::int64_t, std::vector<double>> began_with_;
  std::string trouble_;
};

}  // namespace paceline::simulate
