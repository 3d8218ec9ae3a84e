#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/protocol.h"
#include "runtime/transport/transport.h"
#include "runtime/wire/codec.h"

namespace paceline::actors {

/// Encoding of actors/protocol.h. The first frame is the envelope; a result of more than kInlineResultMax bytes is a
/// frame of its own.
inline constexpr std::size_t kInlineResultMax = 4096;
inline constexpr std::size_t kArgumentsMax = 1024;  ///< Of one call.

using Frames = std::vector<transport::Frame>;

/// A message of one frame.
Frames as_message(transport::Frame frame);

Frames encode(const Executable& message);
Frames encode(const CreateActor& message);
Frames encode(const ActorReady& message);
Frames encode(const Call& message);
Frames encode(CallResult message);
Frames encode(PushTask message);
Frames encode(const Wants& message);
Frames encode(const Loan& message);
Frames encode(const Signal& message);

/// `invalid` past the bounds. `frames` are the message's, for what travels outside of the envelope.
Executable decode(wire::Executable::Reader reader);
Result<CreateActor> decode(wire::CreateActor::Reader reader);
Result<ActorReady> decode(wire::ActorReady::Reader reader);
Result<Call> decode(wire::Call::Reader reader);
/// An encoded call as it is sent again, for the `times`-th time.
Frames resent(const transport::Frame& call, int times);
/// Gives an encoded call of this process its number.
void set_number(transport::Frame& call, std::uint64_t number);
/// The name in an encoded call of this process.
std::string name_in(const transport::Frame& call);
Result<CallResult> decode(wire::CallResult::Reader reader, std::vector<transport::Frame>& frames);

Result<PushTask> decode(wire::PushTask::Reader reader, std::vector<transport::Frame>& frames);
Wants decode(wire::Wants::Reader reader);
Result<Loan> decode(wire::Loan::Reader reader);
Result<Signal> decode(wire::Signal::Reader reader);

std::optional<Awaited> awaited(wire::Waits::Reader reader);

void write(wire::Failure::Builder builder, const Error& error);
Error read(wire::Failure::Reader reader);

/// Request of a process to its agent: {"actor": id} -> {"peer": name, "path": socket} of the line to it, or {}: calls
/// have to go through the agent. An error: the actor's end.
inline constexpr const char* kLineVerb = "line";
/// Request of a process to the head: {"name", "type"} -> {"actor"}. `not_found`, `invalid`.
inline constexpr const char* kFindVerb = "find_actor";
/// Request of an actor's worker to its agent, before the destructor runs of an actor that has asked for its end. The
/// reply: what the worker has sent before is there, and the actor is not started again, however its process ends.
inline constexpr const char* kLeaveVerb = "leave";
/// The socket at which a worker listens for lines.
std::string line_path(const std::string& runtime_directory, WorkerId worker);
/// In the directory of the agent that listens at this address; empty: it has none.
std::string line_path_beside(const std::string& agent_address, WorkerId worker);

/// The JSON of request verb "release": {"actors": [id...]}.
inline constexpr const char* kReleaseVerb = "release";
/// A request to the agent of a task's or call's owner: {task, force}; {owner}, who has been told.
inline constexpr const char* kCancelVerb = "cancel";
std::string to_json(const Release& release);
Result<Release> release_from_json(const std::string& json);

}  // namespace paceline::actors
