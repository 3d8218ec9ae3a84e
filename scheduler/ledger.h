#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/base/ids.h"
#include "scheduler/contents.h"

namespace paceline::scheduler {

/// What became of the samples that this node's workers were dealt: every mini-batch ("body") of every worker is in one
/// state at any time, so that what was used, and what was not and why, adds up. Sans I/O. Owned by the agent's control
/// loop.
///
///   undealt --on_done--> in hand --on_used--> committed
///      |                    +--on_replaced, on_done of a later update where late gradients do not count--> late,
///      |                    +--the worker is gone when it is settled--> lost                             abandoned
///      +--passed by: on_done of a later one--> skipped, abandoned (of an update that another ended), lost (the worker
///                                              has ended)
///
/// Bodies of a worker are numbered through the whole job: update * bodies + body. Of what a publication brings only
/// those count that are in hand, so that a model that is averaged again and again commits its bodies once.
///
/// What is committed can be lost with a worker that ends if nobody else's model had it: so it is followed what is in
/// whose model (contents.h), and of a worker that has ended what no other's has is lost, until one is heard of that has
/// it. So an epoch that is over may have to be told again.
class Ledger {
 public:
  struct Options {
    std::int32_t workers = 1;  ///< P: an epoch is dealt to so many.
    std::int32_t bodies = 1;   ///< Mini-batches an update.
    std::int64_t samples = 0;  ///< Of the data set; 0: there is none, and all is one epoch.
    std::int64_t batch = 1;    ///< Samples of a mini-batch.
    std::int64_t first = 0;    ///< Update that the job begins, or goes on, with.
    std::int64_t updates = 0;  ///< Where it ends.
    std::int64_t epoch = 0;    ///< Within which it begins; bodies before `epoch_end` are of that one.
    std::int64_t epoch_end = 0;
    std::int64_t left = 0;     ///< Samples of that epoch that are left when it begins.
    bool abandons = false;     ///< An update may end early: what was left of it is abandoned.
    bool forgets_late = true;  ///< A gradient that missed its update, or a batch that its agent went on without, is no
                               ///< more used.
  };
  enum class Fate : std::uint8_t { undealt, in_hand, committed, abandoned, skipped, late, lost };
  /// Samples of this node's workers in one epoch.
  struct Row {
    std::int64_t epoch = 0;
    std::int64_t committed = 0;  ///< In the job's model: an averaging has taken what contains them.
    std::int64_t abandoned = 0;  ///< Of updates that another worker ended.
    std::int64_t skipped = 0;    ///< Passed by: by a worker that was late, or in a place that nobody had.
    std::int64_t late = 0;       ///< Computed, and used no more when they came.
    std::int64_t lost = 0;       ///< With a worker that ended: what it had in hand, and what nobody did for it.
    std::int64_t twice = 0;      ///< Of the committed ones those that had been before.
    std::int64_t open = 0;       ///< In hand.
    // Of all workers, on all nodes:
    std::int64_t tail = 0;     ///< Dealt to nobody: it is no multiple of the workers, or a share none of the batch.
    std::int64_t samples = 0;  ///< That it had when the job came to it; 0: there is no data set.

    void add(const Row& other);
    bool operator==(const Row&) const = default;
  };

  explicit Ledger(const Options& options);

  /// A worker of this node, from the start. Vacant: nobody has its place yet.
  void add(Rank rank, bool vacant);

