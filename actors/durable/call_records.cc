#include "actors/durable/call_records.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace paceline::actors {

/// Places in the ring are counted from the first byte that was ever written to it.
struct CallRecords::Head {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t callers;
  std::uint64_t forgotten;  ///< Callers.
};

struct CallRecords::Caller {
  std::uint64_t process;
  std::uint64_t last;     ///< The number of the last call that was done.
  std::uint64_t version;  ///< With which that was published.
};

struct CallRecords::Record {
  std::uint64_t number;
  std::uint32_t process;
  std::uint32_t size;  ///< Of the answer, which follows.
  std::uint64_t ok;
};

namespace {

constexpr std::size_t kRing = CallRecords::kRingBytes;

/// A record and its answer in the ring.
constexpr std::size_t taken_by(std::size_t record, std::size_t answer) { return record + (answer + 7) / 8 * 8; }

}  // namespace

std::size_t CallRecords::table_bytes() { return sizeof(Head) + kCallersMax * sizeof(Caller); }
std::size_t CallRecords::memory_for() { return UndoLog::memory_for(table_bytes()) + kRing; }

CallRecords::CallRecords(std::byte* memory, UndoLog::Reserve reserve)
    : memory_(memory), table_(memory, table_bytes(), reserve), reserve_(std::move(reserve)) {
  read();
}

CallRecords::Head& CallRecords::head() const { return *reinterpret_cast<Head*>(table_.data().data()); }
CallRecords::Caller* CallRecords::callers() const {
  return reinterpret_cast<Caller*>(table_.data().data() + sizeof(Head));
}

void CallRecords::read() {
  places_.clear();
  kept_.clear();
  for (std::size_t place = 0; place < std::min<std::size_t>(head().callers, kCallersMax); ++place)
    places_[static_cast<ProcessId>(callers()[place].process)] = place;
  Record record{};
  for (std::uint64_t at = head().begin; at < head().end; at += taken_by(sizeof record, record.size)) {
    copy_out(at, &record, sizeof record);
    kept_[{record.process, record.number}] = at;
  }
}

void CallRecords::copy_in(std::uint64_t at, const void* from, std::size_t size) {
  const std::size_t place = at % kRing, first = std::min(size, kRing - place);
  if (first > 0) std::memcpy(ring() + place, from, first);
  if (size > first) std::memcpy(ring(), static_cast<const std::byte*>(from) + first, size - first);
}

void CallRecords::copy_out(std::uint64_t at, void* to, std::size_t size) const {
  const std::size_t place = at % kRing, first = std::min(size, kRing - place);
  if (first > 0) std::memcpy(to, ring() + place, first);
  if (size > first) std::memcpy(static_cast<std::byte*>(to) + first, ring(), size - first);
}

/// Of a new one where there is room, else that of the one that has called least lately.
Result<std::size_t> CallRecords::place_of(ProcessId caller, std::uint64_t version) {
  if (const auto known = places_.find(caller); known != places_.end()) return known->second;
  PACELINE_TRY(table_.save(0, sizeof(Head), version));
  std::size_t place = head().callers;
  if (place < kCallersMax) {
    PACELINE_TRY(table_.save(sizeof(Head) + place * sizeof(Caller), sizeof(Caller), version));
    ++head().callers;
  } else {
    const auto is_older = [](const Caller& a, const Caller& b) { return a.version < b.version; };
    place = static_cast<std::size_t>(std::min_element(callers(), callers() + kCallersMax, is_older) - callers());
    PACELINE_TRY(table_.save(sizeof(Head) + place * sizeof(Caller), sizeof(Caller), version));
    places_.erase(static_cast<ProcessId>(callers()[place].process));
    ++head().forgotten;
  }
  callers()[place] = {caller, 0, version};
  places_[caller] = place;
  return place;
}

Result<void> CallRecords::add(ProcessId caller, std::uint64_t number, bool ok, std::span<const std::byte> answer,
                              std::uint64_t version) {
  const auto place = place_of(caller, version);
  if (!place) return tl::unexpected(place.error());
  PACELINE_TRY(table_.save(0, sizeof(Head), version));
  PACELINE_TRY(table_.save(sizeof(Head) + *place * sizeof(Caller), sizeof(Caller), version));
  callers()[*place] = {caller, number, version};
  if (answer.size() > kAnswerMax) return {};

  const Record record{number, caller, static_cast<std::uint32_t>(answer.size()), ok ? 1U : 0U};
  const std::size_t size = taken_by(sizeof record, answer.size());
  const std::uint64_t end = head().end + size;
  if (const std::size_t wanted = std::min<std::uint64_t>(end, kRing); wanted > reserved_) {
    const std::size_t more = std::min(kRing, std::max(wanted, 2 * reserved_));
    PACELINE_TRY(reserve_(UndoLog::memory_for(table_bytes()), more));
    reserved_ = more;
  }
  copy_in(head().end, &record, sizeof record);
  copy_in(head().end + sizeof record, answer.data(), answer.size());
  kept_[{caller, number}] = head().end;
  head().end = end;
  // Room for the next one is made with this publication: what it overwrites must not count when it is written.
  while (kRing - (head().end - head().begin) < taken_by(sizeof record, kAnswerMax)) {
    Record oldest{};
    copy_out(head().begin, &oldest, sizeof oldest);
    const auto kept = kept_.find({oldest.process, oldest.number});
    if (kept != kept_.end() && kept->second == head().begin) kept_.erase(kept);
    head().begin += taken_by(sizeof oldest, oldest.size);
  }
  return {};
}

CallRecords::Kept CallRecords::find(ProcessId caller, std::uint64_t number, Answer& answer) const {
  const auto place = places_.find(caller);
  if (place == places_.end()) return head().forgotten > 0 ? Kept::lost : Kept::not_done;
  if (number > callers()[place->second].last) return Kept::not_done;
  const auto kept = kept_.find({caller, number});
  if (kept == kept_.end()) return Kept::lost;
  Record record{};
  copy_out(kept->second, &record, sizeof record);
  answer.ok = record.ok != 0;
  answer.bytes.resize(record.size);
  copy_out(kept->second + sizeof record, answer.bytes.data(), record.size);
  return Kept::kept;
}

void CallRecords::roll_back(std::uint64_t version) {
  table_.roll_back(version);
  read();
}

}  // namespace paceline::actors
