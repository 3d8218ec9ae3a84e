#include "runtime/link/link_core.h"

#include <algorithm>
#include <cstdio>
#include <variant>

namespace paceline::link {
namespace {

constexpr std::uint64_t kTellLarge = std::uint64_t{512} << 10;  // Large units are acknowledged so often, if not sooner.

std::string in_seconds(Duration d) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds(d));
  return text;
}

}  // namespace

LinkCore::LinkCore(Options options)
    : options_(std::move(options)), outbox_(options_.self.link, options_.sending), inbox_(options_.receiving) {}

/// Before anything that comes at `now`: time in which this end was not asked, although it should have been, was no
/// silence of the peer's.
void LinkCore::begin(Instant now) {
  if (!needed_) return;
  const auto due = next_deadline();
  if (!due || now <= *due + options_.heartbeat_every) return;
  heard_ += now - *due;
  word_at_ += now - *due;
}

/// After it: silence counts from when the link began to be needed.
void LinkCore::settle(Instant now) {
  const bool needed = is_needed(now);
  if (needed && !needed_) {
    heard_ = word_at_ = now;
    next_heartbeat_ = now + options_.heartbeat_every;
  }
  needed_ = needed;
}

bool LinkCore::is_needed(Instant now) const {
  if (over_ || !was_connected_) return false;
  if (!is_connected_ || !outbox_.empty()) return true;
  if (!is_open()) return false;
  return depends_ || !is_ready_ || inbox_.is_waiting() || (contested_until_ && now < *contested_until_);
}

void LinkCore::on_connected(Instant now) {
  begin(now);
  is_connected_ = was_connected_ = true;
  is_ready_ = false;
  greeting_due_ = true;
  connected_at_ = now;
  next_heartbeat_ = now + options_.heartbeat_every;
  contested_until_.reset();
  settle(now);
}

void LinkCore::on_lost(Instant now) {
  begin(now);
  is_connected_ = is_ready_ = greeting_due_ = answer_due_ = heartbeat_due_ = wants_new_connection_ = false;
  acknowledge_at_.reset();
  settle(now);
}

void LinkCore::on_contested(Instant now) {
  begin(now);
  contested_until_ = now + options_.lease;
  if (is_ready_) heartbeat_due_ = true;
  settle(now);
}

void LinkCore::on_pulse(Instant now) {
  begin(now);
  if (now < word_at_ + options_.stall) heard_ = now;
}

void LinkCore::on_refused() {
  if (!over_ && !is_connected_) end("is gone: nobody listens at its address any more");
}

void LinkCore::depends_on(bool depends, Instant now) {
  begin(now);
  depends_ = depends;
  settle(now);
}

Result<void> LinkCore::send(Class of, std::vector<transport::Piece>&& frames, Instant now) {
  if (over_) return tl::unexpected(*over_);
  begin(now);
  auto added = outbox_.add(of, std::move(frames));
  if (!added) return fail(added.error().kind, options_.peer + ": " + added.error().text);
  settle(now);
  return {};
}

void LinkCore::on_received(std::span<const std::byte> word, std::span<const transport::Piece> pieces, Instant now) {
  if (over_ || !is_connected_) return;
  begin(now);
  is_drained_ = false;
  const auto read = decode(word);
  if (!read) return broke_the_rules(read.error());
  if (std::holds_alternative<Greeting>(read->said) || (is_ready_ && read->link == peer_end_.link)) {
    heard_ = word_at_ = now;
    std::visit([&](const auto& what) { on(what, pieces, now); }, read->said);
  }
  settle(now);
}

void LinkCore::on(const Greeting& greeting, std::span<const transport::Piece>, Instant now) {
  if (greeting.self.link == 0) return broke_the_rules({ErrorKind::invalid, "a greeting without a number"});
  const bool knows_us = greeting.other == options_.self;
  const bool knows_nobody = greeting.other.link == 0;
  if (is_open() && greeting.self != peer_end_) {
    is_replaced_ = true;
    return end(greeting.self.incarnation == peer_end_.incarnation ? "has ended the link" : "was started anew");
  }
  if (!knows_us && !knows_nobody) {  // It goes on with an end that is no more, and hears so.
    greeting_due_ = true;
    return;
  }
  if (is_ready_) {  // Ours did not come, and it asks again.
    greeting_due_ = !greeting.is_ready;
    return;
  }
  peer_end_ = greeting.self;
  peer_address_ = greeting.address;
  peer_pulse_ = greeting.pulse;
  if (const auto taken = outbox_.on_receipts(greeting.receipts, now); !taken) return broke_the_rules(taken.error());
  outbox_.rewind();
  inbox_.told();
  is_ready_ = true;
  next_heartbeat_ = now + options_.heartbeat_every;
}

