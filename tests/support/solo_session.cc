// A session of one worker without an agent: a test double of algorithms/session. The average of one worker is its own
// contribution, but buffers really flip: what was published is overwritten with NaN, so that whoever still looks there
// shows.
//
// The endpoint is JSON: {"payload": "models"|"gradients"|"both"|"warm_up" (two updates of gradients), "bodies": 1,
// "updates": 10, "first_update": 0, "seed": 1, "workers": 1, "evaluate_every": 0, "capture_at": [updates],
// "capture_body": 0, "restore_at": [updates], "drop_at": [updates], "reset_momentum": 0, "averages": true,
// "decay_from": 0 (first update at which the learning rate may decay), "lr_factor": 1, "members": [of each average]}.

#include "tests/support/solo_session.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <span>

#include "algorithms/session/session.h"
#include "runtime/base/json.h"

namespace paceline::test {

SoloLog& solo_log() {
  thread_local SoloLog log;
  return log;
}
void reset_solo_log() { solo_log() = SoloLog{}; }

}  // namespace paceline::test

struct paceline_session {
  paceline_session_info info{};
  std::int64_t evaluate_every = 0;
  std::int64_t decay_from = 0;
  bool averages = true;  // Models: else every step only goes to the next buffer.
  std::set<std::int64_t> capture_at, restore_at, drop_at;
  std::int32_t capture_body = 0;
  std::string payload;
  bool wide = false;  // Numbers are float64, else float32.
  std::uint64_t elements = 0;
  std::uint64_t averagings = 0;
  std::vector<std::int64_t> members;
  std::vector<std::vector<std::byte>> buffers;  // The sum of gradients, the result, and for models three in turn.
  std::size_t writing = 2;
  bool in_window = false;
  paceline_lease lease{};
  std::int64_t evaluated = -1;
  std::vector<std::byte> outer;
  bool over = false;
  paceline_span result{};

  /// Calls `use` with a number of the session's type and how to see a buffer as such numbers.
  template <class Use>
  void with_type(const Use& use) {
    const auto call = [&](auto number) {
      using T = decltype(number);
      use(number, [](std::vector<std::byte>& buffer) {
        return std::span(reinterpret_cast<T*>(buffer.data()), buffer.size() / sizeof(T));
      });
    };
    wide ? call(double{}) : call(float{});
  }
  void fill(std::vector<std::byte>& buffer, double value) {
    with_type([&](auto number, const auto& as) {
      for (auto& x : as(buffer)) x = static_cast<decltype(number)>(value);
    });
  }
  void flip() {
    auto& old = buffers[writing];
    writing = writing + 1 < buffers.size() ? writing + 1 : 2;
    buffers[writing] = old;
    fill(old, std::numeric_limits<double>::quiet_NaN());
  }
  void begin(std::int64_t update) {
    const bool models = payload == "models" || (payload == "warm_up" && update >= 2);
    lease = {update, 0,
             models              ? PACELINE_MODELS
             : payload == "both" ? PACELINE_BOTH
                                 : PACELINE_GRADIENTS,
             update >= decay_from};
  }
  void record(const paceline_stats& stats) {
    paceline::test::solo_log().steps.push_back(
        {lease.update, lease.body, stats.loss, stats.samples, stats.learning_rate});
  }
  std::set<std::int64_t> take(const nlohmann::json& json, const char* key) {
    return json.value(key, std::set<std::int64_t>{});
  }
};

using paceline::test::solo_log;

