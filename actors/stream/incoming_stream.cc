#include "actors/stream/incoming_stream.h"

#include "actors/serialise.h"

namespace paceline::actors {

IncomingStream::~IncomingStream() {
  if (on_drop_) on_drop_();
  for (const auto& asked : asked_)
    (void)asked->complete(fail(ErrorKind::cancelled, "the stream that was to give this value was dropped"));
}

PendingResultPtr IncomingStream::next() {
  PendingResultPtr asked;
  Completions done;
  {
    std::lock_guard lock(mutex_);
    if (!back_.empty()) {
      asked = std::move(back_.front());
      back_.pop_front();
      return asked;
    }
    asked = std::make_shared<PendingResult>(end_->task(), end_->actor(), true);
    ++wanted_;
    asked_.push_back(asked);
    serve(done);
  }
  complete(std::move(done));
  return asked;
}

void IncomingStream::put_back(PendingResultPtr asked) {
  std::lock_guard lock(mutex_);
  back_.push_front(std::move(asked));
}

void IncomingStream::on_item(std::uint64_t number, Bytes value) {
  Completions done;
  {
    std::lock_guard lock(mutex_);
    if (number == 1) told_ = 0;  // It begins, maybe again: then it knows of nothing.
    if (over_ && !*over_) return;
    if (number > given_) arrived_.try_emplace(number, std::move(value));
    serve(done);
  }
  complete(std::move(done));
}

void IncomingStream::on_end(const Result<Bytes>& count) {
  Completions done;
  {
    std::lock_guard lock(mutex_);
    if (count) {
      const auto values = from_bytes<std::uint64_t>(*count, "the length of a stream");
      over_ = values ? Result<Bytes>(Bytes{}) : tl::unexpected(values.error());
      count_ = values.value_or(0);
    } else {
      over_ = tl::unexpected(count.error());
    }
    serve(done);
  }
  complete(std::move(done));
}

std::optional<std::uint64_t> IncomingStream::word() {
  std::lock_guard lock(mutex_);
  const bool is_due = wanted_ - told_ >= (ahead_ + 1) / 2 || untold_bytes_ >= kStreamBytesMax / 4;
  if (over_ || !is_due) return std::nullopt;
  told_ = wanted_;
  untold_bytes_ = 0;
  return wanted_;
}

/// Under the lock; completing is not.
void IncomingStream::serve(Completions& done) {
  for (; !asked_.empty(); asked_.pop_front()) {
    const auto next = arrived_.find(given_ + 1);
    if (next != arrived_.end()) {
      untold_bytes_ += next->second.size();
      done.emplace_back(asked_.front(), std::move(next->second));
      arrived_.erase(next);
      ++given_;
    } else if (over_ && !*over_) {
      done.emplace_back(asked_.front(), *over_);
    } else if (over_ && given_ >= count_) {
      done.emplace_back(asked_.front(), to_bytes(std::optional<char>()));  // Of any type.
    } else {
      return;
    }
  }
}

void IncomingStream::complete(Completions done) {
  for (auto& one : done) (void)one.first->complete(std::move(one.second));
}

}  // namespace paceline::actors
