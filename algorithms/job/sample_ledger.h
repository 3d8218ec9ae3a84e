#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "runtime/base/json.h"

namespace paceline::job {

/// Why samples are in no model, but for the tail: names of fields.
inline constexpr std::array kUnused{"abandoned", "skipped", "late", "lost"};

/// What became of a job's samples, by epoch: put together of what its nodes say (scheduler/ledger.h). Sans I/O.
class SampleLedger {
 public:
  /// Of the job's: `ledger` has epochs that are over on a node, perhaps for the second time, `progress` and `closed`
  /// all others, in place of what they said of these before. What a lost node had not said of epochs that are over for
  /// the others is lost.
  void on_event(const nlohmann::json& event);

  /// A list of {epoch, samples, committed, abandoned, skipped, late, tail, lost, twice}. Those from `committed` to
  /// `lost` add up to `samples` for each epoch that is over; of the one within which a run goes on that is what was
  /// left of it. Without a data set one row, of all that was done.
  nlohmann::json rows() const;

 private:
  struct Row {
    std::map<std::string, std::int64_t> samples;  ///< By what became of them.
    std::int64_t tail = 0, all = 0;               ///< Of all nodes.
    bool closed = false;
  };
  void read(const nlohmann::json& ledger, bool closed);

  /// What a node has said of a leg of the job: of an epoch that more than one had a part in each has told its own.
  using Said = std::map<std::pair<std::int32_t, std::int32_t>, Row>;  ///< Leg, node.
  std::map<std::int64_t, Said> epochs_;
  std::set<std::int32_t> nodes_;
  std::map<std::int32_t, std::int32_t>
      lost_;  ///< Nodes that were lost, or not there, and the leg with which they came.
};

}  // namespace paceline::job
