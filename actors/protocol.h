#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "actors/function_ref.h"
#include "actors/process_ids.h"
#include "actors/serialise.h"
#include "runtime/base/ids.h"

namespace paceline::actors {

/// The messages of actors and tasks as plain values: what clients, workers and the agent's router think in. Their
/// encoding is actors/protocol_wire.h; meaning of the fields: runtime/wire/messages.capnp.

/// Of one call, all arguments together; of one result. More cannot go by value.
inline constexpr std::size_t kArgumentBytesMax = std::size_t{60} << 20;
inline constexpr std::size_t kResultBytesMax = std::size_t{1000} << 20;

/// One argument: its bytes, or the result of a task.
using Argument = std::variant<Bytes, TaskId>;

/// How to start the fork server of an executable, so that workers find what the process that asks for them has: its
/// arguments, its environment, its working directory. Those that differ in `logs` only share a server.
struct Executable {
  std::string path;
  std::vector<std::string> args;
  std::vector<std::string> env;  ///< "NAME=value", all of it, in order of names.
  std::string directory;         ///< Where it works.
  std::string build;
  std::string logs;  ///< Folder for the logs of workers; empty: the agent's.
  bool operator==(const Executable&) const = default;
};

struct Resources {
  float cpus = 1;
  int retries = 0;
  bool operator==(const Resources&) const = default;
};

/// Creation of an actor, on the node that `actor` names.
struct CreateActor {
  ActorId actor;
  FunctionRef function;
  std::vector<Argument> arguments;
  std::string name;         ///< For people; may be empty.
  std::string owner;        ///< Peer that ends it, and that hears of its death.
  Executable executable{};  ///< The owner's; filled in by its agent.
};

/// The constructor returned (error empty), threw, or the actor died.
struct ActorReady {
  ActorId actor;
  std::string owner;
  bool dead = false;
  Error error;  ///< Text empty: it is ready.
};

/// A method call (`actor` set) or a task.
struct Call {
  TaskId task;
  ActorId actor;
  FunctionRef function;
  std::vector<Argument> arguments;
  std::string owner;      ///< Peer that the result goes to; its agent knows it.
  Resources resources{};  ///< Of a task.
  bool by_line = false;   ///< It came past the agent (runtime/channel/lines.h), and so does its result. Not sent.
};

struct CallResult {
  TaskId task;
  std::string owner;
  Result<Bytes> value;
  bool by_line = false;  ///< Of a call that no agent knows.
};

/// What a thread of a worker waits for.
struct Awaited {
  TaskId task;    ///< 0: not for ever.
  ActorId actor;  ///< That is to answer it; 0: a task's worker.
  bool operator==(const Awaited&) const = default;
};

/// The owner needs these no longer: actors end, results of tasks are forgotten.
struct Release {
  std::vector<ActorId> actors;
  std::vector<TaskId> tasks;
};

}  // namespace paceline::actors
