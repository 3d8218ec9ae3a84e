#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/process/fd.h"
#include "runtime/store/shared_object.h"

namespace paceline::store {

/// Shared objects by name (data sets): the first that asks for one fills it, the others wait until it is sealed.
class NamedObjects {
 public:
  static constexpr std::uint64_t kBytesMax = std::uint64_t{64} << 30;  ///< Of one object.
  struct Asker {
    WorkerId worker;
    std::uint64_t request = 0;
  };
  struct Given {
    Asker to;
    process::BorrowedFd object;
    bool fill = false;
  };

  /// nullopt: it waits. `invalid`: a size that it cannot have, or another than it has; `infeasible`: there is no room.
  Result<std::optional<Given>> open(Asker asker, const std::string& name, std::uint64_t size);
  /// Who fills it says that it is sealed. To those that have waited, if it is.
  std::vector<Given> on_sealed(const std::string& name);

 private:
  struct Object {
    SharedObject object;
    bool sealed = false;
    std::vector<Asker> waiting{};
  };
  std::map<std::string, Object> objects_;
};

}  // namespace paceline::store
