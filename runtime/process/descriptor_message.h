#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/process/fd.h"
#include "runtime/process/fd_passing.h"

namespace paceline::process {

/// What a worker and its agent say to each other over the worker's Unix socket, a packet each: descriptors, and what
/// there is to say of them. The two may be of different builds, hence the version in every packet.
///
///   worker                                              agent
///     open_channel                                  ->  answer [memory, bell]      of its session
///     find_state                                    ->  answer [state]             or none: nothing was kept
///     keep_state [state]                            ->  answer
///     spans [memory]                                ->
///     captured       (replica) [its state]          ->
///     openShare      (a message of its session)     ->  answer (jobTerms) [window, control page]
///     openObject     (so)                           ->  answer (object) [object]
///     replicaWanted  (so)                           ->  answer (replica) [its state]  or none: it goes on
///
/// An answer, or the failure that comes in its place, has the number of its request.
struct DescriptorMessage {
  enum class Kind : std::uint16_t { answer = 1, failure, open_channel, find_state, keep_state, spans, captured };

  Kind kind = Kind::answer;
  std::uint64_t request = 0;  ///< 0: nobody waits for an answer.
  std::string body{};         ///< A message (runtime/wire/messages.capnp), where it has one; of a failure, its text.
  std::vector<Fd> fds{};
  bool fds_lost = false;  ///< It had some: this process has as many open as it may.
};

inline constexpr std::uint32_t kDescriptorProtocolVersion = 1;
inline constexpr std::size_t kDescriptorHeaderBytes = 16;

/// The bytes of a packet that goes with so many descriptors.
std::string encode(DescriptorMessage::Kind kind, std::uint64_t request, std::string_view body, std::size_t fds);
/// `invalid`: another version, no kind, or not as many descriptors as it says or its kind has.
Result<DescriptorMessage> decode_descriptor_message(Packet packet);

}  // namespace paceline::process
