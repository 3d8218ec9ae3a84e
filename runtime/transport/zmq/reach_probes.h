#pragma once

#include <string>
#include <unordered_map>

#include "runtime/process/fd.h"
#include "runtime/transport/transport.h"

namespace paceline::transport {

/// Finds out whether anybody listens at an address, by connecting and hanging up. Does I/O, but never waits: a question
/// goes out when it is asked first, and its answer is there when it is asked again. Owned by the transport's thread.
/// Bound: one descriptor for each address that is asked about.
class ReachProbes {
 public:
  /// `unknown` while the answer is under way, where the network says neither, and for a host that is no number (a
  /// look-up of its name would wait).
  Reach reach(const std::string& address);

 private:
  Reach begin(const std::string& address);

  std::unordered_map<std::string, process::Fd> under_way_;
};

}  // namespace paceline::transport
