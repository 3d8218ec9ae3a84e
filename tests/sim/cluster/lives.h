#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "algorithms/simulate/cluster/simulated_cluster.h"
#include "tests/support/sanitized.h"

namespace paceline::sim {

/// The driver of a cluster that is ready.
inline simulate::SimulatedDriver& begin(simulate::SimulatedCluster& cluster, NodeId at = NodeId{0}) {
  using std::chrono::milliseconds;
  for (int i = 0; i < 100 && !cluster.ready(); ++i) cluster.run(milliseconds(20));
  auto& driver = *cluster.start_driver(at);
  cluster.run(milliseconds(10));
  return driver;
}

/// Lives of seeds: PACELINE_CLUSTER_LIVES of them (`usual`), from that of PACELINE_CLUSTER_LIFE (1) on, until five had
/// something wrong. `live` takes a seed and a number to count up, and says what was wrong; `what` is counted. Where
/// nothing was, there have to be more than `least` a life.
template <class Live>
void expect_to_end_well(std::uint64_t usual, const char* what, double least, const Live& live) {
  const auto number = [](const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
  };
  const std::uint64_t lives = number("PACELINE_CLUSTER_LIVES", kSanitized ? usual / 12 : usual),
                      first = number("PACELINE_CLUSTER_LIFE", 1);
  std::uint64_t counted = 0;
  int failed = 0;
  for (std::uint64_t seed = first; seed < first + lives && failed < 5; ++seed) {
    std::string wrong;
    try {
      wrong = live(seed, counted);
    } catch (const std::exception& error) {
      wrong = error.what();
    }
    EXPECT_EQ(wrong, "") << "in the life of seed " << seed;
    failed += wrong.empty() ? 0 : 1;
  }
  std::printf("%llu lives, %llu %s\n", static_cast<unsigned long long>(lives), static_cast<unsigned long long>(counted),
              what);
  const double at_least = least * static_cast<double>(lives);
  if (failed == 0 && at_least > 2) {  // Of a life or two it says nothing.
    EXPECT_GT(static_cast<double>(counted), at_least);
  }
}

}  // namespace paceline::sim
