#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/pending_result.h"
#include "actors/protocol.h"
#include "runtime/base/instant.h"

namespace paceline::actors {

/// The tasks that this process has asked for and that are not over, and the workers that agents have lent it for them.
/// Sans-I/O; the client guards it and carries out what it says.
///
///   add -> queued -> next -> under way -> on_result
///             ^                 |
///             +-----------------+ put_back, on_unbegun, on_gone (while it may be run again)
///
/// To a worker about `slice` of work is under way, as far as one can tell from how long tasks of this shape have taken:
/// many short ones, so that it never waits for the next, and one long one, so that none waits behind it. Workers are
/// kept while there is work for them, and a little longer.
///
/// Tasks that are spread are queued for nodes in turn. One whose node has no room for it meanwhile goes where there is
/// some: to a worker of another node that has done its own, or to any node when its own has taken none for a while.
///
/// Where a worker dies only the oldest of its tasks can have begun: it runs them in order, and an answer lies in its
/// line before the next one begins. An answer that goes through agents can be lost with the worker: such tasks go one
/// at a time, and never beside others.
class OwnedTasks {
 public:
  using Frame = std::vector<std::byte>;
  struct Options {
    Duration slice = std::chrono::milliseconds(2);
    std::size_t under_way_max = 256;                         ///< Tasks of one worker.
    std::size_t bytes_max = std::size_t{1} << 30;            ///< Of all calls. The caller asks has_room() first.
    Duration unused_max = std::chrono::seconds(1);           ///< A worker without work is given back after that.
    Duration content_after = std::chrono::milliseconds(10);  ///< Without work, no more is wanted than is there.
    Duration word_patience = std::chrono::seconds(5);        ///< Of a worker whose line ended.
    Duration spread_patience = std::chrono::seconds(1);      ///< Of spread tasks, with a node that takes none of them,
    Duration shunned_for = std::chrono::seconds(30);         ///< and how long others have none, if it has no worker.
    std::size_t line_bytes = std::size_t{16} << 10;          ///< Larger calls go through the agent.
    std::uint32_t workers_max = 4096;
  };

  OwnedTasks() : OwnedTasks(Options{}) {}
  explicit OwnedTasks(Options options) : options_(options) {}

  bool has_room() const { return bytes_ < options_.bytes_max; }
  std::size_t size() const { return tasks_.size(); }
  /// Of which something is kept.
  std::size_t shapes() const { return pools_.size(); }
  /// Whether anything is queued, under way, lent or owed to agents: deadlines may be near.
  bool is_in_use() const;
  struct Retries {
    int times = 0;              ///< How often it may be run again after the death of a worker that may have begun it,
    bool after_errors = false;  ///< and after an error that it has answered.
  };
  void add(TaskId task, const Shape& shape, Retries retries, Frame call, PendingResultPtr result);

  struct Push {
    WorkerId worker;
    TaskId task;
    const Frame& call;  ///< Until the next change.
    bool by_line = false;
  };
  /// A task that may go to a worker now; it is under way from here on.
  std::optional<Push> next(Instant now);
  /// It could not go: the worker takes nothing before it has answered something.
  void put_back(TaskId task);
  /// What the agent is to hear now.
  std::optional<Wants> next_word(Instant now);
  /// When next_word() has something to say if nothing else happens.
  std::optional<Instant> next_deadline() const;

  /// The place of its result; null if it is not under way. `ran`: how long it took its worker, 0: unknown.
  PendingResultPtr on_result(TaskId task, Duration ran, Instant now);
  /// It has answered with an error. True: it is run again; else on_result() is to follow.
  bool on_error(TaskId task, Duration ran, Instant now);
  /// Its worker has something else to do.
  void on_unbegun(TaskId task, Instant now);
  /// `line`: one goes there.
  void on_lent(WorkerId worker, const Shape& shape, bool line, Instant now);
  /// Others wait for `count` workers of this shape on this node.
  void on_recalled(const Shape& shape, NodeId node, std::uint32_t count);
  /// The worker's line has ended: it gets nothing more, and the agent's word of how it ended is waited for.
  void on_line_ended(WorkerId worker, Instant now);
  /// Workers whose end no agent has told for `word_patience`: the caller says on_gone of each.
  std::vector<WorkerId> silent(Instant now) const;
  struct Failed {
    PendingResultPtr result;
    Frame call;
  };
  /// Those of its tasks that cannot be run again.
  std::vector<Failed> on_gone(WorkerId worker);
  /// Nobody runs tasks of this shape: those that are queued. Those that are spread go to any node instead.
  std::vector<PendingResultPtr> on_refused(const Shape& shape);
  std::vector<PendingResultPtr> forget_all();

