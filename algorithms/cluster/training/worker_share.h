#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "algorithms/cluster/training/job_settings.h"
#include "algorithms/session/job_terms.h"
#include "runtime/memory/control.h"
#include "runtime/memory/window.h"
#include "runtime/process/fd.h"

namespace paceline::cluster {

/// What a worker says of the model that it shares.
struct SharedModel {
  std::uint64_t elements = 0;
  std::uint64_t outer_elements = 0;  ///< The first so many get the strategy's outer step.
  std::uint8_t dtype = 0;            ///< memory::Dtype.
};

/// `invalid`: the strategy cannot train it.
Result<void> check_model(const algorithms::Strategy& strategy, const SharedModel& model);

/// Of a file with what somebody did when, which each leg has one of.
std::string trace_suffix(const JobSettings& settings);
/// Here the agent makes the outer step.
bool exchanges(const algorithms::Strategy& strategy);
/// A model's weight is the number of samples that it has learnt from.
bool weighs_by_samples(const algorithms::Strategy& strategy);

/// A worker's memory for a job, and what it is told: the window of its model, and the control page.
struct WorkerShare {
  memory::Window::Layout layout;
  std::uint64_t outer_elements = 0;
  bool waits_for_turn = false;  ///< A replay: it publishes nothing before its agent has read what it published then.
  session::JobTerms terms{};
  std::optional<memory::Window> window{};
  std::optional<memory::ControlPage> control{};
  process::Fd read_only{};  ///< Of the control page.
  JobSettings::Worked worked{};

  /// Makes the memory: beside the loop, since zeroing it takes long.
  Result<void> make();
  /// Of a worker that has its window already: only the page.
  Result<void> make_control();
};

/// What the strategy asks of this worker.
WorkerShare share_of(const JobSettings& settings, Rank rank, const SharedModel& model);

}  // namespace paceline::cluster
