#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "algorithms/session/agent_link.h"
#include "algorithms/session/session_core.h"
#include "runtime/observe/trace.h"
#include "runtime/store/shared_object.h"

namespace paceline::session {

/// A session of a worker's process: the core, its agent's socket and memory, and the wait for it. Owned by the compute
/// thread; blocks on the agent's control page or its socket, never without noticing that the agent has gone.
class BlockingSession {
 public:
  static Result<std::unique_ptr<BlockingSession>> open(const paceline_session_config& config);
  /// Another window, and another core, for the job's next leg.
  Result<void> reopen(const paceline_session_config& config);
  ~BlockingSession();
  BlockingSession(const BlockingSession&) = delete;
  BlockingSession& operator=(const BlockingSession&) = delete;

  SessionCore& core() { return *core_; }
  const SessionCore& core() const { return *core_; }
  /// Polls the core until there is a value. `call` gives an optional, or whether it is done.
  template <class Call>
  auto until_done(const Call& call);
  double sleep(double seconds);
  void end_with(std::span<const paceline_span> pieces, std::size_t width);
  Result<void*> object(const std::string& key, std::uint64_t size, bool& fill);
  void seal_object(const std::string& key);

 private:
  /// How often a waiting worker looks whether its agent still lives.
  static constexpr Duration kLook = std::chrono::milliseconds(200);

  explicit BlockingSession(AgentLink link) : link_(std::move(link)) {}

  Result<void> configure(Answer answer, const paceline_session_config& config);
  SessionCore::Outbox outbox(std::int32_t node);
  void post(wire::Message& message);
  void fail_job(const Error& error);
  void send_replica(std::int64_t update, store::SharedObject::Pieces state);
  void wait(std::uint32_t bell, Duration most);
  void read_answer();

  AgentLink link_;
  std::uint64_t job_ = 0;  ///< As its agent calls it: with its leg.
  std::int32_t rank_ = 0;
  std::optional<process::DescriptorChannel::Request> replica_;  ///< The last one's that was wanted.
  std::optional<observe::TraceWriter> trace_;
  std::optional<SessionCore> core_;
  std::map<std::string, store::SharedObject> objects_;
};

template <class Call>
auto BlockingSession::until_done(const Call& call) {
  while (true) {
    const std::uint32_t bell = core_->control().bell();
    if (auto done = call()) return done;
    core_->awaits_replica() ? read_answer() : wait(bell, kLook);
  }
}

}  // namespace paceline::session