void LinkCore::on(const State& state, std::span<const transport::Piece>, Instant now) {
  if (const auto taken = outbox_.on_receipts(state.receipts, now); !taken) return broke_the_rules(taken.error());
  if (state.asks) {
    answer_due_ = true;
    echo_ = state.stamp;
  }
  const Instant asked{Duration(static_cast<Duration::rep>(state.echo))};
  if (state.echo != 0 && asked <= now) round_trip_ = now - asked;
  if (!inbox_.has(state.sent)) renew();
}

void LinkCore::on(const Head& head, std::span<const transport::Piece> pieces, Instant now) {
  on_unit(inbox_.on_head(head, pieces));
  if (inbox_.untold_heads() > 0 && !acknowledge_at_) acknowledge_at_ = now + options_.acknowledge_within;
}

void LinkCore::on(const Chunk& chunk, std::span<const transport::Piece> pieces, Instant) {
  on_unit(inbox_.on_chunk(chunk, pieces));
}

void LinkCore::on(const Farewell&, std::span<const transport::Piece>, Instant) { end("has ended the link"); }

void LinkCore::on_unit(const Result<Inbox::Came>& came) {
  if (!came) return broke_the_rules(came.error());
  if (*came == Inbox::Came::gap) renew();
  if (*came == Inbox::Came::again) came_again_ = true;
}

/// What came on this connection is not what was sent: both ends begin again where the receiver is.
void LinkCore::renew() {
  wants_new_connection_ = true;
  is_ready_ = false;
}

void LinkCore::end(std::string cause) {
  over_ = Error{ErrorKind::disconnected, options_.peer + " " + std::move(cause)};
}

void LinkCore::broke_the_rules(const Error& how) {
  end(how.kind == ErrorKind::overloaded ? "sent " + how.text : "broke the rules of a link: " + how.text);
}

std::optional<std::vector<Frame>> LinkCore::take(Instant now) {
  auto frames = inbox_.take();
  if (frames) settle(now);
  return frames;
}

void LinkCore::tick(Instant now) {
  if (over_) return;
  begin(now);
  if (needed_ && now >= heard_ + options_.lease) {
    is_silent_ = true;
    return end(now >= word_at_ + options_.stall ? "has stood still for " + in_seconds(options_.stall)
                                                : "has not answered for " + in_seconds(options_.lease));
  }
  const bool is_due = now >= next_heartbeat_;
  if (is_due && is_connected_ && !is_ready_) greeting_due_ = true;
  if (is_due && is_ready_ && needed_) heartbeat_due_ = true;
  if (is_due && needed_ && now >= heard_ + 2 * options_.heartbeat_every) wants_pulse_ = true;
  if (is_due) next_heartbeat_ = now + options_.heartbeat_every;
  if (is_ready_ && needed_) {
    const Duration patience = contested_until_ ? 2 * options_.heartbeat_every : options_.lease / 2;
    if (now >= std::max(heard_, connected_at_) + patience) renew();
  }
  settle(now);
}

std::optional<Instant> LinkCore::next_deadline() const {
  if (over_) return std::nullopt;
  std::optional<Instant> next;
  const auto at = [&](Instant deadline) { next = std::min(next.value_or(deadline), deadline); };
  if (needed_) at(heard_ + options_.lease);
  if (needed_ || (is_connected_ && !is_ready_)) at(next_heartbeat_);
  if (acknowledge_at_ && is_ready_) at(*acknowledge_at_);
  return next;
}

std::optional<Packet> LinkCore::next(Instant now) {
  if (over_ || !is_connected_ || wants_new_connection_) return std::nullopt;
  if (std::exchange(greeting_due_, false)) return greeting();
  if (!is_ready_) return std::nullopt;
  if (owes_state(now)) return state(now);
  return outbox_.next(now);
}

bool LinkCore::owes_state(Instant now) const {
  return answer_due_ || heartbeat_due_ || came_again_ || inbox_.owes_credit() || inbox_.untold_large() >= kTellLarge ||
         (is_drained_ && inbox_.untold_large() > 0) || (acknowledge_at_ && now >= *acknowledge_at_);
}

Packet LinkCore::greeting() {
  return {encode(options_.self.link,
                 Greeting{options_.self, peer_end_, is_ready_, inbox_.receipts(), options_.pulse, options_.address}),
          {}};
}

Packet LinkCore::state(Instant now) {
  State state;
  state.asks = std::exchange(heartbeat_due_, false);
  state.stamp = static_cast<std::uint64_t>(now.time_since_epoch().count());
  if (std::exchange(answer_due_, false)) state.echo = echo_;
  state.sent = outbox_.sent();
  state.receipts = inbox_.receipts();
  inbox_.told();
  acknowledge_at_.reset();
  came_again_ = false;
  return {encode(options_.self.link, state), {}};
}

Frame LinkCore::farewell() const { return encode(options_.self.link, Farewell{}); }

}  // namespace paceline::link
