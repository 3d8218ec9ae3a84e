#include "scheduler/own_pace/own_pace.h"

#include <algorithm>
#include <utility>

namespace paceline::scheduler {
namespace {

constexpr Duration kPatienceMin = std::chrono::seconds(5);
constexpr int kPatienceSteps = 10;

}  // namespace

OwnPace::OwnPace(Workplace& work, Strategy& strategy, Options options)
    : means(work, *this),
      endings(work, *this),
      work_(work),
      strategy_(strategy),
      options_(options),
      last_(work.job.last),
      reported_{work.job.first.value - 1},
      started_(work.now()) {}

// Who is here, and until when it is waited for

std::vector<Rank> OwnPace::living_ranks() const {
  auto ranks = work_.view.ranks_on(work_.job.self);
  std::erase_if(ranks, [this](Rank rank) { return gone_.contains(rank); });
  return ranks;
}

Duration OwnPace::patience() const {
  const auto patience = std::max<Duration>(kPatienceMin, kPatienceSteps * steps_.get());
  return std::min(patience, work_.job.wait_limit.value_or(patience));
}

Instant OwnPace::silent_since(Rank rank, Instant word) const {
  const auto it = alive_.find(rank);
  return it == alive_.end() ? word : std::max(word, it->second);
}

Instant OwnPace::awaited_until(Rank rank, Instant word) const {
  const Instant until = silent_since(rank, word) + patience();
  return work_.job.wait_limit ? std::min(until, word + *work_.job.wait_limit) : until;
}

void OwnPace::leave_if_awaited_too_long(Rank rank, Version t, Instant word, Instant now) {
  if (now < awaited_until(rank, word)) return;
  work_.tell(Workplace::Left{rank, t, now - silent_since(rank, word), now - word});
  on_gone(rank, now);
}

void OwnPace::complain_of(Rank rank, Version v) {
  wire::Message message;
  auto body = message.root().initAwaited();
  body.setJob(work_.job.job.value);
  body.setRank(rank.value);
  body.setVersion(v.value);
  work_.send(work_.view.node_of(rank), message);
}

std::vector<Rank> OwnPace::joining() const {
  std::vector<Rank> ranks;
  for (const auto& [rank, t] : joining_) ranks.push_back(rank);
  return ranks;
}

std::vector<Rank> OwnPace::ranks_at(Version v) const {
  auto ranks = living_ranks();
  std::erase_if(ranks, [&](Rank rank) {
    const auto joined = joined_.find(rank);
    return joined != joined_.end() && v <= joined->second;
  });
  return ranks;
}

// How far it is

/// Where no worker is left, what they had done; the job goes on elsewhere.
Version OwnPace::done() const {
  const Version none{work_.job.first.value - 1};
  const auto ranks = living_ranks();
  Version done = last_;
  if (ranks.empty() && !means.has_end()) {
    done = none;
    for (const auto& [rank, finished] : finished_) done = std::max(done, finished);
  }
  for (const Rank rank : ranks) {
    const auto it = finished_.find(rank);
    const Version finished = it == finished_.end() ? none : it->second;
    if (finished < last_of(rank)) done = std::min(done, finished);
  }
  return done;
}

Version OwnPace::last_of(Rank rank) const {
  const auto it = ends_at_.find(rank);
  return it == ends_at_.end() ? last_ : std::min(last_, it->second);
}

/// Everybody does the first iteration.
Version OwnPace::begun_of(Rank rank) const {
  const auto it = begun_.find(rank);
  return it == begun_.end() ? work_.job.first : it->second;
}

Version OwnPace::furthest_begun() const {
  Version furthest = work_.job.first;
  for (const auto& [rank, v] : begun_) furthest = std::max(furthest, v);
  return furthest;
}

RoundSums OwnPace::latest_of(Rank rank) const {
  const auto it = latest_.find(rank);
  return it == latest_.end() ? RoundSums{} : it->second;
}

bool OwnPace::is_due(Version v) const {
  return work_.job.evaluates && work_.job.evaluate_every > 0 && (v.value + 1) % work_.job.evaluate_every == 0;
}

// An iteration

std::optional<memory::Buffer> OwnPace::on_published(Rank rank, Version t, Duration compute) {
  auto* const member = work_.windows.living(rank);
  if (!member) return {};
  work_.averagings.end_compute(rank);
  if (compute > Duration::zero()) steps_.add(compute);
  const auto buffer = member->window.seal();
  if (!buffer) return {};
  const auto tag = member->window.tag(*buffer);
  if (tag.iteration != t.value) {
    member->window.unseal(memory::Window::Unseal::keep);
    return {};
  }
  work_.ledger.on_done(rank, tag.since, tag.through);
  published_[rank] = t;
  latest_[rank] = {tag.loss_sum, tag.loss_count, tag.samples, tag.learning_rate, {}, 0};
  unreported_.samples += tag.samples;
  return buffer;
}

void OwnPace::finish(Rank rank, Version v, Instant now) {
  finished_[rank] = v;
  if (v != last_ && is_due(v) && parts_are_by_version()) means.give(rank, v, true);
  go_on(rank, v, now);
  means.look_at(v, now);
  report();
}

/// How far all here are, if that is further than before.
void OwnPace::report() {
  if (done() <= reported_) return;
  reported_ = done();
  RoundSums sums = std::exchange(unreported_, {});
  for (const auto& [of, latest] : latest_) {
    sums.loss_sum += latest.loss_sum;
    sums.loss_count += latest.loss_count;
  }
  work_.tell(Workplace::Executed{reported_, false, false, false, {}, sums});
}

/// Unless something is being agreed on that may come before its next iteration.
void OwnPace::go_on(Rank rank, Version own, Instant now) {
  if (own >= last_of(rank)) {
    strategy_.on_last(rank, now);
    if (!parts_are_by_version()) return;
    means.give(rank, last_, false);
    return means.look_at(last_, now);
  }
  if (const auto stop = held_at(rank); stop && next_word(own) > *stop) {
    waiting_[rank] = own;
    return;
  }
  if (!work_.windows.living(rank)) return;
  begun_[rank] = next_word(own);
  if (strategy_.lets_go(rank, own, now)) tell_to_go_on(rank, own);
}

/// Those that were held back.
void OwnPace::go_on_all(Instant now) {
  for (const auto& [rank, own] : std::exchange(waiting_, {})) go_on(rank, own, now);
  work_.averagings.start(now);
}

/// Where a worker is held while an end is agreed on; a replay's end is known from the start.
std::optional<Version> OwnPace::held_at(Rank rank) const {
  const auto& frozen = endings.frozen();
  if (!frozen) return work_.chronicle.replays() ? work_.chronicle.replay().ends(rank) : std::nullopt;
  return ends_apart() ? begun_of(rank) : *frozen;
}

/// The iteration after which a worker that has done `own` waits next.
Version OwnPace::next_word(Version own) const {
  Version next = strategy_.next_publication(own);
  const std::int64_t every = work_.job.evaluate_every;
  if (work_.job.evaluates && every > 0) next = std::min(next, Version{((own.value + 1) / every + 1) * every - 1});
  return std::min(next, last_);
}

void OwnPace::verdict(Rank rank, Version own, Verdict what) {
  if (!work_.windows.living(rank)) return;
  const Version word = next_word(own);
  const bool end = what != Verdict::go_on;
  work_.windows.set_verdict(rank, {.own = own.value,
                                   .next = own.next().value,
                                   .next_round = word.value,
                                   .fresh = what != Verdict::end_without_mean,
                                   .averaged = end || strategy_.averages(own),
                                   .end = end,
                                   .of_all = strategy_.is_shared(rank, own)});
  if (!end) work_.averagings.begin_compute(rank);
}

void OwnPace::on_end(const std::vector<Rank>& given) {
  over_ = true;
  for (const Rank rank : given) verdict(rank, last_, Verdict::end);
  for (const auto& [rank, late] : std::exchange(late_, {})) end_late(rank, late);
}

// A worker comes back

void OwnPace::on_return(Rank rank, Instant now) {
  work_.chronicle.hear({.kind = Decision::Kind::returned, .rank = rank, .at = now}, now);
}

/// None twice.
Version OwnPace::begins_with(Rank rank) const {
  const auto before = published_.find(rank);
  return before == published_.end() ? done().next() : std::max(done(), before->second).next();
}

bool OwnPace::comes_in(Rank rank, Version t, bool ends) {
  const auto& window = work_.windows.at(rank).window;
  const auto start = window.published();
  if (!start || window.tag(*start).iteration != t.value) return false;
  returning_.erase(rank);
  ends |= endings.is_decided() || begins_with(rank) > last_ || t >= last_;
  if (over_) {
    end_late(rank, {t, t >= last_});
  } else if (ends || (options_.returns == Return::at_once && endings.frozen())) {
    late_[rank] = {t, t >= last_};
  } else if (options_.returns == Return::with_a_graph) {
    joining_[rank] = t;
    endings.wish(Agreement::On::graph);
  } else {
    let_in(rank, t);
    return true;
  }
  return false;
}

void OwnPace::let_in(Rank rank, Version t) {
  gone_.erase(rank);
  free_.erase(rank);
  finished_[rank] = t;
  auto& published = published_.try_emplace(rank, t).first->second;  // Its start counts.
  published = std::max(published, t);
  work_.windows.let_in(rank);
}

/// What the others have it asks one of them for, unless it has it.
void OwnPace::end_late(Rank rank, Late late) {
  let_in(rank, late.t);
  ends_at_[rank] = late.t;
  verdict(rank, late.t, late.has_end ? Verdict::end : Verdict::end_without_mean);
}

// What is told

bool OwnPace::on_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte>& bulk,
                         Instant now) {
  if (message.isPartial()) {
    means.on_partial(from, message.getPartial(), std::move(bulk), now);
  } else if (message.isEnding()) {
    endings.on_message(from, message.getEnding());
  } else {
    return false;
  }
  return true;
}

