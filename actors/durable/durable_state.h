#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "actors/durable/call_records.h"
#include "actors/durable/undo_log.h"
#include "runtime/process/fd.h"
#include "runtime/store/mapping.h"

namespace paceline::actors {

/// A durable<T>, as the state of its actor sees it.
class DurableMember {
 public:
  virtual ~DurableMember() = default;
  /// What has been changed goes into the state: it is about to be published.
  virtual Result<void> store() { return {}; }
  /// Its bytes are again what was published last.
  virtual Result<void> load() { return {}; }
};

/// What of an actor survives the death of its process: its members that are durable, and which calls it has done. Lies
/// in one memfd, which somebody else keeps open, too.
///
///   create -> add ... -> finish -> [ change, publish ] ...       the process dies anywhere
///   open (rolled back to the last publication) -> add ... -> finish -> [ change, publish ] ...
///
/// A publication is one store, of the next version. The next process makes the same members in the same order: another
/// constructor is `invalid`. Owned by the actor's thread.
class DurableState {
 public:
  static constexpr std::size_t kMembersMax = 64;
  static constexpr std::size_t kValueMax = std::size_t{60} << 20;  ///< Of one that is serialised.

  static Result<std::unique_ptr<DurableState>> create();
  /// What finish() has sealed, and perhaps a process that is dead has changed. `invalid`: it is none.
  static Result<std::unique_ptr<DurableState>> open(process::Fd fd);
  DurableState(const DurableState&) = delete;
  DurableState& operator=(const DurableState&) = delete;

  struct Place {
    std::size_t index;  ///< For save().
    std::byte* data;    ///< Stays there.
    bool restored;      ///< It holds what was published last; else zeros.
  };
  /// Of the next member, in the constructor. `is_sparse`: it may become so large, and is reserved as it grows; else all
  /// of it is there at once. `infeasible`, where there is too little memory.
  Result<Place> add(DurableMember& member, std::size_t bytes, std::string_view type, bool is_sparse);
  void forget(DurableMember& member);
  /// The constructor has returned: all that it made counts, and nothing can be added.
  Result<void> finish();
  bool is_finished() const { return finished_; }
  process::BorrowedFd fd() const { return fd_; }

  /// Bytes of a member may be changed until the next publication.
  Result<void> save(std::size_t index, std::size_t offset, std::size_t size);
  struct Done {
    ProcessId caller;
    std::uint64_t number;  ///< 0: of nobody who could ask again.
    bool ok;
    std::span<const std::byte> answer;
  };
  /// What has changed since the last publication, and this call, count. Where that fails nothing has changed.
  Result<void> publish(const std::optional<Done>& done);
  void roll_back();
  const CallRecords& records() const { return *records_; }

 private:
  struct Root;
  struct Section {
    store::Mapping memory;
    bool is_sparse = false;
    std::optional<UndoLog> log{};
  };
  DurableState() = default;
  Root& root() const;
  Result<store::Mapping> map(std::size_t offset, std::size_t size) const;
  UndoLog::Reserve reserve_at(std::size_t offset) const;
  Result<std::size_t> grow(std::size_t bytes);

  process::Fd fd_;
  store::Mapping root_;
  store::Mapping records_memory_;
  std::unique_ptr<CallRecords> records_;
  std::vector<Section> sections_;
  std::vector<DurableMember*> members_;
  bool restored_ = false;
  bool finished_ = false;
};

}  // namespace paceline::actors
