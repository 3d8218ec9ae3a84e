#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "actors/spans/span_memory.h"
#include "runtime/base/ids.h"
#include "runtime/process/fd.h"
#include "runtime/wire/base64.h"

namespace paceline::cluster {

/// Where this node's workers write down what they run (actors/spans/span_memory.h), by their descriptors. Copied for
/// who asks, and looked into by nobody here. Owned by the control loop.
class WorkerSpans {
 public:
  /// Nothing happens where it is no memory, or the worker has given some before.
  void keep(WorkerId worker, process::Fd fd) {
    if (::fcntl(fd.get(), F_GET_SEALS) >= 0) spans_.try_emplace(worker, std::move(fd));
  }
  void forget(WorkerId worker) { spans_.erase(worker); }
  /// What runs, and all names, in base64; empty: there are none.
  std::string running(WorkerId worker) const {
    const auto found = spans_.find(worker);
    return found == spans_.end() ? std::string() : wire::to_base64(copy_running(found->second.get()));
  }
  std::size_t size() const { return spans_.size(); }

 private:
  /// Less where there is less.
  static std::string copy(int fd, std::size_t offset, std::size_t size) {
    std::string bytes(size, '\0');
    const auto read = ::pread(fd, bytes.data(), size, static_cast<off_t>(offset));
    bytes.resize(read > 0 ? static_cast<std::size_t>(read) : 0);
    return bytes;
  }

  static std::string copy_running(int fd) {
    auto bytes = copy(fd, 0, actors::kPageBytes);
    std::uint64_t names = 0;
    if (bytes.size() == actors::kPageBytes)
      std::memcpy(&names, bytes.data() + offsetof(actors::SpanHeader, names), sizeof names);
    return bytes + copy(fd, actors::kPageBytes, std::min<std::uint64_t>(names, actors::kNamesBytes));
  }

  std::map<WorkerId, process::Fd> spans_;
};

}  // namespace paceline::cluster
