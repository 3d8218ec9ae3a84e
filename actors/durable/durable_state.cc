#include "actors/durable/durable_state.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/store/memory_room.h"
#include "runtime/store/shared_memory.h"

namespace paceline::actors {
namespace {

constexpr std::uint64_t kMagic = 0x31454c4241525544;  // "DURABLE1"
constexpr std::size_t kRootBytes = UndoLog::kBlock;
constexpr const char* kWhat = "durable state";
constexpr std::uint64_t kConstructing = 1;  // The version until finish().

}  // namespace

struct DurableState::Root {
  struct Member {
    std::uint64_t offset;
    std::uint64_t bytes;
    std::uint64_t type;
  };
  std::uint64_t magic;
  std::atomic<std::uint64_t> version;
  std::uint64_t members;
  Member member[kMembersMax];
};

DurableState::Root& DurableState::root() const { return *reinterpret_cast<Root*>(root_.data()); }

Result<store::Mapping> DurableState::map(std::size_t offset, std::size_t size) const {
  return store::Mapping::map(fd_, size, store::Mapping::Access::write, kWhat, offset);
}

UndoLog::Reserve DurableState::reserve_at(std::size_t begin) const {
  return [fd = process::BorrowedFd(fd_), begin](std::size_t offset, std::size_t size) -> Result<void> {
    if (store::allocate(fd, begin + offset, size)) return {};
    return fail(ErrorKind::infeasible, "durable state: the system refused " + std::to_string(size >> 10) +
                                           " KiB more: it may take twice its size, for what is being changed");
  };
}

/// Where the new bytes begin.
Result<std::size_t> DurableState::grow(std::size_t bytes) {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return fail_errno("durable state: fstat");
  if (::ftruncate(fd_.get(), status.st_size + static_cast<off_t>(bytes)) != 0)
    return fail_errno("durable state: set its size (ftruncate)");
  return static_cast<std::size_t>(status.st_size);
}

Result<std::unique_ptr<DurableState>> DurableState::create() {
  std::unique_ptr<DurableState> state(new DurableState);
  auto fd = store::create_memory({.name = "paceline-durable",
                                  .size = kRootBytes + CallRecords::memory_for(),
                                  .sealed = store::MemoryShape::Sealed::later});
  if (!fd) return tl::unexpected(fd.error());
  state->fd_ = *std::move(fd);
  auto root = state->map(0, kRootBytes);
  if (!root) return tl::unexpected(root.error());
  state->root_ = *std::move(root);
  state->root().magic = kMagic;
  state->root().version.store(kConstructing);
  auto records = state->map(kRootBytes, CallRecords::memory_for());
  if (!records) return tl::unexpected(records.error());
  state->records_memory_ = *std::move(records);
  state->records_ = std::make_unique<CallRecords>(state->records_memory_.data(), state->reserve_at(kRootBytes));
  return state;
}

Result<std::unique_ptr<DurableState>> DurableState::open(process::Fd fd) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("durable state: fstat");
  PACELINE_TRY(store::check_memory(fd, static_cast<std::uint64_t>(status.st_size), kWhat));
  std::unique_ptr<DurableState> state(new DurableState);
  state->fd_ = std::move(fd);
  const auto size = static_cast<std::size_t>(status.st_size);
  const std::size_t least = kRootBytes + CallRecords::memory_for();
  auto root = state->map(0, kRootBytes);
  if (!root) return tl::unexpected(root.error());
  state->root_ = *std::move(root);
  bool is_one = size >= least && state->root().magic == kMagic && state->root().version.load() > kConstructing &&
                state->root().members <= kMembersMax;
  for (std::size_t i = 0; is_one && i < state->root().members; ++i) {
    const auto& member = state->root().member[i];
    is_one = member.offset >= least && member.offset % UndoLog::kBlock == 0 && member.offset <= size &&
             member.bytes <= size && UndoLog::memory_for(member.bytes) <= size - member.offset;
  }
  if (!is_one) return fail(ErrorKind::invalid, "durable state: what was kept of it is none");
  state->restored_ = true;
  auto records = state->map(kRootBytes, CallRecords::memory_for());
  if (!records) return tl::unexpected(records.error());
  state->records_memory_ = *std::move(records);
  state->records_ = std::make_unique<CallRecords>(state->records_memory_.data(), state->reserve_at(kRootBytes));
  state->records_->roll_back(state->root().version.load());
  return state;
}