  /// The bodies [since, through) of a worker are computed, one after the other. May be told again. `in_model`: they are
  /// in its model, and are so also where an averaging goes by without.
  void on_done(Rank rank, std::int64_t since, std::int64_t through, bool in_model = false);
  /// An averaging has taken what contains all that the worker had in hand below `through`. `gradient`: what it was, in
  /// which each body can be only once.
  void on_used(Rank rank, std::int64_t through, bool gradient = false);
  /// The same, of a model after update v.
  void on_used(Rank rank, Version v) { on_used(rank, (v.value + 1) * options_.bodies); }
  /// What is in the worker's newest publication; `gradient`: it is none of a model.
  Contents contents(Rank rank, bool gradient = false) const;
  /// What is in the worker's model as it is now, with all of its own that has been used.
  Contents model(Rank rank) const;
  /// The same of its model after update v.
  Contents model(Rank rank, Version v) const;
  /// The worker's model has that now, too.
  void on_taken(Rank rank, const Contents& contents);
  /// A model has that which is not `holder`'s, or is another node's.
  void on_held(const Contents& contents, std::optional<Rank> holder = {});
  /// The job's model, that of all who take part, has that now: nothing else, or what it had, too.
  void on_job_has(const Contents& contents, bool nothing_else);
  /// It begins, or goes on, with a state of another's, with which nothing was in hand.
  void on_restored(Rank rank, const Contents& contents);
  /// The worker goes on with another's model, in which nothing is that it had in hand.
  void on_replaced(Rank rank);
  /// The worker has left; `lost`: it ended, and was not asked to. What an averaging has of it already can still be
  /// used.
  void on_left(Rank rank, bool lost);
  /// All updates before this one are over for all.
  void settle(std::int64_t update);
  /// The job is over: updates before this one were done by all that could, and what its model does not have is lost.
  void finish(std::int64_t update);

  /// It goes on in another leg, which does these updates, and all after them, again.
  void forget_from(std::int64_t update);

  /// That a worker has in so many updates; 0 without a data set.
  std::int64_t samples_of(std::int64_t updates) const {
    return options_.samples > 0 ? std::max(std::int64_t{0}, updates) * options_.bodies * options_.batch : 0;
  }
  /// Epochs that are over, and were not told of before, or otherwise.
  std::vector<Row> take_closed();
  /// Those that are not, in which something has happened.
  std::vector<Row> open() const;
  /// What became of each body of a worker in epochs that are not closed: beginnings of runs. For tests.
  const std::map<std::int64_t, Fate>& fates(Rank rank) const { return accounts_.at(rank).fates; }

 private:
  /// One process of a worker.
  struct Life {
    std::int64_t from = 0;   ///< Its first body.
    std::int64_t until = 0;  ///< Where it ended, once it has.
    std::int64_t held = 0;   ///< What it has committed before this is in another's model.
  };
  struct Account {
    std::map<std::int64_t, Fate> fates;  ///< From this body to the next entry's.
    std::int64_t position = 0;           ///< First that its present process has not come to.
    std::int64_t hand = 0;               ///< All that is in hand lies in [hand, position).
    bool gone = false;
    bool restored = false;        ///< Its next process has a state, and has done nothing yet.
    Fate missed = Fate::skipped;  ///< What nobody does becomes that.
    bool in_model = false;        ///< What is in hand.
    std::vector<Life> lives;      ///< The last is the present one, unless it is gone.
    Contents contained;           ///< Of its model, but for its own.
    Contents published;
    std::map<std::int64_t, std::int64_t> twice;  ///< Epoch -> bodies.
  };

  Account* find(Rank rank);
  const Account* find(Rank rank) const;
  void come_to(Account& account, std::int64_t body);
  static void put_down(Account& account, std::int64_t to, Fate fate);
  void note_twice(Account& account, std::int64_t from, std::int64_t to);
  void note_changed(std::int64_t from, std::int64_t to);
  void hold_what_the_job_has(Rank rank, Account& account);
  bool is_over(std::int64_t epoch) const;
  bool is_settled(std::int64_t epoch) const;
  void forget(std::int64_t epoch);
  std::int64_t epoch_of(std::int64_t body) const;
  std::int64_t begin_of(std::int64_t epoch) const;
  Row row(std::int64_t epoch) const;

  const Options options_;
  std::int64_t bodies_per_epoch_;  ///< Of a worker; without a data set, of what is put together.
  std::map<Rank, Account> accounts_;
  std::int64_t kept_;        ///< First epoch that may change.
  std::int64_t next_epoch_;  ///< First that is not over.
  std::map<std::int64_t, Row> told_;
  std::set<std::int64_t> changed_;  ///< Epochs that are over, since they were told of.
  Row folded_;                      ///< Without a data set: all before `kept_`.
  Contents job_has_;
  bool finished_ = false;
};

}  // namespace paceline::scheduler