void OwnPace::on_arrival(Rank rank, Version t, Duration compute, Instant now) {
  if (!work_.windows.living(rank) && !returns(rank) && !work_.chronicle.replays()) return;
  work_.chronicle.hear({.kind = Decision::Kind::arrived, .rank = rank, .version = t, .at = now, .took = compute}, now);
}

void OwnPace::on_gone(Rank rank, Instant now) {
  returning_.erase(rank);
  late_.erase(rank);
  joining_.erase(rank);
  if (work_.view.is_here(rank) && !gone_.contains(rank))
    work_.chronicle.hear({.kind = Decision::Kind::gone, .rank = rank, .at = now}, now);
}

void OwnPace::pass_on(NodeId lost, NodeId to) {
  means.pass_on(lost, to);
  endings.pass_on(lost, to);
}

void OwnPace::step(const Decision& d) {
  const Instant now = work_.now();
  switch (d.kind) {
    case Decision::Kind::gone: return go(d.rank, now);
    case Decision::Kind::returned:
      returning_.insert(d.rank);
      return work_.tell(Workplace::Admitted{d.rank, std::nullopt, true});
    case Decision::Kind::node_gone:
      strategy_.on_node_lost(d.node, now);
      endings.on_node_lost();
      means.look_at_all(now);
      return work_.averagings.start(now);
    case Decision::Kind::frozen: return endings.hold_back();
    case Decision::Kind::remade: return remake(d, now);
    case Decision::Kind::ends_apart:
      for (const auto& c : d.contributions) ends_at_[c.rank] = c.iteration.value_or(d.version);
      return end_at(d.version);
    case Decision::Kind::ends: return end_at(d.version);
    default: return;  // Of other cores.
  }
}

