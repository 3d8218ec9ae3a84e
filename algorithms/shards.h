#pragma once

#include <cstdint>
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
class Shards {
 public:
  struct Options {
    std::int64_t samples = 0;
    std::int32_t workers = 1;
    std::int64_t batch = 1;  ///< Samples a body.
    std::uint64_t seed = 0;
    bool rotate = false;
  };

  /// `invalid` if a shard is smaller than one batch, or a number is out of its range.
  static Result<Shards> make(const Options& options);

  /// Bodies that one worker has in an epoch.
  std::int64_t bodies_per_epoch() const { return bodies_per_epoch_; }
  std::int64_t epoch_of(std::int64_t body) const { return body / bodies_per_epoch_; }
  /// Number of the shard that a worker reads in an epoch.
  std::int32_t shard_of(Rank rank, std::int64_t epoch) const;
  /// Fills `out` with the samples of a worker's body (0, 1, .. over the whole job). At most one allocation.
  void indices(Rank rank, std::int64_t body, std::vector<std::int64_t>& out) const;

 private:
  explicit Shards(const Options& options);

  Options options_;
  std::int64_t shard_size_;
  std::int64_t bodies_per_epoch_;
};

}  // namespace paceline::algorithms
