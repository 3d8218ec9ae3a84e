#include "scheduler/asynchronous/pair_engine.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "runtime/base/check.h"

namespace paceline::scheduler {

PairEngine::PairEngine(Options options) : options_(std::move(options)) {
  for (std::size_t i = 0; i < options_.node_of.size(); ++i)
    if (const Rank rank{static_cast<std::int32_t>(i)}; is_local(rank)) models_[rank];
}

// Events

PairEngine::Actions PairEngine::on_begun(Rank rank) {
  Model& model = models_.at(rank);
  model.begun = true;
  model.gone = false;
  grant(rank);
  return flush();
}

PairEngine::Actions PairEngine::on_arrival(Rank initiator, std::optional<Rank> partner) {
  PACELINE_CHECK(is_local(initiator) && partner != initiator, "a local worker meets somebody else");
  if (partner && is_lost(*partner)) partner.reset();
  begin({initiator, partner});
  return flush();
}

PairEngine::Actions PairEngine::on_message(Phase phase, const Meeting& meeting) {
  if (!is_known(meeting)) return {};
  const bool initiated_here = is_local(meeting.initiator);
  const auto awaited = awaits_.find(meeting.initiator);
  if (initiated_here && (awaited == awaits_.end() || awaited->second != meeting)) return {};
  switch (phase) {
    case Phase::ask:
      if (is_local(meeting.low()) && !initiated_here) take(meeting.low(), meeting);
      break;
    case Phase::offer:
      if (is_local(meeting.high())) take(meeting.high(), meeting);
      break;
    case Phase::mean:
      if (!is_local(meeting.low()) || models_.at(meeting.low()).holder != meeting) break;
      if (initiated_here) {
        awaits_.erase(awaited);
        out_.push_back(Step{meeting.initiator});
      } else {
        release(meeting.low(), meeting);
      }
      break;
    case Phase::decline:
      if (!initiated_here) break;
      awaits_.erase(awaited);
      // The lower one holds its lock already.
      if (models_.at(meeting.initiator).holder == meeting) {
        out_.push_back(Step{meeting.initiator});
      } else {
        take(meeting.initiator, {meeting.initiator, {}});
      }
      break;
  }
  return flush();
}

PairEngine::Actions PairEngine::on_averaged(const Meeting& meeting) {
  const bool both = is_local(meeting.low());
  if (!both && !is_lost(meeting.low())) send(node(meeting.low()), Phase::mean, meeting);
  if (!is_local(meeting.initiator)) {
    release(meeting.high(), meeting);
    return flush();
  }
  awaits_.erase(meeting.initiator);
  if (both) release(*meeting.partner, meeting);
  out_.push_back(Step{meeting.initiator});
  return flush();
}

PairEngine::Actions PairEngine::on_stepped(Rank initiator) {
  if (const auto holder = models_.at(initiator).holder) release(initiator, *holder);
  return flush();
}

PairEngine::Actions PairEngine::on_gone(Rank rank) {
  Model& model = models_.at(rank);
  model.gone = true;
  if (model.holder) return {};  // Who waits is answered when the lock is free.
  grant(rank);
  return flush();
}

PairEngine::Actions PairEngine::on_node_gone(NodeId lost) {
  lost_.insert(lost);
  const auto averages = [this](const Meeting& meeting) {  // It has its model, and needs nothing more of it.
    return is_local(meeting.high()) && models_.at(meeting.high()).holder == meeting;
  };
  std::vector<Meeting> alone;  // Begun here, and not come to an average.
  for (auto& [rank, model] : models_) {
    for (const Meeting& meeting : model.queue)
      if (is_with_lost(meeting) && meeting.initiator == rank && !awaits_.contains(rank)) alone.push_back(meeting);
    std::erase_if(model.queue, [this](const Meeting& meeting) { return is_with_lost(meeting); });
  }
  for (const auto& [rank, meeting] : awaits_)
    if (is_with_lost(meeting) && !averages(meeting)) alone.push_back(meeting);
  for (auto& [rank, model] : models_) {  // Lent.
    const auto holder = model.holder;
    if (holder && is_with_lost(*holder) && rank == holder->low() && holder->initiator != rank) release(rank, *holder);
  }
  for (const Meeting& meeting : alone) {
    awaits_.erase(meeting.initiator);
    without_partner(meeting);
  }
  return flush();
}

bool PairEngine::is_free(Rank rank) const {
  const Model& own = models_.at(rank);
  return !awaits_.contains(rank) && !own.holder && own.queue.empty() &&
         std::none_of(models_.begin(), models_.end(), [rank](const auto& of) {
           const auto is_its_own = [rank](const Meeting& meeting) { return meeting.initiator == rank; };
           const Model& model = of.second;
           return (model.holder && is_its_own(*model.holder)) ||
                  std::any_of(model.queue.begin(), model.queue.end(), is_its_own);
         });
}

bool PairEngine::idle() const {
  return awaits_.empty() && std::all_of(models_.begin(), models_.end(),
                                        [](const auto& of) { return !of.second.holder && of.second.queue.empty(); });
}

std::vector<Rank> PairEngine::awaited() const {
  std::vector<Rank> ranks;
  for (const auto& [rank, model] : models_)
    if (!model.begun && !model.gone && !model.queue.empty()) ranks.push_back(rank);
  return ranks;
}

std::string PairEngine::fingerprint() const {
  std::ostringstream s;
  const auto add = [&s](char what, const Meeting& meeting) {
    s << what << meeting.initiator.value << '-' << meeting.partner.value_or(Rank{-1}).value;
  };
  for (const auto& [rank, model] : models_) {
    s << 'm' << rank.value << ':' << model.begun << model.gone;
    if (model.holder) add('h', *model.holder);
    for (const Meeting& meeting : model.queue) add('q', meeting);
  }
  for (const NodeId node : lost_) s << 'l' << node.value;
  for (const auto& [rank, meeting] : awaits_) add('a', meeting);
  return s.str();
}

// Locks

bool PairEngine::is_known(const Meeting& meeting) const {
  const auto size = static_cast<std::int32_t>(options_.node_of.size());
  const auto in_range = [&](Rank rank) { return rank.value >= 0 && rank.value < size; };
  return in_range(meeting.initiator) && meeting.partner && in_range(*meeting.partner) &&
         meeting.initiator != *meeting.partner && is_local(meeting.initiator) != is_local(*meeting.partner);
}

void PairEngine::begin(const Meeting& meeting) {
  if (is_local(meeting.low())) return take(meeting.low(), meeting);
  awaits_.emplace(meeting.initiator, meeting);
  send(node(meeting.low()), Phase::ask, meeting);
}

void PairEngine::take(Rank rank, const Meeting& meeting) {
  models_.at(rank).queue.push_back(meeting);
  grant(rank);
}

/// The order in which models meet is decided here and nowhere else.
void PairEngine::grant(Rank rank) {
  Model& model = models_.at(rank);
  while (!model.holder && !model.queue.empty() && (model.begun || model.gone)) {
    const Meeting next = model.queue.front();
    model.queue.pop_front();
    if (model.gone && next.partner == rank) {
      without_partner(next);
      continue;
    }
    model.holder = next;
    granted(rank, next);
  }
}

void PairEngine::granted(Rank rank, const Meeting& meeting) {
  if (!meeting.partner) {
    out_.push_back(Step{rank});
  } else if (rank == meeting.high()) {
    out_.push_back(Average{meeting});
  } else if (is_local(meeting.high())) {
    take(meeting.high(), meeting);
  } else {
    if (rank == meeting.initiator) awaits_.emplace(rank, meeting);
    send(node(meeting.high()), Phase::offer, meeting);
  }
}

void PairEngine::without_partner(const Meeting& meeting) {
  if (!is_local(meeting.initiator)) return send(node(meeting.initiator), Phase::decline, meeting);
  if (models_.at(meeting.initiator).holder == meeting) {
    out_.push_back(Step{meeting.initiator});
  } else {
    take(meeting.initiator, {meeting.initiator, {}});
  }
}

void PairEngine::release(Rank rank, const Meeting& meeting) {
  Model& model = models_.at(rank);
  if (model.holder != meeting) return;
  model.holder.reset();
  grant(rank);
}

}  // namespace paceline::scheduler