void OwnPace::remake(const Decision& d, Instant now) {
  std::vector<Rank> members, join;
  for (const auto& c : d.contributions) (c.iteration ? join : members).push_back(c.rank);
  endings.let_go();
  strategy_.on_remade(d.version, members, join, now);
  for (const Rank rank : join)
    if (work_.view.is_here(rank)) this->join(rank, d.version, now);
  go_on_all(now);
  if (!joining_.empty()) endings.wish(Agreement::On::graph);  // They came when this node had answered.
}

void OwnPace::join(Rank rank, Version last, Instant now) {
  const auto arrived = joining_.extract(rank);
  if (!arrived) return strategy_.on_not_joined(rank, last, now);
  if (last >= last_) return void(late_[rank] = {arrived.mapped()});
  let_in(rank, last);
  joined_[rank] = last;
  strategy_.on_joined(rank, last, now);
}

void OwnPace::end_at(Version last) {
  if (last < last_) means.forget_evaluation(last);
  last_ = std::min(last_, last);
  for (const auto& [rank, t] : std::exchange(joining_, {})) late_[rank] = {t};
  work_.windows.set_last(last_);
  endings.let_go();
  if (!ends_at_.empty()) strategy_.on_ends_apart();
  go_on_all(work_.now());
}

void OwnPace::go(Rank rank, Instant now) {
  if (!gone_.insert(rank).second) return;
  if (auto* const member = work_.windows.living(rank)) member->gone = true;
  work_.averagings.end_compute(rank);
  waiting_.erase(rank);
  begun_.erase(rank);
  latest_.erase(rank);
  means.on_gone(rank);
  const auto nothing = [this] { return work_.windows.reduction(); };
  work_.averagings.add({nothing, [this, rank](Instant) { free_.insert(rank); }}, {});
  strategy_.leave(rank, now);
  means.look_at_all(now);
  work_.averagings.start(now);
}

}  // namespace paceline::scheduler
