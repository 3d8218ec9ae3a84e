#pragma once

#include <cstdint>
#include <initializer_list>

namespace paceline::simulate {

/// What a stream of random numbers is for: streams of different uses share nothing.
enum class Use : std::uint64_t {
  gradient_noise = 1,
  centres = 2,
  samples = 3,
  batches = 4,
  compute = 5,
  stragglers = 6,
  scenario = 7
};

/// Random numbers that are the same for the same address (seed, use, numbers such as worker and step) in every program
/// and on every machine: splitmix64 (Vigna, public domain) and transforms of our own, as docs/jobs.md writes them down.
class Random {
 public:
  Random(std::uint64_t seed, Use use, std::initializer_list<std::int64_t> address);

  std::uint64_t next();
  /// In (0, 1], a multiple of 2^-53.
  double uniform();
  /// In 0 .. n-1; n >= 1.
  std::int64_t below(std::int64_t n);
  /// Standard normal (Box-Muller; numbers come in pairs, the cosine first).
  double normal();

 private:
  std::uint64_t state_;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace paceline::simulate
