#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/memory/shared_object.h"

namespace paceline::cluster {

/// Blocks of memory that the workers of a job share on one node, by name (data sets): the first that asks fills it, the
/// others wait until it is sealed. Owned by the job.
class SharedObjects {
 public:
  static constexpr std::uint64_t kBytesMax = std::uint64_t{64} << 30;  ///< Of one object.
  using Answer = std::function<void(WorkerId, const nlohmann::json&, const std::vector<process::BorrowedFd>&)>;

  /// `answer` sends JSON with descriptors to a worker.
  explicit SharedObjects(Answer answer) : answer_(std::move(answer)) {}

  void open(WorkerId worker, const std::string& key, std::uint64_t size);
  void seal(const std::string& key);

 private:
  struct Object {
    std::shared_ptr<memory::SharedObject> object;
    std::uint64_t size = 0;
    bool sealed = false;
    std::vector<WorkerId> waiting;
  };

  Answer answer_;
  std::map<std::string, Object> objects_;
};

}  // namespace paceline::cluster
