#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/collective/averager.h"
#include "runtime/memory/control.h"
#include "runtime/memory/window.h"

namespace paceline::scheduler {

/// Of one node's workers in a job: their windows and control pages, which nobody else touches. All windows have the
/// same size. Owned by the agent's control loop.
class WorkerWindows {
 public:
  struct Member {
    memory::Window window;
    memory::ControlPage control;
    bool gone = false;  ///< Its process has ended: it takes no result any more.
  };

  /// To be called before a worker is added: it has the size of the others, or `invalid`; the first one's is all
  /// others'.
  Result<void> fits(Rank rank, const memory::Window& window);
  /// One that joins late finds on its page what the others were told.
  void add(Rank rank, Member member);
  /// The window of one that has gone, with which nothing is under way, is made ready for its next process, which has
  /// this page. It stays gone until let_in().
  void reopen(Rank rank, memory::ControlPage control);
  void let_in(Rank rank) { members_.at(rank).gone = false; }

  /// nullptr: it has not opened its share, or has gone.
  Member* living(Rank rank);
  /// nullptr: it has not opened its share.
  Member* find(Rank rank);
  Member& at(Rank rank) { return members_.at(rank); }
  std::map<Rank, Member>& all() { return members_; }

  std::uint64_t elements() const { return elements_; }
  memory::Dtype dtype() const { return dtype_; }
  std::size_t bytes() const { return elements_ * memory::size_of(dtype_); }
  /// Of all of a model, with neither inputs nor outputs yet.
  collective::Reduction reduction() const;
  /// A free buffer of its window, tagged as a result of iteration v; nullopt: there is none, which a window that nobody
  /// overwrote does not come to.
  static std::optional<memory::Buffer> begin_result(Member& member, Version v);

  void set_verdict(Rank rank, const memory::WorkerVerdict& verdict);
  /// The job ends at v.
  void set_last(Version v);
  /// The worker evaluates the model after v, when it comes to it.
  void evaluate(Rank rank, Version v);
  /// Nobody starts an iteration > v until release(v).
  void hold(Version v);
  void release(Version v);
  /// A worker's present update, if it is not later than v, is over.
  static void abandon(Member& member, Version v);
  void abandon(Version v);
  /// Averaging v is done: who had waited for it takes its result.
  void set_executed(Version v);
  /// Where the job ends for them they go on in this leg of it.
  void set_next_leg(std::int32_t leg);
  /// What is averaged has this size, also where nobody opens a share.
  void expect(std::uint64_t elements, memory::Dtype dtype) {
    elements_ = elements;
    dtype_ = dtype;
  }

 private:
  using Words = memory::ControlPage::Words;
  using Word = std::atomic<std::int64_t> Words::*;
  void tell_what_all_know(Member& member) const;
  static void tell(Member& member, Word word, std::int64_t value);
  void tell_all(Word word, std::int64_t value);

  std::map<Rank, Member> members_;
  Words told_;  ///< All members, as far as all are told the same.
  std::uint64_t elements_ = 0;
  memory::Dtype dtype_ = memory::Dtype::f32;
};

/// What a job fails with whose window has no buffer for a result: the roles word lies in memory that the worker can
/// write.
std::string damaged_window(Rank rank);

}  // namespace paceline::scheduler
