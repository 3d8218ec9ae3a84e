#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/session/session_core.h"
#include "runtime/base/clock.h"
#include "runtime/process/fd_passing.h"

namespace paceline::sim {

/// What a simulated worker trains, and how long it takes. Worker i has f_i(x) = a_i / 2 (x - c_i)^2 in every element,
/// with a and c of the workers of four, and learns with rate 0.1.
struct Training {
  std::uint64_t job = 0;
  std::int32_t rank = 0;
  std::int64_t updates = 0;
  std::int64_t evaluate_every = -1;
  Duration batch_takes{};  ///< One mini-batch, the median of a draw from half to twice of it.
  std::uint64_t seed = 0;

  std::string to_text() const;
  static Training from(const std::string& text);
};

/// The training loop of a simulated worker: its session is the one of processes. Everything happens in step().
class Trainee {
 public:
  struct Agent {
    std::function<void(wire::Message&)> say;                                  ///< By its session.
    std::function<void(const std::string& json, process::Fd descriptor)> hand;  ///< By its Unix socket.
  };
  Trainee(WorkerId worker, Training training, Agent agent, const Clock& clock);

  /// Of its agent, over its Unix socket.
  void on_packet(process::Packet packet);
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
  const std::map<std::int64_t, double>& averages() const { return averages_; }

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
  void open_session(process::Packet packet, const nlohmann::json& body);
  bool advance();
  bool follow();
  void follow_then(Doing next);
  bool look();
  Duration takes();
  void begin_body();
  bool step_with_gradient();
  bool step_with_model();
  void end(std::string trouble);
  std::span<double> x();
  double value() { return x()[0]; }

  const WorkerId worker_;
  const Training training_;
  const Agent agent_;
  const Clock& clock_;
  std::optional<session::SessionCore> core_;
  Doing doing_ = Doing::opening;
  Doing then_ = Doing::looking;  ///< After `following`.
  bool placing_ = false;
  Instant until_{};  ///< Computing, evaluating.
  std::int64_t draws_ = 0;
  paceline_lease lease_{};
  double* window_ = nullptr;  ///< Where the model is in the window, if it is there.
  std::vector<double> local_;
  std::vector<double> gradient_;
  paceline_stats stats_{};
  std::map<std::int64_t, double> averages_;
  std::string trouble_;
};

}  // namespace paceline::sim
