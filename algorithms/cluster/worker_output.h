#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/cluster/output_lines.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/ids.h"
#include "runtime/base/instant.h"
#include "runtime/observe/log.h"
#include "runtime/process/fd.h"

namespace paceline::cluster {

/// Reads what this node's workers print out of their logs, of which the kernel tells (inotify) when they grow, and
/// sends it in batches to the drivers that show it. Workers notice nothing of it, and while nobody prints nothing is
/// done. Owned by the agent's control loop.
///
/// Bounds: kUnderWayMax bytes to a driver that it has not shown yet; what is beyond stays in the logs, and is left out
/// and counted there where it gets too much (OutputLines). kEndedMax workers of a driver that have ended and are not
/// read to their ends; of older ones no more is shown. kTurnBytes are read in a turn.
class WorkerOutput {
 public:
  /// Who shows it: a driver, and its node.
  struct Reader {
    std::string driver;
    NodeId node;
    auto operator<=>(const Reader&) const = default;
  };
  struct Source {
    WorkerId worker;
    std::string who;  ///< As lines of it begin.
    std::string log;
    std::int64_t begin = 0;  ///< Where its lines begin in its log.
    Reader reader;
  };
  struct Part {
    std::string who, log;
    OutputLines::Part lines;
  };
  struct Batch {
    std::vector<Part> parts;
    std::size_t bytes = 0;  ///< That on_shown() is to be told of.
    bool all = false;       ///< The answer to on_all_wanted().
  };
  using Send = std::function<void(const Reader&, Batch)>;

  static constexpr std::size_t kUnderWayMax = std::size_t{1} << 20;
  static constexpr std::size_t kEndedMax = 256;
  static constexpr std::size_t kTurnBytes = std::size_t{128} << 10;
  static constexpr Duration kPace = std::chrono::milliseconds(30);  ///< Between two batches of a quiet worker.

  WorkerOutput(EventLoop& loop, observe::Log& log, Send send) : loop_(loop), log_(log), send_(std::move(send)) {}
  ~WorkerOutput();
  WorkerOutput(const WorkerOutput&) = delete;
  WorkerOutput& operator=(const WorkerOutput&) = delete;

  void watch(Source source);
  /// What it has printed last is sent, then it is forgotten. What comes into its log from here on is another's.
  void on_ended(WorkerId worker);
  void on_shown(const Reader& reader, std::size_t bytes);
  /// The driver is about to end: all that has been printed so far, also half a line, then a batch with `all`.
  void on_all_wanted(const Reader& reader);
  void forget(const Reader& reader);
  /// What is for drivers of this node waits until they are let go of or move, and is forgotten at this time.
  void hold_node(NodeId node, Instant until);
  void let_go(const Reader& reader) { held_.erase(reader); }
  /// The driver is at this node now: what it has not been sent goes there.
  void move(const std::string& driver, NodeId to);

  void tick(Instant now);
  std::optional<Instant> next_deadline() const;

 private:
  struct Stream {
    Source source;
    process::Fd file{};
    OutputLines lines;
    int watch = -1;
    bool queued = false;
    bool ended = false;
    std::int64_t end = std::numeric_limits<std::int64_t>::max();  ///< Where its lines end in its log.
    bool all_wanted = false;
    std::optional<std::int64_t> all_until{};  ///< Where that ends.
  };
  struct State {
    std::deque<WorkerId> queue;  ///< Workers that may have printed something.
    std::size_t under_way = 0;   ///< Bytes.
    Instant due{};               ///< When the next batch may leave.
    bool all_wanted = false;
    std::size_t answers_left = 0;  ///< Streams whose end is not reached.
    std::deque<WorkerId> ended;    ///< Of those that are still read, the oldest first.
  };

  bool may_send(const Reader& reader, const State& state) const;
  void on_events();
  void queue(Stream& stream, bool at_once = false);
  void answer(Stream& stream, State& state);
  void arm(Stream& stream);
  void disarm(Stream& stream);
  void serve(const Reader& reader, State& state, Instant now);
  std::size_t read(Stream& stream, std::size_t room);
  bool is_read(Stream& stream, State& state);
  void send(const Reader& reader, State& state, Batch batch);
  void complain(const std::string& text);

  EventLoop& loop_;
  observe::Log& log_;
  Send send_;
  process::Fd inotify_;
  bool complained_ = false;
  std::map<WorkerId, Stream> streams_;
  std::map<int, WorkerId> watches_;
  std::map<Reader, State> readers_;
  std::map<Reader, Instant> held_;
};

}  // namespace paceline::cluster
