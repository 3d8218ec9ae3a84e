#include "actors/cancel.h"
#include "actors/client.h"

namespace paceline::actors {

void Client::expect(const std::shared_ptr<IncomingStream>& stream, const PendingResultPtr& end) {
  stream->begin(end, [outbox = outbox_, end] { outbox->drop_stream(end); });
  end->when_ready([end = end.get(), weak = std::weak_ptr(stream)] {
    if (const auto there = weak.lock()) there->on_end(end->wait());
  });
  std::lock_guard lock(mutex_);
  streams_.emplace(end->task(), stream);
}

void Client::on_item(CallResult item) {
  std::shared_ptr<IncomingStream> stream;
  {
    std::lock_guard lock(mutex_);
    if (const auto found = streams_.find(item.task); found != streams_.end()) stream = found->second.lock();
  }
  if (!stream || !item.value) return;
  stream->on_item(item.item, *std::move(item.value));
  tell_taken(*stream);
}

void Client::tell_taken(IncomingStream& stream) {
  const auto taken = stream.word();
  if (!taken) return;
  const TaskId task = stream.end()->task();
  std::lock_guard lock(mutex_);
  if (in_flight_.contains(task)) {
    signal_call(task, stream.end()->actor(), Signal::Kind::taken, *taken);
  } else if (const auto with = tasks_.with(task); with && with->worker.value != 0) {
    signal_task(task, *with, Signal::Kind::taken, *taken);
  }
}

void Client::forget_streams(const std::vector<PendingResultPtr>& dropped) {
  for (const auto& end : dropped) {
    if (!end->ready()) (void)cancel(end, false);
    std::lock_guard lock(mutex_);
    streams_.erase(end->task());
  }
}

}  // namespace paceline::actors
