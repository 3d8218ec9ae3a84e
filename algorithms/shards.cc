#include "algorithms/shards.h"

#include <bit>

#include "runtime/base/check.h"
#include "runtime/base/splitmix.h"

namespace paceline::algorithms {
namespace {

constexpr int kRounds = 8;

std::uint64_t key(std::uint64_t seed, std::uint64_t use, std::int64_t number, std::int64_t shard = 0) {
  return splitmix(splitmix(splitmix(splitmix(seed) + use) + static_cast<std::uint64_t>(number)) +
                  static_cast<std::uint64_t>(shard));
}

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t key)
    : size_(static_cast<std::uint64_t>(size)),
      key_(key),
      half_bits_(static_cast<int>(std::bit_width(size_ - 1) + 1) / 2) {
  PACELINE_CHECK(size >= 1, "a permutation needs an element");
}

std::int64_t Permutation::operator()(std::int64_t at) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  auto value = static_cast<std::uint64_t>(at);
  PACELINE_CHECK(value < size_, "positions lie in 0..size-1");
  do {
    std::uint64_t left = value >> half_bits_, right = value & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t next = left ^ (splitmix(key_ ^ splitmix(right + (round << 56))) & mask);
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= size_);
  return static_cast<std::int64_t>(value);
}

Result<Shards> Shards::make(const Options& options) {
  if (options.workers < 1 || options.batch < 1)
    return fail(ErrorKind::invalid, "batch is " + std::to_string(options.batch) + " for " +
                                        std::to_string(options.workers) + " workers; both must be at least 1");
  const auto share = options.samples / options.workers;
  if (share < options.batch)
    return fail(ErrorKind::invalid, "the data set has " + std::to_string(options.samples) + " samples, too few for " +
                                        std::to_string(options.workers) + " workers with batches of " +
                                        std::to_string(options.batch) + "; use fewer workers" +
                                        (share > 0 ? " or a batch of at most " + std::to_string(share) : ""));
  return Shards(options);
}

Shards::Shards(const Options& options)
    : options_(options),
      shard_size_(options.samples / options.workers),
      bodies_per_epoch_(shard_size_ / options.batch) {}

std::int32_t Shards::shard_of(Rank rank, std::int64_t epoch) const {
  PACELINE_CHECK(rank.value >= 0 && rank.value < options_.workers && epoch >= 0,
                 "ranks lie in 0..P-1, epochs count from 0");
  if (!options_.rotate) return rank.value;
  return static_cast<std::int32_t>((rank.value + epoch % options_.workers) % options_.workers);
}

void Shards::indices(Rank rank, std::int64_t body, std::vector<std::int64_t>& out) const {
  const std::int64_t epoch = epoch_of(body);
  const std::int64_t shard = shard_of(rank, epoch);
  const std::int64_t deal = options_.rotate ? epoch / options_.workers : epoch;
  const Permutation dealt(options_.samples, key(options_.seed, 1, deal));
  const Permutation order(shard_size_, key(options_.seed, 2, epoch, shard));
  out.clear();
  out.reserve(static_cast<std::size_t>(options_.batch));
  const std::int64_t begin = body % bodies_per_epoch_ * options_.batch;
  for (std::int64_t k = begin; k < begin + options_.batch; ++k) out.push_back(dealt(shard * shard_size_ + order(k)));
}

}  // namespace paceline::algorithms