extern "C" {

paceline_session* paceline_session_open(const paceline_session_config* config, char* error, size_t size) {
  const auto json = paceline::parse_json(config->endpoint);
  if (!json.is_object()) {
    std::snprintf(error, size, "no agent at %s", config->endpoint);
    return nullptr;
  }
  auto* session = new paceline_session;
  session->payload = json.value("payload", "models");
  session->info.workers = json.value("workers", 1);
  session->info.bodies = json.value("bodies", 1);
  session->info.first_update = json.value("first_update", 0);
  session->info.updates = json.value("updates", 10);
  session->info.seed = json.value("seed", 1);
  session->info.reset_momentum = json.value("reset_momentum", 0);
  session->info.lr_factor = json.value("lr_factor", 1.0);
  session->members = json.value("members", std::vector<std::int64_t>{});
  session->evaluate_every = json.value("evaluate_every", 0);
  session->decay_from = json.value("decay_from", 0);
  session->averages = json.value("averages", true);
  solo_log().elements = config->elements;
  solo_log().outer_elements = config->outer_elements;
  solo_log().wide = session->wide = config->dtype == PACELINE_F64;
  session->elements = config->elements;
  session->capture_at = session->take(json, "capture_at");
  session->capture_body = json.value("capture_body", 0);
  session->restore_at = session->take(json, "restore_at");
  session->drop_at = session->take(json, "drop_at");
  const std::size_t width = session->wide ? sizeof(double) : sizeof(float);
  session->buffers.assign(5, std::vector<std::byte>(config->elements * width));
  for (auto& buffer : session->buffers) session->fill(buffer, std::numeric_limits<double>::quiet_NaN());
  session->begin(session->info.first_update);
  session->info.payload = session->lease.payload;
  session->in_window = session->lease.payload == PACELINE_MODELS;
  return session;
}

void paceline_session_close(paceline_session* session) { delete session; }
paceline_session_info paceline_session_get_info(const paceline_session* session) { return session->info; }

paceline_span paceline_session_outer(const paceline_session* session) {
  return {const_cast<std::byte*>(session->outer.data()), session->outer.size()};
}
int paceline_session_set_outer(paceline_session* session, const void* data, size_t size) {
  const auto* const bytes = static_cast<const std::byte*>(data);
  if (size != 2 * solo_log().outer_elements * (session->wide ? sizeof(double) : sizeof(float))) return 0;
  session->outer.assign(bytes, bytes + size);
  return 1;
}
void paceline_session_saved(paceline_session*) {}

paceline_next paceline_session_next(paceline_session* session, paceline_lease* lease) {
  if (session->lease.body == 0) {
    const std::int64_t done = session->lease.update;
    if (session->evaluate_every > 0 && done > 0 && done % session->evaluate_every == 0 && session->evaluated != done) {
      session->evaluated = done;
      return PACELINE_EVALUATE;
    }
    if (session->restore_at.erase(done)) return PACELINE_RESTORE;
  }
  if (session->lease.body == session->capture_body && session->capture_at.erase(session->lease.update))
    return *lease = session->lease, PACELINE_CAPTURE;
  if (session->over || session->lease.update >= session->info.updates) return PACELINE_END;
  *lease = session->lease;
  session->in_window = lease->payload == PACELINE_MODELS;
  return PACELINE_BODY;
}

paceline_span paceline_session_model(const paceline_session* session) {
  if (!session->in_window) return {};
  return {const_cast<paceline_session*>(session)->buffers[session->writing].data(), session->elements};
}
uint64_t paceline_session_averagings(const paceline_session* session) { return session->averagings; }
/// Of the average before the update that is begun now.
int64_t paceline_session_members(const paceline_session* session) {
  const auto done = static_cast<std::size_t>(session->lease.update);
  return done > 0 && done <= session->members.size() ? session->members[done - 1] : 0;
}
void paceline_session_placed(paceline_session* session) { session->flip(); }
paceline_span paceline_session_result(const paceline_session* session) { return session->result; }

paceline_outcome paceline_session_step_gradients(paceline_session* session, const paceline_span* pieces, size_t count,
                                                 const paceline_stats* stats) {
  session->record(*stats);
  auto& sum = session->buffers[0];
  if (session->lease.body == 0) session->fill(sum, 0);
  std::size_t at = 0;
  session->with_type([&](auto number, const auto& as) {
    const auto sums = as(sum);
    for (std::size_t i = 0; i < count; ++i) {
      const auto* data = static_cast<const decltype(number)*>(pieces[i].data);
      for (std::uint64_t k = 0; k < pieces[i].elements && at < sums.size(); ++k, ++at)
        if (data) sums[at] += data[k];
    }
  });
  if (at != session->elements) return PACELINE_OVER;
  if (session->drop_at.erase(session->lease.update)) {
    session->begin(session->lease.update + 1);
    return PACELINE_DROPPED;
  }
  if (++session->lease.body < session->info.bodies) return PACELINE_GO_ON;
  auto& mean = session->buffers[1];
  session->with_type([&](auto number, const auto& as) {
    const auto sums = as(sum), means = as(mean);
    for (std::size_t k = 0; k < sums.size(); ++k)
      means[k] = sums[k] / static_cast<decltype(number)>(session->info.bodies);
  });
  session->result = {mean.data(), session->elements};
  session->in_window = session->lease.payload == PACELINE_BOTH;
  if (session->in_window) return PACELINE_APPLY;
  session->begin(session->lease.update + 1);
  return PACELINE_APPLY;
}

paceline_outcome paceline_session_step_model(paceline_session* session, const paceline_stats* stats) {
  if (session->lease.payload != PACELINE_BOTH) session->record(*stats);
  session->flip();
  session->averagings += session->averages;
  session->begin(session->lease.update + 1);
  return session->averages ? PACELINE_MOVED : PACELINE_GO_ON;
}

void paceline_session_evaluated(paceline_session*, double value) { solo_log().evaluated.push_back(value); }
void paceline_session_capture(paceline_session* session, const paceline_span* pieces, size_t count) {
  auto& captured = solo_log().captures.emplace_back();
  for (const auto& piece : std::span(pieces, count))
    captured.append(static_cast<const char*>(piece.data), piece.elements);
  if (session->lease.payload == PACELINE_MODELS) session->flip();  // As a real one does when it publishes the start.
}
paceline_span paceline_session_replica(const paceline_session*) {
  return {solo_log().replica.data(), solo_log().replica.size()};
}
void paceline_session_restored(paceline_session*) {}
void paceline_session_plan(paceline_session* session, int64_t first_update, int64_t updates, int64_t evaluate_every) {
  solo_log().started_at = first_update;
  solo_log().planned_updates = updates;
  solo_log().planned_evaluate_every = evaluate_every;
  session->begin(first_update);
  session->in_window = session->lease.payload == PACELINE_MODELS;
}
void paceline_session_deals(paceline_session*, int64_t, int64_t, int64_t, int64_t, int64_t, const char*) {}
const char* paceline_session_place(const paceline_session*) { return ""; }
int paceline_session_reopen(paceline_session*, const paceline_session_config*, char*, size_t) { return 0; }
double paceline_session_sleep(paceline_session*, double seconds) {
  solo_log().slept_s += seconds;  // Time passes for nobody.
  return seconds;
}
void paceline_session_warn(paceline_session*, const char* text) { solo_log().warnings.push_back(text); }
void paceline_session_stop(paceline_session* session, const char* reason) {
  session->over = true;
  solo_log().stop_reason = reason;
  ++solo_log().stops;
}
void paceline_session_fail(paceline_session* session, const char* reason) {
  session->over = true;
  solo_log().fail_reason = reason;
}
void paceline_session_uses_file(paceline_session*, const char*) {}
void paceline_session_end_with(paceline_session*, const paceline_span*, size_t, size_t) {}
void paceline_session_log(paceline_session*, const char* name, double value) {
  solo_log().logged[name].push_back(value);
}

void* paceline_session_object(paceline_session*, const char* key, uint64_t size, int* fill, char*, size_t) {
  auto [it, is_new] = solo_log().objects.try_emplace(key);
  *fill = is_new;
  if (is_new) it->second.resize(size);
  solo_log().objects_filled += is_new;
  return it->second.data();
}
void paceline_session_seal(paceline_session*, const char*) {}

}  // extern "C"