  /// Where a task is.
  struct With {
    WorkerId worker;
    bool by_line = false;
  };
  /// Nothing: it is not here. Worker 0: it is queued.
  std::optional<With> with(TaskId task) const;
  /// Null: it is not here.
  PendingResultPtr result_of(TaskId task) const;
  /// It is wanted no more: one that is queued is over, one that is under way is never run again. Nothing: it is not
  /// here. Worker 0: it was queued; else that one is to hear of it.
  std::optional<With> cancel(TaskId task);
  /// Cancelled, and over without an answer of a worker's: the caller's to fail.
  std::vector<PendingResultPtr> take_cancelled() { return std::exchange(over_, {}); }

 private:
  /// There may be millions.
  struct Task {
    Frame call;
    PendingResultPtr result;
    WorkerId worker{};  ///< 0: queued.
    int retries = 0;
    std::uint32_t pool : 30 = 0;
    bool after_errors : 1 = false;
    bool cancelled : 1 = false;
  };
  struct Worker {
    std::deque<TaskId> under_way{};  ///< In the order in which it got them.
    bool line = false;               ///< There is one.
    bool by_line = false;            ///< Is the way of those under way.
    bool held_up = false;            ///< Until it has answered something.
    bool leaving = false;
    std::optional<Instant> lost{};  ///< Its line has ended.
    Instant idle_since{};
  };
  struct Pool {
    Shape shape;
    std::deque<TaskId> queue{};
    std::map<WorkerId, Worker> workers{};
    std::size_t busy = 0;                    ///< Workers with something under way.
    std::uint32_t told = 0;                  ///< How many workers the agent knows to be of use.
    Duration each{};                         ///< How long a task takes; 0: unknown.
    Instant served_since{};                  ///< Nothing is queued.
    std::optional<Instant> waits_since{};    ///< Spread: something is queued, and none was taken.
    std::optional<Instant> shunned_until{};  ///< Spread: the node has lent no worker.
    std::vector<WorkerId> returned{}, broken{};
    bool is_unused() const {
      return queue.empty() && workers.empty() && told == 0 && returned.empty() && broken.empty();
    }
  };

  std::uint32_t pool_of(const Shape& shape);
  std::size_t depth(const Pool& pool) const;
  std::uint32_t need(const Pool& pool) const;
  static bool is_idle(const Worker& worker) { return worker.under_way.empty() && !worker.lost; }
  bool goes_by_line(const Worker& worker, std::size_t bytes) const {
    return worker.line && bytes <= options_.line_bytes;
  }
  bool may_take(const Worker& worker, std::size_t depth, std::size_t bytes) const;
  std::pair<const WorkerId, Worker>* taker(Pool& pool, std::size_t bytes) const;
  Push push(Pool& pool, TaskId id, std::pair<const WorkerId, Worker>& to);
  std::optional<Push> next_of_others(Pool& pool, Instant now);
  void leave_node(Pool& pool);
  void leave_full_nodes(Instant now);
  static void note_taken(Pool& pool, Instant now);
  bool lacks_workers() const;
  void note_answer(Task& entry, TaskId task, Duration ran);
  void take_off(Pool& pool, Worker& worker, TaskId task);
  void queue_again(TaskId task, Task& entry);
  void end_cancelled(TaskId task);
  void give_back(Pool& pool, std::map<WorkerId, Worker>::iterator worker);
  void leave_if_idle(Pool& pool, WorkerId worker, Instant now);

  Options options_;
  std::unordered_map<TaskId, Task> tasks_;
  std::vector<std::unique_ptr<Pool>> pools_;  ///< By shape; those that are not used any more are used again.
  std::map<WorkerId, std::uint32_t> pool_with_;
  std::vector<PendingResultPtr> over_;
  std::size_t bytes_ = 0;
};

}  // namespace paceline::actors
