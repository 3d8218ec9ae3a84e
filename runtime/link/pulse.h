#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/process/fd.h"

namespace paceline::link {

/// Whom to ask for a pulse: a process tells its peers over their links, which are encrypted.
struct PulseAddress {
  std::uint64_t port = 0;  ///< UDP; 0: it has none.
  std::uint64_t secret = 0;
};

/// Answers, from a thread of its own, that this process runs, and asks others: so that a process whose loop is busy for
/// seconds, as with the pages of a large model, is told from one that is stopped or gone. A question is answered to who
/// knows the secret, with as many bytes as it has. Asks and answers over UDP: one that is lost is asked again.
///
/// Does I/O; sleeps while nobody asks. The thread touches nothing but its descriptors. Owned by the loop's thread.
class Pulse {
 public:
  /// `host`: a number of this machine, of IPv4 or IPv6. `invalid`: it is none. `internal`: no descriptors.
  static Result<std::unique_ptr<Pulse>> open(const std::string& host);
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  const PulseAddress& address() const { return address_; }
  /// Never waits; `question` comes back in answers() if the process there runs.
  void ask(const std::string& host, const PulseAddress& whom, std::uint64_t question);
  /// The questions that were answered since the last call.
  std::vector<std::uint64_t> answers();

 private:
  Pulse(process::Fd answering, process::Fd asking, process::Fd stop, PulseAddress address);

  process::Fd answering_, asking_, stop_;
  PulseAddress address_;
  std::thread thread_;
};

}  // namespace paceline::link
