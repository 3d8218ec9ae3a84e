#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

/// A small, slow, independent implementation of the strategies on a deterministic problem under virtual time. It shares
/// no code with what it judges: not the groups, not the periods, not the round engine. The network is infinitely fast.
///
/// Messages and bytes are those of the strategy's schedule on a network without shared memory; B is 8 bytes a number:
///   - an average (or sum) of g members is a ring: 2g(g-1) messages of B/g each, 2(g-1)B bytes in all (g = 1: none);
///   - a butterfly group of S: log2 S phases, S log2 S messages of B each;
///   - gossip: one message of B for each directed edge used (ad-psgd's exchange: two), sgp and osgp one of B + 8;
///   - server, and nonblocking over it: a push and a pull of B for each step of each worker.
/// Not counted: activations, signals, losses. A worker whose node answers for it counts as if present.
///
/// Read into the job contract where it is silent:
///   - one-shot is local-sgd with a period of T steps, k-avg is local-sgd.
///   - post-local: the warm-up feeds every worker's own buffer with the mean gradient and has period 1 in its rows.
///   - hier-avg: clusters are contiguous; the last one is smaller where the group does not divide P.
///   - outer family: a row's model is where the next block starts (bmuf nesterov: the look-ahead point).
///   - wagma, strided: even versions average contiguous blocks, odd ones ranks P/S apart; a group averages as a ring.
///   - wagma, late_merge=version: a late worker merges with the version of its own iteration; without groups with the
///     first sync executed from there on.
///   - tiers: what a late worker does (skip, or merge and go on with its own) is what the newest executed version says
///     that does not wait for all.
///   - wagma, parity=code: group averages always add the own model and divide by S+1, and mixing is CTA (the published
///     model is the one before the local step); send buffers still start with W_0 and the sync period is as written.
///   - eager-sgd: the version of a sync waits for all; each steps with its own send buffer, then models are averaged.
///   - eager-sgd: a version sums what send buffers hold at its instant, gradients of late workers that complete in it
///     included.
///   - eager-sgd: a late worker steps with the newest executed mean, at each of its late steps; a group is all workers.
///   - nonblocking over gossip: worker i's gradient weighs n/N (b), (n/N)^2 (a), P n / sum n (d); with n = 0 it only
///     mixes and its momentum buffer rests. Over matcha mixing is ATC, over d-psgd as `atc` says.
///   - nonblocking over server: as over allreduce, with the server's messages.
///   - server, momentum: the scale multiplies the learning rate, not the gradient that enters the buffer.
///   - server, scale=staleness divides by max(1, staleness).
///   - server(bounded=s): a worker that has done c steps begins the next one when c - min <= s; one that had to wait
///     pulls then, after all pushes of the instant. Its row keeps the time of the push.
///   - osgp: the r-th exchange of every worker uses the r-th graph; a step in which none ended has group [i]; fresh is
///     false where an exchange ends that began with an earlier step. At an instant, receiving comes before going on
///     without. A worker that has done its T steps sends no more, nobody waits for it, and later than in that
///     instant nobody sends to it: such a share stays with its sender. What is in flight at the end counts in the
///     summary's model.
///   - ad-psgd: at one instant workers complete in order, and each copies its model for its next step at once.
///   - decoupled-diloco: a round's grace is that many times the median (the lower one) of the last 20 spreads, its own
///     included; a spread is the time from the first arrival to the quorum's. Weights are steps since the worker last
///     took an outer model. Whoever misses a round takes its outer model at the end of its step.
///   - streaming-diloco: part p of F holds the numbers from n p / F to n (p + 1) / F, rounded down; the first part is
///     sent first. What is sent and not taken by the end is lost, and is counted.
///   - noloco: a pair exchanges slow weights and movements, one message of 2B each way.
///   - d-psgd, one worker: W = 1; the ring of two weighs 1/2; the bipartite graph needs an even number.
///   - sgp: shares are uniform; hops of `base` at step k are j (peers+1)^(k mod M), M = ceil(log_{peers+1} P).
namespace paceline::reference {

using Vector = std::vector<double>;
using Edges = std::vector<std::pair<int, int>>;
using Digraph = std::vector<std::vector<int>>;  ///< Out-neighbours of each worker; itself may be named, or not.

/// Worker i's loss is 1/2 sum a (x - c)^2, its gradient a (x - c).
struct Objective {
  Vector a;
  Vector c;
};

/// A strategy as a plain list of answers; what a kind does not use is ignored.
struct Strategy {
  enum class Kind {
    allreduce,
    local_sgd,
    wagma,
    adacomm,
    qsr,
    nonblocking,
    post_local,
    hier_avg,
    d_psgd,
    matcha,
    sgp,
    osgp,
    eager_sgd,
    server,
    bmuf,
    slowmo,
    diloco,
    ad_psgd,
    decoupled_diloco,
    streaming_diloco,
    noloco,
    tiers,
  };
  /// One kind of averaging of models; in a list the last one that is due holds.
  struct Tier {
    int every = 1;
    int group = 0;  ///< 0: all, who wait for all; else groups of so many, which wait for nobody.
    bool strided = false;
    bool skip = false;
    double grace_s = 0;
    double grace_factor = 0;
  };
  enum class Graph { ring, bipartite, complete };
  enum class Hops { pow2, base };
  enum class Trigger { solo, majority, quorum };
  enum class Server { sync, async, bounded };
  enum class Scale { one, p, staleness };
  enum class Adapts { no, adacomm, qsr };

