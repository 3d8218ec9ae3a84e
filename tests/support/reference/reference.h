#pragma once

#include <cstdint>
#include <optional>
#include <vector>

/// A small, slow, independent implementation of the strategies on a deterministic problem under virtual time. It shares
/// no code with what it judges: not the groups, not the periods, not the round engine.
namespace paceline::reference {

using Vector = std::vector<double>;

/// Worker i's loss is 1/2 sum a (x - c)^2, its gradient a (x - c).
struct Objective {
  Vector a;
  Vector c;
};

/// A strategy as a plain list of answers; what a kind does not use is ignored.
struct Strategy {
  enum class Kind { allreduce, local_sgd, wagma, adacomm, nonblocking };
  Kind kind = Kind::allreduce;
  int period = 1;      ///< local_sgd's tau, adacomm's tau_0, wagma's sync.
  int group = 2;       ///< wagma's S.
  bool skip = false;   ///< late=skip (local_sgd, wagma).
  double grace_s = 0;  ///< > 0: a sync fires this long after its first arrival.
  double grace_factor =
      0;  ///< > 0: the same in running median steps (lower median of the last 20 steps of all workers).
  double interval_s = 60;  ///< adacomm from here on.
  double gamma = 0.5;
  double slack = 0;
  int loss_window = 100;
  double block_momentum = 0;
  int batches = 8;       ///< nonblocking's N.
  char normalise = 'b';  ///< nonblocking: 'a', 'b' or 'd'.
};

struct Job {
  std::vector<Objective> workers;
  std::vector<Vector> start;  ///< One a worker.
  Strategy strategy;
  double lr = 0.25;
  double momentum = 0;
  bool nesterov = false;
  int steps = 1;
  std::vector<std::vector<double>> compute_s;  ///< Row t mod rows; nonblocking: of each mini-batch of iteration t.
  bool final_sync = false;                     ///< Step T-1 is a sync whatever the period says (real runs).
};

/// What a worker has to show for one of its steps.
struct Row {
  int worker = 0;
  int step = 0;
  double time_s = 0;  ///< When the step's averaging had been applied.
  Vector model;       ///< After it.
  bool fresh = true;
  std::vector<int> group;  ///< Whose models went in.
  double weight = 1;
  int period = 1;
  int batches_done = 1;
  double loss = 0;  ///< At the model that the gradient was taken at.
};

/// Rows ordered by time, worker, step. Times are whole nanoseconds inside.
std::vector<Row> run(const Job& job);

struct Summary {
  Vector model;                ///< Mean of the workers' current models.
  double virtual_s = 0;        ///< Time of the last row.
  std::vector<double> wait_s;  ///< A worker's last row less the computing that it had completed by then.
};
Summary summarise(const Job& job);

/// The canonical problem T4: four workers, a = (1,2,1,2), c = (0,4,8,12), lr 1/4, everyone starts at 0, steps of 1 s.
Job t4(Strategy strategy, int steps);

}  // namespace paceline::reference
