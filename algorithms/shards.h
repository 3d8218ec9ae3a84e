#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace paceline::algorithms {

/// A permutation of 0..size-1 that is a function of its key alone: the same on every machine, in O(1) memory and time
/// an element (a Feistel network on the next power of four, walked until it falls into the range).
class Permutation {
 public:
  Permutation(std::int64_t size, std::uint64_t key);
  /// Where position `at` (0..size-1) is mapped to.
  std::int64_t operator()(std::int64_t at) const;

 private:
  std::uint64_t size_;
  std::uint64_t key_;
  int half_bits_;
};

/// Decides which samples a worker's mini-batches are made of: a pure function of (seed, rank, number of the body), so
/// that a restart, a replay or another worker's node finds the same ones.
///
/// Every epoch all samples are dealt anew into P disjoint shards of equal size, one a worker. A shard that is not a
/// multiple of the batch drops its last samples for this epoch, as does a data set that is not a multiple of P: what is
/// dropped differs from epoch to epoch. With `rotate` the shards are dealt once every P epochs only; worker i reads
/// shard (i + epoch) mod P, in an order that is new every epoch, so that in P epochs every sample passes through every
/// worker: what one abandons, another one sees.
///
/// A job that goes on within an epoch with other workers, or another batch, than it had deals them what was left of it
/// (`begun`), and from the next epoch on all again.
class Shards {
 public:
  /// So many bodies of so many workers were done within an epoch.
  struct Part {
    std::int32_t workers = 1;
    std::int64_t batch = 1;
    std::int64_t bodies = 0;  ///< Of each worker.
    bool operator==(const Part&) const = default;
  };
  /// Where in the data a job is at one of its bodies.
  struct Place {
    std::int64_t body = 0;
    std::int64_t epoch = 0;
    std::vector<Part> parts{};  ///< Done in this epoch; the last one's workers and batch are the job's.
    bool rotated = false;       ///< It was dealt so (Options::rotate), where any part of it is done.
    bool operator==(const Place&) const = default;
  };
  struct Options {
    std::int64_t samples = 0;
    std::int32_t workers = 1;
    std::int64_t batch = 1;  ///< Samples a body.
    std::uint64_t seed = 0;
    bool rotate = false;
    Place begun{};  ///< Where the job goes on.
  };

  /// `invalid` if a shard is smaller than one batch, a number is out of its range, or `begun` is of another data set.
  static Result<Shards> make(const Options& options);

  /// Bodies that one worker has in an epoch.
  std::int64_t bodies_per_epoch() const { return bodies_per_epoch_; }
  /// The first body that is of the epoch after the one within which the job goes on.
  std::int64_t first_end() const { return first_end_; }
  std::int64_t first_epoch() const { return options_.begun.epoch; }
  /// Samples of that epoch that were left when the job went on.
  std::int64_t first_left() const;
  std::int64_t epoch_of(std::int64_t body) const;
  /// How that one is dealt.
  bool rotates(std::int64_t epoch) const { return epoch == first_epoch() ? first_rotates_ : options_.rotate; }
  /// Where the job is when `body` is the next one.
  Place at(std::int64_t body) const;
  /// Number of the shard that a worker reads in an epoch.
  std::int32_t shard_of(Rank rank, std::int64_t epoch) const;
  /// Fills `out` with the samples of a worker's body (not before the one where the job goes on). At most one
  /// allocation.
  void indices(Rank rank, std::int64_t body, std::vector<std::int64_t>& out) const;

 private:
  /// What was left of an epoch, dealt to some workers.
  struct Deal {
    std::int32_t workers;
    std::int64_t batch;
    std::int64_t samples;   ///< That were left.
    std::int64_t shard;     ///< Of these, of each worker.
    std::int64_t done = 0;  ///< Of a shard, before the next deal.
  };
  explicit Shards(const Options& options);
  static Deal deal_of(std::int32_t workers, std::int64_t batch, std::int64_t samples);
  std::int64_t sample(std::size_t deal, std::int64_t at) const;
  std::int64_t sample_of(std::int64_t epoch, std::int32_t workers, std::int64_t shard_size, std::int64_t at) const;

  Options options_;
  std::vector<Deal> deals_;  ///< Of the first epoch; the last is the job's.
  bool first_rotates_ = false;
  std::int64_t origin_ = 0;  ///< Body with which the last of these begins.
  std::int64_t first_end_ = 0;
  std::int64_t shard_size_;
  std::int64_t bodies_per_epoch_;
};

/// "3: 4x32x100 2x64x10": within epoch 3, of 4 workers with batches of 32 samples 100 each, then of 2. "3r: ..." where
/// it was dealt with shards that rotate.
std::string text_of(const Shards::Place& place);
/// `body` is not a part of it. nullopt: it is no such text.
std::optional<Shards::Place> place_of(const std::string& text);

}  // namespace paceline::algorithms
