#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/shell/workplace.h"

namespace paceline::scheduler {

/// Means of all workers' models, where there are no rounds of all. Each node adds up the models of its own workers.
///
///   evaluation  the leader gets all nodes' sums, and puts the mean into the `latest` buffer of one of its workers, who
///               evaluates it between two iterations; the others go on, and training is not changed. One that is under
///               way when the leader is lost is left out
///   end         all nodes get all sums, and give the mean of all last models to their workers, which are held
class ModelMeans {
 public:
  using Bytes = std::vector<std::byte>;
  /// A worker's part in a mean: it is the sum of `data` over the sum of `weight`.
  struct Part {
    const void* data = nullptr;
    double weight = 1;
  };
  /// What their owner knows of the workers.
  class Workers {
   public:
    /// Of this node, those too that have not opened their shares yet.
    virtual std::vector<Rank> living_ranks() const = 0;
    /// Those of them that have a part in the mean after v.
    virtual std::vector<Rank> ranks_at(Version v) const = 0;
    /// As the worker's last finished iteration left it. Asked while it waits for its verdict.
    virtual Part model_of(Rank rank) = 0;
    /// Of what it last published.
    virtual RoundSums latest_of(Rank rank) const = 0;
    /// Whether the mean after v is of what each worker had when it had done v; else their owner says when it is due
    /// and gives this node's sum.
    virtual bool parts_are_by_version() const = 0;
    /// The job's last version.
    virtual Version last() const = 0;
    /// The mean of all last models is in the windows of these: of all that were here when it was made.
    virtual void on_end(const std::vector<Rank>& given) = 0;

   protected:
    ~Workers() = default;
  };

  ModelMeans(Workplace& work, Workers& workers) : work_(work), workers_(workers) {}

  /// The worker's part in the mean after v. `copies`: it will be changed before the mean is made.
  void give(Rank rank, Version v, bool copies);
  /// This node's part: the sum of `weight` models, and what is in them.
  void give_sum(Version v, Piece sum, double weight, const Contents& contents, Instant now);
  /// Gives this node's part once all of it is there, and makes the mean once every node's is.
  void look_at(Version v, Instant now);
  void look_at_all(Instant now);
  void on_partial(NodeId from, const wire::Partial::Reader& header, Bytes sum, Instant now);
  /// Of the mean of all last models: all have a lost node's part, or nobody.
  void pass_on(NodeId lost, NodeId to);
  /// A local worker: of what is not summed up yet it has no part.
  void on_gone(Rank rank);
  /// Of what was given for an evaluation after v nothing is a part of the end, which is that now, unless it had come
  /// already: each gives again.
  void forget_evaluation(Version v);
  /// The worker evaluates: it may be silent for long.
  bool is_evaluating(Rank rank) const { return is_under_way() && evaluator_ == rank; }
  /// Nobody has given a model to the mean after v, as far as it is known here.
  bool lacks_all(Version v) const;
  /// All parts of the mean of all last models are there.
  bool has_end() const { return end_ != nullptr; }

 private:
  struct Given {
    Bytes copy;  ///< Empty: `data` stays where it is until the mean is made.
    const void* data = nullptr;
    double weight = 1;
  };
  struct Sum {
    Piece sum;
    double weight = 0;
    RoundSums sums;
    bool at_end = false;  ///< All nodes get it; else the leader does.
    Contents contents{};
  };
  using Sums = std::map<NodeId, Sum>;
  struct Gathering {
    std::map<Rank, Given> parts;  ///< Of this node.
    Sums sums;
  };

  /// An evaluation is.
  bool is_under_way() const { return work_.released() < under_evaluation_; }
  void sum_up(Version v, Gathering& gathering, Instant now);
  void send(NodeId to, Version v, const Sum& part, NodeId of);
  collective::Reduction mean_of(const Sums& sums) const;
  static RoundSums totals_of(const Sums& sums);
  void average_for_evaluation(Version v, const std::shared_ptr<const Sums>& sums);
  void average_at_end(Version v, const std::shared_ptr<const Sums>& sums);

  Workplace& work_;
  Workers& workers_;
  std::map<Version, Gathering> open_;
  std::optional<Version> under_evaluation_;  ///< Until it, or a later one, is released.
  Rank evaluator_{};
  std::shared_ptr<const Sums> end_;  ///< The mean of all last models is made of it.
};

}  // namespace paceline::scheduler
