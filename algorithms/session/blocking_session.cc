#include "algorithms/session/blocking_session.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "algorithms/session/job_terms_wire.h"
#include "runtime/base/content_hash.h"
#include "runtime/base/steady_now.h"

namespace paceline::session {
namespace {

constexpr Duration kAnswerWithin = std::chrono::seconds(30);

void fill_share_request(wire::Message& message, const paceline_session_config& config, std::uint64_t request) {
  auto body = message.root().initOpenShare();
  body.setJob(config.job);
  body.setRank(config.rank);
  body.setElements(config.elements);
  body.setDtype(static_cast<std::uint8_t>(config.dtype));
  body.setWorker(config.worker);
  body.setOuterElements(config.outer_elements > 0 ? config.outer_elements : config.elements);
  body.setRequest(request);
}

}  // namespace

Result<std::unique_ptr<BlockingSession>> BlockingSession::open(const paceline_session_config& config) {
  auto link =
      AgentLink::connect(config.endpoint, config.worker, *static_cast<process::DescriptorChannel*>(config.agent));
  if (!link) return tl::unexpected(link.error());
  std::unique_ptr<BlockingSession> session(new BlockingSession(std::move(*link)));
  PACELINE_TRY(session->reopen(config));
  return session;
}

Result<void> BlockingSession::reopen(const paceline_session_config& config) {
  const auto request = link_.begin();
  wire::Message message;
  fill_share_request(message, config, request.number());
  PACELINE_TRY(link_.send(message));
  auto answer = link_.wait(request, kAnswerWithin);
  if (!answer) return tl::unexpected(answer.error());
  return configure(*std::move(answer), config);
}

BlockingSession::~BlockingSession() {
  if (core_) core_->end();
}

Result<void> BlockingSession::configure(Answer answer, const paceline_session_config& config) {
  if (answer.fds.size() != 2)
    return fail(ErrorKind::internal, "the agent's answer to openShare lacks its two descriptors");
  JobTerms terms;
  PACELINE_TRY(answer.as(wire::Envelope::JOB_TERMS, [&](const auto& root) { terms = job_terms(root.getJobTerms()); }));
  auto window = memory::Window::map(std::move(answer.fds[0]),
                                    {config.elements, static_cast<memory::Dtype>(config.dtype), terms.buffers});
  if (!window) return tl::unexpected(window.error());
  auto control = memory::ControlPage::map(answer.fds[1]);
  if (!control) return tl::unexpected(control.error());
  job_ = terms.job;
  rank_ = config.rank;
  if (!terms.trace.empty()) {
    if (auto trace = observe::TraceWriter::open(terms.trace)) {
      trace_.emplace(std::move(*trace));
      trace_->name_track(terms.node, rank_ + 1, "node " + std::to_string(terms.node),
                         "worker " + std::to_string(rank_));
    }
  }
  const SessionCore::Share share{job_, rank_, config.outer_elements > 0 ? config.outer_elements : config.elements};
  core_.emplace(share, terms, std::move(*window), std::move(*control), outbox(terms.node), machine_clock());
  return {};
}

SessionCore::Outbox BlockingSession::outbox(std::int32_t node) {
  return {[this](wire::Message& message) { post(message); },
          [this] { return replica_.emplace(link_.begin()).number(); },
          [this](std::int64_t update, store::SharedObject::Pieces state) { send_replica(update, state); },
          [this, node](const char* what, Instant begin, Instant end, std::int64_t update) {
            if (!trace_) return;
            char which[40];
            std::snprintf(which, sizeof which, "{\"update\":%lld}", static_cast<long long>(update));
            trace_->span(node, rank_ + 1, what, begin, end, which);
          }};
}

/// A message that cannot leave matters only if the agent is gone: it is told of everything again by what follows.
void BlockingSession::post(wire::Message& message) {
  if (!link_.send(message) && !link_.agent_is_there()) core_->on_agent_gone();
}

void BlockingSession::fail_job(const Error& error) {
  core_->report([&](auto report) { report.setFail(error.text); });
}

void BlockingSession::send_replica(std::int64_t update, store::SharedObject::Pieces state) {
  const auto object = store::SharedObject::sealed_copy_of(state);
  if (!object) return fail_job(object.error());
  wire::Message message;
  auto body = message.root().initReplica();
  body.setJob(job_);
  body.setRank(rank_);
  body.setUpdate(update);
  body.setSize(object->size());
  const auto given = link_.give(process::DescriptorMessage::Kind::captured, message, object->fd());
  if (!given && !link_.agent_is_there()) core_->on_agent_gone();
}

/// For the bell, since it was `bell`.
void BlockingSession::wait(std::uint32_t bell, Duration most) {
  if (!core_->control().wait(bell, most) && !link_.agent_is_there()) core_->on_agent_gone();
}

/// Waits for a donor's replica, or the word that there is none to be had.
void BlockingSession::read_answer() {
  auto answer = link_.wait(*replica_, kLook);
  if (!answer) {
    const ErrorKind kind = answer.error().kind;
    if (kind == ErrorKind::timed_out) return;
    return kind == ErrorKind::invalid || kind == ErrorKind::overloaded ? fail_job(answer.error())
                                                                       : core_->on_agent_gone();
  }
  std::int64_t update = 0;
  std::uint64_t size = 0;
  const auto read = answer->as(wire::Envelope::REPLICA, [&](const auto& root) {
    update = root.getReplica().getUpdate();
    size = root.getReplica().getSize();
  });
  if (!read) return core_->on_agent_gone();
  if (answer->fds.empty()) return core_->on_go_on(update);
  auto object = store::SharedObject::map(std::move(answer->fds[0]), std::max<std::uint64_t>(1, size));
  if (!object) return fail_job(object.error());
  core_->on_replica(update, std::move(*object));
}

/// Until then, or until its mini-batch is worth nothing.
double BlockingSession::sleep(double seconds_to_sleep) {
  const Instant begin = steady_now(), end = begin + from_seconds(seconds_to_sleep);
  for (Instant now = begin; now < end && !core_->is_lost(); now = steady_now()) {
    const std::uint32_t bell = core_->control().bell();
    if (core_->is_cut_short()) break;
    wait(bell, std::min(kLook, end - now));
  }
  return seconds(steady_now() - begin);
}

void BlockingSession::end_with(std::span<const paceline_span> pieces, std::size_t width) {
  ContentHash hash;
  for (const auto& piece : pieces)
    hash.add({static_cast<const char*>(piece.data), static_cast<std::size_t>(piece.elements) * width});
  core_->report([&](auto report) { report.setFinal(hash.hex()); });
}

Result<void*> BlockingSession::object(const std::string& key, std::uint64_t size, bool& fill) {
  wire::Message message;
  auto body = message.root().initOpenObject();
  body.setJob(job_);
  body.setKey(key);
  body.setSize(size);
  body.setWorker(0);
  const auto request = link_.begin();
  body.setRequest(request.number());
  PACELINE_TRY(link_.send(message));
  while (true) {
    auto answer = link_.wait(request, std::chrono::seconds(1));
    if (!answer) {
      if (answer.error().kind == ErrorKind::timed_out && !core_->is_stopped()) continue;
      if (answer.error().kind == ErrorKind::overloaded) fail_job(answer.error());  // It may have been to fill it.
      return tl::unexpected(answer.error());
    }
    if (answer->fds.size() != 1)
      return fail(ErrorKind::internal, "the agent's answer to openObject lacks its descriptor");
    PACELINE_TRY(answer->as(wire::Envelope::OBJECT, [&](const auto& root) { fill = root.getObject().getFill(); }));
    auto& fd = answer->fds[0];
    auto object = fill ? store::SharedObject::fill(std::move(fd), size) : store::SharedObject::map(std::move(fd), size);
    if (!object) return tl::unexpected(object.error());
    auto [it, inserted] = objects_.insert_or_assign(key, std::move(*object));
    return fill ? static_cast<void*>(it->second.writable().data()) : const_cast<std::byte*>(it->second.data().data());
  }
}

void BlockingSession::seal_object(const std::string& key) {
  const auto it = objects_.find(key);
  if (it == objects_.end()) return;
  if (const auto sealed = it->second.seal(); !sealed) return fail_job(sealed.error());
  wire::Message message;
  auto body = message.root().initSealObject();
  body.setJob(job_);
  body.setKey(key);
  post(message);
}

}  // namespace paceline::session
