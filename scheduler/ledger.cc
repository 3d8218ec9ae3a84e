#include "scheduler/ledger.h"

#include <algorithm>
#include <utility>

namespace paceline::scheduler {
namespace {

using Fate = Ledger::Fate;
using Fates = std::map<std::int64_t, Fate>;

constexpr std::int64_t kTogether = 4096;    // Bodies without a data set that are looked at at once.
constexpr std::int64_t kKept = 4;           // Epochs that are over: who had what those that ended had may end, too.
constexpr std::int64_t kKeptMost = 64;      // Those that may still change for another reason.
constexpr std::int64_t kUpdatesBehind = 2;  // What an averaging has of a worker that left is used by then.

/// [from, to) begins and ends runs of its own.
std::pair<Fates::iterator, Fates::iterator> cut(Fates& fates, std::int64_t from, std::int64_t to) {
  const auto at = [&fates](std::int64_t body) {
    const auto next = fates.upper_bound(body);
    const Fate fate = std::prev(next)->second;
    return fates.try_emplace(next, body, fate);
  };
  const auto begin = at(from);
  return {begin, at(to)};
}

/// Calls `change` with each run in [from, to), which gives its new fate.
template <class Change>
void change(Fates& fates, std::int64_t from, std::int64_t to, const Change& change) {
  from = std::max(from, fates.begin()->first);
  if (from >= to) return;
  auto [run, end] = cut(fates, from, to);
  while (run != end) {
    const auto next = std::next(run);
    run->second = change(run->first, next == fates.end() ? to : next->first, run->second);
    const bool joins = run != fates.begin() && std::prev(run)->second == run->second;
    if (joins) fates.erase(run);
    run = next;
  }
  if (end != fates.end() && std::prev(end)->second == end->second) fates.erase(end);
}

void turn(Fates& fates, std::int64_t from, std::int64_t to, Fate what, Fate into) {
  change(fates, from, to, [&](std::int64_t, std::int64_t, Fate fate) { return fate == what ? into : fate; });
}

}  // namespace

void Ledger::Row::add(const Row& other) {
  committed += other.committed;
  abandoned += other.abandoned;
  skipped += other.skipped;
  late += other.late;
  lost += other.lost;
  twice += other.twice;
  open += other.open;
  tail += other.tail;
}

Ledger::Ledger(const Options& options)
    : options_(options),
      bodies_per_epoch_(options.samples > 0
                            ? std::max<std::int64_t>(1, options.samples / options.workers / options.batch)
                            : kTogether),
      kept_(options.samples > 0 ? epoch_of(options.first * options.bodies)
                                : options.first * options.bodies / kTogether),
      next_epoch_(kept_) {}

std::int64_t Ledger::epoch_of(std::int64_t body) const {
  if (options_.samples == 0) return body / bodies_per_epoch_;
  const std::int64_t after = body - options_.epoch_end;
  return after < 0 ? options_.epoch : options_.epoch + 1 + after / bodies_per_epoch_;
}

/// Of the one within which the job begins nothing before that is of it.
std::int64_t Ledger::begin_of(std::int64_t epoch) const {
  if (options_.samples == 0) return epoch * bodies_per_epoch_;
  if (epoch <= options_.epoch) return std::min(options_.first * options_.bodies, options_.epoch_end);
  return options_.epoch_end + (epoch - options_.epoch - 1) * bodies_per_epoch_;
}

void Ledger::add(Rank rank, bool vacant) {
  Account account;
  account.position = account.hand = options_.first * options_.bodies;
  account.fates.emplace(account.position, Fate::undealt);
  account.gone = vacant;
  if (!vacant) account.lives.push_back({account.position, 0, account.position});
  accounts_.insert_or_assign(rank, std::move(account));
}

const Ledger::Account* Ledger::find(Rank rank) const {
  const auto it = accounts_.find(rank);
  return it == accounts_.end() ? nullptr : &it->second;
}

Ledger::Account* Ledger::find(Rank rank) {
  return finished_ ? nullptr : const_cast<Account*>(std::as_const(*this).find(rank));
}

/// What lies before it and nobody did was passed by.
void Ledger::come_to(Account& account, std::int64_t body) {
  if (body <= account.position) return;
  const std::int64_t update_end = (account.position / options_.bodies + 1) * options_.bodies;
  const auto pass = [&account](std::int64_t from, std::int64_t to, Fate into) {
    turn(account.fates, from, to, Fate::undealt, into);
  };
  if (options_.abandons && !account.gone) pass(account.position, std::min(body, update_end), Fate::abandoned);
  pass(account.position, body, account.gone ? account.missed : Fate::skipped);
  if (account.hand == account.position) account.hand = body;
  account.position = body;
}

/// What is in hand before `to` becomes that.
void Ledger::put_down(Account& account, std::int64_t to, Fate fate) {
  turn(account.fates, account.hand, to, Fate::in_hand, fate);
  account.hand = std::max(account.hand, to);
}

void Ledger::on_done(Rank rank, std::int64_t since, std::int64_t through, bool in_model) {
  Account* const account = find(rank);
  through = std::min(through, options_.updates * options_.bodies);
  if (!account || since < 0 || through <= since) return;
  if (account->gone) {  // The first of another process.
    put_down(*account, account->position, Fate::lost);
    come_to(*account, since);
    account->position = account->hand = since;
    account->gone = account->restored = false;
    for (Life& life : account->lives) life.until = std::min(life.until, since);  // It does again what was lost.
    account->lives.push_back({since, 0, since});
  }
  if (through <= account->position) return;
  if (options_.forgets_late && !account->in_model)
    put_down(*account, std::min(since, account->position), options_.abandons ? Fate::abandoned : Fate::late);
  come_to(*account, since);
  change(account->fates, account->position, through, [&](std::int64_t from, std::int64_t to, Fate fate) {
    if (fate == Fate::committed) note_twice(*account, from, to);
    return Fate::in_hand;
  });
  account->position = through;
  account->in_model = in_model;
  account->published = account->contained;
  scheduler::add(account->published, {{rank, account->lives.back().from, through}});
}

Contents Ledger::contents(Rank rank, bool gradient) const {
  const Account* const account = find(rank);
  if (!account || account->lives.empty()) return {};
  if (gradient && account->gone) return {};
  if (gradient) return {{rank, account->lives.back().from, account->position}};
  return account->published;
}

Contents Ledger::model(Rank rank) const {
  const Account* const account = find(rank);
  if (!account || account->lives.empty()) return {};
  Contents all = account->contained;
  if (account->restored) return all;
  scheduler::add(all, {{rank, account->lives.back().from, account->hand}});
  return all;
}

Contents Ledger::model(Rank rank, Version v) const {
  const Account* const account = find(rank);
  if (!account || account->lives.empty() || account->gone) return {};
  Contents all = account->contained;
  scheduler::add(all,
                 {{rank, account->lives.back().from, std::min(account->position, (v.value + 1) * options_.bodies)}});
  return all;
}

void Ledger::on_restored(Rank rank, const Contents& contents) {
  Account* const account = find(rank);
  if (!account) return;
  if (account->gone) account->contained.clear();
  account->restored = account->gone;
  scheduler::add(account->contained, contents);
  account->published = account->contained;
  on_held(contents, rank);
}

void Ledger::on_job_has(const Contents& contents, bool nothing_else) {
  if (nothing_else) job_has_.clear();
  scheduler::add(job_has_, contents);
}

void Ledger::on_taken(Rank rank, const Contents& contents) {
  Account* const account = find(rank);
  if (!account) return;
  scheduler::add(account->contained, contents);
  if (!account->gone || account->restored) on_held(contents, rank);
}

void Ledger::on_held(const Contents& contents, std::optional<Rank> holder) {
  for (const Content& content : contents) {
    Account* const account = content.rank == holder ? nullptr : find(content.rank);
    if (!account) continue;
    const auto life = std::find_if(account->lives.begin(), account->lives.end(),
                                   [&](const Life& each) { return each.from == content.from; });
    if (life == account->lives.end() || life->held >= content.through) continue;
    if (life->until > 0) note_changed(life->held, content.through);
    life->held = content.through;
  }
}

/// Epochs of these bodies.
void Ledger::note_changed(std::int64_t from, std::int64_t to) {
  for (std::int64_t epoch = std::max(kept_, epoch_of(from)); epoch < next_epoch_ && begin_of(epoch) < to; ++epoch)
    changed_.insert(epoch);
}

void Ledger::on_used(Rank rank, std::int64_t through, bool gradient) {
  Account* const account = find(rank);
  if (!account) return;
  through = std::min(through, account->position);
  bool brings = false;
  change(account->fates, account->hand, through, [&](std::int64_t, std::int64_t, Fate fate) {
    brings = brings || fate == Fate::in_hand;
    return fate == Fate::in_hand ? Fate::committed : fate;
  });
  account->hand = std::max(account->hand, through);
  if (gradient && !brings) note_twice(*account, through - 1, through);
}

void Ledger::note_twice(Account& account, std::int64_t from, std::int64_t to) {
  for (std::int64_t body = from; body < to; ++body) ++account.twice[epoch_of(body)];
}

void Ledger::on_replaced(Rank rank) {
  if (Account* const account = find(rank)) put_down(*account, account->position, Fate::late);
}

void Ledger::on_left(Rank rank, bool lost) {
  Account* const account = find(rank);
  if (!account || account->gone) return;
  account->gone = true;
  account->missed = lost ? Fate::lost : Fate::skipped;
  Life& life = account->lives.back();
  life.until = std::max(account->position, life.from + 1);
  note_changed(life.held, life.until);
}

void Ledger::settle(std::int64_t update) {
  const std::int64_t body = std::min(update - kUpdatesBehind, options_.updates) * options_.bodies;
  for (auto& [rank, account] : accounts_) {
    if (!account.gone || finished_) continue;
    put_down(account, std::min(body, account.position), Fate::lost);
    come_to(account, body);
  }
}

void Ledger::finish(std::int64_t update) {
  const std::int64_t body = std::min(update, options_.updates) * options_.bodies;
  for (auto& [rank, account] : accounts_) {
    if (finished_) return;
    put_down(account, account.position, account.gone ? Fate::lost : Fate::late);
    if (!account.gone) turn(account.fates, account.position, body, Fate::undealt, Fate::late);
    come_to(account, body);
    if (!job_has_.empty()) hold_what_the_job_has(rank, account);
  }
  finished_ = true;
}

void Ledger::forget_from(std::int64_t update) {
  const std::int64_t body = update * options_.bodies;
  for (auto& [rank, account] : accounts_) {
    if (account.position <= body) continue;
    account.fates.erase(account.fates.lower_bound(body), account.fates.end());
    account.fates.emplace(body, Fate::undealt);
    account.position = body;
    account.hand = std::min(account.hand, body);
  }
}

/// Who had had more of it may have ended since.
void Ledger::hold_what_the_job_has(Rank rank, Account& account) {
  for (Life& life : account.lives) {
    if (life.until == 0) life.until = std::max(account.position, life.from + 1);
    const auto has = std::find_if(job_has_.begin(), job_has_.end(), [&](const Content& content) {
      return content.rank == rank && content.from == life.from;
    });
    const std::int64_t held = has == job_has_.end() ? life.from : has->through;
    note_changed(std::min(held, life.held), life.until);
    life.held = held;
  }
}

Ledger::Row Ledger::row(std::int64_t epoch) const {
  std::array<std::int64_t, 7> bodies{};
  Row row;
  row.epoch = epoch;
  const std::int64_t begin = begin_of(epoch), end = begin_of(epoch + 1);
  if (options_.samples > 0) {
    row.samples = epoch > options_.epoch ? options_.samples : options_.left;
    row.tail = row.samples - (end - begin) * options_.batch * options_.workers;
  }
  for (const auto& each : accounts_) {
    const Account& account = each.second;
    const auto count = [&](std::int64_t from, std::int64_t to, const auto& what) {
      from = std::max(from, begin);
      to = std::min(to, end);
      auto run = account.fates.upper_bound(from);
      if (run != account.fates.begin()) --run;
      for (; run != account.fates.end() && run->first < to; ++run) {
        const auto next = std::next(run);
        const std::int64_t until = next == account.fates.end() ? to : std::min(to, next->first);
        if (until > std::max(from, run->first)) what(run->second, until - std::max(from, run->first));
      }
    };
    count(begin, end, [&](Fate fate, std::int64_t number) { bodies.at(static_cast<std::size_t>(fate)) += number; });
    for (const Life& life : account.lives) {
      if (life.until == 0) continue;
      count(life.held, life.until, [&](Fate fate, std::int64_t number) {
        if (fate != Fate::committed) return;
        bodies.at(static_cast<std::size_t>(Fate::committed)) -= number;
        bodies.at(static_cast<std::size_t>(Fate::lost)) += number;
      });
      // Who began with its state has what it had in hand.
      count(life.from, std::min(life.held, life.until), [&](Fate fate, std::int64_t number) {
        if (fate != Fate::lost) return;
        bodies.at(static_cast<std::size_t>(Fate::lost)) -= number;
        bodies.at(static_cast<std::size_t>(Fate::committed)) += number;
      });
    }
    if (const auto twice = account.twice.find(epoch); twice != account.twice.end())
      row.twice += twice->second * options_.batch;
  }
  const auto samples = [&](Fate fate) { return bodies.at(static_cast<std::size_t>(fate)) * options_.batch; };
  row.open = samples(Fate::in_hand);
  row.committed = samples(Fate::committed);
  row.abandoned = samples(Fate::abandoned);
  row.skipped = samples(Fate::skipped);
  row.late = samples(Fate::late);
  row.lost = samples(Fate::lost);
  return row;
}

/// All of it has been done, or never will be.
bool Ledger::is_over(std::int64_t epoch) const {
  const std::int64_t end = begin_of(epoch + 1);
  return !accounts_.empty() && std::all_of(accounts_.begin(), accounts_.end(), [end](const auto& each) {
    const Account& account = each.second;
    return account.position >= end && account.hand >= end;
  });
}

/// Whoever ends now takes nothing of it along.
bool Ledger::is_settled(std::int64_t epoch) const {
  const std::int64_t end = begin_of(epoch + 1);
  return options_.workers == 1 || std::all_of(accounts_.begin(), accounts_.end(), [end](const auto& each) {
           const auto& lives = each.second.lives;
           return std::all_of(lives.begin(), lives.end(), [end](const Life& life) {
             return life.held >= (life.until > 0 ? std::min(end, life.until) : end);
           });
         });
}

void Ledger::forget(std::int64_t epoch) {
  const std::int64_t end = begin_of(epoch + 1);
  for (auto& [rank, account] : accounts_) {
    const auto next = account.fates.upper_bound(end);
    const Fate fate = std::prev(next)->second;
    account.fates.erase(account.fates.begin(), next);
    account.fates.emplace(end, fate);
    account.twice.erase(epoch);
    std::erase_if(account.lives, [end](const Life& life) { return life.until > 0 && life.until <= end; });
  }
  told_.erase(epoch);
}

std::vector<Ledger::Row> Ledger::take_closed() {
  for (; is_over(next_epoch_); ++next_epoch_) changed_.insert(next_epoch_);
  std::vector<Row> rows;
  for (const std::int64_t epoch : std::exchange(changed_, {})) {
    Row row = this->row(epoch);
    const auto told = told_.find(epoch);
    if (told != told_.end() && told->second == row) continue;
    told_.insert_or_assign(epoch, row);
    if (options_.samples > 0) rows.push_back(row);
  }
  for (; next_epoch_ - kept_ > (is_settled(kept_) ? kKept : kKeptMost); ++kept_) {
    if (options_.samples == 0) folded_.add(told_.at(kept_));
    forget(kept_);
  }
  return rows;
}

std::vector<Ledger::Row> Ledger::open() const {
  std::int64_t furthest = next_epoch_ - 1;
  for (const auto& [rank, account] : accounts_)
    if (account.position > begin_of(next_epoch_)) furthest = std::max(furthest, epoch_of(account.position - 1));
  std::vector<Row> rows;
  for (std::int64_t epoch = options_.samples > 0 ? next_epoch_ : kept_; epoch <= furthest; ++epoch)
    rows.push_back(row(epoch));
  if (options_.samples > 0) return rows;
  Row all = folded_;
  for (const Row& row : rows) all.add(row);
  return {all};
}

}  // namespace paceline::scheduler
