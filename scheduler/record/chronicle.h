#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/memory/window.h"
#include "scheduler/record/record_file.h"
#include "scheduler/record/replay.h"

namespace paceline::scheduler {

/// All that a strategy's core is told on one agent, which is all that decides what it does. It is written down
/// (record_file.h). In a replay (replay.h) what happens waits here for its turn, and what follows from the core's
/// actions is compared with what followed in the run. Owned by the agent's control loop.
class Chronicle {
 public:
  /// Who is told, and what a replay asks of it.
  class Core {
   public:
    /// The core is told, and its actions are carried out.
    virtual void on_told(const Decision& decision) = 0;
    /// Actions that had to wait for workers are carried out; false: some still wait.
    virtual bool go_on() = 0;
    /// The averaging that is reduced finishes, if it has its turn; false: there is none.
    virtual bool finish_averaging(Instant now) = 0;
    /// Whether it may be told at once, since it makes no difference when, or whether, this happens.
    virtual bool needs_nothing(const Decision& decision) const = 0;
    /// What the worker may publish has changed.
    virtual void limit(Rank rank) = 0;
    /// It is not the recorded run any more.
    virtual void fail(std::string text) = 0;
    /// The last version that is done here.
    virtual Version done() const = 0;
    /// It was the job's last: what ends now is not written down.
    virtual bool is_over() const = 0;

   protected:
    ~Core() = default;
  };

  /// A recorded run, as this agent had it.
  struct Recorded {
    std::vector<Decision> decisions;
    bool is_cut = false;  ///< The agent was lost: what it did afterwards nobody knows.
  };

  /// `path`: where it is written to, with `head`; empty: nowhere. `replay`: what is to be gone through again.
  Chronicle(Core& core, const std::string& path, const std::string& head, std::optional<Recorded> replay);

  /// It happened outside: a worker, a message, the job. In a replay: when its turn comes, and then with the recorded
  /// time.
  void hear(const Decision& decision, Instant now);
  /// It follows from an action of the core, that is from what was told before.
  void decide(const Decision& decision);
  /// The core has been told already.
  void record(const Decision& decision);
  /// All of it is in the file. Before what follows from it leaves this node, so that nobody knows more of it than its
  /// record does.
  void flush();
  /// The job has come to its end by itself: the file is complete.
  void finish();
  /// Whatever comes is not written any more.
  void close() { record_.reset(); }

  // In a replay -------------------------------------------------------------------------------------------------------
  bool replays() const { return replay_.has_value(); }
  const Replay& replay() const { return *replay_; }
  /// The agent was lost here.
  bool is_cut_off() const { return is_cut_ && !replay_->next(); }
  /// Everything whose turn it is.
  void follow(Instant now);
  /// It is not the recorded run any more.
  void lose_way(std::string text);
  /// When to follow again: mini-batches are published without a word.
  std::optional<Instant> next_look() const;
  /// Whether it is this one's turn.
  bool is_next(const Decision& decision) const { return !replay_ || replay_->is_next(decision); }
  /// The worker's next seal will find what it found then. `window`: nullptr: it has none here.
  bool has_published(Rank rank, const memory::Window* window);

 private:
  Decision take();

  Core& core_;
  std::optional<RecordWriter> record_;
  std::optional<Replay> replay_;
  bool is_cut_ = false;
  bool following_ = false;
  bool lost_way_ = false;
  Instant looked_{};
};

}  // namespace paceline::scheduler
