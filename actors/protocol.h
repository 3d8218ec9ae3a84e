#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/callee_name.h"
#include "actors/concurrency.h"
#include "actors/function_ref.h"
#include "actors/named.h"
#include "actors/process_ids.h"
#include "actors/sent_calls.h"
#include "actors/serialise.h"
#include "runtime/base/ids.h"
#include "runtime/base/instant.h"

namespace paceline::actors {

/// The messages of actors and tasks as plain values: what clients, workers and the agent's router think in. Their
/// encoding is actors/protocol_wire.h; meaning of the fields: runtime/wire/messages.capnp.

/// Of one call, all arguments together; of one result. More cannot go by value.
inline constexpr std::size_t kArgumentBytesMax = std::size_t{60} << 20;
inline constexpr std::size_t kResultBytesMax = std::size_t{1000} << 20;

/// How to start the fork server of an executable, so that workers find what the process that asks for them has: its
/// arguments, its environment, its working directory. Those that differ only in where output goes share a server.
struct Executable {
  std::string path;
  std::vector<std::string> args;
  std::vector<std::string> env;  ///< "NAME=value", all of it, in order of names.
  std::string directory;         ///< Where it works.
  std::string build;
  std::string logs;              ///< Folder for the logs of workers; empty: the agent's.
  bool logs_if_printed = false;  ///< It is made when needed, and keeps nothing of workers that print nothing.
  std::string driver{};          ///< Peer that shows what its workers print; empty: nobody does.
  NodeId driver_node{};          ///< Its; filled in by its agent.
  bool operator==(const Executable&) const = default;
};

/// What a task needs of the worker that runs it. Workers are lent by shape.
struct Shape {
  float cpus = 1;
  NodeId node{-1};           ///< -1: any.
  std::uint64_t memory = 0;  ///< Bytes.
  bool spread = false;       ///< The node was chosen in turn: another one will do where this one has no room.
  auto operator<=>(const Shape&) const = default;
};

/// What a node has for tasks, or what of it is in use.
struct Capacity {
  double cpus = 0;
  double memory = 0;  ///< Bytes.

  void add(const Capacity& other, double times = 1) {
    cpus += times * other.cpus;
    memory += times * other.memory;
  }
  bool has_room_for(const Capacity& more) const { return more.cpus <= cpus + 1e-6 && more.memory <= memory; }
};
/// "2 cpus", "1 cpu and 2 GiB of memory" (actors/router/lending_views.cc).
std::string to_string(const Capacity& what);
inline Capacity needs_of(const Shape& shape) { return {shape.cpus, static_cast<double>(shape.memory)}; }

/// Creation of an actor, on the node that `actor` names.
struct CreateActor {
  ActorId actor;
  FunctionRef function;
  std::vector<Bytes> arguments;
  std::string name;         ///< For people, or claimed; may be empty.
  std::string owner;        ///< Peer that ends it, and that hears of its death.
  Executable executable{};  ///< The owner's; filled in by its agent.
  RestartRule rule{};
  std::string type{};  ///< Its class, as C++ writes it.
  NameRule naming{};
  Concurrency concurrency{};
  JobId job{};  ///< That it works for: while that runs, it outlives its owner's node. 0: none.
};

/// The constructor returned (error empty), threw, or the actor died.
struct ActorReady {
  ActorId actor;
  std::string owner;
  bool dead = false;
  Error error;      ///< Text empty: it is ready.
  ActorId named{};  ///< Not ready yet, but this actor has the name that it claims, itself or another.
};

/// A method call (`actor` set) or a task.
struct Call {
  TaskId task;
  ActorId actor;
  FunctionRef function;
  std::vector<Bytes> arguments;
  std::string owner;         ///< Peer that the result goes to; its agent knows it.
  bool by_line = false;      ///< It came past the agent (runtime/channel/lines.h), and so does its result. Not sent.
  int resent = 0;            ///< How often before, to an actor whose process died.
  bool kill = false;         ///< No call: the actor ends, and this is answered.
  std::string group{};       ///< Of the actor's concurrency groups; empty: none.
  bool fence = false;        ///< No call: answered as soon as it has arrived, and so has all that was sent before it.
  std::string name{};        ///< A task's, for people; may be empty.
  std::uint64_t number = 0;  ///< Of a call to an actor, rising with each of the process that makes it; 0: unknown.
  std::uint32_t ahead = 0;   ///< Values that it may give before its owner takes them, where it gives a stream.
  bool again = false;        ///< It was made through an agent that is gone: its result is to come this way.
  CalleeName callee = nullptr;  ///< What C++ calls what is called, for errors of its owner's. Not sent.
};

struct CallResult {
  TaskId task;
  std::string owner;
  Result<Bytes> value;
  bool by_line = false;    ///< Of a call that no agent knows.
  bool unbegun = false;    ///< A task that has not begun, given back: its worker has something else to do.
  Duration ran{};          ///< How long it took its worker; 0: unknown.
  std::uint64_t item = 0;  ///< Not the result, but this value of a stream, counted from 1.
};

/// To a lent worker where no line goes, or where the task is too large for one; the task's call follows as it is.
struct PushTask {
  WorkerId worker;
  TaskId task;
  std::string owner;
  std::vector<std::byte> call;  ///< Encoded.
};

/// An owner's word to who runs or queues a call or a task of its; or somebody else's wish, to the owner.
struct Signal {
  enum class Kind {
    cancel,  ///< It is not wanted any more.
    end,     ///< The same, and if it runs, its worker ends.
    taken,   ///< So many values of its stream have been taken.
  };
  TaskId task;
  WorkerId worker;  ///< That the task is with; 0: a call, of
  ActorId actor;
  std::string owner;
  Kind kind = Kind::cancel;
  std::uint64_t taken = 0;
  bool is_wish = false;  ///< For the owner to decide: it cancels it as its own cancel() would.
};

/// Of how many workers for tasks of a shape a process has use, those that it has among them, and which it needs no
/// longer.
struct Wants {
  Shape shape;
  std::uint32_t workers = 0;
  std::vector<WorkerId> returned;  ///< Of any shape.
  std::vector<WorkerId> broken;    ///< The same, to be ended.
  std::string owner;
  // Between agents:
  std::string root;  ///< The driver on whose behalf.
  Executable executable{};
  bool gone = false;  ///< The owner has ended.
};

/// An agent's word to a process that runs tasks.
struct Loan {
  enum class Kind {
    lent,      ///< The worker is there for tasks of this shape.
    gone,      ///< The worker is, for this reason.
    recalled,  ///< Others wait for so many workers of this shape.
    refused,   ///< No worker of this shape can be had, for this reason.
  };
  Kind kind = Kind::lent;
  std::string owner;
  Shape shape;
  WorkerId worker;  ///< Recalled: any of the node that they are of.
  std::uint32_t count = 0;
  Error error;
};

/// What a thread of a worker waits for.
struct Awaited {
  TaskId task;    ///< 0: not for ever.
  ActorId actor;  ///< That is to answer it; 0: a task's worker.
  TaskId within;  ///< The call that waits.
  bool operator==(const Awaited&) const = default;
};

/// The owner needs these no longer: they end.
struct Release {
  std::vector<ActorId> actors;
  bool owner_died = false;
};

}  // namespace paceline::actors
