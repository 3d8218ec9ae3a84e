#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/process/exit.h"

namespace paceline::process {

/// The packets between agent and fork server. They may be of two builds (an actor script compiled against an older
/// Paceline), hence the version in every packet.
///
///   server                         agent
///     ready            ->                              once, after warm-up
///                      <-  adopt [pidfd]               a worker of a former server: kill it, too, when the agent dies
///                      <-  fork {worker, log, env}
///     forked {worker, pid} [pidfd, socket] ->          or  refused {worker, text}
///     exited {worker, exit}                ->          once a forked worker, after its `forked`
struct ForkMessage {
  enum class Kind : std::uint16_t { ready = 1, fork, adopt, forked, refused, exited };

  Kind kind = Kind::ready;
  WorkerId worker{};
  pid_t pid = -1;                                          ///< forked.
  Exit exit{};                                             ///< exited.
  std::string text{};                                      ///< refused: why. fork: the log's path.
  std::vector<std::pair<std::string, std::string>> env{};  ///< fork.

  bool operator==(const ForkMessage&) const = default;
};

inline constexpr std::uint16_t kForkProtocolVersion = 1;
/// Variables of one fork request.
inline constexpr std::size_t kForkEnvMax = 256;

/// `invalid`: more than kForkEnvMax variables, a name that is empty or has '=', a zero byte, or larger than a packet.
Result<std::string> encode(const ForkMessage& message);
/// `invalid`: another version, or not one whole message.
Result<ForkMessage> decode_fork_message(std::string_view bytes);

}  // namespace paceline::process
