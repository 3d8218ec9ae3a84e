#include "algorithms/session/session.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "algorithms/session/blocking_session.h"
#include "runtime/base/content_hash.h"

// The C ABI: nothing but translation. No exception leaves it.

struct paceline_session {
  std::unique_ptr<paceline::session::BlockingSession> impl;
};

namespace {

void explain(const paceline::Error& error, char* text, std::size_t size) {
  if (text && size > 0) std::snprintf(text, size, "%s", error.text.c_str());
}

}  // namespace

extern "C" {

paceline_session* paceline_session_open(const paceline_session_config* config, char* error, size_t size) {
  auto session = paceline::session::BlockingSession::open(*config);
  if (!session) {
    explain(session.error(), error, size);
    return nullptr;
  }
  return new paceline_session{std::move(*session)};
}

void paceline_session_close(paceline_session* session) { delete session; }

int paceline_session_reopen(paceline_session* session, const paceline_session_config* config, char* error,
                            size_t size) {
  const auto opened = session->impl->reopen(*config);
  if (!opened) explain(opened.error(), error, size);
  return opened ? 1 : 0;
}

paceline_session_info paceline_session_get_info(const paceline_session* session) {
  return session->impl->core().info();
}

void paceline_session_plan(paceline_session* session, int64_t first_update, int64_t updates, int64_t evaluate_every) {
  session->impl->core().plan(first_update, updates, evaluate_every);
}

void paceline_session_deals(paceline_session* session, int64_t samples, int64_t batch, int64_t epoch, int64_t end,
                            int64_t left, const char* place) {
  session->impl->core().deals({samples, batch, epoch, end, left, place});
}

const char* paceline_session_place(const paceline_session* session) { return session->impl->core().place().c_str(); }

paceline_next paceline_session_next(paceline_session* session, paceline_lease* lease) {
  auto& core = session->impl->core();
  return *session->impl->until_done([&] { return core.next(*lease); });
}

paceline_span paceline_session_model(const paceline_session* session) { return session->impl->core().model(); }
int64_t paceline_session_members(const paceline_session* session) { return session->impl->core().members(); }
uint64_t paceline_session_averagings(const paceline_session* session) { return session->impl->core().averagings(); }
void paceline_session_placed(paceline_session* session) {
  auto& core = session->impl->core();
  session->impl->until_done([&] { return core.placed(); });
}
paceline_span paceline_session_result(const paceline_session* session) { return session->impl->core().result(); }

paceline_outcome paceline_session_step_gradients(paceline_session* session, const paceline_span* pieces, size_t count,
                                                 const paceline_stats* stats) {
  auto& core = session->impl->core();
  return *session->impl->until_done([&] { return core.step_gradients({pieces, count}, *stats); });
}

paceline_outcome paceline_session_step_model(paceline_session* session, const paceline_stats* stats) {
  auto& core = session->impl->core();
  return *session->impl->until_done([&] { return core.step_model(*stats); });
}

void paceline_session_evaluated(paceline_session* session, double value) { session->impl->core().evaluated(value); }

void paceline_session_capture(paceline_session* session, const paceline_span* pieces, size_t count) {
  std::vector<std::span<const std::byte>> state;
  for (const auto& piece : std::span(pieces, count))
    state.emplace_back(static_cast<const std::byte*>(piece.data), piece.elements);
  auto& core = session->impl->core();
  session->impl->until_done([&] { return core.capture(state); });
}

void paceline_session_saved(paceline_session* session) { session->impl->core().saved(); }
paceline_span paceline_session_outer(const paceline_session* session) { return session->impl->core().outer(); }

int paceline_session_set_outer(paceline_session* session, const void* data, size_t size) {
  return session->impl->core().set_outer({static_cast<const std::byte*>(data), size}) ? 1 : 0;
}

paceline_span paceline_session_replica(const paceline_session* session) { return session->impl->core().replica(); }
void paceline_session_restored(paceline_session* session) {
  auto& core = session->impl->core();
  session->impl->until_done([&] { return core.restored(); });
}

double paceline_session_sleep(paceline_session* session, double seconds) { return session->impl->sleep(seconds); }

void paceline_session_warn(paceline_session* session, const char* text) {
  session->impl->core().report([&](auto report) { report.setWarning(text); });
}
void paceline_session_stop(paceline_session* session, const char* reason) { session->impl->core().stop_job(reason); }
void paceline_session_end_with(paceline_session* session, const paceline_span* pieces, size_t count, size_t width) {
  session->impl->end_with({pieces, count}, width);
}
void paceline_session_uses_file(paceline_session* session, const char* path) {
  std::error_code ignored;
  const auto absolute = std::filesystem::absolute(path, ignored).string();
  const auto hash = std::filesystem::is_directory(absolute, ignored) ? paceline::hash_of_folder(absolute)
                                                                     : paceline::hash_of_file(absolute);
  session->impl->core().report([&](auto report) {
    auto file = report.initFile();
    file.setPath(absolute);
    file.setHash(hash ? *hash : "");
  });
}
void paceline_session_fail(paceline_session* session, const char* reason) {
  session->impl->core().report([&](auto report) { report.setFail(reason); });
}
void paceline_session_log(paceline_session* session, const char* name, double value) {
  session->impl->core().report([&](auto report) {
    auto metric = report.initMetric();
    metric.setName(name);
    metric.setValue(value);
  });
}

void* paceline_session_object(paceline_session* session, const char* key, uint64_t size, int* fill, char* error,
                              size_t error_size) {
  bool must_fill = false;
  auto data = session->impl->object(key, size, must_fill);
  *fill = must_fill ? 1 : 0;
  if (!data) {
    explain(data.error(), error, error_size);
    return nullptr;
  }
  return *data;
}

void paceline_session_seal(paceline_session* session, const char* key) { session->impl->seal_object(key); }

}  // extern "C"