  Kind kind = Kind::allreduce;
  int period = 1;           ///< local_sgd's, post_local's and the outer family's tau, adacomm's tau_0, qsr's
                            ///< base, wagma's sync.
  int group = 2;            ///< wagma's S, hier_avg's cluster size.
  bool skip = false;        ///< late=skip (local_sgd, post_local, wagma).
  double grace_s = 0;       ///< > 0: a sync fires this long after its first arrival.
  double grace_factor = 0;  ///< > 0: the same in medians (the lower one) of the last 20 steps of all workers.
  double interval_s = 60;   ///< adacomm from here on.
  double gamma = 0.5;
  double slack = 0;
  int loss_window = 100;
  double block_momentum = 0;
  double qsr_alpha = 0.2;
  int batches = 8;              ///< nonblocking's N.
  char normalise = 'b';         ///< nonblocking: 'a', 'b' or 'd'.
  Kind base = Kind::allreduce;  ///< nonblocking: allreduce, d_psgd, matcha, hier_avg or server.
  bool wait = false;            ///< nonblocking: inflight=wait.

  int warmup = 0;                   ///< post_local.
  std::vector<Tier> tiers = {};     ///< tiers; its period is that of the last.
  int k1 = 1, k2 = 1;               ///< hier_avg.
  bool strided = false;             ///< wagma: grouping=strided.
  bool late_version = false;        ///< wagma: late_merge=version.
  bool code = false;                ///< wagma: parity=code.
  Adapts sync_adapts = Adapts::no;  ///< wagma: sync=adacomm(..), sync=qsr(..); with their parameters above.

  Graph graph = Graph::ring;                    ///< d_psgd.
  bool atc = false;                             ///< d_psgd: order=atc.
  std::vector<Edges> matchings = {};            ///< matcha.
  double alpha = 0;                             ///< matcha.
  std::vector<std::vector<int>> active = {};    ///< matcha: the matchings of step t mod rows.
  std::vector<std::vector<int>> partners = {};  ///< ad_psgd: row t mod rows, the partner of each worker's step t;
                                                ///< noloco: its partner (itself: none) in exchange t.

  int peers = 1;  ///< sgp, osgp.
  Hops hops = Hops::pow2;
  std::vector<Digraph> digraphs = {};  ///< sgp, osgp: the graph of step t mod size instead of hops.
  int bound = 1;                       ///< osgp; server(bounded).

  Trigger trigger = Trigger::solo;   ///< eager_sgd.
  std::vector<int> initiators = {};  ///< eager_sgd(majority): of version v mod size.
  int quorum = 1;                    ///< eager_sgd(quorum), decoupled_diloco (its grace_factor is of spreads).
  bool drop = false;                 ///< eager_sgd: late=drop.
  int sync = 0;                      ///< eager_sgd: models are averaged after each `sync` versions; 0: never.

  Server server = Server::sync;
  Scale scale = Scale::one;  ///< server(async), server(bounded).

  std::optional<double> eta_b = {};  ///< bmuf; 1 - 1/P if absent.
  double zeta = 1;                   ///< bmuf.
  bool nesterov_blocks = false;      ///< bmuf(nesterov).
  double outer_lr = 1;               ///< slowmo's alpha, diloco's lr.
  double outer_momentum = 0.5;       ///< slowmo's beta, diloco's momentum.
  double pull = 0.7;                 ///< noloco's gamma.
  int fragments = 1;                 ///< streaming_diloco; its alpha is `keeps`.
  int delay = 0;
  double keeps = 0;
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
  /// Who takes part changes after a step that all average in (-1: before the first). Who joins has the state of the
  /// lowest that stays, and begins when that one does. For allreduce, server(sync), local_sgd and post_local that wait,
  /// adacomm, qsr, the outer family and nonblocking over allreduce.
  struct View {
    int after = -1;
    std::vector<int> leave = {}, join = {};
  };
  std::vector<View> views = {};
  bool final_sync = false;  ///< Step T-1 is a sync whatever the period says (real runs).
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
  Vector model;          ///< Mean of the workers' current models; the server's; sum x / sum w; the outer family's own.
  double virtual_s = 0;  ///< Time of the last row.
  std::vector<double> wait_s;  ///< A worker's last row less the computing that it had completed by then.
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
};
Summary summarise(const Job& job);

/// The canonical problem T4: four workers, a = (1,2,1,2), c = (0,4,8,12), lr 1/4, everyone starts at 0, steps of 1 s.
Job t4(Strategy strategy, int steps);

}  // namespace paceline::reference