Result<DurableState::Place> DurableState::add(DurableMember& member, std::size_t bytes, std::string_view type,
                                              bool is_sparse) {
  const std::size_t index = sections_.size();
  if (finished_) return fail(ErrorKind::invalid, "durable state is made in an actor's constructor, not in its methods");
  if (index >= kMembersMax)
    return fail(ErrorKind::invalid,
                "an actor has at most " + std::to_string(kMembersMax) + " durable members: put several into one");
  const auto hash = std::uint64_t{std::hash<std::string_view>{}(type)};
  const std::size_t size = UndoLog::memory_for(bytes);
  if (restored_) {
    const bool is_it =
        index < root().members && root().member[index].bytes == bytes && root().member[index].type == hash;
    if (!is_it)
      return fail(ErrorKind::invalid, "durable state: member " + std::to_string(index + 1) +
                                          " was another one before the actor was started again: its constructor has to "
                                          "make the same ones each time");
  } else {
    if (!is_sparse) PACELINE_TRY(store::check_room(kWhat, bytes));
    const auto offset = grow(size);
    if (!offset) return tl::unexpected(offset.error());
    PACELINE_TRY(reserve_at(*offset)(0, UndoLog::data_at(bytes) + (is_sparse ? 0 : bytes)));
    root().member[index] = {*offset, bytes, hash};
    root().members = index + 1;
  }
  const std::size_t offset = root().member[index].offset;
  auto memory = map(offset, size);
  if (!memory) return tl::unexpected(memory.error());
  auto& section = sections_.emplace_back(Section{*std::move(memory), is_sparse, {}});
  section.log.emplace(section.memory.data(), bytes, reserve_at(offset));
  if (restored_) section.log->roll_back(root().version.load());
  members_.push_back(&member);
  return Place{index, section.log->data().data(), restored_};
}

void DurableState::forget(DurableMember& member) {
  std::replace(members_.begin(), members_.end(), &member, static_cast<DurableMember*>(nullptr));
}

Result<void> DurableState::finish() {
  if (restored_ && sections_.size() != root().members)
    return fail(ErrorKind::invalid, "durable state: the actor's constructor has made " +
                                        std::to_string(sections_.size()) + " durable members, and " +
                                        std::to_string(root().members) + " before it was started again");
  if (!restored_) PACELINE_TRY(store::seal_size(fd_));
  PACELINE_TRY(publish({}));
  finished_ = true;
  return {};
}

Result<void> DurableState::save(std::size_t index, std::size_t offset, std::size_t size) {
  const auto& member = root().member[index];
  const std::uint64_t version = root().version.load(std::memory_order_relaxed);
  if (version > kConstructing) return sections_[index].log->save(offset, size, version);
  // Nobody opens what never was finished: there is nothing to put back.
  if (!sections_[index].is_sparse) return {};
  return reserve_at(member.offset)(UndoLog::data_at(member.bytes) + offset, size);
}

Result<void> DurableState::publish(const std::optional<Done>& done) {
  const std::uint64_t version = root().version.load(std::memory_order_relaxed);
  auto stored = [&]() -> Result<void> {
    for (auto* const member : members_)
      if (member != nullptr) PACELINE_TRY(member->store());
    if (done && done->number > 0)
      PACELINE_TRY(records_->add(done->caller, done->number, done->ok, done->answer, version));
    return {};
  }();
  if (!stored) {
    if (finished_) roll_back();
    return stored;
  }
  root().version.store(version + 1, std::memory_order_release);
  return {};
}

void DurableState::roll_back() {
  const std::uint64_t version = root().version.load();
  for (auto& section : sections_) section.log->roll_back(version);
  records_->roll_back(version);
  for (auto* const member : members_) {
    if (member == nullptr) continue;
    const auto loaded = member->load();
    PACELINE_CHECK(loaded, "what durable state has stored cannot be loaded again");
  }
}

}  // namespace paceline::actors
