#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/instant.h"
#include "runtime/process/fd.h"
#include "runtime/store/mapping.h"

namespace paceline::cluster {

/// Where this node's workers write down what they run (actors/spans/span_memory.h), mapped: of those that live, and of
/// the last kEndedMax that have ended. Copied for who asks, and looked into by nobody here. Owned by the control loop.
class WorkerSpans {
 public:
  static constexpr std::size_t kEndedMax = 32;

  /// What a worker is, for people.
  struct Label {
    std::string driver{};  ///< On whose behalf it runs.
    std::string name{};    ///< Its actor's, or "tasks".
    std::string type{};    ///< Its actor's class.
    pid_t pid = -1;
  };
  void begin(WorkerId worker, Label label) { living_[worker].label = std::move(label); }
  /// Nothing happens where it is no such memory, or the worker has given some before.
  void keep(WorkerId worker, pid_t pid, process::Fd fd);
  void end(WorkerId worker, Instant now);

  /// Parts of a SpanMemory, each as far as it is used, in base64.
  struct Copy {
    std::string head;  ///< Up to the names: what runs.
    std::string names;
    std::string over;  ///< The calls that are over.
  };
  /// Without those that are over; nothing of a worker that has given none.
  Copy running(WorkerId worker) const;

  /// One worker's; its memory stays as long as this lives.
  struct Source {
    WorkerId worker;
    Label label;
    std::optional<Instant> ended{};
    std::shared_ptr<const store::Mapping> memory;
  };
  /// Those that live in the order of ids, then those that have ended, the last first.
  std::vector<Source> sources() const;
  /// Of any thread.
  static Copy copy(const Source& source);

 private:
  struct Living {
    Label label{};
    std::shared_ptr<const store::Mapping> memory{};
  };
  std::map<WorkerId, Living> living_;
  std::deque<Source> ended_;
};

}  // namespace paceline::cluster
