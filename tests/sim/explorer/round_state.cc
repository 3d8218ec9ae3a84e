#include "tests/sim/explorer/round_state.h"

#include <algorithm>

#include "tests/sim/explorer/bytes.h"

namespace paceline::explorer {
namespace {

using explorer::put;

void put(std::string& out, const Key& key) {
  put(out, key.first.value);
  put(out, key.second);
}

void put(std::string& out, const Contents& contents) {
  for (const Content& c : contents) {
    put(out, c.tag);
    put(out, c.gradients);
  }
}

void put(std::string& out, const RoundEngine::Action& action) {
  put(out, static_cast<std::int64_t>(action.index()));
  if (const auto* s = std::get_if<RoundEngine::Seal>(&action)) put(out, Key{s->version, s->group});
  if (const auto* x = std::get_if<RoundEngine::Execute>(&action)) put(out, Key{x->version, x->group});
  if (const auto* m = std::get_if<RoundEngine::Merge>(&action)) put(out, Key{m->with, m->rank.value});
}

void put(std::string& out, const std::map<Key, Contents>& sums) {
  put(out, static_cast<std::int64_t>(sums.size()));
  for (const auto& [key, contents] : sums) {
    put(out, key);
    put(out, contents);
  }
}

void put(std::string& out, const Agent& agent) {
  put(out, agent.core->id);
  put(out, static_cast<std::int64_t>(agent.work.size()));
  for (const auto& action : agent.work) put(out, action);
  put(out, agent.pinned);
  put(out, static_cast<std::int64_t>(agent.partials.size()));
  for (const auto& [key, sums] : agent.partials) {
    put(out, key);
    put(out, static_cast<std::int64_t>(sums.size()));
    for (const auto& [from, sum] : sums) {
      put(out, from.value);
      put(out, sum);
    }
  }
  put(out, static_cast<std::int64_t>(agent.executed.size()));
  for (const auto& key : agent.executed) put(out, key);
  put(out, agent.abandoned.value);
  put(out, agent.result.value);
  if (!agent.view) return;
  out += agent.view->fingerprint;
  put(out, agent.of_lost);
}

void put(std::string& out, const Worker& w) {
  put(out, static_cast<int>(w.phase) + 4 * w.paused + 8 * w.dead + 16 * w.noticed + 32 * w.left);
  put(out, w.t.value);
  put(out, w.next_round.value);
  put(out, w.publication.tag);
  put(out, w.publication.gradients);
  put(out, static_cast<std::int64_t>(w.reports.size()));
  for (const Version v : w.reports) put(out, v.value);
  put(out, w.delivered.value);
  put(out, w.retained.value);
  put(out, w.merged.value);
  put(out, w.contributed);
  put(out, w.given_up);
  if (w.comes_back == Worker::Return::none && w.after < Version{0}) return;
  put(out, static_cast<int>(w.comes_back) + 4 * w.exact + 8 * w.may_skip);
  put(out, w.after.value);
}

}  // namespace

std::string bytes_of(const Message& m) {
  std::string out;
  put(out, static_cast<std::int64_t>(m.body.index()));
  put(out, m.from.value);
  put(out, m.to.value);
  if (const auto* a = std::get_if<RoundEngine::Activate>(&m.body)) {
    put(out, Key{a->version, a->root.value});
  } else if (const auto* c = std::get_if<RoundEngine::Count>(&m.body)) {
    put(out, c->version.value);
  } else if (const auto* g = std::get_if<RoundEngine::Gone>(&m.body)) {
    put(out, g->rank.value);
    put(out, g->back ? 1 : 0);
  } else if (const auto* f = std::get_if<Flushed>(&m.body)) {
    put(out, f->passed_on);
  } else {
    const auto& p = std::get<RoundEngine::SendPartial>(m.body);
    put(out, Key{p.version, p.group});
    put(out, m.sum);
  }
  return out;
}

std::string bytes_of(const State& s) {
  std::string out;
  out.reserve(512);
  for (const Agent& agent : s.agents) put(out, agent);
  for (const Worker& w : s.workers) put(out, w);
  std::vector<std::string> messages;
  messages.reserve(s.network.size());
  for (const Message& m : s.network) messages.push_back(bytes_of(m));
  std::sort(messages.begin(), messages.end());  // Any of them may be next.
  put(out, static_cast<std::int64_t>(messages.size()));
  for (const auto& m : messages) out += m;
  for (const auto& [key, contents] : s.truth) {
    put(out, key);
    put(out, contents);
  }
  put(out, s.pause_used + 2 * s.crash_used + 4 * s.spoilt + 8 * s.loss_used);
  for (const auto& [key, counted] : s.counted) {
    put(out, key);
    put(out, counted);
  }
  put(out, s.now.count());
  return out;
}

std::string print(const Move& move) {
  static constexpr const char* kNames[] = {"worker publishes",
                                           "worker publishes a part",
                                           "report arrives of worker",
                                           "worker takes up result",
                                           "worker stops",
                                           "worker wakes",
                                           "worker dies",
                                           "agent hears of the death of worker",
                                           "message arrives",
                                           "agent carries out its next work",
                                           "agent looks at its deadlines",
                                           "an agent is lost, number",
                                           "the loss is heard of by agent",
                                           "another process comes in the place of worker",
                                           "another's state is loaded by worker"};
  return std::string(kNames[static_cast<int>(move.kind)]) + " " + std::to_string(move.who);
}

}  // namespace paceline::explorer
