#include "algorithms/cluster/training/job_returns.h"

#include <utility>

#include "algorithms/cluster/training/worker_share.h"
#include "algorithms/session/job_terms_wire.h"
#include "algorithms/strategy.h"
#include "runtime/observe/format.h"

namespace paceline::cluster {

void JobReturns::begin(Rank rank, const std::string& text, Instant now) {
  const auto* const window = averagings_ ? averagings_->window(rank) : nullptr;
  const auto at = window ? window->progress().step.load(std::memory_order_relaxed) : around_.settings.first;
  begin(rank, {now, at});
  around_.news.left_for_a_while(rank, text);
}

void JobReturns::begin(Rank rank, const Returns::Gone& gone) {
  returns_.begin(rank, gone);
  around_.replicas.on_return(rank);
}

std::vector<std::pair<Rank, Returns::Share>> JobReturns::unanswered() const {
  auto shares = returns_.waiting();
  shares.insert(shares.end(), making_.begin(), making_.end());
  return shares;
}

void JobReturns::reopen_free_windows() {
  if (returns_.empty() || !averagings_) return;
  for (const auto& [rank, share] : returns_.waiting())
    if (averagings_->is_free(rank)) averagings_->window(rank) ? reopen_window(rank, share) : make_window(rank, share);
}

void JobReturns::make_window(Rank rank, const Returns::Share& share) {
  returns_.on_window(rank);
  if (const auto fits = check_model(around_.settings.strategy, share.model); !fits)
    return around_.outbox.refuse(share.worker, share.request, fits.error());
  const auto made = std::make_shared<WorkerShare>(share_of(around_.settings, rank, share.model));
  making_.insert_or_assign(rank, share);
  around_.beside([made] { return made->make(); },
                 [this, made, rank, share](const Result<void>& done) {
                   making_.erase(rank);
                   if (!done) return around_.outbox.refuse(share.worker, share.request, done.error());
                   on_window_made(rank, share, *made);
                 });
}

/// Its process may have ended meanwhile, and another one asks then.
void JobReturns::on_window_made(Rank rank, const Returns::Share& share, WorkerShare& made) {
  if (!averagings_ || !returns_.has(rank) || around_.outbox.process_id(share.worker) < 0) return;
  if (const auto fits = averagings_->take_place(rank, *std::move(made.window), *std::move(made.control)); !fits)
    return around_.outbox.refuse(share.worker, share.request, fits.error());
  give_window(rank, share, made, averagings_->window(rank)->fd());
}

/// And the replica that it asks for, once it is admitted.
void JobReturns::give_window(Rank rank, const Returns::Share& share, WorkerShare& made, process::BorrowedFd window) {
  made.terms.returns = true;
  wire::Message answer;
  session::write(made.terms, answer.root().initJobTerms());
  around_.outbox.answer(share.worker, share.request, answer, {window, made.read_only});
  around_.members.join(rank, share.worker);
  averagings_->on_return(rank, around_.settings.clock->now());
}

void JobReturns::reopen_window(Rank rank, const Returns::Share& share) {
  returns_.on_window(rank);
  WorkerShare made = share_of(around_.settings, rank, share.model);
  const auto* const window = averagings_->window(rank);
  const auto refuse = [&](const Error& error) { around_.outbox.refuse(share.worker, share.request, error); };
  if (window == nullptr || window->layout() != made.layout)
    return refuse({ErrorKind::invalid, "worker " + to_string(rank) + " shares another model than its process before"});
  if (const auto page = made.make_control(); !page) return refuse(page.error());
  give_window(rank, share, made, averagings_->reopen(rank, *std::move(made.control)).fd());
}

void JobReturns::on_admitted(const scheduler::AveragingService::Admitted& admitted, Instant now) {
  if (!returns_.has(admitted.rank)) return;
  around_.members.come_back(admitted.rank);
  around_.life.join(admitted.rank, now);
  around_.replicas.on_admitted(admitted, now);
}

void JobReturns::readmit(Rank rank) {
  if (averagings_ && returns_.has(rank)) averagings_->on_return(rank, around_.settings.clock->now());
}

void JobReturns::on_arrive(Rank rank, std::int64_t iteration, Instant now) {
  if (around_.members.has_left(rank)) return;
  // Where there are no rounds it is its start that arrives first.
  const bool shows_start = algorithms::has_own_pace(around_.settings.strategy, around_.settings.workers());
  on_back(rank, iteration + (shows_start ? 1 : 0), now);
}

void JobReturns::on_executed(Version v, Instant now) {
  if (around_.settings.strategy.tiers.front().late != scheduler::Lateness::abandons || !averagings_) return;
  for (const Rank rank : returns_.ranks()) {
    const auto* const window = averagings_->window(rank);
    if (!around_.members.has_left(rank) && window->progress().step.load(std::memory_order_relaxed) >= v.value)
      on_back(rank, v.value, now);
  }
}

void JobReturns::on_back(Rank rank, std::int64_t update, Instant now) {
  const auto gone = returns_.end(rank);
  if (!gone) return;
  const double after = seconds(now - gone->since);
  std::string text =
      observe::format(gone->at ? "worker %d is back, with update %lld, %.2f s after it ended"
                               : "worker %d joins, with update %lld, %.2f s after it asked for its share",
                      rank.value, static_cast<long long>(update) + 1, after);
  const auto given = around_.replicas.given(rank);
  const auto missed = gone->at && given ? averagings_->ledger().samples_of(given->update - *gone->at) : 0;
  if (given) text += observe::format("; it was given %.2f MB", static_cast<double>(given->bytes) / 1e6);
  if (missed > 0) text += observe::format(", and has missed %lld samples", static_cast<long long>(missed));
  around_.news.returned(rank, update, {after, given ? given->bytes : 0, missed}, text);
}

}  // namespace paceline::cluster
