#include "algorithms/shards.h"

#include <algorithm>
#include <bit>
#include <sstream>

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
  const auto& begun = options.begun;
  std::int64_t left = options.samples;
  bool fits = begun.body >= 0 && begun.epoch >= 0;
  for (const Part& part : begun.parts) {
    fits = fits && part.workers >= 1 && part.batch >= 1 && part.bodies >= 0 &&
           part.bodies <= left / part.workers / part.batch;
    if (fits) left -= part.bodies * part.batch * part.workers;
  }
  if (!fits)
    return fail(ErrorKind::invalid, "what was done of an epoch is more than a data set of " +
                                        std::to_string(options.samples) + " samples has");
  return Shards(options);
}

Shards::Deal Shards::deal_of(std::int32_t workers, std::int64_t batch, std::int64_t samples) {
  return {workers, batch, samples, samples / workers};
}

Shards::Shards(const Options& options)
    : options_(options),
      shard_size_(options.samples / options.workers),
      bodies_per_epoch_(shard_size_ / options.batch) {
  const auto& begun = options.begun;
  const auto is_done = [](const Part& part) { return part.bodies > 0; };
  first_rotates_ = std::any_of(begun.parts.begin(), begun.parts.end(), is_done) ? begun.rotated : options.rotate;
  std::int64_t left = options.samples, done = 0;
  for (const Part& part : begun.parts) {
    const bool goes_on = &part == &begun.parts.back() && part.workers == options.workers && part.batch == options.batch;
    if (goes_on) {
      done = part.bodies;
      break;
    }
    Deal deal = deal_of(part.workers, part.batch, left);
    deal.done = part.bodies * part.batch;
    left -= deal.done * part.workers;
    deals_.push_back(deal);
  }
  deals_.push_back(deal_of(options.workers, options.batch, left));
  origin_ = begun.body - done;
  first_end_ = origin_ + deals_.back().shard / options.batch;
}

std::int64_t Shards::epoch_of(std::int64_t body) const {
  return body < first_end_ ? first_epoch() : first_epoch() + 1 + (body - first_end_) / bodies_per_epoch_;
}

std::int64_t Shards::first_left() const {
  const std::int64_t done = (options_.begun.body - origin_) * options_.batch;
  return deals_.back().samples - done * options_.workers;
}

Shards::Place Shards::at(std::int64_t body) const {
  Place place{body, epoch_of(body), {}, rotates(epoch_of(body))};
  const bool in_first = body < first_end_;
  for (std::size_t i = 0; in_first && i + 1 < deals_.size(); ++i)
    place.parts.push_back({deals_[i].workers, deals_[i].batch, deals_[i].done / deals_[i].batch});
  place.parts.push_back(
      {options_.workers, options_.batch, in_first ? body - origin_ : (body - first_end_) % bodies_per_epoch_});
  return place;
}

std::int32_t Shards::shard_of(Rank rank, std::int64_t epoch) const {
  PACELINE_CHECK(rank.value >= 0 && rank.value < options_.workers && epoch >= 0,
                 "ranks lie in 0..P-1, epochs count from 0");
  if (!rotates(epoch)) return rank.value;
  return static_cast<std::int32_t>((rank.value + epoch % options_.workers) % options_.workers);
}

/// Of an epoch that is dealt as a whole: what lies there when all shards stand one after the other, each in its order.
std::int64_t Shards::sample_of(std::int64_t epoch, std::int32_t workers, std::int64_t shard_size,
                               std::int64_t at) const {
  const Permutation dealt(options_.samples, key(options_.seed, 1, rotates(epoch) ? epoch / workers : epoch));
  const std::int64_t shard = at / shard_size;
  if (shard >= workers) return dealt(at);
  const Permutation order(shard_size, key(options_.seed, 2, epoch, shard));
  return dealt(shard * shard_size + order(at % shard_size));
}

/// The same of one of the deals of the first epoch. Of those after the first one each is over what the one before left.
std::int64_t Shards::sample(std::size_t deal, std::int64_t at) const {
  if (deal == 0) return sample_of(first_epoch(), deals_[0].workers, deals_[0].shard, at);
  const Deal& before = deals_[deal - 1];
  const Permutation dealt(deals_[deal].samples, key(options_.seed, 3, first_epoch(), static_cast<std::int64_t>(deal)));
  const std::int64_t which = dealt(at), left_of_each = before.shard - before.done, left = left_of_each * before.workers;
  if (which >= left) return sample(deal - 1, before.shard * before.workers + which - left);
  return sample(deal - 1, which / left_of_each * before.shard + before.done + which % left_of_each);
}

void Shards::indices(Rank rank, std::int64_t body, std::vector<std::int64_t>& out) const {
  PACELINE_CHECK(body >= origin_, "a job does not go back to before where it goes on");
  const bool in_first = body < first_end_;
  const std::int64_t epoch = epoch_of(body), shard = shard_of(rank, epoch);
  out.clear();
  out.reserve(static_cast<std::size_t>(options_.batch));
  const std::int64_t number = in_first ? body - origin_ : (body - first_end_) % bodies_per_epoch_;
  const std::int64_t begin = number * options_.batch + shard * (in_first ? deals_.back().shard : shard_size_);
  for (std::int64_t at = begin; at < begin + options_.batch; ++at)
    out.push_back(in_first ? sample(deals_.size() - 1, at) : sample_of(epoch, options_.workers, shard_size_, at));
}

std::string text_of(const Shards::Place& place) {
  std::string text = std::to_string(place.epoch) + (place.rotated ? "r:" : ":");
  for (const auto& part : place.parts)
    text += " " + std::to_string(part.workers) + "x" + std::to_string(part.batch) + "x" + std::to_string(part.bodies);
  return text;
}

std::optional<Shards::Place> place_of(const std::string& text) {
  Shards::Place place;
  std::istringstream in(text);
  char colon = 0;
  if (!(in >> place.epoch >> colon)) return {};
  place.rotated = colon == 'r';
  if (place.rotated) in >> colon;
  if (colon != ':') return {};
  while (!(in >> std::ws).eof()) {
    Shards::Part part;
    char first = 0, second = 0;
    if (!(in >> part.workers >> first >> part.batch >> second >> part.bodies) || first != 'x' || second != 'x')
      return {};
    place.parts.push_back(part);
  }
  return place;
}

}  // namespace paceline::algorithms
