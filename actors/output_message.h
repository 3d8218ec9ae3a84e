#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/protocol_wire.h"
#include "runtime/base/ids.h"

namespace paceline::actors {

/// What workers of one node have printed, on its way to the driver that shows it.
struct Output {
  /// Whole lines of one worker, each with its line feed, in order.
  struct Part {
    std::string who;             ///< As its lines begin: "Counter pid=17".
    std::string log;             ///< Where all of them stand.
    std::uint64_t left_out = 0;  ///< Lines before these that stand only there.
    std::string lines;
    bool operator==(const Part&) const = default;
  };
  std::string to;  ///< The driver.
  NodeId node;
  std::uint32_t bytes = 0;  ///< That the driver says again in OutputWanted when it has shown them.
  std::vector<Part> parts;
  bool all = false;  ///< Nothing is left of what had been printed when all was wanted.
  bool operator==(const Output&) const = default;
};

/// The driver's word back.
struct OutputWanted {
  std::string driver;       ///< Between agents.
  NodeId node;              ///< Whose workers' output it is about.
  std::uint32_t bytes = 0;  ///< Shown: so many more may come.
  bool all = false;         ///< What has been printed so far, on all nodes, is wanted now: the driver ends.
  bool gone = false;        ///< Between agents: nobody is there who would show it.
  bool operator==(const OutputWanted&) const = default;
};

Frames encode(const Output& message);
Frames encode(const OutputWanted& message);
Output decode(wire::Output::Reader reader);
OutputWanted decode(wire::OutputWanted::Reader reader);

}  // namespace paceline::actors
